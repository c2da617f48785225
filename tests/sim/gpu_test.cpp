#include <gtest/gtest.h>

#include "gpu_kernels.hpp"
#include "run_kernel.hpp"

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

}  // namespace
}  // namespace tegula
