#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "operand_tiles.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

/// Every MMA of arch/, reached through a tiled MMA: operands from shared memory in either major,
/// accumulators to global memory by partition_c. Values are small integers, so every sum is exact.
namespace tegula {
namespace {

struct Pointers {
  void const* a;
  void const* b;
  void* d;
};

/// One product D(m, n) = A(m, K) B(n, K)^T of a tiled MMA, by one CTA.
template <TiledMmaSpec S, int K, int ContiguousA = 1, int ContiguousB = 1> struct OneProduct {
  using Mma = TiledMma<S>;
  using Params = Pointers;
  static constexpr int threads = Mma::threads < 32 ? 32 : Mma::threads;
  static constexpr int m = Mma::m, n = Mma::n;
  using A = typename Mma::A;
  using B = typename Mma::B;
  using C = typename Mma::C;
  using TileA = SharedTile<A, OperandTile{8 * sizeof(A), m, K, ContiguousA}>;
  using TileB = SharedTile<B, OperandTile{8 * sizeof(B), n, K, ContiguousB}>;
  using SharedStorage = OperandTiles<TileA, TileB>;
  template <int Rows, int Contiguous, class T> static constexpr TiledCopySpec elements() {
    // 4 bytes at a time where rows allow, so that all widths of copies are used
    int const vector = sizeof(T) > 4 ? 1 : 4 / static_cast<int>(sizeof(T));
    return share_rows({.threads = 32,
                       .m = Rows,
                       .n = K,
                       .vector = vector,
                       .contiguous = Contiguous,
                       .block = vector * ((Contiguous == 1 ? K : Rows) / vector < 32
                                              ? (Contiguous == 1 ? K : Rows) / vector
                                              : 8)});
  }

  void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    auto const gA = local_tile<m, K>(
        matrix<ContiguousA>(static_cast<A const*>(p.a), ContiguousA == 1 ? K : m, m, K), 0, 0);
    auto const gB = local_tile<n, K>(
        matrix<ContiguousB>(static_cast<B const*>(p.b), ContiguousB == 1 ? K : n, n, K), 0, 0);
    auto const gD = local_tile<m, n>(matrix<1>(static_cast<C*>(p.d), n, m, n), 0, 0);
    if (thread < 32) {
      copy(TiledCopy<elements<m, ContiguousA, A>(), A>{thread}, gA, tensor(smem.a));
      copy(TiledCopy<elements<n, ContiguousB, B>(), B>{thread}, gB, tensor(smem.b));
      cp_async_wait_all();
    }
    fence_proxy_async_shared();
    cta::sync();
    Mma const mma{thread};
    if (thread >= Mma::threads) return;
    auto const tCsA = mma.partition_a(tensor(smem.a));
    auto const tCsB = mma.partition_b(tensor(smem.b));
    typename Mma::Accumulator tCrC;
    clear(tCrC);
    if constexpr (S.atom.operands == MmaOperands::warp) {
      typename Mma::template FragmentA<K> tCrA;
      typename Mma::template FragmentB<K> tCrB;
      copy(tCsA, tCrA);
      copy(tCsB, tCrB);
      gemm(mma, tCrA, tCrB, tCrC);
    } else if constexpr (S.atom.operands == MmaOperands::scalar) {
      gemm(mma, tCsA, tCsB, tCrC);
    } else if constexpr (S.atom.operands == MmaOperands::rs) {
      typename Mma::template FragmentA<K> tCrA;
      copy(tCsA, tCrA);
      wgmma_fence();
      gemm(mma, tCrA, tCsB, tCrC, false);
      wgmma_commit_group();
      wgmma_wait_group<0>();
    } else {
      wgmma_fence();
      gemm(mma, tCsA, tCsB, tCrC, false);
      wgmma_commit_group();
      wgmma_wait_group<0>();
    }
    copy(tCrC, mma.partition_c(gD));
  }
};

template <class T> T from_int(int x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return from_float<T>(static_cast<float>(x));
  }
}
template <class T> double to_double(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x;
  } else {
    return to_float(x);
  }
}

/// The extents of a product, and along which axis its operands are contiguous.
struct ProductShape {
  int m, n, k;
  bool a_along_k, b_along_k;
};

/// Runs a product on random integers from -3 (0 for unsigned types) to 3 and compares every
/// element.
template <class A, class B, class C>
void check_product_of(ProductShape const& shape,
                      sim::Report (*launch)(sim::Machine&, Pointers const&)) {
  auto const [m, n, k, a_along_k, b_along_k] = shape;
  std::mt19937 random(m * 1000 + n * 10 + k);
  std::vector<int> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(n * k));
  for (int& x : a)
    x = static_cast<int>(random() % 4) * (std::is_unsigned_v<A> || random() % 2 == 0 ? 1 : -1);
  for (int& x : b)
    x = static_cast<int>(random() % 4) * (std::is_unsigned_v<B> || random() % 2 == 0 ? 1 : -1);
  std::vector<A> in_a(a.size());
  std::vector<B> in_b(b.size());
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < k; ++j)
      in_a[static_cast<std::size_t>(a_along_k ? i * k + j : j * m + i)] =
          from_int<A>(a[static_cast<std::size_t>(i * k + j)]);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < k; ++j)
      in_b[static_cast<std::size_t>(b_along_k ? i * k + j : j * n + i)] =
          from_int<B>(b[static_cast<std::size_t>(i * k + j)]);

  sim::Machine machine;
  auto const upload = [&](auto const& values, char const* name) {
    std::size_t const bytes = values.size() * sizeof(values[0]);
    void* const device = machine.allocate(bytes, name);
    machine.upload(device, values.data(), bytes);
    return device;
  };
  std::vector<C> d(static_cast<std::size_t>(m * n));
  Pointers const p{upload(in_a, "a"), upload(in_b, "b"),
                   machine.allocate(sizeof(C) * d.size(), "d")};
  sim::Report const report = launch(machine, p);
  EXPECT_TRUE(report.findings.empty()) << report.text();
  machine.download(d.data(), p.d, sizeof(C) * d.size());
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(j * k + l)];
      if (to_double(d[static_cast<std::size_t>(i * n + j)]) != sum) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << m * n;
}

template <class Kernel> void check_product(std::string const& what) {
  SCOPED_TRACE(what);
  ProductShape const shape = {.m = Kernel::m,
                              .n = Kernel::n,
                              .k = static_cast<int>(Kernel::TileA::layout.layout[1].size()),
                              .a_along_k = !mn_contiguous(Kernel::TileA::layout),
                              .b_along_k = !mn_contiguous(Kernel::TileB::layout)};
  check_product_of<typename Kernel::A, typename Kernel::B, typename Kernel::C>(
      shape, [](sim::Machine& machine, Pointers const& p) {
        return sim::launch<Kernel>(machine, Dim3{1, 1, 1}, p);
      });
}

/// The depth of two instructions, and at least 16 bytes of elements a row.
template <MmaSpec S> constexpr int kTwoSteps = 2 * S.k < 16 ? 16 : 2 * S.k;

/// A build of all configurations runs every product; another one those that differ in where
/// operands lie. (Compiling them is what takes long.)
constexpr bool kAllProducts = TEGULA_ALL_PRODUCTS;

template <MmaSpec S> void check_warp_mma(char const* name) {
  check_product<OneProduct<TiledMmaSpec{S}, kTwoSteps<S>>>(std::string(name) + ", one warp");
}

/// One whose operands lie in the same registers as another's of the test.
template <MmaSpec S> void check_like_warp_mma(char const* name) {
  if constexpr (kAllProducts) check_warp_mma<S>(name);
}

/// By warps that share the tile in both ways, too: for one mma.sync of each shape and of each kind
/// of accumulators, since the others' operands lie in the same registers.
template <MmaSpec S, bool Raked = kAllProducts> void check_shared_warp_mma(char const* name) {
  check_like_warp_mma<S>(name);
  check_product<OneProduct<TiledMmaSpec{S, 64, 32, 2, 2}, kTwoSteps<S>>>(std::string(name) +
                                                                         ", 2 x 2 warps, blocked");
  if constexpr (Raked) {
    check_product<OneProduct<TiledMmaSpec{S, 64, 48, 2, 1, Share::raked}, kTwoSteps<S>>>(
        std::string(name) + ", 2 x 1 warps, raked");
  }
}

TEST(TiledMma, EveryFloatingPointMmaSync) {
  using enum DType;
  check_shared_warp_mma<warp_mma(f16, f32, 8)>("f16 k8");
  check_like_warp_mma<warp_mma(f16, f32, 16)>("f16 k16");
  check_like_warp_mma<warp_mma(bf16, f32, 8)>("bf16 k8");
  check_shared_warp_mma<warp_mma(bf16, f32, 16), true>("bf16 k16");
  check_shared_warp_mma<warp_mma(tf32, f32, 4)>("tf32 k4");
  check_shared_warp_mma<warp_mma(tf32, f32, 8)>("tf32 k8");
  check_shared_warp_mma<warp_mma(f16, f16, 8)>("f16 accumulators k8");
  check_shared_warp_mma<warp_mma(f16, f16, 16)>("f16 accumulators k16");
  check_shared_warp_mma<warp_mma(e4m3, e5m2, f32, 16)>("e4m3 e5m2 k16");
  check_shared_warp_mma<warp_mma(e5m2, e4m3, f32, 32)>("e5m2 e4m3 k32");
  check_like_warp_mma<warp_mma(e4m3, e4m3, f16, 16)>("e4m3, f16 accumulators k16");
  check_warp_mma<warp_mma(e5m2, e5m2, f16, 32)>("e5m2, f16 accumulators k32");
  check_shared_warp_mma<warp_mma(f64, f64, f64, 4, 8)>("f64 m8n8k4");
  check_like_warp_mma<warp_mma(f64, f64, 4)>("f64 k4");
  check_like_warp_mma<warp_mma(f64, f64, 8)>("f64 k8");
  check_shared_warp_mma<warp_mma(f64, f64, 16)>("f64 k16");
}

TEST(TiledMma, EveryIntegerMmaSync) {
  using enum DType;
  check_like_warp_mma<warp_mma(s8, s8, s32, 16)>("s8 s8 k16");
  check_shared_warp_mma<warp_mma(s8, u8, s32, 16)>("s8 u8 k16");
  check_like_warp_mma<warp_mma(u8, s8, s32, 16)>("u8 s8 k16");
  check_like_warp_mma<warp_mma(u8, u8, s32, 16)>("u8 u8 k16");
  check_like_warp_mma<warp_mma(s8, s8, s32, 32)>("s8 s8 k32");
  check_like_warp_mma<warp_mma(s8, u8, s32, 32)>("s8 u8 k32");
  check_shared_warp_mma<warp_mma(u8, s8, s32, 32), true>("u8 s8 k32");
  check_warp_mma<warp_mma(u8, u8, s32, 32)>("u8 u8 k32");
  check_warp_mma<warp_mma(s8, s8, s32, 32, 16, MmaVariant::saturate)>("s8 s8 k32 satfinite");
  check_shared_warp_mma<warp_mma(u8, s8, s32, 16, 8)>("u8 s8 m8n8k16");
}

TEST(TiledMma, OperandsContiguousAlongMn) {
  using enum DType;
  check_product<OneProduct<TiledMmaSpec{warp_mma(bf16, f32, 16), 64, 32, 2, 2}, 32, 0, 0>>(
      "bf16, both");
  check_product<OneProduct<TiledMmaSpec{warp_mma(f16, f32, 8), 32, 32, 2, 1}, 16, 0, 1>>(
      "f16 k8, A");
  check_product<OneProduct<TiledMmaSpec{warp_mma(tf32, f32, 8), 32, 32, 1, 2}, 16, 0, 0>>(
      "tf32: plain loads");
  check_product<OneProduct<TiledMmaSpec{warp_mma(s8, s8, s32, 32), 32, 32, 1, 2}, 64, 0, 0>>(
      "s8: plain loads");
  check_product<OneProduct<TiledMmaSpec{warp_mma(e4m3, f32, 32), 32, 32, 1, 2}, 64, 1, 0>>(
      "e4m3, B: plain loads");
  check_product<OneProduct<TiledMmaSpec{warp_mma(f64, f64, 8), 32, 32, 1, 2}, 16, 0, 0>>(
      "f64: plain loads");
}

TEST(TiledMma, EveryWgmmaOfSharedMemory) {
  using enum DType;
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(bf16, bf16, f32, 64)}, 64>>("bf16");
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(f16, f16, f16, 32)}, 64>>("f16 into f16");
  check_product<
      OneProduct<TiledMmaSpec{warpgroup_mma(f16, f16, f32, 64, Major::mn, Major::mn)}, 64, 0, 0>>(
      "f16, MN-major");
  check_product<
      OneProduct<TiledMmaSpec{warpgroup_mma(bf16, bf16, f32, 128, Major::k, Major::mn)}, 64, 1, 0>>(
      "bf16, B MN-major");
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(tf32, tf32, f32, 24)}, 32>>("tf32");
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(e4m3, e4m3, f32, 16)}, 128>>("e4m3");
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(e5m2, e4m3, f16, 16)}, 64>>(
      "e5m2 e4m3 into f16");
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(s8, u8, s32, 16)}, 128>>("s8 u8");
  check_product<OneProduct<TiledMmaSpec{warpgroup_mma(bf16, bf16, f32, 64), 256, 64, 2, 1}, 64>>(
      "bf16, two warpgroups, blocked");
  check_product<OneProduct<
      TiledMmaSpec{warpgroup_mma(bf16, bf16, f32, 32), 256, 64, 2, 1, Share::raked}, 64>>(
      "bf16, two warpgroups, raked");
}

TEST(TiledMma, EveryWgmmaWithAInRegisters) {
  using enum DType;
  using enum Major;
  using enum MmaOperands;
  check_product<
      OneProduct<TiledMmaSpec{warpgroup_mma(bf16, bf16, f32, 64, Major::k, Major::k, rs)}, 64>>(
      "bf16");
  check_product<OneProduct<
      TiledMmaSpec{warpgroup_mma(f16, f16, f32, 64, Major::k, Major::mn, rs), 128}, 64, 1, 0>>(
      "f16, 128 rows, B MN-major");
  check_product<
      OneProduct<TiledMmaSpec{warpgroup_mma(tf32, tf32, f32, 16, Major::k, Major::k, rs)}, 32>>(
      "tf32");
  check_product<
      OneProduct<TiledMmaSpec{warpgroup_mma(e4m3, e5m2, f32, 16, Major::k, Major::k, rs)}, 128>>(
      "e4m3 e5m2");
  check_product<
      OneProduct<TiledMmaSpec{warpgroup_mma(u8, s8, s32, 16, Major::k, Major::k, rs)}, 64>>(
      "u8 s8");
}

TEST(TiledMma, PlainMultiplyAdds) {
  check_product<OneProduct<TiledMmaSpec{scalar_fma(DType::f32), 32, 32, 8, 8}, 8>>(
      "8 x 8 threads, blocked");
  check_product<
      OneProduct<TiledMmaSpec{scalar_fma(DType::f32), 32, 64, 8, 8, Share::raked}, 8, 0, 0>>(
      "8 x 8 threads, raked");
}

}  // namespace
}  // namespace tegula
