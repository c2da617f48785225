#pragma once

#include <optional>
#include <string>

#include "kernel_run.hpp"

namespace tegula::tool {

/// `tegula gemm` with --scales or --groups: a GEMM with scales of blocks, or of groups.
struct GroupedGemmCommand {
  MachineOptions const& machine;
  std::string scales;                ///< of Scales, as the kernels' names have it; empty: by type
  std::string grouping;              ///< contiguous, masked or k; empty: contiguous
  std::optional<std::string> sizes;  ///< of the groups: "3,0,5"
  std::optional<std::string> in, in_b, out;
  std::int64_t m = 0, n = 0, k = 0;  ///< 0: the command line does not say it
  bool adds_c = false;
  std::string output;
  int repeat = 1;
  bool json = false, lines = false, explain = false;
  std::optional<int> configuration, split_k, block_m, block_n, cluster_m, cluster_n;
  Asked asked;  ///< the options of the choice, as they were given
};

/// Runs it, or explains the choice. Throws argument_error where an option asks for what there is
/// not, reported_failure where the result is wrong.
void run_grouped_gemm(GroupedGemmCommand const& command);

}  // namespace tegula::tool
