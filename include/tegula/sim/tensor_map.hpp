#pragma once

#include <optional>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/arch/tensor_map_description.hpp"

/// Tensor maps of the simulated machine: the description itself, behind a mark by which a map that was made
/// for another machine, or never made, is recognised.
namespace tegula::sim {

/// Precondition: the description keeps the rules that check() of device/tensor_map.hpp holds it to.
TensorMap encode(TensorMapDescription const& description);

/// What the map describes; nothing where it is not one of encode's.
std::optional<TensorMapDescription> decode(TensorMap const& map);

}  // namespace tegula::sim
