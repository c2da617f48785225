// The README's kernel on the simulated machine: once as it should be, once without its wait.

#include <cstdio>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/shared_tile.hpp"

using namespace tegula;

struct TransposeParams {
  float const* in;  // (32 * grid.y, 32 * grid.x), row-major
  float* out;       // (32 * grid.x, 32 * grid.y), row-major
};

/// Transposes a matrix, a tile of 32x32 for each CTA, through shared memory. Without `Waits` it is wrong, and
/// the checker says how.
template <bool Waits> struct Transpose {
  using Params = TransposeParams;
  static constexpr int threads = 128, min_ctas_per_sm = 1;

  // The row's bits are XORed into the column's: neither a row nor a column of 32 words meets a bank twice.
  static constexpr SwizzledLayout memory = {Swizzle(5, 0, 5), row_major(32, 32)};
  static_assert(bank_conflicts(vector_access("((32,4),8):((32,1),4)"_layout, 32, 4), memory) == 0);
  static_assert(bank_conflicts(vector_access("((32,4),8):((1,32),128)"_layout, 32, 4), memory) == 0);

  using Tile = SharedTile<float, memory>;
  static constexpr Layout by_row = "(32,4):(1@1,1@0)"_layout;     // thread -> (row, column)
  static constexpr Layout by_column = "(32,4):(1@0,1@1)"_layout;  // thread -> (row, column)

  struct SharedStorage {
    Tile staged;
    template <class F> void name_buffers(F&& name) { name("staged", staged); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const columns = 32 * grid_dim().x, rows = 32 * grid_dim().y;
    int const lane = thread_idx() % 32, warp = thread_idx() / 32;
    float const* in = p.in + (32 * block_idx().y + warp) * columns + 32 * block_idx().x + lane;
    float* out = p.out + (32 * block_idx().x + warp) * rows + 32 * block_idx().y + lane;
    TileAccess<Tile, by_row> const filled(smem.staged, thread_idx());
    TileAccess<Tile, by_column> const emptied(smem.staged, thread_idx());

    for (int step = 0; step < 32; step += 4) {
      cp_async_ca<4>(filled(step, 0), in + step * columns);
    }
    cp_async_commit_group();
    if constexpr (Waits) cp_async_wait_group<0>();  // this thread's copies have landed
    cta::sync();                                    // and everyone's are visible to all
    for (int step = 0; step < 32; step += 4) {
      st_global(out + step * rows, ld_shared<float>(emptied(0, step)));
    }
  }
};

struct transpose : Transpose<true> {};
struct transpose_without_wait : Transpose<false> {};

namespace {

constexpr int kRows = 64, kColumns = 96;

/// Launches a kernel on a matrix of consecutive numbers and returns what the machine saw; prints how many
/// elements are wrong.
template <class Kernel> sim::Report run() {
  sim::Machine machine({.throw_on_finding = false});
  std::vector<float> in(kRows * kColumns), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  std::size_t const bytes = in.size() * sizeof(float);
  auto* const device_in = static_cast<float*>(machine.allocate(bytes, "in"));
  auto* const device_out = static_cast<float*>(machine.allocate(bytes, "out"));
  machine.upload(device_in, in.data(), bytes);
  sim::Report const report =
      sim::launch<Kernel>(machine, {kColumns / 32, kRows / 32, 1}, {device_in, device_out});
  machine.download(out.data(), device_out, bytes);
  int wrong = 0;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      wrong += out[column * kRows + row] != in[row * kColumns + column];
    }
  }
  std::printf("%d of %zu elements are wrong\n%s\n", wrong, in.size(), report.text().c_str());
  return report;
}

}  // namespace

int main() {
  bool const right = run<transpose>().ok();
  bool const found = !run<transpose_without_wait>().ok();
  return right && found ? 0 : 1;
}
