#pragma once

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string_view>

#include "tegula/device/error.hpp"

namespace tegula::device {

/// Throws device_error where a call failed. Takes the failure off the runtime's record, where the
/// caller's own cudaGetLastError would find it.
inline void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw device_error(fmt::format("{} failed: {} ({}).", call, cudaGetErrorString(status),
                                 cudaGetErrorName(status)));
}

}  // namespace tegula::device
