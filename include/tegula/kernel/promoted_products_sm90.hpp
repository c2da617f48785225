#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/shared.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/kernel/promotion_sm90.hpp"
#include "tegula/pipeline/group_tiles.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {

/// The main loop of a consumer warpgroup of GroupedGemmSm90 (Kernel) with scales.
///
/// The tensor core multiplies a wave's 128 of K to partial sums, which are promoted while it has
/// other products: the other consumer's, and where there are registers for a second set of partial
/// sums, this one's next. What stands between one product and the next is short: scales are read
/// before the products that they belong to (read under them, they took shared memory's bandwidth
/// from the tensor core, and groups of k were 7 % slower); descriptors are known to be the same in
/// all lanes; where a stage's release goes is worked out before; and the code of some steps is one
/// piece, so that the next stage is asked for before the promotion.
template <class Kernel> class PromotedProductsSm90 {
  static constexpr GroupedGemmSm90Config C = Kernel::config;
  using Params = GroupedGemmSm90Params;
  using Storage = typename Kernel::SharedStorage;
  using Ring = typename Kernel::Ring;
  using Steps = typename Kernel::Steps;
  using Mma = typename Kernel::Mma;
  using Accumulator = typename Kernel::Accumulator;
  using M = typename Accumulator::Map;
  static constexpr int waves = Kernel::waves;
  static constexpr bool column_scales = Kernel::column_scales;
  static constexpr int partials = tegula::partials(C);
  static constexpr int own_rows = count_along<M, 0>;
  static constexpr int mma_k = Kernel::block_k / Mma::k;
  /// The product of all waves.
  using Whole = TiledMma<TiledMmaSpec{.atom = Mma::spec.atom,
                                      .m = C.block_m,
                                      .n = C.block_n,
                                      .groups_m = Kernel::consumers,
                                      .share = Share::raked}>;
  /// Whether the columns of a tile may be of two blocks of B.
  static constexpr bool straddles = !column_scales && kScaleBlock % C.block_n != 0;
  // Tiles begin at multiples of this, modulo 128, and so do the blocks of B in a tile. No tile has
  // columns of three.
  static constexpr int unit = C.block_n % 128 == 0  ? 128
                              : C.block_n % 64 == 0 ? 64
                              : C.block_n % 32 == 0 ? 32
                                                    : 16;
  static constexpr int stages = Kernel::stages;
  /// Whether pieces of code of several steps are whole rounds of the ring, which begin at stage 0:
  /// so the compiler knows all addresses of a piece, and nothing that depends on the stage stands
  /// between the wait for it and its products. Single steps lead up to stage 0. Not for one
  /// consumer alone, which has two products in flight: the end of a piece interrupts them. Nor for
  /// tiles of two waves, which were 1 % slower with it (decision 181).
  static constexpr bool by_rounds =
      partials == 1 && waves == 1 && stages <= 8 && !(straddles && unit < 32);
  /// Steps that are one piece of code: the most, the fewer, or single ones. Where that code is
  /// there for each place at which blocks may meet, a piece of it is shorter, for the instruction
  /// cache, and shorter still where these places are many.
  static constexpr int fewer_steps = by_rounds                ? stages
                                     : straddles && unit < 32 ? 2
                                                              : 4,
                       most_steps = straddles || column_scales || (by_rounds && stages > 4)
                                        ? fewer_steps
                                        : 2 * fewer_steps;
  static constexpr int window = kWarpSize / most_steps * most_steps;

 public:
  TEGULA_DEVICE PromotedProductsSm90(Params const& params, Storage& storage, Ring const& ring,
                                     int thread)
      : p_(params),
        smem_(storage),
        ring_(ring),
        thread_(thread),
        tCsA_(uniform(Whole{thread}.partition_a(tensor(storage.a)))),
        tCsB_(uniform(Mma{thread}.partition_b(tensor(storage.b)))) {
    Coordinate<2> const origin = Mma{thread}.origin_c();
    scales_a_ = hidden(shared_address(storage.scale_a.data) + 4 * origin[0]);
    if constexpr (column_scales)
      scales_b_ = hidden(shared_address(storage.scale_b.data) + 4 * origin[1]);
  }

  /// B's scales of a tile, where its rows share them: those of its first block of columns, and of
  /// the next where it may be of two. They are on their way from memory.
  struct Scales {
    StepValues<window> first, second;
  };
  TEGULA_DEVICE Scales scales_of(GroupTile const& tile, int n, Steps steps,
                                 typename Ring::State const& state) const {
    Scales result;
    if constexpr (!column_scales) {
      float const* const of_tile = first_scale(tile, n) + steps.first;
      int const skipped = steps_before(state);
      result.first = {of_tile, steps.count(), skipped};
      if constexpr (straddles) result.second = {of_tile + next_block(n), steps.count(), skipped};
    }
    return result;
  }

  /// tCrC += the sum over the steps of the scaled product of each, promoted to f32 one by one, of a
  /// tile whose first column is n. `scales`: scales_of(tile, n, steps, state).
  TEGULA_DEVICE void add_to(Accumulator (&tCrC)[waves], typename Ring::State& state,
                            GroupTile const& tile, int n, Steps steps, Scales const& scales) const {
    if constexpr (!straddles) {
      promote_steps<C.block_n>(tCrC, state, tile, steps, scales);
    } else {  // where B's blocks meet within the tile is known in each of these loops
      promote_by_split<unit>(tCrC, state, tile, n, steps, scales);
    }
  }

 private:
  static_assert(column_scales || C.block_n <= kScaleBlock + unit);

  template <int Split>
  TEGULA_DEVICE void promote_by_split(Accumulator (&tCrC)[waves], typename Ring::State& state,
                                      GroupTile const& tile, int n, Steps steps,
                                      Scales const& scales) const {
    if constexpr (Split >= kScaleBlock) {
      promote_steps<Split>(tCrC, state, tile, steps, scales);
    } else {
      if (kScaleBlock - n % kScaleBlock == Split) {
        promote_steps<Split>(tCrC, state, tile, steps, scales);
      } else {
        promote_by_split<Split + unit>(tCrC, state, tile, n, steps, scales);
      }
    }
  }

  /// The same, where the first Split columns of the tile are of one block of B.
  template <int Split>
  TEGULA_DEVICE void promote_steps(Accumulator (&tCrC)[waves], typename Ring::State& state,
                                   GroupTile const& tile, Steps steps, Scales const& scales) const {
    SharedAddr const scales_a = scales_a_ + 4 * (tile.m % 4);
    StepValues<window> first_block = scales.first, second_block = scales.second;
    int at = steps_before(state);  // the step of the window
    if constexpr (by_rounds && !column_scales) first_block.advance(at);
    if constexpr (by_rounds && Split < C.block_n) second_block.advance(at);

    // What is in the tensor core, or comes from there: the partial sums of a wave, and their
    // scales.
    Accumulator tCrP[partials];  // (MMA, 1, 1) each
    float of_a[partials][own_rows];
    ColumnScales<M> of_columns;
    int read = state.stage;                 // the stage that the tensor core reads
    bool is_full = ring_.test_wait(state);  // the next stage: asked for before a promotion

    // Starts the products of a wave of the next step.
    auto const issue = [&](int wave, int to, bool asked) {
      if (wave == 0 && !(asked && is_full)) ring_.wait(state);
#pragma unroll
      for (int r = 0; r < own_rows; ++r)
        of_a[to][r] =
            ld_shared<float>(scales_a + 4 * (Kernel::scale_slot * (waves * state.stage + wave) +
                                             step_along<0>(M{}, r)));
      if constexpr (column_scales)
        load_column_scales<M>(scales_b_ + 4 * C.block_n * state.stage, of_columns);
      wgmma_pin(tCrP[to]);
      wgmma_fence();  // the registers of tCrP, before the first wgmma that uses them
      gemm(Mma{thread_}, local_tile<1, mma_k>(tCsA_(_, _, state.stage), wave, 0),
           tCsB_(_, _, state.stage), tCrP[to], false);
      wgmma_commit_group();
      if (wave + 1 == waves) state.next();
    };
    // B's scales of a step of a piece, by shuffles: asked for under the promotion of the step
    // before.
    auto const block_scales = [&](int step) {
      ScalePair result;
      if constexpr (!column_scales) result.first = first_block.of(step);
      if constexpr (Split < C.block_n) result.second = second_block.of(step);
      return result;
    };
    auto const next_scales = [&](int count) {
      at += count;
      if (at == window) {
        at = 0;
        if constexpr (!column_scales) first_block.next();
        if constexpr (Split < C.block_n) second_block.next();
      } else {
        if constexpr (!column_scales) first_block.advance(count);
        if constexpr (Split < C.block_n) second_block.advance(count);
      }
    };
    // Several steps as one piece of code, at whose end the tensor core is empty.
    auto const promote_piece = [&](auto steps_of_piece) {
      constexpr int count = decltype(steps_of_piece)::value, products = waves * count;
      if constexpr (by_rounds && count > 1) state.stage = read = 0;  // as they are
      ScalePair of_b = block_scales(0);
      issue(0, 0, true);
#pragma unroll
      for (int i = 0; i < products; ++i) {
        int const step = i / waves, wave = i % waves, from = i % partials;
        bool const more = i + 1 < products, last_wave = wave + 1 == waves;
        int const next_wave = (i + 1) % waves;
        if (partials > 1 && more) issue(next_wave, (i + 1) % partials, false);
        SharedAddr const told = last_wave ? ring_.told_at(read) : 0;
        if (partials > 1 && more) {
          wgmma_wait_group<1>();
        } else {
          wgmma_wait_group<0>();
        }
        wgmma_pin(tCrP[from]);
        if (last_wave) {
          warp::sync();  // all lanes have read their scales
          ring_.release_at(told);
          read = next_stage<Kernel::stages>(read);
        }
        ScalePair const of_next = last_wave && more ? block_scales(step + 1) : of_b;
        if (!more) is_full = ring_.test_wait(state);
        if constexpr (column_scales) {
          promote_by_columns(of_a[from], of_columns, tCrP[from], tCrC[wave]);
        } else {
          promote<Split>(of_a[from], of_b, tCrP[from], tCrC[wave]);
        }
        of_b = of_next;
        if (partials == 1 && more) issue(next_wave, 0, false);
      }
      next_scales(count);
    };
    // Of whole steps; the last may reach beyond the K of the group, into another one's.
    int const whole = Kernel::ends_early(p_, tile, steps.last - 1) ? steps.last - 1 : steps.last;
    int left = whole - steps.first;
    auto const promote_as_one = [&](auto count) {
      promote_piece(count);
      left -= decltype(count)::value;
    };
    constexpr std::integral_constant<int, most_steps> most;
    constexpr std::integral_constant<int, fewer_steps> fewer;
    constexpr std::integral_constant<int, 1> single;
#pragma unroll 1
    while (left > 0) {
      bool const begins = !by_rounds || state.stage == 0;
      if (begins && left >= most_steps && at % most_steps == 0) {
#pragma unroll 1
        do promote_as_one(most);
        while (left >= most_steps);
      } else if (most_steps > fewer_steps && begins && left >= fewer_steps) {
        promote_as_one(fewer);
      } else {
        promote_as_one(single);
      }
    }
    if (whole < steps.last) {
      ring_.wait(state);
      Kernel::clear_beyond(smem_, state.stage, tile, whole, thread_);
      promote_piece(single);
    }
  }

  /// How many steps of a window of scales the ring is ahead of stage 0, where pieces begin.
  TEGULA_DEVICE static int steps_before(typename Ring::State const& state) {
    return by_rounds ? state.stage : 0;
  }

  /// B's scales of the tile's first block of columns, one for each step; and how far on those of
  /// the next block are.
  TEGULA_DEVICE float const* first_scale(GroupTile const& tile, int n) const {
    BlockScales const& b = p_.b_blocks;
    int const group = p_.tiles.grouping == Grouping::k ? 0 : tile.group, block = n / kScaleBlock;
    if (block >= b.blocks_n) return b.scale;  // a tile of the cluster behind the last column
    return b.scale + (static_cast<std::int64_t>(group) * b.blocks_n + block) * b.blocks_k +
           tile.k_block;
  }
  TEGULA_DEVICE int next_block(int n) const {
    return n / kScaleBlock + 1 < p_.b_blocks.blocks_n ? p_.b_blocks.blocks_k : 0;
  }

  Params const& p_;
  Storage& smem_;
  Ring const& ring_;
  int thread_;
  decltype(uniform(Whole{0}.partition_a(tensor(smem_.a)))) tCsA_;  // (waves, MMA_K, stages)
  decltype(uniform(Mma{0}.partition_b(tensor(smem_.b)))) tCsB_;    // (1, MMA_K, stages)
  SharedAddr scales_a_, scales_b_ = 0;                             // the thread's, of stage 0
};

}  // namespace tegula
