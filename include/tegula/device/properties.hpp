#pragma once

#include <cstddef>

#include "tegula/sim/generation.hpp"

namespace tegula {

/// What the choice of a configuration knows of a device; an H100's unless said otherwise.
struct DeviceProperties {
  int compute_capability = sim::spec_of(sim::Generation::sm90).compute_capability;
  int multiprocessors = sim::spec_of(sim::Generation::sm90).multiprocessors;
  /// of a CTA, at most
  std::size_t shared_bytes = sim::spec_of(sim::Generation::sm90).shared_bytes;
};

/// The device that a generation of the simulated machine stands for.
constexpr DeviceProperties properties_of(sim::Generation generation) {
  sim::ArchSpec const& spec = sim::spec_of(generation);
  return {spec.compute_capability, spec.multiprocessors, spec.shared_bytes};
}

}  // namespace tegula
