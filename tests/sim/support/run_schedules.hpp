#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "broken_kernel.hpp"
#include "schedules.hpp"

namespace tegula {

/// Calls f(options) at every schedule, with four seeds.
template <class F> void for_each_schedule(F&& f, sim::Options const& options = {}) {
  for (sim::Options const& schedule : every_schedule(4, options)) f(schedule);
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
