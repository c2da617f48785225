#pragma once

#include <cstdint>
#include <tegula/atom/mma_spec.hpp>
#include <tegula/atom/scaled_mma_spec.hpp>
#include <tegula/sim/generation.hpp>

/// The tensor core's arithmetic and the special-function unit's, as the simulated machine computes
/// them. docs/arithmetic.md says how each fact was established, what is exact and what is bounded.
namespace tegula::sim {

/// D = A B + C by a warp, of every mma.sync but those of f64: 32 lanes' raw registers in, 32 lanes'
/// raw registers out, laid out as the PTX ISA's matrix fragments for mma. Rows are lanes; registers
/// that `op` does not have are neither read nor written; op must have passed check(). d may be c.
/// Of e4m3 and e5m2 the generation must be an sm_90 or an sm_100.
void mma_sync_warp(MmaSpec const& op, Generation generation, std::uint32_t const (*a)[4],
                   std::uint32_t const (*b)[2], std::uint32_t const (*c)[4], std::uint32_t (*d)[4]);
/// Likewise of f64: a chain of fma, k ascending, that begins with C. A NaN is the quiet NaN without
/// a payload.
void mma_sync_warp(MmaSpec const& op, double const (*a)[8], double const (*b)[4],
                   double const (*c)[4], double (*d)[4]);

/// Bytes of one row of A, or one column of B, in a wgmma.mma_async: K elements of any type.
inline constexpr int kWgmmaRowBytes = 32;

/// What one wgmma.mma_async of an sm_90 computes, or 64 rows of a tcgen05.mma of an sm_100,
/// D = A B + 2^-scale_input_d D, or A B without `scale_d`. Operands are elements as they lie in
/// memory, K contiguous: a has 64 rows, b has op.n; of 6 or 4 bits 16 elements lie in the first of
/// 16 bytes. d is [64][op.n], row-major, one word an element: binary32, s32, or binary16 in the low
/// half (the high half is ignored, and written as zero). op must have passed check(); where its
/// operands come from does not matter.
void wgmma_tile(MmaSpec const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                std::uint8_t const (*b)[kWgmmaRowBytes], bool scale_d, std::uint32_t* d,
                int scale_input_d = 0);

/// What a tcgen05.mma with block scales computes, D = sum of A scale_a B scale_b + D, or without +
/// D. Rows of A and B are 32 bytes along k, two e2m1 to a byte, the first in bits 0 to 3; scales of
/// a row are bytes, the first in bits 0 to 7 of its word. a and scale_a have op.m rows, b and
/// scale_b op.n; d is [op.m][op.n], row-major. op must have passed check(), but that its m and n
/// may be of a part of D.
void scaled_mma_tile(ScaledMmaSpec const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                     std::uint32_t const* scale_a, std::uint8_t const (*b)[kWgmmaRowBytes],
                     std::uint32_t const* scale_b, bool accumulate, std::uint32_t* d);

// The special-function unit, with an H100's bits for every argument. NaN results are 0x7fffffff.

/// How many of its functions the calling thread of the host has computed.
std::int64_t special_functions_computed();

/// ex2.approx.ftz.f32: 2^x, at most 1.4 ulp from exact for x >= 0 and 2.1 ulp for x < 0. Subnormal
/// arguments count as zero, subnormal results become +0.
float ex2_approx_ftz(float x);

/// lg2.approx.ftz.f32: log2(x), at most 2.2e-7 from exact for x in [1/2, 2] and 2.3 ulp elsewhere.
/// Subnormal arguments count as zero.
float lg2_approx_ftz(float x);

/// rcp.approx.ftz.f32: 1 / x, at most 1 ulp from exact. Subnormal arguments count as zero,
/// subnormal results become zero.
float rcp_approx_ftz(float x);

/// rsqrt.approx.ftz.f32: 1 / sqrt(x), at most 1.6 ulp from exact. Subnormal arguments count
/// as zero.
float rsqrt_approx_ftz(float x);

/// tanh.approx.f32, at most 1.1e-5 from exact, relatively; tanh(x) = x below 2^-8.
float tanh_approx(float x);

}  // namespace tegula::sim
