// tcgen05.mma's arithmetic, as published (Xie et al., arXiv 2511.10909), against the oracle: 25
// fraction bits for every type of floats, those of 8 bits and fewer too. No sm_100 has confirmed
// it.
#include <gtest/gtest.h>

#include <string>
#include <vector>
#include <wgmma_cases.hpp>

#include "mma_oracle.hpp"
#include "random_operands.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

using probe::WgmmaCase;

/// wgmma's random operands, as those of a tcgen05.mma.
WgmmaCase tcgen05_case(int subject, int set, int n, int index) {
  WgmmaCase x = probe::wgmma_case(subject, set, n, index);
  x.op.sm = 100;
  check(x.op);
  return x;
}
std::size_t index_of(DType type) { return static_cast<std::size_t>(type); }

TEST(Tcgen05Arithmetic, EqualsTheOracleOnEverySet) {
  std::vector<std::int64_t> results(kDTypes), of_results(kDTypes);
  for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
    for (int set = 0; set < probe::kWgmmaSets; ++set) {
      int const cases = probe::kWgmmaSubjects[subject].d == DType::f32 ? 12 : 5;
      for (int index = 0; index < cases; ++index) {
        constexpr int n = 64;
        WgmmaCase const x = tcgen05_case(subject, set, n, 1000 + index);
        std::vector<std::uint32_t> const d = x.simulated();
        results[index_of(x.op.a)] += kWgmmaM * n;
        of_results[index_of(x.op.d)] += kWgmmaM * n;
        for (int element = 0; element < kWgmmaM * n; ++element) {
          int const row = element / n, column = element % n;
          std::size_t const i = static_cast<std::size_t>(element);
          std::uint32_t const expected = oracle::wgmma_element(
              x.op, x.a[row], x.b.data() + column * sim::kWgmmaRowBytes, x.scale_d, x.c[i]);
          ASSERT_EQ(d[i], expected) << to_string(x.op.a) << " to " << to_string(x.op.d) << ", set "
                                    << probe::wgmma_set_name(set) << ", case " << index << ", row "
                                    << row << ", column " << column;
        }
      }
    }
  }
  for (DType const type :
       {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2, DType::s8, DType::u8})
    EXPECT_GE(results[index_of(type)], 125'000) << to_string(type);
  for (DType const type : {DType::f32, DType::f16, DType::s32})
    EXPECT_GE(of_results[index_of(type)], 1'000'000) << to_string(type);
}

// scale-input-d: accumulators of every exponent, subnormals too, divided by powers of two.
TEST(Tcgen05Arithmetic, ScaledAccumulatorsEqualTheOracles) {
  std::int64_t results = 0;
  for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
    if (bits(probe::kWgmmaSubjects[subject].a) < 16) continue;
    for (int set = 0; set < probe::kWgmmaSets; ++set) {
      for (int const scale : {1, 4, 15}) {
        constexpr int n = 16;
        WgmmaCase const x = tcgen05_case(subject, set, n, 2000 + scale);
        std::vector<std::uint32_t> d = x.c;
        sim::wgmma_tile(x.op, x.a,
                        reinterpret_cast<std::uint8_t const(*)[sim::kWgmmaRowBytes]>(x.b.data()),
                        x.scale_d, d.data(), scale);
        for (int element = 0; element < kWgmmaM * n; ++element, ++results) {
          int const row = element / n, column = element % n;
          std::size_t const i = static_cast<std::size_t>(element);
          ASSERT_EQ(d[i],
                    oracle::wgmma_element(x.op, x.a[row], x.b.data() + column * sim::kWgmmaRowBytes,
                                          x.scale_d, x.c[i], scale))
              << to_string(x.op.a) << " to " << to_string(x.op.d) << " by 2^-" << scale << ", set "
              << probe::wgmma_set_name(set) << ", row " << row << ", column " << column;
        }
      }
    }
  }
  EXPECT_GE(results, 100'000);
}

/// Of kind f8f6f4, one of them of 6 or 4 bits.
struct NarrowKind {
  DType a, b, d;
};
class EveryNarrowKind : public testing::TestWithParam<NarrowKind> {};

TEST_P(EveryNarrowKind, EqualsTheOracle) {
  auto const [type_a, type_b, type_d] = GetParam();
  constexpr int n = 64;
  MmaSpec op = tensor_memory_mma(type_a, type_b, type_d, kWgmmaM, n);
  std::uint8_t a[kWgmmaM][sim::kWgmmaRowBytes], b[n][sim::kWgmmaRowBytes];
  std::int64_t results = 0;
  int const cases = thorough_or(82, 4);  // of each spread: a million results, or some
  for (auto const spread : {oracle::Spread::near, oracle::Spread::far, oracle::Spread::widest}) {
    for (int number = 0; number < cases; ++number) {
      oracle::Random random(static_cast<std::uint64_t>(number + 1000 * static_cast<int>(spread)));
      oracle::draw_rows(random, type_a, a);
      oracle::draw_rows(random, type_b, b);
      op.negate_a = (number & 1) != 0, op.negate_b = (number & 2) != 0;
      bool const accumulate = number % 4 != 3;
      std::vector<std::uint32_t> c(kWgmmaM * n);
      for (std::uint32_t& x : c) {
        float const addend = oracle::draw_addend(random, spread);
        x = type_d == DType::f16 ? to_half(addend).bits : __builtin_bit_cast(std::uint32_t, addend);
      }
      std::vector<std::uint32_t> d = c;
      sim::wgmma_tile(op, a, b, accumulate, d.data());
      for (int element = 0; element < kWgmmaM * n; ++element, ++results) {
        int const row = element / n, column = element % n;
        std::size_t const i = static_cast<std::size_t>(element);
        ASSERT_EQ(d[i], oracle::wgmma_element(op, a[row], b[column], accumulate, c[i]))
            << "spread " << static_cast<int>(spread) << ", case " << number << ", row " << row
            << ", column " << column;
      }
    }
  }
  if (thorough()) {
    EXPECT_GE(results, 1'000'000);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryNarrowKind,
                         testing::Values(NarrowKind{DType::e2m3, DType::e2m3, DType::f32},
                                         NarrowKind{DType::e3m2, DType::e3m2, DType::f32},
                                         NarrowKind{DType::e2m1, DType::e2m1, DType::f32},
                                         NarrowKind{DType::e2m1, DType::e3m2, DType::f32},
                                         NarrowKind{DType::e2m3, DType::e5m2, DType::f32},
                                         NarrowKind{DType::e4m3, DType::e2m1, DType::f32},
                                         NarrowKind{DType::e3m2, DType::e2m1, DType::f16},
                                         NarrowKind{DType::e5m2, DType::e2m3, DType::f16}),
                         [](auto const& info) {
                           return std::string(to_string(info.param.a)) + "_" +
                                  to_string(info.param.b) + "_" + to_string(info.param.d);
                         });

// An 8-bit product keeps the bits that sm_90 drops.
TEST(Tcgen05Arithmetic, EightBitFloatsKeepMoreThanHoppers) {
  MmaSpec op = tensor_memory_mma(DType::e4m3, DType::e4m3, DType::f32, 64, 16);
  std::uint8_t a[kWgmmaM][sim::kWgmmaRowBytes] = {};
  std::uint8_t b[16][sim::kWgmmaRowBytes] = {};
  std::vector<std::uint32_t> d(kWgmmaM * 16);
  a[0][0] = to_float_e4m3(256.0f).bits, b[0][0] = to_float_e4m3(1.0f).bits;
  a[0][1] = to_float_e4m3(0.015625f).bits, b[0][1] = to_float_e4m3(0.015625f).bits;
  sim::wgmma_tile(op, a, b, false, d.data());
  EXPECT_EQ(__builtin_bit_cast(float, d[0]), 256.0f + 0x1p-12f);
  op = warpgroup_mma(DType::e4m3, DType::e4m3, DType::f32, 16);
  sim::wgmma_tile(op, a, b, false, d.data());
  EXPECT_EQ(__builtin_bit_cast(float, d[0]), 256.0f);
}

}  // namespace
}  // namespace tegula
