#include <benchmark/benchmark.h>

#include <array>
#include <iterator>
#include <mma_cases.hpp>
#include <string>
#include <tegula/numeric/exp2.hpp>
#include <tegula/sim/arithmetic.hpp>
#include <vector>
#include <wgmma_cases.hpp>

/// How fast the simulated machine computes: mma.sync and wgmma in multiply-adds a second on one
/// core, functions in calls a second.
namespace tegula {
namespace {

constexpr struct {
  int subject;
  char const* name;
} kOps[] = {{0, "m16n8k8 f16"},
            {1, "m16n8k16 f16"},
            {3, "m16n8k16 bf16"},
            {5, "m16n8k8 tf32"},
            {7, "m16n8k16 f16, f16 accumulators"},
            {12, "m16n8k32 s8"}};

void mma(benchmark::State& state) {
  int const subject = kOps[state.range(0)].subject;
  MmaSpec const op = probe::mma_subject(subject);
  sim::Generation const generation = static_cast<sim::Generation>(state.range(1));
  state.SetLabel(std::string("mma.sync ") + kOps[state.range(0)].name +
                 (generation == sim::Generation::sm80 ? ", sm_80" : ", sm_90"));
  constexpr int kCases = 64;
  std::vector<probe::MmaCase> cases;
  for (int i = 0; i < kCases; ++i)
    cases.push_back(probe::mma_case(subject, probe::CaseSet::kMiddle, i));
  std::uint32_t d[32][4] = {};
  int i = 0;
  for (auto _ : state) {
    probe::MmaCase const& x = cases[i++ % kCases];
    sim::mma_sync_warp(op, generation, x.a, x.b, x.c, d);
    benchmark::DoNotOptimize(d);
  }
  state.counters["FMA/s"] =
      benchmark::Counter(16.0 * 8.0 * op.k, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(mma)
    ->ArgNames({"op", "generation"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kOps) - 1, 1),
                   {static_cast<int>(sim::Generation::sm80),
                    static_cast<int>(sim::Generation::sm90)}});

void wgmma(benchmark::State& state) {
  int const subject = static_cast<int>(state.range(0));
  int const n = static_cast<int>(state.range(1));
  state.SetLabel("wgmma m64n" + std::to_string(n) + " " + probe::kWgmmaSubjects[subject].name);
  probe::WgmmaCase const x =
      probe::wgmma_case(subject, static_cast<int>(probe::CaseSet::kMiddle), n, 0);
  auto const b = reinterpret_cast<std::uint8_t const(*)[sim::kWgmmaRowBytes]>(x.b.data());
  std::vector<std::uint32_t> d = x.c;
  int step = 0;  // as in a GEMM of eight steps: the first has no accumulators
  for (auto _ : state) {
    sim::wgmma_tile(x.op, x.a, b, step++ % 8 != 0, d.data());
    benchmark::DoNotOptimize(d.data());
  }
  state.counters["FMA/s"] =
      benchmark::Counter(64.0 * n * x.op.k, benchmark::Counter::kIsIterationInvariantRate);
}

// bf16, tf32, e4m3, f16 with f16 accumulators, s8
BENCHMARK(wgmma)->ArgNames({"subject", "n"})->ArgsProduct({{0, 2, 3, 7, 12}, {64, 256}});

template <float (*Function)(float)> void function(benchmark::State& state) {
  std::array<float, 256> x;
  probe::Random random{7};
  for (float& value : x) value = 1.0f + static_cast<float>(random.below(1 << 20)) * 0x1p-20f;
  for (auto _ : state) {
    for (float value : x) benchmark::DoNotOptimize(Function(-value));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(x.size()));
}

BENCHMARK(function<sim::ex2_approx_ftz>)->Name("ex2_approx_ftz");
BENCHMARK(function<exp2_polynomial>)->Name("exp2_polynomial");
BENCHMARK(function<sim::rcp_approx_ftz>)->Name("rcp_approx_ftz");

}  // namespace
}  // namespace tegula

BENCHMARK_MAIN();
