#include "tegula/atom/mma_atom.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tegula/atom/catalogue.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

struct Element {
  int row;
  int column;
};

/// The fragment tables of the PTX ISA ("Matrix Fragments for mma..."), transcribed case by case;
/// lane is %laneid, i the index of the element. Rows of B's table are k and its columns n there;
/// here both operands are (row, k).
Element a_fragment(MmaSpec const& s, int lane, int i) {
  int const group = lane >> 2;
  int const t = lane % 4;
  int const width = bits(s.a);
  if (s.m == 8) {  // m8n8k4 f64, m8n8k16 s8, m8n8k32 s4, m8n8k128 b1
    return {group, width == 64 ? t : width == 8 ? t * 4 + i : width == 4 ? t * 8 + i : t * 32 + i};
  }
  if (width == 64) {  // m16n8k4, m16n8k8, m16n8k16
    return {i % 2 == 0 ? group : group + 8, i < 2 ? t : i < 4 ? t + 4 : i < 6 ? t + 8 : t + 12};
  }
  if (width == 16 && s.k == 8) return {i < 2 ? group : group + 8, t * 2 + (i & 1)};
  if (width == 16 && s.k == 16) {
    return {(i < 2) || (i >= 4 && i < 6) ? group : group + 8,
            i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
  }
  if (width == 32 && s.k == 4) return {i == 0 ? group : group + 8, t};
  if (width == 32 && s.k == 8) return {i == 0 || i == 2 ? group : group + 8, i < 2 ? t : t + 4};
  if (width == 8 && s.k == 16) return {i < 4 ? group : group + 8, t * 4 + (i & 3)};
  if (width == 8 && s.k == 32) {
    return {i < 4 || (i >= 8 && i < 12) ? group : group + 8,
            i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
  }
  if (width == 4 && s.k == 32) return {i < 8 ? group : group + 8, t * 8 + (i & 7)};
  if (width == 4 && s.k == 64) {
    return {i < 8 || (i >= 16 && i < 24) ? group : group + 8,
            i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32};
  }
  if (width == 1 && s.k == 128) return {i < 32 ? group : group + 8, t * 32 + (i & 31)};
  if (width == 1 && s.k == 256) {
    return {i < 32 || (i >= 64 && i < 96) ? group : group + 8,
            i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128};
  }
  ADD_FAILURE() << "no table for " << mma_name(s).text;
  return {0, 0};
}

Element b_fragment(MmaSpec const& s, int lane, int i) {
  int const n = lane >> 2;
  int const t = lane % 4;
  switch (bits(s.b)) {
    case 64:
      return {n, t + 4 * i};
    case 32:
      return {n, i == 0 ? t : t + 4};
    case 16:
      return {n, i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
    case 8:
      return {n, i < 4 ? t * 4 + i : t * 4 + (i & 3) + 16};
    case 4:
      return {n, i < 8 ? t * 8 + i : t * 8 + (i & 7) + 32};
    default:
      return {n, i < 32 ? t * 32 + i : t * 32 + (i & 31) + 128};
  }
}

Element c_fragment(MmaSpec const& s, int lane, int i) {
  int const group = lane >> 2;
  return {s.m == 8 || i < 2 ? group : group + 8, (lane % 4) * 2 + (i & 1)};
}

std::vector<MmaSpec> catalogue() {
  std::vector<MmaSpec> all;
  any_warp_mma([&](MmaSpec const& spec) {
    all.push_back(spec);
    return false;
  });
  return all;
}

template <class Fragment>
void expect_fragment(MmaSpec const& s, char const* operand, Layout const& tv, int rows, int columns,
                     Fragment&& fragment) {
  SCOPED_TRACE(std::string(mma_name(s).text) + " " + operand + " " + to_string(tv));
  ASSERT_EQ(tv.rank(), 2);
  ASSERT_EQ(tv[0].size(), 32);
  ASSERT_EQ(tv.size(), rows * columns);
  std::set<std::int64_t> seen;
  for (int value = 0; value < tv[1].size(); ++value) {
    for (int lane = 0; lane < 32; ++lane) {
      Element const e = fragment(s, lane, value);
      ASSERT_EQ(tv(coord(lane, value)), e.row + rows * e.column)
          << "lane " << lane << " value " << value;
      seen.insert(tv(coord(lane, value)));
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), rows * columns) << "each element is held by one thread";
  EXPECT_EQ(*seen.rbegin(), rows * columns - 1);
}

TEST(MmaAtom, FragmentsAreThoseOfThePtxIsa) {
  for (MmaSpec const& s : catalogue()) {
    MmaAtom const atom = mma_atom(s);
    EXPECT_EQ(atom.threads(), 32);
    expect_fragment(s, "A", atom.a, s.m, s.k, a_fragment);
    expect_fragment(s, "B", atom.b, s.n, s.k, b_fragment);
    expect_fragment(s, "C", atom.c, s.m, s.n, c_fragment);
  }
}

TEST(MmaAtom, TheCatalogueHoldsEveryInstruction) {
  std::set<std::string> names;
  for (MmaSpec const& s : catalogue()) {
    EXPECT_TRUE(names.insert(mma_name(s).text).second) << "twice: " << mma_name(s).text;
    EXPECT_LT(mma_name(s).view().size(), sizeof(Name::text) - 1)
        << "a name that may have been cut short";
  }
  for (char const* name :
       {"SM80_16x8x8_F16F16F16F16_TN", "SM80_16x8x16_F16F16F16F16_TN",
        "SM80_16x8x8_F32F16F16F32_TN", "SM80_16x8x16_F32F16F16F32_TN",
        "SM80_16x8x8_F32BF16BF16F32_TN", "SM80_16x8x16_F32BF16BF16F32_TN",
        "SM80_16x8x4_F32TF32TF32F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN",
        "SM80_8x8x4_F64F64F64F64_TN", "SM75_16x8x8_F32F16F16F32_TN", "SM75_8x8x16_S32S8S8S32_TN",
        "SM90_16x8x4_F64F64F64F64_TN", "SM90_16x8x8_F64F64F64F64_TN",
        "SM90_16x8x16_F64F64F64F64_TN", "SM89_16x8x32_F32E4M3E5M2F32_TN",
        "SM89_16x8x16_F16E5M2E5M2F16_TN", "SM80_8x8x128_S32U1U1S32_TN_XORPOPC",
        "SM80_16x8x256_S32U1U1S32_TN_ANDPOPC", "SM80_16x8x64_S32U4S4S32_TN_SATURATE"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  for (std::string const types : {"S8S8", "S8U8", "U8S8", "U8U8"}) {
    for (std::string const shape : {"8x8x16", "16x8x16", "16x8x32"}) {
      for (std::string const suffix : {"", "_SATURATE"}) {
        EXPECT_TRUE(names.contains("SM80_" + shape + "_S32" + types + "S32_TN" + suffix));
      }
    }
  }
  EXPECT_EQ(names.size(), 85u);
}

std::vector<MmaSpec> warpgroup_catalogue() {
  std::vector<MmaSpec> all;
  for (int n = 8; n <= 256; n += 8) {
    any_warpgroup_mma(n, [&](MmaSpec const& spec) {
      all.push_back(spec);
      return false;
    });
  }
  return all;
}

/// The register fragments of wgmma, transcribed from the PTX ISA ("Register Fragments and Shared
/// Memory Matrix Layouts"): thread is %tid % 128, i the index of the element in register order.
Element wgmma_d_fragment(int thread, int i) {
  int const warp = thread / 32;
  int const lane = thread % 32;
  return {16 * warp + lane / 4 + (i % 4 < 2 ? 0 : 8), 8 * (i / 4) + 2 * (lane % 4) + (i & 1)};
}

Element wgmma_a_fragment(int width, int thread, int i) {
  int const group = 16 * (thread / 32) + thread % 32 / 4;
  int const t = thread % 4;
  switch (width) {
    case 16:
      return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
    case 32:
      return {i == 0 || i == 2 ? group : group + 8, i < 2 ? t : t + 4};
    default:
      return {i < 4 || (i >= 8 && i < 12) ? group : group + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16)};
  }
}

TEST(MmaAtom, WarpgroupFragmentsAreThoseOfThePtxIsa) {
  for (MmaSpec const& s : warpgroup_catalogue()) {
    MmaAtom const atom = mma_atom(s);
    SCOPED_TRACE(mma_name(s).text);
    EXPECT_EQ(atom.threads(), 128);
    auto const expect_held = [](Layout const& tv, int rows, int columns, auto&& fragment) {
      ASSERT_EQ(tv.rank(), 2);
      ASSERT_EQ(tv[0].size(), 128);
      ASSERT_EQ(tv.size(), rows * columns);
      std::set<std::int64_t> seen;
      int wrong = 0;
      for (int value = 0; value < tv[1].size(); ++value) {
        for (int thread = 0; thread < 128; ++thread) {
          Element const e = fragment(thread, value);
          std::int64_t const at = tv(coord(thread, value));
          wrong += at == e.row + rows * e.column ? 0 : 1;
          seen.insert(at);
        }
      }
      EXPECT_EQ(wrong, 0) << to_string(tv);
      EXPECT_EQ(static_cast<int>(seen.size()), rows * columns);
    };
    expect_held(atom.c, 64, s.n, wgmma_d_fragment);
    if (s.operands == MmaOperands::rs) {
      expect_held(atom.a, 64, s.k,
                  [&](int thread, int i) { return wgmma_a_fragment(bits(s.a), thread, i); });
    }
    // What is in shared memory belongs to all threads.
    auto const expect_whole = [](Layout const& tv, int elements) {
      ASSERT_EQ(tv[0].size(), 128);
      ASSERT_EQ(tv[1].size(), elements);
      for (int value = 0; value < elements; value += 7) {
        EXPECT_EQ(tv(coord(0, value)), value);
        EXPECT_EQ(tv(coord(101, value)), value);
      }
    };
    if (s.operands == MmaOperands::ss) expect_whole(atom.a, 64 * s.k);
    expect_whole(atom.b, s.n * s.k);
  }
}

TEST(MmaAtom, TheCatalogueHoldsEveryWgmma) {
  std::set<std::string> names;
  for (MmaSpec const& s : warpgroup_catalogue()) {
    Name const name = mma_name(s);
    EXPECT_TRUE(names.insert(name.text).second) << "twice: " << name.text;
    EXPECT_LT(name.view().size(), sizeof(Name::text) - 1) << "a name that may have been cut short";
    MmaSpec found;
    EXPECT_TRUE(find_mma(name.view(), found)) << name.text;
    EXPECT_EQ(mma_atom(found), mma_atom(s));
  }
  // 12 kinds of floating-point types at 32 widths, 8 of integers at 18, each with A in shared
  // memory and in registers.
  EXPECT_EQ(names.size(), 2u * (12 * 32 + 8 * 18));
  for (char const* name :
       {"SM90_64x128x16_F32BF16BF16_SS", "SM90_64x256x16_F32F16F16_RS", "SM90_64x8x16_F16F16F16_SS",
        "SM90_64x96x8_F32TF32TF32_SS_TN", "SM90_64x248x32_F32E4M3E5M2_RS_TN",
        "SM90_64x24x32_S32S8U8_SS_TN", "SM90_64x240x32_S32U8U8_RS_TN_SATURATE",
        "SM90_64x16x32_F16E5M2E5M2_SS_TN"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  for (char const* name :
       {"SM90_64x40x32_S32S8S8_SS_TN", "SM90_64x12x16_F32F16F16_SS", "SM90_64x264x16_F32F16F16_SS",
        "SM90_64x", "SM90_64x128x16_F16BF16BF16_SS", "SM90_64x99999999999999x16_F32F16F16_SS"}) {
    MmaSpec found;
    EXPECT_FALSE(find_mma(name, found)) << name;
  }
}

TEST(MmaAtom, WarpgroupLayoutsInTheirTextForm) {
  static constexpr MmaAtom atom = mma_atom("SM90_64x128x16_F32BF16BF16_RS");
  EXPECT_EQ(to_string(atom.a), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_string(atom.b), "(128,(128,16)):(0,(1,128))");
  EXPECT_EQ(to_string(atom.c), "((4,8,4),(2,2,16)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_string(mma_atom("SM90_64x8x8_F32TF32TF32_SS_TN").a), "(128,(64,8)):(0,(1,64))");
  EXPECT_EQ(to_string(mma_atom("SM90_64x8x8_F32TF32TF32_RS_TN").a),
            "((4,8,4),(2,2)):((64,1,16),(8,256))");
}

TEST(MmaAtom, IsFoundByName) {
  static constexpr MmaAtom atom = mma_atom("SM80_16x8x16_F32BF16BF16F32_TN");
  static_assert(atom == mma_atom(warp_mma(DType::bf16, DType::f32, 16)));
  EXPECT_EQ(to_string(atom.a), "((4,8),(2,2,2)):((32,1),(16,8,128))");
  EXPECT_EQ(to_string(atom.b), "((4,8),(2,2)):((16,1),(8,64))");
  EXPECT_EQ(to_string(atom.c), "((4,8),(2,2)):((32,1),(16,8))");
}

TEST(MmaAtom, AnUnknownNameIsRefusedWithASentence) {
  for (char const* name :
       {"", "SM80_16x8x16", "SM80_16x8x32_F32F16F16F32_TN", "sm80_16x8x16_f32f16f16f32_tn"}) {
    EXPECT_THROW(
        {
          try {
            mma_atom(name);
          } catch (layout_error const& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("mma_atom"));
            EXPECT_THAT(error.what(), testing::HasSubstr("tegula atoms"));
            throw;
          }
        },
        layout_error)
        << name;
  }
}

}  // namespace
}  // namespace tegula
