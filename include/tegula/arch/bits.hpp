#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/memory_access.hpp"
#include "tegula/macros.hpp"

/// Instructions on the bits of integers, and products of integers: PTX ISA, integer arithmetic,
/// logic and shift instructions. Each is one instruction of a GPU, or two where that is said. None
/// is volatile: the compiler may move or merge them.
namespace tegula {

/// How many bits are set.
TEGULA_DEVICE int popc(std::uint32_t x) {
#if TEGULA_GPU
  return __popc(x);
#else
  return __builtin_popcount(x);
#endif
}
TEGULA_DEVICE int popc(std::uint64_t x) {
#if TEGULA_GPU
  return __popcll(x);
#else
  return __builtin_popcountll(x);
#endif
}

/// How many zeros come before the highest bit set; 32 (64) of zero.
TEGULA_DEVICE int clz(std::uint32_t x) {
#if TEGULA_GPU
  return __clz(static_cast<int>(x));
#else
  return x == 0 ? 32 : __builtin_clz(x);
#endif
}
TEGULA_DEVICE int clz(std::uint64_t x) {
#if TEGULA_GPU
  return __clzll(static_cast<long long>(x));
#else
  return x == 0 ? 64 : __builtin_clzll(x);
#endif
}

/// One more than the index of the lowest bit set; 0 of zero. CUDA: __ffs. (Two instructions: brev
/// and clz.)
TEGULA_DEVICE int ffs(std::uint32_t x) {
#if TEGULA_GPU
  return __ffs(static_cast<int>(x));
#else
  return __builtin_ffs(static_cast<int>(x));
#endif
}
TEGULA_DEVICE int ffs(std::uint64_t x) {
#if TEGULA_GPU
  return __ffsll(static_cast<long long>(x));
#else
  return __builtin_ffsll(static_cast<long long>(x));
#endif
}

/// The index of the highest bit set; -1 of zero: PTX ISA, bfind.u32.
TEGULA_DEVICE int bfind(std::uint32_t x) {
#if TEGULA_GPU
  int r;
  asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x));
  return r;
#else
  return 31 - clz(x);
#endif
}

/// The bits in reverse.
TEGULA_DEVICE std::uint32_t brev(std::uint32_t x) {
#if TEGULA_GPU
  return __brev(x);
#else
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
#endif
}
TEGULA_DEVICE std::uint64_t brev(std::uint64_t x) {
#if TEGULA_GPU
  return __brevll(x);
#else
  return std::uint64_t{brev(static_cast<std::uint32_t>(x))} << 32 |
         brev(static_cast<std::uint32_t>(x >> 32));
#endif
}

/// The upper word of (high:low) << amount, a shift of 64 bits. `amount` counts modulo 32: PTX ISA,
/// shf.l.wrap.
TEGULA_DEVICE std::uint32_t shf_l_wrap(std::uint32_t low, std::uint32_t high,
                                       std::uint32_t amount) {
#if TEGULA_GPU
  return __funnelshift_l(low, high, amount);
#else
  std::uint64_t const both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both << (amount & 31) >> 32);
#endif
}
/// Likewise; an amount above 32 counts as 32: shf.l.clamp.
TEGULA_DEVICE std::uint32_t shf_l_clamp(std::uint32_t low, std::uint32_t high,
                                        std::uint32_t amount) {
#if TEGULA_GPU
  return __funnelshift_lc(low, high, amount);
#else
  std::uint64_t const both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both << (amount < 32 ? amount : 32) >> 32);
#endif
}
/// The lower word of (high:low) >> amount. `amount` counts modulo 32: shf.r.wrap.
TEGULA_DEVICE std::uint32_t shf_r_wrap(std::uint32_t low, std::uint32_t high,
                                       std::uint32_t amount) {
#if TEGULA_GPU
  return __funnelshift_r(low, high, amount);
#else
  std::uint64_t const both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both >> (amount & 31));
#endif
}
/// Likewise; an amount above 32 counts as 32: shf.r.clamp.
TEGULA_DEVICE std::uint32_t shf_r_clamp(std::uint32_t low, std::uint32_t high,
                                        std::uint32_t amount) {
#if TEGULA_GPU
  return __funnelshift_rc(low, high, amount);
#else
  std::uint64_t const both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both >> (amount < 32 ? amount : 32));
#endif
}

/// `length` bits of x from bit `position` on, at the result's lower end. Above them are zeros, and
/// where x is signed copies of the field's highest bit. A field that reaches beyond x is read as if
/// zeros, or copies of x's highest bit, followed; position and length count modulo 256. PTX ISA,
/// bfe. (Two instructions on recent GPUs, one where position and length are constants.)
template <class T> TEGULA_DEVICE T bfe(T x, std::uint32_t position, std::uint32_t length) {
  static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int32_t>,
                "bfe extracts a field from a std::uint32_t or a std::int32_t");
#if TEGULA_GPU
  T r;
  if constexpr (std::is_signed_v<T>) {
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(position), "r"(length));
  } else {
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(position), "r"(length));
  }
  return r;
#else
  position &= 255;
  length &= 255;
  if (length == 0) return 0;
  std::int64_t const wide = x;
  std::int64_t const from = wide >> (position < 63 ? position : 63);
  if (length >= 32) return static_cast<T>(from);
  std::uint64_t const field = static_cast<std::uint64_t>(from) & ((std::uint64_t{1} << length) - 1);
  if (std::is_unsigned_v<T> || (field >> (length - 1) & 1) == 0) return static_cast<T>(field);
  return static_cast<T>(field | ~std::uint64_t{0} << length);
#endif
}

/// x, with `length` bits of it from bit `position` on replaced by the lowest of `field`. What would
/// lie beyond x is dropped; position and length count modulo 256. PTX ISA, bfi.b32. (Some three
/// instructions on recent GPUs, two where position and length are constants.)
TEGULA_DEVICE std::uint32_t bfi(std::uint32_t field, std::uint32_t x, std::uint32_t position,
                                std::uint32_t length) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(field), "r"(x), "r"(position), "r"(length));
  return r;
#else
  position &= 255;
  length &= 255;
  if (position >= 32) return x;
  std::uint64_t const ones = length >= 32 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1;
  auto const mask = static_cast<std::uint32_t>(ones << position);
  return (x & ~mask) | (field << position & mask);
#endif
}

/// The upper half of the product: PTX ISA, mul.hi. Of 64 bits it takes several instructions.
template <class T> TEGULA_DEVICE T mul_hi(T a, T b) {
  static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int32_t> ||
                    std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::int64_t>,
                "mul_hi multiplies integers of 32 or 64 bits");
  if constexpr (sizeof(T) == 4) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<Wide>(a) * b >> 32);
  } else {
#if TEGULA_GPU
    if constexpr (std::is_signed_v<T>) {
      return __mul64hi(a, b);
    } else {
      return __umul64hi(a, b);
    }
#else
    __extension__ typedef __int128 Signed;
    __extension__ typedef unsigned __int128 Unsigned;
    using Wide = std::conditional_t<std::is_signed_v<T>, Signed, Unsigned>;
    return static_cast<T>(static_cast<Wide>(a) * b >> 64);
#endif
  }
}

namespace detail {

/// Byte, or half, i of a word, with the sign that T says.
template <class T> TEGULA_DEVICE std::int32_t dp_part(T word, int bits, int i) {
  auto const part = static_cast<std::uint32_t>(word) >> bits * i & ((1u << bits) - 1);
  std::int32_t const top = 1 << (bits - 1);
  return std::is_signed_v<T> ? (static_cast<std::int32_t>(part) ^ top) - top
                             : static_cast<std::int32_t>(part);
}
template <class A, class B> TEGULA_DEVICE constexpr void check_dp() {
  static_assert((std::is_same_v<A, std::uint32_t> || std::is_same_v<A, std::int32_t>)&&(
                    std::is_same_v<B, std::uint32_t> || std::is_same_v<B, std::int32_t>),
                "dp4a and dp2a take a std::uint32_t or a std::int32_t, whose bytes have its sign");
}
/// The accumulator: unsigned where both factors are.
template <class A, class B>
using DpSum =
    std::conditional_t<std::is_unsigned_v<A> && std::is_unsigned_v<B>, std::uint32_t, std::int32_t>;

}  // namespace detail

/// c + a[0] b[0] + ... + a[3] b[3], modulo 2^32, of the four bytes of a and b: PTX ISA, dp4a. Bytes
/// of a std::int32_t are signed, those of a std::uint32_t are not; c is unsigned where both are.
template <class A, class B>
TEGULA_DEVICE detail::DpSum<A, B> dp4a(A a, B b, detail::DpSum<A, B> c) {
  detail::check_dp<A, B>();
#if TEGULA_GPU
  detail::DpSum<A, B> r;
  if constexpr (std::is_signed_v<A> && std::is_signed_v<B>) {
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  } else if constexpr (std::is_signed_v<A>) {
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  } else if constexpr (std::is_signed_v<B>) {
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  } else {
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  }
  return r;
#else
  auto sum = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 4; ++i)
    sum += static_cast<std::uint32_t>(detail::dp_part(a, 8, i) * detail::dp_part(b, 8, i));
  return static_cast<detail::DpSum<A, B> >(sum);
#endif
}

namespace detail {

template <bool High, class A, class B> TEGULA_DEVICE DpSum<A, B> dp2a(A a, B b, DpSum<A, B> c) {
  check_dp<A, B>();
#if TEGULA_GPU
  DpSum<A, B> r;
#define TEGULA_DP2A(HALF)                                                            \
  if constexpr (std::is_signed_v<A> && std::is_signed_v<B>) {                        \
    asm("dp2a." HALF ".s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
  } else if constexpr (std::is_signed_v<A>) {                                        \
    asm("dp2a." HALF ".s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
  } else if constexpr (std::is_signed_v<B>) {                                        \
    asm("dp2a." HALF ".u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
  } else {                                                                           \
    asm("dp2a." HALF ".u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
  }
  if constexpr (High) {
    TEGULA_DP2A("hi")
  } else {
    TEGULA_DP2A("lo")
  }
#undef TEGULA_DP2A
  return r;
#else
  auto sum = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 2; ++i) {
    sum += static_cast<std::uint32_t>(dp_part(a, 16, i)) *
           static_cast<std::uint32_t>(dp_part(b, 8, i + (High ? 2 : 0)));
  }
  return static_cast<DpSum<A, B> >(sum);
#endif
}

}  // namespace detail

/// c + a[0] b[0] + a[1] b[1], modulo 2^32, of the two halves of a and the lower two bytes of b, or
/// with dp2a_hi its upper two: PTX ISA, dp2a. Signs as in dp4a.
template <class A, class B>
TEGULA_DEVICE detail::DpSum<A, B> dp2a_lo(A a, B b, detail::DpSum<A, B> c) {
  return detail::dp2a<false>(a, b, c);
}
template <class A, class B>
TEGULA_DEVICE detail::DpSum<A, B> dp2a_hi(A a, B b, detail::DpSum<A, B> c) {
  return detail::dp2a<true>(a, b, c);
}

/// Any function of three bits, bit by bit: bit (4 a + 2 b + c) of Table is its value. The same
/// expression of 0xf0, 0xcc and 0xaa makes the table: lop3<(0xf0 & 0xcc) ^ 0xaa>(a, b, c) is
/// (a & b) ^ c. PTX ISA, lop3.b32. (nvcc finds most by itself.)
template <int Table>
TEGULA_DEVICE std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  static_assert(Table >= 0 && Table <= 255, "lop3's table has 8 bits: 0 to 255");
#if TEGULA_GPU
  std::uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "n"(Table));
  return r;
#else
  std::uint32_t r = 0;
  for (int i = 0; i < 8; ++i) {
    if ((Table >> i & 1) != 0)
      r |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return r;
#endif
}

/// Four bytes of two registers: byte i of the result is number (selector >> 4 i) % 8 of the eight,
/// those of `low` first. PTX ISA, prmt (without its mode that replicates signs: bit 3 of each digit
/// of the selector is 0).
TEGULA_DEVICE std::uint32_t byte_permute(std::uint32_t low, std::uint32_t high,
                                         std::uint32_t selector) {
#if TEGULA_GPU
  return __byte_perm(low, high, selector);
#else
  std::uint64_t const bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t const byte = bytes >> 8 * (selector >> 4 * i & 7) & 0xff;
    result |= static_cast<std::uint32_t>(byte) << 8 * i;
  }
  return result;
#endif
}

}  // namespace tegula
