#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula {

/// What brings operands, scales and groups into the form that grouped GEMMs read.
enum class InputStep : std::uint8_t {
  quantize_rows,     ///< to fp8, a scale for each row and 128 columns
  quantize_blocks,   ///< to fp8, a scale for each 128 x 128
  transform_scales,  ///< of rows, from row-major to MN-major
  group_bounds,      ///< from a group for each row to the rows of each group
};

/// One such kernel: from `in` to `out`, of the steps that quantise.
struct GemmInputsConfig {
  InputStep step = InputStep::quantize_rows;
  DType in = DType::bf16;
  DType out = DType::e4m3;

  constexpr bool operator==(GemmInputsConfig const&) const = default;
};

/// Threads of a CTA, and, of quantize_rows, the pieces of 128 columns that it does: a warp each.
inline constexpr int kInputThreads = 256;
inline constexpr int kInputWarps = kInputThreads / 32;

/// What the kernels are launched with. Quantised are rows x columns elements of x; transformed rows
/// x columns scales; group_bounds reads `rows` numbers of groups below `groups`.
struct GemmInputsParams {
  void const* x = nullptr;
  std::int64_t ldx = 0;
  void* q = nullptr;  ///< fp8, row-major
  std::int64_t ldq = 0;
  float* scales = nullptr;  ///< of rows: block b of row i at b * scale_stride + i; of blocks (block
                            ///< of rows, block of columns), scale_stride apart
  std::int64_t scale_stride = 0;
  int rows = 0;
  int columns = 0;
  bool power_of_two = false;  ///< scales are rounded up to one
  int* begins = nullptr;
  int* ends = nullptr;
  int groups = 0;
};

/// The scale of a block whose largest magnitude has the bits `most`, of a type whose largest finite
/// value is `largest`: that magnitude becomes the largest value. At least the least normal float,
/// so that a block of zeros is divided by something; NaN where an element is. `power_of_two`:
/// rounded up to one.
TEGULA_HOST_DEVICE constexpr float block_scale(std::uint32_t most, float largest,
                                               bool power_of_two) {
  constexpr float least = 0x1p-126f;
  float const scale = bits_as<float>(most) / largest;
  if (scale < least) return least;
  if (!power_of_two || !(scale < bits_as<float>(0x7f800000u))) return scale;
  return bits_as<float>((bits_as<std::uint32_t>(scale) + 0x007fffffu) & 0x7f800000u);
}

/// CTAs along x and y.
struct InputGrid {
  int x = 1, y = 1;
};
constexpr InputGrid input_grid(InputStep step, GemmInputsParams const& p) {
  auto const blocks = [](int extent, int block) { return (extent + block - 1) / block; };
  switch (step) {
    case InputStep::quantize_rows:
      return {p.rows, blocks(blocks(p.columns, kScaleBlock), kInputWarps)};
    case InputStep::quantize_blocks:
      return {blocks(p.rows, kScaleBlock), blocks(p.columns, kScaleBlock)};
    case InputStep::transform_scales:
      return {blocks(p.rows, kInputThreads), p.columns};
    default:
      return {};
  }
}

}  // namespace tegula
