// What launches of grouped GEMMs have alike.

#include "grouped_gemm_tensors.hpp"

#include "problem.hpp"

namespace tegula::device {
namespace {

/// Whether D and C are stored and loaded by whole vectors.
bool by_vectors(GroupedGemmArguments const& g) {
  int const bytes = bytes_of(*g.out);
  auto const whole = [&](void const* address, std::int64_t ld, std::int64_t group_stride) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0 && ld * bytes % 16 == 0 &&
           group_stride * bytes % 16 == 0;
  };
  return g.n * bytes % 16 == 0 && whole(g.d, *g.ldd, *g.d_group_stride) &&
         (g.c == nullptr || whole(g.c, *g.ldc, *g.c_group_stride));
}

}  // namespace

GroupTiles group_tiles(GroupedGemmArguments const& g, int cluster_n, int band) {
  return {.grouping = g.grouping,
          .groups = static_cast<int>(g.groups),
          .begins = g.group_begins,
          .ends = g.group_ends,
          .rows = static_cast<int>(g.m),
          .depth = static_cast<int>(g.k),
          .tiles_n = static_cast<int>(ceil_div(g.n, cluster_n)),
          .band = band};
}

GroupedGemmOutput grouped_output(GroupedGemmArguments const& g) {
  bool const by_k = g.grouping == Grouping::k;
  return {.d = g.d,
          .c = g.c,
          .ldd = *g.ldd,
          .ldc = *g.ldc,
          .d_group_stride = by_k ? *g.d_group_stride : 0,
          .c_group_stride = by_k ? *g.c_group_stride : 0,
          .n = static_cast<int>(g.n),
          .vectors = by_vectors(g)};
}

}  // namespace tegula::device
