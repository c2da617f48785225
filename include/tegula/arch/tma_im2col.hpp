#pragma once

#include "tegula/arch/tma.hpp"

/// Loads of an image as a convolution reads it: PTX ISA, cp.async.bulk.tensor, .im2col ("Im2col
/// mode"). The map is one of TmaMode::im2col, of a tensor of channels, W, or W and H, or W, H and
/// D, and N. A load brings `box[0]` channels of `box[1]` pixels, one after the other. They begin at
/// the pixel of the coordinate and walk the map's bounding box by its element strides, W first,
/// then H, D and N: at the end of an axis the walk goes on at the lower corner. Of each it reads
/// the pixel that lies `offsets` further: of a filter, one tap. What lies outside of the tensor is
/// filled.
namespace tegula {

namespace detail {
#if TEGULA_GPU
template <int Axes> struct TmaOffsetRegisters;
template <> struct TmaOffsetRegisters<1> { static constexpr char text[] = ", {o0}"; };
template <> struct TmaOffsetRegisters<2> { static constexpr char text[] = ", {o0, o1}"; };
template <> struct TmaOffsetRegisters<3> { static constexpr char text[] = ", {o0, o1, o2}"; };

template <int Rank> struct TmaIm2colText {
  static constexpr int axes = Rank;
  static constexpr char load[] = ".im2col";
  using Offsets = TmaOffsetRegisters<Rank - 2>;
};

template <int Axes> TEGULA_DEVICE TmaOffsets<3> three_offsets(TmaOffsets<Axes> const& offsets) {
  TmaOffsets<3> all{};
#pragma unroll
  for (int i = 0; i < Axes; ++i) all.x[i] = offsets.x[i];
  return all;
}
#endif

template <int Rank> inline constexpr bool is_image = 3 <= Rank&& Rank <= 5;
}  // namespace detail

/// Copies the pixels to shared memory at `dst` and counts all of their bytes at the mbarrier, as
/// tma_load does a box. `Ctas` as there.
template <int Rank, L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load_im2col(
    SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c, TmaOffsets<Rank - 2> offsets,
    SharedAddr mbarrier, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  static_assert(detail::is_image<Rank>, "tma_load_im2col: an image has rank 3, 4 or 5");
#if TEGULA_GPU
  detail::tma_into_shared<detail::TmaIm2colText<Rank>, Rank, Hint, Ctas>(
      dst, map, c, mbarrier, detail::three_offsets(offsets));
#else
  sim::tma_load(dst, map, {sim::TmaNaming::im2col, Rank, c.x, offsets.x}, mbarrier, Ctas, where);
#endif
}

/// As tma_load_im2col, into each CTA of the cluster whose bit is set in `cta_mask`, as
/// tma_load_multicast.
template <int Rank, L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load_im2col_multicast(
    SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c, TmaOffsets<Rank - 2> offsets,
    SharedAddr mbarrier, std::uint16_t cta_mask,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  static_assert(detail::is_image<Rank>, "tma_load_im2col_multicast: an image has rank 3, 4 or 5");
#if TEGULA_GPU
  detail::tma_into_cluster<detail::TmaIm2colText<Rank>, Rank, Hint, Ctas>(
      dst, map, c, mbarrier, cta_mask, detail::three_offsets(offsets));
#else
  sim::tma_load_multicast(dst, map, {sim::TmaNaming::im2col, Rank, c.x, offsets.x}, mbarrier,
                          cta_mask, Ctas, where);
#endif
}

/// Brings the pixels into L2.
template <int Rank, L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void tma_prefetch_im2col(
    TensorMap const& map, TmaCoordinate<Rank> c, TmaOffsets<Rank - 2> offsets,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  static_assert(detail::is_image<Rank>, "tma_prefetch_im2col: an image has rank 3, 4 or 5");
#if TEGULA_GPU
  detail::tma_into_l2<detail::TmaIm2colText<Rank>, Rank, Hint>(map, c,
                                                               detail::three_offsets(offsets));
#else
  sim::tma_prefetch(map, {sim::TmaNaming::im2col, Rank, c.x, offsets.x}, where);
#endif
}

}  // namespace tegula
