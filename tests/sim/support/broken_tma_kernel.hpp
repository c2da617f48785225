#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "broken_kernel.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/sim/tensor_map.hpp"

/// What kernels that use TMA wrongly have in common.
namespace tegula {

/// A tensor of 64 x 16 floats whose last four rows nobody wrote, and one that only kernels write.
/// Boxes are of 32 x 8: 1024 bytes.
struct Tensors {
  TensorMap in;
  TensorMap out;
  float* memory;  ///< of `in`
  float* stored;  ///< of `out`
};

inline constexpr int kTmaBoxBytes = 1024;

inline TensorMapDescription described(void* memory) {
  TensorMapDescription d;
  d.dtype = DType::f32;
  d.rank = 2;
  d.address = memory;
  d.extents = {64, 16};
  d.strides = {256};
  d.box = {32, 8};
  return d;
}

struct BrokenTma {
  using Params = Tensors;
  struct SharedStorage {
    alignas(1024) float tile[8][32];
    float spare[8][32];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("spare", spare);
      name("full", full);
    }
  };
  static constexpr int threads = 32;

  /// An mbarrier of one arrival, seen by all.
  static SharedAddr full(SharedStorage& smem) {
    SharedAddr const mbarrier = shared_address(&smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(mbarrier, 1);
      fence_mbarrier_init();
    }
    cta::sync();
    return mbarrier;
  }
  /// All of the tile, written by threads.
  static void fill(SharedStorage& smem) {
    for (int row = 0; row < 8; ++row)
      st_shared(shared_address(&smem.tile[row][thread_idx()]), 1.0f);
    fence_proxy_async();
    cta::sync();
  }
};

template <class Kernel>
sim::Report tma_report(sim::Options options = {}, void (*change)(Tensors&) = nullptr,
                       Dim3 grid = {}) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  Tensors tensors{};
  tensors.memory = static_cast<float*>(machine.allocate(4096, "in"));
  tensors.stored = static_cast<float*>(machine.allocate(4096, "out"));
  machine.fill(tensors.memory, 0, 12 * 256);
  tensors.in = sim::encode(described(tensors.memory));
  tensors.out = sim::encode(described(tensors.stored));
  if (change != nullptr) change(tensors);
  return sim::launch<Kernel>(machine, grid, tensors);
}

/// Random interleavings at every completion.
inline std::vector<sim::Options> every_completion() {
  std::vector<sim::Options> every;
  for (auto const completion :
       {sim::Completion::first, sim::Completion::random, sim::Completion::last}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed)
      every.push_back(
          {.completion = completion, .interleaving = sim::Interleaving::random, .seed = seed});
  }
  return every;
}

}  // namespace tegula
