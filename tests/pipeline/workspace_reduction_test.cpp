// Parts of a tile that meet in global memory: who comes last, who waits and who does not, every
// piece is added once and in one order, and the word of arrivals is left as it was.

#include "tegula/pipeline/workspace_reduction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/explore.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/tiled_mma.hpp"

namespace tegula {
namespace {

struct ReduceParams {
  PartialSums memory;
  float* out;             ///< (lane, value)
  std::uint32_t* stored;  ///< of each piece, how often
  std::uint32_t waits;    ///< bit of a part: it waits for the others
  int parts;
};

/// What a lane has summed of a value. Sums of these depend on their order.
float summed(int part, int lane, int value) {
  float const odd = 1.0f + static_cast<float>(lane * 64 + value) / 4096.0f;
  return std::ldexp(part % 2 == 0 ? odd : -odd, (7 * part + value) % 27);
}

/// A warp in each CTA, of which every one has a part.
template <bool Concurrent> struct Reduced {
  using Params = ReduceParams;
  struct SharedStorage {};
  static constexpr int threads = 32;
  static constexpr bool concurrent = Concurrent;
  template <int N>
  using Accumulator =
      typename TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), 16, N}>::Accumulator;
  using Sums = Accumulator<64>;
  using Piece = Accumulator<16>;
  using Reduction = WorkspaceReduction<Sums, Piece>;

  void operator()(Params const& p, SharedStorage&) const {
    int const part = block_idx().x, lane = lane_id();
    Sums sums;
    for (int i = 0; i < Sums::size; ++i) sums(i) = summed(part, lane, i);
    Reduction reduction{p.memory, 0, 1, part, p.parts};
    auto const share = reduction.give(sums, (p.waits >> part & 1) != 0);
    reduction.take(share, [&](int piece, Piece& total) {
      for (int i = 0; i < Piece::size; ++i)
        st_global(p.out + (piece * Piece::size + i) * 32 + lane, float{total(i)});
      if (lane == 0) atom_add(p.stored + piece, 1u);
    });
    reduction.leave();
  }
};

/// A launch's memory, filled anew before each.
template <bool Concurrent> struct Launch {
  using Kernel = Reduced<Concurrent>;
  static constexpr int values = 32 * Kernel::Sums::size;

  sim::Machine machine;
  ReduceParams p;

  Launch(int parts, std::uint32_t waits, sim::Options const& options = {}) : machine(options) {
    auto const memory = [&](int words, char const* name) {
      return machine.allocate(4 * static_cast<std::size_t>(words), name);
    };
    p = {.memory = {.sums = static_cast<float*>(memory(values * parts, "sums")),
                    .arrivals = static_cast<std::uint32_t*>(memory(1, "arrivals"))},
         .out = static_cast<float*>(memory(values, "out")),
         .stored = static_cast<std::uint32_t*>(memory(Kernel::Reduction::pieces, "stored")),
         .waits = waits,
         .parts = parts};
    machine.fill(p.memory.arrivals, 0, 4);
  }
  sim::Report run() {
    machine.fill(p.memory.sums, 0xff, 4 * static_cast<std::size_t>(values * p.parts));
    machine.fill(p.out, 0xff, 4 * static_cast<std::size_t>(values));
    machine.fill(p.stored, 0, 4 * static_cast<std::size_t>(Kernel::Reduction::pieces));
    return sim::launch<Kernel>(machine, {p.parts, 1, 1}, p);
  }
  /// Everything that a launch leaves: D, how often each piece was stored, and the arrivals.
  std::vector<std::byte> left() {
    std::size_t const pieces = Kernel::Reduction::pieces;
    std::vector<std::byte> all(4 * (values + pieces + 1));
    machine.download(all.data(), p.out, 4 * static_cast<std::size_t>(values));
    machine.download(all.data() + 4 * values, p.stored, 4 * pieces);
    machine.download(all.data() + 4 * (values + pieces), p.memory.arrivals, 4);
    return all;
  }
  std::vector<std::byte> expected() const {
    std::vector<float> out(static_cast<std::size_t>(values));
    for (int value = 0; value < Kernel::Sums::size; ++value) {
      for (int lane = 0; lane < 32; ++lane) {
        float& sum = out[static_cast<std::size_t>(value * 32 + lane)];
        for (int part = 0; part < p.parts; ++part) sum += summed(part, lane, value);
      }
    }
    std::vector<std::uint32_t> counts(Kernel::Reduction::pieces, 1);
    counts.push_back(0);
    std::vector<std::byte> all(4 * (out.size() + counts.size()));
    std::memcpy(all.data(), out.data(), 4 * out.size());
    std::memcpy(all.data() + 4 * out.size(), counts.data(), 4 * counts.size());
    return all;
  }
};

template <bool Concurrent> void expect_sums(int parts, std::uint32_t waits) {
  for (int seed = 0; seed < 4; ++seed) {
    sim::Options options{.throw_on_finding = false};
    options.seed = static_cast<std::uint64_t>(seed);
    if (seed == 1) options.interleaving = sim::Interleaving::round_robin;
    if (seed > 1) options.interleaving = sim::Interleaving::random;
    Launch<Concurrent> launch(parts, waits, options);
    for (int again = 0; again < 2; ++again) {
      SCOPED_TRACE(testing::Message() << parts << " parts, those that wait: " << std::hex << waits
                                      << ", seed " << seed << ", launch " << again);
      sim::Report const report = launch.run();
      EXPECT_TRUE(report.ok()) << report.text();
      EXPECT_EQ(launch.left(), launch.expected());
    }
  }
}

TEST(WorkspaceReduction, AddsEveryPieceOnceWhoeverWaits) {
  for (int const parts : {2, 3, 5, 9}) {
    for (std::uint32_t const waits : {~0u, 0u, 1u, 2u, 0x155u, ~1u, ~4u}) {
      expect_sums<true>(parts, waits);
      expect_sums<false>(parts, waits);
    }
  }
}

// CTAs that run one after another have waited in vain, and the last adds all pieces alone; side by
// side they share.
TEST(WorkspaceReduction, PartsThatRunTogetherDoNotWaitInVain) {
  Launch<true> together(4, ~0u);
  Launch<false> alone(4, ~0u);
  EXPECT_LT(together.run().total.instructions + 3 * 16, alone.run().total.instructions);
}

TEST(WorkspaceReduction, HasOneResultInEveryOrder) {
  for (std::uint32_t const waits : {3u, 1u, 0u}) {
    Launch<true> launch(2, waits);
    sim::Exploration const e =
        sim::explore(launch.machine, [&] { launch.run(); },
                     {.max_executions = 20000, .result = [&] { return launch.left(); }});
    EXPECT_TRUE(e.ok()) << e.text();
    EXPECT_TRUE(e.complete) << e.text();
    EXPECT_GT(e.orders, 1);
    EXPECT_EQ(launch.left(), launch.expected());
  }
  Launch<true> three(3, 7u);
  sim::Exploration const e =
      sim::explore(three.machine, [&] { three.run(); },
                   {.max_executions = 2000, .result = [&] { return three.left(); }});
  EXPECT_TRUE(e.ok()) << e.text();
}

}  // namespace
}  // namespace tegula
