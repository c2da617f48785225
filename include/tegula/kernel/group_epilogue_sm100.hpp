#pragma once

#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/epilogue_rows.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"

namespace tegula {

/// The end of a tile of a group: from registers straight to the rows that are the group's, for TMA
/// would store whole tiles, and with them rows of the next group. Mma has a warp's accumulators.
template <class Out, class Mma> class GroupEpilogueSm100 {
 public:
  struct Tile {};      // nothing lies in shared memory,
  struct Barriers {};  // and nothing comes from TMA
  TEGULA_DEVICE static void prefetch_maps(GroupedGemmOutput const&) {}
  TEGULA_DEVICE static void init(Barriers const&) {}
  TEGULA_DEVICE GroupEpilogueSm100(GroupedGemmOutput const& out, int, int, Tile const&,
                                   Barriers const&)
      : out_(out) {}
  /// D = values + C for the rows of the group's D from m to m_end.
  template <class M>
  TEGULA_DEVICE void store(Fragment<float, M>& values, int group, int m, int m_end, int n) const {
    RowEpilogue<Out, Mma>{out_, group, lane_id()}.store(values, m, m_end, n);
  }
  TEGULA_DEVICE void drain() const {}

 private:
  GroupedGemmOutput const& out_;
};
}  // namespace tegula
