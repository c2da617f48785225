// tcgen05.shift; tcgen05.cp that unpacks elements of 6 and 4 bits, and products with A of such in
// tensor memory; and what is found where one of them is used wrongly.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tensor_memory_runs.hpp"

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
template <int Ctas, ShiftSlip S = ShiftSlip::none> struct Shifts {
  using Params = Words;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  static constexpr int threads = 128;
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

  TEGULA_DEVICE static void meet() {
    if constexpr (Ctas == 1)
      cta::sync();
    else
      cluster::sync();
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), warp = warp_id(), rank = Ctas == 1 ? 0 : cluster_cta_rank();
    SharedAddr const done = shared_address(&smem.done);
    for (int i = thread; i < 512; i += threads)
      st_shared(shared_address(smem.rows) + 4 * static_cast<SharedAddr>(i), std::uint32_t{7});
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) tcgen05_alloc<32, Ctas>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    meet();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const own = base + tensor_address(32 * warp, 0);
    if (S != ShiftSlip::not_written || warp != 2) {
      std::uint32_t cells[kTileColumns];
      for (int i = 0; i < kTileColumns; ++i)
        cells[i] = static_cast<std::uint32_t>(1000 * (128 * rank + thread) + i);
      tcgen05_st<TensorShape::lanes32_bits32, kTileColumns>(cells, own);
      tcgen05_wait_st();
    }
    if (S != ShiftSlip::no_fence) tcgen05_fence_before_thread_sync();
    meet();
    if (thread == 0 && rank == 0) {
      tcgen05_fence_after_thread_sync();
      int const first = S == ShiftSlip::beyond_columns ? 28 : kShiftedFrom;
      tcgen05_shift_down<Ctas>(base + tensor_address(S == ShiftSlip::wrong_lane ? 32 : 0, first));
      if constexpr (S == ShiftSlip::shifted_twice) tcgen05_shift_down<Ctas>(base + kShiftedFrom);
      if constexpr (S == ShiftSlip::copied_after)
        tcgen05_cp<TensorCopyShape::rows32_bits128_warpx4>(
            base + kShiftedFrom, rows16_descriptor(shared_address(smem.rows)));
      if constexpr (Ctas == 1)
        tcgen05_commit(done);
      else
        tcgen05_commit_multicast<Ctas>(done, 3);
    }
    if (S != ShiftSlip::no_commit || warp != 0) mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    if (S != ShiftSlip::not_written || warp != 2) {
      std::uint32_t cells[kTileColumns];
      tcgen05_ld<TensorShape::lanes32_bits32, kTileColumns>(cells, own);
      tcgen05_wait_ld();
      for (int i = 0; i < kTileColumns; ++i)
        st_global(p.out + (128 * rank + thread) * kTileColumns + i, cells[i]);
    }
    if (S == ShiftSlip::no_commit) mbarrier_wait_parity(done, 0);
    tcgen05_fence_before_thread_sync();
    meet();
    if (warp == 0) tcgen05_dealloc<32, Ctas>(base);
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

template <class Kernel> sim::Report shift_report(sim::Options options = blackwell()) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  auto* const out = static_cast<std::uint32_t*>(machine.allocate(4 * 128 * kTileColumns, "out"));
  return sim::launch<Kernel>(machine, Dim3{}, Words{out, out});
}

TEST(Tcgen05Shift, MistakesAreFound) {
  using Kind = sim::FindingKind;
  auto const expect = [](sim::Report const& report, Kind kind, char const* says) {
    ASSERT_FALSE(report.ok()) << says;
    std::string const text = sim::to_string(report.findings.front(), "");
    EXPECT_EQ(report.findings.front().kind, kind) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  };
  EXPECT_TRUE(shift_report<Shifts<1>>().ok());
  expect(shift_report<Shifts<1, ShiftSlip::wrong_lane>>(), Kind::invalid_operand, "from lane 32");
  expect(shift_report<Shifts<1, ShiftSlip::beyond_columns>>(), Kind::out_of_bounds,
         "columns 28 to 35");
  expect(shift_report<Shifts<1, ShiftSlip::not_written>>(), Kind::uninitialized_read,
         "tcgen05.shift");
  expect(shift_report<Shifts<1, ShiftSlip::no_commit>>(), Kind::async_read_early, "tcgen05_commit");
  expect(shift_report<Shifts<1, ShiftSlip::no_fence>>(), Kind::data_race, "before_thread_sync");
  expect(shift_report<Shifts<1, ShiftSlip::shifted_twice>>(), Kind::async_read_early,
         "shifts and copies");
  expect(shift_report<Shifts<1, ShiftSlip::copied_after>>(), Kind::async_overwrite,
         "shifts and copies");
}

// Without the shift the result is another one; delayed past the commit it is in flight too long.
TEST(Tcgen05Shift, EveryMutantIsFound) {
  sim::Options options = blackwell();
  options.list_marked = true;
  int mutants = 0;
  for (sim::MarkedStatement const& statement : shift_report<Shifts<1>>(options).marked) {
    if (statement.operation != Operation::tcgen05_shift) continue;
    for (auto const mutation : {Mutation::removed, Mutation::delayed}) {
      sim::Options mutated = blackwell();
      mutated.throw_on_finding = false;
      mutated.mutant =
          sim::Mutant{statement.where.file, statement.where.line, statement.operation, mutation};
      bool const found = !shift_report<Shifts<1>>(mutated).ok() ||
                         run<Shifts<1>>({0}, 128 * kTileColumns, mutated) != shifted<1>();
      EXPECT_TRUE(found) << to_string(mutation);
      ++mutants;
    }
  }
  EXPECT_EQ(mutants, 2);
}

/// D = A B^T with A of 6 or 4 bits: from shared memory, and, unpacked by a tcgen05.cp, from tensor
/// memory. out: of each lane both rows of D, and the eight columns of A. in: the bytes of A,
/// (128, 32), then those of B, (16, 32), four to a word.
template <DType A, bool Writes = true> struct Unpacks {
  using Params = Words;
  static constexpr int threads = 128, n = 16, words = 2 * n + 8;
  static constexpr MmaOperands ts = MmaOperands::ts;
  static constexpr MmaSpec of_shared = tensor_memory_mma(A, DType::e4m3, DType::f32, 128, n);
  static constexpr MmaSpec of_tensor =
      tensor_memory_mma(A, DType::e4m3, DType::f32, 128, n, Major::k, Major::k, ts);
  static constexpr TensorCopyFormat format =
      bits(A) == 4 ? TensorCopyFormat::from_4_bits : TensorCopyFormat::from_6_bits;
  struct SharedStorage {
    SharedTile<std::uint8_t, swizzled_operand(8, 128, 32, 1)> a;
    SharedTile<std::uint8_t, swizzled_operand(8, n, 32, 1)> b;
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("tmem", tmem);
    }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), warp = warp_id();
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    // Behind 16 elements there is padding, which a copy does not read.
    auto const byte = [&](int i) {
      return static_cast<std::uint8_t>(ld_global<std::uint32_t>(p.in + i / 4) >> 8 * (i % 4));
    };
    for (int k = 0; k < 32; ++k)
      if (Writes || k % 16 < bytes_read_of(format)) sA(thread, k) = byte(32 * thread + k);
    for (int i = thread; i < 32 * n; i += threads) sB(i / 32, i % 32) = byte(32 * 128 + i);
    SharedAddr const done = shared_address(&smem.done);
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) tcgen05_alloc<64>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const of_a = base + tensor_address(0, 2 * n);
    if (thread == 0) {
      std::uint64_t const a = matrix_descriptor<DescriptorForm::tcgen05>(sA);
      std::uint64_t const b = matrix_descriptor<DescriptorForm::tcgen05>(sB);
      if (Writes) tcgen05_mma<of_shared>(base, a, b, false);
      tcgen05_cp<TensorCopyShape::rows128_bits256, 1, format>(of_a, a);
      tcgen05_mma_ts<of_tensor>(base + n, of_a, b, false);
      tcgen05_commit(done);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    for (int i = Writes ? 0 : n; i < words; ++i) {
      std::uint32_t cell[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(cell, base + tensor_address(32 * warp, i));
      tcgen05_wait_ld();
      st_global(p.out + words * thread + i, cell[0]);
    }
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (warp == 0) tcgen05_dealloc<64>(base);
  }
};

template <DType A, bool Writes = true> void expect_unpacked() {
  using Kernel = Unpacks<A, Writes>;
  std::mt19937 random(5);
  std::vector<std::uint32_t> in(32 * (128 + Kernel::n) / 4);
  for (auto& word : in) word = random() & 0x77777777u;  // no NaN of e4m3
  auto const byte = [&](int i) {
    return in[static_cast<std::size_t>(i / 4)] >> 8 * (i % 4) & 0xff;
  };
  for_each_schedule(
      [&](sim::Options const& options) {
        auto const out = run<Kernel>(in, 128 * Kernel::words, options);
        for (int row = 0; row < 128; ++row) {
          auto const at = [&](int word) {
            return out[static_cast<std::size_t>(Kernel::words * row + word)];
          };
          for (int j = 0; Writes && j < Kernel::n; ++j) EXPECT_EQ(at(j), at(Kernel::n + j));
          for (int k = 0; k < 32; ++k) {  // bit by bit
            std::uint32_t element = 0;
            for (int bit = 0; bit < bits(A); ++bit) {
              int const from = k % 16 * bits(A) + bit;
              element |= (byte(32 * row + k / 16 * 16 + from / 8) >> from % 8 & 1) << bit;
            }
            EXPECT_EQ(at(2 * Kernel::n + k / 4) >> 8 * (k % 4) & 0xff,
                      bits(A) == 4 ? element << 2 : element);
          }
        }
      },
      blackwell());
}

TEST(Tcgen05Cp, UnpacksWhatAProductReadsFromTensorMemory) {
  expect_unpacked<DType::e2m1>();
  expect_unpacked<DType::e2m3>();
  expect_unpacked<DType::e3m2>();
}
TEST(Tcgen05Cp, DoesNotReadThePadding) {
  expect_unpacked<DType::e2m1, false>();
  expect_unpacked<DType::e3m2, false>();
}

}  // namespace
}  // namespace tegula
