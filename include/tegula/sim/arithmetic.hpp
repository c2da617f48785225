#pragma once

#include <cstdint>
#include <tegula/arch/mma_op.hpp>
#include <tegula/sim/generation.hpp>

/// The tensor core's arithmetic and the special-function unit's, as the simulated machine computes them.
/// docs/arithmetic.md says how each fact was established, what is exact and what is bounded.
namespace tegula::sim {

/// D = A B + C by a warp: 32 lanes' raw registers in, 32 lanes' raw registers out, laid out as the PTX ISA's
/// matrix fragments for mma.m16n8k*. Rows are lanes; registers that `op` does not have are neither read nor
/// written. d may be c.
void mma_sync_warp(MmaOp op, Generation generation, std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
                   std::uint32_t const (*c)[4], std::uint32_t (*d)[4]);

/// ex2.approx.ftz.f32: 2^x. Subnormal arguments and results are flushed to zero of the same sign.
float ex2_approx_ftz(float x);

/// lg2.approx.ftz.f32: log2(x).
float lg2_approx_ftz(float x);

/// rcp.approx.ftz.f32: 1 / x.
float rcp_approx_ftz(float x);

/// rsqrt.approx.ftz.f32: 1 / sqrt(x).
float rsqrt_approx_ftz(float x);

/// tanh.approx.f32.
float tanh_approx(float x);

}  // namespace tegula::sim
