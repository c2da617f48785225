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

/// Of A or B. Only where there are block scales (`scaled`) may they have less than 8 bits. Throws
/// argument_error that begins with the option.
DType parse_operand_type(char const* option, std::string const& name, bool scaled);

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
  std::vector<float> scales;
  std::vector<std::uint8_t> block_scale_a, block_scale_b;
  GemmArguments arguments;    ///< without pointers
  std::vector<Said> extents;  ///< who said them
};

using Shape = std::vector<std::int64_t>;
/// With the batches in front, where there are several.
Shape batched(std::int64_t batch, Shape shape);

GemmProblem read_problem(GemmOptions o);

/// A and B of f32 in the problem's types, with their scales. Precondition: checked arguments.
void quantise(GemmProblem& p);
/// An operand of f32, matrices of (rows, k), as elements of `type` in rows of `ld`: bytes. Returns
/// the scales.
std::vector<std::uint8_t> quantise(Operand& x, DType type, BlockScale const& how, std::int64_t rows,
                                   std::int64_t k, std::int64_t ld);

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
