#pragma once

#include <cstdint>
#include <string_view>

/// In which order a launch does what its kernel leaves open: docs/machine.md, "Schedules".
namespace tegula::sim {

/// When an operation in flight (cp.async, bulk and tensor copies, st.async, wgmma) takes effect.
enum class Completion : std::uint8_t {
  last,  ///< at the last moment the PTX ISA allows: when its group is waited for, or no thread of the cluster
         ///< can run unless an mbarrier's phase completes
  first,   ///< at once
  random,  ///< anywhere between, by seed
};

/// Which warp runs next.
enum class Interleaving : std::uint8_t {
  one_warp_ahead,  ///< a warp runs until it waits for others
  round_robin,     ///< the next warp takes over after each warp-wide instruction
  random,  ///< any thread may take over at each instruction that others can notice, and lanes run in any
           ///< order, by seed
  one_warp_behind,  ///< the warp whose number in the cluster is the seed, modulo the number of its warps,
                    ///< runs only while no other warp can; the others as in one_warp_ahead
};

/// The names as the tool takes them: "last", "one_warp_ahead", ...
std::string_view to_string(Completion completion);
std::string_view to_string(Interleaving interleaving);

}  // namespace tegula::sim
