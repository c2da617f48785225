#pragma once

#include <cstdint>

#include "tegula/arch/math.hpp"
#include "tegula/arch/mma_sync.hpp"
#include "tegula/tensor/part_copy.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tiled_mma.hpp"

/// gemm(mma, a, b, c): c += a b^T, by whatever the tiled MMA's instruction is: mma.sync and fma
/// here, wgmma in tensor/warpgroup_gemm.hpp (a header of its own: its operand lists take a compiler
/// half a second).
namespace tegula {

namespace detail {

/// The largest divisor of `value` that is at most `bound`.
constexpr int largest_divisor(int value, int bound) {
  int divisor = bound < value ? bound : value;
  while (value % divisor != 0) --divisor;
  return divisor;
}
template <int Value, int Bound> struct LargestDivisor {
  static constexpr int value = largest_divisor(Value, Bound);
};

/// The operands of a product must have one depth, and the accumulators its extents.
template <class MC, int M, int N> TEGULA_DEVICE constexpr void check_accumulators() {
  static_assert(MC::rank == 3,
                "gemm: accumulators have modes (of the atom, MMA_M, MMA_N): TiledMma::Accumulator");
  static_assert(mode_size<mode_at<1, MC>> == M, "gemm: a and the accumulators differ in MMA_M");
  static_assert(mode_size<mode_at<2, MC>> == N, "gemm: b and the accumulators differ in MMA_N");
}
template <int Ka, int Kb> TEGULA_DEVICE constexpr void check_depth() {
  static_assert(Ka == Kb, "gemm: a and b differ in MMA_K: the operands have different K");
}

/// One mma.sync on registers of the operands.
template <MmaSpec S, class T, class M>
TEGULA_DEVICE void mma_step(Fragment<T, M>& c, int tile, typename MmaRegisters<S>::A const& a,
                            typename MmaRegisters<S>::B const& b, SourceLocation where) {
  constexpr int registers = MmaRegisters<S>::d_count;
  c.check_written(registers * tile, registers, where);
  auto& d = c.template take<registers>(registers * tile);
  mma_sync<S>(d, a, b, d, where);
}

template <class A> inline constexpr bool is_fragment = false;
template <class T, class M> inline constexpr bool is_fragment<Fragment<T, M>> = true;
template <class A> inline constexpr bool is_rounded = false;
template <class T, class F, class O> inline constexpr bool is_rounded<Rounded<T, F, O>> = true;

}  // namespace detail

/// c += a b^T, all in registers: a (of the atom, MMA_M, MMA_K), b (of the atom, MMA_N, MMA_K), c
/// (of the atom, MMA_M, MMA_N). Back and forth along n, so that neighbouring instructions share
/// an operand.
template <TiledMmaSpec S, class TA, class MA, class TB, class MB, class TC, class MC>
requires(S.atom.operands == MmaOperands::warp) TEGULA_DEVICE
    void gemm(TiledMma<S> const&, Fragment<TA, MA> const& a, Fragment<TB, MB> const& b,
              Fragment<TC, MC>& c, SourceLocation where = SourceLocation::current()) {
  constexpr int M = mode_size<mode_at<1, MA>>, N = mode_size<mode_at<1, MB>>,
                K = mode_size<mode_at<2, MA>>;
  constexpr int ra = MmaRegisters<S.atom>::a_count, rb = MmaRegisters<S.atom>::b_count;
  detail::check_depth<K, mode_size<mode_at<2, MB>>>();
  detail::check_accumulators<MC, M, N>();
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        int const n = m % 2 == 0 ? i : N - 1 - i;
        detail::mma_step<S.atom>(c, m + M * n, a.template take<ra>(ra * (m + M * k), where),
                                 b.template take<rb>(rb * (n + N * k), where), where);
      }
    }
  }
}

/// What the instruction does not multiply, said in a sentence.
template <TiledMmaSpec S, class A, class B, class TC, class MC>
requires(S.atom.operands == MmaOperands::warp &&
         !(detail::is_fragment<A> && detail::is_fragment<B>)) TEGULA_DEVICE
    void gemm(TiledMma<S> const&, A const&, B const&, Fragment<TC, MC>&,
              SourceLocation = SourceLocation::current()) {
  static_assert(sizeof(A) == 0,
                "gemm: mma.sync multiplies two fragments; operands in shared memory: "
                "gemm<Ahead>(mma, a, b, c)");
}

/// c += a b^T over all of K: b is a thread's part of a tile in shared memory, loaded by ldmatrix a
/// step before it is used, a step being at most `Ahead` loads; a is that too, or in registers
/// (TiledMma::operand_a). (a's loads are not hidden: their registers are worth more.)
template <int Ahead, TiledMmaSpec S, class A, class Tile, class Threads, CopyOp Op, int Moved,
          class MB, class TC, class MC>
requires(S.atom.operands == MmaOperands::warp) TEGULA_DEVICE
    void gemm(TiledMma<S> const&, A const& a, Tensor<Shared<Tile, Threads, Op, Moved>, MB> const& b,
              Fragment<TC, MC>& c, SourceLocation where = SourceLocation::current()) {
  static_assert(MB::rank == 2 && Op != CopyOp::universal,
                "gemm: b is loaded by ldmatrix, (loads along n, MMA_K)");
  constexpr int M = mode_size<mode_at<1, MC>>, N = mode_size<mode_at<2, MC>>,
                K = mode_size<mode_at<1, MB>>;
  constexpr int loads = mode_size<mode_at<0, MB>>;  // along n, each of some tiles
  static_assert(N % loads == 0, "gemm: b and the accumulators differ in MMA_N");
  constexpr int tiles = N / loads, ra = a_registers(S.atom), rb = b_registers(S.atom);
  constexpr int block = detail::LargestDivisor<loads, Ahead>::value, blocks = loads / block;
  std::uint32_t own_a[M][ra];
  std::uint32_t own_b[2][block][tiles * rb];
  auto const fetch = [&](int step) {
#pragma unroll
    for (int i = 0; i < block; ++i)
      detail::load_matrices(b, own_b[step % 2][i], where, step % blocks * block + i, step / blocks);
  };
  auto const fetch_a = [&](int k) {
    if constexpr (detail::is_rounded<A>) {
#pragma unroll
      for (int i = 0; i < M * ra; ++i) own_a[i / ra][i % ra] = a.reg(i + M * ra * k, where);
    } else if constexpr (detail::is_fragment<A>) {
#pragma unroll
      for (int i = 0; i < M * ra; ++i)
        own_a[i / ra][i % ra] = a.read_word(A::per_register * (i + M * ra * k), where);
    } else {
      constexpr int loads_a = mode_size<mode_at<0, typename A::Map>>;
      detail::check_depth<mode_size<mode_at<1, typename A::Map>>, K>();
      static_assert(M % loads_a == 0, "gemm: a and the accumulators differ in MMA_M");
      constexpr int r = M * ra / loads_a;
      auto& flat = reinterpret_cast<std::uint32_t(&)[loads_a][r]>(own_a);
#pragma unroll
      for (int m = 0; m < loads_a; ++m) detail::load_matrices(a, flat[m], where, m, k);
    }
  };
  fetch(0);
#pragma unroll
  for (int step = 0; step < K * blocks; ++step) {
    if (step + 1 < K * blocks) fetch(step + 1);
    int const k = step / blocks, first = step % blocks * block;
    if (first == 0) fetch_a(k);
#pragma unroll
    for (int i = 0; i < block; ++i) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          std::uint32_t rb_tile[rb];
#pragma unroll
          for (int r = 0; r < rb; ++r) rb_tile[r] = own_b[step % 2][i][rb * tile + r];
          detail::mma_step<S.atom>(c, m + M * (tiles * (first + i) + tile), own_a[m], rb_tile,
                                   where);
        }
      }
    }
  }
}

/// c += a b^T by one thread's own fma: a (M, K), b (N, K) and c (M, N) are its parts of tensors in
/// any space, as local_partition makes them; a and b are read a depth at a time. (CuTe: gemm(tCsA,
/// tCsB, tCrC).)
template <class SA, class MA, class SB, class MB, class TC, class MC>
TEGULA_DEVICE void gemm(Tensor<SA, MA> const& a, Tensor<SB, MB> const& b, Fragment<TC, MC>& c,
                        SourceLocation where = SourceLocation::current()) {
  static_assert(MA::rank == 2 && MB::rank == 2,
                "gemm: a thread's operands have modes (MN, K); slice the rest");
  constexpr int M = mode_size<mode_at<0, MA>>, N = mode_size<mode_at<0, MB>>,
                K = mode_size<mode_at<1, MA>>;
  detail::check_depth<K, mode_size<mode_at<1, MB>>>();
  static_assert(map_size<MC> == M * N,
                "gemm: the accumulators must be as many as a's M times b's N");
#pragma unroll
  for (int k = 0; k < K; ++k) {
    auto const a_k = a(_, k, where);
    auto const b_k = b(_, k, where);
    auto own_a = make_fragment_like(a_k);
    auto own_b = make_fragment_like(b_k);
    copy(a_k, own_a, where);
    copy(b_k, own_b, where);
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        c.set(m + M * n, fma(own_a.data[m], own_b.data[n], c.value(m + M * n, where)), where);
    }
  }
}

/// The same by a tiled MMA of fma: a and b are a thread's elements, (1, MMA_MN, MMA_K).
template <TiledMmaSpec S, class SA, class MA, class SB, class MB, class TC, class MC>
requires(S.atom.operands == MmaOperands::scalar) TEGULA_DEVICE
    void gemm(TiledMma<S> const&, Tensor<SA, MA> const& a, Tensor<SB, MB> const& b,
              Fragment<TC, MC>& c, SourceLocation where = SourceLocation::current()) {
  static_assert(MA::rank == 3 && MB::rank == 3,
                "gemm: operands have modes (1, MMA_MN, MMA_K); slice the stage");
  detail::check_accumulators<MC, mode_size<mode_at<1, MA>>, mode_size<mode_at<1, MB>>>();
  gemm(a(0, _, _, where), b(0, _, _, where), c, where);
}

}  // namespace tegula
