// tcgen05.mma of one CTA on the simulated machine: operands of every kind, at every schedule.
#include "tegula/arch/tcgen05.hpp"

#include <gtest/gtest.h>

#include "tegula/arch/global.hpp"
#include "tensor_memory_ctas.hpp"
#include "tensor_product_kernel.hpp"

namespace tegula {
namespace {

TEST(Tcgen05Mma, MultipliesEveryKind) {
  expect_product<TensorProduct{.a = DType::bf16, .b = DType::bf16, .m = 128, .n = 32}>();
  expect_product<TensorProduct{.a = DType::f16, .b = DType::f16, .m = 64, .n = 24}>();
  expect_product<TensorProduct{.a = DType::tf32, .b = DType::tf32, .m = 128, .n = 16}>();
  expect_product<TensorProduct{.a = DType::e4m3, .b = DType::e5m2, .m = 64, .n = 8}>();
  expect_product<TensorProduct{.a = DType::e5m2, .b = DType::e4m3, .m = 128, .n = 48}>();
}

// Elements of 6 and 4 bits, in any mix with those of 8.
TEST(Tcgen05Mma, MultipliesNarrowFloats) {
  expect_product<TensorProduct{.a = DType::e2m1, .b = DType::e3m2, .m = 128, .n = 16}>();
  expect_product<TensorProduct{.a = DType::e2m3, .b = DType::e5m2, .m = 64, .n = 24}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e2m1, .m = 128, .n = 32, .a_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e2m3, .m = 64, .n = 16, .a_tmem = true}>();
}

TEST(Tcgen05Mma, MultipliesIntegers) {
  expect_product<TensorProduct{
      .a = DType::s8, .b = DType::u8, .m = 64, .n = 24, .d = DType::s32}>();
  expect_product<TensorProduct{
      .a = DType::u8, .b = DType::s8, .m = 128, .n = 8, .d = DType::s32, .saturate = true}>();
  expect_product<TensorProduct{.a = DType::s8,
                               .b = DType::s8,
                               .m = 128,
                               .n = 128,
                               .a_mn = true,
                               .b_mn = true,
                               .d = DType::s32}>();
  expect_product<TensorProduct{
      .a = DType::u8, .b = DType::u8, .m = 64, .n = 16, .a_tmem = true, .d = DType::s32}>();
}

// One to a column, in its low half; what the other half held does not count.
TEST(Tcgen05Mma, AccumulatesInF16) {
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 128, .n = 16, .d = DType::f16}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e2m1, .m = 64, .n = 24, .d = DType::f16}>();
}

TEST(Tcgen05Mma, NegatesItsOperands) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 16, .negate_a = true}>();
  expect_product<TensorProduct{
      .a = DType::tf32, .b = DType::tf32, .m = 64, .n = 8, .a_tmem = true, .negate_b = true}>();
  expect_product<TensorProduct{
      .a = DType::e2m3, .b = DType::e5m2, .m = 128, .n = 16, .negate_a = true, .negate_b = true}>();
}

TEST(Tcgen05Mma, ScalesItsAccumulators) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 16, .scale_input_d = 15}>();
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 64, .n = 8, .d = DType::f16, .scale_input_d = 3}>();
  expect_product<TensorProduct{
      .a = DType::tf32, .b = DType::tf32, .m = 64, .n = 8, .a_tmem = true, .scale_input_d = 1}>();
}

// All lanes are used, whatever m is: the columns of D lie in parts.
TEST(Tcgen05Mma, KeepsWeightsStationary) {
  using enum DType;
  expect_product<TensorProduct{.a = bf16, .b = bf16, .m = 32, .n = 64, .stationary = true}>();
  expect_product<TensorProduct{.a = e4m3, .b = e2m1, .m = 64, .n = 128, .stationary = true}>();
  expect_product<TensorProduct{.a = tf32, .b = tf32, .m = 128, .n = 64, .stationary = true}>();
  expect_product<TensorProduct{
      .a = f16, .b = f16, .m = 64, .n = 64, .b_mn = true, .d = f16, .stationary = true}>();
  expect_product<TensorProduct{
      .a = u8, .b = s8, .m = 32, .n = 128, .d = s32, .saturate = true, .stationary = true}>();
  expect_product<TensorProduct{
      .a = bf16, .b = bf16, .m = 32, .n = 64, .a_tmem = true, .stationary = true}>();
  expect_product<TensorProduct{
      .a = e5m2, .b = e4m3, .m = 64, .n = 64, .a_tmem = true, .stationary = true}>();
  // with columns of B that count as zeros
  expect_product<TensorProduct{
      .a = bf16, .b = bf16, .m = 32, .n = 64, .stationary = true, .zeroes = true}>();
  expect_product<TensorProduct{.a = e4m3,
                               .b = e5m2,
                               .m = 64,
                               .n = 64,
                               .a_tmem = true,
                               .stationary = true,
                               .zeroes = true}>();
  expect_product<TensorProduct{
      .a = s8, .b = s8, .m = 128, .n = 64, .d = s32, .stationary = true, .zeroes = true}>();
}

TEST(Tcgen05Mma, LeavesLanesAsTheyAre) {
  using enum DType;
  expect_product<TensorProduct{.a = bf16, .b = bf16, .m = 128, .n = 16, .leaves = true}>();
  expect_product<TensorProduct{.a = e4m3, .b = e5m2, .m = 64, .n = 24, .leaves = true}>();
  expect_product<TensorProduct{
      .a = f16, .b = f16, .m = 128, .n = 16, .a_tmem = true, .d = f16, .leaves = true}>();
  expect_product<TensorProduct{
      .a = tf32, .b = tf32, .m = 64, .n = 8, .scale_input_d = 2, .leaves = true}>();
}

TEST(Tcgen05Mma, ReadsOperandsOfEitherMajor) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 64, .a_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 64, .n = 64, .b_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 128, .n = 128, .a_mn = true, .b_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e4m3, .m = 128, .n = 64, .a_mn = true, .b_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::e5m2, .b = DType::e4m3, .m = 64, .n = 128, .b_mn = true}>();
}

TEST(Tcgen05Mma, ReadsAFromTensorMemory) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 32, .a_tmem = true}>();
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 64, .n = 16, .b_mn = true, .a_tmem = true}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e4m3, .m = 128, .n = 16, .b_mn = true, .a_tmem = true}>();
  expect_product<TensorProduct{
      .a = DType::tf32, .b = DType::tf32, .m = 64, .n = 32, .a_tmem = true}>();
}

/// A product that leaves the lanes of `Left` as they are, of accumulators that nobody has written.
template <std::uint32_t Left> struct LoadsWhatIsLeft : TensorMemoryCtas<1, 32> {
  static constexpr MmaSpec op = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 16);
  using SharedStorage = ProductStorage<SharedTile<std::uint16_t, swizzled_operand(16, 128, 16, 1)>,
                                       SharedTile<std::uint16_t, swizzled_operand(16, 16, 16, 1)>>;
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int i = thread_idx(); i < 128 * 16; i += threads) sA(i / 16, i % 16) = std::uint16_t{0};
    for (int i = thread_idx(); i < 16 * 16; i += threads) sB(i / 16, i % 16) = std::uint16_t{0};
    TensorAddr const d = begin(smem);
    if (thread_idx() == 0) {
      tcgen05_mma<op>(d, matrix_descriptor<DescriptorForm::tcgen05>(sA),
                      matrix_descriptor<DescriptorForm::tcgen05>(sB), false,
                      DisabledLanes<>{{Left, 0, 0, 0}});
      commit(smem);
    }
    wait(smem);
    std::uint32_t r[8];
    tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, own_lanes(d));
    tcgen05_wait_ld();
    for (int i = 0; i < 8; ++i) st_global(p.out + 8 * thread_idx() + i, r[i]);
    end(d);
  }
};
// The checker knows tensor memory by 16 lanes: those all of which are left are not written.
TEST(Tcgen05Mma, LanesThatItLeavesAreNotWritten) {
  EXPECT_TRUE(observe<LoadsWhatIsLeft<0>>({0}, 8 * 128).report.ok());
  auto const findings = observe<LoadsWhatIsLeft<0xffff0000u>>({0}, 8 * 128).report.findings;
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, sim::FindingKind::uninitialized_read);
}

}  // namespace
}  // namespace tegula
