#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

/// What the broken kernels are launched with: two buffers of 4096 bytes, of which `in` is written
/// and `out` is not.
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

/// The line of docs/machine.md that shows what the checker finds in a kernel; empty where it
/// shows none.
inline std::string documented(std::string const& kernel) {
  static std::vector<std::string> const lines = [] {
    std::ifstream file(TEGULA_DOCS "/machine.md");
    EXPECT_TRUE(file.is_open());
    std::vector<std::string> read;
    for (std::string line; std::getline(file, line);) read.push_back(line);
    return read;
  }();
  for (std::string const& line : lines) {
    if (line.find("kernel " + kernel + ", CTA (") != std::string::npos ||
        line.find("kernel " + kernel + ": ") == 0)
      return line;
  }
  return "";
}

/// A sentence with `:#` for each line of a source, as in `checker_test.cpp:#`: a page keeps its
/// sentence when lines above the kernel come or go. The tests check the lines themselves.
inline std::string without_lines(std::string const& sentence) {
  std::string without;
  bool in_line = false;
  for (char const c : sentence) {
    in_line = in_line ? c >= '0' && c <= '9' : c == ':' && without.ends_with("pp");
    if (!in_line || c == ':') without += c;
    if (in_line && c == ':') without += '#';
  }
  return without;
}

/// The one finding of a kernel that must have exactly one, of the given kind, on the given line of
/// the test's own file.
inline sim::Finding only_finding(sim::Report const& report, sim::FindingKind kind, int line) {
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  if (report.findings.empty()) return {};
  sim::Finding const& finding = report.findings.front();
  EXPECT_EQ(sim::to_string(finding.kind), sim::to_string(kind)) << report.text();
  EXPECT_EQ(finding.where.line, line) << report.text();
  std::string const kernel = report.kernel.substr(report.kernel.rfind("::") + 2);
  std::string const shown = documented(kernel);
  if (!shown.empty()) {
    std::filesystem::path const file = finding.where.file;
    std::string const folder =
        finding.where.line != 0 ? file.parent_path().filename().string() + "/" : std::string();
    EXPECT_EQ(without_lines(folder + shown), without_lines(sim::to_string(finding, kernel)))
        << "docs/machine.md";
  }
  return finding;
}

/// Of a kernel that has one or more findings, as the schedule has it, all of the given kind on the
/// given line.
inline void all_findings(sim::Report const& report, sim::FindingKind kind, int line) {
  EXPECT_FALSE(report.ok());
  for (sim::Finding const& finding : report.findings) {
    EXPECT_EQ(sim::to_string(finding.kind), sim::to_string(kind)) << report.text();
    EXPECT_EQ(finding.where.line, line) << report.text();
  }
}

#define EXPECT_SAYS(finding, text) \
  EXPECT_NE((finding).message.find(text), std::string::npos) << (finding).message

}  // namespace tegula
