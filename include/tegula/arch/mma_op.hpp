#pragma once

#include <cstdint>

namespace tegula {

/// The mma.sync.m16n8kK.row.col instructions of sm_80, spelled as in PTX: shape, then the types of D, A, B
/// and C. A comment gives the number of 32-bit registers a lane holds of A, B and C.
enum class MmaOp : std::uint8_t {
  m16n8k8_f32_f16_f16_f32,           // 2 1 4
  m16n8k16_f32_f16_f16_f32,          // 4 2 4
  m16n8k8_f32_bf16_bf16_f32,         // 2 1 4
  m16n8k16_f32_bf16_bf16_f32,        // 4 2 4
  m16n8k4_f32_tf32_tf32_f32,         // 2 1 4
  m16n8k8_f32_tf32_tf32_f32,         // 4 2 4
  m16n8k8_f16_f16_f16_f16,           // 2 1 2
  m16n8k16_f16_f16_f16_f16,          // 4 2 2
  m16n8k16_s32_s8_s8_s32,            // 2 1 4
  m16n8k16_s32_s8_u8_s32,            //
  m16n8k16_s32_u8_s8_s32,            //
  m16n8k16_s32_u8_u8_s32,            //
  m16n8k32_s32_s8_s8_s32,            // 4 2 4
  m16n8k32_s32_s8_u8_s32,            //
  m16n8k32_s32_u8_s8_s32,            //
  m16n8k32_s32_u8_u8_s32,            //
  m16n8k16_s32_s8_s8_s32_satfinite,  // 2 1 4
  m16n8k16_s32_s8_u8_s32_satfinite,  //
  m16n8k16_s32_u8_s8_s32_satfinite,  //
  m16n8k16_s32_u8_u8_s32_satfinite,  //
  m16n8k32_s32_s8_s8_s32_satfinite,  // 4 2 4
  m16n8k32_s32_s8_u8_s32_satfinite,  //
  m16n8k32_s32_u8_s8_s32_satfinite,  //
  m16n8k32_s32_u8_u8_s32_satfinite,  //
};

inline constexpr int kMmaOps = 24;

/// What D and C are made of: four floats, two registers of two halves, or four integers a lane.
enum class MmaAccumulator : std::uint8_t { f32, f16, s32 };

constexpr MmaAccumulator accumulator(MmaOp op) {
  if (op == MmaOp::m16n8k8_f16_f16_f16_f16 || op == MmaOp::m16n8k16_f16_f16_f16_f16)
    return MmaAccumulator::f16;
  return op < MmaOp::m16n8k8_f16_f16_f16_f16 ? MmaAccumulator::f32 : MmaAccumulator::s32;
}

/// K of the instruction; M is 16 and N is 8.
constexpr int mma_k(MmaOp op) {
  switch (op) {
    case MmaOp::m16n8k4_f32_tf32_tf32_f32:
      return 4;
    case MmaOp::m16n8k8_f32_f16_f16_f32:
    case MmaOp::m16n8k8_f32_bf16_bf16_f32:
    case MmaOp::m16n8k8_f32_tf32_tf32_f32:
    case MmaOp::m16n8k8_f16_f16_f16_f16:
      return 8;
    case MmaOp::m16n8k32_s32_s8_s8_s32:
    case MmaOp::m16n8k32_s32_s8_u8_s32:
    case MmaOp::m16n8k32_s32_u8_s8_s32:
    case MmaOp::m16n8k32_s32_u8_u8_s32:
    case MmaOp::m16n8k32_s32_s8_s8_s32_satfinite:
    case MmaOp::m16n8k32_s32_s8_u8_s32_satfinite:
    case MmaOp::m16n8k32_s32_u8_s8_s32_satfinite:
    case MmaOp::m16n8k32_s32_u8_u8_s32_satfinite:
      return 32;
    default:
      return 16;
  }
}

/// 32-bit registers of A in a lane: 16 * k elements over 32 lanes.
constexpr int a_registers(MmaOp op) {
  switch (op) {
    case MmaOp::m16n8k16_f32_f16_f16_f32:
    case MmaOp::m16n8k16_f32_bf16_bf16_f32:
    case MmaOp::m16n8k8_f32_tf32_tf32_f32:
    case MmaOp::m16n8k16_f16_f16_f16_f16:
      return 4;
    default:
      return mma_k(op) == 32 ? 4 : 2;
  }
}

/// 32-bit registers of B in a lane.
constexpr int b_registers(MmaOp op) { return a_registers(op) / 2; }

/// 32-bit registers of C, and of D, in a lane.
constexpr int c_registers(MmaOp op) { return accumulator(op) == MmaAccumulator::f16 ? 2 : 4; }

}  // namespace tegula
