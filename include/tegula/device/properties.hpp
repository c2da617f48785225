#pragma once

#include <cstddef>
#include <cstdint>

#include "tegula/sim/generation.hpp"

namespace tegula {

/// Which kernels a device can be given.
enum class Kernels : std::uint8_t {
  built,            ///< those that this build has
  built_preferred,  ///< one that is compiled when it is first used, where no built one will do
  all,              ///< any: what is not built is compiled when it is first used
};

/// What the choice of a configuration knows of a device; an H100's unless said otherwise.
struct DeviceProperties {
  int compute_capability = sim::spec_of(sim::Generation::sm90).compute_capability;
  int multiprocessors = sim::spec_of(sim::Generation::sm90).multiprocessors;
  std::size_t shared_bytes =
      sim::spec_of(sim::Generation::sm90).shared_bytes;  ///< of a CTA, at most
  double clock_ghz = 1.98;                               ///< of the multiprocessors, at most
  double memory_tb_per_s = 3.35;
  double l2_mb = 50;
  Kernels kernels = Kernels::built;
};

/// The device that a generation of the simulated machine stands for.
constexpr DeviceProperties properties_of(sim::Generation generation) {
  sim::ArchSpec const& spec = sim::spec_of(generation);
  DeviceProperties properties{spec.compute_capability, spec.multiprocessors, spec.shared_bytes};
  if (generation == sim::Generation::sm80)  // an A100 of 40 GB
    properties.clock_ghz = 1.41, properties.memory_tb_per_s = 1.56, properties.l2_mb = 40;
  return properties;
}

}  // namespace tegula
