#pragma once

#include <cstdint>

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tma_box.hpp"

/// Tensors that TMA reads and writes: coordinates, no addresses. And bulk copies of what lies in
/// one piece.
namespace tegula {

/// A tensor as its tensor map describes it. Axis i of the map is axis Order[i] of the tensor:
/// Tma<1, 0, 2> holds (mn, k, batch) of which k is contiguous.
template <int... Order> struct Tma {
  using Element = void;
  static constexpr int rank = sizeof...(Order);
  TensorMap const* map;
  int origin[rank];

  template <class M> TEGULA_DEVICE Tma moved(int index) const {
    Tma result = *this;
    [&]<int... Axis>(detail::NumberList<Axis...>) {
      ((result.origin[Axis] += coordinate<Axis>(M{}, index)), ...);
    }
    (typename detail::CountTo<rank>::Type{});
    return result;
  }
  template <class M> TEGULA_DEVICE Tma begin_at(int thread, SourceLocation) const {
    return moved<mode_at<0, M>>(thread);
  }
  template <class M, class... I>
  TEGULA_DEVICE TmaCoordinate<rank> at(SourceLocation, I... i) const {
    return {{origin[Order] + coordinate<Order>(M{}, i...)...}};
  }
  template <class M, class... I>
  TEGULA_DEVICE TmaCoordinate<rank> element(SourceLocation where, I... i) const {
    return at<M>(where, i...);
  }
};

/// The tensor of a tensor map, its axes in the order of the tensor's: tma_tensor<1, 0, 2>(map) is
/// (mn, k, batch) where the map's axes are k, mn, batch. (CuTe: tma.get_tma_tensor.)
template <int... Order> TEGULA_DEVICE auto tma_tensor(TensorMap const& map) {
  using M = typename detail::UnboundedMap<typename detail::CountTo<sizeof...(Order)>::Type>::Type;
  return Tensor<Tma<Order...>, M>{{&map, {(0 * Order)...}}};
}

/// A tile's TMA boxes; `rank` is which of the peers that share them this CTA is: the copy's
/// "thread". `ctas` are the peers, a bit for each CTA of the cluster: the first ones, unless said.
/// `cut` rows fewer than S says has each peer's box of a tile that is cut short (first_rows).
/// `Group` 2: the mbarrier of its loads may be that of the other CTA of a pair (.cta_group), in all
/// peers' pairs then; the peers have the same place in their pairs, and `ctas` names them.
template <TmaBoxes S, int Group = 1> struct TmaCopy {
  static constexpr TmaBoxes spec = S;
  static constexpr int bytes = S.bytes;  ///< that a whole tile brings: what the mbarrier expects

  int rank = 0;
  std::uint16_t ctas = static_cast<std::uint16_t>((1 << S.peers) - 1);
  int cut = 0;
};

namespace detail {

template <TmaBoxes S> struct BoxMaps {
  struct PeerSource {
    static constexpr Layout value = make_layout(along(0, S.peers, S.box_mn));
  };
  struct BoxSource {
    static constexpr Layout value = make_layout(along(0, S.boxes_mn / S.peers, S.peers* S.box_mn),
                                                along(1, S.boxes_k, S.box_k));
  };
  using Peers = MapOf<PeerSource>;
  using Boxes = MapOf<BoxSource>;
};

/// A tile in shared memory must be laid out by the boxes that fill it, or, where one box does,
/// begin as it does.
template <TmaBoxes S, class Tile> struct BoxesFit {
  static constexpr TmaBox box =
      tma_box(Tile::layout, 8 * sizeof(typename Tile::Element), S.contiguous);
  static constexpr bool make() {
    int const mn = S.contiguous == 0 ? box.contiguous_extent * box.count : box.strided_extent;
    int const k = S.contiguous == 0 ? box.strided_extent : box.contiguous_extent * box.count;
    bool const begins = S.boxes_mn * S.boxes_k == 1 && S.box_k <= k && box.count == 1;
    bool const as_wide = k == S.box_k * S.boxes_k || begins;
    if (mn != S.box_mn * S.boxes_mn || !as_wide || box.swizzle != S.swizzle)
      refuse("copy", "the tile in shared memory is not laid out as the TMA boxes are", Tile::layout,
             mn, k);
    return true;
  }
  static constexpr bool value = make();
};

/// Calls f(shared address, coordinate) for each box that this CTA moves.
template <TmaBoxes S, int Group, int... Order, class G, class Tile, int Moved, class H, class F>
TEGULA_DEVICE void for_each_box(
    TmaCopy<S, Group> const& by, Tensor<Tma<Order...>, G> const& global,
    Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& shared, F f,
    SourceLocation where) {
  static_assert(G::rank == 2 && H::rank == 2,
                "copy: a tile has modes mn and k; slice the step and the stage");
  static_assert(mode_size<mode_at<0, G>> == S.box_mn * S.boxes_mn &&
                    mode_size<mode_at<1, G>> == S.box_k * S.boxes_k,
                "copy: the tile of the tensor is not as large as the TMA copy's");
  static_assert(BoxesFit<S, Tile>::value);
  if constexpr (S.peers > 1 && S.contiguous == 1) {
    // One box for each peer, one after another, in rows without a gap.
    constexpr int row_bytes = S.bytes / (S.box_mn * S.boxes_mn * S.boxes_k);
    int const first = by.rank * (S.box_mn - by.cut);
#pragma unroll
    for (int k = 0; k < S.boxes_k; ++k) {
      auto from = global.at(where, 0, k * S.box_k);
      from.x[1] += first;  // the map's axes are k, mn, ...
      f(shared.at(where, 0, k * S.box_k) + static_cast<SharedAddr>(row_bytes * first), from);
    }
  } else {
    using Maps = BoxMaps<S>;
    auto const from =
        partition<typename Maps::Peers, typename Maps::Boxes, 2>(global, by.rank, where);
    auto const to =
        partition<typename Maps::Peers, typename Maps::Boxes, 2>(shared, by.rank, where);
#pragma unroll
    for (int k = 0; k < S.boxes_k; ++k) {
#pragma unroll
      for (int i = 0; i < S.boxes_mn / S.peers; ++i) f(to.at(where, i, k), from.at(where, i, k));
    }
  }
}

}  // namespace detail

/// Starts the TMA loads of a tile, by one thread: to every peer's shared memory at the same place,
/// where there are peers. `full` is the mbarrier that counts the bytes.
template <TmaBoxes S, int Group, int... Order, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(TmaCopy<S, Group> const& by, Tensor<Tma<Order...>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SharedAddr full, SourceLocation where = SourceLocation::current()) {
  detail::for_each_box(
      by, from, to,
      [&](SharedAddr place, auto const& at) {
        constexpr int rank = sizeof...(Order);
        if constexpr (S.peers > 1) {
          tma_load_multicast<rank, L2Hint::none, Group>(place, *from.space.map, at, full, by.ctas,
                                                        where);
        } else {
          tma_load<rank, L2Hint::none, Group>(place, *from.space.map, at, full, where);
        }
      },
      where);
}
/// Starts the TMA stores of a tile, by one thread, as part of its current bulk group.
template <TmaBoxes S, int... Order, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(TmaCopy<S> const& by,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Tensor<Tma<Order...>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  static_assert(S.peers == 1, "copy: a store is one CTA's");
  detail::for_each_box(
      by, to, from,
      [&](SharedAddr place, auto const& at) { tma_store(*to.space.map, at, place, where); }, where);
}
/// As the store, combining each element with the tensor's.
template <TmaReduce Op, TmaBoxes S, int... Order, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void reduce(TmaCopy<S> const& by,
                          Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                          Tensor<Tma<Order...>, G> const& to,
                          SourceLocation where = SourceLocation::current()) {
  static_assert(S.peers == 1, "reduce: a store is one CTA's");
  detail::for_each_box(
      by, to, from,
      [&](SharedAddr place, auto const& at) {
        tma_reduce<sizeof...(Order), Op>(*to.space.map, at, place, where);
      },
      where);
}
/// Brings the boxes that this CTA would load into L2.
template <TmaBoxes S, int... Order, class G>
TEGULA_DEVICE void prefetch(TmaCopy<S> const& by, Tensor<Tma<Order...>, G> const& from,
                            SourceLocation where = SourceLocation::current()) {
  static_assert(G::rank == 2, "prefetch: a tile has modes mn and k; slice the step");
  using Maps = detail::BoxMaps<S>;
  auto const own = partition<typename Maps::Peers, typename Maps::Boxes, 2>(from, by.rank, where);
#pragma unroll
  for (int i = 0; i < map_size<typename Maps::Boxes>; ++i)
    tma_prefetch(*from.space.map, own.at(where, i), where);
}

namespace detail {
/// Bytes of a tensor that lies in one piece, or a refusal.
constexpr int bytes_in_one_piece(Layout const& offsets, int element_bytes) {
  Layout const run = coalesce(offsets);
  if (run.count != 1 || (run.extents[0] > 1 && run.strides[0] != 1))
    refuse("copy", "a bulk copy moves what lies in one piece", offsets);
  if (run.extents[0] * element_bytes % 16 != 0)
    refuse("copy", "a bulk copy moves a multiple of 16 bytes", offsets, element_bytes);
  return static_cast<int>(run.extents[0]) * element_bytes;
}
template <class Tile, class H> struct SharedPiece {
  static_assert(Tile::layout.swizzle.identity(), "copy: a bulk copy does not swizzle");
  static constexpr int bytes =
      bytes_in_one_piece(OffsetFacts<Tile, all_modes<H>>::offsets, sizeof(typename Tile::Element));
};
template <int UnitAxis, class G> inline constexpr bool is_one_run = false;
template <int UnitAxis, int Extent, class... Empty>
inline constexpr bool is_one_run<UnitAxis, Map<Mode<Along<UnitAxis, Extent, 1>>, Empty...>> =
    (true && ... && std::is_same_v<Empty, Mode<>>);
/// A bulk copy moves all of its bytes: none of them may lie outside of the tensor.
template <class T, class A, Clip C, class G>
TEGULA_DEVICE void check_inside([[maybe_unused]] Tensor<Global<T, A, C>, G> const& tensor,
                                [[maybe_unused]] SourceLocation where) {
#if !TEGULA_GPU
  if constexpr (C != Clip::none) {
    auto const base = tensor.space.base();
    int const inside = base.template inside<G>(0) ? base.left[Global<T, A, C>::unit] : 0;
    if (inside < map_size<G>) [[unlikely]]
      cut_by_edge("a bulk copy reaches beyond the edge of the tensor, and clips nothing",
                  map_size<G>, inside > 0 ? inside : 0, "a TmaCopy clips, by its tensor map",
                  where);
  }
#endif
}
}  // namespace detail

/// By one thread, cp.async.bulk: what lies in one piece in both memories, a multiple of 16 bytes at
/// multiples of 16, from global memory (`full` counts the bytes) or to it (part of the thread's
/// current bulk group). It clips nothing: what reaches beyond the tensor's edge ends the launch on
/// the simulated machine.
struct BulkCopy {};
template <class T, class A, Clip C, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(BulkCopy, Tensor<Global<T, A, C>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SharedAddr full, SourceLocation where = SourceLocation::current()) {
  static_assert(detail::is_one_run<Global<T, A, C>::unit, G> && map_size<G> == map_size<H>,
                "copy: a bulk copy moves one run of neighbours, as many elements on both sides");
  detail::check_inside(from, where);
  bulk_load(to.space.base_address(), from.at(where, 0), detail::SharedPiece<Tile, H>::bytes, full,
            where);
}
template <class T, class A, Clip C, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(BulkCopy,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Tensor<Global<T, A, C>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  static_assert(detail::is_one_run<Global<T, A, C>::unit, G> && map_size<G> == map_size<H>,
                "copy: a bulk copy moves one run of neighbours, as many elements on both sides");
  detail::check_inside(to, where);
  bulk_store(to.at(where, 0), from.space.base_address(), detail::SharedPiece<Tile, H>::bytes,
             where);
}

}  // namespace tegula
