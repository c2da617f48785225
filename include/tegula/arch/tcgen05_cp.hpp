#pragma once

#include <cstdint>

#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/arch/tensor_copy_shape.hpp"
#include "tegula/arch/tensor_memory_address.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Copies from shared to tensor memory, and within it: PTX ISA, tcgen05.cp and tcgen05.shift
/// (sm_100a).
namespace tegula {

#if TEGULA_GPU
namespace detail {
template <TensorCopyShape S> struct TensorCopyText;
template <> struct TensorCopyText<TensorCopyShape::rows128_bits256> {
  static constexpr char text[] = "128x256b";
};
template <> struct TensorCopyText<TensorCopyShape::rows4_bits256> {
  static constexpr char text[] = "4x256b";
};
template <> struct TensorCopyText<TensorCopyShape::rows128_bits128> {
  static constexpr char text[] = "128x128b";
};
template <> struct TensorCopyText<TensorCopyShape::rows64_bits128_02_13> {
  static constexpr char text[] = "64x128b.warpx2::02_13";
};
template <> struct TensorCopyText<TensorCopyShape::rows64_bits128_01_23> {
  static constexpr char text[] = "64x128b.warpx2::01_23";
};
template <> struct TensorCopyText<TensorCopyShape::rows32_bits128_warpx4> {
  static constexpr char text[] = "32x128b.warpx4";
};
template <TensorCopyFormat F> struct TensorCopyFormatText { static constexpr char text[] = ""; };
template <> struct TensorCopyFormatText<TensorCopyFormat::from_4_bits> {
  static constexpr char text[] = ".b8x16.b4x16_p64";
};
template <> struct TensorCopyFormatText<TensorCopyFormat::from_6_bits> {
  static constexpr char text[] = ".b8x16.b6x16_p32";
};
}  // namespace detail
#endif

/// The matrix descriptor of rows of 16 bytes that lie one after the other, as scales do: from a
/// multiple of 16 bytes on.
TEGULA_HOST_DEVICE constexpr std::uint64_t rows16_descriptor(SharedAddr base) {
  constexpr WgmmaDescriptor d{.stride_offset = 8 * 16};
  return static_cast<std::uint64_t>(tcgen05_descriptor_high(d)) << 32 | d.low() |
         (base & 0x3ffff) >> 4;
}

/// Copies rows of shared memory, which a matrix descriptor names as those of a K-major operand, to
/// lanes of tensor memory (row_of_lane). Started by one thread, whose tcgen05_mma after it wait for
/// it; for others it is over as tcgen05_mma are, by a tcgen05_commit. `to` has lane 0; of .4x256b,
/// the lane of the first quarter. With `Ctas` 2 both CTAs of a pair copy, each from its own shared
/// memory to its own tensor memory, at the same places. With a `Format` elements of 6 or 4 bits,
/// which lie as a product reads them from shared memory, are unpacked to a byte each, as a product
/// reads A from tensor memory: e2m1 in bits 2 to 5, e2m3 and e3m2 in bits 0 to 5, zeros beside.
template <TensorCopyShape S, int Ctas = 1, TensorCopyFormat Format = TensorCopyFormat::same>
TEGULA_DEVICE void tcgen05_cp(TensorAddr to, std::uint64_t descriptor,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.cp.cta_group::%3.%2%4 [%0], %1;" ::"r"(to), "l"(descriptor),
               "C"(detail::TensorCopyText<S>::text), "n"(Ctas),
               "C"(detail::TensorCopyFormatText<Format>::text)
               : "memory");
#else
  sim::tcgen05_cp(S, Format, Ctas, to, descriptor, where);
#endif
}

/// Moves rows of 32 bytes, eight columns from that of `at` on, down by one: each lane gets what the
/// one after it has. The last of each quarter, lanes 31, 63, 95 and 127, keeps its own. `at` has
/// lane 0. Started by one thread, over after a tcgen05_commit; of that thread products before and
/// after it, and copies of .4x256b after it, are performed in their order. With `Ctas` 2 both CTAs
/// of a pair do so.
template <int Ctas = 1>
TEGULA_DEVICE void tcgen05_shift_down(
    TensorAddr at, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.shift.cta_group::%1.down [%0];" ::"r"(at), "n"(Ctas) : "memory");
#else
  sim::tcgen05_shift_down(Ctas, at, where);
#endif
}

}  // namespace tegula
