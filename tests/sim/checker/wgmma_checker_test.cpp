// Kernels with one mistake each in their use of wgmma, and the finding each must give.
#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "operand_tiles.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"

namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

constexpr MmaSpec kOp = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 16);
constexpr MmaSpec kFromRegisters =
    warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 16, Major::k, Major::k, MmaOperands::rs);

/// Base of the broken kernels: a warpgroup, and operands of 64 x 64 and 16 x 64 in shared memory.
struct BrokenWgmma {
  using Params = Buffers;
  using TileA = SharedTile<std::uint16_t, swizzled_operand(16, 64, 64, 1)>;
  using TileB = SharedTile<std::uint16_t, swizzled_operand(16, 16, 64, 1)>;
  using SharedStorage = OperandTiles<TileA, TileB>;
  static constexpr int threads = 128;

  /// Writes zeros to all of a tile but the first `left_out` bytes.
  template <class Tile> static void clear(Tile const& tile, int left_out = 0) {
    for (int at = left_out + 4 * thread_idx(); at < static_cast<int>(sizeof(tile.data)); at += 512)
      st_shared(shared_address(tile.data) + static_cast<SharedAddr>(at), 0u);
  }
  static void clear_both(SharedStorage& smem) {
    clear(smem.a);
    clear(smem.b);
    fence_proxy_async_shared();
    cta::sync();
  }
};

struct NoFence : BrokenWgmma {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), false);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, TheFirstNeedsAFence) {
  Finding const f = only_finding(report_of<NoFence>(), FindingKind::register_race, NoFence::line);
  EXPECT_EQ(f.message, "the warpgroup's first wgmma.mma_async comes after no wgmma.fence");
  EXPECT_EQ(f.order, "a wgmma_fence before it would order it after the writes to its registers");
}

struct ScaledWithoutFence : BrokenWgmma {
  static constexpr int line = __LINE__ + 9;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    wgmma_fence();
    for (int step = 0; step < 3; ++step) {
      if (step == 2 && thread_idx() == 37) d[3] = 1.0f;
      // Without a fence the second is in order (nobody wrote its accumulators), and the third
      // is not.
      wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
      wgmma_commit_group();
      wgmma_wait_group<0>();
    }
  }
};

TEST(WgmmaChecker, RegistersThatWereWrittenNeedAFence) {
  Finding const f = only_finding(report_of<ScaledWithoutFence>(), FindingKind::register_race,
                                 ScaledWithoutFence::line);
  EXPECT_EQ(
      f.message,
      "d[3], row 25, column 3 of D was written since the wgmma.mma_async before (checker/wgmma_checker_test.cpp:" +
          std::to_string(ScaledWithoutFence::line) + "), without a wgmma.fence after that");
  EXPECT_EQ(f.order, "a wgmma_fence between the two would order them");
  EXPECT_EQ(f.other.line, ScaledWithoutFence::line);
}

template <bool Fence> struct RewritesAWithoutFence : BrokenWgmma {
  static constexpr MmaSpec op =
      warpgroup_mma(kOp.a, kOp.b, kOp.d, kOp.n, Major::k, Major::k, MmaOperands::rs);
  static constexpr int line = __LINE__ + 10;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    std::uint32_t a[4] = {};
    wgmma_fence();
    for (int step = 0; step < 3; ++step) {
      // Without a fence the second is in order, for nobody wrote what it reads.
      if (step == 2 && thread_idx() == 37) a[1] = 1;
      if (Fence) wgmma_fence();
      wgmma<op>(d, a, matrix_descriptor(tensor(smem.b)), true);
      wgmma_commit_group();
      wgmma_wait_group<0>();
    }
  }
};

TEST(WgmmaChecker, RegistersOfAThatWereWrittenNeedAFence) {
  EXPECT_TRUE(report_of<RewritesAWithoutFence<true>>().ok());
  using Kernel = RewritesAWithoutFence<false>;
  Finding const f = only_finding(report_of<Kernel>(), FindingKind::register_race, Kernel::line);
  EXPECT_EQ(f.warp, 1);
  EXPECT_EQ(f.lane, 5);
  EXPECT_NE(f.message.find("registers of A were written since the wgmma.mma_async before"),
            std::string::npos)
      << f.message;
  EXPECT_EQ(f.order, "a wgmma_fence between the two would order them");
}

/// What is done to registers between a wgmma.fence and the wgmma.
enum class After { nothing, d, a, d_of_other_shape, d_that_is_cleared, d_in_flight_at_fence };
template <After What, bool Fence> struct WritesAfterTheFence : BrokenWgmma {
  static constexpr MmaSpec op =
      warpgroup_mma(kOp.a, kOp.b, kOp.d, kOp.n, Major::k, Major::k, MmaOperands::rs);
  static constexpr MmaSpec narrow =
      warpgroup_mma(kOp.a, kOp.b, kOp.d, 8, Major::k, Major::k, MmaOperands::rs);
  static constexpr int line = __LINE__ + 18;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    std::uint32_t a[4] = {};
    for (int step = 0; step < 4; ++step) {
      if (step == 2 && What == After::d_of_other_shape) {
        wgmma_fence();
        wgmma<narrow>(reinterpret_cast<float(&)[4]>(d), a, matrix_descriptor(tensor(smem.b)), true);
        wgmma_commit_group();
        wgmma_wait_group<0>();
      }
      wgmma_fence();
      bool const here = step == 2 && thread_idx() == 37;
      if (here && What == After::a) a[1] = 1;
      if (here && (What == After::d || What == After::d_that_is_cleared)) d[3] = 1.0f;
      if (Fence) wgmma_fence();
      bool const adds = What != After::d_that_is_cleared || step != 2;
      wgmma<op>(d, a, matrix_descriptor(tensor(smem.b)), adds);
      if (What == After::d_in_flight_at_fence) wgmma_fence();
      wgmma_commit_group();
      wgmma_wait_group<0>();
      if (here) d[2] += 1.0f, a[2] = 7;
    }
  }
};

TEST(WgmmaChecker, RegistersThatWereWrittenAfterTheFenceNeedAnother) {
  EXPECT_TRUE((report_of<WritesAfterTheFence<After::d, true>>().ok()));
  EXPECT_TRUE((report_of<WritesAfterTheFence<After::a, true>>().ok()));
  for (sim::Report const& report :
       {report_of<WritesAfterTheFence<After::nothing, false>>(),
        report_of<WritesAfterTheFence<After::d_of_other_shape, false>>(),
        report_of<WritesAfterTheFence<After::d_that_is_cleared, false>>(),
        report_of<WritesAfterTheFence<After::d_in_flight_at_fence, false>>()})
    EXPECT_TRUE(report.ok()) << report.text();
  using OfD = WritesAfterTheFence<After::d, false>;
  Finding const d = only_finding(report_of<OfD>(), FindingKind::register_race, OfD::line);
  EXPECT_EQ(d.message,
            "d[3], row 25, column 3 of D was written since the last wgmma.fence "
            "(checker/wgmma_checker_test.cpp:" +
                std::to_string(OfD::line - 6) + "), and this wgmma.mma_async reads that");
  EXPECT_EQ(d.warp, 1);
  EXPECT_EQ(d.lane, 5);
  using OfA = WritesAfterTheFence<After::a, false>;
  Finding const a = only_finding(report_of<OfA>(), FindingKind::register_race, OfA::line);
  EXPECT_EQ(a.message.find("registers of A were written since the last wgmma.fence"), 0u)
      << a.message;
}

template <bool Wait> struct WritesAccumulatorInFlight : BrokenWgmma {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    if constexpr (Wait) wgmma_wait_group<0>();
    if (thread_idx() == 70) d[5] = 1.0f;
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, AccumulatorsInFlightAreLeftAlone) {
  EXPECT_TRUE(report_of<WritesAccumulatorInFlight<true>>().ok());
  Finding const f =
      only_finding(report_of<WritesAccumulatorInFlight<false>>(), FindingKind::register_race,
                   WritesAccumulatorInFlight<false>::line);
  EXPECT_EQ(f.warp, 2);
  EXPECT_EQ(f.lane, 6);
  EXPECT_EQ(
      f.message,
      "d[5], row 33, column 13 of D was written while a wgmma.mma_async that owns it was in flight");
  EXPECT_EQ(f.order, "a wgmma_wait_group that covers it before the write would order them");
}

/// Arithmetic with what registers hold while they are in flight.
template <bool Wait> struct ScalesAccumulatorInFlight : BrokenWgmma {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    if constexpr (Wait) wgmma_wait_group<0>();
    for (float& x : d) x = x * 0.5f + 1;
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, ArithmeticOnAccumulatorsInFlightShows) {
  EXPECT_TRUE(report_of<ScalesAccumulatorInFlight<true>>().ok());
  using Kernel = ScalesAccumulatorInFlight<false>;
  for (auto const completion : {sim::Completion::last, sim::Completion::first}) {
    Finding const f = only_finding(report_of<Kernel>({.completion = completion}),
                                   FindingKind::register_race, Kernel::line);
    EXPECT_EQ(f.order, "a wgmma_wait_group that covers it before the write would order them");
  }
}

struct ReadsAccumulatorInFlight : BrokenWgmma {
  void operator()(Params const& p, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    st_global(p.out + 4 * thread_idx(), d[0]);
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, AccumulatorsInFlightAreNaNs) {
  for (auto const completion : {sim::Completion::last, sim::Completion::first}) {
    sim::Machine machine({.completion = completion});
    Buffers const buffers{nullptr, static_cast<char*>(machine.allocate(4096, "out"))};
    sim::launch<ReadsAccumulatorInFlight>(machine, {1, 1, 1}, buffers);
    float read = 0;
    machine.download(&read, buffers.out, 4);
    EXPECT_EQ(read != read, completion == sim::Completion::last);
  }
}

struct OverwritesA : BrokenWgmma {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    std::uint32_t a[4] = {1, 2, 3, 4};
    wgmma_fence();
    wgmma<kFromRegisters>(d, a, matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    if (thread_idx() == 5) a[2] = 0;
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, RegistersOfAInFlightAreLeftAlone) {
  Finding const f =
      only_finding(report_of<OverwritesA>(), FindingKind::register_race, OverwritesA::line);
  EXPECT_EQ(f.warp, 0);
  EXPECT_EQ(f.lane, 5);
  EXPECT_EQ(f.message,
            "register 2 of A was written while a wgmma.mma_async that reads it was in flight");
  EXPECT_EQ(f.order, "a wgmma_wait_group that covers it before the write would order them");
}

struct ReadsUnwrittenOperand : BrokenWgmma {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const&, SharedStorage& smem) const {
    clear(smem.a);
    clear(smem.b, 64);
    fence_proxy_async_shared();
    cta::sync();
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, OperandsAreWritten) {
  Finding const f = only_finding(report_of<ReadsUnwrittenOperand>(),
                                 FindingKind::uninitialized_read, ReadsUnwrittenOperand::line);
  EXPECT_EQ(f.buffer, "B");
  EXPECT_EQ(f.coordinate, "row 0, column 0 of B");
}

struct ReadsWithoutProxyFence : BrokenWgmma {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    if (thread_idx() == 0)
      st_shared(shared_address(smem.a.data + TileA::layout(40, 3)), std::uint16_t{1});
    cta::sync();
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, OperandsWrittenByThreadsNeedAProxyFence) {
  Finding const f = only_finding(report_of<ReadsWithoutProxyFence>(), FindingKind::proxy_race,
                                 ReadsWithoutProxyFence::line);
  EXPECT_EQ(f.coordinate, "row 40, column 3 of A");
}

struct ReadsCopyInFlight : BrokenWgmma {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    clear_both(smem);
    if (thread_idx() == 0) cp_async_cg(shared_address(smem.b.data + TileB::layout(5, 8)), p.in);
    fence_proxy_async_shared();
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    cp_async_wait_all();
  }
};

TEST(WgmmaChecker, OperandsHaveArrived) {
  Finding const f = only_finding(report_of<ReadsCopyInFlight>(), FindingKind::async_read_early,
                                 ReadsCopyInFlight::line);
  EXPECT_EQ(f.coordinate, "row 5, column 8 of B");
}

struct OverwritesOperand : BrokenWgmma {
  static constexpr int line = __LINE__ + 11;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(local_tile<64, 16>(tensor(smem.a), 0, 1)),
               matrix_descriptor(local_tile<16, 16>(tensor(smem.b), 0, 1)), true);
    wgmma_commit_group();
    if (thread_idx() == 0)
      st_shared(shared_address(smem.a.data + TileA::layout(9, 0)), std::uint16_t{1});
    if (thread_idx() == 0)
      st_shared(shared_address(smem.a.data + TileA::layout(9, 17)), std::uint16_t{1});
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, OperandsInFlightAreLeftAlone) {
  sim::Report const report = report_of<OverwritesOperand>();
  Finding const f = only_finding(report, FindingKind::async_overwrite, OverwritesOperand::line);
  EXPECT_EQ(f.coordinate, "row 9, column 17 of A");
}

struct WrongDescriptor : BrokenWgmma {
  static constexpr int line = __LINE__ + 6;
  template <class F> static void run(SharedStorage& smem, F&& change) {
    clear_both(smem);
    float d[8] = {};
    wgmma_fence();
    std::uint64_t const descriptor = change(matrix_descriptor(tensor(smem.b)));
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), descriptor, true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};
struct OutOfBounds : WrongDescriptor {
  void operator()(Params const&, SharedStorage& smem) const {
    run(smem, [](std::uint64_t d) { return d + (std::uint64_t{0x2000} << 32); });
  }
};
struct BaseOffset : WrongDescriptor {
  void operator()(Params const&, SharedStorage& smem) const {
    run(smem, [](std::uint64_t d) { return d | std::uint64_t{1} << 49; });
  }
};
struct InsideAGroup : WrongDescriptor {
  void operator()(Params const&, SharedStorage& smem) const {
    run(smem, [](std::uint64_t d) { return d + (3 * 128 >> 4); });
  }
};
struct AcrossARow : WrongDescriptor {
  void operator()(Params const&, SharedStorage& smem) const {
    run(smem, [](std::uint64_t d) { return d + (112 >> 4); });
  }
};
struct DifferentDescriptors : WrongDescriptor {
  void operator()(Params const&, SharedStorage& smem) const {
    run(smem, [](std::uint64_t d) { return d + (thread_idx() == 99 ? 2 : 0); });
  }
};

TEST(WgmmaChecker, DescriptorsAreWhatTheHardwareTakes) {
  Finding f =
      only_finding(report_of<OutOfBounds>(), FindingKind::out_of_bounds, WrongDescriptor::line);
  EXPECT_SAYS(f, "the matrix descriptor of B");
  EXPECT_SAYS(f, "lies outside of the CTA's 10240 bytes of shared memory");
  f = only_finding(report_of<BaseOffset>(), FindingKind::invalid_operand, WrongDescriptor::line);
  EXPECT_SAYS(f, "base offset");
  f = only_finding(report_of<InsideAGroup>(), FindingKind::misaligned, WrongDescriptor::line);
  EXPECT_SAYS(f, "is not in the first of eight rows of 128 bytes");
  f = only_finding(report_of<AcrossARow>(), FindingKind::misaligned, WrongDescriptor::line);
  EXPECT_SAYS(f, "is 112 bytes into a row of 128");
  f = only_finding(report_of<DifferentDescriptors>(), FindingKind::invalid_operand,
                   WrongDescriptor::line);
  EXPECT_SAYS(f, "the threads of the warpgroup pass different matrix descriptors");
}

struct OtherShapeInFlight : BrokenWgmma {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[8] = {};
    auto& half = reinterpret_cast<float(&)[4]>(d[4]);
    wgmma_fence();
    wgmma<kOp>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    constexpr MmaSpec op = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 8);
    wgmma<op>(half, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, AccumulatorsInFlightBelongToOneShape) {
  Finding const f = only_finding(report_of<OtherShapeInFlight>(), FindingKind::invalid_operand,
                                 OtherShapeInFlight::line);
  EXPECT_SAYS(f, "has another shape: wait for its group first");
}

struct LeftByOneWarp : BrokenWgmma {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    if (warp_id() == 3) return;
    wgmma_fence();
  }
};

TEST(WgmmaChecker, AllFourWarpsTakePart) {
  sim::Report const report = report_of<LeftByOneWarp>();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings.front().where.line, LeftByOneWarp::line);
}

/// `Sets` sets of 8 accumulators in flight at once, with A in registers for the first `Fragments`
/// of them, by a warpgroup that keeps 32 registers a thread; waits after each `Step` of them.
template <int Sets, int Fragments = 0, int Step = Sets, int Registers = 32>
struct HoldsRegisters : BrokenWgmma {
  static constexpr int lower_line = __LINE__ + 4;
  static constexpr int line = __LINE__ + 11, a_line = __LINE__ + 9;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    setmaxnreg_dec<Registers>();
    float d[Sets][8] = {};
    std::uint32_t a[Sets][4] = {};
    wgmma_fence();
    for (int i = 0; i < Sets; ++i) {
      if (i < Fragments) {
        wgmma<kFromRegisters>(d[i], a[i], matrix_descriptor(tensor(smem.b)), true);
      } else {
        wgmma<kOp>(d[i], matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)),
                   true);
      }
      wgmma_commit_group();
      if (i % Step == Step - 1) wgmma_wait_group<0>();
    }
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, WhatIsInFlightFitsIntoTheRegisters) {
  EXPECT_TRUE((report_of<HoldsRegisters<4>>().ok())) << "32 of 32";
  Finding const f = only_finding(report_of<HoldsRegisters<6>>(), FindingKind::too_few_registers,
                                 HoldsRegisters<6>::line);
  EXPECT_EQ(f.count, 2) << "the fifth and the sixth";
  EXPECT_SAYS(
      f,
      "with this wgmma.mma_async, those in flight hold 40 registers of a thread, accumulators and A, "
      "and the warpgroup has 32 since its setmaxnreg.dec (");
  EXPECT_EQ(f.other.line, HoldsRegisters<6>::lower_line);
  EXPECT_TRUE((report_of<HoldsRegisters<6, 0, 3>>().ok())) << "no more than three at once";
  EXPECT_TRUE((report_of<HoldsRegisters<6, 0, 6, 48>>().ok()));
  EXPECT_TRUE((report_of<HoldsRegisters<6>>({.check = false}).ok()));
  // A counts, too: 8 + 4 each.
  EXPECT_TRUE((report_of<HoldsRegisters<2, 2>>().ok()));
  Finding const with_a = only_finding(report_of<HoldsRegisters<3, 3>>(),
                                      FindingKind::too_few_registers, HoldsRegisters<3, 3>::a_line);
  EXPECT_SAYS(with_a, "those in flight hold 36 registers of a thread");
  for (auto const completion : {sim::Completion::first, sim::Completion::random}) {
    EXPECT_TRUE((report_of<HoldsRegisters<4>>({.completion = completion}).ok()));
    EXPECT_FALSE((report_of<HoldsRegisters<6>>({.completion = completion}).ok()));
  }
}

/// Several wgmma on one set of accumulators hold it once, and operands of A that overlap what they
/// have together.
struct SharesRegisters : BrokenWgmma {
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    setmaxnreg_dec<24>();
    float d[8] = {};
    std::uint32_t a[6] = {};
    wgmma_fence();
    for (int i = 0; i < 6; ++i) {
      auto const& fragment = *reinterpret_cast<std::uint32_t const(*)[4]>(a + i % 3);
      wgmma<kFromRegisters>(d, fragment, matrix_descriptor(tensor(smem.b)), true);
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, RegistersThatOperationsShareCountOnce) {
  EXPECT_TRUE(report_of<SharesRegisters>().ok()) << report_of<SharesRegisters>().text();
}

/// 384 threads have 168 registers each from their launch.
struct TooLargeForTheLaunch : BrokenWgmma {
  static constexpr int threads = 384;
  using TileB = SharedTile<std::uint16_t, swizzled_operand(16, 256, 64, 1)>;
  using SharedStorage = OperandTiles<TileA, TileB>;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() >= 128) return;
    clear(smem.a);
    clear(smem.b);
    fence_proxy_async_shared();
    cta::bar_sync(1, 128);
    constexpr MmaSpec op = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 256);
    float d[2][128] = {};
    wgmma_fence();
    for (int i = 0; i < 2; ++i)
      wgmma<op>(d[i], matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, TheLaunchSaysHowManyRegistersThereAre) {
  sim::Report const report = report_of<TooLargeForTheLaunch>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::too_few_registers);
  EXPECT_EQ(
      report.findings[0].message,
      "with this wgmma.mma_async, those in flight hold 256 registers of a thread, accumulators and A, and the "
      "warpgroup was launched with 168");
}

template <bool Waits> struct LowersInFlight : BrokenWgmma {
  static constexpr int line = __LINE__ + 10;
  void operator()(Params const&, SharedStorage& smem) const {
    clear_both(smem);
    float d[4][8] = {};
    wgmma_fence();
    for (auto& own : d)
      wgmma<kOp>(own, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    if constexpr (Waits) wgmma_wait_group<0>();

    setmaxnreg_dec<24>();
    wgmma_wait_group<0>();
  }
};

TEST(WgmmaChecker, RegistersInFlightAreNotGivenAway) {
  EXPECT_TRUE(report_of<LowersInFlight<true>>().ok());
  Finding const f = only_finding(report_of<LowersInFlight<false>>(), FindingKind::too_few_registers,
                                 LowersInFlight<false>::line);
  EXPECT_EQ(
      f.message,
      "setmaxnreg.dec to 24 registers a thread while the wgmma.mma_async in flight hold 32, accumulators and "
      "A: wait for their groups first");
}

}  // namespace
}  // namespace tegula
