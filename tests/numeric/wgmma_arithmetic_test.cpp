#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>
#include <wgmma_cases.hpp>

#include "arithmetic/tile.hpp"
#include "arithmetic/wgmma_tile.hpp"
#include "mma_oracle.hpp"

namespace tegula {
namespace {

using probe::WgmmaCase;
using Row = std::uint8_t[sim::kWgmmaRowBytes];

std::uint8_t const* column_of_b(WgmmaCase const& x, int column) {
  return x.b.data() + column * sim::kWgmmaRowBytes;
}

class WgmmaSubjects : public testing::TestWithParam<int> {};

TEST_P(WgmmaSubjects, EqualTheOracleOnEverySet) {
  for (int set = 0; set < probe::kWgmmaSets; ++set) {
    for (int n : {8, 24, 64}) {
      int const cases = n == 8 ? 64 : 16;
      for (int index = 0; index < cases; ++index) {
        WgmmaCase const x = probe::wgmma_case(GetParam(), set, n, index);
        std::vector<std::uint32_t> const d = x.simulated();
        for (int element = 0; element < kWgmmaM * n; ++element) {
          int const row = element / n, column = element % n;
          std::size_t const i = static_cast<std::size_t>(element);
          std::uint32_t const expected =
              oracle::wgmma_element(x.op, x.a[row], column_of_b(x, column), x.scale_d, x.c[i]);
          ASSERT_EQ(d[i], expected)
              << std::hex << "0x" << d[i] << ", oracle 0x" << expected << std::dec << "; set "
              << probe::wgmma_set_name(set) << ", n " << n << ", case " << index << ", row " << row
              << ", column " << column;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, WgmmaSubjects, testing::Range(0, probe::kWgmmaSubjectCount),
                         [](auto const& subject) {
                           std::string name = probe::kWgmmaSubjects[subject.param].name;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

// A column's result depends on nothing but the column, for every n that the instructions have.
TEST(WgmmaArithmetic, ColumnsAreIndependent) {
  for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
    int const set = static_cast<int>(probe::CaseSet::kSpecial);
    WgmmaCase const whole = probe::wgmma_case(subject, set, 256, 1);
    std::vector<std::uint32_t> const expected = whole.simulated();
    for (int n = 8; n < 256; n += 8) {
      WgmmaCase part = whole;
      part.op.n = n;
      int const first = 256 - n;
      part.b.assign(whole.b.begin() + first * sim::kWgmmaRowBytes, whole.b.end());
      part.c.resize(static_cast<std::size_t>(kWgmmaM * n));
      for (int row = 0; row < kWgmmaM; ++row) {
        std::memcpy(&part.c[static_cast<std::size_t>(row * n)],
                    &whole.c[static_cast<std::size_t>(row * 256 + first)],
                    static_cast<std::size_t>(4 * n));
      }
      std::vector<std::uint32_t> const d = part.simulated();
      for (int row = 0; row < kWgmmaM; ++row) {
        ASSERT_EQ(std::memcmp(&d[static_cast<std::size_t>(row * n)],
                              &expected[static_cast<std::size_t>(row * 256 + first)],
                              static_cast<std::size_t>(4 * n)),
                  0)
            << probe::kWgmmaSubjects[subject].name << ", n " << n << ", row " << row;
      }
    }
  }
}

// Every pair of 8-bit codes, one product to a result: kept whole, because it has at most
// eight bits.
TEST(WgmmaArithmetic, EveryProductOfEightBitFloats) {
  for (int types = 0; types < 4; ++types) {
    MmaSpec const op = warpgroup_mma(types < 2 ? DType::e4m3 : DType::e5m2,
                                     types % 2 == 0 ? DType::e4m3 : DType::e5m2, DType::f32, 256);
    std::vector<std::uint8_t> b(256 * sim::kWgmmaRowBytes, 0);
    for (int y = 0; y < 256; ++y) {
      b[static_cast<std::size_t>(y * sim::kWgmmaRowBytes + y % 32)] = static_cast<std::uint8_t>(y);
    }
    for (int first = 0; first < 256; first += kWgmmaM) {
      Row a[kWgmmaM];
      for (int row = 0; row < kWgmmaM; ++row) std::memset(a[row], first + row, sizeof a[row]);
      std::vector<std::uint32_t> d(kWgmmaM * 256, 0x7fffffffu);
      sim::wgmma_tile(op, a, reinterpret_cast<Row const*>(b.data()), false, d.data());
      for (int row = 0; row < kWgmmaM; ++row) {
        double const x = oracle::value_of(op.a, static_cast<std::uint32_t>(first + row));
        for (int y = 0; y < 256; ++y) {
          double product = x * oracle::value_of(op.b, static_cast<std::uint32_t>(y));
          // The other factors of B are zeros.
          if (!std::isfinite(x)) product = x - x;
          float const expected = static_cast<float>(product);
          float const got = __builtin_bit_cast(float, d[static_cast<std::size_t>(row * 256 + y)]);
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(got)) << first + row << " * " << y;
          } else {
            ASSERT_EQ(got, expected) << first + row << " * " << y;
          }
        }
      }
    }
  }
}

TEST(WgmmaArithmetic, NegationFlipsSigns) {
  for (int subject = 0; subject < 12; ++subject) {
    for (int set = 0; set < probe::kWgmmaSets; ++set) {
      WgmmaCase negated = probe::wgmma_case(subject, set, 16, 4);
      ASSERT_TRUE(negated.op.negate_a && !negated.op.negate_b);
      WgmmaCase flipped = negated;
      flipped.op.negate_a = false;
      int const bytes = element_bits(flipped.op) / 8;
      for (auto& row : flipped.a) {
        for (int i = bytes - 1; i < sim::kWgmmaRowBytes; i += bytes) row[i] ^= 0x80;
      }
      EXPECT_EQ(negated.simulated(), flipped.simulated()) << probe::kWgmmaSubjects[subject].name;
      // Twice negated is not negated.
      negated.op.negate_b = true;
      flipped = negated;
      flipped.op.negate_a = flipped.op.negate_b = false;
      EXPECT_EQ(negated.simulated(), flipped.simulated()) << probe::kWgmmaSubjects[subject].name;
    }
  }
}

// Without scale_d nothing of D is looked at, be it a NaN; and no zero is negative.
TEST(WgmmaArithmetic, WithoutScaleD) {
  for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
    for (int set = 0; set < probe::kWgmmaSets; ++set) {
      WgmmaCase x = probe::wgmma_case(subject, set, 16, 5);
      x.scale_d = false;
      WgmmaCase zeros = x;
      zeros.scale_d = true;
      std::fill(zeros.c.begin(), zeros.c.end(), 0u);
      std::fill(x.c.begin(), x.c.end(), 0x7fff7fffu);
      EXPECT_EQ(x.simulated(), zeros.simulated()) << probe::kWgmmaSubjects[subject].name;
    }
  }
  WgmmaCase x = probe::wgmma_case(1, 0, 8, 0);
  std::memset(x.a, 0, sizeof x.a);
  x.scale_d = true;
  std::fill(x.c.begin(), x.c.end(), 0x80000000u);
  EXPECT_EQ(x.simulated(), std::vector<std::uint32_t>(kWgmmaM * 8, 0u));
}

/// The functions of the instruction sets that this machine has besides what every machine has.
std::vector<sim::detail::WgmmaFunctions const*> wider_functions() {
  std::vector<sim::detail::WgmmaFunctions const*> functions;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) functions.push_back(&sim::detail::kWgmmaAvx2);
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    functions.push_back(&sim::detail::kWgmmaAvx512);
#endif
  return functions;
}

// The instruction set is chosen at run time; what this machine does not choose is held to what
// it does.
TEST(WgmmaArithmetic, OperandsDecodedByEveryVectorWidthAgree) {
  using namespace sim::detail;
  if (wider_functions().empty()) GTEST_SKIP() << "one vector width here";
  auto const narrow = std::make_unique<WgmmaTile>(), wide = std::make_unique<WgmmaTile>();
  WgmmaSpecials narrow_specials{}, wide_specials{};
  int specials = 0;
  for (WgmmaFunctions const* functions : wider_functions()) {
    for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
      for (int index = 0; index < 40; ++index) {
        WgmmaCase const x =
            probe::wgmma_case(subject, index % probe::kWgmmaSets, 8 * (index % 32 + 1), index);
        auto const b = reinterpret_cast<Row const*>(x.b.data());
        std::memset(static_cast<void*>(narrow.get()), 0x55, sizeof *narrow);
        std::memset(static_cast<void*>(wide.get()), 0x55, sizeof *wide);
        kWgmmaPortable.decode(x.op, x.a, b, *narrow, narrow_specials);
        functions->decode(x.op, x.a, b, *wide, wide_specials);
        ASSERT_EQ(std::memcmp(narrow.get(), wide.get(), sizeof *wide), 0)
            << probe::kWgmmaSubjects[subject].name << ", case " << index;
        ASSERT_EQ(narrow_specials.columns, wide_specials.columns);
        for (int i = 0; i < wide_specials.columns; ++i)
          ASSERT_EQ(narrow_specials.column[i], wide_specials.column[i]);
        for (int row = 0; row < kWgmmaRows; ++row) {
          ASSERT_EQ(narrow_specials.row[row], wide_specials.row[row]);
          specials += wide_specials.row[row];
        }
      }
    }
  }
  EXPECT_GT(specials, 1000);
}

TEST(WgmmaArithmetic, SumsOfEveryVectorWidthAgree) {
  using namespace sim::detail;
  if (wider_functions().empty()) GTEST_SKIP() << "one vector width here";
  probe::Random random{12};
  auto const tile = std::make_unique<WgmmaTile>();
  auto const narrow = std::make_unique<WgmmaRow>(), wide = std::make_unique<WgmmaRow>();
  constexpr int kN = 96;
  long exceptional = 0, ordinary = 0;
  for (int repeat = 0; repeat < 400; ++repeat) {
    WgmmaFamily const family = static_cast<WgmmaFamily>(repeat % 5);
    bool const half = family == WgmmaFamily::kWide16Half || family == WgmmaFamily::kNarrow32Half;
    bool const narrow_factors = family >= WgmmaFamily::kNarrow32;
    int const spread = half || narrow_factors ? 24
                       : repeat % 3 == 0      ? 6
                       : repeat % 3 == 1      ? 60
                                              : 250;
    int const bits = narrow_factors ? 3 : 10;
    auto const factor = [&](float& value) {
      int const exponent = random.below(spread) - spread / 2;
      value = 0;
      if (random.one_in(8)) return kZeroExponent;
      value =
          std::ldexp(static_cast<float>((1 << bits) + random.below(1 << bits)), exponent - bits);
      if (random.one_in(2)) value = -value;
      return exponent;
    };
    for (int i = 0; i < kWgmmaMostK; ++i) {
      for (auto [row, exponents] = std::pair{tile->a, tile->a_exponent};
           row != tile->a + kWgmmaRows; ++row, ++exponents) {
        (*exponents)[i] = static_cast<std::uint16_t>(factor((*row)[i])) * 0x10001u;
      }
      for (int column = 0; column < kN; ++column) {
        tile->b_exponent[i][column] = static_cast<std::int16_t>(factor(tile->b[i][column]));
      }
    }
    for (int row = 0; row < kWgmmaRows; ++row) {
      for (int column = 0; column < kN; ++column) {
        std::uint32_t const word = static_cast<std::uint32_t>(random.next());
        narrow->c[column] = random.one_in(8) ? word & 0x80000000u : half ? word & 0xffffu : word;
        if (!half && random.one_in(2)) narrow->c[column] = (word & 0x87ffffffu) | 0x38000000u;
      }
      bool const any = kWgmmaPortable.sum_row(*tile, family, row, kN, *narrow);
      for (WgmmaFunctions const* functions : wider_functions()) {
        std::memcpy(wide->c, narrow->c, sizeof wide->c);
        ASSERT_EQ(functions->sum_row(*tile, family, row, kN, *wide), any);
        for (int column = 0; column < kN; ++column) {
          ASSERT_EQ(narrow->exceptional[column] != 0, wide->exceptional[column] != 0);
          (narrow->exceptional[column] != 0 ? exceptional : ordinary) += 1;
          if (narrow->exceptional[column] == 0) {
            ASSERT_EQ(narrow->d[column], wide->d[column]) << "repeat " << repeat << ", row " << row;
          }
        }
      }
    }
  }
  EXPECT_GT(exceptional, 10000);
  EXPECT_GT(ordinary, 500000);

  for (auto& row : tile->a) {
    for (float& value : row) value = static_cast<float>(random.below(384) - 128);
  }
  for (auto& row : tile->b) {
    for (float& value : row) value = static_cast<float>(random.below(384) - 128);
  }
  alignas(64) std::int32_t few[kWgmmaMostColumns] = {}, many[kWgmmaMostColumns] = {};
  kWgmmaPortable.sum_integers(*tile, 7, kN, few);
  for (WgmmaFunctions const* functions : wider_functions()) {
    functions->sum_integers(*tile, 7, kN, many);
    EXPECT_EQ(std::memcmp(few, many, sizeof few), 0);
    std::memset(many, 0, sizeof many);
  }
}

}  // namespace
}  // namespace tegula
