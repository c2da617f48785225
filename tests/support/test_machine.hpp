#pragma once

#include <cstdint>
#include <cstdlib>

#include "elements.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/machine.hpp"

/// The machine that the kernel tests run on, and memory of it that shows where it was written.
namespace tegula {

/// The machine that TEGULA_TEST_DEVICE names (sim, cuda or auto), by default the simulated one with
/// its checker on.
inline Machine test_machine(sim::Options const& options = {}) {
  char const* const name = std::getenv("TEGULA_TEST_DEVICE");
  return Machine::from_name(name == nullptr ? "sim" : name, Arch::sm90, options);
}

/// A Blackwell GPU, simulated.
inline Machine blackwell(sim::Options const& options = {}) {
  return Machine::simulated(Arch::sm100, options);
}

/// An output buffer whose every byte is kPoison before a kernel runs.
inline Buffer<std::uint8_t> poisoned(Machine const& machine, std::int64_t bytes, char const* name) {
  Buffer<std::uint8_t> buffer(machine, bytes, name);
  buffer.fill(kPoison);
  return buffer;
}

}  // namespace tegula
