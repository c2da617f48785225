#pragma once

#include <cstdint>

#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The places of a gemm_sm90 cluster's CTAs: which tile of the cluster's each computes, which share
/// of its K, and with whom it fetches operands (rank = m + cluster_m n + peers share).
template <GemmSm90Config C> struct GemmCluster {
  static constexpr bool split = C.split_k > 1;
  static constexpr int peers = C.cluster_m * C.cluster_n;  // CTAs that multicast to each other
  using CopyA = TmaCopy<a_fetch(C)>;
  using CopyB = TmaCopy<b_fetch(C)>;

  /// The share of K that this CTA adds up, and the rank of the first CTA that has it, too.
  TEGULA_DEVICE static int share() { return split ? cluster_cta_rank() / peers : 0; }
  TEGULA_DEVICE static int first_peer() { return share() * peers; }

  /// How A is fetched: the CTAs of one share whose tile has the same m share it, ...
  TEGULA_DEVICE static CopyA copy_a() {
    if constexpr (peers == 1) return {};
    auto const [m, n] = place();
    if constexpr (C.cluster_m == 1 && !split) return {n};
    constexpr int of_first_row = [] {
      int ctas = 0;
      for (int i = 0; i < C.cluster_n; ++i) ctas |= 1 << (C.cluster_m * i);
      return ctas;
    }();
    return {n, static_cast<std::uint16_t>(of_first_row << (first_peer() + m))};
  }
  /// ... and those of the same n share B.
  TEGULA_DEVICE static CopyB copy_b() {
    if constexpr (peers == 1) return {};
    auto const [m, n] = place();
    if constexpr (C.cluster_n == 1 && !split) return {m};
    constexpr int of_first_column = (1 << C.cluster_m) - 1;
    return {m, static_cast<std::uint16_t>(of_first_column << (first_peer() + C.cluster_m * n))};
  }

 private:
  struct Place {
    int m, n;
  };
  TEGULA_DEVICE static Place place() {
    int const rank = split ? cluster_cta_rank() % peers : cluster_cta_rank();
    return {rank % C.cluster_m, rank / C.cluster_m};
  }
};

}  // namespace tegula
