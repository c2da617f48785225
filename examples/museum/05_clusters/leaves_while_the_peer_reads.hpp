#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A CTA stays until its peers have done with its shared memory.
///
/// In Triton 3.8 CTA 0 executes a scalar atomic and leaves the result in its shared memory, where
/// the other CTAs of the cluster read it. Nothing kept CTA 0 from returning. On some GPUs the
/// launch fails: "unspecified launch failure", and with it every launch after it. Now a barrier of
/// the cluster stands before every return.
///
/// Mend: a barrier of the cluster at the exit.
/// Seen in: Triton, https://github.com/triton-lang/triton/issues/11730
/// Seen in: TLX, https://github.com/facebookexperimental/triton/pull/1105
/// compute-sanitizer: memcheck
/// ConSan: no
/// CUTLASS: not documented
struct leaves_while_the_peer_reads : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    // the atomic's result
    if (cluster_cta_rank() == 0 && lane_id() == 0) st_shared(at(smem, 0, 0), 7.0f);
    cluster::sync();
    float const result = ld_shared_cluster<float>(mapa(at(smem, 0, 0), 0));
    st_global(p.out + 32 * cluster_cta_rank() + lane_id(), result);
    if (p.repaired) cluster::sync();
  }
};

// Report:
//   05_clusters/leaves_while_the_peer_reads.hpp:27: kernel leaves_while_the_peer_reads, CTA (1, 0,
//     0), warp 0, lane 31: exited_cta: the CTA of rank 0 exits, and nothing orders that after the
//     ld.shared::cluster from row 0, column 0 of stage 0 of tile by CTA 1 of the cluster: a wait of
//     that CTA for the cluster's barrier before it exits would order them

}  // namespace tegula::museum
