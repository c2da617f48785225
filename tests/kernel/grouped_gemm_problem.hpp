#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "tegula/device/grouped_gemm.hpp"
#include "tegula/device/launch.hpp"
#include "test_machine.hpp"

namespace tegula {

/// A factor of a block: of either side of one, and no power of two.
inline float scale_like(std::mt19937_64& random) {
  return std::exp2(std::uniform_real_distribution<float>(-3, 3)(random));
}

/// A grouped GEMM. `sizes` are the groups' rows, or columns with Grouping::k; they are `apart` from
/// each other, and begin at multiples of `padded_to`. What is no group's is NaN, in A, B and the
/// scales. Without groups, sizes do not count.
struct GroupedProblem {
  DType in = DType::e4m3;
  std::optional<DType> in_b = {}, out = {};
  std::optional<Scales> scales = {};
  BlockScale block_scale = {};
  Grouping grouping = Grouping::none;
  std::vector<int> sizes = {};
  int m = 1, n = 1, k = 1;  ///< of contiguous groups m, with Grouping::k k follows from the sizes
  int apart = 0, padded_to = 1;
  int padding = 0;  ///< of rows of D, in elements
  bool c = false, in_place = false;
  GroupedGemmConstraints constraints = {};
  std::uint64_t seed = 1;
  std::function<float(std::mt19937_64&)> values = normal, scale = scale_like;
};

inline std::string to_string(GroupedProblem const& p) {
  std::string s = fmt::format("{} by {}: {} x {} x {}, sizes", to_string(p.in),
                              static_cast<int>(p.grouping), p.m, p.n, p.k);
  for (int const size : p.sizes) s += fmt::format(" {}", size);
  return s;
}

struct GroupedResult {
  std::vector<std::uint8_t> d, a, b, c;
  std::vector<float> scale_a, scale_b;
  std::vector<std::uint8_t> block_scale_a, block_scale_b;
  std::vector<int> begins, ends;
  GroupedGemmArguments host;  ///< the arguments with pointers to the vectors here
};

namespace detail {

/// Fills rows or columns that are no group's with NaN.
inline std::vector<bool> of_groups(GroupedResult const& r, Grouping grouping, std::int64_t extent,
                                   int m) {
  std::vector<bool> inside(static_cast<std::size_t>(extent), grouping == Grouping::none);
  for (std::size_t g = 0; g < r.ends.size(); ++g) {
    std::int64_t const begin =
        grouping == Grouping::masked ? static_cast<std::int64_t>(g) * m : r.begins[g];
    std::int64_t const end = grouping == Grouping::masked ? begin + r.ends[g] : r.ends[g];
    for (std::int64_t i = begin; i < end; ++i) inside[static_cast<std::size_t>(i)] = true;
  }
  return inside;
}

/// Whether a group does not begin where the one before ends.
inline bool has_gaps(GroupedResult const& r) {
  for (std::size_t g = 0; g < r.begins.size(); ++g)
    if (r.begins[g] != (g == 0 ? 0 : r.ends[g - 1])) return true;
  return false;
}

/// From `least` on, `values` of them. As two elements of e2m1 any byte is two numbers.
inline std::vector<std::uint8_t> random_bytes(std::int64_t count, std::uint64_t seed, int least,
                                              unsigned values) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  for (auto& x : bytes) x = static_cast<std::uint8_t>(least + static_cast<int>(random() % values));
  return bytes;
}

/// Scales of so many matrices of (rows, k): about one, and none that is no number.
inline std::vector<std::uint8_t> random_block_scales(BlockScale const& how, std::int64_t matrices,
                                                     std::int64_t rows, std::int64_t k,
                                                     std::uint64_t seed) {
  if (how.block == 0) return std::vector<std::uint8_t>(16);  // buffers are not empty
  int const one = how.type == DType::ue8m0 ? 127 : 0x38;
  return random_bytes(matrices * block_scale_bytes(rows, k, how.block), seed, one - 4, 9);
}

inline void poison_row(std::vector<std::uint8_t>& bytes, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) bytes[static_cast<std::size_t>(first + i)] = 0xff;
}

/// NaN in the scales of blocks that have no column inside of a group. Those that a piece has behind
/// the tensor's last block must be numbers.
inline void poison_block_scales(std::vector<std::uint8_t>& scales, BlockScale const& how,
                                std::int64_t rows, std::int64_t k,
                                std::vector<bool> const& inside) {
  int const pieces = scale_pieces_k(static_cast<int>(k), how.block);
  std::uint8_t const nan = how.type == DType::ue8m0 ? 0xff : 0x7f;
  for (std::int64_t block = 0; block < std::int64_t{kScalePieceScales} * pieces; ++block) {
    std::int64_t const begin = block * how.block, end = std::min(begin + how.block, k);
    bool used = begin >= k;
    for (std::int64_t i = begin; i < end; ++i) used = used || inside[static_cast<std::size_t>(i)];
    for (std::int64_t row = 0; !used && row < rows; ++row)
      scales[static_cast<std::size_t>(block_scale_offset(row, block, pieces))] = nan;
  }
}

}  // namespace detail

/// The problem's arguments without pointers, and its groups.
inline GroupedResult groups_of(GroupedProblem const& p) {
  GroupedResult r;
  GroupedGemmArguments& g = r.host;
  int at = 0;
  // Columns of a group begin at multiples of 16 bytes, or with a piece of scales.
  int const line = 128 / bits(p.in), piece = kScalePieceScales * p.block_scale.block;
  int const unit = p.grouping == Grouping::k ? std::max({p.padded_to, line, piece}) : p.padded_to;
  for (int const size : p.sizes) {
    if (p.grouping == Grouping::none) break;
    if (p.grouping == Grouping::masked) {
      r.ends.push_back(size);
      continue;
    }
    at = (at + unit - 1) / unit * unit;
    r.begins.push_back(at);
    r.ends.push_back(at + size);
    at += size + p.apart;
  }
  int const whole = p.grouping == Grouping::k ? std::max(p.padded_to, packed(p.in)) : p.padded_to;
  at = std::max(p.grouping == Grouping::k ? whole : 1, (at + whole - 1) / whole * whole);

  bool const rows = p.grouping == Grouping::contiguous, columns = p.grouping == Grouping::k;
  g = {.in = p.in,
       .in_b = p.in_b,
       .out = p.out,
       .scales = p.scales,
       .grouping = p.grouping,
       .groups = p.grouping == Grouping::none ? 1 : static_cast<int>(p.sizes.size()),
       .m = rows ? at : p.m,
       .n = p.n,
       .k = columns ? at : p.k,
       .block_scale = p.block_scale};
  g.lda = g.ldb = (g.k + line - 1) / line * line;
  g.ldd = g.ldc = p.n + p.padding;
  g = with_defaults(g);
  return r;
}

/// Runs a problem by `launch(arguments)`.
template <class Launch>
GroupedResult run_by(Machine const& machine, GroupedProblem const& p, Launch launch) {
  GroupedResult r = groups_of(p);
  GroupedGemmArguments g = r.host;
  bool const by_k = p.grouping == Grouping::k, grouped = p.grouping != Grouping::none;
  std::int64_t const rows = rows_of_a(g), blocks = scale_blocks(g);
  std::int64_t const groups_b = by_k || !grouped ? 1 : g.groups, groups_d = by_k ? g.groups : 1;
  auto const in_bytes = [&](std::int64_t elements) { return elements * bits(g.in) / 8; };
  auto const operand = [&](DType type, std::int64_t elements, std::uint64_t seed) {
    if (bits(type) == 4) return detail::random_bytes(elements / 2, seed, 0, 256);
    return random_elements(type, elements, seed, p.values);
  };
  r.a = operand(g.in, *g.lda * rows, 5 * p.seed);
  r.b = operand(*g.in_b, *g.ldb * g.n * groups_b, 5 * p.seed + 1);
  bool const masked = p.grouping == Grouping::masked;
  r.block_scale_a =
      detail::random_block_scales(p.block_scale, masked ? g.groups : 1, g.m, g.k, 5 * p.seed + 4);
  r.block_scale_b = detail::random_block_scales(p.block_scale, groups_b, g.n, g.k, 5 * p.seed + 5);
  r.c = random_elements(*g.out, *g.ldc * (by_k ? g.m : rows) * groups_d, 5 * p.seed + 2, normal);
  std::mt19937_64 random(5 * p.seed + 3);
  bool const row_scales = g.scales == Scales::rows_by_rows;
  r.scale_a.resize(static_cast<std::size_t>(*g.scale_a_stride * blocks));
  r.scale_b.resize(static_cast<std::size_t>(row_scales ? *g.scale_b_stride * blocks * groups_b
                                                       : groups_b * ((g.n + 127) / 128) * blocks));
  for (float& x : r.scale_a) x = p.scale(random);
  for (float& x : r.scale_b) x = p.scale(random);
  // NaN in what is no group's, and beyond the rows of A and B.
  auto const inside = detail::of_groups(r, p.grouping, by_k ? g.k : rows, p.m);
  float const nan = std::nanf("");
  bool const packed_by_k = by_k && bits(g.in) < 8;  // any bits of which are numbers
  if (by_k && p.block_scale.block != 0) {
    detail::poison_block_scales(r.block_scale_a, p.block_scale, g.m, g.k, inside);
    detail::poison_block_scales(r.block_scale_b, p.block_scale, g.n, g.k, inside);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    bool const whole = by_k || inside[static_cast<std::size_t>(i)];
    detail::poison_row(r.a, in_bytes(i * *g.lda + (whole ? g.k : 0)),
                       in_bytes(*g.lda - (whole ? g.k : 0)));
    if (!whole)
      for (std::int64_t b = 0; b < blocks; ++b)
        r.scale_a[static_cast<std::size_t>(b * *g.scale_a_stride + i)] = nan;
    if (by_k && !packed_by_k)
      for (std::int64_t k = 0; k < g.k; ++k)
        if (!inside[static_cast<std::size_t>(k)])
          detail::poison_row(r.a, in_bytes(i * *g.lda + k), in_bytes(1));
  }
  for (std::int64_t i = 0; i < g.n * groups_b; ++i) {
    detail::poison_row(r.b, in_bytes(i * *g.ldb + g.k), in_bytes(*g.ldb - g.k));
    if (by_k && !packed_by_k)
      for (std::int64_t k = 0; k < g.k; ++k)
        if (!inside[static_cast<std::size_t>(k)])
          detail::poison_row(r.b, in_bytes(i * *g.ldb + k), in_bytes(1));
  }

  Buffer<std::uint8_t> const a(machine, r.a, "a"), b(machine, r.b, "b"), c(machine, r.c, "c"),
      block_scale_a(machine, r.block_scale_a, "scales of a"),
      block_scale_b(machine, r.block_scale_b, "scales of b");
  auto const some = [](auto values) {  // buffers are not empty
    if (values.empty()) values.resize(4);
    return values;
  };
  Buffer<float> const scale_a(machine, some(r.scale_a), "scale_a"),
      scale_b(machine, some(r.scale_b), "scale_b");
  Buffer<int> const begins(machine, some(r.begins), "begins"), ends(machine, some(r.ends), "ends");
  auto d = poisoned(machine, static_cast<std::int64_t>(r.c.size()), "d");
  if (p.in_place) d.upload(r.c);
  bool const scaled = g.scales != Scales::none;
  auto const point = [&](void const* at_a, void const* at_b, void const* at_c, float const* sa,
                         float const* sb, std::uint8_t const* blocks_a,
                         std::uint8_t const* blocks_b, int const* at_begins, int const* at_ends) {
    g.a = at_a, g.b = at_b;
    g.c = p.c ? at_c : nullptr;
    if (scaled) g.scale_a = sa, g.scale_b = sb;
    if (p.block_scale.block != 0) g.block_scale_a = blocks_a, g.block_scale_b = blocks_b;
    if (grouped) g.group_ends = at_ends;
    if (grouped && p.grouping != Grouping::masked && detail::has_gaps(r))
      g.group_begins = at_begins;
    g.d = d.data();
    return g;
  };
  launch(point(a.data(), b.data(), p.in_place ? d.data() : c.data(), scale_a.data(), scale_b.data(),
               block_scale_a.data(), block_scale_b.data(), begins.data(), ends.data()));
  machine.synchronize();
  r.d = d.download();
  r.host = point(r.a.data(), r.b.data(), r.c.data(), r.scale_a.data(), r.scale_b.data(),
                 r.block_scale_a.data(), r.block_scale_b.data(), r.begins.data(), r.ends.data());
  return r;
}

inline GroupedResult run(Machine const& machine, GroupedProblem const& p) {
  return run_by(machine, p, [&](GroupedGemmArguments const& g) {
    check(g, machine.compute_capability());
    grouped_gemm(machine, g, choose_grouped_gemm(g, machine.properties(), p.constraints));
  });
}

/// All rows of D, as reference::grouped_gemm numbers them.
inline std::vector<std::int64_t> rows_of(GroupedProblem const& p) {
  GroupedGemmArguments const g = groups_of(p).host;
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(rows_of_a(g) * (g.grouping == Grouping::k ? g.groups : 1)));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// The results as doubles, row by row.
inline std::vector<double> elements_of(GroupedResult const& r, std::size_t rows) {
  GroupedGemmArguments const& g = r.host;
  std::vector<double> d;
  for (std::size_t row = 0; row < rows; ++row) {
    auto const i = static_cast<std::int64_t>(row);
    std::int64_t const first =
        g.grouping == Grouping::k ? i / g.m * *g.d_group_stride + i % g.m * *g.ldd : i * *g.ldd;
    for (std::int64_t j = 0; j < g.n; ++j)
      d.push_back(reference::element(r.d.data(), *g.out, first + j));
  }
  return d;
}

/// Holds every element of D that is a group's against the exact ones, and every other byte against
/// the poison.
inline void expect_near(GroupedProblem const& p, GroupedResult const& r,
                        reference::Values const& exact) {
  GroupedGemmArguments const& g = r.host;
  auto const n = static_cast<std::size_t>(g.n), width = static_cast<std::size_t>(bits(*g.out) / 8);
  std::vector<double> const d = elements_of(r, exact.value.size() / n);
  ASSERT_EQ(d.size(), exact.value.size());
  std::vector<bool> belongs(r.d.size());
  std::vector<double> results;
  reference::Values expected;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (std::isinf(exact.bound[i])) continue;
    results.push_back(d[i]);
    expected.value.push_back(exact.value[i]);
    expected.bound.push_back(exact.bound[i]);
    auto const row = static_cast<std::int64_t>(i / n);
    std::int64_t const first = g.grouping == Grouping::k
                                   ? row / g.m * *g.d_group_stride + row % g.m * *g.ldd
                                   : row * *g.ldd;
    for (std::size_t byte = 0; byte < width; ++byte)
      belongs[(static_cast<std::size_t>(first) + i % n) * width + byte] = true;
  }
  auto const compared = reference::compare(results, expected, reference::largest_finite(*g.out));
  EXPECT_LE(compared.max_ratio, 1) << to_string(p) << ": element " << compared.worst << " is "
                                   << compared.worst_result << ", error " << compared.max_error;
  std::size_t touched = 0;
  for (std::size_t i = 0; i < r.d.size(); ++i)
    touched += !belongs[i] && r.d[i] != (p.in_place ? r.c[i] : kPoison);
  EXPECT_EQ(touched, 0u) << to_string(p) << ": bytes that are no group's were written";
}

/// Runs a problem and holds its result against the reference.
inline GroupedResult expect_right(Machine const& machine, GroupedProblem const& p) {
  GroupedResult const r = run(machine, p);
  expect_near(p, r, reference::grouped_gemm(r.host, rows_of(p)));
  return r;
}

}  // namespace tegula
