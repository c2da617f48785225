#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mma_cases.hpp>
#include <tegula/atom/mma_spec.hpp>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/arithmetic.hpp>
#include <vector>

/// Operands for wgmma that are a function of (instruction, set, n, index) alone, so that results
/// taken on a GPU are replayed elsewhere from the results only.
namespace tegula::probe {

/// The instructions, of any N, in the order in which results were recorded.
struct WgmmaSubject {
  DType a, b, d;
  MmaVariant variant;
  char const* name;
};

inline constexpr WgmmaSubject kWgmmaSubjects[] = {
    {DType::bf16, DType::bf16, DType::f32, MmaVariant::plain, "f32.bf16.bf16"},
    {DType::f16, DType::f16, DType::f32, MmaVariant::plain, "f32.f16.f16"},
    {DType::tf32, DType::tf32, DType::f32, MmaVariant::plain, "f32.tf32.tf32"},
    {DType::e4m3, DType::e4m3, DType::f32, MmaVariant::plain, "f32.e4m3.e4m3"},
    {DType::e4m3, DType::e5m2, DType::f32, MmaVariant::plain, "f32.e4m3.e5m2"},
    {DType::e5m2, DType::e4m3, DType::f32, MmaVariant::plain, "f32.e5m2.e4m3"},
    {DType::e5m2, DType::e5m2, DType::f32, MmaVariant::plain, "f32.e5m2.e5m2"},
    {DType::f16, DType::f16, DType::f16, MmaVariant::plain, "f16.f16.f16"},
    {DType::e4m3, DType::e4m3, DType::f16, MmaVariant::plain, "f16.e4m3.e4m3"},
    {DType::e4m3, DType::e5m2, DType::f16, MmaVariant::plain, "f16.e4m3.e5m2"},
    {DType::e5m2, DType::e4m3, DType::f16, MmaVariant::plain, "f16.e5m2.e4m3"},
    {DType::e5m2, DType::e5m2, DType::f16, MmaVariant::plain, "f16.e5m2.e5m2"},
    {DType::s8, DType::s8, DType::s32, MmaVariant::plain, "s32.s8.s8"},
    {DType::s8, DType::u8, DType::s32, MmaVariant::plain, "s32.s8.u8"},
    {DType::u8, DType::s8, DType::s32, MmaVariant::plain, "s32.u8.s8"},
    {DType::u8, DType::u8, DType::s32, MmaVariant::plain, "s32.u8.u8"},
    {DType::s8, DType::s8, DType::s32, MmaVariant::saturate, "s32.s8.s8.satfinite"},
    {DType::s8, DType::u8, DType::s32, MmaVariant::saturate, "s32.s8.u8.satfinite"},
    {DType::u8, DType::s8, DType::s32, MmaVariant::saturate, "s32.u8.s8.satfinite"},
    {DType::u8, DType::u8, DType::s32, MmaVariant::saturate, "s32.u8.u8.satfinite"},
};
inline constexpr int kWgmmaSubjectCount = 20;

/// The sets of CaseSet; words of uniformly random bits; and A mostly of zeros, so that often one
/// product is left, or none, beside accumulators of any exponent.
inline constexpr int kUniformSet = kCaseSets;
inline constexpr int kSparseSet = kCaseSets + 1;
inline constexpr int kWgmmaSets = kCaseSets + 2;
inline char const* wgmma_set_name(int set) {
  return set == kUniformSet ? "uniform" : set == kSparseSet ? "sparse" : kCaseSetNames[set];
}

/// Of every set of every instruction the results of the first kKeptWgmmaCases cases with
/// kKeptWgmmaN columns are kept in a file: all four negations, with and without scale_d.
inline constexpr int kKeptWgmmaCases = 24;
inline constexpr int kKeptWgmmaN = 8;

/// One instruction with its operands, as sim::wgmma_tile takes them.
struct WgmmaCase {
  MmaSpec op;
  bool scale_d;
  std::uint8_t a[kWgmmaM][sim::kWgmmaRowBytes];
  std::vector<std::uint8_t> b;   // [n][kWgmmaRowBytes]
  std::vector<std::uint32_t> c;  // [kWgmmaM][n]

  /// What the simulated machine answers.
  std::vector<std::uint32_t> simulated() const {
    std::vector<std::uint32_t> d = c;
    sim::wgmma_tile(op, a, reinterpret_cast<std::uint8_t const(*)[sim::kWgmmaRowBytes]>(b.data()),
                    scale_d, d.data());
    return d;
  }
};

namespace detail {

inline bool is_e4m3(Fields f) { return f.exponent_bits == 4; }

inline std::uint32_t wgmma_value(Random& random, int set, Fields f, bool accumulator) {
  std::uint32_t const sign = random.one_in(2) ? f.sign() : 0;
  if (set == kUniformSet) return static_cast<std::uint32_t>(random.next()) & (2 * f.sign() - 1);
  if (set == kSparseSet) {
    // Accumulators: zeros, subnormals and the normals next to them, any.
    if (accumulator && random.one_in(8)) return sign;
    if (accumulator && random.one_in(2))
      return sign | (static_cast<std::uint32_t>(random.next()) & ((4u << f.mantissa_bits) - 1));
    // Factors: any finite value but the upper half of bf16's and tf32's.
    std::uint32_t const end =
        is_e4m3(f) ? 0x7fu : static_cast<std::uint32_t>(f.top()) << f.mantissa_bits;
    std::uint32_t const limit = f.exponent_bits == 8 && !accumulator ? end / 2 : end;
    return sign | static_cast<std::uint32_t>(random.below(static_cast<int>(limit)));
  }
  if (is_e4m3(f)) {  // its top exponent holds numbers
    if (set == static_cast<int>(CaseSet::kSpecial) && random.one_in(96)) return sign | 0x7fu;
    if (set == static_cast<int>(CaseSet::kWide))
      return sign | static_cast<std::uint32_t>(random.below(0x7f));
    if (set == static_cast<int>(CaseSet::kHuge))
      return sign | static_cast<std::uint32_t>(0x60 + random.below(0x1f));
    if (set == static_cast<int>(CaseSet::kTiny))
      return sign | static_cast<std::uint32_t>(random.below(0x18));
    if (random.one_in(24)) return sign | 0x7eu;
    CaseSet const finite =
        set == static_cast<int>(CaseSet::kSpecial) ? CaseSet::kBoundary : static_cast<CaseSet>(set);
    return value(random, finite, f, accumulator);
  }
  return value(random, static_cast<CaseSet>(set), f, accumulator);
}

inline float wgmma_float(Fields f, std::uint32_t code) {
  if (f.exponent_bits == 8) return __builtin_bit_cast(float, code << (23 - f.mantissa_bits));
  if (is_e4m3(f)) return to_float(float_e4m3{static_cast<std::uint8_t>(code)});
  if (f.mantissa_bits == 2) return to_float(float_e5m2{static_cast<std::uint8_t>(code)});
  return to_float(half{static_cast<std::uint16_t>(code)});
}

inline void fill_integers(WgmmaCase& out, int set, Random& random) {
  bool const extreme = set >= static_cast<int>(CaseSet::kCancellation) && set != kUniformSet;
  auto const byte = [&] {
    constexpr std::uint8_t kExtremes[4] = {0x80, 0x7f, 0xff, 0x00};
    if (extreme && random.one_in(2)) return kExtremes[random.below(4)];
    return static_cast<std::uint8_t>(random.next());
  };
  for (auto& row : out.a) {
    for (auto& element : row) element = byte();
  }
  for (auto& element : out.b) element = byte();
  for (auto& element : out.c) {
    std::uint32_t const near = static_cast<std::uint32_t>(random.below(1 << 20));
    element = static_cast<std::uint32_t>(random.next());
    if (extreme && random.one_in(2))
      element = random.one_in(2) ? 0x7fffffffu - near : 0x80000000u + near;
  }
}

}  // namespace detail

/// n: columns of the instruction. A quarter of the cases are without scale_d; the negations
/// go round.
inline WgmmaCase wgmma_case(int subject, int set, int n, int index) {
  using detail::Fields;
  WgmmaSubject const& s = kWgmmaSubjects[subject];
  Random random{(std::uint64_t{0x77} << 56) ^ (static_cast<std::uint64_t>(subject) << 48) ^
                (static_cast<std::uint64_t>(set) << 40) ^ (static_cast<std::uint64_t>(n) << 24) ^
                static_cast<std::uint64_t>(index)};
  bool const integer = s.d == DType::s32;
  WgmmaCase out;
  out.op = warpgroup_mma(s.a, s.b, s.d, 8);
  out.op.n = n;  // also one that integers lack
  out.op.variant = s.variant;
  out.op.negate_a = !integer && (index / 4 & 1) != 0;
  out.op.negate_b = !integer && (index / 4 & 2) != 0;
  out.scale_d = index % 4 != 3;
  out.b.resize(static_cast<std::size_t>(n) * sim::kWgmmaRowBytes);
  out.c.resize(static_cast<std::size_t>(n) * kWgmmaM);
  if (integer) {
    detail::fill_integers(out, set, random);
    return out;
  }

  Fields const a_fields = detail::operand_fields(s.a);
  Fields const b_fields = detail::operand_fields(s.b);
  Fields const sum = s.d == DType::f16 ? Fields{5, 10} : Fields{8, 23};
  int const bytes = bits(s.a) / 8;
  int const k = out.op.k;
  auto const store = [&](std::uint8_t* row, int i, std::uint32_t code) {
    // A tf32's low bits are not read: let them be anything.
    if (bytes == 4) code = (code << 13) | (static_cast<std::uint32_t>(random.next()) & 0x1fffu);
    std::memcpy(row + i * bytes, &code, static_cast<std::size_t>(bytes));  // little-endian
  };
  auto const b_row = [&](int column) { return out.b.data() + column * sim::kWgmmaRowBytes; };
  if (set != static_cast<int>(CaseSet::kCancellation)) {
    for (auto& row : out.a) {
      for (int i = 0; i < k; ++i) {
        bool const zero = set == kSparseSet && !random.one_in(k);
        store(row, i,
              zero ? random.one_in(2) * a_fields.sign()
                   : detail::wgmma_value(random, set, a_fields, false));
      }
    }
    for (int column = 0; column < n; ++column) {
      for (int i = 0; i < k; ++i)
        store(b_row(column), i, detail::wgmma_value(random, set, b_fields, false));
    }
    for (auto& c : out.c) c = detail::wgmma_value(random, set, sum, true);
    return out;
  }

  // As for mma.sync: sums that cancel to a few last places. Either neighbours along K cancel, or A
  // and B are (nearly) constant and C is minus their product, give or take.
  bool const constant = random.one_in(2);
  std::uint32_t const x = detail::random_value(random, a_fields, -4, 8);
  std::uint32_t const y = detail::random_value(random, b_fields, -4, 8);
  auto const perturbed = [&](std::uint32_t v) {
    return random.one_in(8) ? v ^ (1u << random.below(2)) : v;
  };
  auto const fill = [&](std::uint8_t* row, Fields f, std::uint32_t fixed, std::uint32_t odd_sign) {
    std::uint32_t pair = fixed;
    for (int i = 0; i < k; ++i) {
      if (!constant && i % 2 == 0) pair = detail::random_value(random, f, -4, 8);
      store(row, i, perturbed(pair) ^ (!constant && i % 2 != 0 ? odd_sign : 0));
    }
  };
  for (auto& row : out.a) fill(row, a_fields, x, 0);
  for (int column = 0; column < n; ++column) fill(b_row(column), b_fields, y, b_fields.sign());
  float product =
      detail::wgmma_float(a_fields, x) * detail::wgmma_float(b_fields, y) * static_cast<float>(k);
  if (out.op.negate_a == out.op.negate_b) product = -product;
  bool const half_sum = s.d == DType::f16;
  for (auto& c : out.c) {
    if (random.one_in(8)) {
      c = random.one_in(2) ? sum.sign() : 0;
    } else if (!constant) {
      c = detail::random_value(random, sum, -20, 24);
    } else {
      c = half_sum ? to_half(product).bits : __builtin_bit_cast(std::uint32_t, product);
      if (random.one_in(2)) c ^= 1u << random.below(half_sum ? 3 : 12);
    }
  }
  return out;
}

}  // namespace tegula::probe
