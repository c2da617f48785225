// tcgen05.mma that uses a collector buffer, and what is found where one is used that holds nothing,
// or another operand.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>

#include "run_schedules.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/tcgen05_scaled.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tensor_memory_ctas.hpp"

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
template <bool Stationary, Misuse M> struct Collects : TensorMemoryCtas<1, 256> {
  static constexpr int n = 64;
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
    SharedAddr const between = shared_address(&smem.between);
    if (thread_idx() == 0) mbarrier_init(between, 1);
    TensorAddr const base = begin(smem);
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
      commit(smem);
    }
    wait(smem);
    end(base);
  }
};

/// Four products with block scales, whose scales and B differ, that share A: D of the last to out.
template <int Ctas, Misuse M> struct CollectsScaled : TensorMemoryCtas<Ctas, 256> {
  using Base = TensorMemoryCtas<Ctas, 256>;
  static constexpr int n = 32;
  static constexpr ScaledMmaSpec op =
      scaled_mma(DType::e4m3, DType::e4m3, DType::ue8m0, 32, n, Ctas);
  static constexpr int of_a = 4 * n, of_b = of_a + 4;
  using SharedStorage =
      ProductStorage<SharedTile<std::uint8_t, swizzled_operand(8, 128, 128, 1)>,
                     SharedTile<std::uint8_t, swizzled_operand(8, n / Ctas, 128, 1)>>;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), row = 128 * Base::rank() + thread;
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int k = 0; k < 128; ++k) {
      sA(thread, k) = static_cast<std::uint8_t>(0x38);                         // 1
      if (thread < n / Ctas) sB(thread, k) = static_cast<std::uint8_t>(0x40);  // 2
    }
    TensorAddr const base = Base::begin(smem), own = Base::own_lanes(base);
    std::uint32_t scales[8];
    for (int i = 0; i < 8; ++i) scales[i] = i < 4 ? 0x82818080u : 0x7f7f7f7fu;  // 2, 2, 4, 8; 1
    tcgen05_st<TensorShape::lanes32_bits32, 8>(scales, own + tensor_address(0, of_a));
    Base::meet_after_stores();
    if (row == 0) {
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
      Base::commit(smem);
    }
    Base::wait(smem);
    std::uint32_t d[4 * n];
    tcgen05_ld<TensorShape::lanes32_bits32, 4 * n>(d, own);
    tcgen05_wait_ld();
    for (int i = 0; i < 4; ++i) st_global(p.out + 4 * row + i, d[n * i]);
    Base::end(base);
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

template <class Kernel> std::string first_finding() {
  return observe<Kernel>({0}, 4 * 128).first_finding();
}

// What is kept is A's elements: their scales are others in each product.
TEST(Tcgen05Collector, OfProductsWithBlockScales) {
  expect_scales_read_each_time<1>();
  expect_scales_read_each_time<2>();
  EXPECT_EQ((first_finding<CollectsScaled<1, Misuse::none>>()), "");
  char const* const not_filled = "no product before it has filled";
  EXPECT_NE((first_finding<CollectsScaled<1, Misuse::not_filled>>().find(not_filled)),
            std::string::npos);
  EXPECT_NE((first_finding<CollectsScaled<1, Misuse::used_after_last>>().find(not_filled)),
            std::string::npos);
}

template <bool Stationary> void expect_misuse_found(std::string const& operand) {
  EXPECT_EQ((first_finding<Collects<Stationary, Misuse::none>>()), "");
  auto const expect = [&](std::string const& text, char const* says) {
    EXPECT_NE(text.find("collector buffer of " + operand), std::string::npos) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  };
  expect(first_finding<Collects<Stationary, Misuse::not_filled>>(),
         "no product before it has filled");
  expect(first_finding<Collects<Stationary, Misuse::used_after_last>>(),
         "no product before it has filled");
  expect(first_finding<Collects<Stationary, Misuse::other>>(), "another operand");
  expect(first_finding<Collects<Stationary, Misuse::overwritten>>(), "another operand");
}

TEST(Tcgen05Collector, OfAIsFilledBeforeItIsUsed) {
  expect_misuse_found<false>("A");
  EXPECT_NE((first_finding<Collects<false, Misuse::discarded>>()), "")
      << "by a product without a word of it";
}
// The default discards buffer 0, and this is buffer 2.
TEST(Tcgen05Collector, OfBIsFilledBeforeItIsUsed) {
  expect_misuse_found<true>("B");
  EXPECT_EQ((first_finding<Collects<true, Misuse::discarded>>()), "");
}

}  // namespace
}  // namespace tegula
