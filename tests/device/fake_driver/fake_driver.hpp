#pragma once

/// A CUDA driver without a GPU, as libcuda.so.1: its memory is the host's, its launches are noted
/// and compute nothing. It holds what the driver back end asks of a driver.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace tegula::testing {

struct FakeLaunch {
  std::string entry;
  std::array<unsigned, 3> grid, block, cluster;
  unsigned shared_bytes;
  void* stream;
  bool programmatic, cooperative;
  std::vector<char> params;  ///< the first bytes of them
};

/// What was launched since the last call.
std::vector<FakeLaunch> take_fake_launches();
/// How many modules were loaded so far.
int fake_modules();
/// The next launch fails with this CUresult.
void fail_next_launch(int result);
/// Streams are captured from now on, or no longer.
void set_fake_capture(bool capturing);
/// Calls that were made without a current context, which a driver refuses.
int calls_without_context();

}  // namespace tegula::testing
