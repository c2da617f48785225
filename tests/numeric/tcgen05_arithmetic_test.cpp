// tcgen05.mma's arithmetic, as published (Xie et al., arXiv 2511.10909), against the oracle: 25
// fraction bits for every type, 8-bit floats too. No sm_100 has confirmed it.
#include <gtest/gtest.h>

#include <string>
#include <vector>
#include <wgmma_cases.hpp>

#include "mma_oracle.hpp"

namespace tegula {
namespace {

using probe::WgmmaCase;

/// wgmma's random operands, as those of a tcgen05.mma; false where it has none such.
bool as_tcgen05(WgmmaCase& x) {
  x.op.sm = 100;
  return x.op.d == DType::f32 && x.op.a != DType::s8 && x.op.a != DType::u8;
}

TEST(Tcgen05Arithmetic, EqualsTheOracleOnEverySet) {
  std::vector<std::int64_t> results(kDTypes);
  for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
    for (int set = 0; set < probe::kWgmmaSets; ++set) {
      for (int index = 0; index < 12; ++index) {
        constexpr int n = 64;
        WgmmaCase x = probe::wgmma_case(subject, set, n, 1000 + index);
        if (!as_tcgen05(x)) continue;
        std::vector<std::uint32_t> const d = x.simulated();
        results[static_cast<std::size_t>(x.op.a)] += kWgmmaM * n;
        for (int element = 0; element < kWgmmaM * n; ++element) {
          int const row = element / n, column = element % n;
          std::size_t const i = static_cast<std::size_t>(element);
          std::uint32_t const expected = oracle::wgmma_element(
              x.op, x.a[row], x.b.data() + column * sim::kWgmmaRowBytes, x.scale_d, x.c[i]);
          ASSERT_EQ(d[i], expected)
              << to_string(x.op.a) << ", set " << probe::wgmma_set_name(set) << ", case " << index
              << ", row " << row << ", column " << column;
        }
      }
    }
  }
  for (DType const type : {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2})
    EXPECT_GE(results[static_cast<std::size_t>(type)], 125'000) << to_string(type);
}

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
