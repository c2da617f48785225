#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "atomic_kernels.hpp"
#include "broken_kernel.hpp"
#include "run_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/numeric/dtype.hpp"

/// The kernels of atomic_kernels.hpp under every schedule, against a plain statement of what the
/// PTX ISA says of atom and red; and operands that it does not admit.
namespace tegula {
namespace {

using namespace atomic_kernels;
using sim::Finding;
using sim::FindingKind;
using Values = std::vector<std::uint32_t>;

template <class Kernel> void expect_atomics(Values const& in, Values const& expected) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Machine machine(options);
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << schedule_text(options);
  });
}

template <class T> void append(Values& to, T value) {
  std::uint32_t words[(sizeof(T) + 3) / 4] = {};
  std::memcpy(words, &value, sizeof(T));
  to.insert(to.end(), std::begin(words), std::end(words));
}

template <class T> T operand(std::uint32_t word) {
  return static_cast<T>(static_cast<T>(word) << (sizeof(T) == 8 ? 20 : 0));
}

template <class T> void integers() {
  using Kernel = IntegerAtomics<T>;
  for (std::uint32_t seed : {1u, 2u, 3u}) {
    Values const in = words(Kernel::in_words, seed);
    T least = 0, most = 0, any = 0, odd = 0, returned = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      T const value = operand<T>(in[i]);
      least = std::min(least, value);
      most = std::max(most, value);
      any |= value;
      odd ^= value;
      returned ^= static_cast<T>(3 * i);
    }
    T const sum = static_cast<T>(3 * in.size());
    Values expected;
    for (T const word : {sum, least, most, any, odd, T{0}, T{77}}) append(expected, word);
    for (T const word : {sum, least, most, any, odd, T{0}, T{0}, T{0}, returned})
      append(expected, word);
    expect_atomics<Kernel>(in, expected);
  }
}

TEST(Atomic, EveryOperationOnIntegers) {
  integers<std::uint32_t>();
  integers<std::int32_t>();
  integers<std::uint64_t>();
  integers<std::int64_t>();
}

TEST(Atomic, CountersBeginAgain) {
  std::uint32_t up = 0, down = 0, sum = 0;
  for (int i = 0; i < 256; ++i) {
    sum += up;
    up = up >= 9 ? 0 : up + 1;
    down = down == 0 || down > 9 ? 9 : down - 1;
  }
  expect_atomics<Counters>({}, {up, down, up, down, sum});
}

template <class T, Scope S> void shared_integers() {
  using Kernel = SharedIntegers<T, S>;
  Values const in = words(Kernel::in_words, 5);
  Values expected;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    T least = 0, most = 0, any = 0, odd = 0;
    for (std::size_t t = 0; t < 64; ++t) {
      T const value = operand<T>(in[64 * (S == Scope::cta ? rank : rank ^ 1) + t]);
      least = std::min(least, value);
      most = std::max(most, value);
      any |= value;
      odd ^= value;
    }
    for (T const word :
         {static_cast<T>(6 * 64), least, most, most, any, any, odd, odd, T{99}, T{42}})
      append(expected, word);
  }
  expect_atomics<Kernel>(in, expected);
}

TEST(Atomic, TheSameInSharedMemoryOfTheCtaAndOfItsPeer) {
  shared_integers<std::uint32_t, Scope::cta>();
  shared_integers<std::int32_t, Scope::cluster>();
  shared_integers<std::uint64_t, Scope::cta>();
  shared_integers<std::int64_t, Scope::cta>();
}

TEST(Atomic, AHistogram) {
  Values const in = words(Histogram::in_words);
  Values expected(16);
  for (std::uint32_t const word : in) ++expected[word % 16];
  expect_atomics<Histogram>(in, expected);
}

TEST(Atomic, TheFirstPlaceOfTheGreatest) {
  Values const in = words(ArgMax::in_words);
  std::size_t at = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] % 100 > in[at] % 100) at = i;
  }
  expect_atomics<ArgMax>(in, {static_cast<std::uint32_t>(0xffffffffu - at), in[at] % 100});
}

/// One sum rounded to nearest even, by way of doubles, which hold every sum of two exactly.
template <class T> std::uint16_t rounded_sum(std::uint16_t a, std::uint16_t b) {
  T x, y;
  x.bits = a, y.bits = b;
  double const exact = static_cast<double>(to_float(x)) + static_cast<double>(to_float(y));
  if (std::isnan(exact)) return 0x7fff;
  return from_float<T>(static_cast<float>(exact)).bits;
}

template <class T, bool Specials> void short_sums() {
  using Kernel = ShortSums<T, Specials>;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    Values in = words(Kernel::in_words, seed);
    // Neighbours in magnitude, subnormals and special values meet more often than by chance.
    for (std::size_t i = 0; i < in.size(); i += 8) {
      if (i % 24 == 8) in[i + 4] = in[i] ^ 0x80008000u;
      if (i % 24 == 16) in[i] &= 0x807f807fu, in[i + 4] &= 0x807f807fu;
      if (i % 40 == 0) in[i + 1] = 0x7f807c00u, in[i + 5] = 0xff80fc00u;
    }
    Values expected;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      std::uint16_t initial[8], addend[8];
      Values bits(in.begin() + static_cast<std::ptrdiff_t>(8 * lane),
                  in.begin() + static_cast<std::ptrdiff_t>(8 * lane + 8));
      if (!Specials) {
        for (std::uint32_t& word : bits) word &= ~0x40004000u;
      }
      std::memcpy(initial, bits.data(), 16);
      std::memcpy(addend, bits.data() + 4, 16);
      Values sums;
      for (int i = 0; i < 8; i += 2)
        sums.push_back(rounded_sum<T>(initial[i], addend[i]) |
                       static_cast<std::uint32_t>(rounded_sum<T>(initial[i + 1], addend[i + 1]))
                           << 16);
      for (int copy = 0; copy < 4; ++copy)
        expected.insert(expected.end(), sums.begin(), sums.end());
      expected.insert(expected.end(), bits.begin(), bits.begin() + 4);
    }
    sim::Machine machine(sim::Options{});
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << "seed " << seed;
  }
}

TEST(Atomic, SumsOf16BitsRoundOnceHoweverManyAreAddedTogether) {
  short_sums<half, false>();
  short_sums<half, true>();
  short_sums<bfloat16, false>();
  short_sums<bfloat16, true>();
}

template <bool Specials> void float_sums() {
  using Kernel = FloatSums<Specials>;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    Values in = words(Kernel::in_words, seed);
    for (std::size_t i = 0; i < in.size(); i += 24) in[i] &= 0x807fffffu;
    Values expected;
    auto const number = [&](std::size_t i) {
      return std::bit_cast<float>(FloatSums<Specials>::word(in[i]));
    };
    auto const sum = [](float a, float b, bool flushes) {
      auto const flushed = [&](float x) {
        return flushes && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
      };
      float const s = flushed(flushed(a) + flushed(b));
      return std::isnan(s) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(s);
    };
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t copy = 0; copy < 4; ++copy) {
        for (std::size_t i = 0; i < 4; ++i)
          expected.push_back(sum(number(8 * lane + i), number(8 * lane + 4 + i), true));
      }
      for (std::size_t i = 0; i < 4; ++i)
        expected.push_back(FloatSums<Specials>::word(in[8 * lane + i]) ^
                           sum(number(8 * lane + i), number(8 * lane + 4 + i), false));
    }
    sim::Machine machine(sim::Options{});
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << "seed " << seed;
  }
}

TEST(Atomic, SumsOfVectorsOfFloats) {
  float_sums<false>();
  float_sums<true>();
}

TEST(Atomic, SubnormalsOfFloatAreZerosInGlobalMemoryAlone) {
  expect_atomics<SubnormalSums>({}, {0, 0x00000000u, 0x80000003u, 0x80000006u});
}

TEST(Atomic, ValuesOf16And128Bits) {
  Values const in = words(8);
  Values const a(in.begin(), in.begin() + 4), b(in.begin() + 4, in.end());
  Values expected;
  for (Values const& part : {b, a, b, b, a, Values{0x12340000u, 0x9999'0000u, 0xabcd, 0}})
    expected.insert(expected.end(), part.begin(), part.end());
  expect_atomics<BitsOfOtherSizes>(in, expected);
}

TEST(Atomic, ALockAndATicket) {
  expect_atomics<Lock>({}, {0, 8, 8});
  Values const in = words(LastBlock::in_words);
  Values expected(2);
  for (std::size_t cta = 0; cta < 4; ++cta) {
    std::uint32_t part = 0;
    for (std::size_t t = 0; t < 64; ++t) part += in[64 * cta + t];
    expected.push_back(part);
    expected[0] += part;
  }
  expect_atomics<LastBlock>(in, expected);
}

// What is found.

Finding the_finding(sim::Report const& report, FindingKind kind) {
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  if (report.findings.empty()) return {};
  EXPECT_EQ(report.findings[0].kind, kind) << report.text();
  return report.findings[0];
}

/// One thread adds a value somewhere in `in`, which holds zeros.
template <class V, int Bytes> struct Adds : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    using T = typename detail::AtomicElements<AtomicOp::add, V>::Element;
    if (lane_id() == 0) red_add(reinterpret_cast<T*>(p.in + Bytes), V{});
  }
};
struct AddsToNothing : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 0) atom_add(reinterpret_cast<half*>(p.out), Vector<half, 2>{});
  }
};

TEST(AtomicChecker, AVectorsAddressIsAMultipleOfItsSize) {
  auto const found = [](sim::Report const& report) {
    return the_finding(report, FindingKind::misaligned);
  };
  EXPECT_SAYS((found(report_of<Adds<Vector<float, 4>, 8>>())), "red of 16 bytes at byte 8 of in");
  EXPECT_SAYS((found(report_of<Adds<Vector<half, 2>, 2>>())), "red of 4 bytes at byte 2 of in");
  EXPECT_SAYS((found(report_of<Adds<Vector<bfloat16, 8>, 8>>())), "no multiple of 16");
  EXPECT_TRUE((report_of<Adds<Vector<bfloat16, 4>, 8>>().ok()));
  EXPECT_TRUE((report_of<Adds<half, 2>>().ok()));
  EXPECT_SAYS(the_finding(report_of<AddsToNothing>(), FindingKind::uninitialized_read),
              "atom reads byte 0 of out, which nobody has written");
}

TEST(AtomicChecker, WhatSm80Lacks) {
  sim::Options const sm80 = {.generation = sim::Generation::sm80};
  EXPECT_SAYS(
      (the_finding(report_of<Adds<Vector<float, 4>, 16>>(sm80), FindingKind::invalid_operand)),
      "red of 4 elements of f32 at the scope of the GPU is an instruction of sm_90, and the "
      "machine an sm_80");
  EXPECT_FALSE((report_of<Adds<bfloat16, 16>>(sm80).ok()));
  EXPECT_TRUE((report_of<Adds<Vector<half, 2>, 16>>(sm80).ok()));
  EXPECT_TRUE((report_of<Adds<float, 16>>(sm80).ok()));
}

}  // namespace
}  // namespace tegula
