#pragma once

#include "tegula/arch/mutant.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Moving registers between the warpgroups of a CTA: PTX ISA, setmaxnreg (sm_90a). All warps of a warpgroup
/// execute the same one, all lanes of a warp together. The kernel's number of threads is known to the
/// compiler
/// (__launch_bounds__ or .maxnreg), or the instruction is ignored.
namespace tegula {

/// The numbers of registers a thread can ask for.
template <int N> inline constexpr bool kIsRegisterCount = N >= 24 && N <= 256 && N % 8 == 0;

namespace detail {
template <int N>
inline constexpr Mutation kRegisterMutations = Mutation::removed | Mutation::delayed |
                                               (N > 24 ? Mutation::less : Mutation::none) |
                                               (N < 256 ? Mutation::more : Mutation::none);
}  // namespace detail

/// Raises the warpgroup's number of registers per thread to N (a multiple of 8, from 24 to 256, not below the
/// present number); waits until the CTA has that many registers free.
template <int N> TEGULA_DEVICE void setmaxnreg_inc(SourceLocation where = SourceLocation::current()) {
  static_assert(kIsRegisterCount<N>, "setmaxnreg.inc takes a multiple of 8 from 24 to 256");
  Mutation const m = mutation(where, Operation::setmaxnreg_inc, detail::kRegisterMutations<N>);
  if (m == Mutation::removed) return;
#if TEGULA_GPU
  if (m == Mutation::less) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N == 24 ? 24 : N - 8));
  } else if (m == Mutation::more) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N == 256 ? 256 : N + 8));
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
  }
#else
  execute(m, [=] { sim::setmaxnreg_inc(counted(N, m, 8), where); });
#endif
}

/// Lowers the warpgroup's number of registers per thread to N (a multiple of 8, from 24 to 256, not above the
/// present number) and frees the rest.
template <int N> TEGULA_DEVICE void setmaxnreg_dec(SourceLocation where = SourceLocation::current()) {
  static_assert(kIsRegisterCount<N>, "setmaxnreg.dec takes a multiple of 8 from 24 to 256");
  Mutation const m = mutation(where, Operation::setmaxnreg_dec, detail::kRegisterMutations<N>);
  if (m == Mutation::removed) return;
#if TEGULA_GPU
  if (m == Mutation::less) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N == 24 ? 24 : N - 8));
  } else if (m == Mutation::more) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N == 256 ? 256 : N + 8));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
  }
#else
  execute(m, [=] { sim::setmaxnreg_dec(counted(N, m, 8), where); });
#endif
}

}  // namespace tegula
