#include <gtest/gtest.h>

#include "gpu_kernels.hpp"
#include "run_kernel.hpp"
#include "wgmma_data.hpp"
#include "word_kernels.hpp"

/// The same kernels on a GPU and on the simulated machine: the same bits.
namespace tegula {
namespace {

TEST(Gpu, EveryInstructionKernelGivesTheSimulatedMachinesBits) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  int index = 0;
  for (WordKernel const& kernel : all_instruction_kernels()) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      auto const in = words(static_cast<std::size_t>(kernel.in_words), seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(run_on_gpu(index, in), kernel.run(machine, in, nullptr)) << kernel.name << ", seed " << seed;
    }
    ++index;
  }
}

TEST(Gpu, EveryHopperKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  int index = 0;
  for (WordKernel const& kernel : all_hopper_kernels()) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      auto const in = words(static_cast<std::size_t>(kernel.in_words), seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(run_hopper_on_gpu(index, in), kernel.run(machine, in, nullptr))
          << kernel.name << ", seed " << seed;
    }
    ++index;
  }
}

TEST(Gpu, EveryWgmmaKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU that executes the instructions of sm_90a";
  int index = 0;
  for (WgmmaKernel const& kernel : all_wgmma_kernels()) {
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
      auto const in = wild_input(kernel, seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(run_wgmma_on_gpu(index, in), kernel.run(machine, in, nullptr))
          << kernel.name << ", seed " << seed;
    }
    ++index;
  }
}

}  // namespace
}  // namespace tegula
