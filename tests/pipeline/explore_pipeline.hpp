#pragma once

#include "run_pipeline.hpp"
#include "tegula/sim/explore.hpp"

namespace tegula::pipeline_kernels {

/// Explores a kernel that leaves `words` words, which are compared.
template <class Kernel> sim::Exploration explore(int words, std::int64_t max_executions = 10000) {
  sim::Machine machine;
  int rows = 1;
  if constexpr (requires { Kernel::steps; }) rows = Kernel::steps;
  Values const in = some_words(kRow * rows);
  Values out(at(words));
  auto* const device_in = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
  auto* const device_out = static_cast<std::uint32_t*>(machine.allocate(4 * out.size(), "out"));
  machine.upload(device_in, in.data(), 4 * in.size());
  auto const result = [&] {
    std::vector<std::byte> bytes(4 * out.size());
    machine.download(bytes.data(), device_out, bytes.size());
    return bytes;
  };
  return sim::explore(machine,
                      [&] {
                        machine.fill(device_out, 0, 4 * out.size());
                        launch<Kernel>(machine, device_in, device_out);
                      },
                      {.max_executions = max_executions, .result = result});
}

/// The words of kernels that hand on rows.
template <class Kernel> int words() {
  int peers = 1;
  if constexpr (requires { Kernel::peers; }) peers = Kernel::peers;
  return kRow * Kernel::steps * Kernel::consumers * peers;
}

/// The words of MathOrder: the count of visits, each visit's turn, and what each turn found.
template <int Groups, int Warps> int words_of_turns() {
  return 1 + MathOrder<Groups, Warps>::rounds * Groups * (Warps + 1);
}

}  // namespace tegula::pipeline_kernels
