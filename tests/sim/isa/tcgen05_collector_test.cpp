// tcgen05.mma that uses a collector buffer, and what is found where one is used that holds nothing,
// or another operand.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
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
