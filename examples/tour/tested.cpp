// A test of a kernel of one's own, as a project that uses tegula has it (docs/checker.md, "A test
// of your own").
#include <cstdio>
#include <string_view>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/launch.hpp"

using namespace tegula;

/// A helper of several instructions. It takes the place of its call and hands it on, so that what
/// is found in it is found there.
TEGULA_DEVICE void publish(float& slot, float value, bool everyone_may_read,
                           SourceLocation where = SourceLocation::current()) {
  st_shared(shared_address(&slot, where), value, where);
  if (everyone_may_read) cta::sync(where);
}

struct ReverseParams {
  float const* in;
  float* out;
};

/// out = in backwards, 64 numbers.
template <bool Syncs> struct Reverse {
  using Params = ReverseParams;
  struct SharedStorage {
    float staged[64];
    template <class F> void name_buffers(F&& name) { name("staged", staged); }
  };
  static constexpr int threads = 64;
  static constexpr int published_at = __LINE__ + 3;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    publish(smem.staged[thread_idx()], ld_global<float>(p.in + thread_idx()), Syncs);
    st_global(p.out + thread_idx(),
              ld_shared<float>(shared_address(&smem.staged[63 - thread_idx()])));
  }
};

template <class Kernel> sim::Report run(std::uint64_t seed) {
  sim::Machine machine({.completion = sim::Completion::random,
                        .interleaving = sim::Interleaving::random,
                        .seed = seed,
                        .count = false,
                        .throw_on_finding = false});
  constexpr std::size_t kBytes = 64 * sizeof(float);
  auto* const in = static_cast<float*>(machine.allocate(kBytes, "in"));
  auto* const out = static_cast<float*>(machine.allocate(kBytes, "out"));
  machine.fill(in, 0, kBytes);
  return sim::launch<Kernel>(machine, {1, 1, 1}, {in, out});
}

/// Whether the report has a finding at that line of this file.
bool has_finding_at(sim::Report const& report, int line) {
  for (sim::Finding const& f : report.findings) {
    if (std::string_view(f.where.file) == __FILE__ && f.where.line == line) return true;
    if (std::string_view(f.other.file) == __FILE__ && f.other.line == line) return true;
  }
  return false;
}

int main() {
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    sim::Report const clean = run<Reverse<true>>(seed);
    if (!clean.ok())
      ++failures, std::printf("seed %d: %s", static_cast<int>(seed), clean.text().c_str());
    sim::Report const racy = run<Reverse<false>>(seed);
    if (!has_finding_at(racy, Reverse<false>::published_at))
      ++failures,
          std::printf("seed %d: the missing barrier was not found\n", static_cast<int>(seed));
  }
  std::printf("%d of 40 runs failed\n", failures);
  return failures == 0 ? 0 : 1;
}
