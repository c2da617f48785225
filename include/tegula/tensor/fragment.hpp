#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/source_location.hpp"
#include "tegula/tensor/index.hpp"
#include "tegula/tensor/map.hpp"
#include "tegula/tensor/pack.hpp"
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

/// A thread's registers of a tensor. The map leads from value to coordinate, counted from the
/// thread's first value on: (values of an instruction, instructions along one axis, along the
/// other). Values of less than 32 bits lie side by side in a register, the first lowest; one of 64
/// bits is a register here.
///
/// On the simulated machine an access to a value that an instruction in flight holds (the
/// accumulators and the A registers of a wgmma, until it is waited for) is a finding, and so is the
/// end of a fragment that one holds registers of.
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

  Register data[registers];
#if !TEGULA_GPU
  [[no_unique_address]] detail::WholeFragment<static_cast<int>(sizeof(Register))* registers> whole =
      {};
#endif

  /// Value i of all, or by one index for each mode. (CuTe: operator().)
  TEGULA_DEVICE T& operator()(int i, SourceLocation where = SourceLocation::current()) requires(
      whole_registers) {
    touched(i, where);
    return data[i];
  }
  TEGULA_DEVICE T const& operator()(int i, SourceLocation where = SourceLocation::current()) const
      requires(whole_registers) {
    touched(i, where);
    return data[i];
  }
  TEGULA_DEVICE T operator()(int i, SourceLocation where = SourceLocation::current()) const
      requires(!whole_registers) {
    touched(i / per_register, where);
    return unpack<T>(data[i / per_register], i % per_register);
  }
  TEGULA_DEVICE decltype(auto) operator()(int i, int j,
                                          SourceLocation where = SourceLocation::current()) {
    return (*this)(flat(i, j), where);
  }
  TEGULA_DEVICE decltype(auto) operator()(int i, int j,
                                          SourceLocation where = SourceLocation::current()) const {
    return (*this)(flat(i, j), where);
  }
  TEGULA_DEVICE decltype(auto) operator()(int i, int j, int k,
                                          SourceLocation where = SourceLocation::current()) {
    return (*this)(flat(i, j, k), where);
  }
  TEGULA_DEVICE decltype(auto) operator()(int i, int j, int k,
                                          SourceLocation where = SourceLocation::current()) const {
    return (*this)(flat(i, j, k), where);
  }
  /// A slice, f(_, m, _): modes given as `_` stay, and the fragment's registers are its own.
  template <TensorIndex I, TensorIndex J>
  requires(std::is_same_v<I, Underscore> || std::is_same_v<J, Underscore>) TEGULA_DEVICE auto
  operator()(I i, J j) {
    return detail::slice_fragment(*this, i, j);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K>
  requires(std::is_same_v<I, Underscore> || std::is_same_v<J, Underscore> ||
           std::is_same_v<K, Underscore>) TEGULA_DEVICE auto
  operator()(I i, J j, K k) {
    return detail::slice_fragment(*this, i, j, k);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K>
  requires(std::is_same_v<I, Underscore> || std::is_same_v<J, Underscore> ||
           std::is_same_v<K, Underscore>) TEGULA_DEVICE auto
  operator()(I i, J j, K k) const {
    return detail::slice_fragment(*this, i, j, k);
  }

  /// The register that holds value i and those beside it; i is the first of them.
  TEGULA_DEVICE Register& word(int i, SourceLocation where = SourceLocation::current()) {
    touched(i / per_register, where);
    return data[i / per_register];
  }
  TEGULA_DEVICE Register const& word(int i,
                                     SourceLocation where = SourceLocation::current()) const {
    touched(i / per_register, where);
    return data[i / per_register];
  }
  /// Assigns to a value of less than 32 bits.
  TEGULA_DEVICE void set(
      int i, T const& value,
      SourceLocation where = SourceLocation::current()) requires(!whole_registers) {
    touched(i / per_register, where);
    data[i / per_register] = replace(data[i / per_register], i % per_register, value);
  }

  /// N registers from `first` on, as an instruction names them.
  template <int N> TEGULA_DEVICE auto take(int first) -> Register (&)[N] {
    return reinterpret_cast<Register(&)[N]>(data[first]);
  }
  template <int N> TEGULA_DEVICE auto take(int first) const -> Register const (&)[N] {
    return reinterpret_cast<Register const(&)[N]>(data[first]);
  }

  /// The flat number of a value given by its index in each mode.
  template <class... I> TEGULA_DEVICE static constexpr int flat(I... i) {
    static_assert(sizeof...(I) == M::rank,
                  "a value takes one index, or one for each mode of the fragment");
    int const index[] = {i...};
    int result = 0, below = 1;
    [&]<int... Mode>(detail::NumberList<Mode...>) {
      ((result += index[Mode] * below, below *= extent<Mode>), ...);
    }
    (typename detail::CountTo<M::rank>::Type{});
    return result;
  }

 private:
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
  static constexpr int size = map_size<M>;
  template <int I> static constexpr int extent = mode_size<mode_at<I, M>>;

  F& fragment;
  int first;

  template <class... I>
  requires(sizeof...(I) == M::rank || sizeof...(I) == 1) TEGULA_DEVICE decltype(auto) operator()(
      I... i) const {
    return fragment(first + coordinate<0>(Numbers{}, i...));
  }
  TEGULA_DEVICE decltype(auto) operator()(int i, SourceLocation where) const {
    return fragment(first + coordinate<0>(Numbers{}, i), where);
  }
  TEGULA_DEVICE decltype(auto) word(int i, SourceLocation where = SourceLocation::current()) const {
    return fragment.word(first + coordinate<0>(Numbers{}, i), where);
  }
  TEGULA_DEVICE void set(int i, Element const& value,
                         SourceLocation where = SourceLocation::current()) const {
    fragment.set(first + coordinate<0>(Numbers{}, i), value, where);
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
  return Fragment<std::remove_const_t<typename Space::Element>, M>{};
}

/// All values zero.
template <class T, class M>
TEGULA_DEVICE void clear(Fragment<T, M>& f, SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int i = 0; i < f.registers; ++i) {
    if constexpr (Fragment<T, M>::whole_registers) {
      f(i, where) = 0;
    } else {
      f.data[i] = 0;
    }
  }
}

namespace detail {
template <class F, class Value, class M, int... Axis, int Rank>
TEGULA_DEVICE void call_at(F& f, Value& value, M, Coordinate<Rank> const& origin, int i,
                           NumberList<Axis...>) {
  f(value, Index{origin.at[Axis], coordinate<Axis>(M{}, i)}...);
}
}  // namespace detail

/// Calls f(value, i, j, ...) for each value, where (i, j, ...) is its coordinate as an Index for
/// each axis: `origin` is that of the thread's first value.
template <class T, class M, int Rank, class F>
TEGULA_DEVICE void for_each(Fragment<T, M>& fragment, Coordinate<Rank> const& origin, F f,
                            SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int i = 0; i < fragment.size; ++i) {
    detail::call_at(f, fragment(i, where), M{}, origin, i, typename detail::CountTo<Rank>::Type{});
  }
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

/// The value in row `row` and column `column` of those that the thread has, numbered from 0.
/// (FlashAttention: convert_layout_acc_rowcol.)
template <Registers F>
TEGULA_DEVICE decltype(auto) row_column(F&& f, int row, int column,
                                        SourceLocation where = SourceLocation::current()) {
  using M = typename std::remove_cvref_t<F>::Map;
  return f(coordinate<0>(typename detail::ValuesAlong<M, 0>::Type{}, row) +
               coordinate<0>(typename detail::ValuesAlong<M, 1>::Type{}, column),
           where);
}

/// One value for each row (Axis 1: the columns are reduced away) or column (Axis 0) that the thread
/// has: combine(...combine(combine(first, second), third)...). The thread's own values alone.
template <int Axis, class T, class M, class Combine>
TEGULA_DEVICE auto reduce(Fragment<T, M> const& f, Combine combine,
                          SourceLocation where = SourceLocation::current()) {
  static_assert(Axis == 0 || Axis == 1,
                "reduce: a fragment has rows (axis 0) and columns (axis 1)");
  Fragment<T, Map<typename detail::ValuesAlong<M, 1 - Axis>::StepMode>> result;
#pragma unroll
  for (int i = 0; i < count_along<M, 1 - Axis>; ++i) {
    result.data[i] = Axis == 1 ? row_column(f, i, 0, where) : row_column(f, 0, i, where);
#pragma unroll
    for (int j = 1; j < count_along<M, Axis>; ++j) {
      result.data[i] = combine(result.data[i],
                               Axis == 1 ? row_column(f, i, j, where) : row_column(f, j, i, where));
    }
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
    return from(coordinate<0>(Order{}, i), where);
  }
};
/// The values rounded to T (half, bfloat16) when an instruction asks for them.
template <class T, Registers F> TEGULA_DEVICE auto rounded(F const& f) {
  return Rounded<T, F, Mode<Along<0, F::size, 1>>>{f};
}

/// The values rounded to T (half, bfloat16), to nearest even.
template <class T, class M>
TEGULA_DEVICE Fragment<T, M> convert(Fragment<float, M> const& f,
                                     SourceLocation where = SourceLocation::current()) {
  static_assert(map_size<M> % 2 == 0, "convert: values are rounded in pairs");
  Fragment<T, M> result;
#pragma unroll
  for (int i = 0; i < result.registers; ++i)
    result.data[i] = pack_pair<T>(f(2 * i, where), f(2 * i + 1, where));
  return result;
}

}  // namespace tegula
