#pragma once

// What the simulated machine counted, summed over launches.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tegula/device/machine.hpp"
#include "tegula/sim/report.hpp"

namespace minilm {

class Tally {
 public:
  /// Adds the machine's last launch. A GPU counts nothing but the launch itself.
  void count(tegula::Machine const& machine) {
    ++launches_;
    if (std::optional<tegula::sim::Report> const report = machine.last_report()) {
      counted_.add(report->total);
      matrix_instructions_ += report->instruction("mma.sync").instructions;
      simulated_ = true;
    }
  }

  bool simulated() const { return simulated_; }
  std::int64_t launches() const { return launches_; }
  std::int64_t matrix_instructions() const { return matrix_instructions_; }
  tegula::sim::LineCounters const& counted() const { return counted_; }

 private:
  bool simulated_ = false;
  std::int64_t launches_ = 0;
  std::int64_t matrix_instructions_ = 0;
  tegula::sim::LineCounters counted_;
};

/// "1 234 567".
inline std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<std::size_t>(place), 1, ' ');
  return digits;
}

/// Prints both tallies side by side, and their multiply-adds a second of the given time where a
/// simulated machine counted them.
inline void print_tallies(Tally const& gemms, Tally const& attentions, double seconds) {
  auto const line = [](char const* what, std::int64_t gemm, std::int64_t attention) {
    fmt::print("{:36}{:>16}{:>16}\n", what, grouped(gemm), grouped(attention));
  };
  fmt::print("{:36}{:>16}{:>16}\n", "the machine counted", "GEMM", "attention");
  line("launches", gemms.launches(), attentions.launches());
  if (!gemms.simulated()) return;
  tegula::sim::LineCounters const &g = gemms.counted(), &a = attentions.counted();
  line("warp instructions", g.instructions, a.instructions);
  line("  of them mma.sync", gemms.matrix_instructions(), attentions.matrix_instructions());
  line("multiply-adds on tensor cores", g.fused_multiply_adds, a.fused_multiply_adds);
  line("shared memory: bytes", g.shared_bytes, a.shared_bytes);
  line("shared memory: wavefronts", g.shared_wavefronts, a.shared_wavefronts);
  line("  of them bank conflicts", g.bank_conflicts, a.bank_conflicts);
  line("global memory: bytes", g.global_bytes, a.global_bytes);
  line("global memory: 32-byte sectors", g.global_sectors, a.global_sectors);
  fmt::print(
      "{:.0f} million multiply-adds a second, with the checker on every access: no findings\n",
      static_cast<double>(g.fused_multiply_adds + a.fused_multiply_adds) / seconds / 1e6);
}

}  // namespace minilm
