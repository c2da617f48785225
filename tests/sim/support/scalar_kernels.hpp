#pragma once

#include <cstdint>

#include "instruction_kernels.hpp"
#include "tegula/arch/bits.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/packed_math.hpp"
#include "tegula/numeric/erf.hpp"
#include "tegula/numeric/exp.hpp"
#include "tegula/numeric/log.hpp"
#include "tegula/numeric/sin_cos.hpp"

/// Kernels of the scalar vocabulary: bits, exactly rounded arithmetic, conversions, packed
/// arithmetic, and the elementary functions. Each thread has words of its own.
namespace tegula::scalar_kernels {

using instruction_kernels::Kernels;
using instruction_kernels::OneWarp;
using instruction_kernels::Words;

/// Base: In words of each thread in, Out words out.
template <int In, int Out> struct PerThread : OneWarp {
  static constexpr int threads = 128;
  static constexpr int in_of_each = In;
  static constexpr int out_of_each = Out;
  static constexpr int in_words = threads * In;
  static constexpr int out_words = threads * Out;
};

/// Where a thread writes one word after another.
struct Writer {
  std::uint32_t* out;
  TEGULA_DEVICE void word(std::uint32_t x) { st_global(out++, x); }
  TEGULA_DEVICE void wide(std::uint64_t x) {
    word(static_cast<std::uint32_t>(x));
    word(static_cast<std::uint32_t>(x >> 32));
  }
  TEGULA_DEVICE void number(float x) { word(bits_as<std::uint32_t>(x)); }
  /// What a NaN looks like is left open: any is written as one.
  TEGULA_DEVICE void one_nan(float x) { word(x == x ? bits_as<std::uint32_t>(x) : 0x7fffffffu); }
  TEGULA_DEVICE void one_nan(double x) {
    wide(x == x ? bits_as<std::uint64_t>(x) : 0x7fffffffffffffffull);
  }
};

struct Bits : PerThread<3, 35> {
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    std::uint32_t const* const in = p.in + in_of_each * thread_idx();
    Writer w{p.out + out_of_each * thread_idx()};
    auto const a = ld_global<std::uint32_t>(in);
    auto const b = ld_global<std::uint32_t>(in + 1);
    auto const c = ld_global<std::uint32_t>(in + 2);
    std::uint32_t const few = a >> (b & 31);  // with leading zeros
    std::uint64_t const wide = (std::uint64_t{a} << 32 | b) >> (c & 63);
    auto const s = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
    auto const u = [](auto x) { return static_cast<std::uint32_t>(x); };
    w.word(u(popc(a)) | u(popc(wide)) << 8);
    w.word(u(clz(few)) | u(clz(wide)) << 8);
    w.word(u(ffs(few << (c & 31))) | u(ffs(wide)) << 8);
    w.word(u(bfind(few)));
    w.word(brev(a));
    w.wide(brev(wide));
    w.word(shf_l_wrap(a, b, c));
    w.word(shf_l_clamp(a, b, c & 63));
    w.word(shf_r_wrap(a, b, c));
    w.word(shf_r_clamp(a, b, c & 63));
    w.word(bfe(a, b & 63, c & 63));
    w.word(u(bfe(s(a), b & 63, c & 63)));
    w.word(bfe(a, b, c));
    w.word(bfi(a, b, c & 63, c >> 8 & 63));
    w.word(bfi(a, b, c, a));
    w.word(mul_hi(a, b));
    w.word(u(mul_hi(s(a), s(b))));
    std::uint64_t const other = std::uint64_t{b} << 32 | c;
    w.wide(mul_hi(std::uint64_t{a} << 32 | c, other));
    w.wide(static_cast<std::uint64_t>(mul_hi(static_cast<std::int64_t>(std::uint64_t{a} << 32 | c),
                                             static_cast<std::int64_t>(other))));
    w.word(dp4a(a, b, c));
    w.word(u(dp4a(s(a), s(b), s(c))));
    w.word(u(dp4a(s(a), b, s(c))));
    w.word(u(dp4a(a, s(b), s(c))));
    w.word(dp2a_lo(a, b, c));
    w.word(u(dp2a_hi(s(a), s(b), s(c))));
    w.word(u(dp2a_lo(s(a), b, s(c))));
    w.word(u(dp2a_hi(a, s(b), s(c))));
    w.word(lop3<(0xf0 & 0xcc) ^ 0xaa>(a, b, c));
    w.word(lop3<0x1b>(a, b, c));
    w.word(byte_permute(a, b, c & 0x7777u));
    w.word((u(cvt_sat<std::int8_t>(s(few))) & 0xffu) | u(cvt_sat<std::uint8_t>(s(a) >> 22)) << 8 |
           u(cvt_sat<std::uint16_t>(few)) << 16);
    w.word((u(cvt_sat<std::int16_t>(s(a) >> (c & 31))) & 0xffffu) |
           (u(cvt_sat<std::int8_t>(s(b) >> 23)) & 0xffu) << 16 |
           u(cvt_sat<std::uint8_t>(few)) << 24);
  }
};

/// in: two floats, whatever their bits.
struct Rounded : PerThread<2, 18> {
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    std::uint32_t const* const in = p.in + in_of_each * thread_idx();
    Writer w{p.out + out_of_each * thread_idx()};
    auto const a = ld_global<float>(in);
    auto const b = ld_global<float>(in + 1);
    w.number(add_rn(a, b));
    w.number(sub_rn(a, b));
    w.number(mul_rn(a, b));
    w.number(div_rn(a, b));
    w.number(rcp_rn(a));
    w.number(sqrt_rn(a));
    w.number(add_rn(mul_rn(a, b), a));  // not fma_rn(a, b, a)
    w.one_nan(cvt_rni<float>(a));
    w.one_nan(cvt_rzi<float>(a));
    w.one_nan(cvt_rmi<float>(a));
    w.one_nan(cvt_rpi<float>(a));
    w.number(copysign_f32(a, b));
    w.word(static_cast<std::uint32_t>(cvt_rni<std::int32_t>(a)));
    w.word(cvt_rzi<std::uint32_t>(a));
    w.wide(static_cast<std::uint64_t>(cvt_rmi<std::int64_t>(a)));
    w.wide(cvt_rpi<std::uint64_t>(a));
  }
};

/// in: two doubles, whatever their bits.
struct RoundedWide : PerThread<4, 30> {
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    std::uint32_t const* const in = p.in + in_of_each * thread_idx();
    Writer w{p.out + out_of_each * thread_idx()};
    auto const word = [&](int i) { return std::uint64_t{ld_global<std::uint32_t>(in + i)}; };
    auto const a = bits_as<double>(word(1) << 32 | word(0));
    auto const b = bits_as<double>(word(3) << 32 | word(2));
    w.one_nan(add_rn(a, b));
    w.one_nan(sub_rn(a, b));
    w.one_nan(mul_rn(a, b));
    w.one_nan(div_rn(a, b));
    w.one_nan(rcp_rn(a));
    w.one_nan(sqrt_rn(a));
    w.one_nan(fma_rn(a, b, a));
    w.one_nan(cvt_rni<double>(a));
    w.one_nan(cvt_rzi<double>(a));
    w.one_nan(cvt_rmi<double>(a));
    w.one_nan(cvt_rpi<double>(a));
    w.one_nan(copysign_f64(a, b));
    w.word(static_cast<std::uint32_t>(cvt_rzi<std::int32_t>(a)));
    w.word(cvt_rni<std::uint32_t>(b));
    w.wide(static_cast<std::uint64_t>(cvt_rni<std::int64_t>(a)));
    w.wide(cvt_rzi<std::uint64_t>(b));
  }
};

/// in: three pairs of 16-bit floats, whatever their bits.
struct Packed : PerThread<3, 16> {
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    std::uint32_t const* const in = p.in + in_of_each * thread_idx();
    Writer w{p.out + out_of_each * thread_idx()};
    auto const a = ld_global<std::uint32_t>(in);
    auto const b = ld_global<std::uint32_t>(in + 1);
    auto const c = ld_global<std::uint32_t>(in + 2);
    w.word(add_rn_f16x2(a, b));
    w.word(sub_rn_f16x2(a, b));
    w.word(mul_rn_f16x2(a, b));
    w.word(fma_rn_f16x2(a, b, c));
    w.word(max_f16x2(a, b));
    w.word(min_f16x2(a, b));
    w.word(max_nan_f16x2(a, b));
    w.word(min_nan_f16x2(a, b));
    w.word(add_rn_bf16x2(a, b));
    w.word(sub_rn_bf16x2(a, b));
    w.word(mul_rn_bf16x2(a, b));
    w.word(fma_rn_bf16x2(a, b, c));
    w.word(max_bf16x2(a, b));
    w.word(min_bf16x2(a, b));
    w.word(max_nan_bf16x2(a, b));
    w.word(min_nan_bf16x2(a, b));
  }
};

/// A float between -32 and 32.
TEGULA_DEVICE float small_number(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-26f;
}

/// Each function of a float, whatever its bits, and of a small one.
struct Elementary : PerThread<1, 10> {
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    auto const word = ld_global<std::uint32_t>(p.in + thread_idx());
    Writer w{p.out + out_of_each * thread_idx()};
    for (float const x : {bits_as<float>(word), small_number(word)}) {
      SinCos const turned = sin_cos_polynomial(x);
      w.number(exp_polynomial(x));
      w.number(log_polynomial(x));
      w.number(turned.sin);
      w.number(turned.cos);
      w.number(erf_polynomial(x));
    }
  }
};

/// All kernels of this file.
using AllKernels = Kernels<Bits, Rounded, RoundedWide, Packed, Elementary>;

}  // namespace tegula::scalar_kernels
