#pragma once

#include <cstdint>

#include "tegula/layout/linear_layout.hpp"

namespace tegula {

/// How a thread's address at each unrolled step follows from its address at step 0:
///
///     for every thread:
///     offset(thread, step) == (offset(thread, 0) ^ xor_part(step)) + add_part(step)
///
/// so that a kernel computes one swizzled offset at run time, and each step is an exclusive-or with
/// a constant and an addition that folds into the instruction's immediate. With a linear map, where
/// T is the set of offset bits that depend on the thread and S the image of the step: xor_part = S
/// & T, add_part = S & ~T.
///
/// A structural literal type. In device code use it as a template argument or through a local
/// `constexpr` copy: nvcc knows a static constexpr member of class type by value only. Add the
/// buffer's address last: (base + offset) ^ part is not base + (offset ^ part) unless base is a
/// multiple of a power of two above T.
struct AddressSplit {
  static constexpr int kMaxSteps = 64;

  std::uint32_t thread_bits = 0;  ///< the offset bits that depend on the thread (T)
  int steps = 0;
  std::uint32_t xor_parts[kMaxSteps] = {};
  /// modulo 2^32: an addition may be of a negative number
  std::uint32_t add_parts[kMaxSteps] = {};

  TEGULA_HOST_DEVICE constexpr std::uint32_t xor_part(int step) const { return xor_parts[step]; }
  TEGULA_HOST_DEVICE constexpr std::uint32_t add_part(int step) const { return add_parts[step]; }
  /// The offset at `step`, given the thread's offset at step 0.
  TEGULA_HOST_DEVICE constexpr std::uint32_t operator()(std::uint32_t offset, int step) const {
    return (offset ^ xor_parts[step]) + add_parts[step];
  }

  friend constexpr bool operator==(AddressSplit const&, AddressSplit const&) = default;
};

/// The split of a linear map whose lowest `thread_bits` input bits are the thread and whose others
/// are the step (at most 64 steps). Offsets must lie below 2^32. It always exists.
constexpr AddressSplit address_split(LinearLayout const& map, int thread_bits) {
  int const step_bits = map.inputs - thread_bits;
  if (thread_bits < 0 || step_bits < 0)
    refuse("address_split", "the map has fewer input bits than thread bits", map.inputs,
           thread_bits);
  if (step_bits > 6)
    refuse("address_split", "more than 64 steps (AddressSplit::kMaxSteps)", map.inputs,
           thread_bits);
  if (map.outputs > 32)
    refuse("address_split", "an offset may need more than 32 bits", map.outputs);
  AddressSplit split;
  split.steps = 1 << step_bits;
  for (int i = 0; i < thread_bits; ++i)
    split.thread_bits |= static_cast<std::uint32_t>(map.columns[i]);
  for (int step = 0; step < split.steps; ++step) {
    std::uint32_t const moved =
        static_cast<std::uint32_t>(map(static_cast<std::uint64_t>(step) << thread_bits));
    split.xor_parts[step] = moved & split.thread_bits;
    split.add_parts[step] = moved & ~split.thread_bits;
  }
  return split;
}

/// The split, in bytes, of a warp's or CTA's accesses to a tile: `threads_steps` maps (thread,
/// step) to the tile's flat index, `memory` maps that to the element, and an element has
/// `element_bytes`. Extents need not be powers of two: what is not linear is tried as a plain
/// addition, then as the exclusive-or of the bits that the threads use, and checked for every
/// thread; if neither holds it is refused. At most 1024 threads and 64 steps.
constexpr AddressSplit address_split(SwizzledLayout const& memory, Layout const& threads_steps,
                                     int element_bytes) {
  if (threads_steps.rank() != 2)
    refuse("address_split", "the second operand must have the modes (thread, step)", threads_steps);
  std::int64_t const threads = threads_steps[0].size();
  std::int64_t const steps = threads_steps[1].size();
  if (threads > 1024) refuse("address_split", "more than 1024 threads", threads_steps);
  if (steps > AddressSplit::kMaxSteps)
    refuse("address_split", "more than 64 steps (AddressSplit::kMaxSteps)", threads_steps);
  if (element_bytes < 1) refuse("address_split", "an element has less than 1 byte", element_bytes);
  if (detail::multiply(memory.cosize(), element_bytes) > std::int64_t{1} << 32) {
    refuse("address_split", "a byte offset may need more than 32 bits", memory, element_bytes);
  }

  std::uint32_t at_step_0[1024] = {};
  AddressSplit split;
  split.steps = static_cast<int>(steps);
  for (int t = 0; t < threads; ++t) {
    at_step_0[t] = static_cast<std::uint32_t>(memory(threads_steps(t)) * element_bytes);
    split.thread_bits |= at_step_0[t] ^ at_step_0[0];
  }
  for (int step = 0; step < steps; ++step) {
    std::uint32_t const first =
        static_cast<std::uint32_t>(memory(threads_steps(step * threads)) * element_bytes);
    std::uint32_t const exclusive = (first ^ at_step_0[0]) & split.thread_bits;
    std::uint32_t const parts[2][2] = {{0, first - at_step_0[0]},
                                       {exclusive, first - (at_step_0[0] ^ exclusive)}};
    bool holds[2] = {true, true};
    for (int t = 1; t < threads && (holds[0] || holds[1]); ++t) {
      std::uint32_t const offset =
          static_cast<std::uint32_t>(memory(threads_steps(t + step * threads)) * element_bytes);
      for (int k = 0; k < 2; ++k)
        holds[k] = holds[k] && (at_step_0[t] ^ parts[k][0]) + parts[k][1] == offset;
    }
    if (!holds[0] && !holds[1]) {
      refuse("address_split", "a step is not an exclusive-or and an addition common to all threads",
             memory, threads_steps, step);
    }
    split.xor_parts[step] = parts[holds[0] ? 0 : 1][0];
    split.add_parts[step] = parts[holds[0] ? 0 : 1][1];
  }
  return split;
}

}  // namespace tegula
