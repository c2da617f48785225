#pragma once

#include <cstdint>

#include "tegula/arch/dim3.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Who am I: PTX ISA, special registers. CTAs are one-dimensional in threads; grids have up to
/// three dimensions.
namespace tegula {

inline constexpr int kWarpSize = 32;

/// Index of this thread in its CTA.
TEGULA_DEVICE int thread_idx() {
#if TEGULA_GPU
  return static_cast<int>(threadIdx.x);
#else
  return sim::thread_index();
#endif
}

/// As thread_idx, but read from the register at this place in the program: what is computed from it
/// does not occupy registers before.
TEGULA_DEVICE int thread_idx_here() {
#if TEGULA_GPU
  int r;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(r));
  return r;
#else
  return sim::thread_index();
#endif
}

/// Coordinate of this CTA in the grid.
TEGULA_DEVICE Dim3 block_idx() {
#if TEGULA_GPU
  return {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z)};
#else
  return sim::block_index();
#endif
}

/// Extents of the grid, in CTAs.
TEGULA_DEVICE Dim3 grid_dim() {
#if TEGULA_GPU
  return {static_cast<int>(gridDim.x), static_cast<int>(gridDim.y), static_cast<int>(gridDim.z)};
#else
  return sim::grid_extents();
#endif
}

/// Index of this thread in its warp, 0 to 31.
TEGULA_DEVICE int lane_id() { return thread_idx() % kWarpSize; }

/// Index of this thread's warp in its CTA.
TEGULA_DEVICE int warp_id() { return thread_idx() / kWarpSize; }

/// The bit of this lane.
TEGULA_DEVICE std::uint32_t lanemask_eq() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(r));
  return r;
#else
  return 1u << lane_id();
#endif
}

/// The bits of the lanes before this one.
TEGULA_DEVICE std::uint32_t lanemask_lt() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r));
  return r;
#else
  return lanemask_eq() - 1;
#endif
}

/// The bits of the lanes up to this one.
TEGULA_DEVICE std::uint32_t lanemask_le() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(r));
  return r;
#else
  return lanemask_eq() | (lanemask_eq() - 1);
#endif
}

/// The bits of the lanes after this one.
TEGULA_DEVICE std::uint32_t lanemask_gt() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(r));
  return r;
#else
  return ~lanemask_le();
#endif
}

/// The bits of the lanes from this one on.
TEGULA_DEVICE std::uint32_t lanemask_ge() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(r));
  return r;
#else
  return ~lanemask_lt();
#endif
}

}  // namespace tegula
