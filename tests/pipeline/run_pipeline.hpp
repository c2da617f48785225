#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "pipeline_kernels.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::pipeline_kernels {

using Values = std::vector<std::uint32_t>;

template <class T> std::size_t at(T index) { return static_cast<std::size_t>(index); }

/// Words that are all different.
inline Values some_words(int count) {
  Values words(at(count));
  for (int i = 0; i < count; ++i) words[at(i)] = 0x9e3779b9u * static_cast<std::uint32_t>(i + 1);
  return words;
}

/// Launches the kernel on one CTA, or one cluster.
template <class Kernel>
sim::Report launch(sim::Machine& machine, std::uint32_t const* in, std::uint32_t* out) {
  if constexpr (std::is_same_v<typename Kernel::Params, MulticastParams>) {
    TensorMapDescription const rows{.dtype = DType::f32,
                                    .rank = 2,
                                    .address = in,
                                    .extents = {kRow, Kernel::steps},
                                    .strides = {4 * kRow},
                                    .box = {kRow / Kernel::peers, 1}};
    return sim::launch<Kernel>(machine, Kernel::cluster, {sim::encode(rows), out});
  } else {
    return sim::launch<Kernel>(machine, {1, 1, 1}, {in, out});
  }
}

/// Runs the kernel; `out` holds zeros before.
template <class Kernel>
sim::Report run(sim::Options const& options, Values const& in, Values& out) {
  sim::Machine machine(options);
  auto* const device_in = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
  auto* const device_out = static_cast<std::uint32_t*>(machine.allocate(4 * out.size(), "out"));
  machine.upload(device_in, in.data(), 4 * in.size());
  machine.fill(device_out, 0, 4 * out.size());
  sim::Report report = launch<Kernel>(machine, device_in, device_out);
  machine.download(out.data(), device_out, 4 * out.size());
  return report;
}

}  // namespace tegula::pipeline_kernels
