#include <gtest/gtest.h>

#include <cstring>

#include "hopper_kernels.hpp"
#include "run_kernel.hpp"
#include "run_schedules.hpp"

/// Each instruction of sm_90 that is neither TMA nor wgmma on the simulated machine, under every
/// schedule, against a plain statement of what the PTX ISA says it does.
namespace tegula {
namespace {

using namespace hopper_kernels;
using Values = std::vector<std::uint32_t>;

/// Runs the kernel under every schedule; expects the same words of each.
template <class Kernel> void expect_out(Values const& in, Values const& expected) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Machine machine(options);
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << schedule_text(options);
  });
}

/// As `index` of a vector.
template <class T> std::size_t at(T index) { return static_cast<std::size_t>(index); }

TEST(HopperInstruction, ClusterRegistersCountCtasOfTheCluster) {
  Values expected;
  for (int cta = 0; cta < 48; ++cta) {
    int const x = cta % 6;
    int const y = cta / 6 % 4;
    int const z = cta / 24;
    for (int const word : {x % 2 + 2 * (y % 2), 4, x % 2, y % 2, 0, 2, 2, 1, x, y, z}) {
      expected.push_back(static_cast<std::uint32_t>(word));
    }
  }
  expect_out<ClusterRegisters>({}, expected);
}

TEST(HopperInstruction, ACtaWithoutAClusterIsOneOfItsOwn) {
  Values expected;
  for (std::uint32_t cta = 0; cta < 3; ++cta) {
    expected.insert(expected.end(), {0, 1, 0, 1, 1, 1, cta, 100 + 31 - 5});
  }
  expect_out<NoCluster>({}, expected);
}

TEST(HopperInstruction, LoadsFromAnotherCtaMoveOneToSixteenBytes) {
  auto const in = words(ClusterLoads::in_words);
  Values expected;
  for (int cta = 0; cta < 12; ++cta) {
    int const other = cta / 4 * 4 + (cta + 2) % 4;
    for (int lane = 0; lane < 32; ++lane) {
      auto const from = in.begin() + 8 * (32 * other + 31 - lane);
      expected.insert(expected.end(), from, from + 8);
    }
  }
  expect_out<ClusterLoads>(in, expected);
}

TEST(HopperInstruction, StoresToAnotherCtaMoveOneToSixteenBytes) {
  auto const in = words(ClusterStores::in_words);
  Values expected(in.end() - 8 * 32, in.end());  // CTA 0's are the last CTA's
  expected.insert(expected.end(), in.begin(), in.end() - 8 * 32);
  expect_out<ClusterStores>(in, expected);
}

TEST(HopperInstruction, ClusterBarrierSeparatesRounds) {
  using Kernel = ClusterBarrier<false>;
  auto const in = words(Kernel::in_words);
  auto expected = in;
  for (int round = 0; round < Kernel::rounds; ++round) {
    auto const before = expected;
    for (int rank = 0; rank < 4; ++rank) {
      for (int t = 0; t < 64; ++t) {
        expected[at(64 * rank + t)] = before[at(64 * rank + t)] * 3u +
                                      static_cast<std::uint32_t>(rank) +
                                      before[at(64 * ((rank + 1) % 4) + (t + 32) % 64)];
      }
    }
  }
  expect_out<ClusterBarrier<false>>(in, expected);
  expect_out<ClusterBarrier<true>>(in, expected);
}

TEST(HopperInstruction, MbarrierPhaseCompletesWithTheLastArrivalAndTheLastByte) {
  // Parity 0 of an even phase is not complete, parity 1 (the phase before) is; each is looked
  // at twice.
  constexpr std::uint32_t even = 2 + 16 * 2;
  constexpr std::uint32_t odd = 1 + 16 * 1;
  expect_out<MbarrierStates>({},
                             {even, even, odd, odd, odd, even, even, odd, odd, even, even, odd});
}

TEST(HopperInstruction, MbarrierPhasesKeepRoundsApart) {
  auto const in = words(MbarrierPhases::in_words);
  auto expected = in;
  for (int round = 0; round < MbarrierPhases::rounds; ++round) {
    auto const before = expected;
    for (int t = 0; t < 128; ++t) expected[at(t)] += 5 * before[at((t + 33) % 128)];
  }
  expect_out<MbarrierPhases>(in, expected);
}

TEST(HopperInstruction, MbarrierRingHandsOnEveryValue) {
  auto const in = words(MbarrierRing::in_words);
  Values expected;
  for (int step = 0; step < MbarrierRing::steps; ++step) {
    for (int lane = 0; lane < 32; ++lane) expected.push_back(in[at(32 * step + 31 - lane)]);
  }
  expect_out<MbarrierRing>(in, expected);
}

TEST(HopperInstruction, MbarrierTakesArrivalsFromEveryCtaOfTheCluster) {
  auto const in = words(MbarrierRemoteArrive::in_words);
  auto expected = in;
  for (int round = 0; round < MbarrierRemoteArrive::rounds; ++round) {
    auto const before = expected;
    for (auto& value : expected) {
      for (auto const word : before) value = 3 * value + word;
    }
  }
  expect_out<MbarrierRemoteArrive>(in, expected);
}

template <class V> void check_st_async() {
  using Kernel = StAsync<V>;
  auto const in = words(Kernel::in_words);
  Values expected;
  for (int rank = 0; rank < 2; ++rank) {
    for (int lane = 0; lane < 32; ++lane) {
      auto const from = in.begin() + (32 * (rank ^ 1) + 31 - lane) * Kernel::lane_words;
      expected.insert(expected.end(), from, from + Kernel::lane_words);
    }
  }
  expect_out<Kernel>(in, expected);
}

TEST(HopperInstruction, StAsyncStoresAndCompletesItsBytes) {
  check_st_async<std::uint32_t>();
  check_st_async<Pair>();
  check_st_async<Quad>();
}

TEST(HopperInstruction, ClusterRingHandsOnEveryValue) {
  auto const in = words(ClusterRing::in_words);
  Values expected;
  for (int cta = 0; cta < 10; ++cta) {
    auto const from = in.begin() + (cta ^ 1) * ClusterRing::steps * 32;
    expected.insert(expected.end(), from, from + ClusterRing::steps * 32);
  }
  expect_out<ClusterRing>(in, expected);
}

template <int Count, bool Transpose> void check_stmatrix() {
  using Kernel = Stmatrix<Count, Transpose>;
  auto const in = words(Kernel::in_words);
  std::uint16_t matrices[Count][8][8];
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < Count; ++i) {
      for (int half = 0; half < 2; ++half) {
        auto const value = static_cast<std::uint16_t>(in[at(Count * lane + i)] >> 16 * half);
        int const along = lane % 4 * 2 + half;
        (Transpose ? matrices[i][along][lane / 4] : matrices[i][lane / 4][along]) = value;
      }
    }
  }
  Values expected(Kernel::out_words);
  std::memcpy(expected.data(), matrices, sizeof(matrices));
  expect_out<Kernel>(in, expected);
}

TEST(HopperInstruction, StmatrixTakesTwoElementsOfARowFromEachLane) {
  check_stmatrix<1, false>();
  check_stmatrix<2, false>();
  check_stmatrix<4, false>();
}

TEST(HopperInstruction, StmatrixTransTakesTwoElementsOfAColumnFromEachLane) {
  check_stmatrix<1, true>();
  check_stmatrix<2, true>();
  check_stmatrix<4, true>();
}

TEST(HopperInstruction, ElectChoosesLaneZeroEachTime) {
  Values expected(64);
  expected[0] = expected[32] = 3;
  expect_out<ElectOne>({}, expected);
}

TEST(HopperInstruction, WarpgroupsPassRegistersOn) {
  auto const in = words(SetMaxRegisters::in_words);
  Values expected;
  for (int t = 0; t < 256; ++t) {
    std::uint32_t sum = 0;
    for (int step = 0; step < SetMaxRegisters::steps; ++step)
      sum = 7 * sum + in[at(128 * step + t % 128)];
    expected.push_back(sum);
  }
  expect_out<SetMaxRegisters>(in, expected);
}

TEST(HopperInstruction, FencesAndGridDependencyChangeNothing) {
  auto const in = words(FencesAndGridDependency::in_words);
  Values expected;
  for (std::uint32_t lane = 0; lane < 32; ++lane) expected.push_back(in[lane ^ 3]);
  expect_out<FencesAndGridDependency>(in, expected);
}

}  // namespace
}  // namespace tegula
