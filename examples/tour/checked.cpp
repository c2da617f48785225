// A kernel of one's own under the checker: docs/checker.md quotes this file.
#include <cstdio>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/launch.hpp"

using namespace tegula;

/// out[row] = the sum of a row of 128 numbers. A CTA for each row; a warp adds 32 numbers, thread 0
/// the four sums.
struct row_sums {
  struct Params {
    int const* in;
    int* out;
  };
  struct SharedStorage {
    int sums[4];
    template <class F> void name_buffers(F&& name) { name("sums", sums); }
  };
  static constexpr int threads = 128;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const row = block_idx().x;
    int const sum = warp::reduce_add(ld_global<int>(p.in + 128 * row + thread_idx()));
    if (lane_id() == 0) st_shared(shared_address(&smem.sums[warp_id()]), sum);
    cta::sync();
    if (thread_idx() != 0) return;
    int all = 0;
    for (int warp = 0; warp < 4; ++warp) all += ld_shared<int>(shared_address(&smem.sums[warp]));
    st_global(p.out + row, all);
  }
};

int main() {
  constexpr int kRows = 6;
  std::vector<int> const numbers(kRows * 128, 1);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    sim::Machine machine({.completion = sim::Completion::random,
                          .interleaving = sim::Interleaving::random,
                          .seed = seed});
    auto* const in = static_cast<int*>(machine.allocate(numbers.size() * sizeof(int), "in"));
    auto* const out = static_cast<int*>(machine.allocate(kRows * sizeof(int), "out"));
    machine.upload(in, numbers.data(), numbers.size() * sizeof(int));
    try {
      sim::launch<row_sums>(
          machine, {kRows, 1, 1}, {in, out},
          {sim::global_tensor("in", in, row_major(kRows, 128), {"row", "column"},
                              sim::Coverage::read),
           sim::global_tensor("out", out, row_major(kRows), {"row"}, sim::Coverage::written)});
    } catch (sim::CheckError const& error) {
      std::printf("seed %d: %s\n", static_cast<int>(seed), error.what());
      return 1;
    }
    std::vector<int> sums(kRows);
    machine.download(sums.data(), out, kRows * sizeof(int));
    if (sums != std::vector<int>(kRows, 128)) return 1;
  }
  std::puts("row_sums: clean at 10 seeds");
  return 0;
}
