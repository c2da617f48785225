#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "tegula/device/launch.hpp"
#include "tegula/device/quantize_blocks.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/device/selection.hpp"
#include "test_machine.hpp"

namespace tegula {

/// A GEMM problem; each leading dimension is `padding` larger than need be, and A starts `offset`
/// elements into its buffer. `aligned`: leading dimensions are rounded up to multiples of 16 bytes,
/// as TMA asks.
struct GemmProblem {
  DType in = DType::bf16, in_b = in, out = default_output(in);
  Major a_major = Major::k, b_major = Major::k;
  int m = 1, n = 1, k = 1, batch = 1;
  bool one_a = false, one_b = false;  ///< the same for the whole batch
  bool aligned = false;
  int padding = 0, offset = 0;
  float alpha = 1, beta = 0;
  bool bias = false;
  std::optional<float> scale_a = {}, scale_b = {};
  Activation activation = Activation::none;
  BlockScale block_scale = {};  ///< A and B are then quantised
  std::int64_t workspace = 0;   ///< bytes
  GemmConstraints constraints = {};
  std::uint64_t seed = 1;
  std::function<float(std::mt19937_64&)> a = normal, b = normal, c = normal;
};

inline std::string to_string(GemmProblem const& p) {
  return fmt::format("{} {} -> {}, {}{}, {} x {} x {}, batch {}", to_string(p.in),
                     to_string(p.in_b), to_string(p.out), p.a_major == Major::k ? "k" : "m",
                     p.b_major == Major::k ? "k" : "n", p.m, p.n, p.k, p.batch);
}

struct GemmResult {
  std::vector<std::uint8_t> d;
  std::vector<std::uint8_t> a, b, c, bias;
  std::vector<float> scales;
  std::vector<std::uint8_t> block_scale_a, block_scale_b;
  GemmArguments host;  ///< the arguments with pointers to the vectors here
};

/// The problem's extents, strides and scalars, without pointers.
inline GemmArguments arguments_of(GemmProblem const& p) {
  auto const leading = [&](int extent, DType type) {
    return (p.aligned ? whole_lines(extent, type, 16) : extent) + p.padding;
  };
  bool const a_k = p.a_major == Major::k, b_k = p.b_major == Major::k;
  GemmArguments g{.in = p.in,
                  .in_b = p.in_b,
                  .out = p.out,
                  .a_major = p.a_major,
                  .b_major = p.b_major,
                  .m = p.m,
                  .n = p.n,
                  .k = p.k,
                  .batch = p.batch,
                  .lda = leading(a_k ? p.k : p.m, p.in),
                  .ldb = leading(b_k ? p.k : p.n, p.in_b),
                  .ldc = leading(p.n, p.out),
                  .ldd = leading(p.n, p.out),
                  .block_scale = p.block_scale,
                  .alpha = p.alpha,
                  .beta = p.beta,
                  .activation = p.activation};
  if (p.one_a) g.a_batch_stride = 0;
  if (p.one_b) g.b_batch_stride = 0;
  return with_defaults(g);
}

/// `matrices` operands with block scales, quantised from what `draw` gives. What lies between their
/// rows is nobody's: NaN, or -6.
inline QuantizedBlocks quantized_operand(GemmProblem const& p, DType type, int matrices, int rows,
                                         std::int64_t ld, std::uint64_t seed,
                                         std::function<float(std::mt19937_64&)> const& draw) {
  std::mt19937_64 random(seed);
  QuantizedBlocks all;
  for (int i = 0; i < matrices; ++i) {
    std::vector<float> values(static_cast<std::size_t>(rows * p.k));
    for (float& x : values) x = draw(random);
    QuantizedBlocks q = quantize_blocks(type, p.block_scale, rows, p.k, ld, values.data());
    for (int row = 0; row < rows; ++row)
      std::fill(q.elements.begin() + ((row * ld + p.k) * bits(type) + 7) / 8,
                q.elements.begin() + (row + 1) * ld * bits(type) / 8, std::uint8_t{0xff});
    all.elements.insert(all.elements.end(), q.elements.begin(), q.elements.end());
    all.scales.insert(all.scales.end(), q.scales.begin(), q.scales.end());
  }
  return all;
}

/// Runs a problem by `launch(arguments)`.
template <class Launch>
GemmResult run_by(Machine const& machine, GemmProblem const& p, Launch launch) {
  GemmResult r;
  GemmArguments g = arguments_of(p);
  auto const rows_a = p.a_major == Major::k ? p.m : p.k, rows_b = p.b_major == Major::k ? p.n : p.k;
  if (p.block_scale.block != 0) {
    int const of_a = p.one_a ? 1 : p.batch, of_b = p.one_b ? 1 : p.batch;
    QuantizedBlocks a = quantized_operand(p, p.in, of_a, rows_a, *g.lda, 4 * p.seed, p.a),
                    b = quantized_operand(p, p.in_b, of_b, rows_b, *g.ldb, 4 * p.seed + 1, p.b);
    r.a = std::move(a.elements), r.block_scale_a = std::move(a.scales);
    r.b = std::move(b.elements), r.block_scale_b = std::move(b.scales);
  } else {
    r.a = random_elements(p.in, *g.lda * rows_a * (p.one_a ? 1 : p.batch) + p.offset, 4 * p.seed,
                          p.a);
    r.b = random_elements(p.in_b, *g.ldb * rows_b * (p.one_b ? 1 : p.batch), 4 * p.seed + 1, p.b);
  }
  r.c = random_elements(p.out, *g.ldc * p.m * p.batch, 4 * p.seed + 2, p.c);
  r.bias = random_elements(p.out, p.n, 4 * p.seed + 3, p.c);
  r.scales = {p.scale_a.value_or(1), p.scale_b.value_or(1)};
  Buffer<std::uint8_t> const a(machine, r.a, "a"), b(machine, r.b, "b"), c(machine, r.c, "c"),
      bias(machine, r.bias, "bias"), block_scale_a(machine, r.block_scale_a, "scales of a"),
      block_scale_b(machine, r.block_scale_b, "scales of b");
  Buffer<float> const scales(machine, r.scales, "scales");
  auto const d = poisoned(machine, static_cast<std::int64_t>(r.c.size()), "d");
  auto const workspace = poisoned(machine, p.workspace, "workspace");
  if (p.workspace > 0) g.workspace = workspace.data(), g.workspace_bytes = p.workspace;
  auto const arguments = [&](std::uint8_t const* at_a, std::uint8_t const* at_b,
                             std::uint8_t const* at_c, std::uint8_t const* at_bias,
                             float const* at_scales, void const* at_block_scale_a,
                             void const* at_block_scale_b) {
    g.a = at_a + p.offset * (bits(p.in) / 8);
    g.b = at_b;
    g.c = p.beta != 0 ? at_c : nullptr;
    g.bias = p.bias ? at_bias : nullptr;
    g.scale_a = p.scale_a ? at_scales : nullptr;
    g.scale_b = p.scale_b ? at_scales + 1 : nullptr;
    g.d = d.data();
    if (p.block_scale.block != 0)
      g.block_scale_a = at_block_scale_a, g.block_scale_b = at_block_scale_b;
    return g;
  };
  launch(arguments(a.data(), b.data(), c.data(), bias.data(), scales.data(), block_scale_a.data(),
                   block_scale_b.data()));
  machine.synchronize();
  r.d = d.download();
  r.host = arguments(r.a.data(), r.b.data(), r.c.data(), r.bias.data(), r.scales.data(),
                     r.block_scale_a.data(), r.block_scale_b.data());
  return r;
}

/// Runs a problem by the kernel and configuration that are chosen for it, within its constraints.
inline GemmResult run(Machine const& machine, GemmProblem const& p) {
  return run_by(machine, p, [&](GemmArguments const& g) {
    if (p.constraints.kernel) {
      check(g, machine.compute_capability());
      gemm(machine, g, choose_gemm(g, machine.properties(), p.constraints));
    } else {
      gemm(machine, g);
    }
  });
}

/// All rows of D, as reference::gemm numbers them.
inline std::vector<std::int64_t> rows_of(GemmProblem const& p) {
  return reference::some_rows(std::int64_t{p.batch} * p.m, std::int64_t{p.batch} * p.m);
}

/// Holds every element of D against the exact ones, and every byte around D against the poison.
inline void expect_near(GemmProblem const& p, GemmResult const& r, reference::Values const& exact) {
  std::size_t const width = static_cast<std::size_t>(bits(p.out) / 8);
  std::vector<double> d;
  std::vector<bool> belongs(r.d.size());
  for (int batch = 0; batch < p.batch; ++batch) {
    for (int i = 0; i < p.m; ++i) {
      for (int j = 0; j < p.n; ++j) {
        std::int64_t const at = batch * *r.host.d_batch_stride + i * *r.host.ldd + j;
        d.push_back(reference::element(r.d.data(), p.out, at));
        for (std::size_t byte = 0; byte < width; ++byte)
          belongs[static_cast<std::size_t>(at) * width + byte] = true;
      }
    }
  }
  auto const of_d = reference::compare(d, exact, reference::largest_finite(p.out));
  EXPECT_TRUE(of_d.within()) << to_string(p) << ": element (" << of_d.worst / p.n / p.m << ", "
                             << of_d.worst / p.n % p.m << ", " << of_d.worst % p.n << ") is "
                             << of_d.worst_result << ", not "
                             << exact.value[static_cast<std::size_t>(of_d.worst)] << ": "
                             << of_d.max_ratio << " times the bound";
  for (std::size_t i = 0; i < r.d.size(); ++i) {
    if (!belongs[i] && r.d[i] != kPoison) {
      ADD_FAILURE() << to_string(p) << ": byte " << i << " between the rows of D was written";
      break;
    }
  }
}

/// The same against float64.
inline void expect_near_exact(GemmProblem const& p, GemmResult const& r) {
  expect_near(p, r, reference::gemm(r.host, rows_of(p)));
}

/// Runs a problem and holds its result against float64.
inline GemmResult expect_correct(Machine const& machine, GemmProblem const& p) {
  GemmResult r = run(machine, p);
  expect_near_exact(p, r);
  return r;
}

}  // namespace tegula
