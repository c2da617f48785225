#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// A matrix transposed between a warp's registers: PTX ISA, movmatrix (sm_75). All 32 lanes execute
/// it together.
namespace tegula {

/// Of an 8x8 matrix of 16-bit elements lane l gives elements 2 * (l % 4) and the next one of row
/// l / 4, the first in the low half; it receives elements l / 4 of rows 2 * (l % 4) and the
/// next one.
TEGULA_DEVICE std::uint32_t movmatrix_trans(
    std::uint32_t source, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(source));
  return transposed;
#else
  return sim::movmatrix(source, where);
#endif
}

}  // namespace tegula
