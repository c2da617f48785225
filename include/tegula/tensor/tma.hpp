#pragma once

#include <cstdint>

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/tensor/bulk_copy.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tma_box.hpp"

/// Tensors that TMA reads and writes: coordinates, no addresses. (Of what lies in one piece:
/// bulk_copy.hpp.)
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
/// `Hint` is what L2 is told.
template <TmaBoxes S, int Group = 1, L2Policy Hint = L2Hint::none> struct TmaCopy {
  static constexpr TmaBoxes spec = S;
  static constexpr int bytes = S.bytes;  ///< that a whole tile brings: what the mbarrier expects

  int rank = 0;
  std::uint16_t ctas = static_cast<std::uint16_t>((1 << S.peers) - 1);
  int cut = 0;
#if !TEGULA_GPU
  int cut_k = 0;  ///< columns that the map has fewer: narrowed_copy
#endif
};

/// The copy of a tile's one box by a map that has the first `columns` of it along k (narrowed), as
/// at the end of a tensor. Only the simulated machine, which holds maps against copies, asks.
template <class Copy> TEGULA_DEVICE Copy narrowed_copy([[maybe_unused]] int columns) {
  Copy result;
#if !TEGULA_GPU
  result.cut_k = Copy::spec.box_k - columns;
#endif
  return result;
}

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

/// Whether a mode of a tensor leads along the axis and no other.
template <int Axis, class M> inline constexpr bool leads_along = false;
template <int Axis, int... A, int... Extent, int... Step>
inline constexpr bool leads_along<Axis, Mode<Along<A, Extent, Step>...>> = (true && ... &&
                                                                            (A == Axis));
/// The copy's contiguous mode must be the map's axis 0.
template <TmaBoxes S, class G, int First, int... Rest>
TEGULA_DEVICE constexpr void check_order(Tma<First, Rest...> const*) {
  static_assert(leads_along<First, mode_at<S.contiguous == 0 ? 0 : 1, G>>,
                "copy: the boxes are contiguous along another mode than the map's axis 0, which "
                "tma_tensor<Order...> names first: tma_tensor<1, 0, 2> is (mn, k, batch) where k "
                "is contiguous, and tma_tensor<0, 1, 2> where mn is");
}

#if !TEGULA_GPU
/// Holds a map against the boxes that a copy takes it to have, some rows and columns fewer.
template <TmaBoxes S, int ElementBits, class G, int... Order>
void hold_map(Tma<Order...> const& space, int cut, int cut_k, SourceLocation where) {
  sim::BoxOfCopy expected{.rank = sizeof...(Order), .swizzle = S.swizzle, .bits = ElementBits};
  for (int& extent : expected.extent) extent = 1;
  using Across = mode_at<S.contiguous == 0 ? 1 : 0, G>;
  bool const along[] = {leads_along<Order, Across>...};
  int across = 1;
  for (int axis = static_cast<int>(sizeof...(Order)) - 1; axis > 0; --axis) {
    if (along[axis]) across = axis;
  }
  int const mn = S.box_mn - cut, k = S.box_k - cut_k;
  expected.extent[0] = S.contiguous == 0 ? mn : k;
  if (across < expected.rank) expected.extent[across] = S.contiguous == 0 ? k : mn;
  sim::hold_box(*space.map, expected, where);
}
#endif

/// Calls f(shared address, coordinate) for each box that this CTA moves.
template <TmaBoxes S, int Group, L2Policy Hint, int... Order, class G, class Tile, int Moved,
          class H, class F>
TEGULA_DEVICE void for_each_box(
    TmaCopy<S, Group, Hint> const& by, Tensor<Tma<Order...>, G> const& global,
    Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& shared, F f,
    SourceLocation where) {
  static_assert(G::rank == 2 && H::rank == 2,
                "copy: a tile has modes mn and k; slice the step and the stage");
  static_assert(mode_size<mode_at<0, G>> == S.box_mn * S.boxes_mn &&
                    mode_size<mode_at<1, G>> == S.box_k * S.boxes_k,
                "copy: the tile of the tensor is not as large as the TMA copy's");
  static_assert(BoxesFit<S, Tile>::value);
  check_order<S, G>(static_cast<Tma<Order...> const*>(nullptr));
  hold_thread<S.peers>("a TMA copy, whose thread is its rank among its peers,", by.rank, where);
#if !TEGULA_GPU
  hold_map<S, 8 * sizeof(typename Tile::Element), G>(global.space, by.cut, by.cut_k, where);
#endif
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
template <TmaBoxes S, int Group, L2Policy Hint, int... Order, class G, class Tile, int Moved,
          class H>
TEGULA_DEVICE void copy(TmaCopy<S, Group, Hint> const& by, Tensor<Tma<Order...>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SharedAddr full, SourceLocation where = SourceLocation::current()) {
  detail::for_each_box(
      by, from, to,
      [&](SharedAddr place, auto const& at) {
        constexpr int rank = sizeof...(Order);
        if constexpr (S.peers > 1) {
          tma_load_multicast<rank, Hint, Group>(place, *from.space.map, at, full, by.ctas, where);
        } else {
          tma_load<rank, Hint, Group>(place, *from.space.map, at, full, where);
        }
      },
      where);
}
/// Starts the TMA stores of a tile, by one thread, as part of its current bulk group.
template <TmaBoxes S, L2Policy Hint, int... Order, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(TmaCopy<S, 1, Hint> const& by,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Tensor<Tma<Order...>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  static_assert(S.peers == 1, "copy: a store is one CTA's");
  detail::for_each_box(
      by, to, from,
      [&](SharedAddr place, auto const& at) {
        tma_store<sizeof...(Order), Hint>(*to.space.map, at, place, where);
      },
      where);
}
/// As the store, combining each element with the tensor's.
template <TmaReduce Op, TmaBoxes S, L2Policy Hint, int... Order, class G, class Tile, int Moved,
          class H>
TEGULA_DEVICE void reduce(TmaCopy<S, 1, Hint> const& by,
                          Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                          Tensor<Tma<Order...>, G> const& to,
                          SourceLocation where = SourceLocation::current()) {
  static_assert(S.peers == 1, "reduce: a store is one CTA's");
  detail::for_each_box(
      by, to, from,
      [&](SharedAddr place, auto const& at) {
        tma_reduce<sizeof...(Order), Op, Hint>(*to.space.map, at, place, where);
      },
      where);
}
/// Brings the boxes that this CTA would load into L2.
template <TmaBoxes S, L2Policy Hint, int... Order, class G>
TEGULA_DEVICE void prefetch(TmaCopy<S, 1, Hint> const& by, Tensor<Tma<Order...>, G> const& from,
                            SourceLocation where = SourceLocation::current()) {
  static_assert(G::rank == 2, "prefetch: a tile has modes mn and k; slice the step");
  detail::check_order<S, G>(static_cast<Tma<Order...> const*>(nullptr));
  using Maps = detail::BoxMaps<S>;
  auto const own = partition<typename Maps::Peers, typename Maps::Boxes, 2>(from, by.rank, where);
#pragma unroll
  for (int i = 0; i < map_size<typename Maps::Boxes>; ++i)
    tma_prefetch<sizeof...(Order), Hint>(*from.space.map, own.at(where, i), where);
}

}  // namespace tegula
