#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/sim/machine.hpp"

/// The kernels of instruction_kernels.hpp, vocabulary_kernels.hpp, hopper_kernels.hpp,
/// synchronisation_kernels.hpp, atomic_kernels.hpp, copy_kernels.hpp, register_kernels.hpp and
/// wgmma_kernels.hpp as values: compiled once, for all tests that run each of them.
namespace tegula {

struct WordKernel {
  std::string name;
  int in_words, out_words;
  /// Runs it on `in`, of in_words, and returns what it wrote; the launch's report too, unless that
  /// is null.
  std::vector<std::uint32_t> (*run)(sim::Machine&, std::vector<std::uint32_t> const& in,
                                    sim::Report* report);
  bool polls = false;  ///< a schedule decides how often it polls by atomics
};

/// A kernel of wgmma_kernels.hpp: a product of one warpgroup, with where its input lies. Offsets
/// are in words.
struct WgmmaKernel : WordKernel {
  MmaSpec op;
  int steps;  ///< instructions along K
  bool a_in_registers;
  SwizzledLayout tile_a, tile_b;  ///< of the operands in shared memory
  int m0, n0, stage;              ///< where in the tiles the operands begin
  int a_at, b_at, d_at, a_registers_at;
  int registers;  ///< of D, of a thread

  constexpr int k() const { return op.k * steps; }
};

/// In the order of instruction_kernels::AllKernels, which is that of their indices on a GPU.
std::vector<WordKernel> const& all_instruction_kernels();
/// In the order of hopper_kernels::AllKernels.
std::vector<WordKernel> const& all_hopper_kernels();
/// In the order of vocabulary_kernels::AllKernels.
std::vector<WordKernel> const& all_vocabulary_kernels();
/// In the order of synchronisation_kernels::AllKernels.
std::vector<WordKernel> const& all_synchronisation_kernels();
/// In the order of atomic_kernels::AllKernels.
std::vector<WordKernel> const& all_atomic_kernels();
/// In the order of copy_kernels::AllKernels.
std::vector<WordKernel> const& all_copy_kernels();
/// In the order of register_kernels::AllKernels.
std::vector<WordKernel> const& all_register_kernels();
/// In the order of wgmma_kernels::AllKernels.
std::vector<WgmmaKernel> const& all_wgmma_kernels();

}  // namespace tegula
