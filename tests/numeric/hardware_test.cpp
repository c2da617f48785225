#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <probe_files.hpp>
#include <tegula/sim/arithmetic.hpp>
#include <vector>
#include <wgmma_cases.hpp>

#include "data/h100_results.hpp"
#include "data/h100_wgmma_results.hpp"

namespace tegula {
namespace {

using probe::CaseSet;

struct Registers {
  std::uint32_t d[32][4];
  std::uint32_t word(int index) const { return d[index / 4][index % 4]; }
};

Registers simulated(int op, int set, int index) {
  probe::MmaCase const x = probe::mma_case(op, static_cast<CaseSet>(set), index);
  Registers out{};
  sim::mma_sync_warp(probe::mma_subject(op), sim::Generation::sm90, x.a, x.b, x.c, out.d);
  return out;
}

TEST(HardwareMma, EverySampledResultIsTheGpus) {
  int samples[probe::kRecordedMmaSubjects] = {};
  for (h100::MmaResult const& gpu : h100::kMmaResults) {
    ++samples[gpu.op];
    EXPECT_EQ(simulated(gpu.op, gpu.set, gpu.index).word(gpu.word), gpu.d)
        << "op " << int{gpu.op} << ", set " << probe::kCaseSetNames[gpu.set] << ", case "
        << gpu.index << ", word " << int{gpu.word};
  }
  for (int op = 0; op < probe::kRecordedMmaSubjects; ++op)
    EXPECT_GE(samples[op], 48) << "op " << op;
}

TEST(HardwareMma, DigestsOfAllKeptResultsAreTheGpus) {
  for (h100::MmaDigest const& gpu : h100::kMmaDigests) {
    probe::Digest digest;
    for (int index = 0; index < gpu.cases; ++index) {
      Registers const registers = simulated(gpu.op, gpu.set, index);
      for (int word = 0; word < 128; ++word) digest.add(registers.word(word));
    }
    EXPECT_EQ(digest.state, gpu.digest)
        << "op " << int{gpu.op} << ", set " << probe::kCaseSetNames[gpu.set];
  }
}

// sm_80 keeps one bit less and takes K in halves: the same inputs must show it.
TEST(HardwareMma, AnotherGenerationDiffers) {
  constexpr int kSubject = 1;
  constexpr MmaSpec kOp = probe::mma_subject(kSubject);
  static_assert(kOp == warp_mma(DType::f16, DType::f32, 16));
  int different = 0;
  for (int index = 0; index < 20; ++index) {
    probe::MmaCase const x = probe::mma_case(kSubject, CaseSet::kMiddle, index);
    std::uint32_t d80[32][4], d90[32][4];
    sim::mma_sync_warp(kOp, sim::Generation::sm80, x.a, x.b, x.c, d80);
    sim::mma_sync_warp(kOp, sim::Generation::sm90, x.a, x.b, x.c, d90);
    different += std::memcmp(d80, d90, sizeof d80) != 0;
  }
  EXPECT_GT(different, 15);
}

constexpr int kRecordedSets = probe::kWgmmaSets;

probe::WgmmaCase kept_case(int subject, int set, int index) {
  return probe::wgmma_case(subject, set, probe::kKeptWgmmaN, index);
}

TEST(HardwareWgmma, EverySampledResultIsTheGpus) {
  int samples[probe::kWgmmaSubjectCount][kRecordedSets] = {};
  for (h100::WgmmaResult const& gpu : h100::kWgmmaResults) {
    ++samples[gpu.subject][gpu.set];
    std::vector<std::uint32_t> const d = kept_case(gpu.subject, gpu.set, gpu.index).simulated();
    EXPECT_EQ(d[static_cast<std::size_t>(gpu.row * probe::kKeptWgmmaN + gpu.column)], gpu.d)
        << probe::kWgmmaSubjects[gpu.subject].name << ", set " << probe::wgmma_set_name(gpu.set)
        << ", case " << int{gpu.index} << ", row " << int{gpu.row} << ", column "
        << int{gpu.column};
  }
  for (auto const& subject : samples) {
    for (int count : subject) EXPECT_EQ(count, probe::kKeptWgmmaCases);
  }
}

TEST(HardwareWgmma, DigestsOfAllKeptResultsAreTheGpus) {
  ASSERT_EQ(std::size(h100::kWgmmaDigests),
            std::size_t{probe::kWgmmaSubjectCount} * std::size_t{kRecordedSets});
  for (h100::WgmmaDigest const& gpu : h100::kWgmmaDigests) {
    probe::Digest digest;
    for (int index = 0; index < probe::kKeptWgmmaCases; ++index) {
      for (std::uint32_t word : kept_case(gpu.subject, gpu.set, index).simulated())
        digest.add(word);
    }
    EXPECT_EQ(digest.state, gpu.digest)
        << probe::kWgmmaSubjects[gpu.subject].name << ", set " << probe::wgmma_set_name(gpu.set);
  }
}

// The digests stand for what the description says besides ordinary sums, for every type.
TEST(HardwareWgmma, KeptResultsHoldWhatIsSpecial) {
  for (int subject = 0; subject < probe::kWgmmaSubjectCount; ++subject) {
    probe::WgmmaSubject const& s = probe::kWgmmaSubjects[subject];
    if (s.d == DType::s32) continue;
    bool const half = s.d == DType::f16;
    std::uint32_t const infinity = half ? 0x7c00u : 0x7f800000u;
    std::uint32_t const sign = half ? 0x8000u : 0x80000000u;
    int zeros = 0, subnormals = 0, infinities = 0, nans = 0;
    for (int set = 0; set < kRecordedSets; ++set) {
      for (int index = 0; index < probe::kKeptWgmmaCases; ++index) {
        for (std::uint32_t d : kept_case(subject, set, index).simulated()) {
          std::uint32_t const magnitude = d & ~sign;
          ASSERT_NE(d, sign) << s.name << ": a negative zero";
          ASSERT_TRUE(magnitude <= infinity || d == sign - 1) << s.name << ": another NaN, " << d;
          zeros += magnitude == 0;
          subnormals += magnitude != 0 && magnitude < (half ? 0x400u : 0x800000u);
          infinities += magnitude == infinity;
          nans += magnitude > infinity;
        }
      }
    }
    bool const wide_exponents = s.a == DType::bf16 || s.a == DType::tf32;
    EXPECT_GT(zeros, 10) << s.name;
    EXPECT_GT(subnormals, half || wide_exponents ? 20 : -1) << s.name;
    EXPECT_GT(infinities, 200) << s.name;
    EXPECT_GT(nans, 1000) << s.name;
  }
}

using Function = float (*)(float);

std::uint32_t bits_of(Function f, std::uint32_t argument) {
  return __builtin_bit_cast(std::uint32_t, f(__builtin_bit_cast(float, argument)));
}

template <class Results> void expect_results(Function f, Results const& results) {
  for (h100::FunctionResult const& gpu : results) {
    EXPECT_EQ(bits_of(f, gpu.argument), gpu.result) << std::hex << "argument 0x" << gpu.argument;
  }
}

std::uint64_t digest(Function f, std::vector<std::uint32_t> const& arguments) {
  probe::Digest all;
  for (std::uint32_t argument : arguments) all.add(bits_of(f, argument));
  return all.state;
}

std::vector<std::uint32_t> binade() {
  return probe::consecutive(0x3f800000u, std::size_t{1} << 23);
}
constexpr std::size_t kRandom = std::size_t{1} << 18;

TEST(HardwareFunctions, Ex2IsExactOverItsWholeReducedRange) {
  expect_results(sim::ex2_approx_ftz, h100::kEx2Results);
  expect_results(sim::ex2_approx_ftz, h100::kEx2RandomResults);
  EXPECT_EQ(digest(sim::ex2_approx_ftz, probe::ex2_arguments()), h100::kEx2Digest);
  EXPECT_EQ(digest(sim::ex2_approx_ftz, probe::random_floats(1, kRandom, -30, 30, true)),
            h100::kEx2RandomDigest);
}

TEST(HardwareFunctions, RcpIsExactOverItsWholeReducedRange) {
  expect_results(sim::rcp_approx_ftz, h100::kRcpResults);
  EXPECT_EQ(digest(sim::rcp_approx_ftz, binade()), h100::kRcpDigest);
}

TEST(HardwareFunctions, RsqrtIsExactOverItsWholeReducedRange) {
  expect_results(sim::rsqrt_approx_ftz, h100::kRsqrtResults);
  EXPECT_EQ(digest(sim::rsqrt_approx_ftz, probe::consecutive(0x3f800000u, std::size_t{1} << 24)),
            h100::kRsqrtDigest);
}

TEST(HardwareFunctions, Lg2IsExactOverItsWholeReducedRange) {
  expect_results(sim::lg2_approx_ftz, h100::kLg2Results);
  expect_results(sim::lg2_approx_ftz, h100::kLg2RandomResults);
  EXPECT_EQ(digest(sim::lg2_approx_ftz, binade()), h100::kLg2Digest);
  EXPECT_EQ(digest(sim::lg2_approx_ftz, probe::random_floats(3, kRandom, -126, 254, false)),
            h100::kLg2RandomDigest);
}

TEST(HardwareFunctions, TanhIsExactOnRandomArguments) {
  expect_results(sim::tanh_approx, h100::kTanhResults);
  EXPECT_EQ(digest(sim::tanh_approx, probe::random_floats(2, kRandom, -20, 25, false)),
            h100::kTanhDigest);
}

// Rows of the probe's table of special arguments.
TEST(HardwareFunctions, SpecialArguments) {
  struct Row {
    std::uint32_t argument, ex2, rcp, rsqrt, lg2, tanh;
  };
  constexpr Row kRows[] = {
      {0x00000000u, 0x3f800000u, 0x7f800000u, 0x7f800000u, 0xff800000u, 0x00000000u},
      {0x80000000u, 0x3f800000u, 0xff800000u, 0xff800000u, 0xff800000u, 0x80000000u},
      {0x00000001u, 0x3f800000u, 0x7f800000u, 0x7f800000u, 0xff800000u, 0x00000001u},
      {0x807fffffu, 0x3f800000u, 0xff800000u, 0xff800000u, 0xff800000u, 0x807fffffu},
      {0x00800000u, 0x3f800000u, 0x7e800000u, 0x5f000000u, 0xc2fbffffu, 0x00800000u},
      {0x80800000u, 0x3f800000u, 0xfe800000u, 0x7fffffffu, 0x7fffffffu, 0x80800000u},
      {0xbf800000u, 0x3f000000u, 0xbf800000u, 0x7fffffffu, 0x7fffffffu, 0xbf42f848u},
      {0x7f7fffffu, 0x7f800000u, 0x00000000u, 0x1f800000u, 0x42ffffffu, 0x3f800000u},
      {0xff7fffffu, 0x00000000u, 0x80000000u, 0x7fffffffu, 0x7fffffffu, 0xbf800000u},
      {0x7f800000u, 0x7f800000u, 0x00000000u, 0x00000000u, 0x7f800000u, 0x3f800000u},
      {0xff800000u, 0x00000000u, 0x80000000u, 0x7fffffffu, 0x7fffffffu, 0xbf800000u},
      {0xffc00000u, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu},
      {0x7f800001u, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu},
      {0x42ffffffu, 0x7f7fffa8u, 0x3c000001u, 0x3db504f4u, 0x40dfffffu, 0x3f800000u},
      {0xc2fc0000u, 0x00800000u, 0xbc020821u, 0x7fffffffu, 0x7fffffffu, 0xbf800000u},
      {0xc2fc0001u, 0x00000000u, 0xbc020820u, 0x7fffffffu, 0x7fffffffu, 0xbf800000u},
      {0xc3150000u, 0x00000000u, 0xbbdbeb62u, 0x7fffffffu, 0x7fffffffu, 0xbf800000u},
      {0x7e800001u, 0x7f800000u, 0x00000000u, 0x1ffffffeu, 0x42fc0000u, 0x3f800000u},
      {0x7f000000u, 0x7f800000u, 0x00000000u, 0x1fb504f2u, 0x42fe0000u, 0x3f800000u},
  };
  for (Row const& row : kRows) {
    EXPECT_EQ(bits_of(sim::ex2_approx_ftz, row.argument), row.ex2) << std::hex << row.argument;
    EXPECT_EQ(bits_of(sim::rcp_approx_ftz, row.argument), row.rcp) << std::hex << row.argument;
    EXPECT_EQ(bits_of(sim::rsqrt_approx_ftz, row.argument), row.rsqrt) << std::hex << row.argument;
    EXPECT_EQ(bits_of(sim::lg2_approx_ftz, row.argument), row.lg2) << std::hex << row.argument;
    EXPECT_EQ(bits_of(sim::tanh_approx, row.argument), row.tanh) << std::hex << row.argument;
  }
}

}  // namespace
}  // namespace tegula
