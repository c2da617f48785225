#pragma once

#include <optional>
#include <string>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/arch/tensor_map_description.hpp"

/// Tensor maps of the simulated machine: the description itself, behind a mark by which a map that
/// was made for another machine, or never made, is recognised.
namespace tegula::sim {

/// What a description breaks of the rules of cuTensorMapEncodeTiled (CUDA driver API, "Tensor
/// Map Object Management"), whose driver answers a breach of any with one and the same error: a
/// sentence that names the argument, its value and what is accepted. Nothing where it keeps
/// them all.
std::optional<std::string> refusal(TensorMapDescription const& description);

/// Throws std::invalid_argument, with that sentence, where the description breaks a rule.
TensorMap encode(TensorMapDescription const& description);

/// What the map describes; nothing where it is not one of encode's.
std::optional<TensorMapDescription> decode(TensorMap const& map);

}  // namespace tegula::sim
