#include "tegula/device/tensor_map.hpp"

#include <fmt/format.h>

#include "backend.hpp"
#include "tegula/device/error.hpp"

namespace tegula {

TensorMap encode(Machine const& machine, TensorMapDescription const& description) {
  check(description);
  if (machine.compute_capability() < 90)
    throw device_error(
        fmt::format("{} has no TMA, and so no tensor maps: they need sm_90.", machine.name()));
  try {
    return machine.backend().encode_tensor_map(description);
  } catch (device_error const& error) {
    throw device_error(
        fmt::format("{} The tensor map was {}.", error.what(), to_string(description)));
  }
}

}  // namespace tegula
