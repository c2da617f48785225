// A mixture-of-experts layer in fp8: each token goes to one of eight experts, a network of two
// layers each. Tokens are sorted by expert, quantised with scales for 128 elements, and both layers
// are one grouped GEMM of all experts. The result is held against float64.
//
//     moe [DEVICE]     sim (a simulated H100, checked; the default), cuda, cuda:1, ...

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/gemm_inputs.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/float8.hpp"

namespace {

using namespace tegula;

constexpr int kTokens = 150, kWidth = 256, kInner = 384, kExperts = 8;
static_assert(kWidth % 128 == 0 && kInner % 128 == 0, "a block of scales is one expert's");

/// A matrix of normal values, of a variance that keeps a product of it near 1.
std::vector<bfloat16> random_matrix(std::int64_t rows, int columns, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(columns)));
  std::vector<bfloat16> x(static_cast<std::size_t>(rows * columns));
  for (bfloat16& value : x) value = to_bfloat16(normal(random));
  return x;
}

/// fp8 with its scales, on the machine.
struct Quantised {
  Buffer<float_e4m3> values;
  Buffer<float> scales;
};

/// Weights of all experts, (experts rows, columns): a scale for each 128 x 128. One call quantises
/// them all, for no block is of two experts (kInner and kWidth are multiples of 128).
Quantised quantised_weights(Machine const& machine, Buffer<bfloat16> const& x, int rows,
                            int columns) {
  Quantised q{{machine, std::int64_t{kExperts} * rows * columns, "weights"},
              {machine, kExperts * (rows / 128) * (columns / 128), "scales of weights"}};
  prepare_gemm_inputs(machine, {.step = InputStep::quantize_blocks,
                                .rows = kExperts * rows,
                                .columns = columns,
                                .x = x.data(),
                                .q = q.values.data(),
                                .scales = q.scales.data()});
  return q;
}

/// Rows of activations: a scale for each 128 of a row.
Quantised quantised_rows(Machine const& machine, Buffer<bfloat16> const& x, int columns) {
  Quantised q{{machine, std::int64_t{kTokens} * columns, "activations"},
              {machine, scale_stride(kTokens) * (columns / 128), "scales of activations"}};
  prepare_gemm_inputs(machine, {.step = InputStep::quantize_rows,
                                .rows = kTokens,
                                .columns = columns,
                                .x = x.data(),
                                .q = q.values.data(),
                                .scales = q.scales.data()});
  return q;
}

/// D = x W^T, of each token with its expert's W (n, k).
void layer(Machine const& machine, Quantised const& x, Quantised const& w,
           Buffer<int> const& begins, Buffer<int> const& ends, int n, int k,
           Buffer<bfloat16> const& d) {
  grouped_gemm(machine, {.in = DType::e4m3,
                         .grouping = Grouping::contiguous,
                         .groups = kExperts,
                         .m = kTokens,
                         .n = n,
                         .k = k,
                         .a = x.values.data(),
                         .b = w.values.data(),
                         .d = d.data(),
                         .scale_a = x.scales.data(),
                         .scale_b = w.scales.data(),
                         .group_begins = begins.data(),
                         .group_ends = ends.data()});
}

float silu(float x) { return x / (1 + std::exp(-x)); }

/// The layer of one token in float64.
std::vector<double> exact(bfloat16 const* x, bfloat16 const* up, bfloat16 const* down) {
  std::vector<double> inner(kInner), out(kWidth);
  for (int i = 0; i < kInner; ++i) {
    for (int k = 0; k < kWidth; ++k)
      inner[static_cast<std::size_t>(i)] += double{to_float(up[i * kWidth + k])} * to_float(x[k]);
    inner[static_cast<std::size_t>(i)] /= 1 + std::exp(-inner[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < kWidth; ++i)
    for (int k = 0; k < kInner; ++k)
      out[static_cast<std::size_t>(i)] +=
          double{to_float(down[i * kInner + k])} * inner[static_cast<std::size_t>(k)];
  return out;
}

int run(std::string const& device) {
  Machine const machine = Machine::from_name(device, Arch::sm90);
  auto const up = random_matrix(kExperts * kInner, kWidth, 1),
             down = random_matrix(kExperts * kWidth, kInner, 2);
  auto tokens = random_matrix(kTokens, kWidth, 3);
  for (bfloat16& x : tokens) x = to_bfloat16(to_float(x) * std::sqrt(float{kWidth}));

  // Who goes where: a gate's answer, with one expert that nobody chose. Tokens lie sorted by
  // expert.
  std::mt19937 random(4);
  std::vector<int> expert(kTokens);
  for (int& e : expert) e = static_cast<int>(random() % kExperts);
  std::replace(expert.begin(), expert.end(), 5, 0);
  std::sort(expert.begin(), expert.end());

  Buffer<int> const of_rows(machine, expert, "experts of rows");
  Buffer<int> const begins(machine, kExperts, "begins"), ends(machine, kExperts, "ends");
  prepare_gemm_inputs(machine, {.step = InputStep::group_bounds,
                                .rows = kTokens,
                                .x = of_rows.data(),
                                .groups = kExperts,
                                .begins = begins.data(),
                                .ends = ends.data()});

  Buffer<bfloat16> const x(machine, tokens, "tokens"), up_all(machine, up, "up"),
      down_all(machine, down, "down");
  Quantised const w_up = quantised_weights(machine, up_all, kInner, kWidth),
                  w_down = quantised_weights(machine, down_all, kWidth, kInner);
  Buffer<bfloat16> inner(machine, kTokens * kInner, "inner"), out(machine, kTokens * kWidth, "out");
  layer(machine, quantised_rows(machine, x, kWidth), w_up, begins, ends, kInner, kWidth, inner);
  machine.synchronize();
  auto activated = inner.download();
  for (bfloat16& value : activated) value = to_bfloat16(silu(to_float(value)));
  inner.upload(activated);
  layer(machine, quantised_rows(machine, inner, kInner), w_down, begins, ends, kWidth, kInner, out);
  machine.synchronize();
  auto const result = out.download();

  double product = 0, squares = 0;
  for (int token = 0; token < kTokens; ++token) {
    auto const e = static_cast<std::size_t>(expert[static_cast<std::size_t>(token)]);
    auto const right = exact(&tokens[static_cast<std::size_t>(token) * kWidth],
                             &up[e * kInner * kWidth], &down[e * kWidth * kInner]);
    for (std::size_t i = 0; i < kWidth; ++i) {
      double const ours = to_float(result[static_cast<std::size_t>(token) * kWidth + i]);
      product += ours * right[i];
      squares += ours * ours + right[i] * right[i];
    }
  }
  double const diff = 1 - 2 * product / squares;
  fmt::print("{} tokens, {} experts of {} -> {} -> {}, fp8 on {}: diff {:.1e} from float64\n",
             kTokens, kExperts, kWidth, kInner, kWidth, machine.name(), diff);
  if (!(diff < 0.002)) {  // of each of the two layers at most what one may have, 0.001
    fmt::print(stderr, "moe: that is more than fp8 explains\n");
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "sim");
  } catch (std::exception const& error) {
    fmt::print(stderr, "moe: {}\n", error.what());
    return 1;
  }
}
