#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/sim/generation.hpp"

/// The timeline of a simulated launch: who did what when, by a model of time (docs/machine.md), not
/// by a measurement.
namespace tegula::sim {

/// What the model of time assumes, in clock cycles of an SM unless said otherwise. The defaults are
/// an H100's; where a number comes from stands beside it, and what has no source is a round number
/// that keeps the picture's proportions.
struct Timing {
  /// Scalar multiply-adds of 16-bit operands a cycle, by an SM's four tensor cores together: wgmma
  /// m64n256k16 takes 128 cycles. (H100 white paper: 989.4 dense TFLOPS by 132 SMs at 1.83 GHz.)
  /// The other types take as many cycles for a K of 32 bytes.
  double tensor_rate = 2048;
  /// The share of tensor_rate that mma.sync reaches: docs/performance.md, "mma ceiling".
  double mma_sync_share = 0.62;
  /// Lanes that the special-function units serve a cycle, 4 for each of an SM's four schedulers: an
  /// ex2 of a warp takes 8 cycles. (CUDA C++ Programming Guide, "Arithmetic Instructions", compute
  /// capability 9.0; 3.9 TFLOPS in the paper of FlashAttention-3 are 132 SMs' at 1.83 GHz.)
  double special_rate = 16;
  /// Bytes of shared memory that wgmma reads a cycle. A (64 rows) and B (n rows) of 32 bytes are
  /// read for each instruction, which is why n below 64 does not reach the tensor cores' rate.
  double shared_bytes = 128;

  /// From the issue of a TMA load that hits L2 to its first byte in shared memory.
  double tma_latency = 650;
  /// Bytes a cycle that L2 delivers to all SMs, or takes: 5120, as NVIDIA gives it for the A100's
  /// (white paper). Each SM that has a CTA gets an equal share; what TMA fetches for several CTAs
  /// counts once.
  double l2_bytes = 5120;
  /// Bytes a cycle between an SM and L2, in either direction: what arrives by multicast too.
  double port_bytes = 64;
  /// That share the L2: CTAs of the grid, at most as many.
  int multiprocessors = 132;
  /// Of any box, however small.
  double tma_box = 16;
  /// From a TMA store's last read of shared memory until its bytes are in global memory.
  double store_latency = 600;
  /// From a load of global memory by a thread, or cp.async, to its value.
  double global_latency = 600;

  /// Issuing an instruction that nothing else is said of.
  double issue = 4;
  /// Each access of a warp to memory, a stmatrix among them, with the arithmetic on its elements,
  /// which the machine does not see: conversion, scaling, bias, activation.
  double access = 32;
  /// A tcgen05.ld or st of a warp: until it is over, and the bytes a cycle beyond that.
  double tensor_memory_latency = 32;
  double tensor_memory_bytes = 128;
  /// From the completion of a phase until a waiting warp goes on.
  double wake = 20;
  /// Until an arrival, or a store, at another CTA of the cluster is seen there.
  double cluster_latency = 200;
};

/// Of a generation.
constexpr Timing timing_of(Generation generation) {
  ArchSpec const& spec = spec_of(generation);
  Timing timing;
  timing.tensor_rate = spec.tensor_rate;
  timing.mma_sync_share = spec.mma_sync_share;
  timing.multiprocessors = spec.multiprocessors;
  return timing;
}

/// What a span shows.
enum class SpanKind : std::uint8_t {
  wait,      ///< a thread waits: for an mbarrier, a barrier, its wgmma or copies
  issue,     ///< a thread issues wgmma or copies
  epilogue,  ///< threads that have computed handle the result: from their first access to the last
  /// threads compute exponentials: from the first to the last that no wait and no issue comes
  /// between
  exponentials,
  load,    ///< bytes arrive in shared memory
  store,   ///< bytes leave shared memory
  tensor,  ///< the tensor cores work
  phase,   ///< an mbarrier's phase, of parity 0 or 1, from the end of the one before to its own
};

/// "wait", "issue", ...
char const* to_string(SpanKind kind);

/// A row of the picture: the warps of one role in one CTA, one of the CTA's engines, or
/// an mbarrier.
struct TraceTrack {
  Dim3 cta{0, 0, 0};  ///< coordinate in the grid
  int rank = 0;       ///< of the CTA in its cluster
  std::string name;
};

/// From `begin` to `end`, in cycles since the launch. The spans of one track lie one after another
/// or one within another.
struct TraceSpan {
  int track = 0;
  SpanKind kind = SpanKind::wait;
  /// "wait full[2]", "A[2]", "wgmma 0": the first result that these warps accumulate
  std::string name;
  double begin = 0;
  double end = 0;
  /// the track of the warps whose copy or wgmma it is; -1 for what warps do themselves
  int issuer = -1;
  int count = 1;         ///< instructions that it stands for
  SourceLocation where;  ///< the line of the first of them
};

/// The timeline of the first CTAs of a launch.
struct Trace {
  std::string kernel;
  std::vector<TraceTrack> tracks;  ///< a CTA's together, warps first
  std::vector<TraceSpan> spans;    ///< by track, then begin

  /// Adds another trace's tracks and spans.
  void append(Trace&& other);
  /// The end of the last span; 0 where there is none.
  double cycles() const;
  /// The fraction of `track`'s time, from the first span's begin to the last one's end, in spans of
  /// that kind.
  double share(int track, SpanKind kind) const;
};

/// As Chrome's trace event format, which chrome://tracing and ui.perfetto.dev show: a process for
/// each CTA, a thread for each track, a nanosecond for each cycle.
std::string to_chrome_json(Trace const& trace);

/// As a self-contained SVG document: a row for each track, cycles along it. `width` is that of the
/// rows in pixels; 0 chooses it by the length of the trace.
std::string to_svg(Trace const& trace, int width = 0);

}  // namespace tegula::sim
