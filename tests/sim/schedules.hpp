#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/sim/machine.hpp"

/// The schedules that tests run kernels at.
namespace tegula {

/// `options` at every completion with every interleaving: once where neither draws from the seed, else at the
/// seeds 0 to `seeds` - 1.
inline std::vector<sim::Options> every_schedule(std::uint64_t seeds, sim::Options options = {}) {
  std::vector<sim::Options> schedules;
  for (auto const completion : {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    for (auto const interleaving :
         {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin, sim::Interleaving::random}) {
      bool const by_seed = completion == sim::Completion::random || interleaving == sim::Interleaving::random;
      for (std::uint64_t seed = 0; seed < (by_seed ? seeds : 1); ++seed) {
        options.completion = completion;
        options.interleaving = interleaving;
        options.seed = seed;
        schedules.push_back(options);
      }
    }
  }
  return schedules;
}

/// For messages of tests.
inline std::string schedule_text(sim::Options const& options) {
  char const* const completions[] = {"last", "first", "random"};
  char const* const interleavings[] = {"one_warp_ahead", "round_robin", "random"};
  return std::string("completion ") + completions[static_cast<int>(options.completion)] + ", interleaving " +
         interleavings[static_cast<int>(options.interleaving)] + ", seed " + std::to_string(options.seed);
}

}  // namespace tegula
