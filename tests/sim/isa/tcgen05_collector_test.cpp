// tcgen05.mma that uses a collector buffer, and what is found where one is used that holds nothing,
// or another operand.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>

#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tcgen05_scaled.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {
namespace {

enum class Misuse : std::uint8_t {
  none,
  not_filled,
  used_after_last,
  discarded,
  overwritten,
  other
};

/// Four products that share an operand, A or, weight-stationary, B, which its collector buffer
/// keeps.
template <bool Stationary, Misuse M> struct Collects {
  using Params = Words;
  static constexpr int threads = 128, n = 64;
  static constexpr MmaSpec op =
      Stationary ? weight_stationary_mma(DType::bf16, DType::bf16, DType::f32, 128, n)
                 : tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, n);
  static constexpr int buffer = Stationary ? 2 : 0;
  struct SharedStorage {
    SharedTile<std::uint16_t, swizzled_operand(16, 128, 16, 1, 2)> a;
    SharedTile<std::uint16_t, swizzled_operand(16, n, 16, 1, 2)> b;
    Mbarrier done, between;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("between", between);
      name("tmem", tmem);
    }
  };

  TEGULA_DEVICE void operator()(Words const&, SharedStorage& smem) const {
    auto const sA = tensor(smem.a);  // (128, 16, 2)
    auto const sB = tensor(smem.b);  // (n, 16, 2)
    for (int i = 0; i < 32; ++i) {
      sA(thread_idx(), i % 16, i / 16) = static_cast<std::uint16_t>(0x3f80 + i);
      if (thread_idx() < n)
        sB(thread_idx(), i % 16, i / 16) = static_cast<std::uint16_t>(0x3f80 + i);
    }
    SharedAddr const done = shared_address(&smem.done), between = shared_address(&smem.between);
    if (thread_idx() == 0) {
      mbarrier_init(done, 1);
      mbarrier_init(between, 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<256>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    if (thread_idx() == 0) {
      auto const product = [&]<Collector C>(int column, int stage) {
        tcgen05_mma_collected<op, C, buffer>(
            base + column,
            matrix_descriptor<DescriptorForm::tcgen05>(sA(_, _, Stationary ? 0 : stage)),
            matrix_descriptor<DescriptorForm::tcgen05>(sB(_, _, Stationary ? stage : 0)), false);
      };
      if (M == Misuse::not_filled)
        product.template operator()<Collector::discard>(0, 0);
      else
        product.template operator()<Collector::fill>(0, 0);
      if (M == Misuse::overwritten) {
        tcgen05_commit(between);
        mbarrier_wait_parity(between, 0);
        if constexpr (Stationary)
          sB(0, 0, 0) = std::uint16_t{0};
        else
          sA(0, 0, 0) = std::uint16_t{0};
        fence_proxy_async_shared();
      }
      product.template operator()<Collector::use>(64, M == Misuse::other ? 1 : 0);
      product.template operator()<Collector::last_use>(128, 0);
      if (M == Misuse::used_after_last) product.template operator()<Collector::use>(192, 0);
      if (M == Misuse::discarded) {
        product.template operator()<Collector::fill>(192, 0);
        tcgen05_mma<op>(base + 192, matrix_descriptor<DescriptorForm::tcgen05>(sA(_, _, 0)),
                        matrix_descriptor<DescriptorForm::tcgen05>(sB(_, _, 0)), false);
        product.template operator()<Collector::use>(192, 0);
      }
      tcgen05_commit(done);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<256>(base);
  }
};

/// Four products with block scales, whose scales and B differ, that share A: D of the last to out.
template <int Ctas, Misuse M> struct CollectsScaled {
  using Params = Words;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  static constexpr int threads = 128, n = 32;
  static constexpr ScaledMmaSpec op =
      scaled_mma(DType::e4m3, DType::e4m3, DType::ue8m0, 32, n, Ctas);
  static constexpr int of_a = 4 * n, of_b = of_a + 4, columns = 256;
  struct SharedStorage {
    SharedTile<std::uint8_t, swizzled_operand(8, 128, 128, 1)> a;
    SharedTile<std::uint8_t, swizzled_operand(8, n / Ctas, 128, 1)> b;
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
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
    int const thread = thread_idx(), rank = Ctas == 1 ? 0 : cluster_cta_rank();
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int k = 0; k < 128; ++k) {
      sA(thread, k) = static_cast<std::uint8_t>(0x38);                         // 1
      if (thread < n / Ctas) sB(thread, k) = static_cast<std::uint8_t>(0x40);  // 2
    }
    SharedAddr const done = shared_address(&smem.done);
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<columns, Ctas>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    meet();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const own = base + tensor_address(32 * warp_id(), 0);
    std::uint32_t scales[8];
    for (int i = 0; i < 8; ++i) scales[i] = i < 4 ? 0x82818080u : 0x7f7f7f7fu;  // 2, 2, 4, 8; 1
    tcgen05_st<TensorShape::lanes32_bits32, 8>(scales, own + tensor_address(0, of_a));
    tcgen05_wait_st();
    tcgen05_fence_before_thread_sync();
    meet();
    if (thread == 0 && rank == 0) {
      tcgen05_fence_after_thread_sync();
      auto const product = [&]<Collector C>(int number, int id) {
        tcgen05_mma_scaled<op, C>(base + static_cast<TensorAddr>(n * number),
                                  matrix_descriptor<DescriptorForm::tcgen05>(sA),
                                  matrix_descriptor<DescriptorForm::tcgen05>(sB), base + of_a,
                                  base + of_b, {id, 0}, false);
      };
      if (M == Misuse::not_filled)
        product.template operator()<Collector::discard>(0, 0);
      else
        product.template operator()<Collector::fill>(0, 0);
      product.template operator()<Collector::use>(1, 2);
      product.template operator()<Collector::last_use>(2, 3);
      if (M == Misuse::used_after_last)
        product.template operator()<Collector::use>(3, 3);
      else
        product.template operator()<Collector::fill>(3, 3);
      if constexpr (Ctas == 1)
        tcgen05_commit(done);
      else
        tcgen05_commit_multicast<Ctas>(done, 3);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    std::uint32_t d[4 * n];
    tcgen05_ld<TensorShape::lanes32_bits32, 4 * n>(d, own);
    tcgen05_wait_ld();
    for (int i = 0; i < 4; ++i) st_global(p.out + 4 * (128 * rank + thread) + i, d[n * i]);
    tcgen05_fence_before_thread_sync();
    meet();
    if (warp_id() == 0) tcgen05_dealloc<columns, Ctas>(base);
  }
};

template <int Ctas> void expect_scales_read_each_time() {
  for_each_schedule(
      [](sim::Options const& options) {
        auto const out =
            run<CollectsScaled<Ctas, Misuse::none>>({0}, 4 * 128 * Ctas, options, Dim3{Ctas, 1, 1});
        for (std::size_t i = 0; i < out.size(); ++i) {
          constexpr float scales[] = {2, 4, 8, 8};
          EXPECT_EQ(std::bit_cast<float>(out[i]), 32 * 2 * scales[i % 4]);
        }
      },
      blackwell());
}

// What is kept is A's elements: their scales are others in each product.
TEST(Tcgen05Collector, OfProductsWithBlockScales) {
  expect_scales_read_each_time<1>();
  expect_scales_read_each_time<2>();
  auto const finding = [](auto kernel) {
    sim::Options options = blackwell();
    options.throw_on_finding = false;
    sim::Machine machine(options);
    auto* const out = static_cast<std::uint32_t*>(machine.allocate(4 * 4 * 128, "out"));
    sim::Report const report = sim::launch<decltype(kernel)>(machine, Dim3{}, Words{out, out});
    return report.ok() ? "" : sim::to_string(report.findings.front(), "");
  };
  EXPECT_EQ(finding(CollectsScaled<1, Misuse::none>{}), "");
  EXPECT_NE(
      finding(CollectsScaled<1, Misuse::not_filled>{}).find("no product before it has filled"),
      std::string::npos);
  EXPECT_NE(
      finding(CollectsScaled<1, Misuse::used_after_last>{}).find("no product before it has filled"),
      std::string::npos);
}

template <bool Stationary, Misuse M> std::string first_finding() {
  sim::Options options = blackwell();
  options.throw_on_finding = false;
  sim::Machine machine(options);
  sim::Report const report = sim::launch<Collects<Stationary, M>>(machine, Dim3{}, Words{});
  return report.ok() ? "" : sim::to_string(report.findings.front(), "");
}

template <bool Stationary> void expect_misuse_found(std::string const& operand) {
  EXPECT_EQ((first_finding<Stationary, Misuse::none>()), "");
  auto const expect = [&](std::string const& text, char const* says) {
    EXPECT_NE(text.find("collector buffer of " + operand), std::string::npos) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  };
  expect(first_finding<Stationary, Misuse::not_filled>(), "no product before it has filled");
  expect(first_finding<Stationary, Misuse::used_after_last>(), "no product before it has filled");
  expect(first_finding<Stationary, Misuse::other>(), "another operand");
  expect(first_finding<Stationary, Misuse::overwritten>(), "another operand");
}

TEST(Tcgen05Collector, OfAIsFilledBeforeItIsUsed) {
  expect_misuse_found<false>("A");
  EXPECT_NE((first_finding<false, Misuse::discarded>()), "") << "by a product without a word of it";
}
// The default discards buffer 0, and this is buffer 2.
TEST(Tcgen05Collector, OfBIsFilledBeforeItIsUsed) {
  expect_misuse_found<true>("B");
  EXPECT_EQ((first_finding<true, Misuse::discarded>()), "");
}

}  // namespace
}  // namespace tegula
