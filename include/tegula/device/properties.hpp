#pragma once

namespace tegula {

/// What the choice of a configuration knows of a device.
struct DeviceProperties {
  int compute_capability = 90;
  int multiprocessors = 132;

  /// The most shared memory a CTA can have (CUDA C++ Programming Guide, technical specifications).
  constexpr int shared_bytes() const {
    if (compute_capability == 80 || compute_capability == 87) return 163 * 1024;
    return (compute_capability >= 90 && compute_capability < 120 ? 227 : 99) * 1024;
  }
};

}  // namespace tegula
