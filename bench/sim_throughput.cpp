#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/mma_sync.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/gemm_sm90.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

/// How many multiply-adds the simulated machine does in a second on one core: by mma.sync alone, in
/// the main loop of a GEMM by mma.sync, and in one tile of the Hopper GEMM. check: 0, the checker
/// is off; 1, without data races; 2, all of it.
namespace tegula {
namespace {

struct Params {
  std::uint16_t const* a;
  std::uint16_t const* b;
  float* d;
  int steps;
};

/// A warp's chain of mma.sync, and nothing else.
struct MmaChain {
  using Params = tegula::Params;
  struct SharedStorage {};
  static constexpr int threads = 128;
  void operator()(Params const& p, SharedStorage&) const {
    std::uint32_t const a[4] = {0x3f803f80u + static_cast<std::uint32_t>(lane_id()), 0x3f803f80u,
                                0xbf803f80u, 0x3f803f80u};
    std::uint32_t const b[2] = {0x3f803f80u, 0x3c003f80u};
    float c[4][4] = {};
    for (int step = 0; step < p.steps; step += 4) {
      for (auto& tile : c) mma_sync<warp_mma(DType::bf16, DType::f32, 16)>(tile, a, b, tile);
    }
    st_global(p.d + thread_idx(), c[0][0] + c[1][1] + c[2][2] + c[3][3]);
  }
};

/// Meetings of a warp's lanes, and nothing else.
struct SyncChain {
  using Params = tegula::Params;
  struct SharedStorage {};
  static constexpr int threads = 128;
  void operator()(Params const& p, SharedStorage&) const {
    for (int step = 0; step < p.steps; ++step) warp::sync();
  }
};

/// The main loop of a GEMM: 64 x 64 x 32 a CTA, two stages of cp.async, 32 x 32 a warp.
struct GemmLoop {
  using Params = tegula::Params;
  struct SharedStorage {
    alignas(128) std::uint16_t a[2][64 * 32];
    alignas(128) std::uint16_t b[2][64 * 32];
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
    }
  };
  static constexpr int threads = 128;

  /// Rows of 64 bytes; the 16-byte piece of a row is XORed with the row, so that ldmatrix finds
  /// eight rows in distinct banks.
  static SharedAddr piece(int row, int column) {
    return static_cast<SharedAddr>(64 * row + 16 * (column ^ (row / 2 % 4)));
  }

  void operator()(Params const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    int const lane = lane_id();
    int const warp_m = 32 * (warp_id() % 2);
    int const warp_n = 32 * (warp_id() / 2);
    SharedAddr const sa = shared_address(&smem.a);
    SharedAddr const sb = shared_address(&smem.b);
    auto const load = [&](int step) {
      SharedAddr const stage = 64 * 64 * static_cast<SharedAddr>(step % 2);
      for (int i = 0; i < 2; ++i) {
        int const row = t / 4 + 32 * i;
        SharedAddr const to = stage + piece(row, t % 4);
        cp_async_cg(sa + to, p.a + 32 * row + 8 * (t % 4));
        cp_async_cg(sb + to, p.b + 32 * row + 8 * (t % 4));
      }
      cp_async_commit_group();
    };
    float acc[2][4][4] = {};
    load(0);
    for (int step = 0; step < p.steps; ++step) {
      cp_async_wait_group<0>();
      cta::sync();
      if (step + 1 < p.steps) load(step + 1);
      SharedAddr const stage = 64 * 64 * static_cast<SharedAddr>(step % 2);
      for (int k = 0; k < 2; ++k) {
        std::uint32_t a[2][4];
        std::uint32_t b[2][4];
        for (int m = 0; m < 2; ++m)
          ldmatrix(a[m], sa + stage + piece(warp_m + 16 * m + lane % 16, 2 * k + lane / 16));
        for (int n = 0; n < 2; ++n)
          ldmatrix(
              b[n],
              sb + stage + piece(warp_n + 16 * n + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
        for (int m = 0; m < 2; ++m) {
          for (int n = 0; n < 4; ++n) {
            std::uint32_t const operand_b[2] = {b[n / 2][2 * (n % 2)], b[n / 2][2 * (n % 2) + 1]};
            mma_sync<warp_mma(DType::bf16, DType::f32, 16)>(acc[m][n], a[m], operand_b, acc[m][n]);
          }
        }
      }
    }
    float sum = 0;
    for (auto const& row : acc) {
      for (auto const& tile : row) {
        for (float v : tile) sum += v;
      }
    }
    st_global(p.d + t, sum);
  }
};

template <class Kernel> void throughput(benchmark::State& state) {
  sim::Machine machine({.check = state.range(0) != 0, .races = state.range(0) == 2, .workers = 1});
  std::vector<std::uint16_t> host(64 * 32);
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<std::uint16_t>(0x3f00 + i * 7 % 256);
  auto* const a = static_cast<std::uint16_t*>(machine.allocate(2 * host.size(), "A"));
  auto* const b = static_cast<std::uint16_t*>(machine.allocate(2 * host.size(), "B"));
  auto* const d = static_cast<float*>(machine.allocate(4 * 128, "D"));
  machine.upload(a, host.data(), 2 * host.size());
  machine.upload(b, host.data(), 2 * host.size());
  std::int64_t multiply_adds = 0;
  std::int64_t instructions = 0;
  for (auto _ : state) {
    sim::Report const report = sim::launch<Kernel>(machine, {1, 1, 1}, Params{a, b, d, 256});
    multiply_adds += report.total.fused_multiply_adds;
    instructions += report.total.instructions;
    state.counters["conflicts"] = static_cast<double>(report.total.bank_conflicts);
  }
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
  state.counters["FMA/s"] =
      benchmark::Counter(static_cast<double>(multiply_adds), benchmark::Counter::kIsRate);
}

/// A tile of each CTA of one cluster, K-major, 16 steps of the main loop.
template <GemmSm90Config C> void gemm_sm90(benchmark::State& state) {
  using Kernel = GemmSm90<C>;
  sim::Machine machine({.check = state.range(0) != 0, .races = state.range(0) == 2, .workers = 1});
  constexpr int m = C.block_m * C.cluster_m, n = C.block_n * C.cluster_n, k = 16 * block_k(C);
  constexpr int largest = m > n ? m : n;
  // Either bf16 of both signs around 1, or pairs of e4m3 of as many exponents.
  std::vector<std::uint16_t> host(static_cast<std::size_t>(largest) * k * bits(C.a) / 16);
  for (std::size_t i = 0; i < host.size(); ++i) {
    std::size_t const word = i * 40503 >> 4;
    host[i] = static_cast<std::uint16_t>(bits(C.a) == 16 ? 0x3f00 | (word & 0x80ff)
                                                         : 0x3030 | (word & 0x8f8f));
  }
  auto const matrix = [](DType type, void const* address, int mn, int k, TmaBoxes const& boxes) {
    return sim::encode(
        describe({.dtype = type, .address = address, .mn = mn, .k = k, .ld = k}, boxes));
  };
  auto const operand = [&](int rows, TmaBoxes const& boxes, char const* name) {
    std::size_t const bytes = static_cast<std::size_t>(rows) * k * bits(C.a) / 8;
    void* const memory = machine.allocate(bytes, name);
    machine.upload(memory, host.data(), bytes);
    return matrix(C.a, memory, rows, k, boxes);
  };
  void* const d = machine.allocate(static_cast<std::size_t>(m) * n * bits(C.out) / 8, "D");
  GemmSm90Params params{.problem = {.a = operand(m, a_fetch(C), "A"),
                                    .b = operand(n, b_fetch(C), "B"),
                                    .m = m,
                                    .n = n,
                                    .k = k}};
  params.epilogue.d.whole = matrix(C.out, d, m, n, store_boxes(epilogue(C)).whole);
  params.epilogue.c = params.epilogue.d;  // not read
  std::int64_t multiply_adds = 0;
  for (auto _ : state) {
    sim::Report const report = sim::launch<Kernel>(machine, Kernel::grid(params), params);
    multiply_adds += report.total.fused_multiply_adds;
  }
  state.counters["FMA/s"] =
      benchmark::Counter(static_cast<double>(multiply_adds), benchmark::Counter::kIsRate);
}

constexpr GemmSm90Config kBasic = {.block_m = 64, .block_n = 128, .schedule = Schedule::basic};
constexpr GemmSm90Config kCooperative = {.block_m = 128, .block_n = 256};
constexpr GemmSm90Config kMulticast = {.block_m = 128, .block_n = 256, .cluster_m = 2};
constexpr GemmSm90Config kFp8 = {
    .a = DType::e4m3, .b = DType::e4m3, .block_m = 128, .block_n = 128};

BENCHMARK(throughput<SyncChain>)
    ->Name("sync_chain")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(throughput<MmaChain>)
    ->Name("mma_chain")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(throughput<GemmLoop>)
    ->Name("gemm_loop")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);

BENCHMARK(gemm_sm90<kBasic>)
    ->Name("gemm_sm90_basic")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(gemm_sm90<kCooperative>)
    ->Name("gemm_sm90_cooperative")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(gemm_sm90<kMulticast>)
    ->Name("gemm_sm90_multicast")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(gemm_sm90<kFp8>)
    ->Name("gemm_sm90_fp8")
    ->ArgName("check")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tegula

BENCHMARK_MAIN();
