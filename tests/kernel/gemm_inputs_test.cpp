// What comes before a grouped GEMM: quantisation, scales for TMA, bounds of groups; and DeepGEMM's
// criterion over all of it.

#include "tegula/device/gemm_inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "gemm_inputs_problem.hpp"
#include "grouped_gemm_problem.hpp"

namespace tegula {
namespace {

// Each type and step, ragged and with gaps between rows; scales any and powers of two.
TEST(GemmInputs, QuantiseToTheNearest) {
  Machine const machine = test_machine();
  for (InputStep const step : {InputStep::quantize_rows, InputStep::quantize_blocks}) {
    for (auto const& c : configurations(gemm_inputs)) {
      if (c.step != step) continue;
      for (bool const power_of_two : {false, true})
        for (int const columns : {3, 128, 391})
          expect_right(machine, {.step = step,
                                 .in = c.in,
                                 .out = c.out,
                                 .rows = 133,
                                 .columns = columns,
                                 .power_of_two = power_of_two});
    }
  }
}

// The largest magnitude of a block is the type's largest, exactly; zeros stay zeros, and where a
// NaN is there the block is NaN.
TEST(GemmInputs, ScaleBlocksToTheLargestValue) {
  Machine const machine = test_machine();
  QuantizeProblem p{.rows = 2, .columns = 384};
  auto const r = run_by(machine, p, [&](GemmInputsArguments const& g) {
    std::vector<bfloat16> x(2 * 384, to_bfloat16(0.0f));
    x[5] = to_bfloat16(-3.0f), x[130] = to_bfloat16(std::nanf("")), x[131] = to_bfloat16(1.0f);
    Buffer<bfloat16> const buffer(machine, x, "x");
    GemmInputsArguments own = g;
    own.x = buffer.data(), own.ldx = 384;
    prepare_gemm_inputs(machine, own);
    machine.synchronize();
  });
  EXPECT_EQ(reference::element(r.q.data(), DType::e4m3, 5), -448);
  EXPECT_EQ(r.scales[0], 3.0f / 448.0f);
  EXPECT_EQ(reference::element(r.q.data(), DType::e4m3, 6), 0);
  EXPECT_TRUE(std::isnan(r.scales[static_cast<std::size_t>(*r.host.scale_stride)]));
  EXPECT_TRUE(std::isnan(reference::element(r.q.data(), DType::e4m3, 131)));
  EXPECT_EQ(r.scales[static_cast<std::size_t>(2 * *r.host.scale_stride)], 0x1p-126f);
}

TEST(GemmInputs, BlockScalesAreLeastPowersOfTwo) {
  for (float const x : {0x1p-100f, 0.3f, 448.0f, 449.0f, 1e30f}) {
    float const scale = block_scale(bits_as<std::uint32_t>(x), 448, true);
    float const exact = block_scale(bits_as<std::uint32_t>(x), 448, false);
    EXPECT_TRUE(exact <= scale && scale < 2 * exact) << x;
    EXPECT_EQ(std::exp2(std::ilogb(scale)), scale) << x;
  }
}

TEST(GemmInputs, TransformScalesOfRows) {
  Machine const machine = test_machine();
  constexpr int rows = 301, blocks = 7, ld = 9;
  std::vector<float> in(rows * ld), out(static_cast<std::size_t>(scale_stride(rows) * blocks), -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  Buffer<float> const x(machine, in, "x");
  Buffer<float> scales(machine, out, "scales");
  prepare_gemm_inputs(machine, {.step = InputStep::transform_scales,
                                .rows = rows,
                                .columns = blocks,
                                .x = x.data(),
                                .scales = scales.data(),
                                .ldx = ld});
  machine.synchronize();
  out = scales.download();
  for (int b = 0; b < blocks; ++b)
    for (int i = 0; i < scale_stride(rows); ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(b * scale_stride(rows) + i)],
                i < rows ? in[static_cast<std::size_t>(i * ld + b)] : -1.0f);
}

// Runs of a group's rows, padding between them, groups without rows.
TEST(GemmInputs, FindTheRowsOfEachGroup) {
  Machine const machine = test_machine();
  std::vector<int> const of_rows = {0, 0, 0, -1, -1, 2, 5, 5, 5, 5, -1, 4};
  Buffer<int> const x(machine, of_rows, "groups");
  Buffer<int> const begins(machine, 7, "begins"), ends(machine, 7, "ends");
  prepare_gemm_inputs(machine, {.step = InputStep::group_bounds,
                                .rows = static_cast<std::int64_t>(of_rows.size()),
                                .x = x.data(),
                                .groups = 7,
                                .begins = begins.data(),
                                .ends = ends.data()});
  machine.synchronize();
  EXPECT_THAT(begins.download(), testing::ElementsAre(0, 0, 5, 0, 11, 6, 0));
  EXPECT_THAT(ends.download(), testing::ElementsAre(3, 0, 6, 0, 12, 10, 0));
}

// DeepGEMM's criterion, diff < 0.001 from the product of the operands before quantisation.
TEST(GemmInputs, KeepAProductWithinDeepGemmsCriterion) {
  Machine const machine = test_machine();
  struct Shape {
    int m, n, k;
  };
  for (auto const& [m, n, k] : {Shape{64, 576, 1024}, {128, 256, 1536}, {3, 264, 2048}}) {
    auto const x = random_elements(DType::bf16, std::int64_t{m} * k, 1, normal),
               y = random_elements(DType::bf16, std::int64_t{n} * k, 2, normal);
    Buffer<std::uint8_t> const x_buffer(machine, x, "x"), y_buffer(machine, y, "y"),
        a(machine, std::int64_t{m} * k, "a"), b(machine, std::int64_t{n} * k, "b");
    int const blocks = k / 128;
    Buffer<float> const scale_a(machine, scale_stride(m) * blocks, "scale_a"),
        scale_b(machine, (n + 127) / 128 * blocks, "scale_b");
    Buffer<float> const d(machine, std::int64_t{m} * n, "d");
    prepare_gemm_inputs(
        machine,
        {.rows = m, .columns = k, .x = x_buffer.data(), .q = a.data(), .scales = scale_a.data()});
    prepare_gemm_inputs(machine, {.step = InputStep::quantize_blocks,
                                  .rows = n,
                                  .columns = k,
                                  .x = y_buffer.data(),
                                  .q = b.data(),
                                  .scales = scale_b.data()});
    grouped_gemm(machine, {.in = DType::e4m3,
                           .out = DType::f32,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = a.data(),
                           .b = b.data(),
                           .d = d.data(),
                           .scale_a = scale_a.data(),
                           .scale_b = scale_b.data()});
    machine.synchronize();
    auto const result = d.download();
    double product = 0, squares = 0;
    std::vector<double> xs(x.size() / 2), ys(y.size() / 2);
    for (std::size_t i = 0; i < xs.size(); ++i)
      xs[i] = reference::element(x.data(), DType::bf16, static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < ys.size(); ++i)
      ys[i] = reference::element(y.data(), DType::bf16, static_cast<std::int64_t>(i));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double right = 0;
        for (int l = 0; l < k; ++l)
          right +=
              xs[static_cast<std::size_t>(i * k + l)] * ys[static_cast<std::size_t>(j * k + l)];
        double const ours = result[static_cast<std::size_t>(i * n + j)];
        product += ours * right, squares += ours * ours + right * right;
      }
    EXPECT_LT(1 - 2 * product / squares, 0.001) << m << " x " << n << " x " << k;
  }
}

TEST(GemmInputs, RefuseBadArguments) {
  auto const refused = [](GemmInputsArguments const& g, char const* says) {
    try {
      check(g, 90);
      ADD_FAILURE() << "not refused: " << says;
    } catch (argument_error const& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(says));
    }
  };
  float some[4] = {};
  GemmInputsArguments const good{
      .rows = 3, .columns = 200, .x = some, .q = some + 1, .scales = some + 2};
  check(good, 90);
  auto with = [&](auto change) {
    GemmInputsArguments g = good;
    change(g);
    return g;
  };
  refused(with([](auto& g) { g.rows = 0; }), "rows is 0");
  refused(with([](auto& g) { g.columns = -4; }), "columns is -4");
  refused(with([](auto& g) { g.x = nullptr; }), "x is a null pointer");
  refused(with([](auto& g) { g.in = DType::e4m3; }), "in is e4m3");
  refused(with([](auto& g) { g.out = DType::bf16; }), "out is bf16");
  refused(with([](auto& g) { g.ldx = 199; }), "ldx is 199");
  refused(with([](auto& g) { g.scale_stride = 2; }), "scale_stride is 2");
  refused(with([](auto& g) { g.step = static_cast<InputStep>(9); }), "step is 9");
  refused(with([](auto& g) { g.step = InputStep::group_bounds; }), "groups is 0");
}

}  // namespace
}  // namespace tegula
