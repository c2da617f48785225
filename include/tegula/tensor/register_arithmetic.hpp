#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/math.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/pack.hpp"

/// What a thread computes with its registers, value by value: fill, transform, sums and products,
/// conversions. `Registers` are a fragment or a slice of one.
namespace tegula {

namespace detail {

/// A floating-point number as an integer: cut toward zero; NaN is 0, and what the integer cannot
/// hold the nearest that it can. (PTX ISA, cvt.rzi.)
template <class To, class From> TEGULA_DEVICE To truncated(From x) {
  constexpr int magnitude_bits = 8 * sizeof(To) - (std::is_signed_v<To> ? 1 : 0);
  constexpr From above = static_cast<From>(std::uint64_t{1} << (magnitude_bits - 1)) * From{2};
  constexpr auto ones = static_cast<std::make_unsigned_t<To>>(-1);
  constexpr To largest = static_cast<To>(std::is_signed_v<To> ? ones >> 1 : ones);
  constexpr To least = static_cast<To>(std::is_signed_v<To> ? ~largest : 0);
  if (!(x == x)) return 0;
  if (x >= above) return largest;
  if (x <= (std::is_signed_v<To> ? -above : From{0})) return least;
  return static_cast<To>(x);
}

/// A number as another type of number.
template <class To, class From> TEGULA_DEVICE To as_number(From const& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (!std::is_arithmetic_v<From>) {
    return as_number<To>(widened(x));
  } else if constexpr (!std::is_arithmetic_v<To>) {
    return narrowed<To>(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return truncated<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// What arithmetic is done in: floats for the narrow formats.
template <class T> using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

/// r(i) = f(a(i), ...) for each value.
template <class R, class F, class... A>
TEGULA_DEVICE void assign_each(R& r, SourceLocation where, F& f, A const&... a) {
  using T = typename R::Element;
  static_assert(((A::size == R::size) && ...), "transform: the fragments differ in size");
  static_assert(takes<F, Operand<typename A::Element, F, Wide<typename A::Element>...>...>,
                "transform: f takes a value of each fragment (or, of a narrow format, a float)");
#pragma unroll
  for (int i = 0; i < R::size; ++i) {
    auto const result = f(operand<Operand<typename A::Element, F, Wide<typename A::Element>...>>(
        a.value(i, where))...);
    r.set(i, as_number<T>(result), where);
  }
}
template <class F>
concept Function = !Registers<F>;

}  // namespace detail

/// Sums and extrema, for reduce and transform. Of floats the greater and the less are max.f32 and
/// min.f32: a NaN gives way to a number.
struct Plus {
  template <class T> TEGULA_DEVICE T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
struct Maximum {
  template <class T> TEGULA_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      return max_f32(a, b);
    } else {
      return a < b ? b : a;
    }
  }
};
struct Minimum {
  template <class T> TEGULA_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      return min_f32(a, b);
    } else {
      return b < a ? b : a;
    }
  }
};

/// All values `value`, converted to the registers' type as convert does. (CuTe: fill.)
template <Registers R, class Value>
TEGULA_DEVICE void fill(R&& r, Value const& value,
                        SourceLocation where = SourceLocation::current()) {
  using T = typename std::remove_cvref_t<R>::Element;
  T const own = detail::as_number<T>(value);
#pragma unroll
  for (int i = 0; i < std::remove_cvref_t<R>::size; ++i) r.set(i, own, where);
}

/// r(i) = f(r(i)), r(i) = f(a(i)) and r(i) = f(a(i), b(i)) for each value i; r may be a or b. Where
/// a narrow format holds the values f may take floats, and what it returns is converted to r's
/// type. (CuTe: transform.)
template <Registers R, detail::Function F>
TEGULA_DEVICE void transform(R&& r, F f, SourceLocation where = SourceLocation::current()) {
  detail::assign_each(r, where, f, r);
}
template <Registers A, Registers R, detail::Function F>
TEGULA_DEVICE void transform(A const& a, R&& r, F f,
                             SourceLocation where = SourceLocation::current()) {
  detail::assign_each(r, where, f, a);
}
template <Registers A, Registers B, Registers R, detail::Function F>
TEGULA_DEVICE void transform(A const& a, B const& b, R&& r, F f,
                             SourceLocation where = SourceLocation::current()) {
  detail::assign_each(r, where, f, a, b);
}

namespace detail {

/// The right operand of an operator, which takes no further argument: the conversion to it is where
/// the source line comes from. A number, in what R's arithmetic is done in; registers like R's.
template <class R> struct NumberAt {
  Wide<typename R::Element> value;
  [[no_unique_address]] SourceLocation where;
  template <class X>
  requires(!Registers<X>) TEGULA_DEVICE
      NumberAt(X const& x, SourceLocation where = SourceLocation::current())
      : value(as_number<Wide<typename R::Element>>(x)), where(where) {}
};
template <class R> struct RegistersAt {
  R const& value;
  [[no_unique_address]] SourceLocation where;
  TEGULA_DEVICE RegistersAt(R const& r, SourceLocation where = SourceLocation::current())
      : value(r), where(where) {}
};
template <class R> using NumberFor = std::type_identity_t<NumberAt<std::remove_cvref_t<R>>>;
template <class R> using RegistersFor = std::type_identity_t<RegistersAt<std::remove_cvref_t<R>>>;

template <class R, class F> TEGULA_DEVICE void update(R& r, NumberAt<R> const& x, F f) {
  using W = Wide<typename R::Element>;
  transform(
      r, [&](W a) { return static_cast<W>(f(a, x.value)); }, x.where);
}
template <class R, class F> TEGULA_DEVICE void update(R& r, RegistersAt<R> const& s, F f) {
  using W = Wide<typename R::Element>;
  transform(
      r, s.value, r, [&](W a, W b) { return static_cast<W>(f(a, b)); }, s.where);
}

struct Times {
  template <class T> TEGULA_DEVICE T operator()(T a, T b) const { return static_cast<T>(a * b); }
};
struct Less {
  template <class T> TEGULA_DEVICE T operator()(T a, T b) const { return static_cast<T>(a - b); }
};

}  // namespace detail

/// r(i) += x, -= x and *= x for each value, of a number x, or of registers like r. Of a narrow
/// format each result is computed as a float and rounded. (Of registers of another type:
/// transform.)
template <Registers R> TEGULA_DEVICE void operator+=(R&& r, detail::NumberFor<R> x) {
  detail::update(r, x, Plus{});
}
template <Registers R> TEGULA_DEVICE void operator+=(R&& r, detail::RegistersFor<R> s) {
  detail::update(r, s, Plus{});
}
template <Registers R> TEGULA_DEVICE void operator-=(R&& r, detail::NumberFor<R> x) {
  detail::update(r, x, detail::Less{});
}
template <Registers R> TEGULA_DEVICE void operator-=(R&& r, detail::RegistersFor<R> s) {
  detail::update(r, s, detail::Less{});
}
template <Registers R> TEGULA_DEVICE void operator*=(R&& r, detail::NumberFor<R> x) {
  detail::update(r, x, detail::Times{});
}
template <Registers R> TEGULA_DEVICE void operator*=(R&& r, detail::RegistersFor<R> s) {
  detail::update(r, s, detail::Times{});
}

/// The values as numbers of type T: any from any. To floating-point formats they are rounded as
/// from_float does (to nearest even; fp8 saturates; tf32 is cut), to the narrow ones by way of f32;
/// to integers they are cut toward zero, what is too large becomes the largest, and NaN 0.
template <class T, Registers F>
TEGULA_DEVICE auto convert(F const& f, SourceLocation where = SourceLocation::current()) {
  Fragment<T, typename F::Map> result;
  constexpr int size = F::size;
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
#pragma unroll
    for (int i = 0; i < size; i += 2) {
      float const low = detail::as_number<float>(f.value(i, where));
      float const high = i + 1 < size ? detail::as_number<float>(f.value(i + 1, where)) : 0.0f;
      result.data[i / 2] = pack_pair<T>(low, high);
    }
  } else {
#pragma unroll
    for (int i = 0; i < size; ++i) result.set(i, detail::as_number<T>(f.value(i, where)), where);
  }
  return result;
}

/// The same bits as values of another type of the same size. (Of memory: tensor/recast.hpp.)
template <class T, Registers F>
TEGULA_DEVICE auto recast(F const& f, SourceLocation where = SourceLocation::current()) {
  static_assert(sizeof(T) == sizeof(typename F::Element),
                "recast: registers are recast to elements of the same size");
  Fragment<T, typename F::Map> result;
#pragma unroll
  for (int i = 0; i < F::size; ++i) result.set(i, bits_as<T>(f.value(i, where)), where);
  return result;
}

}  // namespace tegula
