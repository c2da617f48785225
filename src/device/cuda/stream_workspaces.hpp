#pragma once

// Backend::stream_workspace of a GPU.

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "../backend.hpp"
#include "check.hpp"

namespace tegula::device {

/// A piece of zeros for each stream of a device, made when the stream is first seen; for a launch
/// that is being captured, one that no other launch gets. Thread-safe. On the current device.
class StreamWorkspaces {
 public:
  StreamWorkspaces() = default;
  StreamWorkspaces(StreamWorkspaces const&) = delete;
  StreamWorkspaces& operator=(StreamWorkspaces const&) = delete;
  ~StreamWorkspaces() {
    for (void* const block : blocks_) static_cast<void>(cudaFree(block));
  }

  void* of(cudaStream_t stream) {
    cudaStreamCaptureStatus capture{};
    check(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
    std::scoped_lock const lock(mutex_);
    if (capture != cudaStreamCaptureStatusNone) return next();
    // Ids are not used again, as a stream's handle is.
    unsigned long long id = 0;
    check(cudaStreamGetId(stream, &id), "cudaStreamGetId");
    void*& piece = pieces_[id];
    if (piece == nullptr) piece = next();
    return piece;
  }

 private:
  static constexpr std::size_t pieces_of_block = 128;

  void* next() {
    if (left_ == 0) {
      blocks_.push_back(block());
      left_ = pieces_of_block;
    }
    return static_cast<char*>(blocks_.back()) + --left_ * kStreamWorkspaceBytes;
  }

  /// On a stream of its own, which is part of no capture, and waits for no other.
  static void* block() {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    void* memory = nullptr;
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaMalloc(&memory, pieces_of_block * kStreamWorkspaceBytes);
    if (status == cudaSuccess) status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (status == cudaSuccess)
      status = cudaMemsetAsync(memory, 0, pieces_of_block * kStreamWorkspaceBytes, stream);
    if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
    if (stream != nullptr) static_cast<void>(cudaStreamDestroy(stream));
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
    check(status, "making workspaces for streams");
    return memory;
  }

  std::mutex mutex_;
  std::map<unsigned long long, void*> pieces_;  ///< by the stream's id
  std::vector<void*> blocks_;
  std::size_t left_ = 0;  ///< pieces of the last block
};

}  // namespace tegula::device
