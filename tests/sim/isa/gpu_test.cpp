#include <gtest/gtest.h>

#include "gpu_kernels.hpp"
#include "hopper_kernels.hpp"
#include "run_kernel.hpp"
#include "synchronisation_kernels.hpp"
#include "wgmma_data.hpp"

/// The same kernels on a GPU and on the simulated machine: the same bits.
namespace tegula {
namespace {

TEST(Gpu, EveryInstructionKernelGivesTheSimulatedMachinesBits) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  int index = 0;
  for_each_instruction_kernel([&]<class Kernel>(Kernel) {
    int const kernel = index++;
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      auto const in = words(Kernel::in_words, seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(run_on_gpu(kernel, in), run_kernel<Kernel>(machine, in))
          << sim::type_name<Kernel>() << ", seed " << seed;
    }
  });
}

/// `run(index, in)`: the kernel of that number in the list, on the GPU.
template <class Run, class... Kernel> void compare_all(Run run, hopper_kernels::Kernels<Kernel...>) {
  int index = 0;
  auto const compare = [&]<class K>(K) {
    int const kernel = index++;
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      auto const in = words(K::in_words, seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(run(kernel, in), run_kernel<K>(machine, in)) << sim::type_name<K>() << ", seed " << seed;
    }
  };
  (compare(Kernel{}), ...);
}

TEST(Gpu, EveryHopperKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(run_hopper_on_gpu, hopper_kernels::AllKernels{});
}

TEST(Gpu, EverySynchronisationKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU of compute capability 9.x";
  compare_all(run_synchronisation_on_gpu, synchronisation_kernels::AllKernels{});
}

TEST(Gpu, EveryWgmmaKernelGivesTheSimulatedMachinesBits) {
  if (!has_hopper_gpu()) GTEST_SKIP() << "no GPU that executes the instructions of sm_90a";
  int index = 0;
  for_each_wgmma_kernel([&]<class Kernel>(Kernel) {
    int const kernel = index++;
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
      auto const in = wild_input<Kernel>(seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      EXPECT_EQ(run_wgmma_on_gpu(kernel, in), run_kernel<Kernel>(machine, in))
          << sim::type_name<Kernel>() << ", seed " << seed;
    }
  });
}

}  // namespace
}  // namespace tegula
