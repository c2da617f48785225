// The library's entry points for a process that holds device memory and a stream of its own (PyTorch's):
// plain C, for ctypes.

#include <cstdio>
#include <exception>

#include "tegula/device/launch.hpp"

namespace {

template <class Call> int guarded(Call call) {
  try {
    call();
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

tegula::Machine const& gpu() {
  static tegula::Machine const machine = tegula::Machine::cuda();
  return machine;
}

}  // namespace

extern "C" {

/// (batch, seq, heads, head_dim) contiguous bf16 tensors.
int tegula_bench_attention(void const* q, void const* k, void const* v, void* o, int batch, int heads,
                           int seq, int head_dim, int causal, void* stream) {
  return guarded([&] {
    tegula::attention(gpu(),
                      {.q = q,
                       .k = k,
                       .v = v,
                       .o = o,
                       .batch = batch,
                       .heads = heads,
                       .seq_q = seq,
                       .head_dim = head_dim,
                       .causal = causal != 0},
                      {stream});
  });
}

/// D (m, n) = A (m, k) B (n, k)^T, contiguous bf16 matrices.
int tegula_bench_gemm(void const* a, void const* b, void* d, int m, int n, int k, void* stream) {
  return guarded([&] { tegula::gemm(gpu(), {.m = m, .n = n, .k = k, .a = a, .b = b, .d = d}, {stream}); });
}
}
