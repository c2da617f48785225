#pragma once

#include <cstdint>

#include "tegula/layout/swizzle.hpp"

namespace tegula {

/// A linear map over F2 from input bits to output bits: column i is the image of input bit i, and
/// the image of a number is the exclusive-or of the columns of its set bits. A layout (or swizzled
/// layout) whose extents are powers of two and whose additions never carry is one of these, with
/// the bits of its flat index as inputs and the bits of the offset as outputs.
///
/// Source of the idea: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor
/// Computation Using F2", arXiv 2505.23819; Triton's LinearLayout.
struct LinearLayout {
  static constexpr int kMaxBits = 48;

  int inputs = 0;   ///< number of input bits
  int outputs = 0;  ///< number of output bits: every column lies below 2^outputs
  std::uint64_t columns[kMaxBits] = {};  ///< the images of the input bits; zero from `inputs` on

  /// The map at one point. Bits of `input` at and above `inputs` do not count.
  TEGULA_HOST_DEVICE constexpr std::uint64_t operator()(std::uint64_t input) const {
    std::uint64_t output = 0;
    for (int i = 0; i < inputs; ++i) output ^= (input >> i & 1) != 0 ? columns[i] : 0;
    return output;
  }

  friend constexpr bool operator==(LinearLayout const&, LinearLayout const&) = default;
};

/// A basis of a set of columns in echelon form, with the combination of columns that makes each
/// basis vector. The tool of rank, image, kernel and the inverses.
struct LinearBasis {
  int dimension = 0;
  std::uint64_t vectors[LinearLayout::kMaxBits] = {};  ///< leading bits are distinct
  std::uint64_t origins[LinearLayout::kMaxBits] = {};  ///< vectors[i] is the image of origins[i]
  int kernel_dimension = 0;
  std::uint64_t kernel[LinearLayout::kMaxBits] = {};  ///< independent inputs whose image is zero

  /// Whether `target` is in the image; if so `origin` becomes an input that maps to it.
  constexpr bool solve(std::uint64_t target, std::uint64_t& origin) const {
    origin = 0;
    reduce(target, origin);
    return target == 0;
  }

  /// Removes from `value` every leading bit of the basis, and records the inputs used.
  constexpr void reduce(std::uint64_t& value, std::uint64_t& origin) const {
    for (int i = 0; i < dimension; ++i) {
      if ((value ^ vectors[i]) < value) {
        value ^= vectors[i];
        origin ^= origins[i];
      }
    }
  }

  /// Adds the image `value` of the input `origin`, which enlarges either the basis or the kernel.
  /// Vectors stay in descending order, so that reduce() may take them one after the other.
  constexpr void add(std::uint64_t value, std::uint64_t origin) {
    reduce(value, origin);
    if (value == 0) {
      kernel[kernel_dimension++] = origin;
      return;
    }
    int at = dimension++;
    for (; at > 0 && vectors[at - 1] < value; --at) {
      vectors[at] = vectors[at - 1];
      origins[at] = origins[at - 1];
    }
    vectors[at] = value;
    origins[at] = origin;
  }
};

constexpr LinearBasis basis_of(LinearLayout const& map) {
  LinearBasis basis;
  for (int i = 0; i < map.inputs; ++i) basis.add(map.columns[i], std::uint64_t{1} << i);
  return basis;
}

/// The number of bits of a value: 0 for 0.
constexpr int bit_count_to_hold(std::uint64_t value) {
  int bits = 0;
  while (bits < 64 && (value >> bits) != 0) ++bits;
  return bits;
}

/// The linear map with these columns. `outputs` is the number of output bits; -1 asks for the
/// fewest that hold the columns.
template <int N>
constexpr LinearLayout linear_layout(std::uint64_t const (&columns)[N], int outputs = -1) {
  static_assert(N <= LinearLayout::kMaxBits);
  LinearLayout map;
  std::uint64_t all = 0;
  for (int i = 0; i < N; ++i) all |= map.columns[map.inputs++] = columns[i];
  map.outputs = outputs < 0 ? bit_count_to_hold(all) : outputs;
  if (map.outputs > LinearLayout::kMaxBits)
    refuse("linear_layout", "at most 48 output bits are held", map.outputs);
  if (bit_count_to_hold(all) > map.outputs)
    refuse("linear_layout", "a column has a bit above the output bits", map.outputs);
  return map;
}

/// x -> x on `bits` bits.
constexpr LinearLayout linear_identity(int bits) {
  if (bits < 0 || bits > LinearLayout::kMaxBits)
    refuse("linear_identity", "from 0 to 48 bits can be held", bits);
  LinearLayout map;
  map.inputs = map.outputs = bits;
  for (int i = 0; i < bits; ++i) map.columns[i] = std::uint64_t{1} << i;
  return map;
}

constexpr int rank(LinearLayout const& map) { return basis_of(map).dimension; }
constexpr bool injective(LinearLayout const& map) { return rank(map) == map.inputs; }
constexpr bool surjective(LinearLayout const& map) { return rank(map) == map.outputs; }

/// A basis of the image, as an injective map onto it: rank(map) inputs. Its columns have distinct
/// leading bits, greatest first.
constexpr LinearLayout image(LinearLayout const& map) {
  LinearBasis const basis = basis_of(map);
  LinearLayout result;
  result.inputs = basis.dimension;
  result.outputs = map.outputs;
  for (int i = 0; i < basis.dimension; ++i) result.columns[i] = basis.vectors[i];
  return result;
}

/// A basis of the inputs that map to zero, as an injective map onto them: map(kernel(map)(x)) == 0
/// for every x.
constexpr LinearLayout kernel(LinearLayout const& map) {
  LinearBasis const basis = basis_of(map);
  LinearLayout result;
  result.inputs = basis.kernel_dimension;
  result.outputs = map.inputs;
  for (int i = 0; i < basis.kernel_dimension; ++i) result.columns[i] = basis.kernel[i];
  return result;
}

/// outer after inner: composition(a, b)(x) == a(b(x)). Every output bit of the inner map must be an
/// input bit of the outer one.
constexpr LinearLayout composition(LinearLayout const& outer, LinearLayout const& inner) {
  if (inner.outputs > outer.inputs) {
    refuse("composition", "the inner linear map has more output bits than the outer has input bits",
           inner.outputs, outer.inputs);
  }
  LinearLayout result;
  result.inputs = inner.inputs;
  result.outputs = outer.outputs;
  for (int i = 0; i < inner.inputs; ++i) result.columns[i] = outer(inner.columns[i]);
  return result;
}

/// map(right_inverse(map)(y)) == y for every y of map.outputs bits; the map must be surjective.
constexpr LinearLayout right_inverse(LinearLayout const& map) {
  LinearBasis const basis = basis_of(map);
  if (basis.dimension < map.outputs) {
    refuse("right_inverse", "the linear map is not surjective: of rank less than its output bits",
           basis.dimension, map.outputs);
  }
  LinearLayout result;
  result.inputs = map.outputs;
  result.outputs = map.inputs;
  for (int i = 0; i < map.outputs; ++i) basis.solve(std::uint64_t{1} << i, result.columns[i]);
  return result;
}

/// left_inverse(map)(map(x)) == x for every x of map.inputs bits; the map must be injective.
/// Outside the image of the map the inverse is the one that sends every output bit which leads no
/// basis vector to zero.
constexpr LinearLayout left_inverse(LinearLayout const& map) {
  LinearBasis basis = basis_of(map);
  if (basis.dimension < map.inputs) {
    refuse("left_inverse", "the linear map is not injective: its rank is less than its input bits",
           basis.dimension, map.inputs);
  }
  // Completed with output bits of origin zero the basis spans all outputs, and solving for each
  // output bit gives its image.
  for (int i = 0; i < map.outputs && basis.dimension < map.outputs; ++i) {
    LinearBasis larger = basis;
    larger.add(std::uint64_t{1} << i, 0);
    if (larger.dimension > basis.dimension) basis = larger;
  }
  LinearLayout result;
  result.inputs = map.outputs;
  result.outputs = map.inputs;
  for (int i = 0; i < map.outputs; ++i) basis.solve(std::uint64_t{1} << i, result.columns[i]);
  return result;
}

/// The inputs of a, then those of b, to the same outputs: concat(a, b)(x | y << a.inputs) == a(x)
/// ^ b(y).
constexpr LinearLayout concat(LinearLayout const& a, LinearLayout const& b) {
  if (a.inputs + b.inputs > LinearLayout::kMaxBits)
    refuse("concat", "at most 48 input bits are held", a.inputs, b.inputs);
  LinearLayout result = a;
  for (int i = 0; i < b.inputs; ++i) result.columns[result.inputs++] = b.columns[i];
  result.outputs = a.outputs > b.outputs ? a.outputs : b.outputs;
  return result;
}

/// Two maps side by side: product(a, b)(x | y << a.inputs) == a(x) | b(y) << a.outputs.
constexpr LinearLayout product(LinearLayout const& a, LinearLayout const& b) {
  if (a.outputs + b.outputs > LinearLayout::kMaxBits)
    refuse("product", "at most 48 output bits are held", a.outputs, b.outputs);
  LinearLayout shifted = b;
  for (int i = 0; i < b.inputs; ++i) shifted.columns[i] <<= a.outputs;
  shifted.outputs = a.outputs + b.outputs;
  return concat(a, shifted);
}

/// The swizzle on `bits` bits of offset. Its groups must lie within them.
constexpr LinearLayout linear_layout(Swizzle const& swizzle, int bits) {
  LinearLayout map = linear_identity(bits);
  if (((swizzle.source_mask() | swizzle.target_mask()) >> bits) != 0) {
    refuse("linear_layout", "the swizzle reaches above the bits given", swizzle, bits);
  }
  for (int i = 0; i < bits; ++i) map.columns[i] = swizzle(map.columns[i]);
  return map;
}

/// The map from flat index to offset of a layout or swizzled layout. Refused where that map is not
/// linear over F2: it is exactly where every extent is a power of two, no stride is negative, no
/// two index bits share a bit of the offset, and the offset in front of the layout is zero.
constexpr LinearLayout linear_layout(SwizzledLayout const& source) {
  detail::IndexBits const bits = detail::index_bits(source.layout);
  using enum detail::NotLinear;
  if (bits.why == extent) refuse("linear_layout", "an extent is not a power of two", source.layout);
  if (bits.why == axis)
    refuse("linear_layout", "a stride is along an axis of coordinates", source.layout);
  if (bits.why == negative) refuse("linear_layout", "a stride is negative", source.layout);
  if (bits.why == carry)
    refuse("linear_layout", "two index bits share a bit of the offset, so that sums carry",
           source.layout);
  if (source.offset != 0)
    refuse("linear_layout", "the offset is not zero, so that 0 is not mapped to 0", source);
  if (bits.count > LinearLayout::kMaxBits)
    refuse("linear_layout", "at most 48 input bits are held", source.layout);
  LinearLayout map;
  std::uint64_t all = 0;
  for (int i = 0; i < bits.count; ++i)
    all |= map.columns[map.inputs++] = source.swizzle(bits.offsets[i]);
  map.outputs = bit_count_to_hold(all);
  if (map.outputs > LinearLayout::kMaxBits)
    refuse("linear_layout", "at most 48 output bits are held", source.layout);
  return map;
}

/// The layout with this linear map, where there is one: no two columns may share a bit. One mode,
/// coalesced, of extents 2^n.
constexpr Layout layout_of(LinearLayout const& map) {
  std::uint64_t used = 0;
  Layout result;
  for (int i = 0; i < map.inputs; ++i) {
    if ((used & map.columns[i]) != 0)
      refuse("layout_of", "two columns share a bit: a layout adds where the map exclusive-ors");
    used |= map.columns[i];
    std::int64_t const column = static_cast<std::int64_t>(map.columns[i]);
    int const last = result.count - 1;
    if (last >= 0 && result.strides[last] * result.extents[last] == column) {
      result.extents[last] *= 2;
    } else {
      result.append_leaf(2, {column});
    }
  }
  if (result.count == 0) return layout(Tuple(1), Tuple(0));
  if (result.count > 1) detail::wrap(result);
  return result;
}

}  // namespace tegula
