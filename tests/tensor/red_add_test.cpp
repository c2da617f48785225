#include "tegula/tensor/red_add.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

/// red_add: products whose K is split over CTAs, edges that cut vectors, and how wide the vectors
/// are.
namespace tegula {
namespace {

constexpr int kBlock = 64, kPartOfK = 32;

/// D += A B^T, a part of K for each CTA along z: bf16 A (M, K) and B (N, K), K contiguous; D (M,
/// N), row-major, of `Out`. `Most`: elements that are added together.
template <class Out, int Most> struct SplitK {
  struct Params {
    int m, n, k;
    bfloat16 const *a, *b;
    Out* d;
    std::int64_t ld;
  };
  static constexpr int threads = 128, min_ctas_per_sm = 1;
  using Mma = TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), kBlock, kBlock, 2, 2}>;
  using Copy = TiledCopy<share_rows({.threads = threads, .m = kBlock, .n = kPartOfK, .vector = 8}),
                         bfloat16>;
  using Tile = SharedTile<bfloat16, OperandTile{16, kBlock, kPartOfK, 1}>;
  struct SharedStorage {
    Tile a, b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();
    auto const mA = whole_vectors(matrix<1>(p.a, p.k, p.m, p.k));
    auto const mB = whole_vectors(matrix<1>(p.b, p.k, p.n, p.k));
    auto const mD = matrix<1>(p.d, p.ld, p.m, p.n);
    copy(Copy{thread}, local_tile<kBlock, kPartOfK>(mA, cta.x, cta.z), tensor(smem.a));
    copy(Copy{thread}, local_tile<kBlock, kPartOfK>(mB, cta.y, cta.z), tensor(smem.b));
    cp_async_commit_group();
    cp_async_wait_group<0>();
    cta::sync();
    typename Mma::Accumulator c;
    clear(c);
    gemm<2>(Mma{}, Mma{thread}.partition_a(tensor(smem.a)), Mma{thread}.partition_b(tensor(smem.b)),
            c);
    auto const tCgD = Mma{thread}.partition_c(local_tile<kBlock, kBlock>(mD, cta.x, cta.y));
    if constexpr (std::is_same_v<Out, float>) {
      red_add<Most>(c, tCgD);
    } else {
      red_add<Most>(convert<Out>(c), tCgD);
    }
  }
};

template <class T> T number(int i) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(i);
  } else {
    return from_float<T>(static_cast<float>(i));
  }
}
template <class T> float value(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<float>(x);
  } else {
    return to_float(x);
  }
}
template <class T>
T* upload(sim::Machine& machine, std::vector<T> const& values, char const* name) {
  T* const p = static_cast<T*>(machine.allocate(values.size() * sizeof(T), name));
  machine.upload(p, values.data(), values.size() * sizeof(T));
  return p;
}

/// Small integers, so that no sum is rounded.
template <class Out, int Most> void split_k(int m, int n, int parts, sim::Options const& options) {
  int const k = parts * kPartOfK;
  std::int64_t const ld = n + n % 2;
  std::vector<bfloat16> a, b;
  for (int i = 0; i < m * k; ++i) a.push_back(number<bfloat16>(i * 7 % 5 - 2));
  for (int i = 0; i < n * k; ++i) b.push_back(number<bfloat16>(i * 11 % 3 - 1));
  std::vector<Out> d;
  for (int i = 0; i < m * ld; ++i) d.push_back(number<Out>(i % 9));
  sim::Machine machine(options);
  using Kernel = SplitK<Out, Most>;
  typename Kernel::Params const p{
      m, n, k, upload(machine, a, "A"), upload(machine, b, "B"), upload(machine, d, "D"), ld};
  Dim3 const grid = {ceil_div(m, kBlock), ceil_div(n, kBlock), parts};
  sim::Report const report = sim::launch<Kernel>(machine, grid, p);
  EXPECT_TRUE(report.ok()) << report.text();
  std::vector<Out> result(d.size());
  machine.download(result.data(), p.d, result.size() * sizeof(Out));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < ld; ++j) {
      float expected = value(d[static_cast<std::size_t>(i * ld + j)]);
      for (int l = 0; l < k && j < n; ++l)
        expected += value(a[static_cast<std::size_t>(i * k + l)]) *
                    value(b[static_cast<std::size_t>(j * k + l)]);
      ASSERT_EQ(value(result[static_cast<std::size_t>(i * ld + j)]), expected) << i << ", " << j;
    }
  }
}

TEST(RedAdd, ProductsWhoseKIsSplit) {
  for (auto const interleaving : {sim::Interleaving::one_warp_ahead, sim::Interleaving::random}) {
    sim::Options const options = {.interleaving = interleaving, .seed = 3};
    split_k<float, 8>(64, 64, 1, options);
    split_k<float, 8>(70, 65, 3, options);  // the edge cuts vectors
    split_k<half, 8>(65, 71, 3, options);
    split_k<bfloat16, 1>(65, 71, 2, options);
  }
  split_k<float, 1>(70, 65, 3, {.generation = sim::Generation::sm80});
  split_k<half, 2>(70, 65, 3, {.generation = sim::Generation::sm80});
}

/// How wide the vectors are that a part's map lets be added together.
template <class Part, int Most>
inline constexpr int width =
    detail::ReducedVector<typename Part::Map, Part::Space::unit, Part::Space::rank, Most>::value;

TEST(RedAdd, VectorsAreAsWideAsTheMapLets) {
  float* const data = nullptr;
  using Mma = typename SplitK<float, 8>::Mma;
  auto const tile = local_tile<kBlock, kBlock>(matrix<1>(data, 64, 64, 64), 0, 0);
  auto const turned = local_tile<kBlock, kBlock>(matrix<0>(data, 64, 64, 64), 0, 0);
  // A thread of mma.sync has two neighbours of a row, and none of a column.
  EXPECT_EQ((width<decltype(Mma{0}.partition_c(tile)), 4>), 2);
  EXPECT_EQ((width<decltype(Mma{0}.partition_c(turned)), 4>), 1);
  EXPECT_EQ((width<decltype(local_tile<1, 8>(tile, 0, 0)), 4>), 4);
  EXPECT_EQ((width<decltype(local_tile<1, 8>(tile, 0, 0)), 8>), 8);
  EXPECT_EQ((width<decltype(local_tile<1, 6>(matrix<1>(data, 64, 64, 64), 0, 0)), 4>), 2);
  EXPECT_EQ((width<decltype(local_tile<2, 8>(tile, 0, 0)), 4>), 1);  // the rows come first
}

/// A warp adds a row of `Columns` to each row of a matrix with an edge, by a tiled copy.
template <class T, int Vector, bool Whole> struct AddsRows {
  struct Params {
    T* out;
    int rows, columns;
  };
  static constexpr int threads = 32, tile_rows = 8, tile_columns = 32, pitch = 40;
  using SharedStorage = char;
  using Copy = TiledCopy<
      share_rows({.threads = threads, .m = tile_rows, .n = tile_columns, .vector = Vector}), T>;
  void operator()(Params const& p, SharedStorage&) const {
    auto const all = matrix<1>(p.out, pitch, p.rows, p.columns);
    Copy const by{thread_idx()};
    auto const add = [&](auto const& tile) {
      auto values = make_fragment_like(by.partition(tile));
      auto const at = by.partition(coordinates_of(tile));
      for (int i = 0; i < values.size; ++i) {
        Coordinate<2> const c =
            at.space.template at<typename decltype(at)::Map>(SourceLocation{}, i);
        T const value = number<T>(100 * (c[0] % 2) + c[1]);
        if constexpr (decltype(values)::whole_registers) {
          values(i, SourceLocation{}) = value;
        } else {
          values.set(i, value, SourceLocation{});
        }
      }
      red_add(by, values, tile);
    };
    if constexpr (Whole) {
      add(local_tile<tile_rows, tile_columns>(whole_vectors(all), 0, 0));
    } else {
      add(local_tile<tile_rows, tile_columns>(all, 0, 0));
    }
  }
};

template <class T, int Vector, bool Whole> void adds_rows(int columns) {
  using Kernel = AddsRows<T, Vector, Whole>;
  std::vector<T> out(std::size_t{8 * Kernel::pitch}, number<T>(3));
  sim::Machine machine(sim::Options{});
  T* const p = upload(machine, out, "out");
  sim::Report const report = sim::launch<Kernel>(machine, {1, 1, 1}, {p, 7, columns});
  EXPECT_TRUE(report.ok()) << report.text();
  machine.download(out.data(), p, out.size() * sizeof(T));
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < Kernel::pitch; ++j) {
      int const added = i < 7 && j < columns ? 100 * (i % 2) + j : 0;
      ASSERT_EQ(value(out[static_cast<std::size_t>(Kernel::pitch * i + j)]),
                static_cast<float>(3 + added))
          << i << ", " << j << " of " << columns;
    }
  }
}

TEST(RedAdd, ATiledCopysVectorsAndAnEdge) {
  for (int columns = 0; columns <= 32; ++columns) {
    adds_rows<half, 8, false>(columns);
    adds_rows<float, 4, false>(columns);
    adds_rows<bfloat16, 2, false>(columns);
    adds_rows<std::int32_t, 4, false>(columns);  // one at a time
    if (columns % 8 == 0) adds_rows<half, 8, true>(columns);
  }
}

/// A part that begins at an odd column.
struct AddsAtAnOddColumn {
  struct Params {
    float* out;
  };
  static constexpr int threads = 32;
  using SharedStorage = char;
  void operator()(Params const& p, SharedStorage&) const {
    auto const all = matrix<1>(p.out + 1, 40, 1, 32);
    auto const part = local_tile<1, 4>(all, 0, 0);
    auto values = make_fragment_like(part);
    clear(values);
    if (thread_idx() == 0) red_add(values, part);
    if (thread_idx() == 1) red_add<1>(values, part);
  }
};

TEST(RedAdd, VectorsBeginAtMultiplesOfTheirSize) {
  sim::Machine machine({.throw_on_finding = false});
  float* const out = upload(machine, std::vector<float>(64), "out");
  sim::Report const report = sim::launch<AddsAtAnOddColumn>(machine, {1, 1, 1}, {out});
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, sim::FindingKind::misaligned);
  EXPECT_EQ(report.findings[0].lane, 0);
  EXPECT_NE(report.text().find("red of 16 bytes at byte 4 of out"), std::string::npos)
      << report.text();
}

}  // namespace
}  // namespace tegula
