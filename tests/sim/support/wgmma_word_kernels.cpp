#include "run_kernel.hpp"
#include "wgmma_kernels.hpp"
#include "word_kernels.hpp"

namespace tegula {
namespace {

template <class K> WgmmaKernel wgmma_kernel() {
  return {{sim::type_name<K>(), K::in_words, K::out_words, &run_kernel<K>},
          K::op,
          K::steps,
          K::a_in_registers,
          K::TileA::layout,
          K::TileB::layout,
          K::m0,
          K::n0,
          K::stage,
          K::a_at,
          K::b_at,
          K::d_at,
          K::a_registers_at,
          K::registers};
}

template <class... K> std::vector<WgmmaKernel> values_of(instruction_kernels::Kernels<K...>) {
  return {wgmma_kernel<K>()...};
}

}  // namespace

std::vector<WgmmaKernel> const& all_wgmma_kernels() {
  static std::vector<WgmmaKernel> const all = values_of(wgmma_kernels::AllKernels{});
  return all;
}

}  // namespace tegula
