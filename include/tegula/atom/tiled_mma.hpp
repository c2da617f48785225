#pragma once

#include <cstdint>

#include "tegula/atom/coverage.hpp"
#include "tegula/atom/mma_atom.hpp"
#include "tegula/layout/algebra.hpp"

namespace tegula {

/// An MMA atom repeated over threads (`atoms`: which group of `atom.threads()` threads works at (m,
/// n, k)) and over values, up to a tile of D(M,N) = sum over k of A(M,K) B(N,K). `permutation` says
/// in which order each mode of the tile is handed to the atoms: an integer is an extent in its own
/// order, a layout maps the position in atom order to the position in the tile, `_` is as large as
/// the atoms are. Build one with make_tiled_mma. Semantics are CuTe's TiledMMA, with one exception:
/// where groups of threads are spread along K, all of them hold the same elements of C, as in
/// CuTe's partition_C (its get_layoutC_TV runs past the tile there).
struct MmaTiling {
  MmaAtom atom;
  Layout atoms;  // (M,N,K) -> group of threads; rank 3, one to one onto 0, 1, 2, ...
  Tiler permutation;

  friend constexpr bool operator==(MmaTiling const&, MmaTiling const&) = default;

  constexpr int threads() const { return atom.threads() * static_cast<int>(atoms.size()); }

  /// The order of the tile's mode 0 (M), 1 (N) or 2 (K): position in atom order -> position in
  /// the tile.
  constexpr Layout mode_permutation(int mode) const {
    if (mode >= permutation.rank() || permutation[mode].is_underscore()) {
      return layout(atom_extent(mode) * atoms[mode].size());
    }
    return permutation[mode].layout();
  }

  /// The tile's extent along mode 0 (M), 1 (N) or 2 (K), and all three.
  constexpr int extent(int mode) const { return static_cast<int>(mode_permutation(mode).size()); }
  constexpr Tuple tile() const { return shape(extent(0), extent(1), extent(2)); }

  /// (thread, value) -> flat column-major index into the tile of A (M x K), B (N x K), C and D (M x
  /// N): rank 2. The values are (the atom's, (atoms along the first mode, atoms along the second)).
  constexpr Layout a() const {
    return thread_values(partition_a(layout(shape(extent(0), extent(2)))), 0, 2);
  }
  constexpr Layout b() const {
    return thread_values(partition_b(layout(shape(extent(1), extent(2)))), 1, 2);
  }
  constexpr Layout c() const {
    return thread_values(partition_c(layout(shape(extent(0), extent(1)))), 0, 1);
  }

  /// Splits a tensor (M,K) of any size into ((lane, (groups along M, groups along K)), (the atom's
  /// values, (rest of M, rest of K))); b and c likewise for (N,K) and (M,N). (CuTe: thrfrg_A,
  /// thrfrg_B, thrfrg_C.)
  constexpr Layout partition_a(Layout const& tensor) const {
    return partition(tensor, atom.a, 0, 2);
  }
  constexpr Layout partition_b(Layout const& tensor) const {
    return partition(tensor, atom.b, 1, 2);
  }
  constexpr Layout partition_c(Layout const& tensor) const {
    return partition(tensor, atom.c, 0, 1);
  }

  /// (lane of the atom, m, n, k) -> thread.
  constexpr Layout thread_layout() const {
    Layout groups = atoms;
    for (int i = 0; i < groups.leaves(); ++i) {
      groups.strides[i] *= atom.threads();
    }
    return make_layout(layout(atom.threads()), groups[0], groups[1], groups[2]);
  }

  constexpr int atom_extent(int mode) const {
    return mode == 0 ? atom.spec.m : mode == 1 ? atom.spec.n : atom.spec.k;
  }

 private:
  constexpr Layout partition(Layout const& tensor, Layout const& fragment, int first,
                             int second) const {
    if (tensor.rank() != 2) {
      refuse("partition", "the tensor to be partitioned has not two modes", tensor);
    }
    int const which[2] = {first, second};
    Layout split[2];   // (atom, rest)
    Layout groups[2];  // (groups of threads, rest)
    for (int i = 0; i < 2; ++i) {
      Layout const permuted = logical_divide(tensor[i], mode_permutation(which[i]));
      split[i] = logical_divide(permuted, layout(atom_extent(which[i])));
      groups[i] = logical_divide(split[i][1], layout(atoms[which[i]].size()));
    }
    Layout const lanes_values = composition(make_layout(split[0][0], split[1][0]), fragment);
    return make_layout(make_layout(lanes_values[0], make_layout(groups[0][0], groups[1][0])),
                       make_layout(lanes_values[1], make_layout(groups[0][1], groups[1][1])));
  }

  constexpr Layout thread_values(Layout const& partitioned, int first, int second) const {
    Layout const lanes = partitioned[0];
    Layout groups[3];  // along M, N, K; a mode that the operand has not repeats its elements
    for (int mode = 0; mode < 3; ++mode) {
      groups[mode] = mode == first    ? lanes[1][0]
                     : mode == second ? lanes[1][1]
                                      : layout(atoms[mode].size(), 0);
    }
    // thread -> flat index of (lane, m, n, k)
    Layout const from_thread = right_inverse(thread_layout());
    return make_layout(
        composition(make_layout(lanes[0], groups[0], groups[1], groups[2]), from_thread),
        partitioned[1]);
  }
};

/// The atom over `atoms` groups of threads and a tile. `atoms` is a layout (M,N,K) -> group,
/// missing modes being 1; it must number the groups 0, 1, 2, ... each once. Each mode of
/// `permutation`, where given, must be one to one onto its own extent, a multiple of what the atoms
/// cover in that mode. (CuTe: make_tiled_mma.)
constexpr MmaTiling make_tiled_mma(MmaAtom const& atom, Layout const& atoms,
                                   Tiler const& permutation = make_tile(_, _, _)) {
  if (atoms.rank() > 3) {
    refuse("make_tiled_mma", "the layout of atoms has more than three modes, (M,N,K)", atoms);
  }
  if (atoms.size() > INT32_MAX / atom.threads()) {
    refuse("make_tiled_mma", "too many threads: a tile has at most 2^31 - 1 of them", atoms,
           atom.threads());
  }
  if (!covers_once(atoms, atoms.size())) {
    refuse("make_tiled_mma", "the atoms' layout must number groups of threads 0, 1, ... each once",
           atoms);
  }
  if (permutation.rank() > 3) {
    refuse("make_tiled_mma", "the tile has more than three modes, (M,N,K)", permutation.rank());
  }
  MmaTiling const result{.atom = atom, .atoms = append(atoms, 3), .permutation = permutation};
  for (int mode = 0; mode < 3; ++mode) {
    Layout const order = result.mode_permutation(mode);
    if (order.size() > INT32_MAX) {
      refuse("make_tiled_mma", "too many elements of a mode: a tile has at most 2^31 - 1 of them",
             "mode", mode, order);
    }
    if (order.size() % (result.atom_extent(mode) * result.atoms[mode].size()) != 0) {
      refuse("make_tiled_mma", "the extent is no multiple of the atom's times the atoms along it",
             "mode", mode, order, result.atom_extent(mode), result.atoms[mode].size());
    }
    if (!covers_once(order, order.size())) {
      refuse("make_tiled_mma", "a permutation maps 0, 1, ... extent-1 one to one onto themselves",
             "mode", mode, order);
    }
  }
  return result;
}

}  // namespace tegula
