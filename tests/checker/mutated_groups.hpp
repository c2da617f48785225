#pragma once

#include <array>

#include "mutated_kernel.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"

/// What the cases of the grouped GEMMs have in common.
namespace tegula::mutants {

/// A configuration, and a problem of groups that go round the ring, an empty one, and one that ends
/// within a tile.
template <class C> struct GroupsCase {
  char const* name;
  C config;
  Grouping grouping = Grouping::none;
  int m = 1, n = 1, k = 1;       ///< of A: all rows, or those of each group where masked
  std::array<int, 3> ends = {};  ///< of the groups, where there are any
  bool adds = false;             ///< with a C
  bool in_place = false;         ///< which is D
  bool strict_scopes = false;

  constexpr int groups() const { return grouping == Grouping::none ? 1 : 3; }
  constexpr bool by_k() const { return grouping == Grouping::k; }
  // Matrices of which A, B and D consist.
  constexpr int of_a() const { return grouping == Grouping::masked ? groups() : 1; }
  constexpr int of_b() const { return by_k() ? 1 : groups(); }
  constexpr int of_d() const { return by_k() ? groups() : of_a(); }
  std::int64_t ldd() const { return whole_lines(n, config.out, 16); }
};

/// The list of tiles, of `tile_n` columns each.
template <class C> GroupTiles tiles_of(Bench& bench, GroupsCase<C> const& c, int tile_n) {
  void* const ends = bench.machine().allocate(sizeof c.ends, "ends");
  bench.machine().upload(ends, c.ends.data(), sizeof c.ends);
  return {.grouping = c.grouping,
          .groups = c.groups(),
          .ends = static_cast<int const*>(ends),
          .rows = c.m,
          .depth = c.k,
          .tiles_n = ceil_div(c.n, tile_n)};
}

/// D, with some number in it where it is C, too.
template <class C> GroupedGemmOutput output_of(Bench& bench, GroupsCase<C> const& c) {
  DType const out = c.config.out;
  std::int64_t const rows = std::int64_t{c.m} * c.of_d(), ldd = c.ldd();
  void* const d = bench.output("D", out, c.n, rows, ldd);
  if (c.in_place)
    bench.machine().fill(d, 0x3c,
                         static_cast<std::size_t>((ldd * (rows - 1) + c.n) * bits(out) / 8));
  return {.d = d,
          .c = c.in_place ? d
               : c.adds   ? bench.input("C", out, c.n, rows, ldd)
                          : nullptr,
          .ldd = ldd,
          .ldc = ldd,
          .d_group_stride = c.by_k() ? ldd * c.m : 0,
          .c_group_stride = c.by_k() ? ldd * c.m : 0,
          .n = c.n,
          .vectors = c.n * bits(out) % 128 == 0};
}

}  // namespace tegula::mutants
