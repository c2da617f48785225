#pragma once

namespace tegula {

/// The CTAs of a GEMM's cluster: m x n of them have tiles beside each other, and fetch what they
/// share once, by multicast (rank = place along m + m * place along n). `group` of them, side by
/// side along m, multiply together: one, or a pair. Where CTAs share the K of a tile there are
/// `shares` times as many (rank + m n * share).
struct GemmClusterSpec {
  int m = 1, n = 1;
  int group = 1;
  int shares = 1;

  constexpr int peers() const { return m * n; }  ///< CTAs that multicast to each other
  constexpr int size() const { return m * n * shares; }
  constexpr int groups_m() const { return m / group; }

  friend constexpr bool operator==(GemmClusterSpec const&, GemmClusterSpec const&) = default;
};

}  // namespace tegula
