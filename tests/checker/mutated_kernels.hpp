#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tegula/sim/machine.hpp"

/// The kernels that are mutated, free of their types.
namespace tegula::mutants {

/// What came of a launch.
struct Outcome {
  std::vector<std::uint8_t> output;  ///< every byte of the kernel's outputs
  sim::Report report;
};

struct MutatedKernel {
  std::string name;    ///< of the case
  std::string kernel;  ///< of its family: "gemm_sm90"
  /// Launches it on a machine of its own, which does not throw findings.
  std::function<Outcome(sim::Options)> run;
};

/// The kernel of kCases[I]: mutated_kernel.cpp.in, compiled once for each.
template <int I> MutatedKernel mutated_kernel();

/// attention_sm90 in its forms: mutated_attention.cpp.
std::vector<MutatedKernel> mutated_attention();

/// grouped_gemm_sm90 in its forms: mutated_grouped.cpp.
std::vector<MutatedKernel> mutated_grouped();

/// gemm_sm100, scaled_gemm_sm100 and grouped_gemm_sm100 in their forms: mutated_sm100.cpp.
std::vector<MutatedKernel> mutated_sm100();

/// attention_sm100 in its forms: mutated_attention_sm100.cpp.
std::vector<MutatedKernel> mutated_attention_sm100();

/// Those of the pipelines' tests.
std::vector<MutatedKernel> mutated_pipelines();

}  // namespace tegula::mutants
