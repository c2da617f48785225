// tcgen05.shift, and what is found where it is used wrongly.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tensor_memory_ctas.hpp"

namespace tegula {
namespace {

enum class ShiftSlip : std::uint8_t {
  none,
  wrong_lane,
  beyond_columns,
  not_written,
  no_commit,
  no_fence,
  shifted_twice,
  copied_after,
};

constexpr int kTileColumns = 16, kShiftedFrom = 4;  // of the tile, and of what is shifted

/// Shifts eight columns of a tile whose cells are numbered, and loads the tile back.
template <int Ctas, ShiftSlip S = ShiftSlip::none> struct Shifts : TensorMemoryCtas<Ctas, 32> {
  using Base = TensorMemoryCtas<Ctas, 32>;
  struct SharedStorage {
    alignas(128) std::uint32_t rows[512];
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("rows", rows);
      name("done", done);
      name("tmem", tmem);
    }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), warp = warp_id(), lane = 128 * Base::rank() + thread;
    for (int i = thread; i < 512; i += Base::threads)
      st_shared(shared_address(smem.rows) + 4 * static_cast<SharedAddr>(i), std::uint32_t{7});
    TensorAddr const base = Base::begin(smem), own = Base::own_lanes(base);
    if (S != ShiftSlip::not_written || warp != 2) {
      std::uint32_t cells[kTileColumns];
      for (int i = 0; i < kTileColumns; ++i) cells[i] = static_cast<std::uint32_t>(1000 * lane + i);
      tcgen05_st<TensorShape::lanes32_bits32, kTileColumns>(cells, own);
      tcgen05_wait_st();
    }
    if (S != ShiftSlip::no_fence) tcgen05_fence_before_thread_sync();
    Base::meet();
    if (lane == 0) {
      tcgen05_fence_after_thread_sync();
      int const first = S == ShiftSlip::beyond_columns ? 28 : kShiftedFrom;
      tcgen05_shift_down<Ctas>(base + tensor_address(S == ShiftSlip::wrong_lane ? 32 : 0, first));
      if constexpr (S == ShiftSlip::shifted_twice) tcgen05_shift_down<Ctas>(base + kShiftedFrom);
      if constexpr (S == ShiftSlip::copied_after)
        tcgen05_cp<TensorCopyShape::rows32_bits128_warpx4>(
            base + kShiftedFrom, rows16_descriptor(shared_address(smem.rows)));
      Base::commit(smem);
    }
    bool const early = S == ShiftSlip::no_commit;
    if (!early || warp != 0) Base::wait(smem);
    if (S != ShiftSlip::not_written || warp != 2) {
      std::uint32_t cells[kTileColumns];
      tcgen05_ld<TensorShape::lanes32_bits32, kTileColumns>(cells, own);
      tcgen05_wait_ld();
      for (int i = 0; i < kTileColumns; ++i) st_global(p.out + lane * kTileColumns + i, cells[i]);
    }
    if (early) Base::wait(smem);
    Base::end(base);
  }
};

/// Each lane has what the one after it had, but for the last of each 32.
template <int Ctas> std::vector<std::uint32_t> shifted() {
  std::vector<std::uint32_t> expected;
  for (int lane = 0; lane < 128 * Ctas; ++lane) {
    for (int i = 0; i < kTileColumns; ++i) {
      bool const moves = i >= kShiftedFrom && i < kShiftedFrom + 8 && lane % 32 != 31;
      expected.push_back(static_cast<std::uint32_t>(1000 * (moves ? lane + 1 : lane) + i));
    }
  }
  return expected;
}

TEST(Tcgen05Shift, MovesRowsDownWithinEachQuarter) {
  for_each_schedule(
      [](sim::Options const& options) {
        EXPECT_EQ(run<Shifts<1>>({0}, 128 * kTileColumns, options), shifted<1>());
        EXPECT_EQ(run<Shifts<2>>({0}, 256 * kTileColumns, options, Dim3{2, 1, 1}), shifted<2>());
      },
      blackwell());
}

template <ShiftSlip S> Outcome shift(sim::Options const& options = blackwell()) {
  return observe<Shifts<1, S>>({0}, 128 * kTileColumns, options);
}

TEST(Tcgen05Shift, MistakesAreFound) {
  using Kind = sim::FindingKind;
  auto const expect = [](Outcome const& result, Kind kind, char const* says) {
    ASSERT_FALSE(result.report.ok()) << says;
    EXPECT_EQ(result.report.findings.front().kind, kind) << result.first_finding();
    EXPECT_NE(result.first_finding().find(says), std::string::npos) << result.first_finding();
  };
  EXPECT_EQ(shift<ShiftSlip::none>().first_finding(), "");
  expect(shift<ShiftSlip::wrong_lane>(), Kind::invalid_operand, "from lane 32");
  expect(shift<ShiftSlip::beyond_columns>(), Kind::out_of_bounds, "columns 28 to 35");
  expect(shift<ShiftSlip::not_written>(), Kind::uninitialized_read, "tcgen05.shift");
  expect(shift<ShiftSlip::no_commit>(), Kind::async_read_early, "tcgen05_commit");
  expect(shift<ShiftSlip::no_fence>(), Kind::data_race, "before_thread_sync");
  expect(shift<ShiftSlip::shifted_twice>(), Kind::async_read_early, "shifts and copies");
  expect(shift<ShiftSlip::copied_after>(), Kind::async_overwrite, "shifts and copies");
}

// Without the shift the result is another one; delayed past the commit it is in flight too long.
TEST(Tcgen05Shift, EveryMutantIsFound) {
  sim::Options options = blackwell();
  options.list_marked = true;
  int mutants = 0;
  for (sim::MarkedStatement const& statement : shift<ShiftSlip::none>(options).report.marked) {
    if (statement.operation != Operation::tcgen05_shift) continue;
    for (auto const mutation : {Mutation::removed, Mutation::delayed}) {
      sim::Options mutated = blackwell();
      mutated.mutant =
          sim::Mutant{statement.where.file, statement.where.line, statement.operation, mutation};
      Outcome const result = shift<ShiftSlip::none>(mutated);
      EXPECT_TRUE(!result.report.ok() || result.out != shifted<1>()) << to_string(mutation);
      ++mutants;
    }
  }
  EXPECT_EQ(mutants, 2);
}

}  // namespace
}  // namespace tegula
