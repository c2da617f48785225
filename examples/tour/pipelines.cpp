// A kernel around two pipelines: docs/pipelines.md quotes this file. It runs as it should be, and
// with each of three mistakes. With the name of a file it also draws the timeline of the right one.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/pipeline/tile_scheduler.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/tma.hpp"

using namespace tegula;

// 4 x 6 tiles in bands of two rows: consecutive ones lie on top of each other, then side by side.
constexpr TileScheduler order = {.tiles_m = 4, .tiles_n = 6, .raster = Raster::along_n, .group = 2};
static_assert(order.tile(1) == TileCoordinate{.m = 1, .n = 0});
static_assert(order.tile(2) == TileCoordinate{.m = 0, .n = 1});
static_assert(order.tile(12) == TileCoordinate{.m = 2, .n = 0});

enum class Mistake { none, releases_before_reading, never_releases, does_not_acquire };

struct SoftmaxParams {
  float const* in;  // (rows, 256), row-major
  float* out;       // likewise
  int rows;
};

/// out = softmax(in) of each row. Warp 0 has TMA fetch four rows at a time; each of four other
/// warps takes one of them and hands its result to TMA.
template <Mistake M> struct RowSoftmax {
  using Params = SoftmaxParams;
  static constexpr int columns = 256, stages = 3, buffers = 2, consumers = 4;
  static constexpr int threads = 32 * (1 + consumers), min_ctas_per_sm = 1;
  static constexpr int row_bytes = columns * sizeof(float);

  static constexpr Layout tile = "(4,256,3):(256,1,1024)"_layout;    // (row, column, stage)
  static constexpr Layout staged = "(4,256,2):(256,1,1024)"_layout;  // (row, column, buffer)
  static constexpr Layout lanes = "32:1"_layout;                     // column -> lane
  using Ring = TmaPipeline<stages, consumers>;

  struct SharedStorage {
    SharedTile<float, tile> in;
    SharedTile<float, staged> out;
    typename Ring::Storage ring;
    template <class F> void name_buffers(F&& name) {
      name("in", in), name("out", out), name("full", ring.full), name("empty", ring.empty);
    }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    Ring const ring{smem.ring};
    if (thread_idx() == 0) {
      ring.init();
      fence_mbarrier_init();
    }
    cta::sync();  // the ring's barriers are known to all, and to TMA
    if (warp_id() == 0) {
      if (warp::elect_one()) produce(p, smem, ring);
    } else {
      consume(p, smem, ring, warp_id() - 1);
    }
  }

  /// One thread: as many steps as the consumers take, ahead of them by up to `stages`.
  TEGULA_DEVICE void produce(Params const& p, SharedStorage& smem, Ring const& ring) const {
    auto const gIn = matrix<1>(p.in, columns, p.rows, columns);  // (row, column)
    auto const sIn = tensor(smem.in);                            // (row, column, stage)
    typename Ring::State write;
    for (int row = 4 * block_idx().x; row < p.rows; row += 4 * grid_dim().x, write.next()) {
      int const rows = min(4, p.rows - row);
      SharedAddr const full = ring.acquire(write, rows * row_bytes);  // nobody reads the stage
      for (int i = 0; i < rows; ++i)
        copy(BulkCopy{}, local_tile<columns>(gIn(row + i, _), 0), sIn(i, _, write.stage), full);
    }
  }

  /// A warp: its row of each stage.
  TEGULA_DEVICE void consume(Params const& p, SharedStorage& smem, Ring const& ring,
                             int warp) const {
    auto const gOut = matrix<1>(p.out, columns, p.rows, columns);  // (row, column)
    auto const sIn = tensor(smem.in);                              // (row, column, stage)
    auto const sOut = tensor(smem.out);                            // (row, column, buffer)
    typename Ring::State read;
    StorePipeline<buffers> store;
    for (int row = 4 * block_idx().x; row < p.rows; row += 4 * grid_dim().x, read.next()) {
      ring.wait(read);  // TMA's bytes are there
      if constexpr (M == Mistake::releases_before_reading) ring.release(read.stage);
      auto const tIn = local_partition<lanes>(sIn(warp, _, read.stage), lane_id());  // (8)
      auto values = make_fragment_like(tIn);
      copy(tIn, values);
      warp::sync();  // all lanes have read
      if constexpr (M != Mistake::releases_before_reading && M != Mistake::never_releases)
        ring.release(read.stage);
      softmax(values);

      if (row + warp >= p.rows) continue;
      int const buffer = M == Mistake::does_not_acquire ? 0 : store.acquire();  // TMA has read it
      copy(values, local_partition<lanes>(sOut(warp, _, buffer), lane_id()));
      store.store([&] {
        copy(BulkCopy{}, sOut(warp, _, buffer), local_tile<columns>(gOut(row + warp, _), 0));
      });
    }
    store.drain();  // shared memory lives until TMA has read it
  }

  /// Of a row that the lanes of a warp hold.
  template <class Values> TEGULA_DEVICE static void softmax(Values& values) {
    float largest = values(0), sum = 0;
    for (int i = 1; i < Values::size; ++i) largest = max_f32(largest, values(i));
    for (int mask = 16; mask > 0; mask /= 2)
      largest = max_f32(largest, warp::shfl_xor(largest, mask));
    constexpr float log2_e = 1.44269504f;
    for (int i = 0; i < Values::size; ++i) {
      values(i) = ex2_approx_ftz((values(i) - largest) * log2_e);
      sum += values(i);
    }
    for (int mask = 16; mask > 0; mask /= 2) sum += warp::shfl_xor(sum, mask);
    for (int i = 0; i < Values::size; ++i) values(i) = values(i) / sum;
  }

  TEGULA_DEVICE static constexpr int min(int a, int b) { return a < b ? a : b; }
};

struct row_softmax : RowSoftmax<Mistake::none> {};
struct releases_before_reading : RowSoftmax<Mistake::releases_before_reading> {};
struct never_releases : RowSoftmax<Mistake::never_releases> {};
struct does_not_acquire : RowSoftmax<Mistake::does_not_acquire> {};

namespace {

constexpr int kRows = 61, kColumns = 256, kCtas = 3;

/// The largest difference from float64.
double error(std::vector<float> const& in, std::vector<float> const& out) {
  double worst = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    float const* const x = &in[row * kColumns];
    double const largest = *std::max_element(x, x + kColumns);
    double sum = 0;
    for (int j = 0; j < kColumns; ++j) sum += std::exp(x[j] - largest);
    for (int j = 0; j < kColumns; ++j)
      worst = std::max(worst, std::abs(out[row * kColumns + j] - std::exp(x[j] - largest) / sum));
  }
  return worst;
}

/// Runs a kernel and says what the machine saw; whether nothing was found and the result is right.
template <class Kernel> bool run(char const* drawing = nullptr) {
  sim::Machine machine({.count = false, .throw_on_finding = false});
  if (drawing != nullptr)
    machine.options().trace = sim::TraceOptions{
        .ctas = 1, .timing = sim::timing_of(sim::Generation::sm90), .barriers = true};
  std::vector<float> in(kRows * kColumns), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 37 % 101) / 16.0f;
  std::size_t const bytes = in.size() * sizeof(float);
  auto* const device_in = static_cast<float*>(machine.allocate(bytes, "in"));
  auto* const device_out = static_cast<float*>(machine.allocate(bytes, "out"));
  machine.upload(device_in, in.data(), bytes);
  sim::Report const report =
      sim::launch<Kernel>(machine, {kCtas, 1, 1}, {device_in, device_out, kRows});
  std::printf("%s\n", report.text().c_str());
  if (!report.ok()) return false;
  if (drawing != nullptr) {
    std::ofstream file(drawing);
    file << to_svg(*report.trace) << std::flush;
    if (!file) std::printf("the timeline cannot be written to %s\n", drawing);
  }
  machine.download(out.data(), device_out, bytes);
  double const worst = error(in, out);
  std::printf("largest error beside float64: %.1e\n\n", worst);
  return worst < 1e-6;
}

}  // namespace

int main(int count, char** arguments) {
  bool const right = run<row_softmax>(count > 1 ? arguments[1] : nullptr);
  bool const found =
      !run<releases_before_reading>() && !run<never_releases>() && !run<does_not_acquire>();
  return right && found ? 0 : 1;
}
