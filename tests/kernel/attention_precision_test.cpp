// FlashAttention's own criterion: O errs at most twice as much as the same computation done step by
// step, each step rounded to the type of the tensors, as PyTorch does it. Random problems over all
// features, at several seeds.

#include <cmath>

#include "serving_problem.hpp"
#include "tegula/numeric/dtype.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

double rounded(DType type, double x) {
  auto const narrow = static_cast<float>(x);
  switch (type) {
    case DType::f16:
      return to_float(to_half(narrow));
    case DType::bf16:
      return to_float(to_bfloat16(narrow));
    default:
      return to_float(to_float_e4m3(narrow));
  }
}

/// What one row of O is computed from: its query, the keys and values of its sequence, and of these
/// the ones that it sees.
struct Row {
  std::vector<double> q, k, v;
  int begin = 0, end = 0;
  double scale = 1, values = 1;  ///< of scores; and v_descale
};

/// A row as PyTorch computes it: scores, capped scores, P and O are each rounded. Of e4m3 scores
/// are f32, and P fills its range as in the kernel: 256 is its largest number.
std::vector<double> by_steps(AttentionArguments const& a, Row const& row, double const* sink) {
  bool const fp8 = a.dtype == DType::e4m3;
  auto const step = [&](double x) { return fp8 ? x : rounded(a.dtype, x); };
  auto const dim = static_cast<int>(a.head_dim), dim_v = static_cast<int>(*a.head_dim_v);
  std::vector<double> p;
  double largest = sink != nullptr ? *sink : -HUGE_VAL, sum = 0;
  for (int j = row.begin; j < row.end; ++j) {
    double s = 0;
    for (int d = 0; d < dim; ++d)
      s += step(row.q[static_cast<std::size_t>(d)] * row.scale) *
           row.k[static_cast<std::size_t>(j * dim + d)];
    s = step(s);
    if (a.softcap != 0) s = step(step(std::tanh(step(s / a.softcap))) * a.softcap);
    p.push_back(s);
    largest = std::max(largest, s);
  }
  for (double& x : p) sum += x = std::exp(x - largest);
  if (sink != nullptr) sum += std::exp(*sink - largest);
  std::vector<double> o(static_cast<std::size_t>(dim_v));
  for (int d = 0; d < dim_v && !p.empty(); ++d) {
    double total = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      double const weight =
          fp8 ? rounded(a.dtype, 256 * p[j]) / 256 / sum : rounded(a.dtype, p[j] / sum);
      std::size_t const key = static_cast<std::size_t>(row.begin) + j;
      total += weight * row.v[key * static_cast<std::size_t>(dim_v) + static_cast<std::size_t>(d)];
    }
    o[static_cast<std::size_t>(d)] = rounded(*a.out, total * row.values);
  }
  return o;
}

/// The largest errors of what a kernel made of some rows, and of the same by steps.
struct Errors {
  double ours = 0, by_steps = 0;

  void add(double exact, double own, double stepped) {
    ours = std::max(ours, std::abs(own - exact));
    by_steps = std::max(by_steps, std::abs(stepped - exact));
  }
};

/// The keys that query i of `queries` sees, of `keys`.
void see(Row& row, AttentionArguments const& a, int i, int queries, int keys) {
  int const place = i + keys - queries;
  auto const within = [&](std::int64_t x) {
    return static_cast<int>(std::clamp<std::int64_t>(x, 0, keys));
  };
  row.begin = a.window_left ? within(place - *a.window_left) : 0;
  row.end = a.causal ? within(place + 1) : keys;
  if (a.window_right) row.end = std::min(row.end, within(place + 1 + *a.window_right));
  row.end = std::max(row.begin, row.end);
}

void append(std::vector<double>& to, std::vector<std::uint8_t> const& from, DType type,
            std::int64_t at, std::int64_t count) {
  for (std::int64_t d = 0; d < count; ++d)
    to.push_back(reference::element(from.data(), type, at + d));
}

/// The factor of a batch and head of keys; 1 where there is none.
double factor_of(std::vector<float> const& factors, DescaleStrides const& s, int batch, int head) {
  return factors.empty() ? 1 : factors[static_cast<std::size_t>(batch * s.batch + head * s.head)];
}

Errors errors_of(ServingProblem const& p) {
  ServingTables const tables(p);
  ServingResult const r = run(test_machine(), p, tables);
  AttentionArguments const& a = r.host;
  std::vector<std::uint8_t> const& values = p.one_tensor() ? r.k_after : r.v_after;
  Errors errors;
  for (int b = 0; b < p.batch(); ++b) {
    int const queries = p.packed_q ? p.queries[static_cast<std::size_t>(b)] : p.most_queries();
    int const keys = std::min(p.all_keys(b), p.most_keys());
    for (int h = 0; h < p.heads; ++h) {
      int const kv_head = h / (p.heads / p.kv_heads);
      Row row;
      for (int j = 0; j < keys; ++j) {
        auto const place = [&](TokenStrides const& s) {
          return place_of_key(p, tables, a, s, b, j) + kv_head * s.head;
        };
        append(row.k, r.k_after, p.dtype, place(*a.k_stride), p.head_dim);
        append(row.v, values, p.dtype, place(*a.v_stride), p.dim_v());
      }
      row.scale = *a.scale * factor_of(p.q_descale, p.descale_stride(), b, kv_head) *
                  factor_of(p.k_descale, p.descale_stride(), b, kv_head);
      row.values = factor_of(p.v_descale, p.descale_stride(), b, kv_head);
      double const sink = p.sink.empty() ? 0 : p.sink[static_cast<std::size_t>(h)];
      for (int i = 0; i < queries; ++i) {
        std::int64_t const token = p.packed_q ? tables.cu_seqlens_q[static_cast<std::size_t>(b)] + i
                                              : std::int64_t{b} * query_extents(a).seq + i;
        row.q.clear();
        append(row.q, r.q, p.dtype, (token * p.heads + h) * p.head_dim, p.head_dim);
        see(row, a, i, queries, keys);
        auto const stepped = by_steps(a, row, p.sink.empty() ? nullptr : &sink);
        auto const exact =
            reference::attention(a, {(std::int64_t{b} * p.heads + h) * a.seq_q + i}).o.value;
        for (std::size_t d = 0; d < stepped.size(); ++d)
          errors.add(
              exact[d],
              reference::element(r.o.data(), p.out_type(),
                                 (token * p.heads + h) * p.dim_v() + static_cast<std::int64_t>(d)),
              stepped[d]);
      }
    }
  }
  return errors;
}

/// A problem drawn by a seed: every other one of one length for all sequences.
ServingProblem drawn(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto const one_of = [&](auto const&... choices) {
    std::common_type_t<std::decay_t<decltype(choices)>...> const all[] = {choices...};
    return all[random() % std::size(all)];
  };
  auto const up_to = [&](int most) { return 1 + static_cast<int>(random() % std::uint64_t(most)); };
  ServingProblem p{.dtype = one_of(DType::bf16, DType::f16, DType::e4m3)};
  bool const e4m3 = p.dtype == DType::e4m3;
  p.head_dim = one_of(32, 64, 80, 128);
  p.kv_heads = up_to(2), p.heads = p.kv_heads * one_of(1, 3, 4);
  p.one_length = seed % 2 == 0;
  // f16 in a form that every build has.
  if (p.dtype == DType::f16) p.one_length = true, p.head_dim = std::min(p.head_dim, 64);
  int const batch = up_to(2), queries = one_of(1, 2, up_to(130));
  for (int b = 0; b < batch; ++b) {
    p.queries.resize(static_cast<std::size_t>(batch), queries);
    p.keys.resize(static_cast<std::size_t>(batch));
    p.keys[static_cast<std::size_t>(b)] = p.one_length && b > 0 ? p.keys[0] : up_to(300);
  }
  if (!p.one_length) {
    p.packed_q = one_of(false, true);
    if (p.packed_q)
      for (int& count : p.queries) count = up_to(queries);
    p.page_size = one_of(0, 16, 64);
    if (one_of(false, true)) {
      p.appended.assign(static_cast<std::size_t>(batch), up_to(3));
      if (e4m3) p.new_dtype = one_of(DType::e4m3, DType::bf16);
    }
  }
  p.causal = one_of(false, true);
  if (one_of(false, true)) p.window_left = up_to(200);
  if (one_of(false, false, true)) p.softcap = 10;
  if (one_of(false, false, true)) p.sink.assign(static_cast<std::size_t>(p.heads), 0.5f);
  if (one_of(false, true) && p.dtype != DType::f16) p.splits = 2;  // f16: in no serving form
  if (e4m3) p.q_descale = {0.5f}, p.k_descale = {1.5f}, p.v_descale = {0.25f};
  p.seed = seed;
  return p;
}

TEST(AttentionPrecision, ErrsAtMostTwiceAsMuchAsPyTorchsSteps) {
  int const count = thorough_or(120, 24);
  double sum = 0;
  for (int seed = 1; seed <= count; ++seed) {
    ServingProblem const p = drawn(static_cast<std::uint64_t>(seed));
    Errors const errors = errors_of(p);
    SCOPED_TRACE(to_string(arguments_of(p, ServingTables(p))));
    EXPECT_LE(errors.ours, 2 * errors.by_steps) << "seed " << seed;
    sum += errors.by_steps;
  }
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace tegula
