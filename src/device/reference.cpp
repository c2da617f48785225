#include "tegula/device/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>

#include "block_scaled_reference.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/numeric/float8.hpp"

// The bounds
//
// u = 2^-24 is the unit roundoff of f32, u_out that of the output type. The tensor core adds
// products in steps of at least 8: each step aligns its products and the accumulator, at most 9
// terms, to the largest exponent among them, truncates each to 24 fractional bits, and rounds the
// sum towards zero to f32 (DESIGN section 5; an sm_90's step of 16 with 25 bits errs less per
// product). With S the sum of the products' magnitudes, which bounds every partial sum, a step errs
// by at most 9 * 2^-24 S + 2^-23 S = 11 u S, and K products by
//     mma(K) * S,  mma(K) = r / (1 - r),  r = 11 u ceil(K / 8)
// (the quotient covers the growth of the partial sums by earlier errors). A product below the range
// of f32 adds at most 2^-149 a step.
//
// wgmma of tf32 adds 8 products a step with 25 bits: 4.5 u + 2 u, less than the 11 u above. Where
// CTAs share K their sums are added in f32, a rounding for each, which the difference covers from 2
// steps of a CTA on, and one step's own does below that.
//
// wgmma of fp8 adds 32 products a step with 13 fractional bits, and keeps 13 of the sum: of 33
// terms each errs by less than 2^-13 of the largest power of two among them, the sum by 2^-13 of
// itself. Here a bound from S alone would say little, so each step is followed: with P the largest
// product of the step (a subnormal factor counting as the least normal one), R the magnitude of the
// partial sum before it or after it, whichever is larger, and E the error so far, the step adds at
// most 33 * 2^-13 max(P, R + E) + 2^-13 (R + E). In which order a step's products stand does not
// matter, and neither does a split of K: the partial sums of a share are differences of those of
// the whole; with shares, R is bounded by the largest such difference, the largest less the least.
//
// With block scales X errs as block_scaled_reference.cpp says.
//
// GEMM: D = f(alpha scale_a scale_b X + beta C + bias), where X errs as above. The epilogue is at
// most six operations in f32, each at most u of a magnitude of |alpha| (1 + mma) S + |beta C| +
// |bias|. relu has slope 1. gelu and silu have slopes of at most 1.13 and 1.1, and are x/2 (1 +
// tanh y) with tanh.approx, which errs by 2^-11 relative (PTX ISA), and y and the rest by a few u:
// |x|/2 (2^-11 |tanh y| + 16 u). Then one rounding to the output.
//
// With scales, each block of 128 of K is a sum of its own, followed as above from zero; it and its
// scales, whose product is rounded, are added to the sum of blocks in f32, one rounding each.
//
// Attention, a row of scores s_j = scale q.k_j and weights w_j = exp(s_j - max) / sum. The kernel
// computes 2^(fma(S_j, c, -offset)), c = scale log2(e). Any offset is right so long as O and the
// sum use the same, so only the arithmetic around it errs:
//   - S_j by mma(D) scale |q|.|k_j| =: delta_j, of which the largest counts;
//   - c by 2u relative, so s_j by 2u A, A the largest |s_j| of the row plus its delta; the fma by
//     u |s_j - offset| <= 2u A;
//   - the exponential by e = 2^-22 relative (ex2.approx.ftz: PTX ISA, 2 ulp; the polynomial:
//     1.02 ulp);
//   - at most one rescaling for each block of keys: the sum of the differences of offsets is at
//     most 2A (they grow monotonically), so 2u A for their roundings, and e + u for each factor
//     and product.
//   Together a weight errs, relatively, by eta = expm1(delta + 6u A + (1 + blocks)(e + u)).
//   - The sum, of non-negative terms: a lane adds a quarter of the keys, then two sums of lanes:
//     (keys / 4 + 4) u; as a divisor with a correctly rounded or approximate reciprocal and a
//     product, 4u more. It carries eta as well.
//   - P rounds to the input type: u_in relative, and half its smallest subnormal absolutely: P is
//     relative to the offset, and the sum is at least 1 in these units, so that part errs by at
//     most 2^-25 (f16) or 2^-126 (bf16, flushed f32) sum_j |v_j| / sum.
//   - P V by mma(keys + 8 blocks) with sum_j w_j |v_j| for S.
//   Of e4m3:
//   - S_j errs by the fp8 rule, and by 4u A more for the factors and their products.
//   - P is relative to 2^8 times its maximum or more (OnlineSoftmax), so its smallest subnormal,
//   2^-9,
//     is 2^-17 of that.
//   - P V is summed by the fp8 rule, where the products are known to eta and u_in relative, and
//     absolutely; the order of the steps, from the last block of keys to the first, makes no
//     difference to the largest partial sum that is taken. Rescaling O multiplies its error too.
//     With `precise`, partial sums are those of a block's steps, and blocks are added up in f32.
//     (tcgen05.mma, whose sums keep 25 bits, truncates 33 terms to 25 bits and the sum to 23: a
//     step adds at most 33 * 2^-25 + 2^-23 < 0x1.3p-20 of the partial sum over all blocks, and of
//     the largest product less than above. `precise` allows for both.)
//   Then one rounding to the output type. The log-sum-exp errs by eta and the sum's part absolutely
//   (d ln x = dx / x), by lg2.approx's 2^-22 absolute and relative, and by a few roundings of
//   A + |lse|.

namespace tegula::reference {
namespace {

constexpr double kU = 0x1p-24;

double unit_roundoff(DType type) {
  return type == DType::f16    ? 0x1p-11
         : type == DType::bf16 ? 0x1p-8
         : type == DType::e4m3 ? 0x1p-4
                               : kU;
}
/// Half of the smallest subnormal.
double underflow(DType type) {
  return type == DType::f16 ? 0x1p-25 : type == DType::bf16 ? 0x1p-134 : 0x1p-150;
}

double mma_error(std::int64_t products) {
  double const r = 11 * kU * static_cast<double>((products + 7) / 8);
  return r < 0.5 ? r / (1 - r) : std::numeric_limits<double>::infinity();
}

/// Calls work(i) for i < count on all of the host's cores.
template <class Work> void parallel_for(std::int64_t count, Work&& work) {
  std::atomic<std::int64_t> next = 0;
  auto const run = [&] {
    for (std::int64_t i; (i = next++) < count;) work(i);
  };
  std::vector<std::thread> threads;
  auto const helpers =
      std::min<std::int64_t>(count, std::max(1u, std::thread::hardware_concurrency())) - 1;
  try {
    for (std::int64_t t = 0; t < helpers; ++t) threads.emplace_back(run);
  } catch (std::system_error const&) {  // the system starts no more: those that there are do it all
  }
  run();
  for (auto& thread : threads) thread.join();
}

template <class T> T load(void const* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<char const*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

/// `rows` rows of `row` elements each, as doubles, contiguous; `inner` and `outer` are the strides
/// between elements and rows.
std::vector<double> matrix(void const* data, DType type, std::int64_t rows, std::int64_t row,
                           std::int64_t outer, std::int64_t inner) {
  std::vector<double> result(static_cast<std::size_t>(rows * row));
  parallel_for(rows, [&](std::int64_t r) {
    for (std::int64_t i = 0; i < row; ++i)
      result[static_cast<std::size_t>(r * row + i)] = element(data, type, r * outer + i * inner);
  });
  return result;
}

struct Dot {
  double sum, magnitude;
};
Dot dot(double const* x, double const* y, std::int64_t n) {
  constexpr int lanes = 8;  // independent sums, for the host's vector units
  double sum[lanes] = {}, magnitude[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int l = 0; l < lanes; ++l) {
      double const product = x[i + l] * y[i + l];
      sum[l] += product;
      magnitude[l] += std::abs(product);
    }
  }
  for (; i < n; ++i) {
    sum[0] += x[i] * y[i];
    magnitude[0] += std::abs(x[i] * y[i]);
  }
  Dot total{0, 0};
  for (int l = 0; l < lanes; ++l) total.sum += sum[l], total.magnitude += magnitude[l];
  return total;
}

}  // namespace

namespace {
/// Element `index` of elements of 6 bits that lie packed, bit after bit.
std::uint8_t six_bits(void const* data, std::int64_t index) {
  std::int64_t const bit = 6 * index, shift = bit % 8;
  unsigned word = load<std::uint8_t>(data, bit / 8);
  if (shift > 2) word |= static_cast<unsigned>(load<std::uint8_t>(data, bit / 8 + 1)) << 8;
  return static_cast<std::uint8_t>(word >> shift & 0x3f);
}
}  // namespace

double element(void const* data, DType type, std::int64_t index) {
  switch (type) {
    case DType::f16:
      return to_float(load<half>(data, index));
    case DType::bf16:
      return to_float(load<bfloat16>(data, index));
    case DType::f32:
      return load<float>(data, index);
    case DType::tf32:
      return to_float(load<tfloat32>(data, index));
    case DType::e4m3:
      return to_float(load<float_e4m3>(data, index));
    case DType::e5m2:
      return to_float(load<float_e5m2>(data, index));
    case DType::e2m1:
      return to_float(load<float_e2m1x2>(data, index / 2)[static_cast<int>(index % 2)]);
    case DType::e2m3:
      return to_float(float_e2m3{six_bits(data, index)});
    case DType::e3m2:
      return to_float(float_e3m2{six_bits(data, index)});
    case DType::ue8m0:
      return to_float(load<float_ue8m0>(data, index));
    case DType::ue4m3:
      return to_float(load<float_ue4m3>(data, index));
    case DType::f64:
      return load<double>(data, index);
    default:
      throw argument_error(
          fmt::format("reference::element: the type is {}; floating-point numbers can be read.",
                      to_string(type)));
  }
}

double largest_finite(DType type) {
  switch (type) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      throw argument_error(
          fmt::format("reference::largest_finite: the type is {}; it must be f16, bf16 or f32.",
                      to_string(type)));
  }
}

namespace {

/// Elements of K that one fp8 wgmma adds up.
constexpr std::int64_t kFp8Step = 32;

/// The least normal magnitude of a type, which the exponent of a subnormal counts as.
double least_normal(DType type) { return type == DType::e4m3 ? 0x1p-6 : 0x1p-14; }

/// The error of a sum of products of fp8, by the rule above, step by step. The products may be
/// known to `relative` only, and in absolute terms to `absolute` each. With `promotes`, at most
/// kPromotedSteps steps in a row are summed by the tensor core, and their sums in f32.
class Fp8Sum {
 public:
  explicit Fp8Sum(double relative = 0, double absolute = 0, bool promotes = false)
      : relative_(relative), absolute_(absolute), promotes_(promotes) {}

  /// A product, and its largest magnitude where subnormal factors count as the least normal ones.
  void add(double product, double aligned) {
    sum_ += product;
    magnitude_ += relative_ * std::abs(product) + absolute_;
    largest_ = std::max(largest_, aligned);
  }
  void end_step() {
    most_ = std::max(most_, sum_);
    least_ = std::min(least_, sum_);
    std::rotate(steps_.begin(), steps_.begin() + 1, steps_.end());
    steps_.back() = {std::abs(sum_ - before_), magnitude_, error_};
    before_ = sum_;
    double partial = most_ - least_ + magnitude_ + error_;
    if (promotes_) {
      partial = magnitude_ - steps_.front().magnitude + error_ - steps_.front().error;
      for (Step const& step : steps_) partial += step.sum;
      error_ += 0x1.3p-20 * (most_ - least_ + magnitude_ + error_);
    }
    error_ += 0x1p-13 * (33 * std::max((1 + relative_) * largest_ + absolute_, partial) + partial);
    largest_ = 0;
  }
  /// Of the sum, beyond that of its products.
  double error() const { return error_; }

 private:
  static constexpr int kPromotedSteps = 8;  // 256 keys, a block's at most
  /// The magnitude of a step's sum; the errors before it.
  struct Step {
    double sum = 0, magnitude = 0, error = 0;
  };
  double relative_, absolute_;
  bool promotes_;
  double sum_ = 0, before_ = 0, most_ = 0, least_ = 0;
  std::array<Step, kPromotedSteps + 1> steps_{};  ///< the last ones
  double magnitude_ = 0;                          ///< of the products' own errors
  double largest_ = 0;                            ///< of the step
  double error_ = 0;
};

/// The error of a sum of n products of fp8.
double fp8_error(double const* x, DType x_type, double const* y, DType y_type, std::int64_t n) {
  double const x_least = least_normal(x_type), y_least = least_normal(y_type);
  Fp8Sum sum;
  for (std::int64_t first = 0; first < n; first += kFp8Step) {
    for (std::int64_t i = first; i < std::min(n, first + kFp8Step); ++i)
      sum.add(x[i] * y[i], std::max(std::abs(x[i]), x_least) * std::max(std::abs(y[i]), y_least));
    sum.end_step();
  }
  return sum.error();
}

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
  double const scale_a = g.scale_a != nullptr ? *g.scale_a : 1,
               scale_b = g.scale_b != nullptr ? *g.scale_b : 1;
  double const alpha = g.alpha * scale_a * scale_b, accumulation = mma_error(g.k);
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
      for (std::int64_t j = 0; j < g.n; ++j) {
        double const* const column = b.data() + j * g.k;
        Dot const x = dot(a.data(), column, g.k);
        double const c =
            g.beta != 0 ? g.beta * element(g.c, *g.out, batch * *g.c_batch_stride + i * *g.ldc + j)
                        : 0;
        double const bias = g.bias != nullptr ? element(g.bias, *g.out, j) : 0;
        double const error_x =
            scaled ? block_scaled_error(scaled_a, 0, scaled_b, j, g.k, pairs)
            : fp8  ? fp8_error(a.data(), g.in, column, *g.in_b, g.k) + 8 * kU * x.magnitude
                   : accumulation * x.magnitude + 0x1p-149 * static_cast<double>(g.k / 8 + 1);
        double const error =
            std::abs(alpha) * error_x +
            (operations + 0.01) * kU *
                (std::abs(alpha) * (x.magnitude + error_x) + std::abs(c) + std::abs(bias));
        auto const [value, bound] = activated(g.activation, alpha * x.sum + c + bias, error);
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
           double scale) {
    Dot const block = dot(x, y, n);
    double const magnitude = std::abs(scale) * std::abs(block.sum);
    // The scales are multiplied, and their product with the block's sum added: a rounding each.
    double const error = std::abs(scale) * fp8_error(x, x_type, y, y_type, n) +
                         8 * kU * std::abs(scale) * block.magnitude;
    value_ += scale * block.sum;
    error_ += error + kU * (magnitude + error);
    // Added to its share's sum, and that, if it is the share's last block, to those before it.
    error_ += kU * (2 * std::abs(value_) + largest_ + 2 * error_) + 0x1p-149;
    largest_ = std::max(largest_, std::abs(value_));
  }
  double value() const { return value_; }
  double error() const { return 1.001 * error_; }

 private:
  double value_ = 0, error_ = 0;
  double largest_ = 0;  // magnitude of value_ so far
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
  Values result;
  result.value.resize(rows.size() * static_cast<std::size_t>(g.n));
  result.bound.assign(result.value.size(), std::numeric_limits<double>::infinity());
  bool const many_b = g.grouping == Grouping::contiguous || g.grouping == Grouping::masked;
  std::vector<std::vector<double>> all_b;  // (groups of B, n, k)
  for (std::int64_t group = 0; group < (many_b ? g.groups : 1); ++group)
    all_b.push_back(
        matrix(static_cast<char const*>(g.b) + group * *g.b_group_stride * (bits(*g.in_b) / 8),
               *g.in_b, g.n, g.k, *g.ldb, 1));
  parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t r) {
    auto const row = grouped_row(g, rows[static_cast<std::size_t>(r)]);
    if (!row) return;
    std::int64_t const depth = row->k_end - row->k;
    std::vector<double> a(static_cast<std::size_t>(depth));
    for (std::int64_t i = 0; i < depth; ++i)
      a[static_cast<std::size_t>(i)] = element(g.a, g.in, row->a_row * *g.lda + row->k + i);
    for (std::int64_t j = 0; j < g.n; ++j) {
      double const* const b =
          all_b[static_cast<std::size_t>(row->b_group)].data() + j * g.k + row->k;
      double value = 0, error = 0;
      if (g.scales == Scales::none) {
        Dot const x = dot(a.data(), b, depth);
        value = x.sum,
        error = mma_error(depth) * x.magnitude + 0x1p-149 * static_cast<double>(depth / 8 + 1);
      } else {
        ScaledSum sum;
        for (std::int64_t first = 0; first < depth; first += kScaleBlock) {
          std::int64_t const block = row->k_block + first / kScaleBlock;
          sum.add(a.data() + first, g.in, b + first, *g.in_b,
                  std::min<std::int64_t>(kScaleBlock, depth - first),
                  static_cast<double>(g.scale_a[block * *g.scale_a_stride + row->a_row]) *
                      grouped_scale_b(g, *row, j, block));
        }
        value = sum.value(), error = sum.error();
      }
      double const c = g.c != nullptr ? element(g.c, *g.out, row->c + j) : 0;
      if (g.c != nullptr) error += kU * (std::abs(value) + error + std::abs(c));
      value += c;
      auto const at = static_cast<std::size_t>(r * g.n + j);
      result.value[at] = value;
      result.bound[at] =
          error + unit_roundoff(*g.out) * (std::abs(value) + error) + underflow(*g.out);
    }
  });
  return result;
}

namespace {

/// A sequence: how many queries and keys it has, and where, plainly from the arguments.
class Sequence {
 public:
  Sequence(AttentionArguments const& a, std::int64_t batch)
      : a_(a), batch_(batch), queries_(a.seq_q), keys_(*a.seq_k) {
    if (a.cu_seqlens_q != nullptr)
      queries_ = between(a.cu_seqlens_q[batch + 1] - a.cu_seqlens_q[batch], a.seq_q);
    if (a.cu_seqlens_k != nullptr)
      keys_ = between(a.cu_seqlens_k[batch + 1] - a.cu_seqlens_k[batch], *a.seq_k);
    if (a.seqused_k != nullptr) old_keys_ = keys_ = between(a.seqused_k[batch], *a.seq_k);
    if (a.k_new == nullptr) return;
    std::int64_t new_keys = a.seq_new;
    if (a.cu_seqlens_new != nullptr)
      new_keys = between(a.cu_seqlens_new[batch + 1] - a.cu_seqlens_new[batch], a.seq_new);
    keys_ = between(old_keys_ + new_keys, *a.seq_k);
  }

  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return keys_; }
  /// Of keys(), those before new ones.
  std::int64_t old_keys() const { return a_.k_new == nullptr ? keys_ : old_keys_; }
  /// Offset of key j, a new one, in k_new or v_new, but for its head.
  std::int64_t new_key(std::int64_t j, TokenStrides const& s) const {
    std::int64_t const i = j - old_keys_;
    return a_.cu_seqlens_new != nullptr ? (a_.cu_seqlens_new[batch_] + i) * s.seq
                                        : batch_ * s.batch + i * s.seq;
  }
  /// Offsets of query i in q, and of key j in k or v, but for their heads.
  std::int64_t query(std::int64_t i) const {
    TokenStrides const& s = *a_.q_stride;
    return a_.cu_seqlens_q != nullptr ? (a_.cu_seqlens_q[batch_] + i) * s.seq
                                      : batch_ * s.batch + i * s.seq;
  }
  std::int64_t key(std::int64_t j, TokenStrides const& s) const {
    if (a_.page_table != nullptr) {
      std::int64_t const entry = batch_ * *a_.page_table_stride + j / a_.page_size;
      return a_.page_table[entry] * s.batch + j % a_.page_size * s.seq;
    }
    return a_.cu_seqlens_k != nullptr ? (a_.cu_seqlens_k[batch_] + j) * s.seq
                                      : batch_ * s.batch + j * s.seq;
  }

 private:
  static std::int64_t between(std::int64_t length, std::int64_t most) {
    return std::clamp<std::int64_t>(length, 0, most);
  }

  AttentionArguments const& a_;
  std::int64_t batch_, queries_, keys_, old_keys_ = 0;
};

/// The keys that a row sees: [begin, end).
struct Visible {
  std::int64_t begin, end;
};
Visible visible(AttentionArguments const& a, Sequence const& sequence, std::int64_t i) {
  std::int64_t const keys = sequence.keys(), place = i + keys - sequence.queries();
  std::int64_t begin = 0, end = keys;
  if (a.window_left) begin = std::max<std::int64_t>(begin, place - *a.window_left);
  if (a.causal) end = std::min(end, place + 1);
  if (a.window_right) end = std::min(end, place + 1 + *a.window_right);
  return {begin, std::max(begin, end)};
}

/// What the scores and values of 8-bit operands are multiplied with.
struct Descale {
  double scores = 1, values = 1;
};
Descale descale(AttentionArguments const& a, std::int64_t batch, std::int64_t kv_head) {
  auto const of = [&](float const* factors) {
    std::int64_t const place = batch * a.descale_stride->batch + kv_head * a.descale_stride->head;
    return factors == nullptr ? 1.0 : static_cast<double>(factors[place]);
  };
  return {of(a.q_descale) * of(a.k_descale), of(a.v_descale)};
}

/// P of e4m3 for the maximum of a row: OnlineSoftmax's 2^kShift, which the slack can but exceed.
constexpr double kLargestP = 0x1p8;

/// One row of O: scores, softmax and the sum of values, each with what a kernel's arithmetic may
/// add to it.
class AttentionRow {
 public:
  AttentionRow(AttentionArguments const& a, std::int64_t head, Descale const& descale, Visible keys,
               std::int64_t all_keys)
      : a_(a),
        descale_(descale),
        first_(keys.begin),
        all_keys_(all_keys),
        weight_(static_cast<std::size_t>(keys.end - keys.begin)),
        has_sink_(a.sink != nullptr) {
    if (has_sink_) sink_ = a.sink[head];
  }

  void scores(double const* q, double const* k) {
    if (has_sink_) take(sink_);
    double const scale = *a_.scale * descale_.scores;
    for (std::size_t j = 0; j < weight_.size(); ++j) {
      double const* const key = k + (first_ + static_cast<std::int64_t>(j)) * a_.head_dim;
      Dot const s = dot(q, key, a_.head_dim);
      double score = scale * s.sum;
      delta_ = std::max(delta_, std::abs(scale) * product_error(q, key, s));
      if (a_.softcap != 0) score = a_.softcap * std::tanh(score / a_.softcap);
      take(weight_[j] = score);
    }
    // Of tanh from an exponential and a reciprocal, both approximate, whose slope is at most 1: a
    // few 2^-22.
    if (a_.softcap != 0) delta_ += std::abs(static_cast<double>(a_.softcap)) * 0x1p-20;
    for (double& w : weight_) sum_ += w = std::exp(w - largest_);
    if (has_sink_) sum_ += std::exp(sink_ - largest_);
    double const exponential = 0x1p-22;
    int const roundings = fp8() ? 10 : 6;  // of scores: the factors and their products
    eta_ = std::expm1(delta_ + roundings * kU * (most_ + delta_) +
                      (1 + blocks()) * (exponential + kU));
  }

  void output(double const* v, double* o, double* bound) const {
    std::int64_t const dim = *a_.head_dim_v;
    double const products =
        fp8() ? (3 + blocks()) * kU : mma_error(keys() + 8 * static_cast<std::int64_t>(blocks()));
    double const relative = 2.01 * eta_ + summation() + 4 * kU + unit_roundoff(a_.dtype) + products;
    double const absolute = underflow_of_p() / sum_;
    for (std::int64_t d = 0; d < dim; ++d) {
      double value = 0, magnitude = 0, plain = 0;
      for (std::int64_t j = 0; j < keys(); ++j) {
        double const vj = v[(first_ + j) * dim + d],
                     product = weight_[static_cast<std::size_t>(j)] * vj;
        value += product;
        magnitude += std::abs(product);
        plain += std::abs(vj);
      }
      double const in_product = fp8() ? 1.02 * values_error(v + d, dim) / sum_ : 0;
      value *= descale_.values / sum_;
      double const error = std::abs(descale_.values) *
                           (1.01 * relative * magnitude / sum_ + absolute * plain + in_product);
      o[d] = value;
      bound[d] = error + unit_roundoff(*a_.out) * (std::abs(value) + error) + underflow(*a_.out);
    }
  }

  double log_sum_exp() const { return largest_ + std::log(sum_); }
  double log_sum_exp_bound() const {
    return 1.01 * (eta_ + summation()) + 0x1p-22 * (7 + std::log(sum_)) +
           6 * kU * (most_ + std::abs(log_sum_exp()));
  }

 private:
  bool fp8() const { return a_.dtype == DType::e4m3; }

  /// Of q.k as the tensor core computes it.
  double product_error(double const* q, double const* k, Dot const& s) const {
    if (!fp8()) return mma_error(a_.head_dim) * s.magnitude;
    // Steps of zeros, up to the tile's head dimension, align the sum to a product of least normals.
    double const padding = 8 * 34 * 0x1p-13 * least_normal(DType::e4m3) * least_normal(DType::e4m3);
    return fp8_error(q, DType::e4m3, k, DType::e4m3, a_.head_dim) + padding;
  }

  /// Half of P's least subnormal, P in units of its largest possible value for the row's maximum.
  double underflow_of_p() const {
    return a_.dtype == DType::e4m3  ? 0x1p-10 / kLargestP
           : a_.dtype == DType::f16 ? 0x1p-25
                                    : 0x1p-126;
  }

  /// Of one column of P V as the fp8 tensor core sums it; v are the column's values, `stride`
  /// apart. Keys that the row does not see are zeros in P: those of its blocks align the sum too.
  double values_error(double const* v, std::int64_t stride) const {
    constexpr std::int64_t block = 256;  // keys at most
    std::int64_t const begin = std::max<std::int64_t>(0, first_ - block) / kFp8Step * kFp8Step,
                       end = std::min(all_keys_, first_ + keys() + block);
    double const least = least_normal(DType::e4m3), least_p = least / kLargestP;
    double largest = 0;
    for (std::int64_t j = begin; j < end; ++j) largest = std::max(largest, std::abs(v[j * stride]));
    Fp8Sum sum(1.01 * (eta_ + unit_roundoff(DType::e4m3)), underflow_of_p() * largest, *a_.precise);
    for (std::int64_t step = begin; step < end; step += kFp8Step) {
      for (std::int64_t j = step; j < std::min(end, step + kFp8Step); ++j) {
        std::int64_t const i = j - first_;
        double const weight = i >= 0 && i < keys() ? weight_[static_cast<std::size_t>(i)] : 0,
                     value = v[j * stride];
        sum.add(weight * value, std::max(weight, least_p) * std::max(std::abs(value), least));
      }
      sum.end_step();
    }
    return sum.error();
  }

  void take(double score) {
    largest_ = std::max(largest_, score);
    // A score of -inf, a sink's, adds an exact 0.
    if (score != -std::numeric_limits<double>::infinity()) most_ = std::max(most_, std::abs(score));
    if (std::isnan(score)) largest_ = score;  // std::max drops a NaN on its right
  }
  std::int64_t keys() const { return static_cast<std::int64_t>(weight_.size()); }
  double blocks() const { return static_cast<double>((keys() + 15) / 16) + (has_sink_ ? 1 : 0); }
  double summation() const { return (static_cast<double>(keys()) / 4 + 4) * kU; }

  AttentionArguments const& a_;
  Descale descale_;
  std::int64_t first_, all_keys_;  ///< the first that the row sees; of its sequence
  std::vector<double> weight_;
  bool has_sink_;
  double sink_ = 0;
  // of the scores
  double largest_ = -std::numeric_limits<double>::infinity(), most_ = 0, delta_ = 0;
  double sum_ = 0;
  double eta_ = 0;  ///< by how much a weight may be off, in units of it
};

}  // namespace

double new_element(AttentionArguments const& a, void const* rows, float const* descale,
                   std::int64_t batch, std::int64_t kv_head, std::int64_t index) {
  double const x = element(rows, *a.new_dtype, index);
  if (*a.new_dtype == a.dtype) return x;
  DescaleStrides const& s = *a.descale_stride;
  float const factor = descale == nullptr ? 1.0f : descale[batch * s.batch + kv_head * s.head];
  return to_float(to_float_e4m3(static_cast<float>(x) / factor));
}

Attention attention(AttentionArguments const& arguments, std::vector<std::int64_t> const& rows) {
  AttentionArguments const a = with_defaults(arguments);
  std::int64_t const dim = a.head_dim, dim_v = *a.head_dim_v;
  Attention result;
  for (auto* const values : {&result.o.value, &result.o.bound})
    values->resize(rows.size() * static_cast<std::size_t>(dim_v));
  for (auto* const values : {&result.lse.value, &result.lse.bound}) values->resize(rows.size());

  // Rows of one (batch, head) are computed together, from its keys and values as doubles.
  std::size_t begin = 0;
  while (begin < rows.size()) {
    std::int64_t const pair = rows[begin] / a.seq_q;
    std::size_t end = begin;
    while (end < rows.size() && rows[end] / a.seq_q == pair) ++end;
    std::int64_t const batch = pair / a.heads, head = pair % a.heads,
                       kv_head = head / (a.heads / *a.kv_heads);
    Sequence const sequence(a, batch);
    auto const head_matrix = [&](void const* data, TokenStrides const& s, void const* new_data,
                                 TokenStrides const& new_s, float const* factors,
                                 std::int64_t width) {
      std::vector<double> rows_of_keys(static_cast<std::size_t>(sequence.keys() * width));
      parallel_for(sequence.keys(), [&](std::int64_t j) {
        bool const old = j < sequence.old_keys();
        std::int64_t const first = old ? sequence.key(j, s) + kv_head * s.head
                                       : sequence.new_key(j, new_s) + kv_head * new_s.head;
        for (std::int64_t d = 0; d < width; ++d)
          rows_of_keys[static_cast<std::size_t>(j * width + d)] =
              old ? element(data, a.dtype, first + d)
                  : new_element(a, new_data, factors, batch, kv_head, first + d);
      });
      return rows_of_keys;
    };
    for (std::size_t row = begin; row < end; ++row)
      if (rows[row] % a.seq_q >= sequence.queries())
        throw argument_error(fmt::format(
            "reference::attention: row {} is query {} of sequence {}, which has {} of them.",
            rows[row], rows[row] % a.seq_q, batch, sequence.queries()));
    bool const one_tensor = is_latent(a);
    auto const k = head_matrix(a.k, *a.k_stride, a.k_new, *a.k_new_stride, a.k_descale, dim),
               v = head_matrix(a.v, *a.v_stride, one_tensor ? a.k_new : a.v_new,
                               one_tensor ? *a.k_new_stride : *a.v_new_stride, a.v_descale, dim_v);

    parallel_for(static_cast<std::int64_t>(end - begin), [&](std::int64_t r) {
      std::size_t const row = begin + static_cast<std::size_t>(r);
      std::int64_t const i = rows[row] % a.seq_q;
      Visible const keys = visible(a, sequence, i);
      if (keys.begin == keys.end) {  // exactly 0, and -inf or the sink
        result.lse.value[row] =
            a.sink != nullptr ? a.sink[head] : -std::numeric_limits<double>::infinity();
        result.lse.bound[row] =
            a.sink != nullptr ? 6 * kU * std::abs(result.lse.value[row]) + 0x1p-21 : 0;
        return;
      }
      std::vector<double> q(static_cast<std::size_t>(dim));
      for (std::int64_t d = 0; d < dim; ++d)
        q[static_cast<std::size_t>(d)] =
            element(a.q, a.dtype, sequence.query(i) + head * a.q_stride->head + d);
      AttentionRow one(a, head, descale(a, batch, kv_head), keys, sequence.keys());
      one.scores(q.data(), k.data());
      std::size_t const first = row * static_cast<std::size_t>(dim_v);
      one.output(v.data(), result.o.value.data() + first, result.o.bound.data() + first);
      result.lse.value[row] = one.log_sum_exp();
      result.lse.bound[row] = one.log_sum_exp_bound();
    });
    begin = end;
  }
  return result;
}

std::vector<std::int64_t> some_rows(std::int64_t total, std::int64_t most) {
  std::int64_t const count = std::min(total, std::max<std::int64_t>(most, 1));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  double const step =
      count > 1 ? static_cast<double>(total - 1) / static_cast<double>(count - 1) : 0;
  for (std::int64_t i = 0; i < count; ++i)
    rows[static_cast<std::size_t>(i)] =
        count == total ? i : static_cast<std::int64_t>(std::floor(static_cast<double>(i) * step));
  return rows;
}

Comparison compare(std::vector<double> const& results, Values const& reference, double largest) {
  if (results.size() != reference.value.size() || results.size() != reference.bound.size())
    throw argument_error(fmt::format("reference::compare: there are {} results and {} values.",
                                     results.size(), reference.value.size()));
  Comparison c;
  c.elements = static_cast<std::int64_t>(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    double const result = results[i], value = reference.value[i], bound = reference.bound[i];
    double error = 0, ratio = 0;
    if (std::isnan(value) || std::isnan(result)) {
      ratio = std::isnan(value) && std::isnan(result) ? 0 : std::numeric_limits<double>::infinity();
    } else if (result != value) {
      bool const overflowed =
          std::isinf(result) && (result > 0 ? value + bound >= largest : value - bound <= -largest);
      error = overflowed ? 0 : std::abs(result - value);
      ratio = error == 0 ? 0 : bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
      if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();  // inf / inf
    }
    if (std::isfinite(error)) c.max_error = std::max(c.max_error, error);
    if (c.worst < 0 || ratio > c.max_ratio)
      c.max_ratio = ratio, c.worst = static_cast<std::int64_t>(i), c.worst_result = result;
  }
  return c;
}

void Comparison::add(Comparison const& other, std::int64_t offset) {
  elements += other.elements;
  max_error = std::max(max_error, other.max_error);
  if (other.worst >= 0 && (worst < 0 || other.max_ratio > max_ratio)) {
    max_ratio = other.max_ratio;
    worst = other.worst + offset;
    worst_result = other.worst_result;
  }
}

}  // namespace tegula::reference
