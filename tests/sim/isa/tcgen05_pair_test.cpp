// tcgen05 by pairs of CTAs on the simulated machine: products of every kind at every schedule, and
// what is refused. The gallery (examples/broken/12_pairs) has what the checker finds.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "refusal.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tensor_memory_runs.hpp"
#include "tensor_product_kernel.hpp"

namespace tegula {
namespace {

TEST(Tcgen05Pair, MultipliesEveryKind) {
  expect_product<TensorProduct{.a = DType::bf16, .b = DType::bf16, .m = 256, .n = 64, .ctas = 2}>();
  expect_product<TensorProduct{.a = DType::f16, .b = DType::f16, .m = 128, .n = 32, .ctas = 2}>();
  expect_product<TensorProduct{.a = DType::tf32, .b = DType::tf32, .m = 256, .n = 48, .ctas = 2}>();
  expect_product<TensorProduct{.a = DType::e4m3, .b = DType::e5m2, .m = 128, .n = 16, .ctas = 2}>();
}

TEST(Tcgen05Pair, MultipliesNarrowFloatsAndIntegers) {
  expect_product<TensorProduct{.a = DType::e3m2, .b = DType::e2m1, .m = 256, .n = 32, .ctas = 2}>();
  expect_product<TensorProduct{
      .a = DType::e2m3, .b = DType::e4m3, .m = 128, .n = 32, .ctas = 2, .d = DType::f16}>();
  expect_product<TensorProduct{
      .a = DType::u8, .b = DType::s8, .m = 128, .n = 64, .ctas = 2, .d = DType::s32}>();
  expect_product<TensorProduct{.a = DType::s8,
                               .b = DType::s8,
                               .m = 256,
                               .n = 32,
                               .ctas = 2,
                               .d = DType::s32,
                               .saturate = true}>();
}

TEST(Tcgen05Pair, ScalesItsAccumulators) {
  expect_product<TensorProduct{.a = DType::f16,
                               .b = DType::f16,
                               .m = 128,
                               .n = 32,
                               .ctas = 2,
                               .d = DType::f16,
                               .negate_a = true,
                               .scale_input_d = 2}>();
}

TEST(Tcgen05Pair, ReadsOperandsOfEitherMajor) {
  expect_product<TensorProduct{.a = DType::bf16,
                               .b = DType::bf16,
                               .m = 256,
                               .n = 128,
                               .a_mn = true,
                               .b_mn = true,
                               .ctas = 2}>();
}

TEST(Tcgen05Pair, ReadsAFromTensorMemory) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 256, .n = 32, .a_tmem = true, .ctas = 2}>();
}

// Of m 128 lanes 64 to 127 have a copy of A.
TEST(Tcgen05Pair, ReadsTwoCopiesOfAFromTensorMemory) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 64, .a_tmem = true, .ctas = 2}>();
  using Kernel = Multiplies<TensorProduct{.a = DType::bf16,
                                          .b = DType::bf16,
                                          .m = 128,
                                          .n = 64,
                                          .a_tmem = true,
                                          .ctas = 2,
                                          .copies = 1}>;
  std::vector<std::uint32_t> const in(
      1 + Kernel::m * Kernel::n + (Kernel::m + Kernel::n) * Kernel::k, code_of(DType::bf16, 1));
  EXPECT_NE(sentence<sim::CheckError>([&] {
              run<Kernel>(in, Kernel::m * Kernel::n, blackwell(), {2, 1, 1});
            }).find("must have a copy of lanes 0 to 63"),
            std::string::npos);
}

TEST(Tcgen05Pair, IsStartedByEitherCta) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 256, .n = 32, .ctas = 2, .issuer = 1}>();
}

TEST(Tcgen05Pair, IsTheSameAtEverySchedule) {
  using Kernel =
      Multiplies<TensorProduct{.a = DType::bf16, .b = DType::bf16, .m = 128, .n = 32, .ctas = 2}>;
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

TEST(Tcgen05Pair, LeavesLanesAsTheyAre) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 256, .n = 32, .ctas = 2, .leaves = true}>();
  expect_product<TensorProduct{.a = DType::e4m3,
                               .b = DType::e4m3,
                               .m = 128,
                               .n = 64,
                               .a_tmem = true,
                               .ctas = 2,
                               .issuer = 1,
                               .leaves = true}>();
}

TEST(Tcgen05Pair, SpecsThatAreNoneAreRefused) {
  auto const spec = [](int m, int n, MmaOperands operands = MmaOperands::ss) {
    return tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, m, n, Major::k, Major::k,
                             operands, 2);
  };
  EXPECT_EQ(spec(256, 256).ctas, 2);
  for (int const m : {128, 256}) {
    Tcgen05Instruction const read = decode_tcgen05_instruction(
        Tcgen05Kind::f16, {.ctas = 2}, tcgen05_instruction_descriptor(spec(m, 64)));
    EXPECT_EQ(read.spec, spec(m, 64));
    EXPECT_EQ(read.unknown, 0u);
  }
  EXPECT_THROW(spec(64, 64), layout_error);
  EXPECT_EQ(spec(256, 16).n, 16);
  EXPECT_THROW(spec(256, 24), layout_error);
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
