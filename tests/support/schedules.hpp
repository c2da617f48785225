#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tegula/sim/machine.hpp"

/// The schedules that tests run kernels at.
namespace tegula {

/// `options` at every completion with every interleaving: once where neither asks for the seed,
/// else at the seeds 0 to `seeds` - 1 (those that only say which warp stays behind, at most 32
/// of them).
inline std::vector<sim::Options> every_schedule(std::uint64_t seeds, sim::Options options = {}) {
  using sim::Completion, sim::Interleaving;
  std::vector<sim::Options> schedules;
  for (auto const completion : {Completion::last, Completion::first, Completion::random}) {
    for (auto const interleaving : {Interleaving::one_warp_ahead, Interleaving::round_robin,
                                    Interleaving::random, Interleaving::one_warp_behind}) {
      std::uint64_t count = 1;
      if (interleaving == Interleaving::one_warp_behind) count = std::min<std::uint64_t>(seeds, 32);
      if (completion == Completion::random || interleaving == Interleaving::random) count = seeds;
      for (std::uint64_t seed = 0; seed < count; ++seed) {
        options.completion = completion;
        options.interleaving = interleaving;
        options.seed = seed;
        schedules.push_back(options);
      }
    }
  }
  return schedules;
}

/// What was counted, a line of text for each line of the kernel and instruction: the same at every
/// schedule, but for the atomics and fences of a kernel that `polls`, which are left out.
inline std::string counters_text(sim::Report const& report, bool polls = false) {
  std::string text;
  for (sim::LineCounters const& c : report.lines) {
    if (c.instruction == "mbarrier.try_wait") continue;  // it may end too early, and is tried again
    if (polls && (c.instruction == "atom" || c.instruction == "fence")) continue;
    text += std::string(c.where.file) + ":" + std::to_string(c.where.line) + " " + c.instruction;
    for (std::int64_t const count :
         {c.instructions, c.fused_multiply_adds, c.shared_bytes, c.shared_wavefronts,
          c.bank_conflicts, c.global_bytes, c.global_sectors})
      text += " " + std::to_string(count);
    text += "\n";
  }
  return text;
}

/// For messages of tests.
inline std::string schedule_text(sim::Options const& options) {
  return "completion " + std::string(to_string(options.completion)) + ", interleaving " +
         std::string(to_string(options.interleaving)) + ", seed " + std::to_string(options.seed);
}

}  // namespace tegula
