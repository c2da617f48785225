#pragma once

/// The problem of `tegula gemm`: its options, and the operands that they name or leave out.

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel_run.hpp"
#include "tegula/device/arguments.hpp"

namespace tegula::tool {

struct GemmOptions {
  MachineOptions machine;
  std::string a, b, c, bias, output, tiles_drawing;
  // As the files say, or the default, where the command line does not say it.
  Extent m{"m", "--m"}, n{"n", "--n"}, k{"k", "--k"}, batch{"batch", "--batch"};
  std::optional<std::string> dtype, dtype_b, out_type;
  std::string activation = "none";
  bool trans_a = false, trans_b = false, json = false, lines = false, explain = false,
       measure = false;
  float alpha = 1;
  std::optional<float> beta;  // 1 where there is a file of C, else 0
  std::optional<float> scale_a, scale_b;
  std::string scales, grouping;
  std::optional<std::string> groups;
  int repeat = 1;
  struct {
    std::string kernel, schedule, raster, widths;
    std::optional<std::string> tile, cluster;
    std::optional<int> configuration, split_k, group;
  } choice;
};

/// Adds the options to the command, with its help.
void add_gemm_options(Command const& command, GemmOptions& o);

/// Of A or B, as --scales (empty where it is left out), --groups and the machine let it be. Throws
/// argument_error that begins with the option.
DType parse_operand_type(char const* option, std::string const& name, std::string const& scales,
                         bool grouped, int compute_capability);
/// --scales nv and --scales mx have A in these types where nothing is said.
DType default_scaled_type(std::string const& scales);

/// --scales of sm_100: mx or nv.
bool has_block_scales(GemmOptions const& o);

/// The value of a name that the option has checked.
template <class Value>
Value named(std::string const& text, std::initializer_list<std::pair<char const*, Value>> names) {
  for (auto const& [name, value] : names)
    if (text == name) return value;
  throw argument_error(fmt::format("'{}' is not a name that is known here.", text));
}

/// The operands as kernels and reference read them; those of no file have no
/// data until generate_missing, and A and B with block scales are f32 until `quantise`.
struct GemmProblem {
  Operand a, b, c, bias;
  /// What nvf4 divides the values of a file by before it quantises them, so that the scales of
  /// their blocks fill the range of ue4m3; else 1.
  float tensor_factor_a = 1, tensor_factor_b = 1;
  /// scale_a and scale_b, these factors among them; none where there is nothing to multiply.
  std::optional<float> scale_a, scale_b;
  std::vector<std::uint8_t> block_scale_a, block_scale_b;
  GemmArguments arguments;    ///< without pointers
  std::vector<Said> extents;  ///< who said them
};

using Shape = std::vector<std::int64_t>;
/// With the batches in front, where there are several.
Shape batched(std::int64_t batch, Shape shape);

GemmProblem read_problem(GemmOptions o, Machine const& machine);

/// Who said the fields of types and of scales.
std::vector<Said> types_said(GemmOptions const& o, Machine const& machine);

/// A and B of f32 in the problem's types, with their scales. Precondition: checked arguments.
void quantise(GemmProblem& p);
/// An operand of f32, matrices of (rows, k), divided by a factor and as elements of `type` in rows
/// of `ld`: bytes. Returns the scales.
std::vector<std::uint8_t> quantise(Operand& x, DType type, BlockScale const& how, std::int64_t rows,
                                   std::int64_t k, std::int64_t ld, float tensor_factor = 1);

/// The arguments with the operands at these addresses; null for those that the problem does
/// not have.
struct GemmAddresses {
  void const *a, *b, *c, *bias;
  void* d;
  float const* scales;
  void const *block_scale_a, *block_scale_b;
};
GemmArguments with_addresses(GemmProblem const& p, GemmOptions const& o, GemmAddresses const& at);

}  // namespace tegula::tool
