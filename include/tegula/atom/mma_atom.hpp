#pragma once

#include "tegula/atom/mma_spec.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/numeric/dtype.hpp"

/// Who holds what of a matrix multiply-accumulate instruction: of a warp (mma.sync), of a warpgroup
/// (wgmma) and of a thread (fma). The (thread, value) layouts follow from one rule of the PTX ISA
/// ("Matrix Fragments for mma.m16n8k*"), so they are computed from the shape and the element
/// widths, not listed.
namespace tegula {

/// One matrix multiply-accumulate instruction, D = A B + C, as a value.
///
/// `a`, `b` and `c` map (thread, value) to the flat column-major index of an element: `a` to m +
/// M*k, `b` to n + N*k, `c` (and D) to m + M*n. `value` counts the elements a thread holds, in
/// register order, low bits first. An operand that the instruction reads from shared memory counts
/// as held by every thread, as a whole.
struct MmaAtom {
  MmaSpec spec;
  Layout a;
  Layout b;
  Layout c;

  constexpr int threads() const { return tegula::threads(spec); }
  /// Whether each thread holds its own part of the operand.
  constexpr bool a_in_registers() const { return a_registers(spec) > 0; }
  constexpr bool b_in_registers() const { return b_registers(spec) > 0; }

  friend constexpr bool operator==(MmaAtom const&, MmaAtom const&) = default;
};

namespace detail {

/// The fragment of a `rows` x `columns` operand whose 32-bit register holds `per_register` elements
/// adjacent along the columns. PTX ISA, mma.m16n8k*: with group = lane / 4 and t = lane % 4,
/// element j of register r lies at
///   row = group + 8 * (r % (rows / 8))
///   column = t * per_register + j + 4 * per_register * (r / (rows / 8)).
/// Result: ((4,8),(per_register, rows/8, columns/(4*per_register))) with extents of 1 left out.
/// With several warps, each has the `rows` rows after those of the warp before, and the thread mode
/// is (4,8,warps).
constexpr Layout warp_fragment(int rows, int columns, int per_register, int warps = 1) {
  int const column = rows * warps;  // the distance of columns
  Layout const thread = warps == 1
                            ? layout(shape(4, 8), stride(column * per_register, 1))
                            : layout(shape(4, 8, warps), stride(column * per_register, 1, rows));
  Layout const modes[3] = {layout(per_register, column), layout(rows / 8, 8),
                           layout(columns / (4 * per_register), 4 * per_register * column)};
  Layout kept[3];
  int count = 0;
  for (Layout const& mode : modes) {
    if (mode.size() > 1) {
      kept[count++] = mode;
    }
  }
  switch (count) {
    case 0:
      return make_layout(thread, layout(1, 0));
    case 1:
      return make_layout(thread, kept[0]);
    case 2:
      return make_layout(thread, make_layout(kept[0], kept[1]));
    default:
      return make_layout(thread, make_layout(kept[0], kept[1], kept[2]));
  }
}

constexpr int elements_per_register(DType type) { return bits(type) >= 32 ? 1 : 32 / bits(type); }

}  // namespace detail

/// The instruction with its layouts. A is (M,K) row-major in memory and B is (N,K) row-major
/// ("TN"): both K contiguous. (Operands of wgmma with 16-bit elements may be contiguous along M or
/// N in shared memory; who holds what is the same.)
constexpr MmaAtom mma_atom(MmaSpec const& s) {
  int const group = threads(s);
  if (s.operands == MmaOperands::scalar) {
    Layout const element = layout(shape(1, 1), stride(0, 0));
    return {.spec = s, .a = element, .b = element, .c = element};
  }
  int const warps = group / 32;
  auto const in_shared_memory = [&](int rows) {
    return make_layout(layout(group, 0), layout(shape(rows, s.k)));
  };
  return {
      .spec = s,
      .a = s.operands == MmaOperands::ss
               ? in_shared_memory(s.m)
               : detail::warp_fragment(s.m / warps, s.k, detail::elements_per_register(s.a), warps),
      .b = s.operands == MmaOperands::warp
               ? detail::warp_fragment(s.n, s.k, detail::elements_per_register(s.b))
               : in_shared_memory(s.n),
      // pairs along n, whatever their width
      .c = detail::warp_fragment(s.m / warps, s.n, 2, warps)};
}

}  // namespace tegula
