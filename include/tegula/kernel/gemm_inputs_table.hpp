#pragma once

#include <initializer_list>

#include "tegula/kernel/gemm_inputs_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of gemm_inputs.
namespace tegula {

namespace detail {
constexpr auto gemm_inputs_table() {
  Table<GemmInputsConfig, 2 * 2 * 2 + 2> table;
  int i = 0;
  for (InputStep step : {InputStep::quantize_rows, InputStep::quantize_blocks})
    for (DType in : {DType::bf16, DType::f32})
      for (DType out : {DType::e4m3, DType::e5m2}) table.values[i++] = {step, in, out};
  for (InputStep step : {InputStep::transform_scales, InputStep::group_bounds})
    table.values[i++] = {.step = step};
  return table;
}
}  // namespace detail

template <GemmInputsConfig C> struct GemmInputs;

/// kernel/gemm_inputs.hpp
struct GemmInputsFamily {
  static constexpr char const* name = "gemm_inputs";
  using Config = GemmInputsConfig;
  using Params = GemmInputsParams;
  template <Config C> using Kernel = GemmInputs<C>;
  static constexpr auto table = detail::gemm_inputs_table();

  /// All: they are small.
  static constexpr bool is_representative(Config const&) { return true; }
};

}  // namespace tegula
