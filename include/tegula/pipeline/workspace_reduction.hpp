#pragma once

#include <cstdint>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/vector.hpp"

namespace tegula {

/// Where the sums of a tile's parts come together: memory of the launch's own.
struct PartialSums {
  float* sums = nullptr;              ///< of each part of each tile of each CTA, by its warps
  std::uint32_t* arrivals = nullptr;  ///< of each warp of part 0; all 0 before and after a launch
};

/// The elements of `PartialSums::sums` that a warp leaves of one part: `values` of each lane.
TEGULA_HOST_DEVICE constexpr int sums_of_warp(int values) { return 32 * values; }

/// Adds up what several CTAs have summed of one tile, each over its part of K, in global memory:
/// any number of CTAs, in no cluster, which need not run at the same time.
///
///     each part:  its sums to memory | the warp meets | one lane: fence, arrival,
///                 polls until all parts have arrived, fence | the warp meets |
///                 its share of the tile: all parts' sums of some pieces, added in the order of K
///
/// Each warp works for itself, and reads what the warps of its own number wrote, so sums need no
/// layout but registers'. Pieces are dealt out in the order of arrival, which does not show: each
/// is added in one order, whoever adds it.
///
/// The wait has an end, and a CTA that has more to do does not wait at all: it leaves. Where a part
/// has left before the last one arrived, the last one adds all pieces by itself. So no part depends
/// on another one's running at the same time.
template <class Sums, class Piece> class WorkspaceReduction {
  static constexpr int values = Sums::size;
  static constexpr int vectors = Piece::size / 4;  // of four values, one instruction each
  using Quad = Vector<float, 4>;
  static_assert(values % Piece::size == 0 && Piece::size % 4 == 0);
  // Parts whose loads of a piece are in flight together: of some 64 registers.
  static constexpr int ahead = 16 / vectors > 1 ? 16 / vectors : 1;
  struct Loaded {
    Quad of[ahead][vectors];
  };

 public:
  static constexpr int pieces = values / Piece::size;  ///< that a warp's sums are added in

  /// The pieces that a warp finishes: first, first + step, ... of `pieces`.
  struct Share {
    int first, step;
  };

  /// Of a warp, for one of `parts` parts, 2 to 255. `slot` numbers the warps of all CTAs' tiles, as
  /// part 0 has them; those of each next part are `slots_of_part` further on.
  TEGULA_DEVICE WorkspaceReduction(PartialSums const& memory, int slot, int slots_of_part, int part,
                                   int parts)
      : sums_(memory.sums + std::int64_t{sums_of_warp(values)} * slot + 4 * lane_id()),
        stride_(std::int64_t{sums_of_warp(values)} * slots_of_part),
        arrivals_(memory.arrivals + slot),
        part_(part),
        parts_(parts) {}

  /// Leaves this part's sums, and tells the warp's share of them all: none where it left before the
  /// others had come. `waits`: it may wait for them. By all lanes of the warp.
  TEGULA_DEVICE Share give(Sums const& sums, bool waits,
                           SourceLocation where = SourceLocation::current()) {
    store(sums, where);
    warp::sync(warp::kAllLanes, where);  // all lanes have left their sums
    int first = pieces, step = 1;
    if (lane_id() == 0) meet(waits, first, step, where);
    warp::sync(warp::kAllLanes, where);  // so for all lanes, which a shuffle does not order
    return {warp::shfl(first, 0, warp::kAllLanes, where),
            warp::shfl(step, 0, warp::kAllLanes, where)};
  }

  /// Calls store(piece, sums) for each piece of the warp's share: the sums of all parts of the
  /// values from piece * Piece::size on. The next piece's are on their way meanwhile.
  template <class Store>
  TEGULA_DEVICE void take(Share const& share, Store&& store,
                          SourceLocation where = SourceLocation::current()) const {
    if (share.first >= pieces) return;
    Loaded loaded = {};  // all of it, or the compiler keeps registers for it in the main loop
    load(loaded, share.first, 0, where);
#pragma unroll 1
    for (int piece = share.first; piece < pieces; piece += share.step) {
      Piece sums;
#pragma unroll
      for (int i = 0; i < Piece::size; ++i) sums(i, where) = 0.0f;
      add(loaded, sums, 0, where);
#pragma unroll 1
      for (int part = ahead; part < parts_; part += ahead) {
        load(loaded, piece, part, where);
        add(loaded, sums, part, where);
      }
      if (piece + share.step < pieces) load(loaded, piece + share.step, 0, where);
      store(piece, sums);
    }
  }

  /// After the warp's share: who is the last to know that all had come leaves the arrivals as they
  /// were.
  TEGULA_DEVICE void leave(SourceLocation where = SourceLocation::current()) const {
    if (clears_) atom_exch(arrivals_, 0u, where);
  }

 private:
  // A word of arrivals counts the parts that have arrived, those that look at it no more, and those
  // that left before all had arrived.
  static constexpr std::uint32_t kArrived = 1;
  static constexpr std::uint32_t kDone = 1 << 8;
  static constexpr std::uint32_t kLeft = 1 << 16;
  static constexpr int kMask = 0xff;
  static constexpr int patience = 64;  // polls: some 30 us on an H200

  TEGULA_DEVICE static int arrived(std::uint32_t word) { return static_cast<int>(word) & kMask; }
  TEGULA_DEVICE static int done(std::uint32_t word) {
    return static_cast<int>(word / kDone) & kMask;
  }

  TEGULA_DEVICE float* vector_of(int part, int vector) const {
    return sums_ + stride_ * part + sums_of_warp(4) * vector;
  }

  TEGULA_DEVICE void store(Sums const& sums, SourceLocation where) const {
#pragma unroll
    for (int i = 0; i < values / 4; ++i) {
      Quad mine;
#pragma unroll
      for (int j = 0; j < 4; ++j) mine.data[j] = wgmma_value(sums(4 * i + j, where));
      st_global(vector_of(part_, i), mine, where);
    }
  }

  /// Of a piece, `ahead` parts' values from one on, as far as there are so many.
  TEGULA_DEVICE void load(Loaded& loaded, int piece, int part, SourceLocation where) const {
    float const* from = vector_of(part, piece * vectors);
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      if (part + j < parts_) {
#pragma unroll
        for (int i = 0; i < vectors; ++i)
          loaded.of[j][i] = ld_global<Quad>(from + sums_of_warp(4) * i, where);
      }
      from += stride_;
    }
  }
  TEGULA_DEVICE void add(Loaded const& loaded, Piece& sums, int part, SourceLocation where) const {
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      if (part + j < parts_) {
#pragma unroll
        for (int i = 0; i < Piece::size; ++i) sums(i, where) += loaded.of[j][i / 4].data[i % 4];
      }
    }
  }

  /// By one lane: arrives, and finds out the share.
  TEGULA_DEVICE void meet(bool waits, int& first, int& step, SourceLocation where) {
    fence_acq_rel<Scope::gpu>(where);  // the sums, before the arrival
    std::uint32_t const added = waits ? kArrived : kArrived + kDone + kLeft;
    std::uint32_t const before = atom_add(arrivals_, added, where);
    std::uint32_t word = before + added;
    bool const last = arrived(word) == parts_;
    if (!last && !waits) return;
    for (int polls = patience; arrived(word) != parts_; --polls) {
      if (polls > 0) {
        word = atom_add(arrivals_, 0u, where);
      } else {
        std::uint32_t const found = atom_cas(arrivals_, word, word + kDone + kLeft, where);
        if (found == word) return;
        word = found;
      }
    }
    fence_acq_rel<Scope::gpu>(where);  // what others left before theirs, before what follows
    bool const alone = word >= kLeft;
    if (waits) word = atom_add(arrivals_, kDone, where) + kDone;
    clears_ = done(word) == parts_;
    if (alone && !last) return;
    first = alone ? 0 : arrived(before);
    step = alone ? 1 : parts_;
  }

  float* sums_;          ///< this lane's first value of part 0
  std::int64_t stride_;  ///< elements from part to part
  std::uint32_t* arrivals_;
  int part_, parts_;
  bool clears_ = false;  ///< of lane 0
};

}  // namespace tegula
