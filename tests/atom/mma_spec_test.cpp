#include "tegula/atom/mma_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "refusal.hpp"
#include "tegula/atom/catalogue.hpp"

namespace tegula {
namespace {

using testing::HasSubstr;

/// The refusal's sentence, or "" where the instruction is one of arch/.
std::string refusal(MmaSpec const& spec) {
  return sentence([&] { check(spec); });
}

/// `spec` with each of the types that an instruction of tensor cores names, in turn as d (and c), a
/// and b.
template <class Visit> void for_each_type(MmaSpec spec, Visit&& visit) {
  using enum DType;
  constexpr DType kTypes[] = {f64, f32, tf32, f16, bf16, e4m3, e5m2, s32, s8, u8, s4, u4, b1};
  for (DType const d : kTypes) {
    for (DType const a : kTypes) {
      for (DType const b : kTypes) {
        spec.d = spec.c = d;
        spec.a = a;
        spec.b = b;
        visit(spec);
      }
    }
  }
}

auto key(MmaSpec const& s) {
  return std::tuple(s.m, s.n, s.k, s.d, s.a, s.b, s.c, s.variant, s.operands, s.sm);
}
using Specs = std::set<decltype(key(MmaSpec{}))>;

constexpr MmaVariant kVariants[] = {MmaVariant::plain, MmaVariant::saturate, MmaVariant::xor_popc,
                                    MmaVariant::and_popc};

/// Those of the catalogue that check() accepts.
Specs accepted_of_catalogue() {
  Specs specs;
  any_mma([&](MmaSpec const& spec) {
    if (refusal(spec).empty()) specs.insert(key(spec));
    return false;
  });
  return specs;
}

TEST(MmaSpec, TheCatalogueHoldsWhatCheckAcceptsAndNothingElseIsAccepted) {
  Specs accepted;
  auto const add = [&](MmaSpec const& spec) {
    if (refusal(spec).empty()) accepted.insert(key(spec));
  };
  for (int const sm : {75, 80, 89, 90}) {
    for (int const m : {8, 16}) {
      for (int k = 4; k <= 512; k *= 2) {
        for (MmaVariant const variant : kVariants)
          for_each_type({.sm = sm, .m = m, .n = 8, .k = k, .variant = variant}, add);
      }
    }
  }
  // 8 of f16, bf16 and tf32, 16 of e4m3 and e5m2, 4 of f64; of s8 and u8, and of s4 and u4, two
  // shapes with m 16 and one with m 8, each pair of signs, wrapped and clamped; of b1 the same
  // shapes, each with two ways to count.
  EXPECT_EQ(accepted.size(), 8u + 16u + 4u + 2u * 3 * 4 * 2 + 3 * 2);
  std::size_t const of_warps = accepted.size();
  for_each_type({.m = 1, .n = 1, .k = 1, .operands = MmaOperands::scalar}, add);
  EXPECT_EQ(accepted.size(), of_warps + 1);
  std::set<int> const widths = {8, 24, 40, 48, 256};  // the next test takes all of them
  for (MmaOperands const operands : {MmaOperands::ss, MmaOperands::rs}) {
    for (int const n : widths) {
      for (int const k : {8, 16, 32})
        for (MmaVariant const variant : {MmaVariant::plain, MmaVariant::saturate})
          for_each_type(
              {.sm = 90, .m = 64, .n = n, .k = k, .variant = variant, .operands = operands}, add);
    }
  }
  Specs expected = accepted_of_catalogue();
  // fma; mma.sync; of wgmma 12 kinds of floats at 32 widths and 8 of integers at 18, each
  // with A in either place.
  EXPECT_EQ(expected.size(), 1u + of_warps + 2 * (12 * 32 + 8 * 18));
  std::erase_if(expected, [&](auto const& k) {
    return std::get<0>(k) == kWgmmaM && !widths.contains(std::get<1>(k));
  });
  EXPECT_EQ(accepted, expected);
}

TEST(MmaSpec, EveryWarpgroupMmaOfTheCatalogueIsAccepted) {
  for (int n = 8; n <= 256; n += 8) {
    any_warpgroup_mma(n, [](MmaSpec const& spec) {
      EXPECT_EQ(refusal(spec), "") << mma_name(spec).text;
      return false;
    });
  }
}

TEST(MmaSpec, RegistersAndThreadsAreThoseOfTheLayouts) {
  auto const registers = [](Layout const& tv, DType type) {
    return static_cast<int>((tv[1].size() * bits(type) + 31) / 32);
  };
  any_mma([&](MmaSpec const& spec) {
    MmaAtom const atom = mma_atom(spec);
    SCOPED_TRACE(mma_name(spec).text);
    EXPECT_EQ(threads(spec), atom.c[0].size());
    EXPECT_EQ(d_registers(spec), registers(atom.c, spec.d));
    // What all threads hold as a whole is in shared memory.
    auto const own = [&](Layout const& tv) { return threads(spec) == 1 || tv.strides[0] != 0; };
    EXPECT_EQ(a_registers(spec), own(atom.a) ? registers(atom.a, spec.a) : 0);
    EXPECT_EQ(b_registers(spec), own(atom.b) ? registers(atom.b, spec.b) : 0);
    return false;
  });
}

TEST(MmaSpec, AScalarIsOneThreadsElement) {
  constexpr MmaSpec fma = scalar_fma(DType::f32);
  static_assert(threads(fma) == 1 && a_registers(fma) == 1 && b_registers(fma) == 1 &&
                d_registers(fma) == 1);
  MmaAtom const atom = mma_atom(fma);
  for (Layout const& tv : {atom.a, atom.b, atom.c}) {
    EXPECT_EQ(tv.rank(), 2);
    EXPECT_EQ(tv.size(), 1);
  }
  EXPECT_TRUE(atom.a_in_registers() && atom.b_in_registers());
}

TEST(MmaSpec, MakersGiveTheInstructionOfTheirArguments) {
  static_assert(warp_mma(DType::bf16, DType::f32, 16) ==
                MmaSpec{80, 16, 8, 16, DType::f32, DType::bf16, DType::bf16, DType::f32});
  static_assert(warp_mma(DType::s8, DType::u8, DType::s32, 32).b == DType::u8);
  static_assert(warp_mma(DType::e4m3, DType::e5m2, DType::f16, 16).sm == 89);
  constexpr MmaSpec least = warp_mma(DType::f64, DType::f64, DType::f64, 4, 8),
                    most = warp_mma(DType::f64, DType::f64, DType::f64, 16);
  static_assert(least.sm == 80 && a_registers(least) == 2 && d_registers(least) == 4);
  static_assert(most.sm == 90 && a_registers(most) == 16 && b_registers(most) == 8);
  static_assert(warp_mma(DType::b1, DType::b1, DType::s32, 128, 8, MmaVariant::and_popc).variant ==
                MmaVariant::and_popc);
  constexpr MmaSpec wide =
      warpgroup_mma(DType::f16, DType::f16, DType::f32, 256, Major::mn, Major::mn, MmaOperands::ss);
  static_assert(wide.k == 16 && d_registers(wide) == 128 && a_registers(wide) == 0);
  static_assert(wide.a_major == Major::mn && wide.b_major == Major::mn);
  constexpr MmaSpec narrow =
      warpgroup_mma(DType::e4m3, DType::e5m2, DType::f16, 8, Major::k, Major::k, MmaOperands::rs);
  static_assert(narrow.k == 32 && d_registers(narrow) == 2 && a_registers(narrow) == 4);
}

TEST(MmaSpec, WhatArchLacksIsRefusedWithASentence) {
  using enum DType;
  EXPECT_THROW(warp_mma(f16, f32, 32), layout_error);
  EXPECT_THROW(warp_mma(bf16, bf16, 16), layout_error);
  EXPECT_THROW(warpgroup_mma(bf16, bf16, f32, 12), layout_error);
  EXPECT_THROW(scalar_fma(f16), layout_error);
  MmaSpec const warp = warp_mma(f16, f32, 16);
  MmaSpec const narrow = warp_mma(e4m3, e5m2, f32, 32), wide = warp_mma(f64, f64, 16);
  MmaSpec const bit = warp_mma(b1, b1, s32, 256, 16, MmaVariant::xor_popc);
  MmaSpec const group = warpgroup_mma(bf16, bf16, f32, 64);
  struct Case {
    MmaSpec spec;
    char const* sentence;
  };
  auto const with = [](MmaSpec spec, auto&& change) {
    change(spec);
    return spec;
  };
  for (Case const& c : std::vector<Case>{
           {with(warp, [](MmaSpec& s) { s.k = 32; }),
            "mma_sync(f16, 16, 32): k must be 16 bytes of elements, and with m 16 may be 32"},
           {with(warp, [](MmaSpec& s) { s.b = bf16; }),
            "a and b must be f16, bf16, tf32, f64 or b1 both"},
           {with(warp, [](MmaSpec& s) { s.c = f16; }), "c and d must have one type"},
           {with(warp, [](MmaSpec& s) { s.m = 32; }), "m must be 16 or 8, and n 8"},
           {with(warp, [](MmaSpec& s) { s.m = 8; }), "only integers and f64 have m 8"},
           {with(warp, [](MmaSpec& s) { s.sm = 75; }),
            "mma_sync(75, f16, 16): sm must be 89 of e4m3 and e5m2, 90 of f64 with m 16"},
           {with(wide, [](MmaSpec& s) { s.sm = 80; }), "90 of f64 with m 16"},
           {with(wide, [](MmaSpec& s) { s.k = 32; }), "k of f64 must be 4, and with m 16"},
           {with(wide, [](MmaSpec& s) { s.c = s.d = f32; }), "f64 accumulates in f64"},
           {with(narrow, [](MmaSpec& s) { s.c = s.d = bf16; }), "d must be f32, or f16 where"},
           {with(narrow, [](MmaSpec& s) { s.k = 64; }), "k must be 16 bytes of elements"},
           {with(bit, [](MmaSpec& s) { s.variant = MmaVariant::plain; }),
            "b1, and only b1, has the variants xor_popc and and_popc"},
           {with(warp, [](MmaSpec& s) { s.variant = MmaVariant::and_popc; }),
            "b1, and only b1, has the variants xor_popc and and_popc"},
           {with(bit, [](MmaSpec& s) { s.c = s.d = f32; }), "integers accumulate in s32"},
           {with(warp, [](MmaSpec& s) { s.b_major = Major::mn; }), "have no major-ness"},
           {with(warp, [](MmaSpec& s) { s.negate_b = true; }), "only wgmma negates"},
           {with(warp, [](MmaSpec& s) { s.variant = MmaVariant::saturate; }),
            "only integers of 8 and 4 bits saturate"},
           {with(group, [](MmaSpec& s) { s.n = 264; }),
            "wgmma(264): n must be a multiple of 8 from 8 to 256"},
           {with(group, [](MmaSpec& s) { s.k = 8; }), "k must be 32 bytes of elements"},
           {with(group, [](MmaSpec& s) { s.c = s.d = f16; }), "d must be f32, or f16 where"},
           {with(group, [](MmaSpec& s) { s.c = s.d = s32; }),
            "integers, and only they, accumulate in s32"},
           {with(group, [](MmaSpec& s) { s.m = 16; }), "sm must be 90 and m 64"},
           {with(group, [](MmaSpec& s) { s.operands = MmaOperands::rs, s.a_major = Major::mn; }),
            "A in registers has no major-ness"},
           {warpgroup_mma(s8, s8, s32, 64), ""},
           {with(warpgroup_mma(s8, s8, s32, 64), [](MmaSpec& s) { s.n = 40; }),
            "n of integers must be"},
           {with(warpgroup_mma(s8, s8, s32, 64), [](MmaSpec& s) { s.negate_a = true; }),
            "cannot be negated"},
           {with(warpgroup_mma(e4m3, e5m2, f32, 64), [](MmaSpec& s) { s.b_major = Major::mn; }),
            "only operands of 16-bit elements may be contiguous along m or n"},
       }) {
    EXPECT_THAT(refusal(c.spec), HasSubstr(c.sentence));
    EXPECT_EQ(refusal(c.spec).empty(), *c.sentence == '\0');
  }
}

}  // namespace
}  // namespace tegula
