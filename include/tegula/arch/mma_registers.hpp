#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/atom/mma_spec.hpp"

namespace tegula {

/// The registers that one thread holds of an instruction's operands: floats, integers, or (f16)
/// pairs of halves of C and D, any bits of A and B; of f64 doubles. Refuses an instruction that
/// arch/ lacks. An operand in shared memory has no registers and no type here.
template <MmaSpec S> struct MmaRegisters {
  using Accumulator = std::conditional_t<
      S.d == DType::f32, float,
      std::conditional_t<S.d == DType::s32, std::int32_t,
                         std::conditional_t<S.d == DType::f64, double, std::uint32_t>>>;
  /// A register of A or of B.
  using Operand = std::conditional_t<S.operands == MmaOperands::scalar, float,
                                     std::conditional_t<S.a == DType::f64, double, std::uint32_t>>;

  static constexpr int d_count =
      check(S) ? 4 * d_registers(S) / static_cast<int>(sizeof(Accumulator)) : 0;
  static constexpr int a_count = 4 * a_registers(S) / static_cast<int>(sizeof(Operand));
  static constexpr int b_count = 4 * b_registers(S) / static_cast<int>(sizeof(Operand));

  using A = std::conditional_t<a_count == 0, void, Operand[a_count == 0 ? 1 : a_count]>;
  using B = std::conditional_t<b_count == 0, void, Operand[b_count == 0 ? 1 : b_count]>;
  using C = Accumulator[d_count];
  using D = Accumulator[d_count];
};

}  // namespace tegula
