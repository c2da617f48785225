#pragma once

#include <cstddef>
#include <cstdint>

namespace tegula::sim {

/// Whose GPU is simulated: the same instruction gives different bits on different generations.
enum class Generation : std::uint8_t { sm80, sm90, sm100 };

/// Registers of 32 bits that a multiprocessor has, of every generation.
inline constexpr int kRegistersOfMultiprocessor = 65536;

/// How a generation's mma.sync sums (Xie et al., arXiv 2511.10909).
struct Summation {
  int fraction_bits;  ///< kept below the largest exponent
  int most_bits_k;    ///< bytes of A and B, in bits, that one step takes along K
};

/// What the simulated machine knows of a generation. To add one: an enumerator and a row.
struct ArchSpec {
  Generation generation;
  int compute_capability;
  int multiprocessors;       ///< of an A100, an H100, a B200
  std::size_t shared_bytes;  ///< that a CTA can have, at most
  std::size_t shared_bytes_per_multiprocessor;
  int threads_per_multiprocessor;
  int ctas_per_multiprocessor;
  int most_ctas_of_a_cluster;  ///< 1: it has no clusters
  bool wgmma = false;          ///< it has wgmma
  bool tensor_memory = false;  ///< it has tensor memory, and tcgen05
  Summation mma_sync;
  double tensor_rate;     ///< Timing::tensor_rate
  double mma_sync_share;  ///< Timing::mma_sync_share
};

/// A row a generation, in the order of the enumerators. Shared memory and clusters: CUDA C++
/// programming guide, "technical specifications per compute capability" and "Thread Block Clusters"
/// (the portable size). Rates: trace.hpp, Timing; an A100's tensor cores do half as much as an
/// H100's, all of it by mma.sync; a B200's twice as much, a quarter of it by mma.sync. Nothing here
/// of sm100 was measured (docs/blackwell.md).
inline constexpr ArchSpec kArchSpecs[] = {
    {.generation = Generation::sm80,
     .compute_capability = 80,
     .multiprocessors = 108,
     .shared_bytes = 163 * 1024,
     .shared_bytes_per_multiprocessor = 164 * 1024,
     .threads_per_multiprocessor = 2048,
     .ctas_per_multiprocessor = 32,
     .most_ctas_of_a_cluster = 1,
     .mma_sync = {.fraction_bits = 24, .most_bits_k = 128},
     .tensor_rate = 1024,
     .mma_sync_share = 1},
    {.generation = Generation::sm90,
     .compute_capability = 90,
     .multiprocessors = 132,
     .shared_bytes = 227 * 1024,
     .shared_bytes_per_multiprocessor = 228 * 1024,
     .threads_per_multiprocessor = 2048,
     .ctas_per_multiprocessor = 32,
     .most_ctas_of_a_cluster = 8,
     .wgmma = true,
     .mma_sync = {.fraction_bits = 25, .most_bits_k = 256},
     .tensor_rate = 2048,
     .mma_sync_share = 0.62},
    {.generation = Generation::sm100,
     .compute_capability = 100,
     .multiprocessors = 148,
     .shared_bytes = 227 * 1024,
     .shared_bytes_per_multiprocessor = 228 * 1024,
     .threads_per_multiprocessor = 2048,
     .ctas_per_multiprocessor = 32,
     .most_ctas_of_a_cluster = 8,
     .tensor_memory = true,
     .mma_sync = {.fraction_bits = 25, .most_bits_k = 256},
     .tensor_rate = 4096,
     .mma_sync_share = 0.25},
};

constexpr ArchSpec const& spec_of(Generation generation) {
  return kArchSpecs[static_cast<std::size_t>(generation)];
}

}  // namespace tegula::sim
