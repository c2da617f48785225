#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <tegula/atom/mma_spec.hpp>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/generation.hpp>

/// mma.sync and wgmma the slow way, one element and one product at a time, straight from the
/// description: the fast arithmetic's oracle. Doubles carry every intermediate value exactly (the
/// sums have fewer than 53 significant bits).
namespace tegula::oracle {

/// Element (row, k) of A, (k, column) of B: PTX ISA, matrix fragments for mma. A lane's registers
/// hold runs of 32 bits of K; the four lanes of a group cover 16 bytes, and the next register of
/// the same row the next 16. With m 16 every other register is of a row 8 further down.
inline std::uint32_t a_code(MmaSpec const& op, std::uint32_t const (*a)[4], int row, int k) {
  int const bits = tegula::bits(op.a), bit = k * bits;
  int const lane = row % 8 * 4 + bit / 32 % 4;
  int const r = row / 8 + op.m / 8 * (bit / 128);
  return (a[lane][r] >> bit % 32) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

inline std::uint32_t b_code(MmaSpec const& op, std::uint32_t const (*b)[2], int k, int column) {
  int const bits = tegula::bits(op.b), bit = k * bits;
  int const lane = column * 4 + bit / 32 % 4;
  return (b[lane][bit / 128] >> bit % 32) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

/// What a code of few bits stands for: 1.f 2^(e - bias), or 0.f 2^(1 - bias).
inline double small_float(int exponent_bits, int fraction_bits, unsigned code) {
  int const fraction = static_cast<int>(code & ((1u << fraction_bits) - 1)),
            exponent = static_cast<int>(code >> fraction_bits & ((1u << exponent_bits) - 1)),
            bias = (1 << (exponent_bits - 1)) - 1;
  bool const negative = (code >> (exponent_bits + fraction_bits) & 1) != 0;
  double const one = exponent == 0 ? 0 : 1;
  double const size =
      std::ldexp(one + std::ldexp(fraction, -fraction_bits), std::max(exponent, 1) - bias);
  return negative ? -size : size;
}

/// The code of element k of a row of tcgen05.mma of less than 16 bits: 16 begin at each 16 bytes,
/// bit after bit.
inline std::uint32_t packed_code(DType type, std::uint8_t const* row, int k) {
  unsigned code = 0;
  for (int bit = 0; bit < bits(type); ++bit) {
    int const at = 128 * (k / 16) + bits(type) * (k % 16) + bit;
    code |= (row[at / 8] >> at % 8 & 1u) << bit;
  }
  return code;
}

inline double computed_value_of(DType operand, std::uint32_t code) {
  switch (operand) {
    case DType::f16:
      return to_float(half{static_cast<std::uint16_t>(code)});
    case DType::bf16:
      return to_float(bfloat16{static_cast<std::uint16_t>(code)});
    case DType::tf32:
      return to_float(tfloat32{code});
    case DType::s8:
      return static_cast<std::int8_t>(code);
    case DType::u8:
      return static_cast<std::uint8_t>(code);
    case DType::s4:
      return (code & 8u) != 0 ? static_cast<int>(code & 15u) - 16 : static_cast<int>(code & 15u);
    case DType::u4:
      return code & 15u;
    case DType::e4m3:
      return to_float(float_e4m3{static_cast<std::uint8_t>(code)});
    case DType::e5m2:
      return to_float(float_e5m2{static_cast<std::uint8_t>(code)});
    case DType::e2m3:
      return small_float(2, 3, code);
    case DType::e3m2:
      return small_float(3, 2, code);
    case DType::e2m1:
      return small_float(2, 1, code);
    default:
      return 0;
  }
}

/// The same; of types of at most 8 bits each value is computed once.
inline double value_of(DType operand, std::uint32_t code) {
  if (bits(operand) > 8) return computed_value_of(operand, code);
  static auto const tables = [] {
    std::array<std::array<double, 256>, kDTypes> all{};
    for (int type = 0; type < kDTypes; ++type) {
      for (std::uint32_t i = 0; i < 256; ++i)
        all[static_cast<std::size_t>(type)][i] = computed_value_of(static_cast<DType>(type), i);
    }
    return all;
  }();
  return tables[static_cast<std::size_t>(operand)][code & 0xff];
}

/// The least exponent of a normal number.
inline int least_exponent(DType operand) {
  switch (operand) {
    case DType::e4m3:
      return -6;
    case DType::f16:
    case DType::e5m2:
      return -14;
    case DType::e3m2:
      return -2;
    case DType::e2m3:
    case DType::e2m1:
      return 0;
    default:
      return -126;
  }
}

/// The exponent under which a finite, nonzero value is held: its own, but never below the
/// format's least.
inline int held_exponent(double value, int least) { return std::max(std::ilogb(value), least); }

/// One fused dot-add: returns the sum after truncation of each term to `fraction_bits` below the
/// largest exponent.
inline double dot_add(DType of_a, DType of_b, double const* a, double const* b, int k, double c,
                      int least_c, int fraction_bits) {
  int largest = -133;
  double sum = 0;
  bool infinite = false;
  for (int i = 0; i < k; ++i) {
    double const product = a[i] * b[i];
    sum += product;
    infinite = infinite || !std::isfinite(product);
    if (std::isfinite(product) && product != 0) {
      largest = std::max(largest, held_exponent(a[i], least_exponent(of_a)) +
                                      held_exponent(b[i], least_exponent(of_b)));
    }
  }
  if (infinite || !std::isfinite(c)) return sum + c;  // an infinity, or NaN
  if (c != 0) largest = std::max(largest, held_exponent(c, least_c));
  double const scale = std::ldexp(1.0, fraction_bits - largest);  // a power of two: exact
  auto const kept = [&](double x) { return std::trunc(x * scale); };
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
  return sign + (static_cast<std::uint32_t>(exponent + 14) << 10) +
         static_cast<std::uint32_t>(units);
}

/// Those of 8-bit floats by an sm_90 or sm_100, as the code that ptxas makes of the instruction
/// says: factors are f16; of every four neighbours along k the first two are summed, then the
/// others are added to that, each in one step; C is added at the end, to nearest even.
inline std::uint32_t narrow_element(MmaSpec const& op, double const* x, double const* y,
                                    std::uint32_t c) {
  std::uint32_t sum = 0;
  bool const half_result = op.d == DType::f16;
  auto const value = [&](std::uint32_t code) {
    return half_result ? to_float(half{static_cast<std::uint16_t>(code)})
                       : __builtin_bit_cast(float, code);
  };
  for (int part = 0; part < 2; ++part) {
    double a[16], b[16];
    for (int i = 0; i < op.k / 2; ++i) {
      int const k = i / 2 * 4 + 2 * part + i % 2;
      a[i] = x[k], b[i] = y[k];
    }
    double const total =
        dot_add(DType::f16, DType::f16, a, b, op.k / 2, value(sum), half_result ? -14 : -126, 25);
    sum = half_result ? binary16_nearest(total) : binary32_toward_zero(total);
  }
  // No sum is a negative zero, so no zero is negative here.
  if (half_result) return binary16_nearest(double{value(sum)} + double{value(c)});
  float const rounded = value(sum) + value(c);
  return std::isnan(rounded) ? 0x7fffffffu : __builtin_bit_cast(std::uint32_t, rounded);
}

/// The 32-bit or 16-bit code of D(row, column).
inline std::uint32_t mma_element(MmaSpec const& op, sim::Generation generation,
                                 std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
                                 std::uint32_t c, int row, int column) {
  int const k = op.k;
  if (op.a == DType::b1) {
    for (int i = 0; i < k; ++i) {
      bool const one = a_code(op, a, row, i) != 0, other = b_code(op, b, i, column) != 0;
      c += (op.variant == MmaVariant::and_popc ? one && other : one != other) ? 1 : 0;
    }
    return c;
  }
  double x[64], y[64];
  for (int i = 0; i < k; ++i) {
    x[i] = value_of(op.a, a_code(op, a, row, i));
    y[i] = value_of(op.b, b_code(op, b, i, column));
  }
  if (op.d == DType::s32) {
    double sum = static_cast<std::int32_t>(c);
    for (int i = 0; i < k; ++i) sum += x[i] * y[i];
    if (op.variant == MmaVariant::saturate) sum = std::fmin(std::fmax(sum, -0x1p31), 0x1p31 - 1);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
  }
  if (bits(op.a) == 8) return narrow_element(op, x, y, c);
  bool const sm80 = generation == sim::Generation::sm80;
  int const whole = sm80 ? 128 / bits(op.a) : k;
  int const step = std::min(whole, k);
  for (int first = 0; first < k; first += step) {
    int const fraction_bits = sm80 ? 24 : 25;
    if (op.d == DType::f16) {
      double const addend = to_float(half{static_cast<std::uint16_t>(c)});
      c = binary16_nearest(
          dot_add(op.a, op.b, x + first, y + first, step, addend, -14, fraction_bits));
    } else {
      double const addend = __builtin_bit_cast(float, c);
      c = binary32_toward_zero(
          dot_add(op.a, op.b, x + first, y + first, step, addend, -126, fraction_bits));
    }
  }
  return c;
}

/// One element of D of wgmma, or of tcgen05.mma: `a` and `b` are the bytes of its row and its
/// column, c its accumulator, which counts 2^-scale_input_d.
inline std::uint32_t wgmma_element(MmaSpec const& op, std::uint8_t const* a, std::uint8_t const* b,
                                   bool scale_d, std::uint32_t c, int scale_input_d = 0) {
  int const bytes = element_bits(op) / 8;
  int const k = op.k;
  double x[32], y[32];
  for (int i = 0; i < k; ++i) {
    std::uint32_t a_code = 0, b_code = 0;
    for (int byte = 0; byte < bytes; ++byte) {
      a_code |= static_cast<std::uint32_t>(a[i * bytes + byte]) << (8 * byte);
      b_code |= static_cast<std::uint32_t>(b[i * bytes + byte]) << (8 * byte);
    }
    if (bits(op.a) < 8) a_code = packed_code(op.a, a, i);
    if (bits(op.b) < 8) b_code = packed_code(op.b, b, i);
    x[i] = (op.negate_a ? -1 : 1) * value_of(op.a, a_code);
    y[i] = (op.negate_b ? -1 : 1) * value_of(op.b, b_code);
  }
  if (op.d == DType::s32) {
    double sum = scale_d ? static_cast<std::int32_t>(c) : 0;
    for (int i = 0; i < k; ++i) sum += x[i] * y[i];
    if (op.variant == MmaVariant::saturate) sum = std::fmin(std::fmax(sum, -0x1p31), 0x1p31 - 1);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
  }
  bool const narrow = bytes == 1 && !is_tensor_memory_mma(op);
  int const fraction_bits = narrow ? 13 : 25;
  if (op.d == DType::f16) {
    double const addend =
        scale_d ? std::ldexp(double{to_float(half{static_cast<std::uint16_t>(c)})}, -scale_input_d)
                : 0;
    return binary16_nearest(
        dot_add(op.a, op.b, x, y, k, addend, -14 - scale_input_d, fraction_bits));
  }
  double const addend =
      scale_d ? std::ldexp(double{__builtin_bit_cast(float, c)}, -scale_input_d) : 0;
  return binary32_toward_zero(
      dot_add(op.a, op.b, x, y, k, addend, -126 - scale_input_d, fraction_bits), narrow ? 13 : 23);
}

}  // namespace tegula::oracle
