#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tegula/arch/mma_op.hpp>
#include <tegula/arch/wgmma_op.hpp>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/generation.hpp>

/// mma.sync and wgmma the slow way, one element and one product at a time, straight from the description: the
/// fast arithmetic's oracle. Doubles carry every intermediate value exactly (the sums have fewer than 53
/// significant bits).
namespace tegula::oracle {

enum class Operand { f16, bf16, tf32, s8, u8, e4m3, e5m2 };

struct Form {
  Operand a, b;
  bool satfinite;
};

inline Form form(MmaOp op) {
  switch (op) {
    case MmaOp::m16n8k8_f32_f16_f16_f32:
    case MmaOp::m16n8k16_f32_f16_f16_f32:
    case MmaOp::m16n8k8_f16_f16_f16_f16:
    case MmaOp::m16n8k16_f16_f16_f16_f16:
      return {Operand::f16, Operand::f16, false};
    case MmaOp::m16n8k8_f32_bf16_bf16_f32:
    case MmaOp::m16n8k16_f32_bf16_bf16_f32:
      return {Operand::bf16, Operand::bf16, false};
    case MmaOp::m16n8k4_f32_tf32_tf32_f32:
    case MmaOp::m16n8k8_f32_tf32_tf32_f32:
      return {Operand::tf32, Operand::tf32, false};
    case MmaOp::m16n8k16_s32_s8_s8_s32:
    case MmaOp::m16n8k32_s32_s8_s8_s32:
      return {Operand::s8, Operand::s8, false};
    case MmaOp::m16n8k16_s32_s8_u8_s32:
    case MmaOp::m16n8k32_s32_s8_u8_s32:
      return {Operand::s8, Operand::u8, false};
    case MmaOp::m16n8k16_s32_u8_s8_s32:
    case MmaOp::m16n8k32_s32_u8_s8_s32:
      return {Operand::u8, Operand::s8, false};
    case MmaOp::m16n8k16_s32_u8_u8_s32:
    case MmaOp::m16n8k32_s32_u8_u8_s32:
      return {Operand::u8, Operand::u8, false};
    case MmaOp::m16n8k16_s32_s8_s8_s32_satfinite:
    case MmaOp::m16n8k32_s32_s8_s8_s32_satfinite:
      return {Operand::s8, Operand::s8, true};
    case MmaOp::m16n8k16_s32_s8_u8_s32_satfinite:
    case MmaOp::m16n8k32_s32_s8_u8_s32_satfinite:
      return {Operand::s8, Operand::u8, true};
    case MmaOp::m16n8k16_s32_u8_s8_s32_satfinite:
    case MmaOp::m16n8k32_s32_u8_s8_s32_satfinite:
      return {Operand::u8, Operand::s8, true};
    default:
      return {Operand::u8, Operand::u8, true};
  }
}

inline int bits_of(Operand operand) {
  return operand == Operand::tf32 ? 32 : operand <= Operand::bf16 ? 16 : 8;
}

/// Element (row, k) of A, (k, column) of B: PTX ISA, matrix fragments for mma.m16n8k*. A lane's registers
/// hold runs of 4 bytes of K; the four lanes of a group cover 16 bytes, and the next register of the same row
/// the next 16.
inline std::uint32_t a_code(std::uint32_t const (*a)[4], Operand operand, int row, int k) {
  int const bits = bits_of(operand);
  int const byte = k * bits / 8;
  int const lane = row % 8 * 4 + byte % 16 / 4;
  int const r = row / 8 + 2 * (byte / 16);
  return (a[lane][r] >> (byte % 4 * 8)) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

inline std::uint32_t b_code(std::uint32_t const (*b)[2], Operand operand, int k, int column) {
  int const bits = bits_of(operand);
  int const byte = k * bits / 8;
  int const lane = column * 4 + byte % 16 / 4;
  return (b[lane][byte / 16] >> (byte % 4 * 8)) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

inline double value_of(Operand operand, std::uint32_t code) {
  switch (operand) {
    case Operand::f16:
      return to_float(half{static_cast<std::uint16_t>(code)});
    case Operand::bf16:
      return to_float(bfloat16{static_cast<std::uint16_t>(code)});
    case Operand::tf32:
      return to_float(tfloat32{code});
    case Operand::s8:
      return static_cast<std::int8_t>(code);
    case Operand::u8:
      return static_cast<std::uint8_t>(code);
    case Operand::e4m3:
      return to_float(float_e4m3{static_cast<std::uint8_t>(code)});
    case Operand::e5m2:
      return to_float(float_e5m2{static_cast<std::uint8_t>(code)});
  }
  return 0;
}

/// The least exponent of a normal number.
inline int least_exponent(Operand operand) {
  return operand == Operand::e4m3 ? -6 : operand == Operand::f16 || operand == Operand::e5m2 ? -14 : -126;
}

/// The exponent under which a finite, nonzero value is held: its own, but never below the format's least.
inline int held_exponent(double value, int least) { return std::max(std::ilogb(value), least); }

/// One fused dot-add: returns the sum after truncation of each term to `fraction_bits` below the largest
/// exponent.
inline double dot_add(Operand of_a, Operand of_b, double const* a, double const* b, int k, double c,
                      int least_c, int fraction_bits) {
  int largest = -133;
  double sum = 0;
  bool infinite = false;
  for (int i = 0; i < k; ++i) {
    double const product = a[i] * b[i];
    sum += product;
    infinite = infinite || !std::isfinite(product);
    if (std::isfinite(product) && product != 0) {
      largest = std::max(
          largest, held_exponent(a[i], least_exponent(of_a)) + held_exponent(b[i], least_exponent(of_b)));
    }
  }
  if (infinite || !std::isfinite(c)) return sum + c;  // an infinity, or NaN
  if (c != 0) largest = std::max(largest, held_exponent(c, least_c));
  auto const kept = [&](double x) { return std::trunc(std::ldexp(x, fraction_bits - largest)); };
  double whole = kept(c);
  for (int i = 0; i < k; ++i) whole += kept(a[i] * b[i]);
  return std::ldexp(whole, largest - fraction_bits);
}

/// x rounded toward zero to binary32, of whose fraction the first bits are kept.
inline std::uint32_t binary32_toward_zero(double x, int fraction_bits = 23) {
  if (std::isnan(x)) return 0x7fffffffu;
  if (std::fabs(x) < std::ldexp(1.0, -126 - fraction_bits)) return 0;  // never a negative zero
  if (std::isinf(x)) return x < 0 ? 0xff800000u : 0x7f800000u;
  double const place = std::ldexp(1.0, held_exponent(x, -126) - fraction_bits);
  double const rounded = std::trunc(x / place) * place;
  if (std::fabs(rounded) >= 0x1p128) return x < 0 ? 0xff800000u : 0x7f800000u;
  return __builtin_bit_cast(std::uint32_t, static_cast<float>(std::copysign(rounded, x)));
}

/// x rounded to nearest even to binary16.
inline std::uint32_t binary16_nearest(double x) {
  if (std::isnan(x)) return 0x7fffu;
  if (std::fabs(x) <= 0x1p-25) return 0;  // never a negative zero
  std::uint32_t const sign = x < 0 ? 0x8000u : 0;
  double const magnitude = std::fabs(x);
  if (magnitude >= 65520.0) return sign | 0x7c00u;
  int const exponent = held_exponent(magnitude, -14);
  double const units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  return sign + (static_cast<std::uint32_t>(exponent + 14) << 10) + static_cast<std::uint32_t>(units);
}

/// The 32-bit or 16-bit code of D(row, column).
inline std::uint32_t mma_element(MmaOp op, sim::Generation generation, std::uint32_t const (*a)[4],
                                 std::uint32_t const (*b)[2], std::uint32_t c, int row, int column) {
  Form const f = form(op);
  int const k = mma_k(op);
  double x[32], y[32];
  for (int i = 0; i < k; ++i) {
    x[i] = value_of(f.a, a_code(a, f.a, row, i));
    y[i] = value_of(f.b, b_code(b, f.b, i, column));
  }
  if (accumulator(op) == MmaAccumulator::s32) {
    double sum = static_cast<std::int32_t>(c);
    for (int i = 0; i < k; ++i) sum += x[i] * y[i];
    if (f.satfinite) sum = std::fmin(std::fmax(sum, -0x1p31), 0x1p31 - 1);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
  }
  bool const sm80 = generation == sim::Generation::sm80;
  int const whole = sm80 ? 128 / bits_of(f.a) : k;
  int const step = std::min(whole, k);
  for (int first = 0; first < k; first += step) {
    int const fraction_bits = sm80 ? 24 : 25;
    if (accumulator(op) == MmaAccumulator::f16) {
      double const addend = to_float(half{static_cast<std::uint16_t>(c)});
      c = binary16_nearest(dot_add(f.a, f.b, x + first, y + first, step, addend, -14, fraction_bits));
    } else {
      double const addend = __builtin_bit_cast(float, c);
      c = binary32_toward_zero(dot_add(f.a, f.b, x + first, y + first, step, addend, -126, fraction_bits));
    }
  }
  return c;
}

inline Form form(WgmmaConfig const& op) {
  constexpr Operand kOperands[kWgmmaTypes][2] = {
      {Operand::bf16, Operand::bf16}, {Operand::f16, Operand::f16},   {Operand::tf32, Operand::tf32},
      {Operand::e4m3, Operand::e4m3}, {Operand::e4m3, Operand::e5m2}, {Operand::e5m2, Operand::e4m3},
      {Operand::e5m2, Operand::e5m2}, {Operand::s8, Operand::s8},     {Operand::s8, Operand::u8},
      {Operand::u8, Operand::s8},     {Operand::u8, Operand::u8}};
  Operand const(&of)[2] = kOperands[static_cast<int>(op.type)];
  return {of[0], of[1], op.satfinite};
}

/// One element of D of wgmma: `a` and `b` are the bytes of its row and its column, c its accumulator.
inline std::uint32_t wgmma_element(WgmmaConfig const& op, std::uint8_t const* a, std::uint8_t const* b,
                                   bool scale_d, std::uint32_t c) {
  Form const f = form(op);
  int const bytes = element_bits(op.type) / 8;
  int const k = wgmma_k(op.type);
  double x[32], y[32];
  for (int i = 0; i < k; ++i) {
    std::uint32_t a_code = 0, b_code = 0;
    for (int byte = 0; byte < bytes; ++byte) {
      a_code |= static_cast<std::uint32_t>(a[i * bytes + byte]) << (8 * byte);
      b_code |= static_cast<std::uint32_t>(b[i * bytes + byte]) << (8 * byte);
    }
    x[i] = (op.negate_a ? -1 : 1) * value_of(f.a, a_code);
    y[i] = (op.negate_b ? -1 : 1) * value_of(f.b, b_code);
  }
  if (op.accumulator == WgmmaAccumulator::s32) {
    double sum = scale_d ? static_cast<std::int32_t>(c) : 0;
    for (int i = 0; i < k; ++i) sum += x[i] * y[i];
    if (f.satfinite) sum = std::fmin(std::fmax(sum, -0x1p31), 0x1p31 - 1);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
  }
  int const fraction_bits = bytes == 1 ? 13 : 25;
  if (op.accumulator == WgmmaAccumulator::f16) {
    double const addend = scale_d ? to_float(half{static_cast<std::uint16_t>(c)}) : 0;
    return binary16_nearest(dot_add(f.a, f.b, x, y, k, addend, -14, fraction_bits));
  }
  double const addend = scale_d ? __builtin_bit_cast(float, c) : 0;
  return binary32_toward_zero(dot_add(f.a, f.b, x, y, k, addend, -126, fraction_bits), bytes == 1 ? 13 : 23);
}

}  // namespace tegula::oracle
