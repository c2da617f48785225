#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Moving registers between the warpgroups of a CTA: PTX ISA, setmaxnreg (sm_90a). All warps of a
/// warpgroup execute the same one, all lanes of a warp together. The kernel's number of threads is
/// known to the compiler
/// (__launch_bounds__ or .maxnreg), or the instruction is ignored.
namespace tegula {

/// The numbers of registers a thread can ask for.
template <int N> inline constexpr bool kIsRegisterCount = N >= 24 && N <= 256 && N % 8 == 0;

/// Raises the warpgroup's number of registers per thread to N (a multiple of 8, from 24 to 256, not
/// below the present number); waits until the CTA has that many registers free.
template <int N>
TEGULA_DEVICE void setmaxnreg_inc(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(kIsRegisterCount<N>, "setmaxnreg.inc takes a multiple of 8 from 24 to 256");
#if TEGULA_GPU
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#else
  sim::setmaxnreg_inc(N, where);
#endif
}

/// Lowers the warpgroup's number of registers per thread to N (a multiple of 8, from 24 to 256, not
/// above the present number) and frees the rest.
template <int N>
TEGULA_DEVICE void setmaxnreg_dec(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(kIsRegisterCount<N>, "setmaxnreg.dec takes a multiple of 8 from 24 to 256");
#if TEGULA_GPU
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#else
  sim::setmaxnreg_dec(N, where);
#endif
}

}  // namespace tegula
