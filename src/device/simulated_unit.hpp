#pragma once

/// One configuration of a kernel compiled for the simulated machine. Each is instantiated in a translation
/// unit of its own, which CMake makes from attention_unit.cpp.in or gemm_unit.cpp.in; the tables in
/// simulated.cpp only name them.

#include <cstddef>

#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::device {

template <class Params> struct SimulatedKernel {
  int threads;
  std::size_t shared_bytes;
  sim::Report (*launch)(sim::Machine&, Params const&);
};

template <int I> SimulatedKernel<AttentionParams> simulated_attention();
template <int I> SimulatedKernel<GemmParams> simulated_gemm();

}  // namespace tegula::device
