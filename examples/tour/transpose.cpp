// The README's kernel on the simulated machine: once as it should be, once without its wait.

#include <cstdio>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

struct TransposeParams {
  float const* in;  // (32 * grid.y, 32 * grid.x), row-major
  float* out;       // (32 * grid.x, 32 * grid.y), row-major
};

/// Transposes a matrix, a tile of 32x32 for each CTA, through shared memory. Without `Waits` it is
/// wrong, and the checker says how.
template <bool Waits> struct Transpose {
  using Params = TransposeParams;
  static constexpr int threads = 128, min_ctas_per_sm = 1;

  // The row's bits are XORed into the column's: neither a row nor a column of 32 words meets a
  // bank twice.
  static constexpr SwizzledLayout memory = {Swizzle(5, 0, 5), row_major(32, 32)};
  using Tile = SharedTile<float, memory>;
  // (row, column) -> thread: a warp has a row
  static constexpr Layout by_row = "(4,32):(32,1)"_layout;
  using Copy = TiledCopy<make_tiled_copy(by_row, shape(1, 1), 32, 32), float>;
  static_assert(conflicts_of_threads<Tile, Copy::Threads, 4> == 0);

  struct SharedStorage {
    Tile staged;
    template <class F> void name_buffers(F&& name) { name("staged", staged); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rows = 32 * grid_dim().y, columns = 32 * grid_dim().x;
    auto const [x, y, z] = block_idx();
    auto const gIn = local_tile<32, 32>(matrix<1>(p.in, columns, rows, columns), y, x);
    auto const gOut = local_tile<32, 32>(matrix<1>(p.out, rows, columns, rows), x, y);
    auto const sIn = tensor(smem.staged);                           // (row, column) of the tile
    auto const sOut = select<1, 0>(sIn);                            // the same elements, transposed
    auto const tOut = local_partition<by_row>(sOut, thread_idx());  // this thread's: (8, 1)
    static_assert(conflicts_of_part<decltype(tOut)> == 0);

    copy(Copy{thread_idx()}, gIn, sIn);  // by cp.async
    cp_async_commit_group();
    if constexpr (Waits) cp_async_wait_group<0>();  // this thread's copies have landed
    cta::sync();                                    // and everyone's are visible to all
    copy(tOut, local_partition<by_row>(gOut, thread_idx()));
  }
};

struct transpose : Transpose<true> {};
struct transpose_without_wait : Transpose<false> {};

namespace {

constexpr int kRows = 64, kColumns = 96;

/// Launches a kernel on a matrix of consecutive numbers and returns what the machine saw; prints
/// how many elements are wrong.
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
