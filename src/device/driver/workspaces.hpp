#pragma once

// Backend::workspace and Backend::stream_workspace of a GPU, on the current context.

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "../backend.hpp"
#include "driver_api.hpp"

namespace tegula::device::driver {

/// Global memory of zeros, made on a stream of its own, which is part of no capture and waits for
/// no other. Never freed: the driver frees it with the context.
inline Address zeros(std::size_t bytes) {
  Functions const& cuda = functions();
  int mode = kCaptureRelaxed;
  check(cuda.exchange_capture_mode(&mode), "cuThreadExchangeStreamCaptureMode");
  Address memory = 0;
  StreamHandle stream = nullptr;
  Result result = cuda.allocate(&memory, bytes);
  if (result == 0) result = cuda.stream_create(&stream, kNonBlocking);
  if (result == 0) result = cuda.fill_async(memory, 0, bytes, stream);
  if (result == 0) result = cuda.stream_synchronize(stream);
  if (stream != nullptr) static_cast<void>(cuda.stream_destroy(stream));
  static_cast<void>(cuda.exchange_capture_mode(&mode));
  check(result, fmt::format("making {} bytes of workspaces", bytes));
  return memory;
}

/// Memory for launches, in turn: by the time that one's comes again the launch is over.
class Workspaces {
 public:
  void allocate() { memory_ = zeros(bytes); }

  void* next(std::size_t wanted) {
    std::size_t const lines = (wanted + line - 1) / line;
    // One that would reach over the end is left out.
    for (;;) {
      std::size_t const first = next_.fetch_add(lines) % (bytes / line);
      if (first + lines <= bytes / line) return reinterpret_cast<void*>(memory_ + first * line);
    }
  }

 private:
  static constexpr std::size_t bytes = kMostWorkspaceBytes, line = 128;  // a line of L2

  Address memory_ = 0;
  std::atomic<std::size_t> next_ = 0;
};

/// A line of zeros for each stream, made when the stream is first seen; for a launch that is being
/// captured, one that no other launch gets. Thread-safe.
class StreamWorkspaces {
 public:
  void* of(StreamHandle stream) {
    int capture = kNotCapturing;
    check(functions().stream_capturing(stream, &capture), "cuStreamIsCapturing");
    std::scoped_lock const lock(mutex_);
    if (capture != kNotCapturing) return next();
    // Ids are not used again, as a stream's handle is.
    unsigned long long id = 0;
    check(functions().stream_id(stream, &id), "cuStreamGetId");
    void*& line = lines_[id];
    if (line == nullptr) line = next();
    return line;
  }

 private:
  static constexpr std::size_t lines_of_block = 1024;

  void* next() {
    if (left_ == 0) {
      block_ = zeros(lines_of_block * kStreamWorkspaceBytes);
      left_ = lines_of_block;
    }
    return reinterpret_cast<void*>(block_ + --left_ * kStreamWorkspaceBytes);
  }

  std::mutex mutex_;
  std::map<unsigned long long, void*> lines_;  ///< by the stream's id
  Address block_ = 0;
  std::size_t left_ = 0;  ///< lines of the block
};

}  // namespace tegula::device::driver
