#include "tegula/atom/mma_atom.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

struct Element {
  int row;
  int column;
};

/// The fragment tables of the PTX ISA ("Matrix Fragments for mma..."), transcribed case by case; lane is
/// %laneid, i the index of the element. Rows of B's table are k and its columns n there; here both operands
/// are (row, k).
Element a_fragment(MmaSpec const& s, int lane, int i) {
  int const group = lane >> 2;
  int const t = lane % 4;
  int const width = bits(s.a);
  if (s.m == 8) {  // m8n8k4 f64, m8n8k16 s8, m8n8k32 s4, m8n8k128 b1
    return {group, width == 64 ? t : width == 8 ? t * 4 + i : width == 4 ? t * 8 + i : t * 32 + i};
  }
  if (width == 16 && s.k == 8) return {i < 2 ? group : group + 8, t * 2 + (i & 1)};
  if (width == 16 && s.k == 16) {
    return {(i < 2) || (i >= 4 && i < 6) ? group : group + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
  }
  if (width == 32 && s.k == 4) return {i == 0 ? group : group + 8, t};
  if (width == 32 && s.k == 8) return {i == 0 || i == 2 ? group : group + 8, i < 2 ? t : t + 4};
  if (width == 8 && s.k == 16) return {i < 4 ? group : group + 8, t * 4 + (i & 3)};
  if (width == 8 && s.k == 32) {
    return {i < 4 || (i >= 8 && i < 12) ? group : group + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
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
      return {n, t};
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
  any_mma([&](MmaSpec const& spec) {
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
      ASSERT_EQ(tv(coord(lane, value)), e.row + rows * e.column) << "lane " << lane << " value " << value;
      seen.insert(tv(coord(lane, value)));
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), rows * columns) << "each element is held by one thread";
  EXPECT_EQ(*seen.rbegin(), rows * columns - 1);
}

TEST(MmaAtom, FragmentsAreThoseOfThePtxIsa) {
  for (MmaSpec const& s : catalogue()) {
    MmaAtom const atom = mma_atom(s);
    EXPECT_EQ(atom.threads, 32);
    expect_fragment(s, "A", atom.a, s.m, s.k, a_fragment);
    expect_fragment(s, "B", atom.b, s.n, s.k, b_fragment);
    expect_fragment(s, "C", atom.c, s.m, s.n, c_fragment);
  }
}

TEST(MmaAtom, TheCatalogueHoldsEverySm80Instruction) {
  std::set<std::string> names;
  for (MmaSpec const& s : catalogue()) {
    EXPECT_TRUE(names.insert(mma_name(s).text).second) << "twice: " << mma_name(s).text;
    EXPECT_LT(mma_name(s).view().size(), sizeof(Name::text) - 1) << "a name that may have been cut short";
  }
  for (char const* name :
       {"SM80_16x8x8_F16F16F16F16_TN", "SM80_16x8x16_F16F16F16F16_TN", "SM80_16x8x8_F32F16F16F32_TN",
        "SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32BF16BF16F32_TN", "SM80_16x8x16_F32BF16BF16F32_TN",
        "SM80_16x8x4_F32TF32TF32F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN", "SM80_8x8x4_F64F64F64F64_TN",
        "SM75_16x8x8_F32F16F16F32_TN", "SM75_8x8x16_S32S8S8S32_TN", "SM89_16x8x32_F32E4M3E5M2F32_TN",
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
  EXPECT_EQ(names.size(), 74u);
}

TEST(MmaAtom, IsFoundByNameAndByTypes) {
  static constexpr MmaAtom atom = mma_atom("SM80_16x8x16_F32BF16BF16F32_TN");
  static_assert(atom == mma_atom_sm80(DType::bf16, DType::f32, 16));
  static_assert(atom.m == 16 && atom.n == 8 && atom.k == 16);
  static_assert(atom.a_type == DType::bf16 && atom.d_type == DType::f32);
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
  EXPECT_THROW(mma_atom_sm80(DType::f16, DType::f32, 32), layout_error);
}

}  // namespace
}  // namespace tegula
