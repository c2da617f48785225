// How fast mma.sync can be on this GPU: products of registers, with nothing to load. The ceiling of
// the sm_80 kernels.
//
// Prints JSON lines {"benchmark", "case", "value", "unit"}. Operands are random, for power depends
// on them.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tegula/arch/mma_sync.hpp"

namespace {

using namespace tegula;

// independent accumulators of a warp, enough to hide the instruction's latency
constexpr int kTiles = 8;
constexpr int kLoops = 4096;
constexpr int kThreads = 256;

void check(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "mma_ceiling: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__device__ std::uint32_t random_pair(
    std::uint32_t seed) {  // two bf16 or f16 values of magnitude near 1, of either sign
  seed = (seed ^ 61) ^ (seed >> 16);
  seed *= 9;
  seed ^= seed >> 4;
  seed *= 0x27d4eb2d;
  seed ^= seed >> 15;
  return (seed & 0x807f807fu) | 0x3f003f00u;
}

/// Device code may call no function of the host, constexpr or not.
template <DType Type> struct Instruction {
  static constexpr MmaSpec spec = warp_mma(Type, DType::f32, 16);
};

template <DType Type> __global__ __launch_bounds__(kThreads, 2) void multiply(float* out) {
  std::uint32_t a[4], b[kTiles][2];
  float c[kTiles][4] = {};
  std::uint32_t const id = blockIdx.x * kThreads + threadIdx.x;
  for (int i = 0; i < 4; ++i) a[i] = random_pair(id * 31 + i);
  for (int t = 0; t < kTiles; ++t) {
    for (int i = 0; i < 2; ++i) b[t][i] = random_pair(id * 37 + 100 * t + i);
  }
#pragma unroll 1
  for (int loop = 0; loop < kLoops; ++loop) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) mma_sync<Instruction<Type>::spec>(c[t], a, b[t], c[t]);
  }
  float sum = 0;
  for (int t = 0; t < kTiles; ++t) {
    for (int i = 0; i < 4; ++i) sum += c[t][i];
  }
  out[id] = sum;
}

template <DType Type> void measure(char const* name) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int const ctas = 2 * properties.multiProcessorCount;
  float* out = nullptr;
  check(cudaMalloc(&out, sizeof(float) * ctas * kThreads), "cudaMalloc");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int turn = 0; turn < 23; ++turn) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    multiply<Type><<<ctas, kThreads>>>(out);
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (turn >= 3) times.push_back(milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  double const flops = 2.0 * 16 * 8 * 16 * kTiles * kLoops * (kThreads / 32) * ctas;
  std::printf(
      "{\"benchmark\": \"mma_ceiling\", \"case\": \"%s, registers only\", \"value\": %.1f, \"unit\": \"TFLOP/s\"}\n",
      name, flops / times[times.size() / 2] * 1e-9);
  check(cudaFree(out), "cudaFree");
}

}  // namespace

int main() {
  measure<DType::bf16>("mma.sync m16n8k16 bf16");
  measure<DType::f16>("mma.sync m16n8k16 f16");
}
