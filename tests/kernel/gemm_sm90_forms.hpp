#pragma once

#include <span>

#include "gemm_problem.hpp"
#include "tegula/kernel/gemm_sm90.hpp"
#include "tegula/sim/report.hpp"

/// The Hopper GEMM's source, not the table's choice of it: every schedule with every cluster shape,
/// type and major that it is written for, in the smallest tiles; with parameters made apart from
/// the device layer's.
namespace tegula {

std::span<GemmSm90Config const> gemm_sm90_forms();

/// "9_pingpong_64x64_cluster_1x1_split_1_bf16_bf16_bf16_kk": a name for a test. "64x64_or_48": of
/// two widths.
std::string gemm_sm90_form_name(int form);

/// A problem of the form's types and majors, without extents.
GemmProblem problem_of_form(int form);

/// The problem as its caller has it whom the form computes it for: where its D is transposed, with
/// the roles of m and n exchanged, rows of D of whole units of 16 bytes, and without C and a bias.
GemmProblem callers_problem(int form, GemmProblem p);

/// What a launch of a form on a simulated machine did.
struct FormResult : GemmResult {
  sim::Report report;
  TilePartition tiling;
};

/// Runs a caller's problem by a form, on at most `clusters` clusters; D is cut into tiles of two
/// widths where the form has them and that makes the clusters' longest share shorter.
FormResult run_form(Machine const& machine, int form, GemmProblem const& p, int clusters,
                    Raster raster = Raster::along_n);

}  // namespace tegula
