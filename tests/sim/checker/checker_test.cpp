#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "broken_kernel.hpp"
#include "tegula/arch/trap.hpp"
#include "tegula/arch/unpoison.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/swizzle.hpp"

/// Kernels with one mistake each, and the finding each must give: kind, line, thread, and the words
/// of the sentence that a reader needs.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

struct ReadsUnwrittenShared : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (lane_id() == 3) ld_shared<std::uint32_t>(shared_address(&smem.k[5][8]));
  }
};

TEST(Checker, ReadOfSharedMemoryThatNobodyWrote) {
  Finding const f = only_finding(report_of<ReadsUnwrittenShared>(), FindingKind::uninitialized_read,
                                 ReadsUnwrittenShared::line);
  EXPECT_EQ(f.warp, 0);
  EXPECT_EQ(f.lane, 3);
  EXPECT_EQ(f.buffer, "K");
  EXPECT_EQ(f.coordinate, "row 5, column 8 of K");
  EXPECT_EQ(f.message, "ld.shared reads row 5, column 8 of K, which nobody has written");
}

/// Row 5 may be read, its last four bytes excepted, and holds NaN.
template <int Column> struct ReadsUnpoisoned : Broken {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    if (lane_id() != 3) return;
    unpoison_shared(shared_address(smem.k[5]), sizeof(smem.k[5]) - 4);
    std::uint32_t const read = ld_shared<std::uint32_t>(shared_address(&smem.k[5][Column]));
    if (read != 0xffffffff) trap();
  }
};

TEST(Checker, ReadOfUnpoisonedSharedMemory) {
  using Row = decltype(Broken::SharedStorage::k[0]);
  constexpr int columns = sizeof(Row) / sizeof(Broken::SharedStorage::k[0][0]);
  constexpr int last = columns - 4 / sizeof(Broken::SharedStorage::k[0][0]);
  EXPECT_TRUE(report_of<ReadsUnpoisoned<0>>().ok()) << report_of<ReadsUnpoisoned<0>>().text();
  using Beyond = ReadsUnpoisoned<last>;
  only_finding(report_of<Beyond>(), FindingKind::uninitialized_read, Beyond::line);
}

struct UnpoisonsBeyond : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) unpoison_shared(shared_address(&smem), sizeof(smem) + 4096);
  }
};

TEST(Checker, UnpoisonOutsideOfSharedMemory) {
  only_finding(report_of<UnpoisonsBeyond>(), FindingKind::out_of_bounds, UnpoisonsBeyond::line);
}

/// A tile with a swizzled layout and stages, as the kernels have them.
template <SwizzledLayout L> struct Tile {
  using Element = std::uint16_t;
  static constexpr SwizzledLayout layout = L;
  alignas(1024) std::uint16_t data[L.cosize()];
};

struct ReadsUnwrittenStage : Broken {
  static constexpr SwizzledLayout tile = {Swizzle{3, 3, 3}, 0,
                                          layout(tuple(8, 64, 3), tuple(64, 1, 512))};
  struct SharedStorage {
    Tile<tile> v;
    template <class F> void name_buffers(F&& name) { name("V", v); }
  };
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    // Row 6, columns 24 to 31 of stage 2 is a 16-byte piece; lane 0 writes its first half only.
    SharedAddr const piece = shared_address(smem.v.data + tile(6 + 8 * 24 + 512 * 2));
    if (lane_id() == 0) st_shared(piece, std::uint64_t{0});
    if (lane_id() == 0) ld_shared<float>(piece + 8);
  }
};

TEST(Checker, CoordinatesAreFoundByInvertingTheTilesLayout) {
  Finding const f = only_finding(report_of<ReadsUnwrittenStage>(), FindingKind::uninitialized_read,
                                 ReadsUnwrittenStage::line);
  EXPECT_EQ(f.coordinate, "row 6, column 28 of stage 2 of V");
}

struct LdmatrixOfUnwrittenRow : Broken {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const&, SharedStorage& smem) const {
    for (int row = lane_id(); row < 16; row += 32) {
      if (row != 11) st_shared(shared_address(smem.k[row]), std::uint64_t{1});
      if (row != 11) st_shared(shared_address(&smem.k[row][4]), std::uint64_t{1});
    }
    warp::sync();
    std::uint32_t r[2];
    ldmatrix(r, shared_address(smem.k[lane_id() % 16]));
  }
};

TEST(Checker, LdmatrixOfARowThatNobodyWrote) {
  Finding const f = only_finding(report_of<LdmatrixOfUnwrittenRow>(),
                                 FindingKind::uninitialized_read, LdmatrixOfUnwrittenRow::line);
  EXPECT_EQ(f.lane, 11) << "the lane that gave the row's address";
  EXPECT_EQ(f.coordinate, "row 11, column 0 of K");
}

struct ReadsUnwrittenGlobal : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 1) ld_global<std::uint64_t>(p.out + 40);
  }
};

TEST(Checker, ReadOfGlobalMemoryThatNobodyWrote) {
  Finding const f = only_finding(report_of<ReadsUnwrittenGlobal>(), FindingKind::uninitialized_read,
                                 ReadsUnwrittenGlobal::line);
  EXPECT_EQ(f.coordinate, "byte 40 of out");
  EXPECT_EQ(f.lane, 1);
}

struct CopiesUnwrittenGlobal : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() == 0) cp_async_cg(shared_address(smem.k), p.out + 64);
    cp_async_wait_all();
  }
};

TEST(Checker, CpAsyncFromGlobalMemoryThatNobodyWrote) {
  only_finding(report_of<CopiesUnwrittenGlobal>(), FindingKind::uninitialized_read,
               CopiesUnwrittenGlobal::line);
}

struct StoresPastShared : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    st_shared(shared_address(smem.k) + 32u * static_cast<SharedAddr>(lane_id() + 1),
              std::uint32_t{7});
  }
};

TEST(Checker, StorePastTheEndOfSharedMemory) {
  Finding const f = only_finding(report_of<StoresPastShared>(), FindingKind::out_of_bounds,
                                 StoresPastShared::line);
  EXPECT_EQ(f.lane, 31);
  EXPECT_SAYS(
      f,
      "st.shared of 4 bytes at shared address 0x800 lies outside of the CTA's 1024 bytes of shared memory, 0x400 to 0x800");
}

struct LoadsPastGlobal : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    ld_global<float>(p.in + 4096 - 4 * 31 + 4 * lane_id());
  }
};

TEST(Checker, LoadPastTheEndOfGlobalMemory) {
  Finding const f =
      only_finding(report_of<LoadsPastGlobal>(), FindingKind::out_of_bounds, LoadsPastGlobal::line);
  EXPECT_EQ(f.lane, 31);
  EXPECT_EQ(f.buffer, "in");
  EXPECT_SAYS(f, "ld.global of 4 bytes at byte 4096 of in, which has 4096 bytes");
}

struct StoresBeforeGlobal : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 0) st_global(p.out - 8, 1.0f);
  }
};

TEST(Checker, StoreBeforeTheStartOfGlobalMemory) {
  Finding const f = only_finding(report_of<StoresBeforeGlobal>(), FindingKind::out_of_bounds,
                                 StoresBeforeGlobal::line);
  EXPECT_SAYS(f, "8 bytes before the start of out");
}

struct LoadsHostMemory : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage&) const {
    static float const host = 3;
    if (lane_id() == 0) ld_global<float>(&host);
  }
};

TEST(Checker, LoadOfMemoryThatIsNotTheMachines) {
  Finding const f =
      only_finding(report_of<LoadsHostMemory>(), FindingKind::out_of_bounds, LoadsHostMemory::line);
  EXPECT_SAYS(f, "which is in no allocation");
}

struct MisalignedShared : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (lane_id() == 2) st_shared(shared_address(&smem.k[1][2]), std::uint64_t{0});
  }
};

TEST(Checker, MisalignedSharedAccess) {
  Finding const f =
      only_finding(report_of<MisalignedShared>(), FindingKind::misaligned, MisalignedShared::line);
  EXPECT_EQ(f.coordinate, "row 1, column 2 of K");
  EXPECT_SAYS(f, "st.shared of 8 bytes at shared address 0x444, 4 bytes past a multiple of 8");
}

struct MisalignedGlobal : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    ld_global<float>(p.in + 2 + 4 * lane_id());
  }
};

TEST(Checker, MisalignedGlobalAccessIsFoundOnceAndCounted) {
  Finding const f =
      only_finding(report_of<MisalignedGlobal>(), FindingKind::misaligned, MisalignedGlobal::line);
  EXPECT_EQ(f.lane, 0);
  EXPECT_EQ(f.count, 32);
}

struct MisalignedCopy : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() == 0) cp_async_cg(shared_address(smem.k), p.in + 8);
    cp_async_wait_all();
  }
};

TEST(Checker, MisalignedSourceOfCpAsync) {
  Finding const f =
      only_finding(report_of<MisalignedCopy>(), FindingKind::misaligned, MisalignedCopy::line);
  EXPECT_EQ(f.buffer, "in");
}

struct ReadsBeforeWait : Broken {
  static constexpr int copy_line = __LINE__ + 4;
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mine = shared_address(smem.k) + 16u * static_cast<SharedAddr>(lane_id());
    cp_async_cg(mine, p.in + 16 * lane_id());
    cp_async_commit_group();
    cp_async_wait_group<1>();  // must be 0
    ld_shared<std::uint32_t>(mine);
  }
};

TEST(Checker, CpAsyncDataReadBeforeItsWaitAtEveryCompletion) {
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    Finding const f = only_finding(report_of<ReadsBeforeWait>({.completion = completion}),
                                   FindingKind::async_read_early, ReadsBeforeWait::line);
    EXPECT_EQ(f.other.line, ReadsBeforeWait::copy_line);
    EXPECT_EQ(f.lane, 0);
    EXPECT_EQ(f.count, 32);
    EXPECT_SAYS(
        f,
        "ld.shared reads row 0, column 0 of K while a cp.async into it is in flight that warp 0 lane 0 issued");
    EXPECT_SAYS(f, "has not waited for");
  }
}

struct OverwritesCopy : Broken {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() == 0) cp_async_cg(shared_address(&smem.k[2][8]), p.in);
    warp::sync();
    if (lane_id() == 5) st_shared(shared_address(&smem.k[2][14]), std::uint32_t{1});
    warp::sync();
    cp_async_wait_all();
  }
};

TEST(Checker, BufferOverwrittenWhileACopyIntoItIsInFlight) {
  Finding const f =
      only_finding(report_of<OverwritesCopy>(), FindingKind::async_overwrite, OverwritesCopy::line);
  EXPECT_EQ(f.lane, 5);
  EXPECT_EQ(f.coordinate, "row 2, column 14 of K");
  EXPECT_EQ(f.other.line, OverwritesCopy::line - 2);
}

struct CopiesTwiceIntoOneStage : Broken {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mine = shared_address(smem.k) + 16u * static_cast<SharedAddr>(lane_id());
    for (int step = 0; step < 2; ++step) {
      cp_async_cg(mine, p.in + 16 * lane_id() + 512 * step);
      cp_async_commit_group();
    }
    cp_async_wait_all();
  }
};

TEST(Checker, CpAsyncIntoAStageWhoseCopyIsInFlight) {
  Finding const f = only_finding(report_of<CopiesTwiceIntoOneStage>(), FindingKind::async_overwrite,
                                 CopiesTwiceIntoOneStage::line);
  EXPECT_EQ(f.other.line, CopiesTwiceIntoOneStage::line);
  EXPECT_EQ(f.count, 32);
}

struct CopyReadsTooMuch : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_ca<4>(shared_address(smem.k), p.in, lane_id() == 9 ? 5 : 4);
  }
};

TEST(Checker, CpAsyncThatReadsMoreThanItCopies) {
  sim::Report const report = report_of<CopyReadsTooMuch>();
  ASSERT_FALSE(report.ok());
  Finding const& f = report.findings.back();
  EXPECT_EQ(sim::to_string(f.kind), "invalid_operand");
  EXPECT_EQ(f.where.line, CopyReadsTooMuch::line);
  EXPECT_EQ(f.lane, 9);
  EXPECT_SAYS(f, "cp.async of 4 bytes is to read 5: it can read 0 to 4");
}

struct ShufflesFromOutsideOfTheMask : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() < 8) warp::shfl(lane_id(), 12, 0x000000ffu);
  }
};

TEST(Checker, ShuffleFromALaneOutsideOfTheMask) {
  Finding const f = only_finding(report_of<ShufflesFromOutsideOfTheMask>(),
                                 FindingKind::invalid_operand, ShufflesFromOutsideOfTheMask::line);
  EXPECT_SAYS(f, "shfl.sync reads lane 12, which its mask 0x000000ff leaves out");
}

struct MaskWithoutSelf : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() == 20) warp::sync(0x0000ffffu);
  }
};

TEST(Checker, MaskThatLeavesOutTheLaneItself) {
  Finding const f = only_finding(report_of<MaskWithoutSelf>(), FindingKind::invalid_operand,
                                 MaskWithoutSelf::line);
  EXPECT_EQ(f.lane, 20);
}

struct TakesForeignAddress : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage&) const {
    int local = 0;
    if (lane_id() == 0) shared_address(&local);
  }
};

TEST(Checker, SharedAddressOfSomethingElse) {
  only_finding(report_of<TakesForeignAddress>(), FindingKind::out_of_bounds,
               TakesForeignAddress::line);
}

struct Traps : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (block_idx().x == 2 && thread_idx() == 7) trap();
  }
};

TEST(Checker, TrapNamesTheThread) {
  Finding const f = only_finding(report_of<Traps>({}, {4, 1, 1}), FindingKind::trap, Traps::line);
  EXPECT_EQ(f.cta, (Dim3{2, 0, 0}));
  EXPECT_EQ(f.lane, 7);
}

struct Throws : Broken {
  void operator()(Params const&, SharedStorage&) const {
    if (thread_idx() == 7) throw std::runtime_error("no such tile");
    cta::sync();
  }
};

TEST(Checker, AnExceptionOfTheKernelEndsTheCtaAndIsReported) {
  Finding const f = only_finding(report_of<Throws>(), FindingKind::exception, 0);
  EXPECT_EQ(f.lane, 7);
  EXPECT_SAYS(f, "no such tile");
}

TEST(Checker, ALaunchWithFindingsThrowsWithTheirSentences) {
  sim::Machine machine;
  Buffers const buffers{nullptr, static_cast<char*>(machine.allocate(4096, "out"))};
  try {
    sim::launch<ReadsUnwrittenGlobal>(machine, {1, 1, 1}, buffers);
    FAIL() << "nothing was thrown";
  } catch (sim::CheckError const& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("byte 40 of out, which nobody has written"));
    EXPECT_THAT(error.what(), testing::HasSubstr("ReadsUnwrittenGlobal"));
    EXPECT_THAT(error.what(), testing::HasSubstr("checker/checker_test.cpp:" +
                                                 std::to_string(ReadsUnwrittenGlobal::line)));
    EXPECT_THAT(error.what(), testing::HasSubstr("CTA (0, 0, 0), warp 0, lane 1"));
    EXPECT_EQ(error.report().findings.size(), 1u);
  }
}

TEST(Checker, FindingsOfManyCtasAreOneEachWithTheFirstCtaNamed) {
  sim::Report const report = report_of<MisalignedGlobal>({}, {5, 2, 1});
  Finding const f = only_finding(report, FindingKind::misaligned, MisalignedGlobal::line);
  EXPECT_EQ(f.cta, (Dim3{0, 0, 0}));
  EXPECT_EQ(f.count, 320);
}

TEST(Checker, JsonHoldsWhatTheTextHolds) {
  auto const json = nlohmann::json::parse(report_of<ReadsBeforeWait>().json());
  ASSERT_EQ(json["findings"].size(), 1u);
  auto const& f = json["findings"][0];
  EXPECT_EQ(f["kind"], "async_read_early");
  EXPECT_EQ(f["where"]["line"], ReadsBeforeWait::line);
  EXPECT_EQ(f["other"]["where"]["line"], ReadsBeforeWait::copy_line);
  EXPECT_EQ(f["coordinate"], "row 0, column 0 of K");
  EXPECT_EQ(f["count"], 32);
  EXPECT_EQ(json["lines"].size(), 4u);
  EXPECT_EQ(json["total"]["shared_bytes"], 32 * 16 + 32 * 4);
}

TEST(Checker, AReportWithFindingsNamesItsSchedule) {
  sim::Options const options{.completion = sim::Completion::first,
                             .interleaving = sim::Interleaving::one_warp_behind,
                             .seed = 3};
  sim::Report const report = report_of<ReadsBeforeWait>(options);
  EXPECT_NE(
      report.text().find("\nschedule: completion first, interleaving one_warp_behind, seed 3\n"),
      std::string::npos)
      << report.text();
  auto const schedule = nlohmann::json::parse(report.json())["schedule"];
  EXPECT_EQ(schedule["completion"], "first");
  EXPECT_EQ(schedule["interleaving"], "one_warp_behind");
  EXPECT_EQ(schedule["seed"], 3);
  EXPECT_FALSE(schedule.contains("choices"));
}

TEST(Checker, WithTheCheckerOffMemoryIsNotShadowed) {
  EXPECT_TRUE(report_of<ReadsUnwrittenShared>({.check = false}).ok());
  EXPECT_TRUE(report_of<ReadsBeforeWait>({.check = false}).ok());
  EXPECT_FALSE(report_of<StoresPastShared>({.check = false}).ok()) << "bounds are always checked";
}

}  // namespace
}  // namespace tegula
