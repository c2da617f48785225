#pragma once

#include <string>
#include <vector>

#include "expression.hpp"
#include "tegula/atom/tiled_copy.hpp"
#include "tegula/layout/draw.hpp"

namespace tegula::tool {

/// A layout or swizzled layout: its offsets, or with element_bits != 0 the shared-memory banks of
/// its elements. Throws std::invalid_argument for a value that is no layout.
Drawing picture(Value const& value, int element_bits = 0);

/// Who holds which element, coloured by thread: A, B and C, as far as they are in registers; source
/// and destination.
std::vector<Drawing> pictures(MmaAtom const& atom);
std::vector<Drawing> pictures(CopyAtom const& atom);
std::vector<Drawing> pictures(MmaTiling const& mma);
std::vector<Drawing> pictures(CopyTiling const& copy);

/// The drawings one under another, as tables of characters and as one SVG document.
std::string stacked_text(std::vector<Drawing> const& drawings);
std::string stacked_svg(std::vector<Drawing> const& drawings);

}  // namespace tegula::tool
