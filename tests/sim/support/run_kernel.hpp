#pragma once

#include <cstdint>
#include <vector>

#include "instruction_kernels.hpp"
#include "tegula/sim/launch.hpp"

namespace tegula {

/// Words that look random, the same every time.
inline std::vector<std::uint32_t> words(std::size_t count, std::uint32_t seed = 1) {
  std::vector<std::uint32_t> result(count);
  for (std::uint32_t& word : result) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' generator
    word = seed ^ seed >> 15;
  }
  return result;
}

/// An instruction kernel, free of its type.
struct WordLaunch {
  std::size_t out_words;
  bool zeroed;
  sim::Report (*launch)(sim::Machine&, instruction_kernels::Words const&);
};

inline std::vector<std::uint32_t> run_words(WordLaunch const& kernel, sim::Machine& machine,
                                            std::vector<std::uint32_t> const& in,
                                            sim::Report* report) {
  std::vector<std::uint32_t> result(kernel.out_words);
  std::size_t const in_bytes = 4 * in.size();
  std::size_t const out_bytes = 4 * result.size();
  auto* const device_in = static_cast<std::uint32_t*>(machine.allocate(in_bytes, "in"));
  auto* const device_out = static_cast<std::uint32_t*>(machine.allocate(out_bytes, "out"));
  machine.upload(device_in, in.data(), in_bytes);
  if (kernel.zeroed) machine.fill(device_out, 0, out_bytes);
  sim::Report const made = kernel.launch(machine, {device_in, device_out});
  if (report != nullptr) *report = made;
  machine.download(result.data(), device_out, out_bytes);
  machine.deallocate(device_in);
  machine.deallocate(device_out);
  return result;
}

/// Runs one of the instruction kernels (or one with the same members) on `in`, and returns what
/// it wrote.
template <class Kernel>
std::vector<std::uint32_t> run_kernel(sim::Machine& machine, std::vector<std::uint32_t> const& in,
                                      sim::Report* report = nullptr) {
  static constexpr WordLaunch kernel = {Kernel::out_words, requires {Kernel::zeroed;
}
, [](sim::Machine& m, instruction_kernels::Words const& words) {
  return sim::launch<Kernel>(m, Kernel::grid(), words);
}
};  // namespace tegula
return run_words(kernel, machine, in, report);
}

}  // namespace tegula
