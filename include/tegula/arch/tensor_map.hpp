#pragma once

#include <cstdint>

#include "tegula/arch/cache_hint.hpp"
#include "tegula/macros.hpp"

/// What TMA, the tensor memory accelerator of sm_90, works on and how: PTX ISA, "Tensors" and
/// "cp.async.bulk.tensor".
namespace tegula {

/// A tensor in global memory and the box that one TMA instruction moves, as the hardware reads it:
/// opaque. Made on the host by encode() of device/tensor_map.hpp for one machine; a kernel gets it
/// as a member of its Params (PTX ISA, "Tensor-map": 128 bytes in constant, parameter or global
/// memory, aligned to 64).
struct alignas(64) TensorMap {
  unsigned char bytes[128];

  friend bool operator==(TensorMap const&, TensorMap const&) = default;
};

/// How the 16-byte pieces of a box's rows are permuted in shared memory: a piece's number, bits 4
/// and up of its shared address, is XORed with the number of the 128-byte line it lies in, bits 7
/// and up. A swizzle of 32, 64 or 128 bytes permutes the pieces of that span: 1, 2 or 3 bits (PTX
/// ISA, "Swizzling modes").
enum class TmaSwizzle : std::uint8_t { none, b32, b64, b128 };

/// The bytes that a swizzle permutes pieces in, which is also the widest row of a box under it; 0
/// for none.
TEGULA_HOST_DEVICE constexpr int span_bytes(TmaSwizzle swizzle) {
  return swizzle == TmaSwizzle::none ? 0 : 16 << static_cast<int>(swizzle);
}

/// The swizzle that permutes pieces in so many bytes: 32, 64 or 128; none in fewer.
TEGULA_HOST_DEVICE constexpr TmaSwizzle swizzle_of_span(int bytes) {
  return bytes >= 128  ? TmaSwizzle::b128
         : bytes >= 64 ? TmaSwizzle::b64
         : bytes >= 32 ? TmaSwizzle::b32
                       : TmaSwizzle::none;
}

/// What a load puts where its box is outside of the tensor: zeros, or NaNs. These are made of
/// 16-bit words 0x7ff7, whatever the element's type (measured on an H100): 0x7ff77ff7 in f32.
enum class TmaFill : std::uint8_t { zeros, nans };

/// The size of the pieces that TMA asks L2 to fetch from memory.
enum class TmaL2Promotion : std::uint8_t { none, b64, b128, b256 };

/// What a reduction does to an element of memory: PTX ISA, cp.reduce.async.bulk. inc counts up to
/// the value that is brought, and then begins at 0; dec counts down from it.
enum class TmaReduce : std::uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// Names, as PTX spells them.
constexpr char const* to_string(TmaSwizzle swizzle) {
  constexpr char const* names[] = {"none", "32B", "64B", "128B"};
  return names[static_cast<int>(swizzle)];
}
constexpr char const* to_string(TmaFill fill) { return fill == TmaFill::zeros ? "zeros" : "nans"; }
constexpr char const* to_string(TmaL2Promotion promotion) {
  constexpr char const* names[] = {"none", "64B", "128B", "256B"};
  return names[static_cast<int>(promotion)];
}
constexpr char const* to_string(TmaReduce op) {
  constexpr char const* names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return names[static_cast<int>(op)];
}

}  // namespace tegula
