#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "broken_kernel.hpp"

namespace tegula {

/// Calls f(options) with every completion, every interleaving and some seeds.
template <class F> void for_each_schedule(F&& f, sim::Options options = {}) {
  for (auto const completion : {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    for (auto const interleaving :
         {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin, sim::Interleaving::random}) {
      bool const by_seed = completion == sim::Completion::random || interleaving == sim::Interleaving::random;
      for (std::uint64_t seed = 0; seed < (by_seed ? 4 : 1); ++seed) {
        options.completion = completion;
        options.interleaving = interleaving;
        options.seed = seed;
        f(options);
      }
    }
  }
}

/// For messages of tests.
inline std::string schedule_text(sim::Options const& options) {
  char const* const completions[] = {"last", "first", "random"};
  char const* const interleavings[] = {"one_warp_ahead", "round_robin", "random"};
  return std::string("completion ") + completions[static_cast<int>(options.completion)] + ", interleaving " +
         interleavings[static_cast<int>(options.interleaving)] + ", seed " + std::to_string(options.seed);
}

/// The words that a correct kernel leaves in `out`; `in` holds the numbers 0, 1, 2, ... as words.
template <class Kernel>
std::vector<std::uint32_t> results_of(sim::Options const& options, Dim3 grid, std::size_t count) {
  sim::Machine machine(options);
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  std::vector<std::uint32_t> words(1024);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i);
  machine.upload(buffers.in, words.data(), 4096);
  sim::launch<Kernel>(machine, grid, buffers);
  std::vector<std::uint32_t> result(count);
  machine.download(result.data(), buffers.out, 4 * count);
  return result;
}

/// The first of them, of one cluster.
template <class Kernel> std::uint32_t result_of(sim::Options const& options, Dim3 grid = {}) {
  return results_of<Kernel>(options, grid, 1)[0];
}

}  // namespace tegula
