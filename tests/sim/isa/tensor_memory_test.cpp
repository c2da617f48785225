// Tensor memory on the simulated machine: moves of every shape at every schedule, and allocation.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/warp.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {
namespace {

/// Each warp stores registers by one shape, loads its 32 lanes back row by row (of halves the low
/// 16 bits of each column), and then the registers as it stored them.
template <TensorMove M> struct Moves {
  using Params = Words;
  static constexpr int threads = 128;
  static constexpr int halves = 32 / lanes_of(M.shape);
  static constexpr int registers = registers_of(M);
  static constexpr int columns = columns_of(M) + M.split;
  static constexpr std::uint32_t kept = M.packing == TensorPacking::halves ? 0xffff : 0xffffffff;
  static constexpr int results = columns + halves * registers;
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };

  static constexpr std::uint32_t value(int thread, int half, int r) {
    return static_cast<std::uint32_t>(thread * 1000 + half * 500 + r) * 0x10003u;
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const warp = warp_id();
    if (warp == 0) tcgen05_alloc<512>(shared_address(&smem.tmem));
    cta::sync();
    TensorAddr const own =
        ld_shared<std::uint32_t>(shared_address(&smem.tmem)) + tensor_address(32 * warp, 0);
    for (int half = 0; half < halves; ++half) {
      std::uint32_t r[registers];
      for (int i = 0; i < registers; ++i) r[i] = value(thread_idx(), half, i);
      tcgen05_st<M.shape, M.repeat, M.packing, M.split>(r, own + tensor_address(16 * half, 0));
    }
    tcgen05_wait_st();
    std::uint32_t* const out = p.out + thread_idx() * results;
    for (int column = 0; column < columns; ++column) {
      std::uint32_t cell[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(cell, own + tensor_address(0, column));
      tcgen05_wait_ld();
      st_global(out + column, cell[0] & kept);
    }
    for (int half = 0; half < halves; ++half) {
      std::uint32_t r[registers];
      tcgen05_ld<M.shape, M.repeat, M.packing, M.split>(r, own + tensor_address(16 * half, 0));
      tcgen05_wait_ld();
      for (int i = 0; i < registers; ++i) st_global(out + columns + half * registers + i, r[i]);
    }
    cta::sync();
    if (warp == 0) tcgen05_dealloc<512>(ld_shared<std::uint32_t>(shared_address(&smem.tmem)));
  }
};

template <TensorMove M> void expect_moved() {
  using Kernel = Moves<M>;
  constexpr int results = Kernel::results;
  std::vector<std::uint32_t> expected(128 * results);
  std::vector<int> holders(static_cast<std::size_t>(128 * Kernel::columns));
  for (int thread = 0; thread < 128; ++thread) {
    for (int half = 0; half < Kernel::halves; ++half) {
      for (int r = 0; r < Kernel::registers; ++r) {
        TensorPlace const at = tensor_place(M, thread % 32, r);
        int const lane = thread / 32 * 32 + lanes_of(M.shape) * half + at.lane;
        std::uint32_t const value = Kernel::value(thread, half, r);
        auto const holds = [&](int column, std::uint32_t what) {
          expected[static_cast<std::size_t>(lane * results + column)] = what;
          ++holders[static_cast<std::size_t>(lane * Kernel::columns + column)];
        };
        holds(at.column, value & Kernel::kept);
        if (M.packing == TensorPacking::halves) holds(at.column + 1, value >> 16);
        expected[static_cast<std::size_t>(thread * results + Kernel::columns +
                                          half * Kernel::registers + r)] = value;
      }
    }
  }
  EXPECT_EQ(holders, std::vector<int>(holders.size(), 1)) << "each cell has one register";
  for_each_schedule(
      [&](sim::Options const& options) {
        EXPECT_EQ(run<Kernel>({0}, expected.size(), options), expected);
      },
      blackwell());
}

TEST(TensorMemory, MovesEveryShape) {
  using enum TensorShape;
  expect_moved<TensorMove{lanes32_bits32, 1}>();
  expect_moved<TensorMove{lanes32_bits32, 8}>();
  expect_moved<TensorMove{lanes16_bits64, 2}>();
  expect_moved<TensorMove{lanes16_bits128, 4}>();
  expect_moved<TensorMove{lanes16_bits256, 2}>();
  expect_moved<TensorMove{lanes16_bits256, 8}>();
  // each half of the threads has columns of its own
  expect_moved<TensorMove{.shape = lanes16_bits32_x2, .repeat = 4, .split = 4}>();
}

TEST(TensorMemory, PacksHalves) {
  using enum TensorShape;
  constexpr TensorPacking halves = TensorPacking::halves;
  expect_moved<TensorMove{lanes32_bits32, 4, halves}>();
  expect_moved<TensorMove{lanes16_bits64, 2, halves}>();
  expect_moved<TensorMove{lanes16_bits128, 1, halves}>();
  expect_moved<TensorMove{lanes16_bits256, 2, halves}>();
  expect_moved<TensorMove{lanes16_bits32_x2, 2, halves, 4}>();
}

/// Both halves of a warp's threads load; the upper ones from columns that nobody has allocated.
struct SplitTooFar {
  using Params = Words;
  static constexpr int threads = 32;
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    tcgen05_alloc<32>(shared_address(&smem.tmem));
    warp::sync();
    TensorAddr const own = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    std::uint32_t const zero[1] = {0};
    tcgen05_st<TensorShape::lanes32_bits32, 1>(zero, own);
    tcgen05_wait_st();
    std::uint32_t r[1];
    tcgen05_ld<TensorShape::lanes16_bits32_x2, 1, TensorPacking::none, 32>(r, own);
    tcgen05_wait_ld();
    st_global(p.out + thread_idx(), r[0]);
    tcgen05_dealloc<32>(own);
  }
};

TEST(TensorMemory, BothColumnsOfASplitMoveAreChecked) {
  sim::Report const report = observe<SplitTooFar>({0}, 32).report;
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, sim::FindingKind::out_of_bounds);
  EXPECT_NE(report.findings[0].message.find("columns 32 to 32"), std::string::npos)
      << report.findings[0].message;
}

// Literal places, from the figures of the PTX ISA.
TEST(TensorMemory, PlacesOfRegisters) {
  auto const place = [](TensorShape shape, int thread, int r) {
    TensorPlace const at = tensor_place(shape, thread, r);
    return std::array<int, 2>{at.lane, at.column};
  };
  EXPECT_EQ(place(TensorShape::lanes32_bits32, 17, 3), (std::array<int, 2>{17, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits32_x2, 17, 3), (std::array<int, 2>{1, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits64, 1, 0), (std::array<int, 2>{8, 0}));
  EXPECT_EQ(place(TensorShape::lanes16_bits64, 2, 1), (std::array<int, 2>{0, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits128, 5, 1), (std::array<int, 2>{9, 1}));
  EXPECT_EQ(place(TensorShape::lanes16_bits256, 5, 1), (std::array<int, 2>{1, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits256, 5, 6), (std::array<int, 2>{9, 10}));
}

/// A second allocation waits until the first is freed.
struct Blocks {
  using Params = Words;
  static constexpr int threads = 64;
  struct SharedStorage {
    std::uint32_t first, second;
    template <class F> void name_buffers(F&& name) {
      name("first", first);
      name("second", second);
    }
  };
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    if (warp_id() == 0) tcgen05_alloc<512>(shared_address(&smem.first));
    cta::sync();
    if (warp_id() == 1) {
      tcgen05_alloc<256>(shared_address(&smem.second));
      warp::sync();
      tcgen05_dealloc<256>(ld_shared<std::uint32_t>(shared_address(&smem.second)));
      if (lane_id() == 0) st_global(p.out, std::uint32_t{7});
    } else {
      tcgen05_dealloc<512>(ld_shared<std::uint32_t>(shared_address(&smem.first)));
    }
  }
};
TEST(TensorMemory, AllocationsWaitForColumns) {
  for_each_schedule(
      [](sim::Options const& options) { EXPECT_EQ(run<Blocks>({0}, 1, options)[0], 7u); },
      blackwell());
}

}  // namespace
}  // namespace tegula
