// The kernels that everybody learns from, on a GPU: each is held to float64 at sizes that its tiles
// do not divide, then timed. Prints JSON lines {"benchmark", "case", "value", "unit"}; exits with 1
// at an error.

#include "copy_lower.hpp"
#include "flash_attention.hpp"
#include "gemm_mma.hpp"
#include "gemm_tma.hpp"
#include "gemm_warp_specialized.hpp"
#include "sgemm_threads.hpp"
#include "sgemm_tiled.hpp"
#include "support/attention_problem.hpp"
#include "support/copy_problem.hpp"
#include "support/cuda.hpp"
#include "support/gemm_problem.hpp"
#include "transpose.hpp"
#include "wgmma_tile.hpp"

using namespace tegula::examples;

namespace {

/// Holds a kernel to float64 at each shape, then at the last, of which 64 x 64 results are looked
/// at, times it: TFLOP/s of a kernel that computes, GB/s of one that copies.
template <template <class, class> class Problem, class Kernel, class Shape>
void measure(char const* name, std::vector<Shape> const& shapes) {
  double worst = 0;
  for (Shape const& shape : shapes) {
    CudaGpu gpu;
    Problem<Kernel, CudaGpu> problem(gpu, shape, 1);
    problem.launch();
    check(cudaDeviceSynchronize(), name);
    worst = std::max(worst, problem.check(&shape == &shapes.back() ? 64 : 1 << 20));
    if (&shape != &shapes.back()) continue;
    double const seconds = median_seconds([&] { problem.launch(); });
    bool const computes = problem.operations() > 0;
    std::printf(
        "{\"benchmark\": \"example_kernels\", \"case\": \"%s, %s\", \"value\": %.4g, \"unit\": \"%s\", "
        "\"largest_error_of_bound\": %.3f}\n",
        name, to_string(shape).c_str(),
        computes ? problem.operations() / seconds * 1e-12 : problem.bytes() / seconds * 1e-9,
        computes ? "TFLOP/s" : "GB/s", worst);
  }
}

}  // namespace

int main() try {
  std::vector<MatrixShape> const matrices = {{67, 132}, {200, 36}, {8192, 8192}};
  std::vector<GemmShape> const f32 = {{132, 68, 13, 0.5f, -2}, {128, 256, 40}, {4096, 4096, 4096}};
  std::vector<GemmShape> const bf16 = {{133, 72, 72}, {300, 520, 328}, {4096, 4096, 4096}};
  measure<CopyProblem, CopyLower>("copy_lower", matrices);
  measure<CopyProblem, TransposeSwizzled>("transpose", matrices);
  measure<GemmProblem, SgemmThreads>("sgemm_threads", f32);
  measure<GemmProblem, SgemmTiled>("sgemm_tiled", f32);
  measure<GemmProblem, GemmMma>("gemm_mma", bf16);
  measure<GemmProblem, GemmTma>("gemm_tma", bf16);
  measure<GemmProblem, GemmWarpSpecialized>("gemm_warp_specialized", bf16);
  measure<GemmProblem, WgmmaTile, GemmShape>("wgmma_tile", {{64, 128, 64}});
  measure<AttentionProblem, FlashAttention, AttentionShape>(
      "flash_attention", {{2, 70, true}, {3, 135, false}, {64, 4096, false}});
  return 0;
} catch (std::exception const& error) {
  std::fprintf(stderr, "on_gpu: %s\n", error.what());
  return 1;
}
