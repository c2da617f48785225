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
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      auto const in = words(Kernel::in_words, seed);
      sim::Machine machine({.generation = sim::Generation::sm90});
      auto const simulated = run_kernel<Kernel>(machine, in);
      auto const real = run_on_gpu(index, in);
      ASSERT_EQ(real.size(), simulated.size());
      for (std::size_t i = 0; i < real.size(); ++i) {
        ASSERT_EQ(real[i], simulated[i]) << sim::type_name<Kernel>() << ", seed " << seed << ", word " << i;
      }
    }
    ++index;
  });
}

}  // namespace
}  // namespace tegula
