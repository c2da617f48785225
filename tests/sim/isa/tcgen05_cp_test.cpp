// tcgen05.cp of every shape, and of elements of 6 and 4 bits, which it unpacks for products with A
// in tensor memory.
#include "tegula/arch/tcgen05_cp.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tensor_memory_ctas.hpp"

namespace tegula {
namespace {

/// Copies rows that lie as `d` says from shared memory, and loads 128 lanes back.
template <TensorCopyShape S, int Swizzle> struct Copies : TensorMemoryCtas<1, 32> {
  static constexpr int rows = rows_of(S), columns = columns_of(S);
  static constexpr WgmmaDescriptor d{Swizzle, Swizzle == 0 ? 16 * rows : 0,
                                     Swizzle == 0 ? 128 : 8 * Swizzle};
  struct SharedStorage {
    alignas(1024) std::uint32_t source[rows * (Swizzle == 0 ? columns : Swizzle / 4) + 256];
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("source", source);
      name("done", done);
      name("tmem", tmem);
    }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    SharedAddr const source = shared_address(smem.source);
    for (int i = thread; i < rows * columns; i += threads) {
      int const row = i / columns, word = i % columns;
      SharedAddr const at = wgmma_swizzle(d, source + wgmma_piece_offset(d, false, row, word / 4));
      st_shared(at + 4 * static_cast<SharedAddr>(word % 4), ld_global<std::uint32_t>(p.in + i));
    }
    TensorAddr const base = begin(smem), own = own_lanes(base);
    std::uint32_t const zeros[columns] = {};  // for not every lane gets a row
    tcgen05_st<TensorShape::lanes32_bits32, columns>(zeros, own);
    meet_after_stores();
    if (thread == 0) {
      std::uint64_t const high = tcgen05_descriptor_high(d);
      tcgen05_cp<S>(base, high << 32 | d.low() | source >> 4);
      commit(smem);
    }
    wait(smem);
    std::uint32_t r[columns];
    tcgen05_ld<TensorShape::lanes32_bits32, columns>(r, own);
    tcgen05_wait_ld();
    for (int i = 0; i < columns; ++i) st_global(p.out + thread * columns + i, r[i]);
    end(base);
  }
};

template <TensorCopyShape S, int Swizzle = 0> void expect_copied() {
  using Kernel = Copies<S, Swizzle>;
  std::vector<std::uint32_t> in(static_cast<std::size_t>(Kernel::rows * Kernel::columns));
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(1000 + i);
  for_each_schedule(
      [&](sim::Options const& options) {
        auto const out = run<Kernel>(in, 128 * Kernel::columns, options);
        for (int lane = 0; lane < 128; ++lane) {
          int const row = row_of_lane(S, lane);
          for (int i = 0; i < Kernel::columns; ++i)
            ASSERT_EQ(out[static_cast<std::size_t>(lane * Kernel::columns + i)],
                      row < 0 ? 0 : in[static_cast<std::size_t>(row * Kernel::columns + i)])
                << "lane " << lane << ", column " << i;
        }
      },
      blackwell());
}

TEST(Tcgen05Cp, CopiesEveryShape) {
  expect_copied<TensorCopyShape::rows128_bits256>();
  expect_copied<TensorCopyShape::rows128_bits256, 128>();
  expect_copied<TensorCopyShape::rows4_bits256>();
  expect_copied<TensorCopyShape::rows128_bits128, 64>();
  expect_copied<TensorCopyShape::rows64_bits128_02_13>();
  expect_copied<TensorCopyShape::rows64_bits128_01_23>();
  expect_copied<TensorCopyShape::rows32_bits128_warpx4>();
}

// Literal rows, from the PTX ISA's figures.
TEST(Tcgen05Cp, RowsOfLanes) {
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows128_bits128, 77), 77);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows4_bits256, 96), 3);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows4_bits256, 97), -1);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows64_bits128_02_13, 65), 1);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows64_bits128_01_23, 65), 33);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows32_bits128_warpx4, 97), 1);
}

/// D = A B^T with A of 6 or 4 bits: from shared memory, and, unpacked by a tcgen05.cp, from tensor
/// memory. out: of each lane both rows of D, and the eight columns of A. in: the bytes of A,
/// (128, 32), then those of B, (16, 32), four to a word.
template <DType A, bool Writes = true> struct Unpacks : TensorMemoryCtas<1, 64> {
  static constexpr int n = 16, words = 2 * n + 8;
  static constexpr MmaOperands ts = MmaOperands::ts;
  static constexpr MmaSpec of_shared = tensor_memory_mma(A, DType::e4m3, DType::f32, 128, n);
  static constexpr MmaSpec of_tensor =
      tensor_memory_mma(A, DType::e4m3, DType::f32, 128, n, Major::k, Major::k, ts);
  static constexpr TensorCopyFormat format =
      bits(A) == 4 ? TensorCopyFormat::from_4_bits : TensorCopyFormat::from_6_bits;
  using SharedStorage = ProductStorage<SharedTile<std::uint8_t, swizzled_operand(8, 128, 32, 1)>,
                                       SharedTile<std::uint8_t, swizzled_operand(8, n, 32, 1)>>;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    // Behind 16 elements there is padding, which a copy does not read.
    auto const byte = [&](int i) {
      return static_cast<std::uint8_t>(ld_global<std::uint32_t>(p.in + i / 4) >> 8 * (i % 4));
    };
    for (int k = 0; k < 32; ++k)
      if (Writes || k % 16 < bytes_read_of(format)) sA(thread, k) = byte(32 * thread + k);
    for (int i = thread; i < 32 * n; i += threads) sB(i / 32, i % 32) = byte(32 * 128 + i);
    TensorAddr const base = begin(smem), own = own_lanes(base);
    TensorAddr const of_a = base + tensor_address(0, 2 * n);
    if (thread == 0) {
      std::uint64_t const a = matrix_descriptor<DescriptorForm::tcgen05>(sA);
      std::uint64_t const b = matrix_descriptor<DescriptorForm::tcgen05>(sB);
      if (Writes) tcgen05_mma<of_shared>(base, a, b, false);
      tcgen05_cp<TensorCopyShape::rows128_bits256, 1, format>(of_a, a);
      tcgen05_mma_ts<of_tensor>(base + n, of_a, b, false);
      commit(smem);
    }
    wait(smem);
    for (int i = Writes ? 0 : n; i < words; ++i) {
      std::uint32_t cell[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(cell, own + tensor_address(0, i));
      tcgen05_wait_ld();
      st_global(p.out + words * thread + i, cell[0]);
    }
    end(base);
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
