#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "broken_kernel.hpp"
#include "refusal.hpp"

/// The host's side of the machine: global memory, and launches that must be refused.
namespace tegula {
namespace {

TEST(GlobalMemory, IsAlignedNeverWrittenAndFullOfNaNs) {
  sim::Machine machine;
  for (std::size_t const bytes : {1, 255, 256, 100000}) {
    auto* const p = static_cast<unsigned char*>(machine.allocate(bytes, "x"));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0u);
    EXPECT_FALSE(machine.written(p, bytes));
    EXPECT_EQ(p[0], 0xff);
    EXPECT_EQ(p[bytes - 1], 0xff);
  }
  EXPECT_EQ(machine.allocate(0, "nothing"), nullptr);
}

TEST(GlobalMemory, UploadsMarkWhatTheyWrite) {
  sim::Machine machine;
  auto* const p = static_cast<char*>(machine.allocate(64, "x"));
  machine.upload(p + 8, "abcdefgh", 8);
  EXPECT_TRUE(machine.written(p + 8, 8));
  EXPECT_FALSE(machine.written(p + 7, 2));
  EXPECT_FALSE(machine.written(p + 15, 2));
  char back[9] = {};
  machine.download(back, p + 8, 8);
  EXPECT_STREQ(back, "abcdefgh");
  auto* const q = static_cast<char*>(machine.allocate(64, "y"));
  machine.copy(q, p + 4, 16);
  EXPECT_FALSE(machine.written(q, 4));
  EXPECT_TRUE(machine.written(q + 4, 8));
  machine.fill(q, 7, 64);
  EXPECT_TRUE(machine.written(q, 64));
  EXPECT_EQ(q[63], 7);
}

TEST(GlobalMemory, RefusesWhatIsNotItsOwn) {
  sim::Machine machine;
  auto* const p = static_cast<char*>(machine.allocate(64, "weights"));
  char host[8] = {};
  EXPECT_EQ(sentence<std::invalid_argument>([&] { machine.upload(p + 60, host, 8); }),
            "upload: 8 bytes from byte 60 of weights on would go beyond its 64 bytes");
  EXPECT_NE(sentence<std::invalid_argument>([&] {
              machine.download(host, host, 8);
            }).find("is not in global memory of this machine"),
            std::string::npos);
  EXPECT_NE(sentence<std::invalid_argument>([&] {
              machine.deallocate(p + 1);
            }).find("is not the start of an allocation"),
            std::string::npos);
  machine.deallocate(p);
  EXPECT_NE(sentence<std::invalid_argument>([&] {
              machine.deallocate(p);
            }).find("is not the start of an allocation"),
            std::string::npos);
  machine.deallocate(nullptr);
}

struct Fine : Broken {
  void operator()(Params const&, SharedStorage&) const {}
};
struct FortyThreads : Fine {
  static constexpr int threads = 40;
};
struct MuchShared : Fine {
  struct SharedStorage {
    char bytes[200 * 1024];
  };
  void operator()(Params const&, SharedStorage&) const {}
};

TEST(Launch, RefusesWhatAGpuWould) {
  EXPECT_NE(sentence<std::invalid_argument>([] {
              report_of<Fine>({}, {0, 1, 1});
            }).find("the grid (0, 1, 1) must be at least 1"),
            std::string::npos);
  EXPECT_NE(sentence<std::invalid_argument>([] {
              report_of<Fine>({}, {1, 65536, 1});
            }).find("at most 65535 along y and z"),
            std::string::npos);
  EXPECT_NE(sentence<std::invalid_argument>([] {
              report_of<FortyThreads>();
            }).find("40 threads; a CTA has a multiple of 32"),
            std::string::npos);
  EXPECT_NE(sentence<std::invalid_argument>([] {
              report_of<MuchShared>({.generation = sim::Generation::sm80});
            }).find("204800 bytes of shared memory; a CTA has at most 166912"),
            std::string::npos);
  EXPECT_TRUE(report_of<MuchShared>({.generation = sim::Generation::sm90}).ok());
}

TEST(Launch, InstructionsOutsideOfALaunchAreRefused) {
  EXPECT_THROW(cta::sync(), std::logic_error);
}

struct ReadsFreed : Broken {
  void operator()(Params const& p, SharedStorage&) const { ld_global<float>(p.in + 4 * lane_id()); }
};

TEST(Launch, AccessToFreedMemoryIsFound) {
  sim::Machine machine({.throw_on_finding = false});
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")), nullptr};
  machine.fill(buffers.in, 0, 4096);
  machine.deallocate(buffers.in);
  sim::Report const report = sim::launch<ReadsFreed>(machine, {1, 1, 1}, buffers);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(sim::to_string(report.findings[0].kind), "out_of_bounds");
}

/// Uses some 20 KB of stack.
struct DeepStack : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    char volatile deep[20000];
    for (int i = 0; i < 20000; ++i) deep[i] = static_cast<char>(i);
    st_global(p.out + lane_id(), static_cast<std::uint8_t>(deep[lane_id()]));
  }
};

TEST(Launch, MeasuresTheDeepestStack) {
  EXPECT_GE(report_of<DeepStack>().stack_bytes, 20000u);
  EXPECT_LE(report_of<Fine>().stack_bytes, 20000u);
}

struct OverflowsStack : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    char volatile deep[100000];
    for (int i = 99999; i >= 0; --i) deep[i] = static_cast<char>(i);
    st_global(p.out + lane_id(), static_cast<std::uint8_t>(deep[lane_id()]));
  }
};

TEST(LaunchDeathTest, AStackOverflowNamesTheThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      report_of<OverflowsStack>({.workers = 1, .stack_bytes = 64 * 1024}),
      "OverflowsStack, CTA .0, 0, 0., warp 0, lane 0: the simulated thread needs more than its 65536 bytes of stack");
}

/// First writes far below its stack.
struct StepsOverItsStack : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    char volatile deep[900000];
    deep[0] = 1;
    st_global(p.out + lane_id(), static_cast<std::uint8_t>(deep[0]));
  }
};

TEST(LaunchDeathTest, SoDoesAFrameThatBeginsBelowTheStack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      report_of<StepsOverItsStack>({.workers = 1, .stack_bytes = 64 * 1024}),
      "StepsOverItsStack, CTA .0, 0, 0., warp 0, lane 0: the simulated thread needs more than its 65536 bytes of stack");
}

}  // namespace
}  // namespace tegula
