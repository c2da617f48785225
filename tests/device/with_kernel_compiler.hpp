#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "scratch.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/kernel_compiler.hpp"

namespace tegula::testing {

/// A test that compiles kernels, into a cache of its own; skipped where NVRTC is not there.
class WithKernelCompiler : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      kernel_compiler();
    } catch (device_error const& error) {
      GTEST_SKIP() << error.what();
    }
    setenv("TEGULA_CACHE", cache_.c_str(), 1);
  }

  Scratch scratch_;
  std::string cache_ = scratch_.path("kernels");
};

}  // namespace tegula::testing
