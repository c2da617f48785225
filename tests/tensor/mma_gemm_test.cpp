#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "operand_tiles.hpp"
#include "schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

/// Whole products C = A B^T on mma.sync of 8-bit floats and of f64, written with tensors: any M and
/// N, a ring of stages that cp.async fills, against sums in higher precision.
namespace tegula {
namespace {

constexpr int kStages = 3;

/// A tile of f64 (mn, 16, stages). The quarter of a row that an mma.sync of f64 reads, 4 elements
/// along k, is a unit of the swizzle: four rows' quarters lie in all banks.
constexpr SwizzledLayout f64_tile(int mn) {
  return {Swizzle{2, 2, 2}, 0, layout(shape(mn, 16, kStages), stride(16, 1, 16 * mn))};
}
template <class T, int Mn, int K> struct TileOf {
  using Type = SharedTile<T, OperandTile{8 * sizeof(T), Mn, K, 1, kStages}>;
};
template <int Mn, int K> struct TileOf<double, Mn, K> {
  static_assert(K == 16);
  using Type = SharedTile<double, f64_tile(Mn)>;
};

/// `BlockK`: 128 bytes of elements, which eight threads copy, 16 bytes each.
template <MmaSpec S, int BlockM, int BlockN> struct WarpGemm {
  using A = type_of<S.a>;
  using B = type_of<S.b>;
  using C = type_of<S.d>;
  struct Params {
    int m, n, k;  // k is a multiple of 16 bytes of elements
    A const* a;   // (m, k), k contiguous
    B const* b;   // (n, k), k contiguous
    C* c;         // (m, n), row-major
  };
  static constexpr int threads = 128;
  static constexpr int block_m = BlockM, block_n = BlockN;
  static constexpr int block_k = 128 / static_cast<int>(sizeof(A));
  using Mma = TiledMma<TiledMmaSpec{S, block_m, block_n, 2, 2}>;
  static constexpr TiledCopySpec rows(int mn) {
    return share_rows({.threads = threads, .m = mn, .n = block_k, .vector = block_k / 8});
  }
  using CopyA = TiledCopy<rows(block_m), A>;
  using CopyB = TiledCopy<rows(block_n), B>;
  using TileA = typename TileOf<A, block_m, block_k>::Type;
  using TileB = typename TileOf<B, block_n, block_k>::Type;
  using SharedStorage = OperandTiles<TileA, TileB>;
  static constexpr sim::Limits limits = {.bank_conflicts = 0};
  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.m, block_m), ceil_div(p.n, block_n), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();
    auto const mA = whole_vectors(matrix<1>(p.a, p.k, p.m, p.k));    // (M, K)
    auto const mB = whole_vectors(matrix<1>(p.b, p.k, p.n, p.k));    // (N, K)
    auto const mC = matrix<1>(p.c, p.n, p.m, p.n);                   // (M, N)
    auto const gA = local_tile<block_m, block_k>(mA, cta.x, _);      // (block_m, block_k, k_tiles)
    auto const gB = local_tile<block_n, block_k>(mB, cta.y, _);      // (block_n, block_k, k_tiles)
    auto const gC = local_tile<block_m, block_n>(mC, cta.x, cta.y);  // (block_m, block_n)
    auto const sA = tensor(smem.a);                                  // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);                                  // (block_n, block_k, stages)
    Mma const mma{thread};
    auto const tCsA = mma.partition_a(sA);  // by ldmatrix (loads, MMA_K, stages), or of f64
    auto const tCsB = mma.partition_b(sB);  // elements (MMA, MMA_MN, MMA_K, stages)
    auto const tCgC = mma.partition_c(gC);  // (MMA, MMA_M, MMA_N)
    typename Mma::Accumulator tCrC;         // (MMA, MMA_M, MMA_N)

    int const k_tiles = ceil_div(p.k, block_k);
    auto const load = [&](int k_tile, int stage) {
      if (k_tile < k_tiles) {
        copy(CopyA{thread}, gA(_, _, k_tile), sA(_, _, stage));
        copy(CopyB{thread}, gB(_, _, k_tile), sB(_, _, stage));
      }
      cp_async_commit_group();
    };
    clear(tCrC);
    for (int stage = 0; stage < kStages - 1; ++stage) load(stage, stage);
    int read = 0, write = kStages - 1;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      cp_async_wait_group<kStages - 2>();
      cta::sync();
      load(k_tile + kStages - 1, write);
      if constexpr (S.a == DType::f64) {
        typename Mma::template FragmentA<block_k> tCrA;  // (MMA, MMA_M, MMA_K)
        typename Mma::template FragmentB<block_k> tCrB;  // (MMA, MMA_N, MMA_K)
        copy(tCsA(_, _, _, read), tCrA);
        copy(tCsB(_, _, _, read), tCrB);
        gemm(mma, tCrA, tCrB, tCrC);
      } else {
        gemm<2>(mma, tCsA(_, _, read), tCsB(_, _, read), tCrC);
      }
      read = next_stage<kStages>(read), write = next_stage<kStages>(write);
    }
    copy(tCrC, tCgC);
  }
};

template <class T> T rounded_to(double x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return from_float<T>(static_cast<float>(x));
}
template <class T> double value_of(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return to_float(x);
}

/// Runs a kernel at several schedules and holds every element against a sum of more bits. An
/// element may be off by `relative` times the sum of its products' magnitudes.
template <class Kernel> void check_gemm(int m, int n, int k, double relative) {
  SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
  std::mt19937 random(static_cast<unsigned>(m + n + k));
  auto const draw = [&]<class T>(std::vector<T>& values) {
    std::normal_distribution<double> normal;
    for (T& x : values) x = rounded_to<T>(normal(random));
  };
  auto const size = [](int rows, int columns) { return static_cast<std::size_t>(rows * columns); };
  std::vector<typename Kernel::A> a(size(m, k));
  std::vector<typename Kernel::B> b(size(n, k));
  draw(a), draw(b);
  using C = typename Kernel::C;
  std::vector<C> first;
  for (sim::Options const& options : every_schedule(1, {.generation = sim::Generation::sm90})) {
    sim::Machine machine(options);
    auto const upload = [&]<class T>(std::vector<T> const& values, char const* name) {
      auto* const device = static_cast<T*>(machine.allocate(values.size() * sizeof(T), name));
      machine.upload(device, values.data(), values.size() * sizeof(T));
      return device;
    };
    std::vector<C> c(size(m, n));
    auto* const on_device = static_cast<C*>(machine.allocate(c.size() * sizeof(C), "C"));
    typename Kernel::Params const params{m, n, k, upload(a, "A"), upload(b, "B"), on_device};
    sim::Report const report = sim::launch<Kernel>(machine, Kernel::grid(params), params);
    ASSERT_TRUE(report.findings.empty()) << report.text();
    machine.download(c.data(), on_device, c.size() * sizeof(C));
    if (first.empty()) first = c;
    for (std::size_t i = 0; i < c.size(); ++i)
      ASSERT_EQ(value_of(c[i]), value_of(first[i])) << "at " << schedule_text(options);
  }
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      long double sum = 0, magnitudes = 0;
      for (int l = 0; l < k; ++l) {
        long double const product = static_cast<long double>(value_of(a[size(i, k) + size(l, 1)])) *
                                    value_of(b[size(j, k) + size(l, 1)]);
        sum += product, magnitudes += std::fabs(product);
      }
      long double const got = value_of(first[size(i, n) + size(j, 1)]);
      ASSERT_LE(std::fabs(got - sum), relative * magnitudes) << "row " << i << ", column " << j;
    }
  }
}

// An element takes two steps of 16 products and one addition for every 32 of k. A step cuts 17
// terms 25 bits below the largest, and its sum to 24 bits; wgmma, which keeps 13 bits, would not
// pass.
TEST(MmaGemm, EightBitFloatsAreSummedInTwentyFourBits) {
  using enum DType;
  constexpr double step = 17 * 0x1p-25 + 0x1p-23;
  auto const bound = [](int k) { return ceil_div(k, 32) * (2 * step + 0x1p-24); };
  check_gemm<WarpGemm<warp_mma(e4m3, e5m2, f32, 32), 64, 64>>(100, 75, 336, bound(336));
  check_gemm<WarpGemm<warp_mma(e4m3, e4m3, f32, 32), 64, 32>>(64, 32, 16, bound(16));
}

TEST(MmaGemm, EightBitFloatsIntoHalves) {
  using enum DType;
  // two sums and one addition for every 16 of k, each rounded to 11 bits
  check_gemm<WarpGemm<warp_mma(e5m2, e4m3, f16, 16), 64, 32>>(70, 33, 144, 9 * 3 * 0x1p-11);
}

// Each of k multiply-adds rounds to 53 bits.
TEST(MmaGemm, DoublesAreSummedInFiftyThreeBits) {
  using enum DType;
  check_gemm<WarpGemm<warp_mma(f64, f64, 16), 64, 32>>(100, 50, 70, 70 * 0x1p-53);
  check_gemm<WarpGemm<warp_mma(f64, f64, 8), 64, 32>>(64, 32, 16, 16 * 0x1p-53);
  check_gemm<WarpGemm<warp_mma(f64, f64, 4), 32, 32>>(33, 31, 34, 34 * 0x1p-53);
  check_gemm<WarpGemm<warp_mma(f64, f64, f64, 4, 8), 32, 32>>(33, 31, 34, 34 * 0x1p-53);
}

}  // namespace
}  // namespace tegula
