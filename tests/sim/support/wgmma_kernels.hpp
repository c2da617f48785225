#pragma once

#include <cstdint>
#include <type_traits>

#include "instruction_kernels.hpp"
#include "operand_tiles.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"

/// Kernels of one warpgroup that multiply by wgmma, one for each kind of operand and instruction,
/// for any machine, as instruction_kernels.hpp has them for the instructions of a warp.
namespace tegula::wgmma_kernels {

using instruction_kernels::Kernels;
using instruction_kernels::Words;

/// Elements as bits, by their width.
template <int Bits>
using ElementBits =
    std::conditional_t<Bits == 8, std::uint8_t,
                       std::conditional_t<Bits == 16, std::uint16_t, std::uint32_t>>;

/// Instructions, as types: nvcc writes lists of kernels named by values of class type wrongly.
constexpr Major major(bool mn) { return mn ? Major::mn : Major::k; }
template <DType A, DType B, int N> struct Plain {
  static constexpr MmaSpec value =
      warpgroup_mma(A, B, A == DType::s8 || A == DType::u8 ? DType::s32 : DType::f32, N);
};
/// Accumulators are halves.
template <DType A, DType B, int N, bool b_mn_major = false> struct Halves {
  static constexpr MmaSpec value = warpgroup_mma(A, B, DType::f16, N, Major::k, major(b_mn_major));
};
template <DType A, int N, bool a_mn_major, bool b_mn_major> struct Majors {
  static constexpr MmaSpec value =
      warpgroup_mma(A, A, DType::f32, N, major(a_mn_major), major(b_mn_major));
};
template <DType A, DType B, int N, bool a, bool b> struct Negated {
  static constexpr MmaSpec value = [] {
    MmaSpec spec = Plain<A, B, N>::value;
    spec.negate_a = a;
    spec.negate_b = b;
    return spec;
  }();
};
template <DType A, DType B, int N> struct Saturating {
  static constexpr MmaSpec value = [] {
    MmaSpec spec = Plain<A, B, N>::value;
    spec.variant = MmaVariant::saturate;
    return spec;
  }();
};

/// Layouts of operands, likewise.
template <int bits, int mn, int k, bool mn_major, int stages> struct Swizzled {
  static constexpr SwizzledLayout layout = swizzled_operand(bits, mn, k, mn_major ? 0 : 1, stages);
};
/// Without a swizzle, of 16-byte pieces.
template <int bits, int mn, int k, bool mn_major> struct Pieces {
  static constexpr int piece = 128 / bits;
  static constexpr Layout along = tegula::layout(tuple(piece, (mn_major ? mn : k) / piece),
                                                 tuple(1, piece*(mn_major ? k : mn)));
  static constexpr Layout across = tegula::layout(mn_major ? k : mn, piece);
  static constexpr SwizzledLayout layout =
      mn_major ? make_layout(along, across) : make_layout(across, along);
};

/// The descriptor of a tile (mn, k[, stage]) from (mn, k) on.
template <int Stage, class Space, class M>
TEGULA_DEVICE std::uint64_t operand(Tensor<Space, M> const& tile, int mn, int k) {
  if constexpr (M::rank == 3) {
    return matrix_descriptor(domain_offset(tile, mn, k, Stage));
  } else {
    return matrix_descriptor(domain_offset(tile, mn, k));
  }
}

/// D = A B [+ D] over all of k that the tiles have, A from row `M0`, B from row `N0`, of
/// stage `Stage`.
///
/// in: scale_d of the first step, the tiles as they lie in shared memory, each thread's
/// accumulators, and where A is in registers each thread's four for each step of k. out: each
/// thread's accumulators.
template <class Instruction, bool ARegisters, class OperandA, class OperandB, int M0 = 0,
          int N0 = 0, int Stage = 0>
struct Multiply {
  using Params = Words;
  using Element = ElementBits<element_bits(Instruction::value)>;
  using TileA = SharedTile<Element, OperandA::layout>;
  using TileB = SharedTile<Element, OperandB::layout>;
  using SharedStorage = OperandTiles<TileA, TileB>;
  static constexpr int threads = 128;
  static constexpr int min_ctas_per_sm = 1;
  static constexpr int architecture = 90;
  static constexpr Dim3 grid() { return {1, 1, 1}; }

  static constexpr MmaSpec op = [] {
    MmaSpec spec = Instruction::value;
    spec.operands = ARegisters ? MmaOperands::rs : MmaOperands::ss;
    return spec;
  }();
  static constexpr bool a_in_registers = ARegisters;
  static constexpr int m0 = M0;
  static constexpr int n0 = N0;
  static constexpr int stage = Stage;
  static constexpr int K = op.k;
  static constexpr int steps = static_cast<int>(OperandB::layout.layout[1].size()) / K;
  static constexpr int registers = d_registers(op);
  static constexpr int a_words = sizeof(TileA) / 4;
  static constexpr int b_words = sizeof(TileB) / 4;
  static constexpr int a_at = 1;
  static constexpr int b_at = a_at + a_words;
  static constexpr int d_at = b_at + b_words;
  static constexpr int a_registers_at = d_at + 128 * registers;
  static constexpr int in_words = a_registers_at + (ARegisters ? 128 * 4 * steps : 0);
  static constexpr int out_words = 128 * registers;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    using Accumulator = typename MmaRegisters<op>::Accumulator;
    int const thread = thread_idx();
    SharedAddr const a_address = shared_address(smem.a.data);
    SharedAddr const b_address = shared_address(smem.b.data);
    for (int i = thread; i < a_words; i += 128)
      st_shared(a_address + static_cast<SharedAddr>(4 * i),
                ld_global<std::uint32_t>(p.in + a_at + i));
    for (int i = thread; i < b_words; i += 128)
      st_shared(b_address + static_cast<SharedAddr>(4 * i),
                ld_global<std::uint32_t>(p.in + b_at + i));
    Accumulator d[registers];
#pragma unroll
    for (int i = 0; i < registers; ++i)
      d[i] = ld_global<Accumulator>(p.in + d_at + registers * thread + i);
    std::uint32_t a[steps][4];
    if constexpr (ARegisters) {
#pragma unroll
      for (int i = 0; i < 4 * steps; ++i)
        a[i / 4][i % 4] = ld_global<std::uint32_t>(p.in + a_registers_at + 4 * steps * thread + i);
    }
    bool const scale_d = ld_global<std::uint32_t>(p.in) != 0;
    fence_proxy_async_shared();
    cta::sync();

    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      if constexpr (ARegisters) {
        wgmma<op>(d, a[step], operand<Stage>(tensor(smem.b), N0, K * step), scale_d || step > 0);
      } else {
        wgmma<op>(d, operand<Stage>(tensor(smem.a), M0, K * step),
                  operand<Stage>(tensor(smem.b), N0, K * step), scale_d || step > 0);
      }
      if (step % 2 == 1) wgmma_commit_group();
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
    wgmma_pin(d);
#pragma unroll
    for (int i = 0; i < registers; ++i) st_global(p.out + registers * thread + i, d[i]);
  }
};

/// K-major tiles of rows of `k_bytes` bytes for A (`m` rows) and B (`n` rows).
template <class Op, bool ARegisters, int k_bytes = 64, int m = 64, int n = Op::value.n,
          int stages = 1, int M0 = 0, int N0 = 0>
using KMajor = Multiply<
    Op, ARegisters,
    Swizzled<element_bits(Op::value), m, 8 * k_bytes / element_bits(Op::value), false, stages>,
    Swizzled<element_bits(Op::value), n, 8 * k_bytes / element_bits(Op::value), false, stages>, M0,
    N0, stages - 1>;

/// Tiles of 32 columns of 16-bit elements, each contiguous as the instruction says.
template <class Op, bool ARegisters = false, int m = 64, int n = Op::value.n, int M0 = 0,
          int N0 = 0, int stages = 1>
using EitherMajor =
    Multiply<Op, ARegisters, Swizzled<16, m, 32, Op::value.a_major == Major::mn, stages>,
             Swizzled<16, n, 32, Op::value.b_major == Major::mn, stages>, M0, N0, stages - 1>;

template <class Op>
using Unswizzled = Multiply<Op, false,
                            Pieces<element_bits(Op::value), 64, 512 / element_bits(Op::value),
                                   Op::value.a_major == Major::mn>,
                            Pieces<element_bits(Op::value), Op::value.n,
                                   512 / element_bits(Op::value), Op::value.b_major == Major::mn>>;

using enum DType;

/// Every type, from shared memory and from registers.
using TypeKernels =
    Kernels<KMajor<Plain<bf16, bf16, 64>, false>, KMajor<Plain<bf16, bf16, 64>, true>,
            KMajor<Plain<f16, f16, 64>, false>, KMajor<Plain<f16, f16, 64>, true>,
            KMajor<Plain<tf32, tf32, 64>, false>, KMajor<Plain<tf32, tf32, 64>, true>,
            KMajor<Plain<e4m3, e4m3, 64>, false>, KMajor<Plain<e4m3, e4m3, 64>, true>,
            KMajor<Plain<e4m3, e5m2, 64>, false>, KMajor<Plain<e4m3, e5m2, 64>, true>,
            KMajor<Plain<e5m2, e4m3, 64>, false>, KMajor<Plain<e5m2, e4m3, 64>, true>,
            KMajor<Plain<e5m2, e5m2, 64>, false>, KMajor<Plain<e5m2, e5m2, 64>, true>,
            KMajor<Plain<s8, s8, 64>, false>, KMajor<Plain<s8, s8, 64>, true>,
            KMajor<Plain<s8, u8, 64>, false>, KMajor<Plain<s8, u8, 64>, true>,
            KMajor<Plain<u8, s8, 64>, false>, KMajor<Plain<u8, s8, 64>, true>,
            KMajor<Plain<u8, u8, 64>, false>, KMajor<Plain<u8, u8, 64>, true>,
            KMajor<Halves<f16, f16, 64>, false>, KMajor<Halves<f16, f16, 64>, true>,
            KMajor<Halves<e4m3, e4m3, 64>, false>, KMajor<Halves<e4m3, e5m2, 64>, true>,
            KMajor<Halves<e5m2, e4m3, 64>, false>, KMajor<Halves<e5m2, e5m2, 64>, true>>;

/// Widths of D.
using WidthKernels =
    Kernels<KMajor<Plain<bf16, bf16, 8>, false>, KMajor<Plain<bf16, bf16, 16>, true>,
            KMajor<Plain<bf16, bf16, 24>, false>, KMajor<Plain<bf16, bf16, 40>, false>,
            KMajor<Plain<bf16, bf16, 88>, true>, KMajor<Plain<bf16, bf16, 96>, false>,
            KMajor<Plain<bf16, bf16, 128>, false>, KMajor<Plain<bf16, bf16, 136>, false>,
            KMajor<Plain<bf16, bf16, 192>, true>, KMajor<Plain<bf16, bf16, 248>, false>,
            KMajor<Plain<bf16, bf16, 256>, false>, KMajor<Plain<bf16, bf16, 256>, true>,
            KMajor<Plain<s8, s8, 8>, false>, KMajor<Plain<s8, s8, 24>, true>,
            KMajor<Plain<u8, u8, 240>, false>, KMajor<Plain<s8, u8, 256>, true>,
            KMajor<Halves<f16, f16, 8>, false>, KMajor<Halves<f16, f16, 200>, true>,
            KMajor<Halves<f16, f16, 256>, false>, KMajor<Plain<tf32, tf32, 104>, false>,
            KMajor<Plain<e4m3, e4m3, 256>, false>>;

/// Swizzles of 128, 32 and 0 bytes (those above have 64), parts of tiles, and stages.
using TileKernels =
    Kernels<KMajor<Plain<bf16, bf16, 64>, false, 128>, KMajor<Plain<bf16, bf16, 64>, false, 32>,
            KMajor<Plain<bf16, bf16, 64>, true, 256>, KMajor<Plain<tf32, tf32, 32>, false, 128>,
            KMajor<Plain<tf32, tf32, 32>, false, 32>, KMajor<Plain<s8, s8, 32>, false, 128>,
            KMajor<Plain<e5m2, e5m2, 32>, false, 32>,
            KMajor<Plain<bf16, bf16, 32>, false, 128, 128, 64, 2, 64, 32>,
            KMajor<Plain<bf16, bf16, 32>, false, 64, 80, 48, 3, 16, 8>,
            Unswizzled<Plain<bf16, bf16, 64>>, Unswizzled<Plain<tf32, tf32, 16>>,
            Unswizzled<Plain<u8, u8, 32>>, Unswizzled<Majors<bf16, 64, true, true>>,
            Unswizzled<Majors<f16, 24, false, true>>, Unswizzled<Majors<f16, 48, true, false>>>;

/// Operands contiguous along m and n.
using MajorKernels =
    Kernels<EitherMajor<Majors<bf16, 64, false, true>>, EitherMajor<Majors<bf16, 64, true, false>>,
            EitherMajor<Majors<bf16, 64, true, true>>, EitherMajor<Majors<f16, 128, true, true>>,
            EitherMajor<Majors<f16, 256, false, true>>,
            EitherMajor<Majors<bf16, 128, false, true>, true>,
            EitherMajor<Majors<bf16, 32, true, true>>, EitherMajor<Majors<bf16, 16, false, true>>,
            EitherMajor<Majors<f16, 8, false, true>>, EitherMajor<Majors<f16, 96, true, true>>,
            EitherMajor<Majors<bf16, 128, true, true>, false, 128, 256, 64, 128, 2>,
            EitherMajor<Halves<f16, f16, 64, true>>>;

/// Signs and saturation.
using SignKernels =
    Kernels<KMajor<Negated<bf16, bf16, 32, true, false>, false>,
            KMajor<Negated<bf16, bf16, 32, false, true>, false>,
            KMajor<Negated<f16, f16, 32, true, true>, true>,
            KMajor<Negated<tf32, tf32, 32, true, false>, true>,
            KMajor<Negated<e4m3, e5m2, 32, false, true>, false>,
            KMajor<Saturating<s8, s8, 32>, false>, KMajor<Saturating<u8, u8, 32>, true>,
            KMajor<Saturating<u8, s8, 16>, false>>;

template <class... A, class... B> Kernels<A..., B...> both(Kernels<A...>, Kernels<B...>);
using AllKernels = decltype(both(both(TypeKernels{}, WidthKernels{}),
                                 both(both(TileKernels{}, MajorKernels{}), SignKernels{})));

}  // namespace tegula::wgmma_kernels
