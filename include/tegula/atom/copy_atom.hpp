#pragma once

#include "tegula/atom/copy_spec.hpp"
#include "tegula/layout/layout.hpp"

/// Which thread's which bit goes where in a copy instruction. The bit numbering is a copy's own; it
/// only ties source and destination together, so one atom serves every element type (`recast` its
/// layouts to the width of the element).
namespace tegula {

/// One copy instruction as a value. `src`, `dst` and `ref` map (thread, value) to a bit index; a
/// value is one bit. The (thread, value) layout of a tiled copy is stated for `ref`, which is the
/// side that lives in registers (the source, where both or neither do).
struct CopyAtom {
  CopySpec spec;
  Layout src;
  Layout dst;
  Layout ref;

  constexpr int threads() const { return moves_matrices(spec.op) ? 32 : 1; }

  friend constexpr bool operator==(CopyAtom const&, CopyAtom const&) = default;
};

namespace detail {

/// (thread, bit) of the rows that threads address in shared memory: thread i gives the address of
/// row i % (8 * matrices), of 128 bits. With fewer than 4 matrices the further threads' addresses
/// are not used; they are written here as repeats, as CuTe does.
constexpr Layout matrix_rows(int matrices) {
  if (matrices == 4) {
    return layout(shape(32, 128), stride(128, 1));
  }
  return layout(shape(shape(8 * matrices, 4 / matrices), 128), stride(stride(128, 0), 1));
}

/// (thread, bit) of the registers. PTX ISA, ldmatrix: thread t holds elements 2*(t%4) and 2*(t%4)+1
/// of row t/4 of each matrix; these are bits 32*t .. 32*t+31 of the matrix.
constexpr Layout matrix_registers(int matrices) {
  if (matrices == 1) {
    return layout(shape(32, 32), stride(32, 1));
  }
  return layout(shape(32, shape(32, matrices)), stride(32, stride(1, 1024)));
}

/// The same with .trans: thread t holds column t/4, rows 2*(t%4) and 2*(t%4)+1; rows are 128
/// bits apart.
constexpr Layout matrix_registers_trans(int matrices) {
  if (matrices == 1) {
    return layout(shape(shape(4, 8), shape(16, 2)), stride(stride(256, 16), stride(1, 128)));
  }
  return layout(shape(shape(4, 8), shape(16, 2, matrices)),
                stride(stride(256, 16), stride(1, 128, 1024)));
}

}  // namespace detail

/// The instruction with its layouts; refuses an amount that it does not move. Sources: PTX ISA,
/// ldmatrix, stmatrix, cp.async, cp.async.bulk; the bit numbering is CuTe's.
constexpr CopyAtom copy_atom(CopySpec const& s) {
  check(s);
  if (moves_matrices(s.op)) {
    bool const transposed = s.op == CopyOp::ldmatrix_trans || s.op == CopyOp::stmatrix_trans;
    Layout const rows = detail::matrix_rows(s.amount);
    Layout const registers =
        transposed ? detail::matrix_registers_trans(s.amount) : detail::matrix_registers(s.amount);
    bool const loads = s.op == CopyOp::ldmatrix || s.op == CopyOp::ldmatrix_trans;
    return {.spec = s,
            .src = loads ? rows : registers,
            .dst = loads ? registers : rows,
            .ref = registers};
  }
  // An auto-vectorizing copy is one value of any type; the others move their bits, a tile as
  // a whole.
  Layout const own = s.op == CopyOp::auto_vectorizing ? layout(shape(1, 1), stride(0, 0))
                                                      : layout(shape(1, s.amount), stride(0, 1));
  return {.spec = s, .src = own, .dst = own, .ref = own};
}

}  // namespace tegula
