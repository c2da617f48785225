#pragma once

#include <cstdint>

#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tensor_map.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Bulk copies by the TMA unit: PTX ISA, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor,
/// cp.async.bulk.prefetch.tensor and cp.async.bulk (sm_90). One thread issues one for its CTA. A
/// load reports its bytes to an mbarrier (complete_tx), which waits for them; stores are waited for
/// in groups by the thread that issued them. All of it goes through the async proxy: what threads
/// wrote to shared memory is stored only after fence_proxy_async() and a barrier.
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

/// What an instruction moves: a box of a tensor of `Rank` axes, or rows of a matrix.
template <int Rank> struct TmaBoxText {
  static constexpr int axes = Rank;
  static constexpr char load[] = ".tile", store[] = ".tile";
};
struct TmaRowsText {
  static constexpr int axes = 2;
  static constexpr char load[] = ".tile::gather4", store[] = ".tile::scatter4";
};

template <L2Hint Hint> struct L2HintText {
  static constexpr std::uint64_t policy = cache_policy(Hint);
  static constexpr char suffix[] = ".L2::cache_hint", operand[] = ", policy";
};
template <> struct L2HintText<L2Hint::none> {
  static constexpr std::uint64_t policy = 0;
  static constexpr char suffix[] = "", operand[] = "";
};

/// Of a load whose mbarrier may be the peer's of a pair of CTAs.
template <int Ctas> struct TmaGroupText { static constexpr char text[] = ""; };
template <> struct TmaGroupText<2> { static constexpr char text[] = ".cta_group::2"; };

struct TmaStoreText {
  static constexpr char reduce[] = "", op[] = "";
};
template <TmaReduce Op> struct TmaReduceText;
template <> struct TmaReduceText<TmaReduce::add> {
  static constexpr char reduce[] = ".reduce", op[] = ".add";
};
template <> struct TmaReduceText<TmaReduce::min> {
  static constexpr char reduce[] = ".reduce", op[] = ".min";
};
template <> struct TmaReduceText<TmaReduce::max> {
  static constexpr char reduce[] = ".reduce", op[] = ".max";
};

/// Coordinate I, or 0 beyond the rank, for a register that is declared but not used.
template <int I, int Rank> TEGULA_DEVICE int coordinate_or_zero(TmaCoordinate<Rank> const& c) {
  if constexpr (I < Rank) {
    return c.x[I];
  } else {
    return 0;
  }
}

template <class Text, class Moved, int Rank, L2Hint Hint>
TEGULA_DEVICE void tma_from_shared(TensorMap const& map, TmaCoordinate<Rank> const& c,
                                   SharedAddr src) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b64 policy;\n\t"
      "mov.b32 x0, %2;\n\tmov.b32 x1, %3;\n\tmov.b32 x2, %4;\n\tmov.b32 x3, %5;\n\tmov.b32 x4, %6;\n\t"
      "mov.b64 policy, %7;\n\t"
      "cp%8.async.bulk.tensor.%9d.global.shared::cta%10%14.bulk_group%11 [%0, %12], [%1]%13;\n\t"
      "}" ::"l"(&map),
      "r"(src), "r"(coordinate_or_zero<0>(c)), "r"(coordinate_or_zero<1>(c)),
      "r"(coordinate_or_zero<2>(c)), "r"(coordinate_or_zero<3>(c)), "r"(coordinate_or_zero<4>(c)),
      "n"(L2HintText<Hint>::policy), "C"(Text::reduce), "n"(Moved::axes), "C"(Text::op),
      "C"(L2HintText<Hint>::suffix), "C"(TmaRegisters<Rank>::text), "C"(L2HintText<Hint>::operand),
      "C"(Moved::store)
      : "memory");
}

template <class Moved, int Rank, L2Hint Hint, int Ctas>
TEGULA_DEVICE void tma_into_shared(SharedAddr dst, TensorMap const& map,
                                   TmaCoordinate<Rank> const& c, SharedAddr mbarrier) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b64 policy;\n\t"
      "mov.b32 x0, %3;\n\tmov.b32 x1, %4;\n\tmov.b32 x2, %5;\n\tmov.b32 x3, %6;\n\tmov.b32 x4, %7;\n\t"
      "mov.b64 policy, %8;\n\t"
      "cp.async.bulk.tensor.%9d.shared::cluster.global%14.mbarrier::complete_tx::bytes%13%10 "
      "[%0], [%1, %11], [%2]%12;\n\t"
      "}" ::"r"(dst),
      "l"(&map), "r"(mbarrier), "r"(coordinate_or_zero<0>(c)), "r"(coordinate_or_zero<1>(c)),
      "r"(coordinate_or_zero<2>(c)), "r"(coordinate_or_zero<3>(c)), "r"(coordinate_or_zero<4>(c)),
      "n"(L2HintText<Hint>::policy), "n"(Moved::axes), "C"(L2HintText<Hint>::suffix),
      "C"(TmaRegisters<Rank>::text), "C"(L2HintText<Hint>::operand), "C"(TmaGroupText<Ctas>::text),
      "C"(Moved::load)
      : "memory");
}

template <class Moved, int Rank, L2Hint Hint, int Ctas>
TEGULA_DEVICE void tma_into_cluster(SharedAddr dst, TensorMap const& map,
                                    TmaCoordinate<Rank> const& c, SharedAddr mbarrier,
                                    std::uint16_t cta_mask) {
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b64 policy;\n\t"
      "mov.b32 x0, %4;\n\tmov.b32 x1, %5;\n\tmov.b32 x2, %6;\n\tmov.b32 x3, %7;\n\tmov.b32 x4, %8;\n\t"
      "mov.b64 policy, %9;\n\t"
      "cp.async.bulk.tensor.%10d.shared::cluster.global%15.mbarrier::complete_tx::bytes.multicast::cluster%14%11 "
      "[%0], [%1, %12], [%2], %3%13;\n\t"
      "}" ::"r"(dst),
      "l"(&map), "r"(mbarrier), "h"(cta_mask), "r"(coordinate_or_zero<0>(c)),
      "r"(coordinate_or_zero<1>(c)), "r"(coordinate_or_zero<2>(c)), "r"(coordinate_or_zero<3>(c)),
      "r"(coordinate_or_zero<4>(c)), "n"(L2HintText<Hint>::policy), "n"(Moved::axes),
      "C"(L2HintText<Hint>::suffix), "C"(TmaRegisters<Rank>::text), "C"(L2HintText<Hint>::operand),
      "C"(TmaGroupText<Ctas>::text), "C"(Moved::load)
      : "memory");
}

}  // namespace detail
#endif

/// Copies the map's box at `c` to shared memory at `dst` (a multiple of 128 bytes; with a swizzle,
/// of 8 times its span for the box to be laid out as from address 0) and then counts the whole
/// box's bytes, filled ones included, as arrived at the mbarrier. With `Ctas` 2 (.cta_group::2,
/// sm_100a) the mbarrier may be that of the peer: of the CTA whose rank differs in the last bit.
template <int Rank, L2Hint Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load(SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c,
                            SharedAddr mbarrier,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::tma_into_shared<detail::TmaBoxText<Rank>, Rank, Hint, Ctas>(dst, map, c, mbarrier);
#else
  sim::tma_load(dst, map, Rank, c.x, mbarrier, Ctas, Hint, where);
#endif
}

/// As tma_load, into each CTA of the cluster whose bit is set in `cta_mask`: to the same offset in
/// its shared memory, and counted at the mbarrier at the same offset there. With `Ctas` 2 it is
/// counted at that of its pair's even CTA, or odd CTA, as `mbarrier` is one's.
template <int Rank, L2Hint Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load_multicast(
    SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr mbarrier,
    std::uint16_t cta_mask, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::tma_into_cluster<detail::TmaBoxText<Rank>, Rank, Hint, Ctas>(dst, map, c, mbarrier,
                                                                       cta_mask);
#else
  sim::tma_load_multicast(dst, map, Rank, c.x, mbarrier, cta_mask, Ctas, Hint, where);
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
template <L2Hint Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_gather4(SharedAddr dst, TensorMap const& map, TmaRows const& rows,
                               SharedAddr mbarrier,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  TmaCoordinate<5> const c{rows.column, rows.row[0], rows.row[1], rows.row[2], rows.row[3]};
#if TEGULA_GPU
  detail::tma_into_shared<detail::TmaRowsText, 5, Hint, Ctas>(dst, map, c, mbarrier);
#else
  sim::tma_gather4(dst, map, c.x, mbarrier, Ctas, Hint, where);
#endif
}

/// As tma_gather4, into each CTA of the cluster whose bit is set in `cta_mask`, as
/// tma_load_multicast.
template <L2Hint Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_gather4_multicast(
    SharedAddr dst, TensorMap const& map, TmaRows const& rows, SharedAddr mbarrier,
    std::uint16_t cta_mask, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  TmaCoordinate<5> const c{rows.column, rows.row[0], rows.row[1], rows.row[2], rows.row[3]};
#if TEGULA_GPU
  detail::tma_into_cluster<detail::TmaRowsText, 5, Hint, Ctas>(dst, map, c, mbarrier, cta_mask);
#else
  sim::tma_gather4_multicast(dst, map, c.x, mbarrier, cta_mask, Ctas, Hint, where);
#endif
}

/// Copies four rows from shared memory to the tensor, as tma_store. No row is negative; what order
/// rows that are the same are written in nobody says.
template <L2Hint Hint = L2Hint::none>
TEGULA_DEVICE void tma_scatter4(TensorMap const& map, TmaRows const& rows, SharedAddr src,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  TmaCoordinate<5> const c{rows.column, rows.row[0], rows.row[1], rows.row[2], rows.row[3]};
#if TEGULA_GPU
  detail::tma_from_shared<detail::TmaStoreText, detail::TmaRowsText, 5, Hint>(map, c, src);
#else
  sim::tma_scatter4(map, c.x, src, Hint, where);
#endif
}

/// Copies the box at `c` from shared memory at `src` (aligned as a load's destination) to the
/// tensor, as part of the thread's current bulk group. The end of axis 0 clips at a multiple of 16
/// bytes, not at an element: where the tensor's rows are no multiple of 16 bytes, what lies between
/// their end and the next multiple is written from the box too. `c` is not negative.
template <int Rank, L2Hint Hint = L2Hint::none>
TEGULA_DEVICE void tma_store(TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr src,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::tma_from_shared<detail::TmaStoreText, detail::TmaBoxText<Rank>, Rank, Hint>(map, c, src);
#else
  sim::tma_store(map, Rank, c.x, src, Hint, where);
#endif
}

/// As tma_store, but combines each element with the tensor's: an atomic operation of each element
/// by itself. Sums are of f16, bf16, f32, f64, s32, u32 and u64 (of s64 it is an illegal
/// instruction: use a map of u64, whose sums have the same bits); min and max of f16, bf16 and
/// integers of 32 and 64 bits. That it clips and refuses negative coordinates as a store does is
/// assumed, not measured.
template <int Rank, TmaReduce Op, L2Hint Hint = L2Hint::none>
TEGULA_DEVICE void tma_reduce(TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr src,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::tma_from_shared<detail::TmaReduceText<Op>, detail::TmaBoxText<Rank>, Rank, Hint>(map, c,
                                                                                           src);
#else
  sim::tma_reduce(map, Rank, c.x, src, Op, Hint, where);
#endif
}

/// Brings the box at `c` into L2.
template <int Rank, L2Hint Hint = L2Hint::none>
TEGULA_DEVICE void tma_prefetch(TensorMap const& map, TmaCoordinate<Rank> c,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "{\n\t"
      ".reg .b32 x0, x1, x2, x3, x4;\n\t"
      ".reg .b64 policy;\n\t"
      "mov.b32 x0, %1;\n\tmov.b32 x1, %2;\n\tmov.b32 x2, %3;\n\tmov.b32 x3, %4;\n\tmov.b32 x4, %5;\n\t"
      "mov.b64 policy, %6;\n\t"
      "cp.async.bulk.prefetch.tensor.%7d.L2.global.tile%8 [%0, %9]%10;\n\t"
      "}" ::"l"(&map),
      "r"(detail::coordinate_or_zero<0>(c)), "r"(detail::coordinate_or_zero<1>(c)),
      "r"(detail::coordinate_or_zero<2>(c)), "r"(detail::coordinate_or_zero<3>(c)),
      "r"(detail::coordinate_or_zero<4>(c)), "n"(detail::L2HintText<Hint>::policy), "n"(Rank),
      "C"(detail::L2HintText<Hint>::suffix), "C"(detail::TmaRegisters<Rank>::text),
      "C"(detail::L2HintText<Hint>::operand)
      : "memory");
#else
  sim::tma_prefetch(map, Rank, c.x, Hint, where);
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

/// Copies `bytes` bytes to shared memory and counts them as arrived at the mbarrier. Both addresses
/// and `bytes` are multiples of 16.
template <L2Hint Hint = L2Hint::none>
TEGULA_DEVICE void bulk_load(SharedAddr dst, void const* src, int bytes, SharedAddr mbarrier,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "{\n\t"
      ".reg .b64 policy;\n\t"
      "mov.b64 policy, %4;\n\t"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes%5 [%0], [%1], %2, [%3]%6;\n\t"
      "}" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(mbarrier), "n"(detail::L2HintText<Hint>::policy),
      "C"(detail::L2HintText<Hint>::suffix), "C"(detail::L2HintText<Hint>::operand)
      : "memory");
#else
  sim::bulk_load(dst, src, bytes, mbarrier, Hint, where);
#endif
}

/// Copies `bytes` bytes from this CTA's shared memory to that of a CTA of the cluster, and counts
/// them as arrived at an mbarrier there. Both of its addresses are mapa's; all three and `bytes`
/// are multiples of 16, but for the mbarrier's. (.shared::cluster.shared::cta)
TEGULA_DEVICE void bulk_copy_cluster(
    SharedAddr remote, SharedAddr src, int bytes, SharedAddr remote_mbarrier,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(remote),
      "r"(src), "r"(bytes), "r"(remote_mbarrier)
      : "memory");
#else
  sim::bulk_copy_cluster(remote, src, bytes, remote_mbarrier, where);
#endif
}

/// Brings `bytes` bytes into L2. The address and `bytes` are multiples of 16.
TEGULA_DEVICE void bulk_prefetch(
    void const* src, int bytes, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(src), "r"(bytes) : "memory");
#else
  sim::bulk_prefetch(src, bytes, where);
#endif
}

/// Copies `bytes` bytes from shared memory, as part of the thread's current bulk group. Both
/// addresses and `bytes` are multiples of 16.
template <L2Hint Hint = L2Hint::none>
TEGULA_DEVICE void bulk_store(void* dst, SharedAddr src, int bytes,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "{\n\t"
      ".reg .b64 policy;\n\t"
      "mov.b64 policy, %3;\n\t"
      "cp.async.bulk.global.shared::cta.bulk_group%4 [%0], [%1], %2%5;\n\t"
      "}" ::"l"(dst),
      "r"(src), "r"(bytes), "n"(detail::L2HintText<Hint>::policy),
      "C"(detail::L2HintText<Hint>::suffix), "C"(detail::L2HintText<Hint>::operand)
      : "memory");
#else
  sim::bulk_store(dst, src, bytes, Hint, where);
#endif
}

/// Ends this thread's current group of bulk stores and starts the next.
TEGULA_DEVICE void bulk_commit_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  sim::bulk_commit_group(where);
#endif
}

/// Waits until all but the latest N of this thread's committed groups are complete: written to
/// global memory.
template <int N>
TEGULA_DEVICE void bulk_wait_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(N >= 0);
#if TEGULA_GPU
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
#else
  sim::bulk_wait_group(N, where);
#endif
}

/// Waits until all but the latest N of this thread's committed groups have read their shared
/// memory, which can then be written again.
template <int N>
TEGULA_DEVICE void bulk_wait_group_read(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(N >= 0);
#if TEGULA_GPU
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
#else
  sim::bulk_wait_group_read(N, where);
#endif
}

}  // namespace tegula
