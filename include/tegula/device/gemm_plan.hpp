#pragma once

/// Which kernel computes a GEMM, in which configuration and in which order of tiles. Pure functions
/// of the arguments, the device and a model of its speed, from one configuration's cost up to the
/// plan, which lists all candidates, what each would take and why the others cannot; every value
/// can be printed.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tegula/device/arguments.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"

namespace tegula {

/// How D is cut, a tile being a cluster's: "12 rows of 16 tiles and 4 rows of 17, of which 64
/// are 240 columns wide and the others 256".
std::string to_string(TilePartition const& tiling, TileWidths widths);

/// The problem in a line: "D (batch 4, 512, 256) bf16 = gelu(A (512, 64) bf16 K-major x B ...)".
std::string to_string(GemmArguments const& arguments);

/// Why TMA cannot address A, B or D, or the epilogue cannot read C or the bias in pairs, which
/// rules gemm_sm90 out: "a is 0x10008, 8 bytes past a multiple of 16"; empty where it can. A
/// leading dimension or batch stride that no step is taken along does not count.
std::string tma_obstacle(GemmArguments const& arguments);

/// What gemm_sm90 does in which time on an H200, beside what DeviceProperties say of the GPU at
/// hand. Tuned for speed, not correctness: a wrong value chooses a slower configuration, never a
/// wrong result. Values are those whose choices lost least against the best of the table, and whose
/// predictions erred least, at 600 problems of bf16 and as many of e4m3 as measured on 2026-11-23;
/// then, from these on, at 60 problems of bf16 with up to 70 tiles each and some 190 of both types
/// with one to four, measured on 2026-11-24; then what L2 gives, at 400 of each on an H100, with up
/// to 48 tiles each, on 2026-11-27 (docs/decisions.md, 169 and 171, has what choices lose). A
/// launch is timed from event to event.
struct GemmSm90CostModel {
  double clock_share = 1;  ///< of the highest clock, with the tensor cores at work
  double multiply_adds_per_cycle =
      2048;  ///< of an SM, for 16-bit operands: wgmma m64n256k16 takes 128 cycles
  double operand_bytes_per_cycle =
      106;  ///< that wgmma reads from shared memory: what narrow tiles wait for
  // Loads.
  double sm_bytes_per_cycle = 142;   ///< that one SM takes from L2
  double basic_share = 1.2;          ///< of those, where one consumer computes
  double idle_gain = 1.5;            ///< more of those, for each part of the SMs that is idle
  double multicast_cost = 0.993;     ///< of bytes that come by multicast, of those that do not
  double cooperative_fetch = 0.978;  ///< times as long, where both consumers wait for a stage
  double clustered_fetch = 1.15;     ///< times as long, where CTAs wait for their peers' loads
  double zero_row_cycles = 1.33;     ///< of TMA, for a row of zeros in a box
  double l2_bytes_per_cycle = 9259;  ///< from L2 to all SMs
  double straddling = 1.42;         ///< times as many bytes, of rows that begin inside a line of L2
  double sector = 1.55;             ///< times as many again, of rows that begin inside a sector
  double hot_bytes_per_cycle = 64;  ///< from a slice of L2, of lines that many SMs read at a time
  double hot_span = 2048;           ///< bytes from the first of such lines that one slice has
  double dram_share = 0.946;        ///< of the memory's bandwidth
  double fetch_latency_cycles = 2099;  ///< until a stage's loads have arrived, at the worst
  double late_loss = 0.472;  ///< of the main loop, by the share of that time not run ahead
  // Beginning and end.
  double launch_us = 3.27;           ///< of an empty kernel, and the way to its first load
  double cluster_us = 0.0381;        ///< more, for clusters of two CTAs; for four twice as much
  double second_us = 0.266;          ///< more, where there are more CTAs than SMs
  double fill_us = 1.23;             ///< until the first tiles of A and B have arrived
  double step_us = 0.024;            ///< of a step along K, whatever it does
  double epilogue_us = 1.29;         ///< for 128 accumulators a thread, the most there are
  double least_epilogue_us = 0.582;  ///< for none
  double early_epilogue = 0.25;      ///< of an epilogue, saved by each tile but an SM's last one
  double transposed_us = 0.15;       ///< more, for 128 accumulators a thread, where D is transposed
  double from_registers_us = 1.5;    ///< likewise where it leaves from registers
  double one_buffer_us = 0.857;      ///< more, where a warp has one buffer for D, not two
  double read_c_us = 1.0;            ///< more, for 128 accumulators a thread, where beta is not 0
  double store_tb_per_s = 2.6;       ///< that L2 takes from all SMs
  double reduction_us = 0.18;        ///< more, where CTAs share K
  double reduction_cta_us = 0.0309;  ///< more, for each of the CTAs that share a tile's K
  double reduction_tile_us = 3.11;   ///< more, for 128 accumulators of each of them
  double reduction_cooperative_us = 0.5;  ///< more, where consumers share a tile
  double relaunch_us = 1.25;              ///< more, for each further wave of such clusters
  // K in parts, whose sums meet in a workspace.
  double parts_us = 2.3;               ///< from a part's sums to the arrival of all parts
  double part_us = 0.05;               ///< more for each part
  double parts_stored_per_cycle = 32;  ///< bytes of sums that one SM leaves
  double parts_taken_per_cycle = 80;   ///< bytes of all parts' sums that one SM takes
  // Tiles of two widths, which share fewer operands with their neighbours.
  /// of the tensor cores' time, that memory may take at most
  double fitted_dram_cooperative = 0.455;
  double fitted_dram_pingpong = 0.436;
  double fitted_gain = 0.003;  ///< of the busiest SM's share, that they must gain at least
  /// of what the shares promise, that they have been seen to gain
  double fitted_yield_cooperative = 0.873;
  double fitted_yield_pingpong = 0.359;
  // What hides and what does not.
  double uneven_loss =
      0.309;  ///< of memory's time, where it takes the longest, by the idle share of several waves
  double overlap_loss = 0.316;  ///< of what hides under something longer, the share that does not
  // Meetings that keep the clusters in step.
  int lockstep_steps = 64;  ///< of K, from one to the next
  int paced_steps = 128;    ///< of K, that a tile has at least where they meet
  double paced_mb = 350;    ///< of A and B together, at least: it pays from 370 on (seen)
  /// Whether what the model says is corrected by what was learned from launches that were timed
  /// (src/device/families/gemm_sm90_correction.hpp).
  bool corrected = true;
  double least_correction = 0.8;  ///< a smaller one, as of four launches in a thousand, is this
};

/// The same of the other families, of a Hopper GPU, and what all have in common.
struct GemmCostModel {
  double clock_share = 0.843;             ///< of the highest clock, with the tensor cores at work
  double multiply_adds_per_cycle = 2048;  ///< of an SM, for 16-bit operands
  double operand_bytes_per_cycle = 85;    ///< that wgmma reads from shared memory
  double sm_bytes_per_cycle = 68.1;       ///< that one SM takes from L2
  double dram_share = 0.73;               ///< of the memory's bandwidth
  double launch_us = 3.72;                ///< of an empty kernel, and the way to its first load
  double fill_us = 0.473;                 ///< until the first tiles of A and B have arrived
  double epilogue_us = 1.35;              ///< for 128 accumulators a thread, the most there are
  double least_epilogue_us = 0.777;       ///< for none
  double reduction_tile_us = 0.718;       ///< more, where CTAs share K, for 128 accumulators
  double sm80_multiply_adds_per_cycle = 1200;  ///< of an SM, by mma.sync, in gemm_sm80
  int gpcs = 8;                                ///< groups of SMs that clusters go to in turn
  /// Of the SMs, those that clusters of more than two CTAs get: a cluster lies in one group.
  double clustered_share = 0.91;
  double odd_loss = 0.04;  ///< less, where they have an odd number of CTAs
  GemmSm90CostModel sm90;
};

/// Where the time of a launch is predicted to go, in microseconds.
struct GemmCost {
  int tiles = 0;  ///< of the whole problem
  int waves = 0;  ///< tiles that the busiest SM computes one after another
  /// of the busiest SM, in whole tiles: less than waves where some tiles are narrower, by what that
  /// has been seen to gain (GemmSm90CostModel::fitted_yield_cooperative)
  double share = 0;
  double launch = 0;
  double fill = 0;    ///< of the pipeline, and its gaps
  double tensor = 0;  ///< the busiest SM's tensor cores
  double l2 = 0;      ///< from L2, the slower of all traffic and the busiest SM's
  double dram = 0;
  double epilogue = 0;  ///< that does not lie under a main loop
  /// what was learned of such launches, as a factor; 1 of another kernel than gemm_sm90
  double correction = 1;
  /// launch, fill and epilogue, and the longest of the other three; times the correction
  double total = 0;
};

/// A way to compute a problem: a configuration of one of the families, and for gemm_sm90 its
/// tiles' order.
struct GemmChoice {
  FamilyId kernel = gemm_sm80;
  int configuration = 0;  ///< its number
  TilePartition tiling;   ///< of gemm_sm90, into clusters' tiles
  int clusters = 1;       ///< of gemm_sm90's grid
  /// that K is computed in by several clusters, of gemm_sm90: as many of the tiling's batches are
  /// one of D
  int parts = 1;
  /// steps of K between meetings of the clusters (pipeline/lockstep_barrier.hpp); 0, and with
  /// split_k or parts: none
  int lockstep_steps = 0;
  GemmCost cost;
};

/// What a caller wants to decide for itself; the rest is chosen. An empty value admits all.
struct GemmConstraints {
  std::optional<FamilyId> kernel;
  std::optional<int> configuration;  ///< its number (gemm_sm90's, unless kernel says gemm_sm80)
  std::optional<Schedule> schedule;
  std::optional<int> block_m, block_n;
  std::optional<int> cluster_m, cluster_n;  ///< CTAs: on Blackwell 2 x 1 is a pair
  std::optional<int> split_k;  ///< CTAs that share a tile's K, in a cluster or in parts
  std::optional<Raster> raster;
  std::optional<int> group;  ///< tiles across the raster axis
  /// whether D is cut into tiles of two widths, where that evens the shares
  std::optional<bool> fitted;
};

namespace device {
/// `config` is one of the family's Config.
GemmChoice predict(FamilyId kernel, void const* config, GemmArguments const& arguments,
                   DeviceProperties const& device, GemmConstraints const& constraints,
                   GemmCostModel const& model);
}  // namespace device

/// What a configuration is predicted to take, in the order of tiles that suits it best, or that
/// `constraints` ask for. Precondition: it can compute the checked arguments.
template <FamilyConfig C>
GemmChoice predict(GemmArguments const& arguments, C const& config, DeviceProperties const& device,
                   GemmConstraints const& constraints = {}, GemmCostModel const& model = {}) {
  return device::predict(FamilyOf<C>{}, &config, arguments, device, constraints, model);
}

/// The choice among the configurations of this build: the candidate of the least predicted time;
/// gemm_sm80 only where gemm_sm90 cannot, unless it is asked for. Precondition: checked arguments.
/// Throws argument_error, saying what stands against each kernel, where none can.
GemmChoice choose_gemm(GemmArguments const& arguments, DeviceProperties const& device,
                       GemmConstraints const& constraints = {}, GemmCostModel const& model = {});

/// The choices that are worth timing where a problem comes often: at most `most`, that of
/// choose_gemm first, then those of about its predicted time, each in its own order of tiles and in
/// others. All compute the same problem; their results may differ in rounding. Precondition and
/// errors as of choose_gemm; most >= 1.
std::vector<GemmChoice> tuning_candidates(GemmArguments const& arguments,
                                          DeviceProperties const& device, int most = 8,
                                          GemmConstraints const& constraints = {},
                                          GemmCostModel const& model = {});

/// Bytes of GemmArguments::workspace with which the choice is the best; 0 where that needs none.
/// Whatever workspace the arguments have. Precondition and errors as of choose_gemm.
std::int64_t gemm_workspace_bytes(GemmArguments const& arguments, DeviceProperties const& device,
                                  GemmConstraints const& constraints = {},
                                  GemmCostModel const& model = {});

struct GemmCandidate {
  GemmChoice choice;
  std::string name;
  std::string refused;  ///< why it is not for this problem; empty for those that could be chosen
};

/// All there is to say about a choice.
struct GemmPlan {
  std::string problem;
  /// those that could be chosen, the soonest first; then the refused
  std::vector<GemmCandidate> candidates;
  std::string reason;  ///< for the choice: the first candidate

  GemmChoice const& chosen() const { return candidates.front().choice; }
};

/// As choose_gemm, with everything that it weighed. Throws as it does.
GemmPlan plan_gemm(GemmArguments const& arguments, DeviceProperties const& device,
                   GemmConstraints const& constraints = {}, GemmCostModel const& model = {});

/// A table for people: the problem, the candidates with their costs, how many were refused and for
/// what, and the reason. With `all`, each refused one in a line of its own.
std::string to_string(GemmPlan const& plan, bool all = false);

}  // namespace tegula
