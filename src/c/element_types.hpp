#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tegula/device/error.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/tegula.h"

namespace tegula::c {

/// The type of a tegula_dtype; nothing where it is left out. Throws argument_error for
/// another number.
inline std::optional<DType> dtype_of(char const* operation, char const* name, std::int32_t type) {
  constexpr DType kTypes[] = {DType::f16,  DType::bf16, DType::f32,  DType::tf32, DType::e4m3,
                              DType::e5m2, DType::e2m1, DType::e2m3, DType::e3m2};
  if (type == TEGULA_DTYPE_LEFT_OUT) return {};
  if (type >= TEGULA_F16 && type <= TEGULA_E3M2) return kTypes[type - TEGULA_F16];
  throw argument_error(std::string(operation) + ": " + name + " is " + std::to_string(type) +
                       "; it must be a tegula_dtype, from TEGULA_F16 (1) to TEGULA_E3M2 (9).");
}

/// The scales of a tegula_block_scale. Throws argument_error for another number.
inline BlockScale block_scale_of(char const* operation, std::int32_t scale) {
  if (scale == TEGULA_NO_BLOCK_SCALE) return {};
  if (scale == TEGULA_MX_SCALE) return kMxScale;
  if (scale == TEGULA_NV_SCALE) return kNvScale;
  throw argument_error(std::string(operation) + ": block_scale is " + std::to_string(scale) +
                       "; it must be TEGULA_NO_BLOCK_SCALE (0), TEGULA_MX_SCALE (1) or "
                       "TEGULA_NV_SCALE (2).");
}

inline std::optional<std::int64_t> unless_left_out(std::int64_t value) {
  return value == TEGULA_LEFT_OUT ? std::optional<std::int64_t>() : value;
}

}  // namespace tegula::c
