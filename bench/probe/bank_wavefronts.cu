// Measures on a GPU what tegula::wavefronts() says of it: how many cycles of shared memory an
// access of a warp takes, for random address patterns of many kinds. 16 warps keep one SM's shared
// memory busy with one instruction; its throughput is one wavefront a cycle.
//
// Build in the repository root, as one line: nvcc -O2 -std=c++20 -gencode
// arch=compute_90a,code=sm_90a -Iinclude
//   -o bank_wavefronts bench/probe/bank_wavefronts.cu
// Run: ./bank_wavefronts
// Exits with 1 if a CUDA call failed, with 2 if an instruction takes other than its wavefronts. A
// vector load of which neighbouring lanes ask for the same address may take fewer: those are
// counted apart.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tegula/layout/bank_conflicts.hpp"

namespace {

constexpr int kWarps = 16;
constexpr int kRepeats = 64;
constexpr int kUnrolled = 8;
constexpr int kBytes = 16384;  // that patterns span
constexpr int kShared = kBytes + 128 * kUnrolled;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

enum class Access : int {
  load2,
  load4,
  load8,
  load16,
  store4,
  store8,
  store16,
  ldmatrix1,
  ldmatrix2,
  ldmatrix4,
  ldmatrix4_trans,
  stmatrix4
};

struct Kind {
  char const* name;
  int lanes;
  int bytes;
  bool vector_load;
};
constexpr Kind kinds[] = {
    {"ld.shared.u16", 32, 2, false},      {"ld.shared.u32", 32, 4, false},
    {"ld.shared.v2.u32", 32, 8, true},    {"ld.shared.v4.u32", 32, 16, true},
    {"st.shared.u32", 32, 4, false},      {"st.shared.v2.u32", 32, 8, false},
    {"st.shared.v4.u32", 32, 16, false},  {"ldmatrix.x1", 8, 16, false},
    {"ldmatrix.x2", 16, 16, false},       {"ldmatrix.x4", 32, 16, false},
    {"ldmatrix.x4.trans", 32, 16, false}, {"stmatrix.x4", 32, 16, false},
};

template <Access A> __device__ void access(std::uint32_t at, std::uint32_t& s) {
  std::uint32_t x = 0, y = 0, z = 0, w = 0;
  std::uint16_t h = 0;
  if constexpr (A == Access::load2)
    asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=h"(h) : "r"(at));
  if constexpr (A == Access::load4)
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
  if constexpr (A == Access::load8)
    asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at));
  if constexpr (A == Access::load16) {
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(at));
  }
  if constexpr (A == Access::store4)
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(s));
  if constexpr (A == Access::store8)
    asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %1};" ::"r"(at), "r"(s));
  if constexpr (A == Access::store16)
    asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(s));
  if constexpr (A == Access::ldmatrix1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(x)
                 : "r"(at)
                 : "memory");
  }
  if constexpr (A == Access::ldmatrix2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x), "=r"(y)
                 : "r"(at)
                 : "memory");
  }
  if constexpr (A == Access::ldmatrix4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(at)
                 : "memory");
  }
  if constexpr (A == Access::ldmatrix4_trans) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(at)
                 : "memory");
  }
  if constexpr (A == Access::stmatrix4) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};" ::"r"(at),
                 "r"(s)
                 : "memory");
  }
  s ^= x ^ y ^ z ^ w ^ h;
}

/// cycles[p]: per instruction and warp, of pattern p.
template <Access A>
__global__ void measure(std::uint32_t const* offsets, int patterns, float* cycles,
                        std::uint32_t* sink) {
  extern __shared__ std::uint32_t shared[];
  for (int i = threadIdx.x; i < kShared / 4; i += blockDim.x) shared[i] = 0;
  std::uint32_t const base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  // stays 0, which the compiler does not know: each repetition's addresses wait for the last
  // one's values
  std::uint32_t s = 0;
  for (int p = 0; p < patterns; ++p) {
    std::uint32_t const at = base + offsets[p * 32 + threadIdx.x % 32];
    __syncthreads();
    long long const start = clock64();
#pragma unroll 1
    for (int i = 0; i < kRepeats; ++i) {
      std::uint32_t t = 0;
#pragma unroll
      for (int j = 0; j < kUnrolled; ++j) access<A>((at ^ s) + 128 * j, t);  // in the same banks
      s ^= t;
    }
    __syncthreads();
    if (threadIdx.x == 0)
      cycles[p] = static_cast<float>(clock64() - start) / (kRepeats * kUnrolled * kWarps);
  }
  sink[threadIdx.x] = s;
}

template <Access A> int run(std::vector<std::uint32_t> patterns) {
  Kind const kind = kinds[static_cast<int>(A)];
  int const count = static_cast<int>(patterns.size() / 32);
  for (std::uint32_t& offset : patterns) offset -= offset % static_cast<std::uint32_t>(kind.bytes);
  std::uint32_t* offsets = nullptr;
  std::uint32_t* sink = nullptr;
  float* cycles = nullptr;
  check(cudaMalloc(&offsets, patterns.size() * 4));
  check(cudaMalloc(&sink, 32 * kWarps * 4));
  check(cudaMallocManaged(&cycles, static_cast<std::size_t>(count) * 4));
  check(cudaMemcpy(offsets, patterns.data(), patterns.size() * 4, cudaMemcpyHostToDevice));
  for (int warm = 0; warm < 2; ++warm)
    measure<A><<<1, 32 * kWarps, kShared>>>(offsets, count, cycles, sink);
  check(cudaDeviceSynchronize());

  int same = 0, fewer = 0, other = 0;
  for (int p = 0; p < count; ++p) {
    std::int64_t addresses[32];
    for (int lane = 0; lane < 32; ++lane)
      addresses[lane] = patterns[static_cast<std::size_t>(p * 32 + lane)];
    bool neighbours_share = false;
    for (int lane = 0; lane < 32; ++lane) {
      neighbours_share = neighbours_share || addresses[lane] == addresses[lane ^ 1] ||
                         addresses[lane] == addresses[lane ^ 2];
    }
    float const expected =
        static_cast<float>(tegula::wavefronts(addresses, kind.lanes, kind.bytes));
    bool const equal = cycles[p] > expected * 0.98f - 0.05f && cycles[p] < expected * 1.02f + 0.1f;
    if (equal) {
      ++same;
    } else if (kind.vector_load && neighbours_share && cycles[p] < expected) {
      ++fewer;
    } else if (other++ < 4) {
      std::printf("  pattern %d: %.2f cycles, %.0f wavefronts\n", p, cycles[p], expected);
    }
  }
  std::printf(
      "%-18s %4d patterns: %4d one cycle a wavefront, %3d fewer (neighbours share), %d other\n",
      kind.name, count, same, fewer, other);
  check(cudaFree(offsets));
  check(cudaFree(sink));
  check(cudaFree(cycles));
  return other;
}

/// Random addresses over spans from one row of banks to all of shared memory; conflict-free ones of
/// each width; strides.
std::vector<std::uint32_t> address_patterns() {
  std::vector<std::uint32_t> patterns;
  std::mt19937 random(1);
  for (int p = 0; p < 600; ++p) {
    std::uint32_t const spans[] = {128, 512, 2048, 8192, kBytes};
    std::uint32_t const span = spans[p % 5];
    std::uint32_t const row = 128 * (static_cast<std::uint32_t>(random()) % (span / 128));
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      std::uint32_t const far = 128 * (static_cast<std::uint32_t>(random()) % (span / 128));
      std::uint32_t const choices[] = {lane % 8 * 16 + far,
                                       lane % 16 * 8 + far,
                                       lane * 4 + far,
                                       static_cast<std::uint32_t>(random()) % span,
                                       static_cast<std::uint32_t>(random()) % (span / 16) * 16,
                                       row + lane % 8 * 128,
                                       lane * 16 * (1 + p / 8 % 9)};
      patterns.push_back(choices[p % 7] % kBytes);
    }
  }
  return patterns;
}

}  // namespace

int main() {
  std::vector<std::uint32_t> const p = address_patterns();
  int const other = run<Access::load2>(p) + run<Access::load4>(p) + run<Access::load8>(p) +
                    run<Access::load16>(p) + run<Access::store4>(p) + run<Access::store8>(p) +
                    run<Access::store16>(p) + run<Access::ldmatrix1>(p) +
                    run<Access::ldmatrix2>(p) + run<Access::ldmatrix4>(p) +
                    run<Access::ldmatrix4_trans>(p) + run<Access::stmatrix4>(p);
  return other == 0 ? 0 : 2;
}
