#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"

namespace tegula::sim {

class Cta;

/// bar.warp.sync of the lanes of `mask`.
void synchronise_warp(Cta& cta, std::uint32_t mask, SourceLocation where);

}  // namespace tegula::sim
