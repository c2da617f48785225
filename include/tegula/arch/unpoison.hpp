#pragma once

#include "tegula/arch/shared.hpp"

namespace tegula {

/// Lets `bytes` bytes of this CTA's shared memory, from `address` on, be read although nobody
/// writes them: for what an instruction reads only because its shape is larger than the data, and
/// what nothing that the kernel stores depends on. MemorySanitizer's word for it is unpoison.
///
/// On a GPU it does nothing. On the simulated machine the bytes hold 0xff from then on, which is
/// NaN in each type of floats, so that a result that depends on them shows it; and the checker
/// takes them for written, by nobody: it looks for no race with that.
TEGULA_DEVICE void unpoison_shared(
    [[maybe_unused]] SharedAddr address, [[maybe_unused]] int bytes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if !TEGULA_GPU
  sim::unpoison_shared(address, bytes, where);
#endif
}

}  // namespace tegula
