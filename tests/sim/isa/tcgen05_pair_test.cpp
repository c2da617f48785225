// tcgen05 by pairs of CTAs on the simulated machine: products of every kind at every schedule, and
// what is refused. The gallery (examples/broken/12_pairs) has what the checker finds.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "refusal.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tensor_memory.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {
namespace {

/// D = A B [+ D] by a pair of CTAs, of tiles of two steps along k; the CTA of rank `issuer` starts
/// it. in: as expect_products says.
template <DType A, DType B, int m_, int n_, bool a_mn = false, bool b_mn = false,
          bool a_tmem = false, int issuer = 0>
struct PairMultiplies {
  using Params = Words;
  static constexpr MmaSpec op =
      tensor_memory_mma(A, B, DType::f32, m_, n_, major(a_mn), major(b_mn),
                        a_tmem ? MmaOperands::ts : MmaOperands::ss, 2);
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int threads = 128;
  static constexpr int m = m_, n = n_, k = 2 * op.k;
  static constexpr int own_m = m / 2, own_n = n / 2;  // of each CTA's operands
  static constexpr int columns = m == 128 ? n / 2 : n;
  static constexpr int bits = element_bits(op);
  using Element = ElementBits<bits>;
  struct SharedStorage {
    SharedTile<Element, swizzled_operand(bits, own_m, k, a_mn ? 0 : 1)> a;
    SharedTile<Element, swizzled_operand(bits, own_n, k, b_mn ? 0 : 1)> b;
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
    int const thread = thread_idx(), warp = warp_id(), rank = cluster_cta_rank();
    bool const accumulate = ld_global<std::uint32_t>(p.in) != 0;
    std::uint32_t const* const a = p.in + 1 + m * n + rank * own_m * k;
    std::uint32_t const* const b = p.in + 1 + m * n + m * k + rank * own_n * k;
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int i = thread; i < own_m * k; i += threads)
      sA(i / k, i % k) = static_cast<Element>(ld_global<std::uint32_t>(a + i));
    for (int i = thread; i < own_n * k; i += threads)
      sB(i / k, i % k) = static_cast<Element>(ld_global<std::uint32_t>(b + i));
    SharedAddr const done = shared_address(&smem.done);
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) {
      tcgen05_alloc<512, 2>(shared_address(&smem.tmem));
      tcgen05_relinquish_alloc_permit<2>();
    }
    fence_proxy_async_shared();
    cluster::sync();

    // Lane i has row i of the CTA's half; of 64 rows lane 64 + i has the upper columns of row i.
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const own = base + tensor_address(32 * warp, 0);
    int const row = rank * own_m + thread % own_m, first = thread / own_m * columns;
    for (int column = 0; column < columns; ++column) {
      std::uint32_t r[1] = {ld_global<std::uint32_t>(p.in + 1 + row * n + first + column)};
      tcgen05_st<TensorShape::lanes32_bits32, 1>(r, own + tensor_address(0, column));
    }
    if constexpr (a_tmem) {  // sixteen columns from 256 on
      std::uint32_t packed[16] = {};
      for (int i = 0; i < k; ++i)
        packed[i * bits / 32] |= ld_global<std::uint32_t>(a + thread * k + i) << (i * bits % 32);
      tcgen05_st<TensorShape::lanes32_bits32, 16>(packed, own + tensor_address(0, 256));
    }
    tcgen05_wait_st();
    tcgen05_fence_before_thread_sync();
    cluster::sync();

    if (thread == 0 && rank == issuer) {
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
      tcgen05_commit_multicast<2>(done, 0b11);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    for (int column = 0; column < columns; column += 8) {
      std::uint32_t r[8];
      tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, own + tensor_address(0, column));
      tcgen05_wait_ld();
      for (int i = 0; i < 8; ++i) st_global(p.out + row * n + first + column + i, r[i]);
    }
    tcgen05_fence_before_thread_sync();
    cluster::sync();
    if (warp == 0) tcgen05_dealloc<512, 2>(base);
  }
};

template <DType A, DType B, int m, int n, bool a_mn = false, bool b_mn = false, bool a_tmem = false,
          int issuer = 0>
void expect_product() {
  expect_products<PairMultiplies<A, B, m, n, a_mn, b_mn, a_tmem, issuer>>(A, B, {2, 1, 1});
}

TEST(Tcgen05Pair, MultipliesEveryKind) {
  expect_product<DType::bf16, DType::bf16, 256, 64>();
  expect_product<DType::f16, DType::f16, 128, 32>();
  expect_product<DType::tf32, DType::tf32, 256, 32>();
  expect_product<DType::e4m3, DType::e5m2, 128, 96>();
}

TEST(Tcgen05Pair, ReadsOperandsOfEitherMajor) {
  expect_product<DType::bf16, DType::bf16, 256, 128, true, true>();
}

TEST(Tcgen05Pair, ReadsAFromTensorMemory) {
  expect_product<DType::bf16, DType::bf16, 256, 32, false, false, true>();
}

TEST(Tcgen05Pair, IsStartedByEitherCta) {
  expect_product<DType::bf16, DType::bf16, 256, 32, false, false, false, 1>();
}

TEST(Tcgen05Pair, IsTheSameAtEverySchedule) {
  using Kernel = PairMultiplies<DType::bf16, DType::bf16, 128, 32>;
  SmallIntegers integers;
  std::vector<std::uint32_t> in{1};
  for (int const x : integers.draw(Kernel::m * Kernel::n, 100))
    in.push_back(code_of(DType::f32, x));
  for (int const x : integers.draw((Kernel::m + Kernel::n) * Kernel::k, 3))
    in.push_back(code_of(DType::bf16, x));
  std::size_t const words = Kernel::m * Kernel::n;
  auto const expected = run<Kernel>(in, words, blackwell(), {2, 1, 1});
  for_each_schedule(
      [&](sim::Options const& options) {
        EXPECT_EQ(run<Kernel>(in, words, options, {2, 1, 1}), expected);
      },
      blackwell());
}

TEST(Tcgen05Pair, SpecsThatAreNoneAreRefused) {
  auto const spec = [](int m, int n, MmaOperands operands = MmaOperands::ss) {
    return tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, m, n, Major::k, Major::k,
                             operands, 2);
  };
  EXPECT_EQ(spec(256, 256).ctas, 2);
  for (int const m : {128, 256}) {
    Tcgen05Instruction const read = decode_tcgen05_instruction(
        Tcgen05Kind::f16, MmaOperands::ss, tcgen05_instruction_descriptor(spec(m, 64)), 2);
    EXPECT_EQ(read.spec, spec(m, 64));
    EXPECT_EQ(read.unknown, 0u);
  }
  EXPECT_THROW(spec(64, 64), layout_error);
  EXPECT_THROW(spec(256, 16), layout_error);
  EXPECT_THROW(spec(128, 64, MmaOperands::ts), layout_error);
}

/// The pair asks for different numbers of columns, or a CTA is in no pair.
template <int Other> struct Allocates {
  using Params = Words;
  static constexpr Dim3 cluster = {Other == 0 ? 1 : 2, 1, 1};
  static constexpr int threads = 32;
  struct SharedStorage {
    std::uint32_t tmem;
  };
  TEGULA_DEVICE void operator()(Words const&, SharedStorage& smem) const {
    SharedAddr const tmem = shared_address(&smem.tmem);
    if (cluster_cta_rank() == 0) {
      tcgen05_alloc<32, 2>(tmem);
    } else {
      tcgen05_alloc<Other == 0 ? 32 : Other, 2>(tmem);
    }
  }
};
template <class Kernel> std::string refusal_of_launch() {
  try {
    run<Kernel>({0}, 1, blackwell(), Kernel::cluster);
  } catch (sim::CheckError const& error) {
    return error.what();
  }
  return "";
}
TEST(Tcgen05Pair, AllocatesForBothAlike) {
  EXPECT_NE(refusal_of_launch<Allocates<0>>().find("by CTA 0 of a cluster of 1"),
            std::string::npos);
  EXPECT_NE(refusal_of_launch<Allocates<64>>().find("both ask for as many"), std::string::npos);
}

}  // namespace
}  // namespace tegula
