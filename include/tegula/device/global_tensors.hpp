#pragma once

#include <vector>

#include "tegula/device/family.hpp"
#include "tegula/sim/global_tensor.hpp"

namespace tegula {

namespace device {
/// `config` is one of the family's Config, `params` one of its Params.
std::vector<sim::GlobalTensor> describe(FamilyId family, void const* config, void const* params);
}  // namespace device

/// The tensors of a launch of a configuration, for the checker of the simulated machine: with
/// their names of rows and columns, and which of them every launch with such parameters reads, or
/// writes, in full. They are A, B, C where beta is not 0, D and the bias of a GEMM, but for those
/// whose tensor maps the simulated machine did not encode; Q, K, V, O, and lse where it is not
/// null, of attention.
template <FamilyConfig C>
std::vector<sim::GlobalTensor> global_tensors(C const& config,
                                              typename FamilyOf<C>::Params const& params) {
  return device::describe(FamilyOf<C>{}, &config, &params);
}

}  // namespace tegula
