#pragma once

#include "tegula/arch/tma.hpp"
#include "tegula/arch/unpoison.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/tensor/shared.hpp"

/// The rows of a tile that lie beyond its operand.
///
/// TMA writes zeros for the rows of a box that lie beyond the tensor, and takes several times as
/// long for such a row as for one that it fetches: on an H200 a GEMM of 6 rows took 94 us where one
/// of 128 took 56, by the same tile of 128 rows. So where an operand's last tile has many rows
/// beyond it, that tile comes by boxes of its own, which have only the operand's rows; of peers
/// that share it, each brings an equal part of these. The other rows of its stages keep what they
/// hold: a row of A makes a row of D, a row of B a column, and nothing is stored of these.
namespace tegula {

/// Lets the last `rows` rows of a ring's stages, (mn, k, stage), be read. By one thread.
template <TmaBoxes Boxes, int Stages, class S>
TEGULA_DEVICE void unpoison_last_rows(int rows, S const& stages,
                                      SourceLocation where = SourceLocation::current()) {
  constexpr int whole = Boxes.box_mn * Boxes.boxes_mn;
  constexpr int pieces = Boxes.bytes / whole / 16;  // of a row of a stage
  constexpr int piece = Boxes.box_k * Boxes.boxes_k / pieces;
  for (int i = 0; i < rows * pieces * Stages; ++i)
    unpoison_shared(
        stages.at(where, whole - rows + i / pieces % rows, i % pieces * piece, i / pieces / rows),
        16, where);
}

/// What gemm_sm90's loads leave of its stages.
template <GemmSm90Config C> struct UnloadedRows {
  // Constants, for device code calls no constexpr function of the host.
  static constexpr TmaBoxes boxes_a = a_fetch(C), boxes_b = b_fetch(C);
  static constexpr bool cut_a = can_be_cut(boxes_a), cut_b = can_be_cut(boxes_b);
  static constexpr int ring = stages(C);

  /// How the rows of a tile come: by which map, from which row on, how many bytes a step, and how
  /// many rows fewer each box has.
  struct Rows {
    TensorMap const& map;
    int first;
    int bytes;
    int cut;
  };
  TEGULA_DEVICE static Rows rows_of_a(GemmSm90Problem const& p, int m) {
    return rows<boxes_a, cut_a>(p.a, p.a_last, p.unloaded_a, p.m, m);
  }
  TEGULA_DEVICE static Rows rows_of_b(GemmSm90Problem const& p, int n) {
    return rows<boxes_b, cut_b>(p.b, p.b_last, p.unloaded_b, p.n, n);
  }
  TEGULA_DEVICE static void prefetch_maps(GemmSm90Problem const& p,
                                          SourceLocation where = SourceLocation::current()) {
    if (cut_a && p.unloaded_a > 0) prefetch_tensor_map(p.a_last, where);
    if (cut_b && p.unloaded_b > 0) prefetch_tensor_map(p.b_last, where);
  }
  /// Whatever they hold may be read. By one thread, before a barrier of the CTA that the first load
  /// comes after.
  template <class A, class B>
  TEGULA_DEVICE static void unpoison(GemmSm90Problem const& p, A const& stages_a, B const& stages_b,
                                     SourceLocation where = SourceLocation::current()) {
    if constexpr (cut_a) unpoison_last_rows<boxes_a, ring>(p.unloaded_a, stages_a, where);
    if constexpr (cut_b) unpoison_last_rows<boxes_b, ring>(p.unloaded_b, stages_b, where);
  }

 private:
  /// Of the tile that begins at `first`, of an operand of `extent`. A tile that begins beyond it,
  /// of a cluster at its end, has the last tile's rows.
  template <TmaBoxes Boxes, bool Cut>
  TEGULA_DEVICE static Rows rows(TensorMap const& map, TensorMap const& last_map, int unloaded,
                                 int extent, int first) {
    if constexpr (Cut) {
      constexpr int tile = Boxes.box_mn * Boxes.boxes_mn;
      if (unloaded > 0 && first + tile > extent)
        return {last_map, (extent - 1) / tile * tile, Boxes.bytes - unloaded * (Boxes.bytes / tile),
                unloaded / Boxes.peers};
    }
    return {map, first, Boxes.bytes, 0};
  }
};

}  // namespace tegula
