#pragma once

#include <cstdint>

#include "tegula/arch/bulk_copy.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tensor_map.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Copies of boxes of tensors by the TMA unit: PTX ISA, cp.async.bulk.tensor,
/// cp.reduce.async.bulk.tensor and cp.async.bulk.prefetch.tensor (sm_90); of bytes that lie in one
/// piece: bulk_copy.hpp; of a convolution's image: tma_im2col.hpp. One thread issues one for its
/// CTA. A load reports its bytes to an mbarrier (complete_tx), which waits for them; stores are
/// waited for in groups by the thread that issued them. All of it goes through the async proxy:
/// what threads wrote to shared memory is stored only after fence_proxy_async() and a barrier.
namespace tegula {

/// Where in the tensor a box begins, in elements, innermost axis first. It may lie outside: loads
/// fill what is not in the tensor, stores leave it out. Along axis 0 it begins at a multiple of 16
/// bytes, and that of a store begins at no negative coordinate, on any axis; else the hardware ends
/// the kernel with "an illegal instruction was encountered".
template <int Rank> struct TmaCoordinate {
  static_assert(1 <= Rank && Rank <= 5, "a tensor map has one to five axes");
  int x[Rank];
};
template <class... I> TmaCoordinate(I...) -> TmaCoordinate<static_cast<int>(sizeof...(I))>;

/// How far from its pixels an im2col load reads, in elements: along W, or W and H, or W, H and D (a
/// tap of a convolution's filter).
template <int Axes> struct TmaOffsets {
  static_assert(1 <= Axes && Axes <= 3, "an image has one to three axes");
  std::uint16_t x[Axes];
};
template <class... I> TmaOffsets(I...) -> TmaOffsets<static_cast<int>(sizeof...(I))>;

#if TEGULA_GPU
namespace detail {

/// The parts of the instructions that differ, pasted into one text: the coordinates' registers for
/// each rank, and what is there only with a hint, or only in a reduction.
template <int Rank> struct TmaRegisters;
template <> struct TmaRegisters<1> { static constexpr char text[] = "{x0}"; };
template <> struct TmaRegisters<2> { static constexpr char text[] = "{x0, x1}"; };
template <> struct TmaRegisters<3> { static constexpr char text[] = "{x0, x1, x2}"; };
template <> struct TmaRegisters<4> { static constexpr char text[] = "{x0, x1, x2, x3}"; };
template <> struct TmaRegisters<5> { static constexpr char text[] = "{x0, x1, x2, x3, x4}"; };

struct TmaNoText {
  static constexpr char text[] = "";
};

/// What an instruction moves: a box of a tensor of `Rank` axes, or rows of a matrix.
template <int Rank> struct TmaBoxText {
  static constexpr int axes = Rank;
  static constexpr char load[] = ".tile", store[] = ".tile";
  using Offsets = TmaNoText;
};
struct TmaRowsText {
  static constexpr int axes = 2;
  static constexpr char load[] = ".tile::gather4", store[] = ".tile::scatter4";
  using Offsets = TmaNoText;
};

/// Of a load whose mbarrier may be the peer's of a pair of CTAs.
template <int Ctas> struct TmaGroupText { static constexpr char text[] = ""; };
template <> struct TmaGroupText<2> { static constexpr char text[] = ".cta_group::2"; };

struct TmaStoreText {
  static constexpr char reduce[] = "";
  using Operation = TmaNoText;
};
template <TmaReduce Op> struct TmaReduceText {
  static constexpr char reduce[] = ".reduce";
  using Operation = ReduceOpText<Op>;
};

/// Coordinate I, or 0 beyond the rank, for a register that is declared but not used.
template <int I, int Rank> TEGULA_DEVICE int coordinate_or_zero(TmaCoordinate<Rank> const& c) {
  if constexpr (I < Rank) {
    return c.x[I];
  } else {
    return 0;
  }
}

template <class Text, class Moved, int Rank, L2Policy Hint>
TEGULA_DEVICE void tma_from_shared(TensorMap const& map, TmaCoordinate<Rank> const& c,
                                   SharedAddr src) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      "mov.b32 x0, %2;\n\tmov.b32 x1, %3;\n\tmov.b32 x2, %4;\n\tmov.b32 x3, %5;\n\tmov.b32 x4, %6;\n\t"
      "cp%7.async.bulk.tensor.%8d.global.shared::cta%9%13.bulk_group%10 [%0, %11], [%1]%12;\n\t"
      "}" ::"l"(&map),
      "r"(src), "r"(coordinate_or_zero<0>(c)), "r"(coordinate_or_zero<1>(c)),
      "r"(coordinate_or_zero<2>(c)), "r"(coordinate_or_zero<3>(c)), "r"(coordinate_or_zero<4>(c)),
      "C"(Text::reduce), "n"(Moved::axes), "C"(Text::Operation::text),
      "C"(PolicyQualifier<Hint>::text), "C"(TmaRegisters<Rank>::text),
      "C"(PolicyOperand<Hint>::text), "C"(Moved::store)
      : "memory");
}

template <class Moved, int Rank, L2Policy Hint, int Ctas>
TEGULA_DEVICE void tma_into_shared(SharedAddr dst, TensorMap const& map,
                                   TmaCoordinate<Rank> const& c, SharedAddr mbarrier,
                                   TmaOffsets<3> const& offsets = {}) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b16 o0, o1, o2;\n\t"
      "mov.b32 x0, %3;\n\tmov.b32 x1, %4;\n\tmov.b32 x2, %5;\n\tmov.b32 x3, %6;\n\tmov.b32 x4, %7;\n\t"
      "mov.b16 o0, %8;\n\tmov.b16 o1, %9;\n\tmov.b16 o2, %10;\n\t"
      "cp.async.bulk.tensor.%11d.shared::cluster.global%16.mbarrier::complete_tx::bytes%15%12 "
      "[%0], [%1, %13], [%2]%17%14;\n\t"
      "}" ::"r"(dst),
      "l"(&map), "r"(mbarrier), "r"(coordinate_or_zero<0>(c)), "r"(coordinate_or_zero<1>(c)),
      "r"(coordinate_or_zero<2>(c)), "r"(coordinate_or_zero<3>(c)), "r"(coordinate_or_zero<4>(c)),
      "h"(offsets.x[0]), "h"(offsets.x[1]), "h"(offsets.x[2]), "n"(Moved::axes),
      "C"(PolicyQualifier<Hint>::text), "C"(TmaRegisters<Rank>::text),
      "C"(PolicyOperand<Hint>::text), "C"(TmaGroupText<Ctas>::text), "C"(Moved::load),
      "C"(Moved::Offsets::text)
      : "memory");
}

template <class Moved, int Rank, L2Policy Hint, int Ctas>
TEGULA_DEVICE void tma_into_cluster(SharedAddr dst, TensorMap const& map,
                                    TmaCoordinate<Rank> const& c, SharedAddr mbarrier,
                                    std::uint16_t cta_mask, TmaOffsets<3> const& offsets = {}) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b16 o0, o1, o2;\n\t"
      "mov.b32 x0, %4;\n\tmov.b32 x1, %5;\n\tmov.b32 x2, %6;\n\tmov.b32 x3, %7;\n\tmov.b32 x4, %8;\n\t"
      "mov.b16 o0, %9;\n\tmov.b16 o1, %10;\n\tmov.b16 o2, %11;\n\t"
      "cp.async.bulk.tensor.%12d.shared::cluster.global%17.mbarrier::complete_tx::bytes.multicast::cluster%16%13 "
      "[%0], [%1, %14], [%2]%18, %3%15;\n\t"
      "}" ::"r"(dst),
      "l"(&map), "r"(mbarrier), "h"(cta_mask), "r"(coordinate_or_zero<0>(c)),
      "r"(coordinate_or_zero<1>(c)), "r"(coordinate_or_zero<2>(c)), "r"(coordinate_or_zero<3>(c)),
      "r"(coordinate_or_zero<4>(c)), "h"(offsets.x[0]), "h"(offsets.x[1]), "h"(offsets.x[2]),
      "n"(Moved::axes), "C"(PolicyQualifier<Hint>::text), "C"(TmaRegisters<Rank>::text),
      "C"(PolicyOperand<Hint>::text), "C"(TmaGroupText<Ctas>::text), "C"(Moved::load),
      "C"(Moved::Offsets::text)
      : "memory");
}

template <class Moved, int Rank, L2Policy Hint>
TEGULA_DEVICE void tma_into_l2(TensorMap const& map, TmaCoordinate<Rank> const& c,
                               TmaOffsets<3> const& offsets = {}) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b16 o0, o1, o2;\n\t"
      "mov.b32 x0, %1;\n\tmov.b32 x1, %2;\n\tmov.b32 x2, %3;\n\tmov.b32 x3, %4;\n\tmov.b32 x4, %5;\n\t"
      "mov.b16 o0, %6;\n\tmov.b16 o1, %7;\n\tmov.b16 o2, %8;\n\t"
      "cp.async.bulk.prefetch.tensor.%9d.L2.global%13%10 [%0, %11]%14%12;\n\t"
      "}" ::"l"(&map),
      "r"(coordinate_or_zero<0>(c)), "r"(coordinate_or_zero<1>(c)), "r"(coordinate_or_zero<2>(c)),
      "r"(coordinate_or_zero<3>(c)), "r"(coordinate_or_zero<4>(c)), "h"(offsets.x[0]),
      "h"(offsets.x[1]), "h"(offsets.x[2]), "n"(Moved::axes), "C"(PolicyQualifier<Hint>::text),
      "C"(TmaRegisters<Rank>::text), "C"(PolicyOperand<Hint>::text), "C"(Moved::load),
      "C"(Moved::Offsets::text)
      : "memory");
}

}  // namespace detail
#endif

/// Copies the map's box at `c` to shared memory at `dst` (a multiple of 128 bytes; with a swizzle,
/// of 8 times its span for the box to be laid out as from address 0) and then counts the whole
/// box's bytes, filled ones included, as arrived at the mbarrier. With `Ctas` 2 (.cta_group::2,
/// sm_100a) the mbarrier may be that of the peer: of the CTA whose rank differs in the last bit.
template <int Rank, L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load(SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c,
                            SharedAddr mbarrier,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  detail::tma_into_shared<detail::TmaBoxText<Rank>, Rank, Hint, Ctas>(dst, map, c, mbarrier);
#else
  sim::tma_load(dst, map, {sim::TmaNaming::tile, Rank, c.x}, mbarrier, Ctas, where);
#endif
}

/// As tma_load, into each CTA of the cluster whose bit is set in `cta_mask`: to the same offset in
/// its shared memory, and counted at the mbarrier at the same offset there. With `Ctas` 2 it is
/// counted at that of its pair's even CTA, or odd CTA, as `mbarrier` is one's.
template <int Rank, L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load_multicast(
    SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr mbarrier,
    std::uint16_t cta_mask, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  detail::tma_into_cluster<detail::TmaBoxText<Rank>, Rank, Hint, Ctas>(dst, map, c, mbarrier,
                                                                       cta_mask);
#else
  sim::tma_load_multicast(dst, map, {sim::TmaNaming::tile, Rank, c.x}, mbarrier, cta_mask, Ctas,
                          where);
#endif
}

/// Four rows of a matrix from one column on: PTX ISA, cp.async.bulk.tensor, .tile::gather4 and
/// .tile::scatter4 (sm_100a). The map is of a tensor of two axes and a box of one row. The column
/// is as a box's first coordinate; each row may be any, or outside of the tensor.
struct TmaRows {
  int column;
  int row[4];
};

/// Copies four rows to shared memory, one after the other as those of a box, and counts the bytes
/// of all four at the mbarrier, as tma_load.
template <L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_gather4(SharedAddr dst, TensorMap const& map, TmaRows const& rows,
                               SharedAddr mbarrier,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  TmaCoordinate<5> const c{rows.column, rows.row[0], rows.row[1], rows.row[2], rows.row[3]};
#if TEGULA_GPU
  detail::tma_into_shared<detail::TmaRowsText, 5, Hint, Ctas>(dst, map, c, mbarrier);
#else
  sim::tma_load(dst, map, {sim::TmaNaming::rows, 5, c.x}, mbarrier, Ctas, where);
#endif
}

/// As tma_gather4, into each CTA of the cluster whose bit is set in `cta_mask`, as
/// tma_load_multicast.
template <L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_gather4_multicast(
    SharedAddr dst, TensorMap const& map, TmaRows const& rows, SharedAddr mbarrier,
    std::uint16_t cta_mask, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  TmaCoordinate<5> const c{rows.column, rows.row[0], rows.row[1], rows.row[2], rows.row[3]};
#if TEGULA_GPU
  detail::tma_into_cluster<detail::TmaRowsText, 5, Hint, Ctas>(dst, map, c, mbarrier, cta_mask);
#else
  sim::tma_load_multicast(dst, map, {sim::TmaNaming::rows, 5, c.x}, mbarrier, cta_mask, Ctas,
                          where);
#endif
}

/// Copies four rows from shared memory to the tensor, as tma_store. No row is negative; what order
/// rows that are the same are written in nobody says.
template <L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void tma_scatter4(TensorMap const& map, TmaRows const& rows, SharedAddr src,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  TmaCoordinate<5> const c{rows.column, rows.row[0], rows.row[1], rows.row[2], rows.row[3]};
#if TEGULA_GPU
  detail::tma_from_shared<detail::TmaStoreText, detail::TmaRowsText, 5, Hint>(map, c, src);
#else
  sim::tma_store(map, {sim::TmaNaming::rows, 5, c.x}, src, where);
#endif
}

/// Copies the box at `c` from shared memory at `src` (aligned as a load's destination) to the
/// tensor, as part of the thread's current bulk group. The end of axis 0 clips at a multiple of 16
/// bytes, not at an element: where the tensor's rows are no multiple of 16 bytes, what lies between
/// their end and the next multiple is written from the box too. `c` is not negative.
template <int Rank, L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void tma_store(TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr src,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  detail::tma_from_shared<detail::TmaStoreText, detail::TmaBoxText<Rank>, Rank, Hint>(map, c, src);
#else
  sim::tma_store(map, {sim::TmaNaming::tile, Rank, c.x}, src, where);
#endif
}

/// As tma_store, but combines each element with the tensor's: an atomic operation of each element
/// by itself, of the types that can_reduce names (a sum of s64, and its and, or and xor, are
/// illegal instructions: use a map of u64, whose results have the same bits). That it clips and
/// refuses negative coordinates as a store does is assumed, not measured.
template <int Rank, TmaReduce Op, L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void tma_reduce(TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr src,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  detail::tma_from_shared<detail::TmaReduceText<Op>, detail::TmaBoxText<Rank>, Rank, Hint>(map, c,
                                                                                           src);
#else
  sim::tma_reduce(map, {sim::TmaNaming::tile, Rank, c.x}, src, Op, where);
#endif
}

/// Brings the box at `c` into L2.
template <int Rank, L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void tma_prefetch(TensorMap const& map, TmaCoordinate<Rank> c,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  detail::tma_into_l2<detail::TmaBoxText<Rank>, Rank, Hint>(map, c);
#else
  sim::tma_prefetch(map, {sim::TmaNaming::tile, Rank, c.x}, where);
#endif
}

/// Brings the map itself near, so that the first instruction that uses it need not wait for it: PTX
/// ISA, prefetch.tensormap.
TEGULA_DEVICE void prefetch_tensor_map(
    TensorMap const& map, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#else
  sim::prefetch_tensor_map(map, where);
#endif
}

}  // namespace tegula
