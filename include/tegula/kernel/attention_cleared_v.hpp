#pragma once

#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// V of attention_sm100 with `serving`, between TMA and the tensor core: a warp clears what lies
/// behind a sequence's last key, which may be anything, NaN included.
///
///     V full[s]:     from TMA, to this warp
///     cleared[s]:    from this warp, to the thread that multiplies, for every stage
///     V empty[s]:    from that thread's products, by tcgen05_commit, and from this warp, to TMA:
///                    a commit speaks of the products alone, and TMA writes over the zeros, too
///
/// So a stage is cleared once for each time it is filled, and has the parity of the V ring's.
template <auto C> class ClearedV {
 public:
  using State = PipelineState<C.stages>;
  struct Storage {
    Mbarrier cleared[C.stages];
    template <class F> void name_buffers(F&& name) { name("V cleared", cleared); }
  };

  TEGULA_DEVICE explicit ClearedV(Storage const& storage)
      : cleared_(shared_address(storage.cleared)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE void init() const {
    for (int stage = 0; stage < C.stages; ++stage) mbarrier_init(cleared_ + 8 * stage, 1);
  }

  /// Who multiplies: waits until the stage is there, and cleared.
  TEGULA_DEVICE void wait(State const& state,
                          SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(cleared_ + 8 * state.stage, state.parity, where);
  }

  /// A warp: every block of V of every tile, in the order in which they are loaded.
  template <class Tiles, class Roles>
  TEGULA_DEVICE static void clear_all(AttentionSm90Params const& p, Roles& role) {
    State v;
    auto const sV = tensor(role.smem.v);  // (head_dim_v, block_n, stages)
    ClearedV const cleared(role.smem.cleared);
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      typename Tiles::Work const work(p, tile);
      KeyBlocks const blocks = work.blocks();
      int used = keys_to_keep<C>(p.serving, work);  // of the block that is loaded first
      role.queue.release();
#pragma unroll 1
      for (int n = blocks.first; n < blocks.last; ++n) {
        role.ring_v.wait(v);
        if (used < C.block_n) clear_values_from<C, 32>(used, sV(_, _, v.stage), lane_id());
        used = C.block_n;
        warp::sync();  // all lanes have written
        if (lane_id() == 0) mbarrier_arrive(cleared.cleared_ + 8 * v.stage);
        role.ring_v.release(v.stage);
        v.next();
      }
    }
  }

 private:
  SharedAddr cleared_;
};

/// What a configuration without `serving` has in its storage.
struct NothingCleared {
  template <class F> void name_buffers(F&&) {}
};

}  // namespace tegula
