#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/atom/copy_atom.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tensor.hpp"
#if !TEGULA_GPU
#include "tegula/layout/text.hpp"
#endif

/// Tensors in shared memory: tiles, and what one thread sees of them.
///
/// A swizzle is linear over F2, so the address of thread t at step s is (address(t, 0) ^
/// x(s)) + a(s): what depends on the thread is computed once, a step costs an exclusive-or
/// with a constant, and, where it does not touch bits that vary with the thread, only an
/// immediate offset of the instruction. That this is so is proved for each tile, thread map
/// and step map (detail::Additive).
namespace tegula {

namespace detail {

template <class Tile> struct TileRank { static constexpr int value = Tile::layout.layout.rank(); };

template <class Tile> struct Contiguity {
  static constexpr bool along_mn = mn_contiguous(Tile::layout);
};

/// A mode's offsets in a tile, before its swizzle. That the composition exists is the proof that
/// they add.
template <class Tile, class M> struct TileOffsets {
  struct Source {
    static constexpr Layout value =
        make_layout(composition(Tile::layout.layout, ModeTraits<M>::make()));
  };
  using Type = mode_at<0, MapOf<Source>>;
};
template <class Tile, class M> using tile_offsets = typename TileOffsets<Tile, M>::Type;

/// The bits below `period` that any offset of the layout has.
constexpr std::int64_t offset_bits(Layout const& offsets, std::int64_t period) {
  std::int64_t mask = 0;
  bool disjoint = true;
  for (int i = 0; i < offsets.count; ++i) {
    std::int64_t leaf = 0;
    for (std::int64_t k = 0; k < offsets.extents[i] && k < period; ++k) {
      leaf |= k * offsets.strides[i] & (period - 1);
    }
    disjoint = disjoint && (mask & leaf) == 0;
    mask |= leaf;
  }
  if (disjoint) return mask;
  Layout plain = offsets;  // the offset as a number, not as a coordinate
  for (int i = 0; i < plain.count; ++i) plain.axes[i] = 0;
  mask = 0;
  for (std::int64_t i = 0; i < plain.size(); ++i) mask |= plain(i) & (period - 1);
  return mask;
}
/// The bits below `period` that differ between the swizzled offsets.
constexpr std::int64_t swizzled_bits(Swizzle const& swizzle, Layout const& offsets,
                                     std::int64_t period) {
  std::int64_t mask = 0;
  for (int i = 0; i < offsets.count; ++i) {
    for (std::int64_t k = 0; k < offsets.extents[i] && k < period; ++k) {
      mask |= swizzle(k * offsets.strides[i]) & (period - 1);
    }
  }
  return mask;
}
constexpr bool whole_periods(Layout const& offsets, std::int64_t period) {
  for (int i = 0; i < offsets.count; ++i) {
    if (offsets.extents[i] > 1 && offsets.strides[i] % period != 0) return false;
  }
  return true;
}

/// The leaves whose strides are whole periods of the swizzle, or the others; the rest stand still.
constexpr Layout leaves_of_periods(Layout offsets, std::int64_t period, bool whole) {
  for (int i = 0; i < offsets.count; ++i) {
    if ((offsets.strides[i] % period == 0) != whole) offsets.strides[i] = 0;
  }
  return offsets;
}

/// A mode's offsets as numbers and bits; Tile's swizzle given.
template <class Tile, class M> struct OffsetFacts {
  static constexpr Layout offsets = ModeTraits<tile_offsets<Tile, M>>::make();
  static constexpr std::int64_t period = Tile::layout.swizzle.period();
  static constexpr std::int64_t bits = offset_bits(offsets, period);
  static constexpr bool whole = whole_periods(offsets, period);
  static constexpr int swizzled =
      static_cast<int>(swizzled_bits(Tile::layout.swizzle, offsets, period));
  template <bool Whole> struct Part {
    static constexpr Layout value = make_layout(leaves_of_periods(offsets, period, Whole));
  };
};
template <class Tile, class Threads, bool Whole>
using thread_offsets = mode_at<0, MapOf<typename OffsetFacts<Tile, Threads>::template Part<Whole>>>;

template <class Map> struct AllModes;
template <class... Modes> struct AllModes<Map<Modes...>> {
  using Type = typename Grouped<Modes...>::Type;
};
template <> struct AllModes<Map<>> { using Type = Mode<>; };
template <class M> using all_modes = typename AllModes<M>::Type;

/// Refuses a thread map, steps and moves of the base whose offsets do not add below the swizzle's
/// period: then no exclusive-or with a constant leads from one step to another.
constexpr bool check_additive(SwizzledLayout const& tile, Layout const& threads,
                              Layout const& steps, std::int64_t moved, std::int64_t period) {
  std::int64_t const by_thread = offset_bits(threads, period), by_step = offset_bits(steps, period);
  if ((by_thread & by_step) != 0)
    refuse("partition", "the swizzle does not add: threads and steps share offset bits", tile,
           threads, steps);
  if (((by_thread | by_step) & moved) != 0)
    refuse("partition", "the swizzle does not add: a slice moved the base within its period", tile);
  return true;
}
template <class Tile, class Threads, class Steps, int Moved> struct Additive {
  // refused where a thread's step carries into another mode of the tile
  static constexpr Layout both = composition(
      Tile::layout.layout, make_layout(ModeTraits<Threads>::make(), ModeTraits<Steps>::make()));
  static constexpr bool value = both.count > 0 &&
                                check_additive(Tile::layout, OffsetFacts<Tile, Threads>::offsets,
                                               OffsetFacts<Tile, Steps>::offsets, Moved,
                                               Tile::layout.swizzle.period());
};

}  // namespace detail

/// A tile in shared memory as one of many threads sees it. Threads, a mode, maps a thread to the
/// tile coordinate of its base (Mode<>: all threads begin at the first element). Access names the
/// instruction that the addresses are meant for, where they are not those of elements (ldmatrix,
/// stmatrix: rows of matrices). Moved are the bits of the offset, below the swizzle's period, that
/// slices have moved the base by.
///
/// The simulated machine holds every address against the tile's layout.
template <class Tile, class Threads = Mode<>, CopyOp Access = CopyOp::universal, int Moved = 0>
class Shared {
 public:
  using Element = typename Tile::Element;
  using Memory = Tile;
  using ThreadMode = Threads;
  static constexpr CopyOp access = Access;
  static constexpr int tile_rank = detail::TileRank<Tile>::value;

  TEGULA_DEVICE explicit Shared(Tile const& tile, [[maybe_unused]] SourceLocation where)
      : Shared(shared_address(tile.data, where), where) {}
  /// Of the tile that begins at an address.
  TEGULA_DEVICE explicit Shared(SharedAddr base, [[maybe_unused]] SourceLocation where)
      : base_(base) {
    static_assert(std::is_same_v<Threads, Mode<>>,
                  "a tile is whole before it is shared out among threads");
    made(where);
#if !TEGULA_GPU
    if (sim::holds_layouts()) tile_ = base_;
#endif
  }

  /// Moves the base: at no cost where the mode's offsets are whole periods of the swizzle (stages);
  /// else the index is best known after unrolling.
  template <class M> TEGULA_DEVICE auto moved(int index) const {
    using Offsets = detail::tile_offsets<Tile, M>;
    using Facts = detail::OffsetFacts<Tile, M>;
    constexpr int bits = Facts::whole ? Moved : Moved | static_cast<int>(Facts::bits);
    static_assert((Moved & static_cast<int>(Facts::bits)) == 0,
                  "slice: the base has been moved by these bits of the offset already");
    Shared<Tile, Threads, Access, bits> result(*this);
    int const by = coordinate<0>(Offsets{}, index);
    if constexpr (Facts::whole) {
      result.base_ += static_cast<SharedAddr>(by * sizeof_element);
    } else {
      result.step_ += by;
    }
#if !TEGULA_GPU
    if (tile_ != 0) result.template advance<M>(index);
#endif
    return result;
  }

  template <class M> TEGULA_DEVICE auto begin_at(int thread, SourceLocation where) const {
    return begin_at<M, CopyOp::universal>(thread, where);
  }
  /// The tile as `thread` sees it, for an instruction.
  template <class M, CopyOp For>
  TEGULA_DEVICE auto begin_at(int thread, SourceLocation where) const {
    static_assert(std::is_same_v<Threads, Mode<>>,
                  "partition: the tensor is shared out among threads already");
    using Begins = detail::all_modes<M>;
    Shared<Tile, Begins, For, Moved> result(*this);
    result.base_ += Shared<Tile, Begins, For, Moved>::thread_offset(thread, where);
    result.made(where);
#if TEGULA_GPU
    // Opaque to the compiler, which otherwise computes the addresses of operands anew in every
    // loop. Not of copies' targets: those of several tiles would no longer share what they have
    // in common.
    if constexpr (For == CopyOp::ldmatrix || For == CopyOp::ldmatrix_trans)
      asm volatile("" : "+r"(result.base_));
#else
    if (tile_ != 0) result.template advance<Begins>(thread);
#endif
    return result;
  }

  /// The shared address at M's coordinate.
  template <class M, class... I>
  TEGULA_DEVICE SharedAddr at([[maybe_unused]] SourceLocation where, I... i) const {
    static_assert(detail::Additive<Tile, Threads, detail::all_modes<M>, Moved>::value);
    int const step = step_ + step_of(M{}, i...);
    int const low = swizzled(step & (period - 1), made_at());
    int const exclusive_or = low & thread_bits;
    int const add = (low & ~thread_bits) + (step & ~(period - 1));
    SharedAddr const result = (base_ ^ static_cast<SharedAddr>(exclusive_or * sizeof_element)) +
                              static_cast<SharedAddr>(add * sizeof_element);
#if !TEGULA_GPU
    if (tile_ != 0) hold_at<M>(result, where, i...);
#endif
    return result;
  }
  template <class M, class... I> TEGULA_DEVICE auto element(SourceLocation where, I... i) const {
#if !TEGULA_GPU
    detail::hold_indices<M>(where, i...);
#endif
    return ElementReference<Shared, SharedAddr>{at<M>(where, i...), where};
  }
  TEGULA_DEVICE static Element load(SharedAddr place, SourceLocation where) {
    return ld_shared<Element>(place, where);
  }
  TEGULA_DEVICE static void store(SharedAddr place, Element const& value, SourceLocation where) {
    st_shared(place, value, where);
  }

  /// The base, of a tile that is not shared out among threads.
  TEGULA_DEVICE SharedAddr base_address() const {
    static_assert(std::is_same_v<Threads, Mode<>>,
                  "the base of a thread's part is no address of the tile");
    return base_ + static_cast<SharedAddr>(step_ * sizeof_element);
  }

  /// The same place in the shared memory of the cluster's CTA `rank`: addresses for st_async and
  /// the like.
  TEGULA_DEVICE Shared in_peer(int rank, SourceLocation where) const {
    Shared result = *this;
    result.base_ = mapa(base_, rank, where);
#if !TEGULA_GPU
    if (tile_ != 0) result.tile_ = mapa(tile_, rank, where);
#endif
    return result;
  }

 private:
  template <class, class, CopyOp, int> friend class Shared;
  static constexpr int sizeof_element = sizeof(Element);
  static constexpr int period = static_cast<int>(Tile::layout.swizzle.period());
  static constexpr int thread_bits = detail::OffsetFacts<Tile, Threads>::swizzled;
  static constexpr bool swizzle_matters =
      !Tile::layout.swizzle.identity() && !detail::OffsetFacts<Tile, Threads>::whole;

  template <class T, CopyOp A, int B>
  TEGULA_DEVICE explicit Shared(Shared<Tile, T, A, B> const& other)
      : base_(other.base_), step_(other.step_) {
#if !TEGULA_GPU
    tile_ = other.tile_;
    for (int i = 0; i < kMaxTileRank; ++i) at_[i] = other.at_[i];
#endif
#if TEGULA_HAS_MUTABLE_VALUES
    made_at_ = other.made_at_;
#endif
  }

  TEGULA_DEVICE static SharedAddr thread_offset(int thread, SourceLocation where) {
    int const low = coordinate<0>(detail::thread_offsets<Tile, Threads, false>{}, thread);
    int const high = coordinate<0>(detail::thread_offsets<Tile, Threads, true>{}, thread);
    return static_cast<SharedAddr>(sizeof_element * (swizzled(low, where) + high));
  }
  template <class... Modes, class... I> TEGULA_DEVICE static int step_of(Map<Modes...>, I... i) {
    if constexpr (sizeof...(Modes) == sizeof...(I)) {
      return (0 + ... + coordinate<0>(detail::tile_offsets<Tile, Modes>{}, static_cast<int>(i)));
    } else {
      return coordinate<0>(detail::tile_offsets<Tile, detail::all_modes<Map<Modes...>>>{},
                           static_cast<int>(i)...);
    }
  }
  TEGULA_DEVICE static constexpr int swizzled(int offset, SourceLocation where) {
    constexpr Swizzle s = Tile::layout.swizzle;
    return is_swizzled<swizzle_matters>(where) ? s(offset) : offset;
  }
  TEGULA_DEVICE void made([[maybe_unused]] SourceLocation where) {
#if TEGULA_HAS_MUTABLE_VALUES
    made_at_ = where;
#endif
  }

#if !TEGULA_GPU
  static constexpr int kMaxTileRank = 5;
  static_assert(tile_rank <= kMaxTileRank, "a tile in shared memory has at most five modes");

  template <class M> void advance(int index) {
    [&]<int... Axis>(detail::NumberList<Axis...>) {
      ((at_[Axis] += coordinate<Axis>(M{}, index)), ...);
    }
    (typename detail::CountTo<tile_rank>::Type{});
  }
  template <class M, class... I>
  void hold_at(SharedAddr address, SourceLocation where, I... i) const {
    int coordinates[kMaxTileRank] = {};
    [&]<int... Axis>(detail::NumberList<Axis...>) {
      ((coordinates[Axis] = at_[Axis] + coordinate<Axis>(M{}, static_cast<int>(i)...)), ...);
    }
    (typename detail::CountTo<tile_rank>::Type{});
    hold(address, coordinates, where);
  }
  /// Reports an address that is not the element's, and an element outside of the tile. Not
  /// inlined: it would cost those who do not ask for it.
  [[gnu::noinline]] void hold(SharedAddr address, int const (&at)[kMaxTileRank],
                              SourceLocation where) const {
    std::int64_t linear = Tile::layout.offset;
    for (int mode = 0; mode < tile_rank; ++mode) {
      Layout const leaves = Tile::layout.layout[mode];
      if (at[mode] < 0 || at[mode] >= leaves.size()) return outside(at, where);
      linear += leaves(at[mode]);
    }
    SharedAddr const right =
        tile_ + static_cast<SharedAddr>(Tile::layout.swizzle(linear) * sizeof_element);
    if (address != right) [[unlikely]]
      sim::wrong_address(right, address, to_string(Tile::layout), made_at_, where);
  }

  void outside(int const (&at)[kMaxTileRank], SourceLocation where) const {
    Coordinate<tile_rank> place{}, extent{};
    for (int mode = 0; mode < tile_rank; ++mode) {
      place.at[mode] = at[mode];
      extent.at[mode] = static_cast<int>(Tile::layout.layout[mode].size());
    }
    detail::outside_tensor("the tile's extents", place, extent, where);
  }

  SharedAddr tile_ = 0;        ///< where it begins; 0: addresses are not held against its layout
  int at_[kMaxTileRank] = {};  ///< the coordinate of the base
#endif
#if TEGULA_HAS_MUTABLE_VALUES
  TEGULA_DEVICE SourceLocation made_at() const { return made_at_; }
  SourceLocation made_at_;
#else
  TEGULA_DEVICE static SourceLocation made_at() { return {}; }
#endif
  SharedAddr base_;
  int step_ = 0;
};

/// Shared memory of another CTA of the cluster: the same tensor there. Elements are read and
/// written by ld.shared::cluster and st.shared::cluster.
template <class S> struct Peer : S {
  TEGULA_DEVICE explicit Peer(S const& there) : S(there) {}
  template <class M> TEGULA_DEVICE auto moved(int index) const {
    auto const there = S::template moved<M>(index);
    return Peer<std::remove_const_t<decltype(there)>>(there);
  }
  template <class M> TEGULA_DEVICE auto begin_at(int thread, SourceLocation where) const {
    auto const there = S::template begin_at<M>(thread, where);
    return Peer<std::remove_const_t<decltype(there)>>(there);
  }
  template <class M, class... I> TEGULA_DEVICE auto element(SourceLocation where, I... i) const {
#if !TEGULA_GPU
    detail::hold_indices<M>(where, i...);
#endif
    return ElementReference<Peer, SharedAddr>{S::template at<M>(where, i...), where};
  }
  TEGULA_DEVICE static typename S::Element load(SharedAddr place, SourceLocation where) {
    return ld_shared_cluster<typename S::Element>(place, where);
  }
  TEGULA_DEVICE static void store(SharedAddr place, typename S::Element const& value,
                                  SourceLocation where) {
    st_shared_cluster(place, value, where);
  }
};

namespace detail {
template <class Tile> struct WholeTile {
  struct Source {
    static constexpr Layout make() {
      Layout result;
      for (int mode = 0; mode < Tile::layout.layout.rank(); ++mode) {
        append_mode(result, along(mode, Tile::layout.layout[mode].size(), 1));
      }
      wrap(result);
      return result;
    }
    static constexpr Layout value = make();
  };
  using Type = MapOf<Source>;
};
}  // namespace detail

/// A tile in shared memory as a tensor: (mn, k[, stages]), or whatever its modes are.
/// (CuTe: make_tensor(make_smem_ptr(p), layout).)
template <class T, auto L>
TEGULA_DEVICE auto tensor(SharedTile<T, L> const& tile,
                          SourceLocation where = SourceLocation::current()) {
  using Tile = SharedTile<T, L>;
  return Tensor<Shared<Tile>, typename detail::WholeTile<Tile>::Type>{Shared<Tile>(tile, where)};
}

/// The rows of 16 bytes whose addresses `thread` gives to ldmatrix or stmatrix, of a tile (mn, k[,
/// ...]): Threads maps a thread to the coordinate of its first row, Steps the instructions' modes
/// to coordinates from there on. The modes beyond the tile's follow.
template <class Threads, class Steps, CopyOp Op, class Space, class M>
TEGULA_DEVICE auto matrix_rows(Tensor<Space, M> const& tile, int thread,
                               SourceLocation where = SourceLocation::current()) {
  using Begins = compose_t<take_t<0, 2, M>, Threads>;
  using Own = concat_t<compose_t<take_t<0, 2, M>, Steps>, take_t<2, M::rank, M>>;
  return detail::make_tensor<Own>(tile.space.template begin_at<Begins, Op>(thread, where));
}

/// The same tensor in the shared memory of the cluster's CTA `rank`.
template <class Tile, class Threads, CopyOp A, int B, class M>
TEGULA_DEVICE auto in_peer(Tensor<Shared<Tile, Threads, A, B>, M> const& t, int rank,
                           SourceLocation where = SourceLocation::current()) {
  using There = Peer<Shared<Tile, Threads, A, B>>;
  return Tensor<There, M>{There(t.space.in_peer(rank, where))};
}

namespace detail {
/// Wavefronts beyond the fewest possible of a warp whose lanes each access `Bytes` bytes along
/// `Contiguous` of a tile, at the places that the mode Threads maps them to.
template <class Tile, class Threads, int Contiguous, int Bytes>
inline constexpr int warp_conflicts =
    conflicts(Tile::layout, composition(ModeTraits<Threads>::make(), layout(32)), Contiguous,
              8 * sizeof(typename Tile::Element), Bytes);
}  // namespace detail

/// Bank conflicts, in wavefronts beyond the fewest, of a warp whose lanes each access `Bytes` bytes
/// of a tile where the map Threads leads them, along the tile's contiguous axis.
template <class Tile, class Threads, int Bytes>
inline constexpr int conflicts_of_threads =
    detail::warp_conflicts<Tile, mode_at<0, Threads>, detail::Contiguity<Tile>::along_mn ? 0 : 1,
                           Bytes>;

}  // namespace tegula
