#pragma once

#include "machine/current_cta.hpp"

namespace tegula::sim {

/// As this_cta(), for an instruction proper, one that has an effect or waits: what a mutant has
/// kept for later is executed first. What each hook begins with.
Cta& current_cta();

}  // namespace tegula::sim
