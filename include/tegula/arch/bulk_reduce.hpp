#pragma once

#include "tegula/arch/tensor_map.hpp"
#include "tegula/numeric/dtype.hpp"

/// Which reductions the TMA unit has: PTX ISA, cp.reduce.async.bulk and
/// cp.reduce.async.bulk.tensor.
namespace tegula {

/// Whether elements of the type in global memory can be reduced by `op`: sums of f16, bf16, f32,
/// f64, s32, u32 and u64; min and max of f16, bf16 and integers of 32 and 64 bits; inc and dec of
/// u32; and, or and xor of s32, u32 and u64. (tf32 is f32. Sums and bits of s64 are those of u64;
/// an H200 takes them by a tensor map of s64 for illegal instructions.)
TEGULA_HOST_DEVICE constexpr bool can_reduce(TmaReduce op, DType type) {
  bool const word = type == DType::s32 || type == DType::u32;
  bool const integer = word || type == DType::s64 || type == DType::u64;
  bool const narrow = type == DType::f16 || type == DType::bf16;
  switch (op) {
    case TmaReduce::add:
      return narrow || (integer && type != DType::s64) || type == DType::f32 ||
             type == DType::tf32 || type == DType::f64;
    case TmaReduce::min:
    case TmaReduce::max:
      return narrow || integer;
    case TmaReduce::inc:
    case TmaReduce::dec:
      return type == DType::u32;
    default:
      return integer && type != DType::s64;
  }
}

/// Likewise in the shared memory of a CTA of the cluster: sums of s32, u32 and u64; min and max of
/// s32 and u32; inc and dec of u32; and, or and xor of s32 and u32.
TEGULA_HOST_DEVICE constexpr bool can_reduce_in_cluster(TmaReduce op, DType type) {
  bool const word = type == DType::s32 || type == DType::u32;
  return can_reduce(op, type) && (word || (op == TmaReduce::add && type == DType::u64));
}

/// The type that an instruction names for elements of T: sums, and, or and xor of s64 are those of
/// u64, which have the same bits.
TEGULA_HOST_DEVICE constexpr DType reduced_as(TmaReduce op, DType type) {
  bool const extreme = op == TmaReduce::min || op == TmaReduce::max;
  return type == DType::s64 && !extreme ? DType::u64 : type;
}

#if TEGULA_GPU
namespace detail {

template <TmaReduce Op> struct ReduceOpText;
template <> struct ReduceOpText<TmaReduce::add> { static constexpr char text[] = ".add"; };
template <> struct ReduceOpText<TmaReduce::min> { static constexpr char text[] = ".min"; };
template <> struct ReduceOpText<TmaReduce::max> { static constexpr char text[] = ".max"; };
template <> struct ReduceOpText<TmaReduce::inc> { static constexpr char text[] = ".inc"; };
template <> struct ReduceOpText<TmaReduce::dec> { static constexpr char text[] = ".dec"; };
template <> struct ReduceOpText<TmaReduce::bit_and> { static constexpr char text[] = ".and"; };
template <> struct ReduceOpText<TmaReduce::bit_or> { static constexpr char text[] = ".or"; };
template <> struct ReduceOpText<TmaReduce::bit_xor> { static constexpr char text[] = ".xor"; };

/// The type behind an operation: sums of 16 bits say that they keep subnormals, and of bits there
/// are only so many.
template <TmaReduce Op, DType T> struct ReduceTypeSource {
  static constexpr Spelling make() {
    Spelling s;
    bool const of_bits =
        Op == TmaReduce::bit_and || Op == TmaReduce::bit_or || Op == TmaReduce::bit_xor;
    bool const narrow = T == DType::f16 || T == DType::bf16;
    if (Op == TmaReduce::add && narrow) s.add(".noftz");
    s.add(of_bits            ? (bits(T) == 32 ? ".b32" : ".b64")
          : T == DType::f16  ? ".f16"
          : T == DType::bf16 ? ".bf16"
          : T == DType::f32  ? ".f32"
          : T == DType::tf32 ? ".f32"
          : T == DType::f64  ? ".f64"
          : T == DType::s32  ? ".s32"
          : T == DType::u32  ? ".u32"
          : T == DType::s64  ? ".s64"
                             : ".u64");
    return s;
  }
  static constexpr Spelling value = make();
};
template <TmaReduce Op, DType T> using ReduceTypeText = SpelledText<ReduceTypeSource<Op, T>>;

}  // namespace detail
#endif

}  // namespace tegula
