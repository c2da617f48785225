#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tegula/device/gemm_inputs.hpp"
#include "tegula/device/launch.hpp"
#include "test_machine.hpp"

namespace tegula {

/// Rows of x that are quantised; rows of x are 3 elements apart, those of q 5.
struct QuantizeProblem {
  InputStep step = InputStep::quantize_rows;
  DType in = DType::bf16, out = DType::e4m3;
  int rows = 1, columns = 1;
  bool power_of_two = false;
};

struct QuantizeResult {
  std::vector<std::uint8_t> x, q;
  std::vector<float> scales;
  GemmInputsArguments host;
};

/// Runs a problem by `launch(arguments)`.
template <class Launch>
QuantizeResult run_by(Machine const& machine, QuantizeProblem const& p, Launch launch) {
  QuantizeResult r;
  GemmInputsArguments& g = r.host;
  g = with_defaults({.step = p.step,
                     .in = p.in,
                     .out = p.out,
                     .rows = p.rows,
                     .columns = p.columns,
                     .power_of_two = p.power_of_two,
                     .ldx = p.columns + 3,
                     .ldq = p.columns + 5});
  r.x = random_elements(p.in, p.rows * *g.ldx, 7, normal);
  std::int64_t const blocks = (p.columns + 127) / 128;
  std::int64_t const scales = p.step == InputStep::quantize_blocks ? (p.rows + 127) / 128 * blocks
                                                                   : *g.scale_stride * blocks;
  Buffer<std::uint8_t> const x(machine, r.x, "x");
  auto const q = poisoned(machine, p.rows * *g.ldq, "q");
  Buffer<float> scale_buffer(machine, std::vector<float>(static_cast<std::size_t>(scales), -1),
                             "scales");
  GemmInputsArguments own = g;
  own.x = x.data(), own.q = q.data(), own.scales = scale_buffer.data();
  launch(own);
  machine.synchronize();
  r.q = q.download();
  r.scales = scale_buffer.download();
  g.x = r.x.data(), g.q = r.q.data(), g.scales = r.scales.data();
  return r;
}

inline std::vector<std::int64_t> rows_of(QuantizeProblem const& p) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(p.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Holds each element times its scale against x, and what lies between the rows of q against the
/// poison.
inline void expect_near(QuantizeProblem const& p, QuantizeResult const& r,
                        reference::Values const& exact) {
  std::vector<double> results;
  std::size_t touched = 0;
  for (int i = 0; i < p.rows; ++i) {
    for (int j = 0; j < *r.host.ldq; ++j) {
      std::int64_t const at = i * *r.host.ldq + j;
      if (j >= p.columns) {
        touched += r.q[static_cast<std::size_t>(at)] != kPoison;
        continue;
      }
      std::int64_t const scale = p.step == InputStep::quantize_blocks
                                     ? i / 128 * *r.host.scale_stride + j / 128
                                     : j / 128 * *r.host.scale_stride + i;
      results.push_back(reference::element(r.q.data(), p.out, at) *
                        static_cast<double>(r.scales[static_cast<std::size_t>(scale)]));
    }
  }
  EXPECT_EQ(touched, 0u);
  auto const compared = reference::compare(results, exact, reference::largest_finite(DType::f32));
  EXPECT_LE(compared.max_ratio, 1) << "element " << compared.worst << " of " << p.columns
                                   << " columns stands for " << compared.worst_result;
}

/// Runs a problem and holds its result against what it stands for.
inline void expect_right(Machine const& machine, QuantizeProblem const& p) {
  auto const r =
      run_by(machine, p, [&](GemmInputsArguments const& g) { prepare_gemm_inputs(machine, g); });
  expect_near(p, r, reference::gemm_inputs(r.host, rows_of(p)));
}

}  // namespace tegula
