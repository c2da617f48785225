#pragma once

#include <cstdint>
#include <vector>

namespace tegula {

/// Whether there is a GPU to run on.
bool has_gpu();

/// Whether that GPU executes the instructions of sm_90.
bool has_hopper_gpu();

/// Runs kernel number `index` of instruction_kernels::AllKernels on the GPU and returns what it
/// wrote. Throws std::runtime_error where CUDA reports an error.
std::vector<std::uint32_t> run_on_gpu(int index, std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of vocabulary_kernels::AllKernels.
std::vector<std::uint32_t> run_vocabulary_on_gpu(int index, std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of hopper_kernels::AllKernels.
std::vector<std::uint32_t> run_hopper_on_gpu(int index, std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of synchronisation_kernels::AllKernels.
std::vector<std::uint32_t> run_synchronisation_on_gpu(int index,
                                                      std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of atomic_kernels::AllKernels.
std::vector<std::uint32_t> run_atomic_on_gpu(int index, std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of copy_kernels::AllKernels.
std::vector<std::uint32_t> run_copy_on_gpu(int index, std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of register_kernels::AllKernels.
std::vector<std::uint32_t> run_registers_on_gpu(int index, std::vector<std::uint32_t> const& in);

/// As run_on_gpu, of wgmma_kernels::AllKernels.
std::vector<std::uint32_t> run_wgmma_on_gpu(int index, std::vector<std::uint32_t> const& in);

}  // namespace tegula
