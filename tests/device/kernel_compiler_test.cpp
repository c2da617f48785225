// Kernels compiled when they are first used: a GPU is not needed, NVRTC is.

#include "tegula/device/kernel_compiler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "scratch.hpp"
#include "tegula/device/error.hpp"
#include "with_kernel_compiler.hpp"

namespace tegula {
namespace {

namespace fs = std::filesystem;
using tegula::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class KernelCompiler : public testing::WithKernelCompiler {};

/// Compiled, kept, and found again.
void expect_kept(FamilyId family) {
  CompiledKernel const cold = compile(family, 0, "sm_90a");
  EXPECT_FALSE(cold.from_cache);
  EXPECT_EQ(cold.name, configuration_name(family, 0));
  EXPECT_THAT(cold.cubin, StartsWith("\177ELF"));
  EXPECT_GT(cold.registers, 0);
  EXPECT_EQ(cold.spilled_bytes, 0);
  EXPECT_EQ(cold.not_kept, "");
  CompiledKernel const warm = compile(family, 0, "sm_90a");
  EXPECT_TRUE(warm.from_cache);
  EXPECT_EQ(warm.cubin, cold.cubin);
  EXPECT_LT(warm.seconds, 0.05);  // 5 ms where nobody else is at work
  ASSERT_EQ(cached_kernels().size(), 1u);
  EXPECT_EQ(cached_kernels()[0].name, cold.name);
}

TEST_F(KernelCompiler, KeepsAttentionSm80) { expect_kept(attention_sm80); }
TEST_F(KernelCompiler, KeepsAttentionSm90) { expect_kept(attention_sm90); }
TEST_F(KernelCompiler, KeepsGemmSm80) { expect_kept(gemm_sm80); }
TEST_F(KernelCompiler, KeepsGemmSm90) { expect_kept(gemm_sm90); }

constexpr char const* kDoubling = R"(
#include "tegula/arch/special_registers.hpp"
struct Doubling {
  struct Params { float* x; };
  struct SharedStorage {};
  static constexpr int threads = 32;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    p.x[tegula::thread_idx()] *= FACTOR;
  }
};
)";

TEST_F(KernelCompiler, CompilesAKernelOfTheUsers) {
  std::string source = kDoubling;
  source.replace(source.find("FACTOR"), 6, "2.0f");
  CompiledKernel const kernel = compile_source(source, "Doubling", "sm_90a");
  EXPECT_THAT(kernel.cubin, StartsWith("\177ELF"));
  EXPECT_THAT(kernel.cubin, HasSubstr("tegula_kernel_form"));  // what a launch must know
  EXPECT_TRUE(compile_source(source, "Doubling", "sm_90a").from_cache);
  EXPECT_FALSE(compile_source(source + "\n", "Doubling", "sm_90a").from_cache);
  EXPECT_FALSE(compile_source(source, "Doubling", "sm_80").from_cache);
  fs::resize_file(kernel.path, fs::file_size(kernel.path) - 1);
  EXPECT_FALSE(compile_source(source, "Doubling", "sm_90a").from_cache);  // damaged: once more
  EXPECT_TRUE(compile_source(source, "Doubling", "sm_90a").from_cache);
}

TEST_F(KernelCompiler, SaysWhatDoesNotCompile) {
  EXPECT_THAT(message_of<device_error>([] { compile_source(kDoubling, "Doubling", "sm_90a"); }),
              AllOf(HasSubstr("did not compile"), HasSubstr("\"FACTOR\" is undefined")));
  EXPECT_THAT(message_of<device_error>([] { compile(gemm_sm90, 0, "sm_7"); }),
              HasSubstr("--gpu-architecture"));
  // ptxas has more to say than what is wrong.
  EXPECT_THAT(message_of<device_error>([] { compile(gemm_sm90, 0, "sm_80"); }),
              HasSubstr("error   : "));
  EXPECT_THAT(message_of<argument_error>([] { compile(gemm_sm90, 100000, "sm_90a"); }),
              HasSubstr("100000"));
  EXPECT_TRUE(cached_kernels().empty());
}

TEST_F(KernelCompiler, AFolderThatCannotBeWrittenStopsNoKernel) {
  std::ofstream(cache_) << "a file in the way";
  std::string source = kDoubling;
  source.replace(source.find("FACTOR"), 6, "3.0f");
  CompiledKernel const kernel = compile_source(source, "Doubling", "sm_90a");
  EXPECT_THAT(kernel.cubin, StartsWith("\177ELF"));
  EXPECT_THAT(kernel.not_kept, HasSubstr("TEGULA_CACHE"));
}

// In a process of its own, since a compiler that was found is kept.
TEST(KernelCompilerDeathTest, SaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("TEGULA_NVRTC", "/nowhere/libnvrtc.so.13", 1);
        std::string const sentence =
            message_of<device_error>([] { compile(gemm_sm90, 0, "sm_90a"); });
        std::fputs(sentence.c_str(), stderr);
        std::_Exit(7);
      },
      ::testing::ExitedWithCode(7), "TEGULA_NVRTC is /nowhere/libnvrtc.so.13");
}

}  // namespace
}  // namespace tegula
