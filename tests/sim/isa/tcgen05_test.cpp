// Tensor memory and tcgen05.mma on the simulated machine: moves of every shape, operands of every
// kind, at every schedule.
#include "tegula/arch/tcgen05.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tensor_memory.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {
namespace {

/// Each warp stores registers by one shape, and loads its 32 lanes back row by row.
template <TensorShape S, int Repeat> struct Moves {
  using Params = Words;
  static constexpr int threads = 128;
  static constexpr int halves = 32 / lanes_of(S);
  static constexpr int registers = Repeat * registers_of(S);
  static constexpr int columns = Repeat * columns_of(S);
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const warp = warp_id();
    if (warp == 0) tcgen05_alloc<512>(shared_address(&smem.tmem));
    cta::sync();
    TensorAddr const own =
        ld_shared<std::uint32_t>(shared_address(&smem.tmem)) + tensor_address(32 * warp, 0);
    for (int half = 0; half < halves; ++half) {
      std::uint32_t r[registers];
      for (int i = 0; i < registers; ++i)
        r[i] = static_cast<std::uint32_t>(thread_idx() * 1000 + half * 500 + i);
      tcgen05_st<S, Repeat>(r, own + tensor_address(16 * half, 0));
    }
    tcgen05_wait_st();
    for (int column = 0; column < columns; ++column) {
      std::uint32_t value[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(value, own + tensor_address(0, column));
      tcgen05_wait_ld();
      st_global(p.out + thread_idx() * columns + column, value[0]);
    }
    cta::sync();
    if (warp == 0) tcgen05_dealloc<512>(ld_shared<std::uint32_t>(shared_address(&smem.tmem)));
  }
};

template <TensorShape S, int Repeat> void expect_moved() {
  using Kernel = Moves<S, Repeat>;
  std::vector<std::uint32_t> expected(128 * Kernel::columns);
  std::vector<int> holders(expected.size());
  for (int thread = 0; thread < 128; ++thread) {
    for (int half = 0; half < Kernel::halves; ++half) {
      for (int r = 0; r < Kernel::registers; ++r) {
        TensorPlace const at = tensor_place(S, thread % 32, r);
        int const lane = thread / 32 * 32 + lanes_of(S) * half + at.lane;
        std::size_t const cell = static_cast<std::size_t>(lane * Kernel::columns + at.column);
        expected[cell] = static_cast<std::uint32_t>(thread * 1000 + half * 500 + r);
        ++holders[cell];
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
  expect_moved<TensorShape::lanes32_bits32, 1>();
  expect_moved<TensorShape::lanes32_bits32, 8>();
  expect_moved<TensorShape::lanes16_bits64, 2>();
  expect_moved<TensorShape::lanes16_bits128, 4>();
  expect_moved<TensorShape::lanes16_bits256, 2>();
  expect_moved<TensorShape::lanes16_bits256, 8>();
}

// Literal places, from the figures of the PTX ISA.
TEST(TensorMemory, PlacesOfRegisters) {
  auto const place = [](TensorShape shape, int thread, int r) {
    TensorPlace const at = tensor_place(shape, thread, r);
    return std::array<int, 2>{at.lane, at.column};
  };
  EXPECT_EQ(place(TensorShape::lanes32_bits32, 17, 3), (std::array<int, 2>{17, 3}));
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

/// D = A B [+ D] of tiles of two steps along k in shared memory, or A in tensor memory. in: whether
/// it accumulates, D, A (m, k) and B (n, k), a word an element.
template <DType A, DType B, int m_, int n_, bool a_mn = false, bool b_mn = false,
          bool a_tmem = false>
struct Multiplies {
  using Params = Words;
  static constexpr MmaSpec op =
      tensor_memory_mma(A, B, DType::f32, m_, n_, major(a_mn), major(b_mn),
                        a_tmem ? MmaOperands::ts : MmaOperands::ss);
  static constexpr int threads = 128;
  static constexpr int m = m_, n = n_, k = 2 * op.k;
  static constexpr int bits = element_bits(op);
  using Element = ElementBits<bits>;
  struct SharedStorage {
    SharedTile<Element, swizzled_operand(bits, m, k, a_mn ? 0 : 1)> a;
    SharedTile<Element, swizzled_operand(bits, n, k, b_mn ? 0 : 1)> b;
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("tmem", tmem);
    }
  };
  /// The lane of a row: of 64 rows, 16 in each warp's.
  TEGULA_DEVICE static bool own_row(int& row) {
    int const warp = warp_id(), lane = lane_id();
    row = m == 64 ? 16 * warp + lane : 32 * warp + lane;
    return m == 128 || lane < 16;
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), warp = warp_id();
    bool const accumulate = ld_global<std::uint32_t>(p.in) != 0;
    std::uint32_t const* const d = p.in + 1;
    std::uint32_t const* const a = d + m * n;
    std::uint32_t const* const b = a + m * k;
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int i = thread; i < m * k; i += threads)
      sA(i / k, i % k) = static_cast<Element>(ld_global<std::uint32_t>(a + i));
    for (int i = thread; i < n * k; i += threads)
      sB(i / k, i % k) = static_cast<Element>(ld_global<std::uint32_t>(b + i));
    SharedAddr const done = shared_address(&smem.done);
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) tcgen05_alloc<512>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();

    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const own = base + tensor_address(32 * warp, 0);
    int row = 0;
    bool const has_row = own_row(row);
    for (int column = 0; column < n; ++column) {
      std::uint32_t r[1] = {has_row ? ld_global<std::uint32_t>(d + row * n + column) : 0};
      tcgen05_st<TensorShape::lanes32_bits32, 1>(r, own + tensor_address(0, column));
    }
    if constexpr (a_tmem) {  // sixteen columns from 256 on
      std::uint32_t packed[16] = {};
      for (int i = 0; i < k; ++i)
        packed[i * bits / 32] |= (has_row ? ld_global<std::uint32_t>(a + row * k + i) : 0)
                                 << (i * bits % 32);
      tcgen05_st<TensorShape::lanes32_bits32, 16>(packed, own + tensor_address(0, 256));
    }
    tcgen05_wait_st();
    tcgen05_fence_before_thread_sync();
    cta::sync();

    if (thread == 0) {
      tcgen05_fence_after_thread_sync();
      for (int step = 0; step < 2; ++step) {
        std::uint64_t const of_b =
            matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(sB, 0, step * op.k));
        if constexpr (a_tmem) {
          tcgen05_mma_ts<op>(base, base + tensor_address(0, 256 + 8 * step), of_b,
                             accumulate || step > 0);
        } else {
          tcgen05_mma<op>(
              base, matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(sA, 0, step * op.k)),
              of_b, accumulate || step > 0);
        }
      }
      tcgen05_commit(done);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    for (int column = 0; column < n; column += 8) {
      std::uint32_t r[8];
      tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, own + tensor_address(0, column));
      tcgen05_wait_ld();
      for (int i = 0; i < 8; ++i) {
        if (has_row) st_global(p.out + row * n + column + i, r[i]);
      }
    }
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (warp == 0) tcgen05_dealloc<512>(base);
  }
};

template <DType A, DType B, int m, int n, bool a_mn = false, bool b_mn = false, bool a_tmem = false>
void expect_product() {
  expect_products<Multiplies<A, B, m, n, a_mn, b_mn, a_tmem>>(A, B);
}

TEST(Tcgen05Mma, MultipliesEveryKind) {
  expect_product<DType::bf16, DType::bf16, 128, 32>();
  expect_product<DType::f16, DType::f16, 64, 24>();
  expect_product<DType::tf32, DType::tf32, 128, 16>();
  expect_product<DType::e4m3, DType::e5m2, 64, 8>();
  expect_product<DType::e5m2, DType::e4m3, 128, 48>();
}

TEST(Tcgen05Mma, ReadsOperandsOfEitherMajor) {
  expect_product<DType::bf16, DType::bf16, 128, 64, true, false>();
  expect_product<DType::bf16, DType::bf16, 64, 64, false, true>();
  expect_product<DType::f16, DType::f16, 128, 128, true, true>();
}

TEST(Tcgen05Mma, ReadsAFromTensorMemory) {
  expect_product<DType::bf16, DType::bf16, 128, 32, false, false, true>();
  expect_product<DType::f16, DType::f16, 64, 16, false, true, true>();
  expect_product<DType::e4m3, DType::e4m3, 128, 16, false, false, true>();
  expect_product<DType::tf32, DType::tf32, 64, 32, false, false, true>();
}

TEST(Tcgen05Mma, DescriptorsSayWhatTheyAreMadeFrom) {
  for (DType const type : {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2}) {
    for (int const m : {64, 128}) {
      for (int n = 16; n <= 256; n += 48) {
        for (auto const operands : {MmaOperands::ss, MmaOperands::ts}) {
          MmaSpec const spec =
              tensor_memory_mma(type, type, DType::f32, m, n, Major::k, Major::k, operands);
          Tcgen05Instruction const read = decode_tcgen05_instruction(
              tcgen05_kind(spec), operands, tcgen05_instruction_descriptor(spec));
          EXPECT_EQ(read.spec, spec);
          EXPECT_EQ(read.unknown, 0u);
        }
      }
    }
  }
  // CUTLASS's, of bf16, 128 x 256, both K-major.
  EXPECT_EQ(tcgen05_instruction_descriptor(
                tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 256)),
            0x08400490u);
  for (int const swizzle : {0, 32, 64, 128}) {
    WgmmaDescriptor const d{swizzle, swizzle == 0 ? 256 : 0, 1024};
    std::uint64_t const bits = std::uint64_t{tcgen05_descriptor_high(d)} << 32 | d.low() | 0x123u;
    Tcgen05Operand const read = decode_tcgen05_descriptor(bits);
    EXPECT_TRUE(read.valid);
    EXPECT_EQ(decode_wgmma_descriptor(read.as_wgmma), d);
    EXPECT_FALSE(decode_tcgen05_descriptor(bits ^ std::uint64_t{1} << 46).valid);
    EXPECT_FALSE(decode_tcgen05_descriptor(bits | std::uint64_t{1} << 50).valid);
  }
}

}  // namespace
}  // namespace tegula
