#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/source_location.hpp"
#include "tegula/tensor/index.hpp"
#include "tegula/tensor/map.hpp"
#include "tegula/tensor/pack.hpp"
#include "tegula/tensor/register_checks.hpp"
#include "tegula/tensor/tensor.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Fragments: a thread's registers of a tensor, which know where their values lie in it.
namespace tegula {

namespace detail {
template <class F, class... I> TEGULA_DEVICE auto slice_fragment(F& fragment, I... i);
/// Values of a fragment that share a register.
template <class T>
inline constexpr int values_per_register = sizeof(T) > 4 ? 1 : 4 / static_cast<int>(sizeof(T));
}  // namespace detail
template <class F, class Numbers, class M> struct FragmentSlice;

#if !TEGULA_GPU
namespace detail {
/// Lies where its fragment's registers begin, `Bytes` bytes, and has none of its own: tells the
/// machine what happens to the fragment as a whole, while operations in flight hold registers.
template <int Bytes> struct WholeFragment {
  constexpr WholeFragment() = default;
  constexpr WholeFragment(WholeFragment const& from) { tell(&from, sim::FragmentUse::copied); }
  constexpr WholeFragment& operator=(WholeFragment const& from) {
    tell(&from, sim::FragmentUse::copied);
    tell(this, sim::FragmentUse::assigned);
    return *this;
  }
  constexpr ~WholeFragment() { tell(this, sim::FragmentUse::destroyed); }

 private:
  static constexpr void tell(WholeFragment const* which, sim::FragmentUse use) {
    if (std::is_constant_evaluated()) return;
    if (sim::registers_held.load(std::memory_order_relaxed) != 0) [[unlikely]]
      sim::use_fragment(which, Bytes, use);
  }
};
}  // namespace detail
#endif

/// A value of less than a register: reading it takes it out of its register, assigning to it puts
/// it there. `auto x = r(i)` refers to the register; `auto x = r(i).value()` is the value as it is
/// now.
template <class F> struct RegisterReference {
  using Element = typename F::Element;
  F& fragment;
  int number;
  [[no_unique_address]] SourceLocation where;

  TEGULA_DEVICE Element value() const { return fragment.value(number, where); }
  TEGULA_DEVICE operator Element() const { return value(); }
  /// A number is made of an element of a narrow format by its conversion, or by an explicit cast.
  TEGULA_DEVICE explicit operator float() const requires(!std::is_arithmetic_v<Element>) {
    return to_float(value());
  }
  template <class U>
  requires(std::is_arithmetic_v<U> && !std::is_arithmetic_v<Element>) TEGULA_DEVICE operator U()
      const {
    static_assert(detail::no_number_by_itself<U>,
                  "an element of a narrow format is no number by itself: to_float(r(i))");
    return {};
  }
  TEGULA_DEVICE RegisterReference const& operator=(Element const& value) const {
    fragment.set(number, value, where);
    return *this;
  }
  TEGULA_DEVICE RegisterReference const& operator=(RegisterReference const& other) const {
    return *this = other.value();
  }
};

/// An element that is named in its register, as a float.
template <class F> TEGULA_DEVICE float to_float(RegisterReference<F> const& x) {
  return to_float(x.value());
}

/// A thread's registers of a tensor. The map leads from value to coordinate, counted from the
/// thread's first value on: (values of an instruction, instructions along one axis, along the
/// other). Values of less than 32 bits lie side by side in a register, the first lowest; one of 64
/// bits is a register here.
///
/// Registers hold nothing until they are written, also those of `Fragment{}`. On the simulated
/// machine it is a finding to read one that nobody has written, or to index one that there is not.
/// So is an access to a value that an instruction in flight holds (the accumulators and the A
/// registers of a wgmma, until it is waited for), and the end of a fragment that one holds
/// registers of.
template <class T, class M> struct Fragment {
  using Map = M;
  using Element = T;
  static constexpr bool whole_registers =
      std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, double>;
  using Register = std::conditional_t<whole_registers, T, std::uint32_t>;
  static constexpr int size = map_size<M>;
  static constexpr int per_register = detail::values_per_register<T>;
  static constexpr int registers = (size + per_register - 1) / per_register;
  template <int I> static constexpr int extent = mode_size<mode_at<I, M>>;
  /// What names a value: a register, or a reference into one; and one that is only read.
  using Reference = std::conditional_t<whole_registers, T&, RegisterReference<Fragment>>;
  using ConstReference = std::conditional_t<whole_registers, T const&, T>;

  Register data[registers];
#if TEGULA_GPU
  TEGULA_DEVICE Fragment() {}
#else
  [[no_unique_address]] detail::WholeFragment<static_cast<int>(sizeof(Register))* registers> whole =
      {};

  constexpr Fragment() {
    if (std::is_constant_evaluated()) return;
    for (Register& each : data) detail::set_unwritten<T>(each);
  }
#endif

  /// Value i of all, or by one index for each mode. (CuTe: operator().)
  template <TensorIndex I>
  TEGULA_DEVICE Reference operator()(I i, SourceLocation where = SourceLocation::current()) {
    return refer(detail::number_of_value<M>(M{}, where, i), where);
  }
  template <TensorIndex I>
  TEGULA_DEVICE ConstReference operator()(I i,
                                          SourceLocation where = SourceLocation::current()) const {
    return refer(detail::number_of_value<M>(M{}, where, i), where);
  }
  template <TensorIndex I, TensorIndex J>
  TEGULA_DEVICE decltype(auto) operator()(I i, J j,
                                          SourceLocation where = SourceLocation::current()) {
    return get(*this, where, i, j);
  }
  template <TensorIndex I, TensorIndex J>
  TEGULA_DEVICE decltype(auto) operator()(I i, J j,
                                          SourceLocation where = SourceLocation::current()) const {
    return get(*this, where, i, j);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K>
  TEGULA_DEVICE decltype(auto) operator()(I i, J j, K k,
                                          SourceLocation where = SourceLocation::current()) {
    return get(*this, where, i, j, k);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K>
  TEGULA_DEVICE decltype(auto) operator()(I i, J j, K k,
                                          SourceLocation where = SourceLocation::current()) const {
    return get(*this, where, i, j, k);
  }

  /// Value i, read.
  TEGULA_DEVICE T value(int i, SourceLocation where = SourceLocation::current()) const {
    if constexpr (whole_registers) {
      return read_word(i, where);
    } else {
      return unpack<T>(read_word(i, where), i % per_register);
    }
  }
  /// Assigns to value i.
  TEGULA_DEVICE void set(int i, T const& value, SourceLocation where = SourceLocation::current()) {
    Register& place = word(i, where);
    if constexpr (whole_registers) {
      place = value;
    } else {
      place = replace(place, i % per_register, value);
    }
  }

  /// The register that holds value i and those beside it; i is the first of them.
  TEGULA_DEVICE Register& word(int i, SourceLocation where = SourceLocation::current()) {
#if !TEGULA_GPU
    if (static_cast<unsigned>(i) >= static_cast<unsigned>(size)) [[unlikely]]
      return detail::no_register<Register>(i, size, where);
#endif
    touched(i / per_register, where);
    return data[i / per_register];
  }
  /// The same, read.
  TEGULA_DEVICE Register const& read_word(int i,
                                          SourceLocation where = SourceLocation::current()) const {
#if !TEGULA_GPU
    if (static_cast<unsigned>(i) >= static_cast<unsigned>(size)) [[unlikely]]
      return detail::no_register<Register>(i, size, where);
    touched(i / per_register, where);
    if (detail::is_unwritten<T>(data[i / per_register])) [[unlikely]]
      detail::report_unwritten<M>(i, where);
#endif
    return data[i / per_register];
  }
  TEGULA_DEVICE Register const& word(int i,
                                     SourceLocation where = SourceLocation::current()) const {
    return read_word(i, where);
  }

  /// N registers from `first` on, as an instruction names them: one that writes them, and one that
  /// reads them.
  template <int N> TEGULA_DEVICE auto take(int first) -> Register (&)[N] {
    return reinterpret_cast<Register(&)[N]>(data[first]);
  }
  template <int N>
  TEGULA_DEVICE auto take(int first, SourceLocation where = SourceLocation::current()) const
      -> Register const (&)[N] {
    check_written(first, N, where);
    return reinterpret_cast<Register const(&)[N]>(data[first]);
  }
  /// An instruction reads `count` registers from `first` on. Such as nobody has written, nor
  /// computed from written ones, are a finding on the simulated machine.
  TEGULA_DEVICE void check_written([[maybe_unused]] int first, [[maybe_unused]] int count,
                                   [[maybe_unused]] SourceLocation where) const {
#if !TEGULA_GPU
    for (int r = first; r < first + count; ++r) {
      if (detail::is_unwritten<T>(data[r])) [[unlikely]]
        return detail::report_unwritten<M>(r * per_register, where);
    }
#endif
  }

  /// The number of a value given by its index in each mode.
  template <class... I> TEGULA_DEVICE static constexpr int flat(I... i) {
    return detail::number_of_value<M>(M{}, SourceLocation{}, i...);
  }

 private:
  TEGULA_DEVICE Reference refer(int i, SourceLocation where) {
    if constexpr (whole_registers) {
      return word(i, where);
    } else {
      return {*this, i, where};
    }
  }
  TEGULA_DEVICE ConstReference refer(int i, SourceLocation where) const {
    if constexpr (whole_registers) {
      return word(i, where);
    } else {
      return value(i, where);
    }
  }
  /// A value, or a slice, f(_, m, _): modes given as `_` stay, and the fragment's registers are
  /// its own.
  template <class F, class... I>
  TEGULA_DEVICE static decltype(auto) get(F& fragment, SourceLocation where, I... i) {
    if constexpr ((false || ... || std::is_same_v<I, Underscore>)) {
      return detail::slice_fragment(fragment, i...);
    } else {
      return fragment.refer(detail::number_of_value<M>(M{}, where, i...), where);
    }
  }
  TEGULA_DEVICE void touched([[maybe_unused]] int reg,
                             [[maybe_unused]] SourceLocation where) const {
#if !TEGULA_GPU
    if (sim::registers_held.load(std::memory_order_relaxed) != 0) [[unlikely]]
      sim::touch_register(&data[reg], where);
#endif
  }
};

/// Some modes of a fragment: its registers, not a copy. Numbers leads from the slice's values to
/// the fragment's, counted from `first`.
template <class F, class Numbers, class M> struct FragmentSlice {
  using Map = M;
  using Element = typename F::Element;
  using Register = typename F::Register;
  static constexpr bool whole_registers = F::whole_registers;
  static constexpr int per_register = F::per_register;
  static constexpr int size = map_size<M>;
  template <int I> static constexpr int extent = mode_size<mode_at<I, M>>;

  F& fragment;
  int first;

  template <TensorIndex I>
  TEGULA_DEVICE decltype(auto) operator()(I i,
                                          SourceLocation where = SourceLocation::current()) const {
    return at(where, i);
  }
  template <TensorIndex I, TensorIndex J>
  TEGULA_DEVICE decltype(auto) operator()(I i, J j,
                                          SourceLocation where = SourceLocation::current()) const {
    return at(where, i, j);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K>
  TEGULA_DEVICE decltype(auto) operator()(I i, J j, K k,
                                          SourceLocation where = SourceLocation::current()) const {
    return at(where, i, j, k);
  }
  TEGULA_DEVICE Element value(int i, SourceLocation where = SourceLocation::current()) const {
    return fragment.value(number(i, where), where);
  }
  TEGULA_DEVICE void set(int i, Element const& value,
                         SourceLocation where = SourceLocation::current()) const {
    fragment.set(number(i, where), value, where);
  }
  TEGULA_DEVICE decltype(auto) word(int i, SourceLocation where = SourceLocation::current()) const {
    return fragment.word(number(i, where), where);
  }
  TEGULA_DEVICE Register const& read_word(int i,
                                          SourceLocation where = SourceLocation::current()) const {
    return fragment.read_word(number(i, where), where);
  }

 private:
  template <class... I> TEGULA_DEVICE decltype(auto) at(SourceLocation where, I... i) const {
    return fragment(number(detail::number_of_value<M>(M{}, where, i...), where), where);
  }
  TEGULA_DEVICE int number(int i, [[maybe_unused]] SourceLocation where) const {
#if !TEGULA_GPU
    if (static_cast<unsigned>(i) >= static_cast<unsigned>(size)) [[unlikely]] {
      if (i != detail::kReported) sim::beyond_fragment(i, size, -1, where);
      return detail::kReported;
    }
#endif
    return first + coordinate<0>(Numbers{}, i);
  }
};

namespace detail {

/// The numbers of a fragment's values, mode by mode.
template <class M> struct ValueNumbers;
template <class... Modes> struct ValueNumbers<Map<Modes...>> {
  struct Source {
    static constexpr Layout make() {
      Layout result;
      std::int64_t below = 1;
      ((append_mode(result, along(0, mode_size<Modes>, below)), below *= mode_size<Modes>), ...);
      wrap(result);
      return result;
    }
    static constexpr Layout value = make();
  };
  using Type = MapOf<Source>;
};

template <class... Modes, class... I>
TEGULA_DEVICE constexpr int first_number(Map<Modes...>, I... i) {
  int number = 0;
  auto const one = [&]<class M, class J>(M, J j) {
    if constexpr (!std::is_same_v<J, Underscore>) number += coordinate<0>(M{}, static_cast<int>(j));
  };
  (one(Modes{}, i), ...);
  return number;
}

template <class F, class... I> TEGULA_DEVICE auto slice_fragment(F& fragment, I... i) {
  using M = typename F::Map;
  static_assert(sizeof...(I) == M::rank,
                "a slice takes one index, or _, for each mode of the fragment");
  using Numbers = typename ValueNumbers<M>::Type;
  return FragmentSlice<F, typename Sliced<Numbers, I...>::Type, typename Sliced<M, I...>::Type>{
      fragment, first_number(Numbers{}, i...)};
}

template <class F> inline constexpr bool is_registers = false;
template <class T, class M> inline constexpr bool is_registers<Fragment<T, M>> = true;
template <class F, class N, class M>
inline constexpr bool is_registers<FragmentSlice<F, N, M>> = true;
template <class F> inline constexpr bool is_slice = false;
template <class F, class N, class M> inline constexpr bool is_slice<FragmentSlice<F, N, M>> = true;

}  // namespace detail

/// A fragment, or a slice of one.
template <class F>
concept Registers = detail::is_registers<std::remove_cvref_t<F>>;

namespace detail {

/// Registers as a slice: all modes of a fragment, or the slice itself.
template <class T, class M> TEGULA_DEVICE auto as_slice(Fragment<T, M>& f) {
  return FragmentSlice<Fragment<T, M>, typename ValueNumbers<M>::Type, M>{f, 0};
}
template <class T, class M> TEGULA_DEVICE auto as_slice(Fragment<T, M> const& f) {
  return FragmentSlice<Fragment<T, M> const, typename ValueNumbers<M>::Type, M>{f, 0};
}
template <class F, class N, class M> TEGULA_DEVICE auto as_slice(FragmentSlice<F, N, M> const& f) {
  return f;
}
template <class F, class N, class M, class... I>
TEGULA_DEVICE constexpr int number_at(FragmentSlice<F, N, M> const&, I... index) {
  return coordinate<0>(N{}, static_cast<int>(index)...);
}
template <int... Extents, class F, class N, class M>
TEGULA_DEVICE auto part_of_slice(FragmentSlice<F, N, M> const& f) {
  static_assert(sizeof...(Extents) == M::rank, "part: one extent for each mode of the fragment");
  using Within = identity_map<Extents...>;
  static_assert(map_size<Within> <= map_size<M>, "part: the extents exceed the fragment's");
  return FragmentSlice<F, compose_t<N, Within>, compose_t<M, Within>>{f.fragment, f.first};
}

}  // namespace detail

/// The registers from value (i, j, ...) on, one index for each mode; and the first Extents... of
/// each mode: slices, as domain_offset and part of a tensor are views.
template <Registers F, class... I>
requires(sizeof...(I) == std::remove_cvref_t<F>::Map::rank) TEGULA_DEVICE
    auto domain_offset(F&& registers, I... index) {
  auto result = detail::as_slice(registers);
  result.first += detail::number_at(result, index...);
  return result;
}
template <int... Extents, Registers F> TEGULA_DEVICE auto part(F&& registers) {
  return detail::part_of_slice<Extents...>(detail::as_slice(registers));
}

/// Registers for a thread's part of a tensor, not yet written. (CuTe:
/// make_fragment_like, make_tensor_like.)
template <class Space, class M> TEGULA_DEVICE auto make_fragment_like(Tensor<Space, M> const&) {
  Fragment<std::remove_const_t<typename Space::Element>, M> result;
  return result;
}

/// All values zero.
template <class T, class M>
TEGULA_DEVICE void clear(Fragment<T, M>& f, SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int r = 0; r < f.registers; ++r) f.word(r * f.per_register, where) = 0;
}

namespace detail {
template <class F, class Value, class M, int... Axis, int Rank>
TEGULA_DEVICE void call_at(F& f, Value&& value, M, Coordinate<Rank> const& origin, int i,
                           NumberList<Axis...>) {
  f(value, Index{origin.at[Axis], coordinate<Axis>(M{}, i)}...);
}
/// Calls f with value i as a reference: of a value of less than a register, to a copy, which is
/// then put back.
template <class R, class F>
TEGULA_DEVICE void with_value(R& registers, int i, SourceLocation where, F&& f) {
  using T = typename std::remove_cvref_t<R>::Element;
  if constexpr (R::whole_registers) {
    f(registers(i, where));
  } else {
    auto& word = registers.word(i, where);
    constexpr int packed = R::per_register;
    T value = unpack<T>(word, i % packed);
    f(value);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(word)>>)
      word = replace(word, i % packed, value);
  }
}
}  // namespace detail

/// Calls f(value, i, j, ...) for each value, where (i, j, ...) is its coordinate as an Index for
/// each axis: `origin` is that of the thread's first value. f may take the value by reference
/// (`float&`, `half&`) and write it.
template <Registers R, int Rank, class F>
TEGULA_DEVICE void for_each(R&& registers, Coordinate<Rank> const& origin, F f,
                            SourceLocation where = SourceLocation::current()) {
  using Own = std::remove_cvref_t<R>;
#pragma unroll
  for (int i = 0; i < Own::size; ++i) {
    detail::with_value(registers, i, where, [&](auto& value) {
      detail::call_at(f, value, typename Own::Map{}, origin, i,
                      typename detail::CountTo<Rank>::Type{});
    });
  }
}
/// Calls f(value) for each value.
template <Registers R, class F>
TEGULA_DEVICE void for_each(R&& registers, F f, SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int i = 0; i < std::remove_cvref_t<R>::size; ++i)
    detail::with_value(registers, i, where, [&](auto& value) { f(value); });
}

namespace detail {

/// Which of a fragment's values lie along one axis from the first: their numbers, as a layout.
constexpr Layout values_along(Layout const& map, int axis) {
  Layout result;
  std::int64_t stride = 1;
  for (int i = 0; i < map.count; ++i) {
    if (map.axes[i] == axis + 1) result.append_leaf(map.extents[i], {stride});
    stride *= map.extents[i];
  }
  if (result.count == 0) result.append_leaf(1, {0});
  wrap(result);
  return make_layout(result);
}
/// How far on along the axis each of them lies.
constexpr Layout steps_along(Layout const& map, int axis) {
  Layout result;
  for (int i = 0; i < map.count; ++i) {
    if (map.axes[i] == axis + 1) result.append_leaf(map.extents[i], map.stride(i));
  }
  if (result.count == 0) result.append_leaf(1, {0});
  wrap(result);
  return make_layout(result);
}
template <class M, int Axis> struct ValuesAlong {
  struct Numbers {
    static constexpr Layout value = values_along(M::layout, Axis);
  };
  struct Steps {
    static constexpr Layout value = steps_along(M::layout, Axis);
  };
  using Type = mode_at<0, MapOf<Numbers>>;
  using StepMode = mode_at<0, MapOf<Steps>>;
};

}  // namespace detail

/// How many values a thread has along an axis.
template <class M, int Axis>
inline constexpr int count_along = mode_size<typename detail::ValuesAlong<M, Axis>::Type>;
/// How far from the thread's first row (or column, ...) its number i along an axis is.
template <int Axis, class M> TEGULA_DEVICE constexpr int step_along(M, int i) {
  return coordinate<Axis>(typename detail::ValuesAlong<M, Axis>::StepMode{}, i);
}

namespace detail {
/// The number of the value in row `row` and column `column` of those that the thread has.
template <class M> TEGULA_DEVICE constexpr int number_along(int row, int column) {
  return coordinate<0>(typename ValuesAlong<M, 0>::Type{}, row) +
         coordinate<0>(typename ValuesAlong<M, 1>::Type{}, column);
}
}  // namespace detail

/// The value in row `row` and column `column` of those that the thread has, numbered from 0.
/// (FlashAttention: convert_layout_acc_rowcol.)
template <Registers F>
TEGULA_DEVICE decltype(auto) row_column(F&& f, int row, int column,
                                        SourceLocation where = SourceLocation::current()) {
  using M = typename std::remove_cvref_t<F>::Map;
  return f(detail::number_along<M>(row, column), where);
}

/// For who reads registers that nobody wrote and drops what comes of it: on the simulated machine
/// those become zeros, and are none of its findings. On a GPU it does nothing. (For bytes of shared
/// memory: unpoison_shared.)
template <class T, class M> TEGULA_DEVICE void unpoison([[maybe_unused]] Fragment<T, M>& f) {
#if !TEGULA_GPU
  for (auto& place : f.data) {
    if (detail::is_unwritten<T>(place)) place = {};
  }
#endif
}

namespace detail {
/// Whether f(args...) is well-formed. (NVRTC's library has no std::is_invocable_v.)
template <class F, class... Args> inline constexpr bool takes = requires(F& f, Args... args) {
  f(static_cast<Args>(args)...);
};
/// Whether what it gives is taken for an R.
template <class R, class F, class... Args>
inline constexpr bool gives = requires(F& f, Args... args) {
  static_cast<R>(f(static_cast<Args>(args)...));
};
/// What a function of elements of T is given: floats in the place of a narrow format's, where it
/// takes floats.
template <class T, class F, class... Args>
using Operand = std::conditional_t<!std::is_arithmetic_v<T> && takes<F, Args...>, float, T>;
template <class To, class T> TEGULA_DEVICE To operand(T const& value) {
  if constexpr (std::is_same_v<To, T>) {
    return value;
  } else {
    return widened(value);
  }
}
}  // namespace detail

/// One value for each row (Axis 1: the columns are reduced away) or column (Axis 0) that the thread
/// has: combine(...combine(combine(first, second), third)...). The thread's own values alone. Of
/// values of 16 or 8 bits `combine` may take floats, and then the result's are floats.
template <int Axis, Registers F, class Combine>
TEGULA_DEVICE auto reduce(F const& f, Combine combine,
                          SourceLocation where = SourceLocation::current()) {
  static_assert(Axis == 0 || Axis == 1,
                "reduce: a fragment has rows (axis 0) and columns (axis 1)");
  using M = typename F::Map;
  using T = detail::Operand<typename F::Element, Combine, float, float>;
  static_assert(detail::gives<T, Combine, T, T>,
                "reduce: combine(a, b) takes two values of the fragment (or, of a narrow format, "
                "two floats) and returns one");
  Fragment<T, Map<typename detail::ValuesAlong<M, 1 - Axis>::StepMode>> result;
  auto const at = [&](int kept, int reduced) {
    return detail::operand<T>(f.value(
        detail::number_along<M>(Axis == 1 ? kept : reduced, Axis == 1 ? reduced : kept), where));
  };
#pragma unroll
  for (int i = 0; i < count_along<M, 1 - Axis>; ++i) {
    T sum = at(i, 0);
#pragma unroll
    for (int j = 1; j < count_along<M, Axis>; ++j) sum = combine(sum, at(i, j));
    result.set(i, sum, where);
  }
  return result;
}

/// Registers of another fragment, in another order (Order: which of its values is value i) and
/// rounded to T (half, bfloat16, or saturating float_e4m3), to nearest even, when an instruction
/// asks for them. A fragment is referred to, a slice is kept.
template <class T, class From, class Order> struct Rounded {
  static constexpr int size = mode_size<Order>;
  std::conditional_t<detail::is_slice<From>, From, From const&> from;

  TEGULA_DEVICE std::uint32_t reg(int i, SourceLocation where) const {
    if constexpr (std::is_same_v<T, float_e4m3>) {
      return cvt_rn_satfinite_e4m3x4(value(4 * i, where), value(4 * i + 1, where),
                                     value(4 * i + 2, where), value(4 * i + 3, where));
    } else {
      return pack_pair<T>(value(2 * i, where), value(2 * i + 1, where));
    }
  }

 private:
  TEGULA_DEVICE float value(int i, SourceLocation where) const {
    return from.value(coordinate<0>(Order{}, i), where);
  }
};
/// The values rounded to T (half, bfloat16) when an instruction asks for them.
template <class T, Registers F> TEGULA_DEVICE auto rounded(F const& f) {
  return Rounded<T, F, Mode<Along<0, F::size, 1>>>{f};
}

}  // namespace tegula
