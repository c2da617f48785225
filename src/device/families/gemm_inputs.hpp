#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/gemm_inputs.hpp"

namespace tegula::device {

constexpr char const* text(InputStep step) {
  constexpr char const* names[] = {"quantize_rows", "quantize_blocks", "transform_scales",
                                   "group_bounds"};
  return names[static_cast<int>(step)];
}
constexpr bool quantises(InputStep step) {
  return step == InputStep::quantize_rows || step == InputStep::quantize_blocks;
}

template <> struct FamilyTraits<GemmInputsFamily> {
  using Arguments = GemmInputsArguments;
  using Choice = GemmInputsChoice;

  static std::string obstacle(GemmInputsArguments const&, DeviceProperties const& device) {
    if (device.compute_capability < 90)
      return fmt::format("the device is sm_{}", device.compute_capability);
    return {};
  }

  static char const* check(GemmInputsArguments const& g, GemmInputsConfig const& c,
                           DeviceProperties const&) {
    if (c.step != g.step) return "another step";
    if (quantises(c.step) && (c.in != g.in || c.out != g.out)) return "other types";
    return nullptr;
  }

  static GemmInputsParams lower(Machine const&, GemmInputsArguments const& arguments,
                                GemmInputsChoice const&) {
    GemmInputsArguments const g = with_defaults(arguments);
    return {.x = g.x,
            .ldx = *g.ldx,
            .q = g.q,
            .ldq = *g.ldq,
            .scales = g.scales,
            .scale_stride = *g.scale_stride,
            .rows = static_cast<int>(g.rows),
            .columns = static_cast<int>(g.columns),
            .power_of_two = g.power_of_two,
            .begins = g.begins,
            .ends = g.ends,
            .groups = static_cast<int>(g.groups)};
  }

  static std::vector<sim::GlobalTensor> describe(GemmInputsConfig const& c,
                                                 GemmInputsParams const& p) {
    if (p.rows < 1) return {};
    if (c.step == InputStep::group_bounds)
      return {tensor("groups", DType::s32, p.x, {{"row", p.rows, 1}}, Coverage::read),
              tensor("begins", DType::s32, p.begins, {{"group", p.groups, 1}}, Coverage::written),
              tensor("ends", DType::s32, p.ends, {{"group", p.groups, 1}}, Coverage::written)};
    bool const transforms = c.step == InputStep::transform_scales;
    std::int64_t const blocks = ceil_div(p.columns, kScaleBlock);
    std::vector<GlobalTensor> tensors = {
        Matrices{transforms ? DType::f32 : c.in, p.x, p.rows, p.columns, p.ldx, 1}.as(
            {"x"}, Coverage::read)};
    if (!transforms)
      tensors.push_back(
          Matrices{c.out, p.q, p.rows, p.columns, p.ldq, 1}.as({"q"}, Coverage::written));
    if (c.step == InputStep::quantize_blocks)
      tensors.push_back(
          Matrices{DType::f32, p.scales, ceil_div(p.rows, kScaleBlock), blocks, p.scale_stride, 1}
              .as({"scales"}, Coverage::written));
    else
      tensors.push_back(
          Matrices{DType::f32, p.scales, p.rows, transforms ? p.columns : blocks, 1, p.scale_stride}
              .as({"scales", "row", "block"}, Coverage::written));
    return tensors;
  }

  static std::string name(GemmInputsConfig const& c) {
    if (!quantises(c.step)) return fmt::format("gemm_inputs {}", text(c.step));
    return fmt::format("gemm_inputs {} {}->{}", text(c.step), to_string(c.in), to_string(c.out));
  }

  static auto reference(GemmInputsArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::gemm_inputs(host, rows);
  }
};

}  // namespace tegula::device
