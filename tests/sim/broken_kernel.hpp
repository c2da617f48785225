#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/mma_sync.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/trap.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/launch.hpp"

namespace tegula {

/// What the broken kernels are launched with: two buffers of 4096 bytes, of which `in` is written and `out`
/// is not.
struct Buffers {
  char* in;
  char* out;
};

/// Base of the broken kernels: one CTA of one warp, and a tile of 16 rows of 32 halves with a name.
struct Broken {
  using Params = Buffers;
  struct SharedStorage {
    alignas(16) std::uint16_t k[16][32];
    template <class F> void name_buffers(F&& name) { name("K", k); }
  };
  static constexpr int threads = 32;
};

/// Launches the kernel and returns what was found.
template <class Kernel> sim::Report report_of(sim::Options options = {}, Dim3 grid = {}) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  machine.fill(buffers.in, 0, 4096);
  return sim::launch<Kernel>(machine, grid, buffers);
}

/// The one finding of a kernel that must have exactly one, of the given kind, on the given line of the test's
/// own file.
inline sim::Finding only_finding(sim::Report const& report, sim::FindingKind kind, int line) {
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  if (report.findings.empty()) return {};
  sim::Finding const& finding = report.findings.front();
  EXPECT_EQ(sim::to_string(finding.kind), sim::to_string(kind)) << report.text();
  EXPECT_EQ(finding.where.line, line) << report.text();
  return finding;
}

#define EXPECT_SAYS(finding, text) \
  EXPECT_NE((finding).message.find(text), std::string::npos) << (finding).message

}  // namespace tegula
