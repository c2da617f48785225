#pragma once

#include <algorithm>

#include "grouped_gemm_problem.hpp"

/// The forms of a grouped GEMM that every configuration of every family is held to.
namespace tegula {

/// A cluster's tile along n, a CTA's or a pair's along m, and a step of K.
struct GroupedTile {
  int m, n, k, stages;
};

/// So many elements of K, or one less where two of e2m1 share a byte.
inline int even_k(GroupedProblem const& p, int k) { return k / packed(p.in) * packed(p.in); }

/// Two tiles and some of M and N, three steps and some of K.
inline void expect_right_over_edges(Machine const& machine, GroupedProblem p, GroupedTile tile) {
  p.m = tile.m + 9, p.n = tile.n + 11, p.k = even_k(p, 3 * tile.k + 9), p.padding = 2;
  expect_right(machine, p);
}

/// Whole vectors, C, and a ring that comes round.
inline void expect_right_onto_c(Machine const& machine, GroupedProblem p, GroupedTile tile) {
  p.m = 70, p.n = tile.n + 8, p.k = tile.k * (tile.stages + 1), p.c = true;
  expect_right(machine, p);
  p.in_place = true;
  expect_right(machine, p);
}

inline void expect_right_of_rows(Machine const& machine, GroupedProblem p, GroupedTile tile) {
  p.grouping = Grouping::contiguous, p.n = tile.n + 40, p.k = 2 * tile.k + 16;
  p.sizes = {3, 0, tile.m + 1, 0, 0, 64, 1};
  if (p.block_scale.block == 0) expect_right(machine, p);
  p.padded_to = 128;  // what others ask for, and block scales
  expect_right(machine, p);
  p.grouping = Grouping::masked, p.m = tile.m + 20, p.padded_to = 1;
  expect_right(machine, p);
}

inline void expect_right_of_k(Machine const& machine, GroupedProblem p, GroupedTile tile) {
  p.grouping = Grouping::k, p.m = tile.m + 5, p.n = tile.n + 24;
  int const two = packed(p.in);  // of e2m1 a pair is one group's
  p.sizes = {tile.k + 3, 0, 2 * tile.k, two, tile.k / 2 + 5};
  for (int& size : p.sizes) size = even_k(p, size);
  expect_right(machine, p);
  p.c = true, p.padding = 3, p.apart = 7;
  expect_right(machine, p);
}

/// Every group in one window of a warp, beyond one, and all rows in one of many.
inline void expect_right_of_many_groups(Machine const& machine, GroupedProblem p) {
  for (Grouping const grouping : {Grouping::contiguous, Grouping::masked}) {
    for (int const groups : {1, 31, 32, 33, 70}) {
      p.grouping = grouping, p.m = 5, p.n = 24, p.k = 32, p.constraints.clusters = 3;
      p.sizes.assign(static_cast<std::size_t>(groups), 0);
      for (int g = 0; g < groups; ++g) p.sizes[static_cast<std::size_t>(g)] = g * 7 % 5;
      expect_right(machine, p);
      for (int& size : p.sizes) size = 0;
      p.sizes[static_cast<std::size_t>(groups / 2)] = 5;
      expect_right(machine, p);
      p.sizes[static_cast<std::size_t>(groups / 2)] = 0;
      expect_right(machine, p);
    }
  }
}

/// Random splits: rows and K, every grouping, sizes from none to several tiles. `change` makes a
/// problem one that the machine computes; odd ones are of bf16.
template <class Change>
void expect_right_of_random_splits(Machine const& machine, int splits, Change&& change) {
  std::mt19937_64 random(16);
  auto const draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most + 1));
  };
  for (int i = 0; i < splits; ++i) {
    GroupedProblem p{.seed = static_cast<std::uint64_t>(i) + 1};
    bool const by_k = i % 3 == 2;
    p.grouping = by_k ? Grouping::k : i % 3 == 1 ? Grouping::masked : Grouping::contiguous;
    if (i % 2 == 1) p.in = DType::bf16;
    if (by_k) p.out = DType::f32;
    p.m = 1 + draw(by_k ? 70 : 90), p.n = 1 + draw(50), p.k = 1 + draw(150);
    p.sizes.resize(1 + static_cast<std::size_t>(draw(9)));
    for (int& size : p.sizes)
      size = draw(3) == 0 ? 0 : p.grouping == Grouping::masked ? draw(p.m) : draw(draw(1) ? 90 : 9);
    p.apart = p.grouping == Grouping::masked ? 0 : draw(1) * draw(9);
    p.c = draw(1) == 0;
    p.constraints.clusters = 1 + draw(3);
    change(p);
    expect_right(machine, p);
    if (testing::Test::HasFailure()) return;
  }
}

/// Entries in device memory that are no ranges: nothing outside of D is touched, and it ends.
inline void expect_within_tensors(Machine const& machine, GroupedProblem p) {
  for (Grouping const grouping : {Grouping::contiguous, Grouping::masked, Grouping::k}) {
    p.grouping = grouping, p.m = 16;
    if (grouping == Grouping::k) p.out = DType::f32;
    p.sizes = {30, 50};
    EXPECT_NO_THROW(run_by(machine, p, [&](GroupedGemmArguments g) {
      std::vector<int> const wild = {2000000000, -2000000000};
      Buffer<int> const ends(machine, wild, "ends");
      g.group_ends = ends.data();
      grouped_gemm(machine, g);
      machine.synchronize();
    }));
  }
}

}  // namespace tegula
