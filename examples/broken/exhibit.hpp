#pragma once

#include <string>
#include <vector>

#include "gallery.hpp"
#include "kernel.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

/// Making an exhibit of a kernel.
namespace tegula::broken {

/// Launches a kernel of a gallery on buffers of its own. Where its mend is no statement,
/// K::Repaired has it.
template <class K> sim::Report run(sim::Options options, bool repaired) {
  constexpr int kRows = 16, kColumns = 64, kElements = kRows * kColumns;
  options.throw_on_finding = false;
  options.workers = 1;
  sim::Machine machine(options);
  auto* const in = static_cast<float*>(machine.allocate(kElements * sizeof(float), "in"));
  auto* const out = static_cast<float*>(machine.allocate(kElements * sizeof(float), "out"));
  auto* const flags =
      static_cast<std::uint32_t*>(machine.allocate(64 * sizeof(std::uint32_t), "flags"));
  std::vector<float> numbers(kElements);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  machine.upload(in, numbers.data(), kElements * sizeof(float));
  machine.fill(flags, 0, 64 * sizeof(std::uint32_t));
  TensorMapDescription map;
  map.dtype = DType::f32;
  map.rank = 2;
  map.address = in;
  map.extents = {kColumns, kRows};
  map.strides = {kColumns * sizeof(float)};
  map.box = {32, 8};
  TensorMap const in_map = sim::encode(map);
  map.swizzle = TmaSwizzle::b128;
  TensorMap const swizzled_map = sim::encode(map);
  map.swizzle = TmaSwizzle::none;
  map.address = out;
  Dim3 grid;
  if constexpr (requires { K::grid; }) grid = K::grid;
  Params const params{in, out, flags, in_map, sim::encode(map), swizzled_map, repaired};
  if constexpr (requires { typename K::Repaired; }) {
    if (repaired) return sim::launch<typename K::Repaired>(machine, grid, params);
  }
  return sim::launch<K>(machine, grid, params);
}

/// What a kernel's static members say of it: the grid, the options that it needs, whether each
/// schedule shows its mistake.
template <class K> Exhibit exhibit() {
  std::string const name = sim::type_name<K>();
  Exhibit made{name.substr(name.rfind(':') + 1), run<K>, {.count = false}, true};
  if constexpr (requires { K::limits; }) made.options.count = true;
  if constexpr (requires { K::options(); }) made.options = K::options();
  if constexpr (requires { K::at_every_schedule; }) made.at_every_schedule = K::at_every_schedule;
  return made;
}

}  // namespace tegula::broken
