#include <gtest/gtest.h>

#include "gpu_kernels.hpp"
#include "run_kernel.hpp"
#include "wgmma_data.hpp"
#include "word_kernels.hpp"

/// The same kernels on a GPU and on the simulated machine: the same bits.
namespace tegula {
namespace {

/// `on_gpu(index, in)`: the kernel of that number in the list, on the GPU.
template <class OnGpu> void compare_all(std::vector<WordKernel> const& kernels, OnGpu on_gpu) {
  int index = 0;
  for (WordKernel const& kernel : kernels) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      auto const in = words(static_cast<std::size_t>(kernel.in_words), seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(on_gpu(index, in), kernel.run(machine, in, nullptr))
          << kernel.name << ", seed " << seed;
    }
    ++index;
  }
}

TEST(Gpu, EveryInstructionKernelGivesTheSimulatedMachinesBits) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  compare_all(all_instruction_kernels(), run_on_gpu);
}

TEST(Gpu, EveryKernelOfTheVocabularyGivesTheSimulatedMachinesBits) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  compare_all(all_vocabulary_kernels(), run_vocabulary_on_gpu);
}

TEST(Gpu, EveryHopperKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(all_hopper_kernels(), run_hopper_on_gpu);
}

TEST(Gpu, EverySynchronisationKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(all_synchronisation_kernels(), run_synchronisation_on_gpu);
}

TEST(Gpu, EveryAtomicKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(all_atomic_kernels(), run_atomic_on_gpu);
}

TEST(Gpu, EveryCopyKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(all_copy_kernels(), run_copy_on_gpu);
}

TEST(Gpu, EveryKernelOfRegistersGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(all_register_kernels(), run_registers_on_gpu);
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
