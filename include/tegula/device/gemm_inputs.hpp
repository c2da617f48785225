#pragma once

/// What brings operands, scales and groups into the form that grouped_gemm reads: quantisation to
/// fp8, scales of rows for TMA, the rows of each group.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tegula/device/error.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/stream.hpp"
#include "tegula/kernel/gemm_inputs_config.hpp"

namespace tegula {

/// One of the steps (InputStep), on device pointers. Left out are strides of contiguous rows, and
/// the distances between scales that grouped_gemm takes where its own are left out.
///
///     quantize_rows     q (rows, columns) = x / scale, scale (blocks of columns, rows) the largest
///                       magnitude of a row's 128 columns over that of the fp8 type
///     quantize_blocks   the same of 128 x 128, scale (blocks of rows, blocks of columns)
///     transform_scales  scale (columns, rows) = x (rows, columns), f32: rows' scales as TMA
///                       reads them
///     group_bounds      x holds the group of each of `rows` rows as an int, a group's rows one
///                       after another (-1, or any other that is no group's number: a row of
///                       none): begins and ends, an entry for each group
///
/// A block of zeros has the least normal float for a scale, one with a NaN has NaN.
struct GemmInputsArguments {
  InputStep step = InputStep::quantize_rows;
  DType in = DType::bf16;   ///< of x where it is quantised: bf16 or f32
  DType out = DType::e4m3;  ///< of q: e4m3 or e5m2
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  void const* x = nullptr;
  void* q = nullptr;
  float* scales = nullptr;
  bool power_of_two = false;  ///< scales are rounded up to powers of two
  std::int64_t groups = 0;
  int* begins = nullptr;
  int* ends = nullptr;
  std::optional<std::int64_t> ldx = {}, ldq = {}, scale_stride = {};
};

GemmInputsArguments with_defaults(GemmInputsArguments const& arguments);
std::string to_string(GemmInputsArguments const& arguments);

/// Throws argument_error with a sentence for each thing that is not computed.
void check(GemmInputsArguments const& arguments, int compute_capability);

struct GemmInputsChoice {
  FamilyId kernel = gemm_inputs;
  int configuration = 0;
};

/// Launches a step. Throws argument_error before anything runs, device_error where the launch
/// fails.
void prepare_gemm_inputs(Machine const& machine, GemmInputsArguments const& arguments,
                         Stream stream = {});

namespace reference {
/// What the elements of q times their scales stand for, (rows, columns): x, and how far
/// quantisation may be from it. Precondition: the arguments pass `check`, with pointers to host
/// memory, of a step that quantises.
Values gemm_inputs(GemmInputsArguments const& host, std::vector<std::int64_t> const& rows);
}  // namespace reference

}  // namespace tegula
