#pragma once

#include <stdexcept>

namespace tegula {

/// An argument that an entry point refuses before anything runs: one sentence that names the
/// argument, its value and what would be accepted.
struct argument_error : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// A machine that is absent, or that failed: one sentence that names the call and its reason.
struct device_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tegula
