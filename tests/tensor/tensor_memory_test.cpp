// Products of whole tiles with accumulators of each type in tensor memory: stored, accumulated, and
// loaded by rows and in the order of mma.sync.
#include "tegula/tensor/tensor_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/numeric/float8.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/identity.hpp"
#include "tegula/tensor/shared_tile.hpp"

namespace tegula {
namespace {

struct ProductParams {
  int const *a, *b, *c;  // (128, k), (n, k), (128, n)
  float* by_rows;        // (128, n): D
  float* by_mma;         // the same
};

template <DType T> struct ElementOf;
template <> struct ElementOf<DType::f16> { using Type = half; };
template <> struct ElementOf<DType::s8> { using Type = std::int8_t; };
template <> struct ElementOf<DType::e4m3> { using Type = float_e4m3; };
template <> struct ElementOf<DType::f32> { using Type = float; };
template <> struct ElementOf<DType::s32> { using Type = std::int32_t; };

template <class T> T from_int(int value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value);
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

/// D = A B^T + C, by one CTA, of four steps along k.
template <MmaSpec S> struct Accumulates {
  using Params = ProductParams;
  using In = typename ElementOf<S.a>::Type;
  using Register = typename ElementOf<S.d>::Type;
  static constexpr int threads = 128, m = 128, n = S.n, k = 4 * S.k;
  struct SharedStorage {
    SharedTile<In, swizzled_operand(element_bits(S), m, k, 1)> a;
    SharedTile<In, swizzled_operand(element_bits(S), n, k, 1)> b;
    Mbarrier done;
    std::uint32_t tmem;
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), warp = warp_id(), lane = lane_id();
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int i = thread; i < m * k; i += threads)
      sA(i / k, i % k) = from_int<In>(ld_global<int>(p.a + i));
    for (int i = thread; i < n * k; i += threads)
      sB(i / k, i % k) = from_int<In>(ld_global<int>(p.b + i));
    SharedAddr const done = shared_address(&smem.done);
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) tcgen05_alloc<256>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    auto const tCtC = tensor_memory_tiles<TensorAccumulator<S>, n, 1>(base)(_, _, 0);  // (128, n)
    using Rows = TensorMemoryRows<n, Register>;
    typename Rows::Accumulator row;
    for (int i = 0; i < n; ++i) {
      auto const value = from_int<Register>(ld_global<int>(p.c + thread * n + i));
      if constexpr (sizeof(Register) == 4) {
        row(i) = value;
      } else {
        row.set(i, value);
      }
    }
    copy(row, rows_of_warp(tCtC));
    tcgen05_wait_st();
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (thread == 0) {
      tcgen05_fence_after_thread_sync();
      TensorMemoryMma<S> const mma;
      gemm(mma, mma.partition_a(sA), mma.partition_b(sB), tCtC, /*accumulate=*/true);
      tcgen05_commit(done);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    typename Rows::Accumulator loaded;
    copy(rows_of_warp(tCtC), loaded);
    tcgen05_wait_ld();
    tcgen05_pin(loaded);
    for (int i = 0; i < n; ++i)
      st_global(p.by_rows + thread * n + i, static_cast<float>(loaded(i)));
    for (int first = 0; first < 32; first += 16) {
      Fragment<Register, identity_map<4, n / 8>> fragment;  // of 16 rows
      copy(part<16, n>(domain_offset(tCtC, 32 * warp + first, 0)), fragment);
      tcgen05_wait_ld();
      tcgen05_pin(fragment);
      for (int i = 0; i < n / 2; ++i) {
        int const at_row = 32 * warp + first + lane / 4 + 8 * (i / 2 % 2),
                  column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
        st_global(p.by_mma + at_row * n + column, static_cast<float>(fragment(i)));
      }
    }
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (warp == 0) tcgen05_dealloc<256>(base);
  }
};

template <MmaSpec S> void expect_accumulated() {
  using Kernel = Accumulates<S>;
  constexpr int m = Kernel::m, n = Kernel::n, k = Kernel::k;
  auto values = [seed = 1u](int count) mutable {
    std::vector<int> all(static_cast<std::size_t>(count));
    for (int& x : all) {
      seed = seed * 1664525u + 1013904223u;
      x = static_cast<int>(seed >> 16) % 5 - 2;
    }
    return all;
  };
  std::vector<int> const a = values(m * k), b = values(n * k), c = values(m * n);
  sim::Machine machine({.generation = sim::Generation::sm100});
  auto const upload = [&](std::vector<int> const& host, char const* name) {
    auto* const there = static_cast<int*>(machine.allocate(4 * host.size(), name));
    machine.upload(there, host.data(), 4 * host.size());
    return there;
  };
  std::size_t const bytes = 4 * c.size();
  ProductParams const params{upload(a, "A"), upload(b, "B"), upload(c, "C"),
                             static_cast<float*>(machine.allocate(bytes, "by rows")),
                             static_cast<float*>(machine.allocate(bytes, "by mma"))};
  sim::launch<Kernel>(machine, {}, params);
  std::vector<float> by_rows(c.size()), by_mma(c.size());
  machine.download(by_rows.data(), params.by_rows, bytes);
  machine.download(by_mma.data(), params.by_mma, bytes);
  int wrong = 0;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      auto const at = static_cast<std::size_t>(row * n + column);
      int sum = c[at];
      for (int i = 0; i < k; ++i)
        sum +=
            a[static_cast<std::size_t>(row * k + i)] * b[static_cast<std::size_t>(column * k + i)];
      wrong += by_rows[at] != static_cast<float>(sum) || by_mma[at] != static_cast<float>(sum);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(TensorMemoryTiles, AccumulateInEveryType) {
  using enum DType;
  expect_accumulated<tensor_memory_mma(f16, f16, f32, 128, 48)>();
  expect_accumulated<tensor_memory_mma(f16, f16, f16, 128, 80)>();
  expect_accumulated<tensor_memory_mma(e4m3, e4m3, f16, 128, 128)>();
  expect_accumulated<tensor_memory_mma(s8, s8, s32, 128, 96)>();
}

}  // namespace
}  // namespace tegula
