#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A tensor map is made by the host, for the machine that uses it.
///
/// One that was declared and never encoded is 128 bytes of anything.
///
/// PTX ISA: "Tensor-map".
struct map_never_encoded : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorMap const declared{};
    TensorMap const& map = p.repaired ? p.in_map : declared;
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   06_tma/map_never_encoded.hpp:20: kernel map_never_encoded, CTA (0, 0, 0), warp 0, lane 0:
//     invalid_operand: cp.async.bulk.tensor is given a tensor map that was never encoded

}  // namespace tegula::broken
