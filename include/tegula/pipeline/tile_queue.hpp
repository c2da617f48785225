#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

/// Dynamic scheduling of a persistent grid: who has finished a tile takes the next that nobody
/// has taken.
namespace tegula {

/// What the CTAs of one launch count in global memory; all 0 before and after it.
struct alignas(8) TileCounter {
  std::uint32_t taken;     ///< tiles beyond the first of each CTA
  std::uint32_t finished;  ///< CTAs that take no more
};

/// The tiles of one CTA, for one thread of it. A CTA begins with the tile of its own index. It goes
/// on with the next that no CTA has taken, or, without a counter, with every `ctas`-th.
///
/// The launch needs the counter for itself: two at a time would take each other's tiles.
class TileDealer {
 public:
  TEGULA_DEVICE TileDealer(TileCounter* counter, int tiles, int ctas)
      : counter_(counter), tiles_(tiles), ctas_(ctas) {}

  TEGULA_DEVICE int first() const { return block_idx().x; }
  TEGULA_DEVICE bool is_tile(int tile) const { return tile < tiles_; }
  /// The tile after `tile`, which the CTA has. Ask early: the answer comes from memory.
  TEGULA_DEVICE int after(int tile, SourceLocation where = SourceLocation::current()) const {
    if (counter_ == nullptr) return tile + ctas_;
    return ctas_ + static_cast<int>(atom_add(&counter_->taken, 1u, where));
  }
  /// After the last tile: the last CTA to leave makes the counter what it was.
  TEGULA_DEVICE void leave(SourceLocation where = SourceLocation::current()) const {
    if (counter_ == nullptr) return;
    if (atom_add(&counter_->finished, 1u, where) + 1 == static_cast<std::uint32_t>(ctas_)) {
      atom_exch(&counter_->taken, 0u, where);
      atom_exch(&counter_->finished, 0u, where);
    }
  }

 private:
  TileCounter* counter_;
  int tiles_;
  int ctas_;
};

/// Hands tiles from the thread that takes them to the warps that compute them, `Stages` ahead:
/// their indices, or a struct of whole 16-byte pieces that says what they are.
///
///     full[s]:   from the thread that put a tile into stage s, to the warps
///     empty[s]:  from the warps, which have read it, to that thread
template <int Stages, int Readers, class Tile = int> class TileQueue {
  static constexpr int piece_bytes = sizeof(Tile) == 4 ? 4 : 16;
  static constexpr int pieces = sizeof(Tile) / piece_bytes;
  static_assert(std::is_trivially_copyable_v<Tile> && sizeof(Tile) == pieces * piece_bytes);
  struct Pieces {
    RegisterBits<piece_bytes> piece[pieces];
  };

 public:
  struct Storage {
    alignas(piece_bytes) Pieces tile[Stages];  // trivial, as shared memory is; a Tile need not be
    Mbarrier full[Stages];
    Mbarrier empty[Stages];
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("tile full", full);
      name("tile empty", empty);
    }
  };

  TEGULA_DEVICE explicit TileQueue(Storage const& storage)
      : tile_(shared_address(storage.tile)),
        full_(shared_address(storage.full)),
        empty_(shared_address(storage.empty)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE void init() const {
    for (int stage = 0; stage < Stages; ++stage) {
      mbarrier_init(full_ + 8 * stage, 1);
      mbarrier_init(empty_ + 8 * stage, Readers);
    }
  }

  /// By one thread.
  TEGULA_DEVICE void put(Tile const& tile, SourceLocation where = SourceLocation::current()) {
    mbarrier_wait_parity(empty_ + 8 * state_.stage, state_.parity ^ 1, where);
    auto const bits = bits_as<Pieces>(tile);
#pragma unroll
    for (int i = 0; i < pieces; ++i) st_shared(place(i), bits.piece[i], where);
    mbarrier_arrive(full_ + 8 * state_.stage, where);
    state_.next(where);
  }

  /// By all lanes of each warp that reads: the next tile, once it is there. Again: the same tile,
  /// until it is released.
  TEGULA_DEVICE Tile get(SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(full_ + 8 * state_.stage, state_.parity, where);
    return again(where);
  }
  TEGULA_DEVICE Tile again(SourceLocation where = SourceLocation::current()) const {
    Pieces bits;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      bits.piece[i] = ld_shared<RegisterBits<piece_bytes>>(place(i), where);
      // Of several words the compiler does not see that they are the same in all lanes.
      if constexpr (piece_bytes > 4)
        for (std::uint32_t& word : bits.piece[i].word)
          word = warp::shfl(word, 0, warp::kAllLanes, where);
    }
    return bits_as<Tile>(bits);
  }
  /// By the same: they need the tile's place no more.
  TEGULA_DEVICE void release(SourceLocation where = SourceLocation::current()) {
    warp::sync(warp::kAllLanes, where);  // all lanes have read
    if (lane_id() == 0) mbarrier_arrive(empty_ + 8 * state_.stage, where);
    state_.next(where);
  }

 private:
  TEGULA_DEVICE SharedAddr place(int piece) const {
    return tile_ + sizeof(Tile) * state_.stage + piece_bytes * piece;
  }

  SharedAddr tile_, full_, empty_;
  PipelineState<Stages> state_;
};

}  // namespace tegula
