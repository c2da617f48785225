#include <cstdint>
#include <limits>

#include "gemm_problem.hpp"

/// The command line of `tegula gemm`.
namespace tegula::tool {
namespace {

constexpr char const* kFooter =
    R"(A is (m, k), or (k, m) with --trans-a; B is (k, n), or (n, k) with --trans-b; C and D are (m, n); bias is (n).
With --batch each of A, B, C and D has one axis more, in front; a file of A, B or C without it serves all batches.
Every array is dense and row-major. D = activation(alpha scale_a scale_b A B + beta C + bias) is checked against
float64, within a bound derived from the arithmetic. A result beyond it, or a finding of the checker, exits with 1.

With --groups, or --scales 1x128,128x128 or 1x128,1x128, operands are generated, B is (n, k), and D = A B^T, or with
--beta 1 D = A B^T + C, for each group. Groups without rows give a D of none. With --scales mx or nv (sm_100) B is
(n, k), and A and B are quantised: the values of files, or generated ones. With nv those of a file are divided by
(their largest / 2688) before, and --scale-a or --scale-b multiplied by it, so that the scales of blocks fill the range
of ue4m3. The check begins with what was quantised, or rounded from a file: values that this lost are counted in a note.

The kernel and its configuration are chosen by a model of the GPU, which --explain shows; the options under "choice"
decide parts of it by hand.

Examples:
  tegula gemm --m 512 --n 512 --k 256
  tegula gemm --m 100 --n 70 --k 33 --dtype f16 --out-type f32 --trans-b --device sim --arch sm80 --json
  tegula gemm --in e4m3 --in-b e5m2 --trans-b --scale-a 0.5 --scale-b 2 --activation gelu --batch 3 --m 64 --n 96 --k 128 --out bf16
  tegula gemm --a x.npy --b model.safetensors:encoder.weight --trans-b --bias model.safetensors:encoder.bias --dtype f16 --output y.npy
  tegula gemm --m 4096 --n 4096 --k 4096 --trans-b --device sim --explain
  tegula gemm --m 4096 --n 4096 --k 4096 --trans-b --device sim --explain --tile 128x256 --draw-tiles tiles.svg
  tegula gemm --m 8192 --n 8192 --k 8192 --device cuda --schedule pingpong --repeat 20
  tegula gemm --m 200 --n 384 --k 512 --in e4m3 --scales 1x128,128x128
  tegula gemm --m 200 --n 384 --k 512 --in e2m1 --scales nv --device sim --arch sm100
  tegula gemm --groups 100,0,17 --n 256 --k 512 --in bf16
  tegula gemm --groups 128,17 --n 256 --k 512 --scales mx --device sim --arch sm100)";

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

}  // namespace

void add_gemm_options(Command const& command, GemmOptions& o) {
  command.footer(kFooter);
  command.add_option("--a", o.a, "A, from FILE.npy or FILE.safetensors:NAME; generated if left out")
      .check(file_name());
  command.add_option("--b", o.b, "B, likewise").check(file_name());
  command.add_option("--c", o.c, "C, likewise; if left out, generated where --beta is not 0")
      .check(file_name());
  command
      .add_option("--bias", o.bias,
                  "a row of n elements that is added to every row of D, from such a file")
      .check(file_name());
  auto const extent = [&](char const* name, Extent& value, char const* text) {
    command.add_option(name, value.value, text).check(whole_number(1, kMaxExtent));
  };
  extent(
      "--m", o.m,
      "rows of D (default: as the files have it, else 256; with --groups what their sizes add up to, "
      "with --grouping masked the largest of them)");
  extent("--n", o.n, "columns of D (default: as the files have it, else 256)");
  extent(
      "--k", o.k,
      "columns of A, which are the rows of B (likewise; with --grouping k what the sizes of --groups "
      "add up to)");
  extent("--batch", o.batch,
         "number of products, each of its own matrices (default: as the files have it, else 1)");
  command.add_text(
      "--dtype,--in", o.dtype,
      "type of A and B: f16, bf16, tf32 (not with --groups), e4m3 or e5m2; with --scales of 128 e4m3 or "
      "e5m2; with mx e4m3, e5m2, e2m3, e3m2 (these two not with --groups) or e2m1; with nv e2m1. Files of "
      "another type are rounded to it. (Default: that of the files, else bf16; with mx and scales of "
      "128 e4m3, with nv e2m1)");
  command.add_text(
      "--in-b", o.dtype_b,
      "type of B where it is not A's: of e4m3 and e5m2 the other one; with --scales mx e4m3 beside e5m2, "
      "and beside e4m3 any of its types (default: --dtype, else that of B's file, else A's; with "
      "--scales or --groups beside e5m2 e4m3)");
  command.add_text(
      "--out-type,--out", o.out_type,
      "type of D, C and bias: f16, bf16 or f32 (default: A's; f32 where A is tf32, bf16 where it "
      "has 8 bits or fewer; with --groups or scales of 128 f32 where only that is computed)");
  command.add_flag("--trans-a", o.trans_a, "A is stored as (k, m)");
  command.add_flag("--trans-b", o.trans_b,
                   "B is stored as (n, k), as it is with --scales or --groups anyway");
  command.add_option("--alpha", o.alpha, "factor of A B").check(real_number()).show_default();
  command.add_option("--beta", o.beta, "factor of C (default: 1 with --c, else 0)")
      .check(real_number());
  command
      .add_option(
          "--scale-a", o.scale_a,
          "the scale of A, by which fp8 tensors stand for larger numbers: one more factor of A B, "
          "which the kernel reads from memory")
      .check(real_number());
  command.add_option("--scale-b", o.scale_b, "the scale of B, likewise").check(real_number());
  command
      .add_option(
          "--scales", o.scales,
          "scales of blocks along k; B is then (n, k). Of fp8, blocks of 128: 1x128,128x128 (a scale "
          "for each row of A, and for 128 columns of B) or 1x128,1x128 (for each column of B). On "
          "sm_100: mx (ue8m0 for each 32 elements) or nv (ue4m3 for each 16; what files hold is divided "
          "by a factor of the tensor before). none: the kernel of groups, without scales (default: none, "
          "but of groups of fp8 on an sm_90 1x128,128x128, with --grouping k 1x128,1x128)")
      .check(one_of({"none", "1x128,128x128", "1x128,1x128", "mx", "nv"}));
  command.add_text(
      "--groups", o.groups,
      "multiply groups, each with a B of its own, (n, k): how many rows of A each has, such as 300,0,17; "
      "with --grouping k how many columns");
  command
      .add_option(
          "--grouping", o.grouping,
          "what belongs to a group of --groups: contiguous, rows behind those of the group before; "
          "masked, the first rows of a matrix of --m rows; k, columns of A and B (default: "
          "contiguous)")
      .check(one_of({"contiguous", "masked", "k"}));
  command
      .add_option("--activation", o.activation,
                  "a function of each element of D; gelu is the form with tanh")
      .check(one_of({"none", "relu", "gelu", "silu"}))
      .show_default();
  command.add_option("--output", o.output, "write D to FILE.npy or FILE.safetensors:NAME")
      .check(file_name());
  add_repeat(command, o.repeat, o.machine);
  command.add_flag(
      "--explain", o.explain,
      "run nothing: print the configurations that could compute the problem, the time predicted for each, "
      "and why one is chosen; with --lines also those that could not, and why");
  command
      .add_option(
          "--draw-tiles", o.tiles_drawing,
          "draw, as SVG, how gemm_sm90 cuts D into tiles, each in the colour of its wave; also with "
          "--explain")
      .check(own_file_name());
  command.add_flag(
      "--measure", o.measure,
      "on a GPU: time every configuration that could compute the problem, by --repeat launches of each, "
      "and print that beside the predicted time");
  auto const choice = [&](char const* name, auto& value, char const* text) {
    return command.add_option(name, value, text).group("choice");
  };
  choice("--kernel", o.choice.kernel, "the generation that the kernel is written for")
      .check(one_of({"sm100", "sm90", "sm80"}));
  choice("--config", o.choice.configuration,
         "number of the configuration, as --explain and `tegula info` show it; one of gemm_sm80's "
         "needs --kernel sm80")
      .check(whole_number(0, kMostInt));
  choice("--schedule", o.choice.schedule, "how the warpgroups of gemm_sm90 share tiles")
      .check(one_of({"basic", "cooperative", "pingpong"}));
  command
      .add_text("--tile", o.choice.tile,
                "rows and columns of D that a CTA computes at a time, such as 128x256")
      .group("choice");
  command
      .add_text("--cluster", o.choice.cluster, "CTAs of a cluster along m and along n, such as 2x1")
      .group("choice");
  choice(
      "--split-k", o.choice.split_k,
      "number of CTAs that share a tile, each computing a part of k: of one cluster, or of several, "
      "whose sums meet in a workspace")
      .check(whole_number(1, kMostInt));
  choice("--raster", o.choice.raster, "the axis of D along which tiles follow each other")
      .check(one_of({"m", "n"}));
  choice("--group", o.choice.group,
         "how many tiles side by side, across that axis, come before the next ones along it")
      .check(whole_number(1, kMostInt));
  choice(
      "--widths", o.choice.widths,
      "how many widths the tiles of gemm_sm90 have: one, or two (some narrower, where that shortens the "
      "longest share of a cluster; default: two where that is predicted to be faster)")
      .check(one_of({"one", "two"}));
  add_machine_options(command, o.machine);
  command.add_flag("--lines", o.lines, "print what the simulated GPU counted, by source line");
  command.add_flag("--json", o.json, "print one JSON object");
}

}  // namespace tegula::tool
