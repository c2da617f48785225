#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "block_scaled_reference.hpp"
#include "reference_sums.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/device/reference.hpp"

// The bounds. X, the sum of products, errs as reference_sums.cpp says, and with block scales as
// block_scaled_reference.cpp says.
//
// GEMM: D = f(alpha scale_a scale_b X + beta C + bias). The epilogue is at most six operations in
// f32, each at most u of a magnitude of |alpha| (1 + mma) S + |beta C| + |bias|. relu has slope 1.
// gelu and silu have slopes of at most 1.13 and 1.1, and are x/2 (1 + tanh y) with tanh.approx,
// which errs by 2^-11 relative (PTX ISA), and y and the rest by a few u: |x|/2 (2^-11 |tanh y| + 16
// u). Then one rounding to the output.
//
// Products of factors are made in f32, one after the other (kernel/epilogue_scale.hpp). One that is
// below the normal numbers errs by up to the least of them, which the next factor enlarges. Where a
// product of factors, a term, or a sum of some of the terms may be beyond f32, whatever comes of
// that is right: the bound is infinite.
//
// With scales, each block of 128 of K is a sum of its own, followed from zero; it and its
// scales, whose product is rounded, are added to the sum of blocks in f32, one rounding each.

namespace tegula::reference {
namespace {

/// A product of factors as f32 holds it, apart from its roundings.
struct Factors {
  double value = 1;
  double error = 0;  ///< of what was below the normal numbers; infinite once beyond f32

  void multiply(double factor) {
    value *= factor;
    error *= std::abs(factor);
    double const least = least_normal(DType::f32);
    if (std::abs(value) > largest_finite(DType::f32)) error = kInfinite;
    if (value != 0 && std::abs(value) < least) error += least;
  }
};

/// Whether a sum of terms of that magnitude, and of their roundings, may be beyond f32.
bool overflows(double magnitude) { return magnitude * (1 + 0x1p-10) > largest_finite(DType::f32); }

/// f(x) and how far a kernel's may be from it, for an x with the given error.
struct Activated {
  double value, error;
};
Activated activated(Activation activation, double x, double error) {
  if (activation == Activation::relu) return {x < 0 ? 0 : x, error};
  if (activation == Activation::none) return {x, error};
  bool const gelu = activation == Activation::gelu;
  double const y = gelu ? 0.7978845608028654 * (x + 0.044715 * x * x * x) : 0.5 * x;
  double const t = std::tanh(y);
  return {0.5 * x * (1 + t), (gelu ? 1.13 : 1.1) * error +
                                 0.5 * (std::abs(x) + error) * (0x1p-11 * std::abs(t) + 16 * kU)};
}

}  // namespace

Values gemm(GemmArguments const& arguments, std::vector<std::int64_t> const& rows) {
  GemmArguments const g = with_defaults(arguments);
  check_rows("gemm", rows, g.batch * g.m);
  bool const a_k = g.a_major == Major::k, b_k = g.b_major == Major::k, fp8 = bits(g.in) == 8;
  bool const scaled = g.block_scale.block != 0, pairs = are_pairs(g.in, *g.in_b);
  // Of the matrices of a batch; those of one that serves all are the same.
  auto const rows_of = [&](void const* x, DType type, std::int64_t ld, std::int64_t stride,
                           void const* scales, std::int64_t matrix_rows, std::int64_t batch,
                           std::int64_t first, std::int64_t count) {
    std::int64_t const bytes = block_scale_bytes(matrix_rows, g.k, g.block_scale.block);
    return block_scaled_rows(static_cast<char const*>(x) + batch * stride * bits(type) / 8, type,
                             ld,
                             static_cast<char const*>(scales) + (stride == 0 ? 0 : batch * bytes),
                             g.block_scale, pairs, first, count, g.k);
  };
  Values result;
  result.value.resize(rows.size() * static_cast<std::size_t>(g.n));
  result.bound.resize(result.value.size());
  Factors factors;
  factors.multiply(g.alpha);
  if (g.scale_a != nullptr) factors.multiply(*g.scale_a);
  if (g.scale_b != nullptr) factors.multiply(*g.scale_b);
  double const alpha = factors.value;
  int const operations = 4 + (g.scale_a != nullptr) + (g.scale_b != nullptr);

  // Rows of one batch are computed together, from its B as doubles.
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    std::int64_t const batch = rows[begin] / g.m;
    while (end < rows.size() && rows[end] / g.m == batch) ++end;
    BlockScaledRows scaled_b;
    if (scaled)
      scaled_b =
          rows_of(g.b, *g.in_b, *g.ldb, *g.b_batch_stride, g.block_scale_b, g.n, batch, 0, g.n);
    auto const b = scaled
                       ? scaled_b.value
                       : matrix(static_cast<char const*>(g.b) +
                                    batch * *g.b_batch_stride * (bits(*g.in_b) / 8),
                                *g.in_b, g.n, g.k, b_k ? *g.ldb : 1, b_k ? 1 : *g.ldb);  // (n, k)
    std::vector<char> b_subnormal(static_cast<std::size_t>(g.n));
    for (std::int64_t j = 0; j < g.n; ++j)
      b_subnormal[static_cast<std::size_t>(j)] = has_subnormal(b.data() + j * g.k, *g.in_b, g.k);
    parallel_for(static_cast<std::int64_t>(end - begin), [&](std::int64_t r) {
      std::size_t const row = begin + static_cast<std::size_t>(r);
      std::int64_t const i = rows[row] % g.m;
      std::int64_t const first = batch * *g.a_batch_stride + (a_k ? i * *g.lda : i);
      BlockScaledRows scaled_a;
      if (scaled)
        scaled_a = rows_of(g.a, g.in, *g.lda, *g.a_batch_stride, g.block_scale_a, g.m, batch, i, 1);
      std::vector<double> a = scaled_a.value;
      for (std::int64_t k = 0; k < g.k && !scaled; ++k)
        a.push_back(element(g.a, g.in, first + (a_k ? k : k * *g.lda)));
      bool const a_subnormal = has_subnormal(a.data(), g.in, g.k);
      for (std::int64_t j = 0; j < g.n; ++j) {
        double const* const column = b.data() + j * g.k;
        Dot const x = dot(a.data(), column, g.k);
        double const c =
            g.beta != 0 ? g.beta * element(g.c, *g.out, batch * *g.c_batch_stride + i * *g.ldc + j)
                        : 0;
        double const bias = g.bias != nullptr ? element(g.bias, *g.out, j) : 0;
        double const error_x =
            scaled ? block_scaled_error(scaled_a, 0, scaled_b, j, 0, g.k, pairs)
            : fp8  ? fp8_error(a.data(), g.in, column, *g.in_b, g.k) + 8 * kU * x.magnitude
                   : products_error(a.data(), g.in, column, *g.in_b, g.k, x.magnitude,
                                    a_subnormal || b_subnormal[static_cast<std::size_t>(j)] != 0);
        double error =
            (std::abs(alpha) + factors.error) * error_x + factors.error * x.magnitude +
            (operations + 0.01) * kU *
                (std::abs(alpha) * (x.magnitude + error_x) + std::abs(c) + std::abs(bias));
        double const terms =
            std::abs(alpha) * (std::abs(x.sum) + error_x) + std::abs(c) + std::abs(bias);
        // The largest sum of some of the products is at most that of their magnitudes.
        if (factors.error == kInfinite ||
            std::max(x.magnitude + error_x, terms) > largest_finite(DType::f32))
          error = kInfinite;
        auto [value, bound] = activated(g.activation, alpha * x.sum + c + bias, error);
        // An infinite value stands only where no finite terms may have made another of it.
        if (!std::isfinite(value) &&
            (factors.error == kInfinite ||
             overflows(std::max(1.0, std::abs(alpha)) * finite_magnitude(a.data(), column, g.k) +
                       if_finite(c) + if_finite(bias))))
          value = 0, bound = kInfinite;
        auto const at = row * static_cast<std::size_t>(g.n) + static_cast<std::size_t>(j);
        result.value[at] = value;
        result.bound[at] =
            bound + unit_roundoff(*g.out) * (std::abs(value) + bound) + underflow(*g.out);
      }
    });
  }
  return result;
}

namespace {

/// Blocks of K whose columns are [begin, end), scaled and added up in f32, each with its error: in
/// the order of K, or in shares of K whose sums are then added up in that order. What a share has
/// added up is the difference of two sums from the first block on, so its magnitude is at most
/// theirs together.
class ScaledSum {
 public:
  /// Adds the products of x and y, n of them, that share a scale.
  void add(double const* x, DType x_type, double const* y, DType y_type, std::int64_t n,
           Factors const& scale) {
    Dot const block = dot(x, y, n);
    double const magnitude = std::abs(scale.value) * std::abs(block.sum);
    // The scales are multiplied, and their product with the block's sum added: a rounding each.
    double const error =
        scale.error == kInfinite
            ? kInfinite
            : (std::abs(scale.value) + scale.error) *
                      (fp8_error(x, x_type, y, y_type, n) + 8 * kU * block.magnitude) +
                  scale.error * block.magnitude;
    value_ += scale.value * block.sum;
    error_ += error + kU * (magnitude + error);
    // Added to its share's sum, and that, if it is the share's last block, to those before it.
    error_ += kU * (2 * std::abs(value_) + largest_ + 2 * error_) + 0x1p-149;
    largest_ = std::max(largest_, std::abs(value_));
    terms_ += magnitude + error;
    double const finite = reference::finite_magnitude(x, y, n);
    finite_ += std::max({finite, if_finite(scale.value * finite), if_finite(magnitude)});
  }
  double value() const { return value_; }
  double error() const { return terms_ > largest_finite(DType::f32) ? kInfinite : 1.001 * error_; }
  /// Of the finite terms.
  double finite_magnitude() const { return finite_; }

 private:
  double value_ = 0, error_ = 0;
  double largest_ = 0;  // magnitude of value_ so far
  double terms_ = 0;    // magnitudes of what is added
  double finite_ = 0;   // those of products and blocks that are finite
};

/// Where a row of D has its operands: nothing where it is no group's.
struct GroupedRow {
  std::int64_t group, a_row, b_group, k, k_end, k_block;
  std::int64_t c;  ///< the first element of its row in C
};
std::optional<GroupedRow> grouped_row(GroupedGemmArguments const& g, std::int64_t row) {
  auto const begin = [&](std::int64_t i) -> std::int64_t {
    return g.group_begins != nullptr ? g.group_begins[i] : i == 0 ? 0 : g.group_ends[i - 1];
  };
  switch (g.grouping) {
    case Grouping::none:
      return GroupedRow{0, row, 0, 0, g.k, 0, row * *g.ldc};
    case Grouping::masked: {
      std::int64_t const group = row / g.m;
      if (row % g.m >= g.group_ends[group]) return {};
      return GroupedRow{group, row, group, 0, g.k, 0, row * *g.ldc};
    }
    case Grouping::contiguous:
      for (std::int64_t i = 0; i < g.groups; ++i)
        if (begin(i) <= row && row < g.group_ends[i])
          return GroupedRow{i, row, i, 0, g.k, 0, row * *g.ldc};
      return {};
    default: {
      std::int64_t const group = row / g.m;
      std::int64_t block = 0;
      for (std::int64_t i = 0; i < group; ++i)
        block +=
            std::max<std::int64_t>(0, (g.group_ends[i] - begin(i) + kScaleBlock - 1) / kScaleBlock);
      return GroupedRow{group,
                        row % g.m,
                        0,
                        begin(group),
                        std::max<std::int64_t>(begin(group), g.group_ends[group]),
                        block,
                        group * *g.c_group_stride + row % g.m * *g.ldc};
    }
  }
}

double grouped_scale_b(GroupedGemmArguments const& g, GroupedRow const& at, std::int64_t n,
                       std::int64_t block) {
  if (g.scales == Scales::rows_by_rows)
    return g.scale_b[(at.b_group * scale_blocks(g) + block) * *g.scale_b_stride + n];
  std::int64_t const blocks_n = (g.n + kScaleBlock - 1) / kScaleBlock;
  return g.scale_b[(at.b_group * blocks_n + n / kScaleBlock) * scale_blocks(g) + block];
}

}  // namespace

Values grouped_gemm(GroupedGemmArguments const& arguments, std::vector<std::int64_t> const& rows) {
  GroupedGemmArguments const g = with_defaults(arguments);
  check_rows("grouped_gemm", rows, rows_of_a(g) * (g.grouping == Grouping::k ? g.groups : 1));
  Values result;
  result.value.resize(rows.size() * static_cast<std::size_t>(g.n));
  result.bound.assign(result.value.size(), kInfinite);
  bool const block_scaled = g.block_scale.block != 0, pairs = are_pairs(g.in, *g.in_b);
  // Rows of a matrix with block scales, of whose matrices each has `matrix_rows`.
  auto const rows_of = [&](void const* x, DType type, std::int64_t ld, void const* scales,
                           std::int64_t matrix, std::int64_t stride, std::int64_t matrix_rows,
                           std::int64_t first, std::int64_t count) {
    return block_scaled_rows(static_cast<char const*>(x) + matrix * stride * bits(type) / 8, type,
                             ld,
                             static_cast<char const*>(scales) +
                                 matrix * block_scale_bytes(matrix_rows, g.k, g.block_scale.block),
                             g.block_scale, pairs, first, count, g.k);
  };
  std::vector<std::optional<GroupedRow>> places(rows.size());
  parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t r) {
    places[static_cast<std::size_t>(r)] = grouped_row(g, rows[static_cast<std::size_t>(r)]);
  });
  // From a group's B, (n, k); with block scales, its values.
  auto const of_row = [&](std::int64_t r, std::vector<double> const& all_b,
                          BlockScaledRows const& scaled_b) {
    auto const& row = places[static_cast<std::size_t>(r)];
    if (!row) return;
    std::int64_t const depth = row->k_end - row->k;
    bool const masked = g.grouping == Grouping::masked;
    BlockScaledRows scaled_a;
    std::vector<double> a(static_cast<std::size_t>(block_scaled ? 0 : depth));
    if (block_scaled)
      scaled_a = rows_of(g.a, g.in, *g.lda, g.block_scale_a, masked ? row->group : 0, g.m * *g.lda,
                         g.m, masked ? row->a_row % g.m : row->a_row, 1);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = element(g.a, g.in, row->a_row * *g.lda + row->k + static_cast<std::int64_t>(i));
    for (std::int64_t j = 0; j < g.n; ++j) {
      double const* const b = all_b.data() + j * g.k + row->k;
      double value = 0, error = 0;
      double magnitude = 0;  // of the products; ScaledSum looks at its own
      double finite = 0;     // of the finite ones
      if (block_scaled) {
        Dot const x = dot(scaled_a.value.data() + row->k, b, depth);
        value = x.sum, magnitude = x.magnitude;
        finite = finite_magnitude(scaled_a.value.data() + row->k, b, depth);
        error = block_scaled_error(scaled_a, 0, scaled_b, j, row->k, row->k_end, pairs);
      } else if (g.scales == Scales::none) {
        Dot const x = dot(a.data(), b, depth);
        value = x.sum, magnitude = x.magnitude;
        finite = finite_magnitude(a.data(), b, depth);
        error = products_error(
            a.data(), g.in, b, *g.in_b, depth, x.magnitude,
            has_subnormal(a.data(), g.in, depth) || has_subnormal(b, *g.in_b, depth));
      } else {
        ScaledSum sum;
        for (std::int64_t first = 0; first < depth; first += kScaleBlock) {
          std::int64_t const block = row->k_block + first / kScaleBlock;
          Factors scale;
          scale.multiply(g.scale_a[block * *g.scale_a_stride + row->a_row]);
          scale.multiply(grouped_scale_b(g, *row, j, block));
          sum.add(a.data() + first, g.in, b + first, *g.in_b,
                  std::min<std::int64_t>(kScaleBlock, depth - first), scale);
        }
        value = sum.value(), error = sum.error(), finite = sum.finite_magnitude();
      }
      double const c = g.c != nullptr ? element(g.c, *g.out, row->c + j) : 0;
      if (g.c != nullptr) error += kU * (std::abs(value) + error + std::abs(c));
      if (std::max(magnitude, std::abs(value) + std::abs(c)) + error > largest_finite(DType::f32))
        error = kInfinite;
      value += c;
      // As in a GEMM.
      if (!std::isfinite(value) && overflows(finite + if_finite(c))) value = 0, error = kInfinite;
      auto const at = static_cast<std::size_t>(r * g.n + j);
      result.value[at] = value;
      result.bound[at] =
          error + unit_roundoff(*g.out) * (std::abs(value) + error) + underflow(*g.out);
    }
  };
  // Rows that follow each other with one group's B are computed together, from it as doubles.
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    std::optional<std::int64_t> group;
    for (; end < rows.size() && (!places[end] || !group || places[end]->b_group == *group); ++end)
      if (places[end]) group = places[end]->b_group;
    if (!group) continue;
    BlockScaledRows scaled_b;
    if (block_scaled)
      scaled_b =
          rows_of(g.b, *g.in_b, *g.ldb, g.block_scale_b, *group, *g.b_group_stride, g.n, 0, g.n);
    auto const b = block_scaled ? scaled_b.value
                                : matrix(static_cast<char const*>(g.b) +
                                             *group * *g.b_group_stride * (bits(*g.in_b) / 8),
                                         *g.in_b, g.n, g.k, *g.ldb, 1);
    parallel_for(static_cast<std::int64_t>(end - begin), [&](std::int64_t r) {
      of_row(static_cast<std::int64_t>(begin) + r, b, scaled_b);
    });
  }
  return result;
}

}  // namespace tegula::reference
