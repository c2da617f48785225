#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/kernel/gemm_sm90.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {

/// A problem as a kernel's tiles see it: every cluster computes `tiles_m` x `tiles_n` clusters' tiles, one
/// after another along m.
struct TimelineProblem {
  int tiles_m = 1;
  int tiles_n = 1;
  int k = 256;
  int clusters = 1;
  bool barriers = false;  ///< whether the phases of mbarriers are shown
};

/// The timeline of the first cluster of a GEMM of bf16, in one configuration of gemm_sm90. Throws
/// sim::CheckError where the checker finds anything.
template <GemmSm90Config C>
sim::Trace gemm_timeline(TimelineProblem const& problem, std::string const& title) {
  static_assert(C.a == DType::bf16 && C.b == DType::bf16 && C.out == DType::bf16 && C.a_major == Major::k &&
                C.b_major == Major::k);
  using Kernel = GemmSm90<C>;
  sim::Machine machine({.trace = sim::TraceOptions{.barriers = problem.barriers}});
  std::int64_t const m = std::int64_t{1} * problem.tiles_m * C.block_m * C.cluster_m;
  std::int64_t const n = std::int64_t{1} * problem.tiles_n * C.block_n * C.cluster_n;
  std::int64_t const k = problem.k;

  std::uint8_t const any = 0x3f;  // 0x3f3f is 0.75 in bf16
  auto const matrix = [&](std::int64_t rows, std::int64_t row, int box_rows, int box_row, char const* name) {
    std::size_t const bytes = static_cast<std::size_t>(2 * rows * row);
    void* const data = machine.allocate(bytes, name);
    machine.fill(data, any, bytes);
    int swizzle = 0;  // of as many bytes as a row of the box has
    while (swizzle < 3 && (16 << swizzle) < 2 * box_row) ++swizzle;
    return sim::encode({.dtype = DType::bf16,
                        .rank = 3,
                        .address = data,
                        .extents = {row, rows, 1},
                        .strides = {2 * row, 2 * row * rows},
                        .box = {box_row, box_rows, 1},
                        .swizzle = static_cast<TmaSwizzle>(swizzle)});
  };
  GemmSm90Params params{};
  params.a = matrix(m, k, a_boxes(C).box_mn, block_k(C), "A");
  params.b = matrix(n, k, b_boxes(C).box_mn, block_k(C), "B");
  params.d = matrix(m, n, 16, store_n(C), "D");
  params.c = params.d;
  params.m = static_cast<int>(m), params.n = static_cast<int>(n), params.k = static_cast<int>(k);
  params.tiling = TileScheduler{.tiles_m = problem.tiles_m, .tiles_n = problem.tiles_n};
  params.clusters = problem.clusters;

  sim::Report report = sim::launch<Kernel>(machine, Kernel::grid(params), params);
  report.trace->kernel = title;
  return *std::move(report.trace);
}

}  // namespace tegula
