// The steps that come before a grouped GEMM: their arguments' checks and defaults, the launch, the
// reference.

#include "tegula/device/gemm_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "argument_checker.hpp"
#include "families.hpp"
#include "problem.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

using namespace device;

namespace {

using Traits = FamilyTraits<GemmInputsFamily>;

class GemmInputsChecker : Checker {
 public:
  explicit GemmInputsChecker(GemmInputsArguments const& arguments)
      : Checker("gemm_inputs"), g_(with_defaults(arguments)) {}

  void run(int compute_capability) const {
    if (compute_capability < 90)
      refuse_argument("gemm_inputs: the machine is sm_{}; it is computed from sm_90 on.",
                      compute_capability);
    if (static_cast<int>(g_.step) > static_cast<int>(InputStep::group_bounds))
      refuse_argument("gemm_inputs: step is {}; it must be one of InputStep.",
                      static_cast<int>(g_.step));
    extent("rows", g_.rows);
    pointer("x", g_.x, 1);
    if (g_.step == InputStep::group_bounds) return bounds();
    extent("columns", g_.columns);
    if (g_.columns > 65535 * std::int64_t{kScaleBlock} ||
        (g_.step == InputStep::transform_scales && g_.columns > 65535))
      refuse_argument("gemm_inputs: columns is {}; a grid has at most 65535 blocks of them.",
                      g_.columns);
    if (quantises(g_.step)) {
      type("in", g_.in, {DType::bf16, DType::f32});
      type("out", g_.out, {DType::e4m3, DType::e5m2});
      pointer("x", g_.x, bytes_of(g_.in));
      pointer("q", g_.q, 1);
      different("q", g_.q, "x", g_.x);
      row("ldq", *g_.ldq);
    } else {
      pointer("x", g_.x, 4);
    }
    row("ldx", *g_.ldx);
    pointer("scales", g_.scales, 4);
    different("scales", g_.scales, "x", g_.x);
    std::int64_t const least =
        g_.step == InputStep::quantize_blocks ? device::ceil_div(g_.columns, kScaleBlock) : g_.rows;
    if (*g_.scale_stride < least)
      refuse_argument("gemm_inputs: scale_stride is {}; it must be at least {}.", *g_.scale_stride,
                      least);
  }

 private:
  void bounds() const {
    extent("groups", g_.groups);
    pointer("x", g_.x, alignof(int));
    pointer("begins", g_.begins, alignof(int));
    pointer("ends", g_.ends, alignof(int));
    different("ends", g_.ends, "begins", g_.begins);
  }
  void row(std::string_view name, std::int64_t stride) const {
    if (stride < g_.columns)
      refuse_argument("gemm_inputs: {} is {}; it must be at least columns = {}.", name, stride,
                      g_.columns);
    span(name, {{g_.rows, stride}}, g_.columns, 4);
  }

  GemmInputsArguments const g_;  // with defaults
};

}  // namespace

GemmInputsArguments with_defaults(GemmInputsArguments const& arguments) {
  GemmInputsArguments g = arguments;
  if (!g.ldx) g.ldx = g.columns;
  if (!g.ldq) g.ldq = g.columns;
  if (!g.scale_stride)
    g.scale_stride = g.step == InputStep::quantize_blocks
                         ? device::ceil_div(g.columns, std::int64_t{kScaleBlock})
                         : scale_stride(g.rows);
  return g;
}

std::string to_string(GemmInputsArguments const& g) {
  if (!quantises(g.step))
    return fmt::format("{} of {}, {}", text(g.step), io::counted(g.rows, "row"),
                       io::counted(g.columns, "column"));
  return fmt::format("{} of {}, {}, {} to {}", text(g.step), io::counted(g.rows, "row"),
                     io::counted(g.columns, "column"), to_string(g.in), to_string(g.out));
}

void check(GemmInputsArguments const& arguments, int compute_capability) {
  GemmInputsChecker(arguments).run(compute_capability);
}

void prepare_gemm_inputs(Machine const& machine, GemmInputsArguments const& g, Stream stream) {
  check(g, machine.compute_capability());
  int number = 0;
  for (GemmInputsConfig const& c : configurations(gemm_inputs, Kernels::all)) {
    if (Traits::check(g, c, machine.properties()) == nullptr)
      return launch_kernel(machine, gemm_inputs, number,
                           Traits::lower(machine, g, {.configuration = number}), stream);
    ++number;
  }
  refuse_uncomputed("gemm_inputs", to_string(g), machine.properties(), /*elsewhere=*/false);
}

// An element is divided by its scale and rounded to the fp8 type, each to nearest: half a unit in
// the last of its bits (2^-4 of e4m3, 2^-3 of e5m2), or half the least subnormal, times the scale;
// and a rounding of f32.
reference::Values reference::gemm_inputs(GemmInputsArguments const& host,
                                         std::vector<std::int64_t> const& rows) {
  GemmInputsArguments const g = with_defaults(host);
  bool const e4m3 = g.out == DType::e4m3;
  double const unit = e4m3 ? 0x1p-4 : 0x1p-3, least = e4m3 ? 0x1p-10 : 0x1p-17;
  double const largest = e4m3 ? 448 : 57344;
  bool const blocks = g.step == InputStep::quantize_blocks;
  std::int64_t const height = blocks ? kScaleBlock : 1;
  std::map<std::pair<std::int64_t, std::int64_t>, double> largest_of;  // by block
  auto const most = [&](std::int64_t row, std::int64_t column) {
    std::pair const at(row / height, column / kScaleBlock);
    auto const [found, added] = largest_of.try_emplace(at, 0x1p-126 * largest);
    if (!added) return found->second;
    for (std::int64_t i = at.first * height; i < std::min(g.rows, (at.first + 1) * height); ++i)
      for (std::int64_t j = at.second * kScaleBlock;
           j < std::min(g.columns, (at.second + 1) * kScaleBlock); ++j)
        found->second =
            std::max(found->second, std::abs(reference::element(g.x, g.in, i * *g.ldx + j)));
    return found->second;
  };
  reference::Values values;
  for (std::int64_t const row : rows) {
    for (std::int64_t column = 0; column < g.columns; ++column) {
      double const scale = most(row, column) / largest * (g.power_of_two ? 2 : 1);
      double const x = reference::element(g.x, g.in, row * *g.ldx + column);
      values.value.push_back(x);
      values.bound.push_back(1.001 * std::max(unit * std::abs(x), least * scale));
    }
  }
  return values;
}

}  // namespace tegula
