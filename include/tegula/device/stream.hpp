#pragma once

namespace tegula {

/// A queue of work on a machine, as a plain handle that owns nothing: the machine's default stream,
/// one that `Machine::create_stream` made, or a cudaStream_t of the caller's own
/// (`Stream{stream}`). The simulated machine does all work at once, on any stream.
struct Stream {
  void* native = nullptr;  ///< a cudaStream_t on a CUDA machine

  friend constexpr bool operator==(Stream const&, Stream const&) = default;
};

}  // namespace tegula
