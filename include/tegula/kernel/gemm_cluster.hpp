#pragma once

#include <cstdint>

#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/gemm_cluster_spec.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The places of a cluster's CTAs: which share of K each has, with whom it fetches operands, and
/// who loads into its stages. `FetchA`, `FetchB`: the boxes of a CTA's stage of A, and of B.
///
/// A group of CTAs multiplies together, and its first CTA starts the products of all: a pair, or,
/// on Hopper, each CTA by itself. Each CTA of a pair has its rows of A, and its half of B.
template <GemmClusterSpec S, TmaBoxes FetchA, TmaBoxes FetchB> struct GemmCluster {
  static constexpr bool split = S.shares > 1;
  static constexpr int peers = S.peers();  // CTAs that multicast to each other
  static constexpr int groups_m = S.groups_m();
  static constexpr bool one_group = peers == S.group;  // which loads all that it reads
  using CopyA = TmaCopy<FetchA, S.group>;
  using CopyB = TmaCopy<FetchB, S.group>;
  static_assert(S.m % S.group == 0 && (!split || S.group == 1));
  static_assert(FetchA.peers == S.n && FetchB.peers == groups_m);
  static_assert(S.size() <= 8, "portable clusters have at most 8 CTAs");

  /// The share of K that this CTA adds up, and the rank of the first CTA that has it, too.
  TEGULA_DEVICE static int share() { return split ? cluster_cta_rank() / peers : 0; }
  TEGULA_DEVICE static int first_peer() { return share() * peers; }

  /// Which CTA of its group this is, and the rank of the group's first.
  TEGULA_DEVICE static int in_group() {
    if constexpr (S.group == 1) return 0;
    return one_group ? cluster_cta_rank() : cluster_cta_rank() % S.group;
  }
  TEGULA_DEVICE static int first_of_group() {
    return one_group ? 0 : cluster_cta_rank() / S.group * S.group;
  }

  /// How A is fetched: the CTAs of one share whose tile has the same m share it, ...
  TEGULA_DEVICE static CopyA copy_a() {
    if constexpr (S.n == 1) return {};
    auto const [m, n] = place();
    if constexpr (S.m == 1 && !split) return {n};
    return {n, static_cast<std::uint16_t>(kRow << (first_peer() + m))};
  }
  /// ... and those of the same n share B: of pairs, those that have the same half of it.
  TEGULA_DEVICE static CopyB copy_b() {
    if constexpr (groups_m == 1) return {};
    auto const [m, n] = place();
    if constexpr (S.n == 1 && S.group == 1 && !split) return {m};
    constexpr int one_of_each_group = kColumn / kGroup;
    return {m / S.group, static_cast<std::uint16_t>(one_of_each_group
                                                    << (first_peer() + S.m * n + m % S.group))};
  }
  /// The CTAs that load into the stages of this CTA's group: all of them wait until the group's
  /// products have read a stage.
  TEGULA_DEVICE static std::uint16_t loaders() {
    static_assert(!split);
    if constexpr (S.n == 1 || groups_m == 1) return (1 << peers) - 1;
    auto const [m, n] = place();
    return static_cast<std::uint16_t>(kGroup * kRow << m / S.group * S.group | kColumn << S.m * n);
  }

 private:
  /// Bits of CTAs: of the first group, of those of n 0, and of those of m 0.
  static constexpr int kGroup = (1 << S.group) - 1, kColumn = (1 << S.m) - 1;
  static constexpr int kRow = [] {
    int ctas = 0;
    for (int i = 0; i < S.n; ++i) ctas |= 1 << (S.m * i);
    return ctas;
  }();

  struct Place {
    int m, n;
  };
  TEGULA_DEVICE static Place place() {
    int const rank = split ? cluster_cta_rank() % peers : cluster_cta_rank();
    return {rank % S.m, rank / S.m};
  }
};

}  // namespace tegula
