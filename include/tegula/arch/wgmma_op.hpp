#pragma once

#include <cstdint>

#include "tegula/layout/refuse.hpp"
#include "tegula/macros.hpp"

/// The warpgroup-wide matrix multiply-adds of sm_90a as values: PTX ISA, wgmma.mma_async.
namespace tegula {

/// The element types of A and B, spelled as in PTX.
enum class WgmmaType : std::uint8_t {
  bf16,
  f16,
  tf32,
  e4m3_e4m3,
  e4m3_e5m2,
  e5m2_e4m3,
  e5m2_e5m2,
  s8_s8,
  s8_u8,
  u8_s8,
  u8_u8,
};

inline constexpr int kWgmmaTypes = static_cast<int>(WgmmaType::u8_u8) + 1;

/// What D is made of: floats, integers, or registers of two halves.
enum class WgmmaAccumulator : std::uint8_t { f32, f16, s32 };

/// M of every instruction; a warp holds 16 rows of D.
inline constexpr int kWgmmaM = 64;
/// The threads that execute one together: four warps, the first of which has an index divisible by four.
inline constexpr int kWarpgroupSize = 128;

constexpr bool is_integer(WgmmaType type) { return type >= WgmmaType::s8_s8; }

/// Bits of an element of A and B in memory (tf32: 32, of which the hardware reads 19).
constexpr int element_bits(WgmmaType type) {
  switch (type) {
    case WgmmaType::bf16:
    case WgmmaType::f16:
      return 16;
    case WgmmaType::tf32:
      return 32;
    default:
      return 8;
  }
}

/// K of the instruction: 32 bytes of elements.
constexpr int wgmma_k(WgmmaType type) { return 256 / element_bits(type); }

/// One instruction: D(64, n) = A(64, wgmma_k(type)) * B(wgmma_k(type), n) [+ D]. A value, meant as a template
/// argument; `check` says what is accepted.
struct WgmmaConfig {
  WgmmaType type{};
  int n = 0;
  bool a_mn_major = false;  ///< A in shared memory is contiguous along m (16-bit types)
  bool b_mn_major = false;  ///< B is contiguous along n (16-bit types)
  bool negate_a = false;
  bool negate_b = false;
  WgmmaAccumulator accumulator = WgmmaAccumulator::f32;
  bool satfinite = false;  ///< clamp sums to the range of s32 (integers)

  friend constexpr bool operator==(WgmmaConfig const&, WgmmaConfig const&) = default;
};

/// 32-bit registers of D in a thread: 64 * n elements over 128 threads.
constexpr int d_registers(WgmmaConfig const& op) {
  return op.accumulator == WgmmaAccumulator::f16 ? op.n / 4 : op.n / 2;
}

/// Refuses an instruction that the hardware lacks.
constexpr bool check(WgmmaConfig const& op) {
  bool const integer = is_integer(op.type);
  if (op.n < 8 || op.n > 256 || op.n % 8 != 0)
    refuse("wgmma", "n must be a multiple of 8 from 8 to 256", op.n);
  if (integer && op.n % 16 != 0 && op.n != 8 && op.n != 24)
    refuse("wgmma", "n of integers must be 8, 24 or a multiple of 16", op.n);
  if (integer != (op.accumulator == WgmmaAccumulator::s32))
    refuse("wgmma", "integers, and only they, accumulate in s32");
  if (op.accumulator == WgmmaAccumulator::f16 && (op.type == WgmmaType::bf16 || op.type == WgmmaType::tf32))
    refuse("wgmma", "only f16 and 8-bit floating-point elements accumulate in f16");
  if ((op.a_mn_major || op.b_mn_major) && element_bits(op.type) != 16)
    refuse("wgmma", "only operands of 16-bit elements may be contiguous along m or n");
  if ((op.negate_a || op.negate_b) && integer) refuse("wgmma", "integers cannot be negated");
  if (op.satfinite && !integer) refuse("wgmma", "only integers have satfinite");
  return true;
}

}  // namespace tegula
