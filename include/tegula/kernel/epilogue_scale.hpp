#pragma once

#include "tegula/arch/global.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"

namespace tegula {

/// What each element of A B is multiplied with: alpha, and the scales of A and B that there are.
TEGULA_DEVICE float epilogue_scale(EpilogueSm90Params const& p) {
  float scale = p.alpha;
  if (p.scale_a != nullptr) scale *= ld_global<float>(p.scale_a);
  if (p.scale_b != nullptr) scale *= ld_global<float>(p.scale_b);
  return scale;
}

}  // namespace tegula
