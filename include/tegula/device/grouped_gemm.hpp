#pragma once

/// GEMMs with scales for blocks of 128 of K, and groups of GEMMs: what a caller asks for, which
/// configuration computes it, and the entry point.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tegula/device/arguments.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/device/stream.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"

namespace tegula {

/// D = A B^T + C for each group. A and B are K-major, C and D row-major. `grouping` says what a
/// group has of them; its range is [group_begins[g], group_ends[g]), device memory that is read
/// when the kernel runs. Where group_begins is null a group begins where the one before ends.
///
/// | grouping   | A              | B              | C, D           | group_ends                |
/// | none       | (m, k)         | (n, k)         | (m, n)         | null                      |
/// | contiguous | (m, k)         | (groups, n, k) | (m, n)         | running sums of rows      |
/// | masked     | (groups, m, k) | (groups, n, k) | (groups, m, n) | rows of a group           |
/// | k          | (m, k)         | (n, k)         | (groups, m, n) | running sums of columns   |
///
/// Rows of A and D that are no group's are neither computed nor written; groups may be empty. With
/// Grouping::k a group without columns has D = C, or zeros; one whose columns begin at no multiple
/// of 16 bytes of A and B, where TMA cannot load them, has a D of NaN.
///
/// With scales, an element of A or B stands for itself times its scale (docs/low_precision.md):
///
///     scale_a   (blocks of K, rows of A): block b of row i at scale_a[b * scale_a_stride + i]
///     scale_b   rows_by_blocks: (groups, blocks of n, blocks of K), contiguous
///               rows_by_rows:   ((groups,) blocks of K, rows of B), as scale_a
///
/// A block is 128 elements, the last one what is left. With Grouping::k each group's columns begin
/// a block of their own: there are as many as blocks of all groups (scale_blocks is the most).
///
/// On sm_90 A, B and D may be: e4m3 both, into bf16 or f32; e5m2 and e4m3, into bf16
/// (rows_by_blocks) or f32; bf16 or f16 both, into their own type or f32. fp8 has these scales
/// there; on sm_100 nothing has them. There A and B may have block_scale instead
/// (docs/low_precision.md): e4m3 or e5m2 each, or e2m1 both, with kMxScale; e2m1 both with
/// kNvScale. Elements of e2m1 lie packed, and k is even. The scales lie in pieces of 128 rows
/// (kernel/block_scale.hpp), those of each group's B, and where masked of its A, one behind the
/// other. Contiguous groups begin at multiples of 128 rows, and share the pieces of A. Groups of k
/// share all pieces, and begin with one: at multiples of 128 columns with kMxScale, of 64 with
/// kNvScale; of e2m1 they end at an even column. A group that does not has a D of NaN. What a piece
/// has behind a group's end is not used.
///
/// Everything is what TMA can address: A, B and the scales of rows at multiples of 16 bytes, and
/// their leading dimensions and strides too. Of D and C any extents and strides are computed, those
/// of whole 16 bytes faster.
struct GroupedGemmArguments {
  DType in = DType::e4m3;          ///< of a: e4m3, e5m2, bf16 or f16; e2m1 with block_scale
  std::optional<DType> in_b = {};  ///< of b; left out: e4m3 of fp8, else as a
  std::optional<DType> out = {};   ///< of c and d; left out: default_output(in)
  /// Left out: none with block_scale, else rows_by_blocks of fp8 (groups of k: rows_by_rows), or
  /// none.
  std::optional<Scales> scales = {};
  Grouping grouping = Grouping::none;
  std::int64_t groups = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  void const* a = nullptr;
  void const* b = nullptr;
  void const* c = nullptr;  ///< optional; may be d
  void* d = nullptr;
  float const* scale_a = nullptr;
  float const* scale_b = nullptr;
  /// Of A and B alike: kMxScale or kNvScale; of block 0, the default: none. Then device pointers to
  /// their scales, aligned to 16 bytes.
  BlockScale block_scale = {};
  void const* block_scale_a = nullptr;
  void const* block_scale_b = nullptr;
  int const* group_begins = nullptr;
  int const* group_ends = nullptr;
  /// In elements; left out: those of contiguous tensors. The strides of scales: the rows, rounded
  /// up to a multiple of 4.
  std::optional<std::int64_t> lda = {}, ldb = {}, ldc = {}, ldd = {};
  std::optional<std::int64_t> b_group_stride = {}, c_group_stride = {}, d_group_stride = {};
  std::optional<std::int64_t> scale_a_stride = {}, scale_b_stride = {};
  /// What the choice of a configuration counts on for a group: left out, m of masked, else an equal
  /// share. No result depends on it.
  std::optional<std::int64_t> expected_rows = {};
};

/// The same arguments with all set that was left out.
GroupedGemmArguments with_defaults(GroupedGemmArguments const& arguments);
/// The problem in a line.
std::string to_string(GroupedGemmArguments const& arguments);

/// Rows of A and D, of all groups together.
std::int64_t rows_of_a(GroupedGemmArguments const& arguments);
/// The blocks of 128 of K that have scales: with Grouping::k, the most that there can be.
std::int64_t scale_blocks(GroupedGemmArguments const& arguments);
/// The distance between blocks of scales of so many rows: a multiple of 16 bytes, for TMA.
constexpr std::int64_t scale_stride(std::int64_t rows) { return (rows + 3) / 4 * 4; }

/// Throws argument_error with a sentence of its own for each thing that is not computed. What
/// group_begins and group_ends hold is not looked at: the kernel keeps within the tensors whatever
/// it is.
void check(GroupedGemmArguments const& arguments, int compute_capability);

/// Where the time of a launch is predicted to go, in microseconds, where the groups are as large as
/// expected. The constants are those of GemmCostModel.
struct GroupedGemmCost {
  std::int64_t tiles = 0;  ///< of the whole problem
  int waves = 0;           ///< tiles that the busiest SM computes one after another
  double tensor = 0;       ///< the busiest SM's tensor cores, and the promotion they wait for
  double l2 = 0;
  double dram = 0;
  double epilogue = 0;
  double total = 0;
};

struct GroupedGemmChoice {
  FamilyId kernel = grouped_gemm_sm90;
  int configuration = 0;  ///< its number
  int clusters = 1;       ///< of the grid
  int band = 8;           ///< GroupTiles::band
  GroupedGemmCost cost;
};

/// What a caller wants to decide for itself; the rest is chosen.
struct GroupedGemmConstraints {
  std::optional<int> configuration;  ///< its number
  std::optional<int> block_m, block_n, cluster_m, cluster_n, split_k;
  std::optional<int> band;
  std::optional<int> clusters;
};

struct GroupedGemmCandidate {
  GroupedGemmChoice choice;
  std::string name;
  std::string refused;  ///< why it is not for this problem; empty for those that could be chosen
};

/// All there is to say about a choice.
struct GroupedGemmPlan {
  std::string problem;
  std::vector<GroupedGemmCandidate> candidates;  ///< the soonest first; then the refused
  std::string reason;                            ///< for the choice: the first candidate

  GroupedGemmChoice const& chosen() const { return candidates.front().choice; }
};

/// The configuration of the least predicted time. Precondition: checked arguments. Throws
/// argument_error where none computes them.
GroupedGemmPlan plan_grouped_gemm(GroupedGemmArguments const& arguments,
                                  DeviceProperties const& device,
                                  GroupedGemmConstraints const& wanted = {});
GroupedGemmChoice choose_grouped_gemm(GroupedGemmArguments const& arguments,
                                      DeviceProperties const& device,
                                      GroupedGemmConstraints const& wanted = {});
/// A table for people. With `all`, each refused candidate in a line of its own.
std::string to_string(GroupedGemmPlan const& plan, bool all = false);

/// See GroupedGemmArguments. Throws argument_error before anything runs, device_error where the
/// launch fails. Owns, allocates and synchronises nothing: it can be captured in a CUDA graph, and
/// follows what group_begins and group_ends hold when the graph runs.
void grouped_gemm(Machine const& machine, GroupedGemmArguments const& arguments,
                  Stream stream = {});
/// The same by a choice made before for such arguments.
void grouped_gemm(Machine const& machine, GroupedGemmArguments const& arguments,
                  GroupedGemmChoice const& choice, Stream stream = {});

namespace reference {
/// D for the given rows, which number D's in C order, (rows, n), with what a correct kernel may
/// differ by. A row that is no group's has an infinite bound. Precondition: the arguments pass
/// `check`, with pointers to host memory, the groups' too; c is not d.
Values grouped_gemm(GroupedGemmArguments const& host, std::vector<std::int64_t> const& rows);
}  // namespace reference

}  // namespace tegula
