#pragma once

#include <cstdint>

#include "tegula/atom/copy_atom.hpp"
#include "tegula/atom/tiled_mma.hpp"
#include "tegula/layout/algebra.hpp"

namespace tegula {

/// A copy atom repeated over threads and values up to a tile (M,N) of elements of `element_bits`
/// bits. `tv` says which element of the tile value v of thread t is on the atom's reference side,
/// as a flat column-major index: (thread, value) -> m + M*n. Build one with make_tiled_copy, or
/// make_tiled_copy_a/b/c for the operands of a tiled MMA. Semantics are CuTe's TiledCopy.
struct CopyTiling {
  CopyAtom atom;
  int element_bits = 0;
  Layout tv;
  int extents[2] = {};  // of the tile

  friend constexpr bool operator==(CopyTiling const&, CopyTiling const&) = default;

  constexpr int threads() const { return static_cast<int>(tv[0].size()); }
  constexpr Tuple tile() const { return shape(extents[0], extents[1]); }

  /// Elements that one thread moves with one instruction, on the reference side.
  constexpr int atom_values() const {
    return static_cast<int>(upcast(atom.ref, element_bits)[1].size());
  }

  /// (thread, (value of the instruction, instruction)) -> flat index into the tile: what each
  /// thread reads, and what it writes. On the address side of a matrix load or store the values are
  /// the elements of the row whose address the thread gives.
  constexpr Layout src() const { return side(atom.src); }
  constexpr Layout dst() const { return side(atom.dst); }

  /// A tensor (M,N) of which the tile is one tile, split as (thread, (value, instruction), (rest of
  /// M, rest of N)) for reading (CuTe: partition_S) and writing (partition_D). Slice mode 0 at a
  /// thread to get that thread's view.
  constexpr Layout partition_src(Layout const& tensor) const { return partition(tensor, src()); }
  constexpr Layout partition_dst(Layout const& tensor) const { return partition(tensor, dst()); }

  /// Regroups a thread's fragment ((value), rest of M, rest of N), laid out for a tiled MMA whose
  /// operand `tv` is, into
  /// ((value of the instruction, instruction), rest of M, rest of N) of this copy (CuTe:
  /// retile_S, retile_D).
  constexpr Layout retile(Layout const& fragment) const {
    std::int64_t const values = fragment[0].size();
    // (m, n) -> number of the value, in units of the fragment's mode 0, of which only shape and
    // order are used
    Layout const order = upcast(with_shape(right_inverse(tv), tile()),
                                static_cast<std::int64_t>(threads()) * values);
    Layout const product = logical_product(layout(values), right_inverse(order));
    Layout const by_instruction =
        zipped_divide(product, layout(atom_values()));  // (value, instruction) -> (v, m, n)
    Layout const v = logical_divide(fragment[0], layout(values));
    Layout const m = logical_divide(fragment[1], layout(order[0].size()));
    Layout const n = logical_divide(fragment[2], layout(order[1].size()));
    return make_layout(composition(make_layout(v[0], m[0], n[0]), by_instruction), m[1], n[1]);
  }

 private:
  constexpr Layout side(Layout const& bit_layout) const {
    Layout const reference = upcast(atom.ref, element_bits);
    // (thread, value) -> reference's
    Layout const to_reference =
        composition(right_inverse(reference), upcast(bit_layout, element_bits));
    // (of the atom, rest)
    Layout const thread = logical_divide(tv[0], layout(reference[0].size()));
    Layout const value = logical_divide(tv[1], layout(reference[1].size()));
    Layout const one = composition(make_layout(thread[0], value[0]), to_reference);
    return make_layout(coalesce(make_layout(one[0], thread[1])),
                       make_layout(coalesce(one[1]), coalesce(value[1])));
  }

  constexpr Layout partition(Layout const& tensor, Layout const& thread_value) const {
    Layout const m = logical_divide(tensor[0], layout(extents[0]));
    Layout const n = logical_divide(tensor[1], layout(extents[1]));
    Layout const own = composition(make_layout(m[0], n[0]), thread_value);
    return make_layout(own[0], own[1], make_layout(m[1], n[1]));
  }
};

namespace detail {

/// Checks that the atom fits, and puts the value together.
constexpr CopyTiling checked_tiled_copy(CopyAtom const& atom, int element_bits, Layout const& tv,
                                        std::int64_t m, std::int64_t n) {
  if (tv[0].size() > INT32_MAX || tv[1].size() > INT32_MAX || m > INT32_MAX || n > INT32_MAX) {
    refuse("make_tiled_copy", "too many elements: a tile has at most 2^31 - 1 of them", tv, m, n);
  }
  std::int64_t const thread_bits =
      atom.ref[1].size();  // 1: an auto-vectorizing copy, of elements of any width
  if (element_bits < 1 || (thread_bits > 1 && thread_bits % element_bits != 0)) {
    refuse("make_tiled_copy", "a thread does not move a whole number of elements of this width",
           to_string(atom.spec.op), element_bits);
  }
  Layout const reference = upcast(atom.ref, element_bits);
  if (reference[0].size() != atom.threads() ||
      upcast(atom.src, element_bits)[0].size() != atom.threads()) {
    refuse("make_tiled_copy", "the copy instruction splits elements of this width among threads",
           to_string(atom.spec.op), element_bits);
  }
  if (tv[0].size() % atom.threads() != 0) {
    refuse("make_tiled_copy", "the threads are no multiple of those of the copy instruction",
           to_string(atom.spec.op), tv, atom.threads());
  }
  if (tv[1].size() % reference[1].size() != 0) {
    refuse("make_tiled_copy", "a thread's values are no multiple of those of the copy instruction",
           to_string(atom.spec.op), tv, reference[1].size());
  }
  return CopyTiling{.atom = atom,
                    .element_bits = element_bits,
                    .tv = tv,
                    .extents = {static_cast<int>(m), static_cast<int>(n)}};
}

}  // namespace detail

/// The copy in which thread threads(m, n) moves value values(i, j) of its block: the tile is the
/// threads' shape times the values' shape, each thread's values adjacent. `threads` maps (m, n) to
/// a thread and `values` (i, j) to a value, each one to one onto 0, 1, 2, ... Refused where they
/// are not, or where the instruction does not divide them. (CuTe: make_tiled_copy.)
constexpr CopyTiling make_tiled_copy(CopyAtom const& atom, int element_bits, Layout const& threads,
                                     Layout const& values) {
  if (!covers_once(threads, threads.size())) {
    refuse("make_tiled_copy", "the threads' layout must number the threads 0, 1, 2, ... each once",
           threads);
  }
  if (!covers_once(values, values.size())) {
    refuse("make_tiled_copy", "the values' layout must number the values 0, 1, 2, ... each once",
           values);
  }
  if (threads.rank() > 2 || values.rank() > 2) {
    refuse("make_tiled_copy", "the threads' and the values' layouts have at most two modes, (M,N)",
           threads, values);
  }
  Layout const tile = raked_product(threads, values);  // (m, n) -> thread + threads * value
  Layout const two_modes = tile.rank() == 2 ? tile : make_layout(tile, layout(1, 0));
  Layout const tv = with_shape(right_inverse(tile), shape(threads.size(), values.size()));
  return detail::checked_tiled_copy(atom, element_bits, tv, two_modes[0].size(),
                                    two_modes[1].size());
}

/// The copies whose reference side is operand A (M x K), B (N x K) or C (M x N) of a tiled MMA:
/// what ldmatrix, stmatrix or plain accesses must move so that each thread holds the values that
/// the MMA wants of it. (CuTe: make_tiled_copy_A, _B, _C.)
constexpr CopyTiling make_tiled_copy_a(CopyAtom const& atom, int element_bits,
                                       MmaTiling const& mma) {
  return detail::checked_tiled_copy(atom, element_bits, mma.a(), mma.extent(0), mma.extent(2));
}
constexpr CopyTiling make_tiled_copy_b(CopyAtom const& atom, int element_bits,
                                       MmaTiling const& mma) {
  return detail::checked_tiled_copy(atom, element_bits, mma.b(), mma.extent(1), mma.extent(2));
}
constexpr CopyTiling make_tiled_copy_c(CopyAtom const& atom, int element_bits,
                                       MmaTiling const& mma) {
  return detail::checked_tiled_copy(atom, element_bits, mma.c(), mma.extent(0), mma.extent(1));
}

}  // namespace tegula
