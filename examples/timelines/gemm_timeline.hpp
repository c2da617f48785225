#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/kernel/gemm_sm100.hpp"
#include "tegula/kernel/gemm_sm90.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {

/// A problem as a kernel's tiles see it: every cluster computes `tiles_m` x `tiles_n` clusters'
/// tiles, one after another along m.
struct TimelineProblem {
  int tiles_m = 1;
  int tiles_n = 1;
  int k = 256;
  int clusters = 1;
  bool barriers = false;  ///< whether the phases of mbarriers are shown
};

namespace detail {
/// The kernel of a configuration, and the machine that it is for.
template <auto C> struct TimelineKernel {
  using Kernel = GemmSm90<C>;
  static constexpr auto generation = sim::Generation::sm90;
};
template <GemmSm100Config C> struct TimelineKernel<C> {
  using Kernel = GemmSm100<C>;
  static constexpr auto generation = sim::Generation::sm100;
};
}  // namespace detail

/// The timeline of the first cluster of a GEMM of bf16, in one configuration of gemm_sm90 or
/// gemm_sm100. Throws sim::CheckError where the checker finds anything.
template <auto C>
sim::Trace gemm_timeline(TimelineProblem const& problem, std::string const& title) {
  static_assert(C.a == DType::bf16 && C.b == DType::bf16 && C.out == DType::bf16 &&
                C.a_major == Major::k && C.b_major == Major::k);
  using Chosen = detail::TimelineKernel<C>;
  using Kernel = typename Chosen::Kernel;
  sim::Machine machine({.generation = Chosen::generation,
                        .trace = sim::TraceOptions{.timing = sim::timing_of(Chosen::generation),
                                                   .barriers = problem.barriers}});
  std::int64_t const m = std::int64_t{1} * problem.tiles_m * C.block_m * cluster_of(C).m;
  std::int64_t const n = std::int64_t{1} * problem.tiles_n * C.block_n * cluster_of(C).n;
  std::int64_t const k = problem.k;

  std::uint8_t const any = 0x3f;  // 0x3f3f is 0.75 in bf16
  auto const matrix = [&](std::int64_t mn, std::int64_t k, TmaBoxes const& boxes,
                          char const* name) {
    std::size_t const bytes = static_cast<std::size_t>(2 * mn * k);
    void* const data = machine.allocate(bytes, name);
    machine.fill(data, any, bytes);
    return sim::encode(
        describe({.dtype = DType::bf16, .address = data, .mn = mn, .k = k, .ld = k}, boxes));
  };
  GemmSm90Params params{.problem = {.a = matrix(m, k, a_fetch(C), "A"),
                                    .b = matrix(n, k, b_fetch(C), "B"),
                                    .m = static_cast<int>(m),
                                    .n = static_cast<int>(n),
                                    .k = static_cast<int>(k)},
                        .schedule = {.clusters = problem.clusters,
                                     .tiling = TileScheduler{.tiles_m = problem.tiles_m,
                                                             .tiles_n = problem.tiles_n}}};
  params.epilogue.d.whole = matrix(m, n, store_boxes(epilogue(C)).whole, "D");
  params.epilogue.c = params.epilogue.d;

  sim::Report report = sim::launch<Kernel>(machine, Kernel::grid(params), params);
  report.trace->kernel = title;
  return *std::move(report.trace);
}

}  // namespace tegula
