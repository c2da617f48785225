#pragma once

/// The configurations that every build has, also a quick one (TEGULA_CONFIGURATIONS=representative): of each
/// family the forms that differ in more than a number, and what the demo and the pages' examples launch.

#include <string_view>

#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"

namespace tegula::device {

/// f16 at every head dimension; bf16 with a mask, and by both exponentials where registers are scarcest.
constexpr bool is_representative(AttentionConfig const& c) {
  bool const hardware = c.exponential == Exponential::ex2_approx;
  if (c.dtype == DType::f16) return hardware && !c.causal;
  return c.causal && (c.head_dim == 128 || (c.head_dim == 64 && hardware));
}

/// f16 with both operands K-major, copied either way; bf16 with the other majors of B.
constexpr bool is_representative(GemmConfig const& c) {
  if (c.in == DType::f16) return c.a_major == Major::k && c.b_major == Major::k && c.out != DType::bf16;
  return c.out == DType::bf16 && c.vector_bytes == 16 && c.b_major == Major::mn;
}

/// f16 and bf16 with each schedule, tiles of two widths, K split and an activation; one of every other type.
constexpr bool is_representative(GemmSm90Config const& c) {
  bool const a_k = c.a_major == Major::k, b_k = c.b_major == Major::k;
  bool const small = c.block_m == 64, large = c.block_n == 256;
  if (c.activation != Activation::none)
    return c.a == DType::bf16 && large && c.activation == Activation::silu;
  if (c.a == DType::f16)
    return a_k && b_k && (c.out == DType::f32 || (c.out == DType::f16 && small && c.split_k <= 2));
  if (c.a == DType::bf16) {
    if (c.out == DType::f32) return !a_k && !b_k;
    return c.out == DType::bf16 && a_k && (b_k ? large || c.block_n == 176 : large || small);
  }
  if (c.a == DType::tf32) return c.out == DType::f32 && c.block_m == 128 && !large;
  if (c.a != DType::e4m3) return false;
  bool const pingpong = c.schedule == Schedule::pingpong && c.block_n == 192;
  return c.b == DType::e4m3 ? pingpong : c.out == DType::f32;
}

}  // namespace tegula::device

namespace tegula {

/// What a refusal says more where this build has the representative configurations only: a sentence after a
/// space, or nothing.
std::string_view missing_configurations_note();

}  // namespace tegula
