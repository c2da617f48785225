#pragma once

#include <string>

#include "tegula/device/gemm_plan.hpp"

namespace tegula::tool {

/// A drawing has at most so many tiles.
inline constexpr int kMostDrawnTiles = 4000;

/// D as a choice of gemm_sm90 cuts it into tiles, as an SVG document: each tile coloured by the
/// wave in which its worker (a cluster of the persistent grid) computes it, the narrower ones
/// hatched, those of worker 0 outlined; beside that, where workers compute more than one tile each,
/// the tiles of every worker one after another. Precondition: the choice is one for the arguments.
/// Throws argument_error for gemm_sm80, whose CTAs compute one tile each, and for more than
/// kMostDrawnTiles tiles.
std::string draw_tiling(GemmArguments const& arguments, GemmChoice const& choice);

}  // namespace tegula::tool
