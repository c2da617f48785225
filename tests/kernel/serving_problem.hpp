#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "attention_problem.hpp"
#include "tegula/numeric/float8.hpp"

namespace tegula {

/// Attention of sequences that have queries and keys of their own numbers. All memory of q, k and v
/// that belongs to no sequence holds NaN.
struct ServingProblem {
  DType dtype = DType::bf16;
  std::optional<DType> out = {};        ///< of O; none: default_output(dtype)
  std::optional<DType> new_dtype = {};  ///< of new keys; none: dtype
  int head_dim = 64;
  int head_dim_v = 0;  ///< 0: head_dim
  int heads = 1, kv_heads = 1;
  std::vector<int> queries = {1}, keys = {1};  ///< of each sequence
  bool packed_q = false;                       ///< by cu_seqlens_q; else all have queries[0]
  bool packed_k = false;                       ///< by cu_seqlens_k; else by seqused_k, ...
  bool one_length = false;                     ///< ... or all have keys[0]
  std::vector<int> appended = {};              ///< new keys of each, behind `keys` (not packed_k)
  bool packed_new = false;                     ///< by cu_seqlens_new; else all have appended[0]
  int page_size = 0;                           ///< 0: not in pages
  bool causal = false;
  std::optional<std::int64_t> window_left = {}, window_right = {};
  float softcap = 0;
  std::vector<float> sink = {};  ///< one for each head, or none
  /// Factors of e4m3: one for each sequence and head of keys, or one for a tensor, or none.
  std::vector<float> q_descale = {}, k_descale = {}, v_descale = {};
  std::optional<std::int64_t> splits = {};
  int spare_keys = 0;  ///< by which seq_k is more than any sequence has, or less
  std::uint64_t seed = 1;

  DType out_type() const { return out.value_or(default_output(dtype)); }
  DType new_type() const { return new_dtype.value_or(dtype); }
  /// Of the factors, of which every tensor that has any has as many.
  DescaleStrides descale_stride() const {
    for (auto const* factors : {&q_descale, &k_descale, &v_descale})
      if (factors->size() == 1) return {0, 0};
    return {kv_heads, 1};
  }
  int dim_v() const { return head_dim_v == 0 ? head_dim : head_dim_v; }
  bool one_tensor() const { return head_dim > 256; }  ///< V is the first columns of K
  int new_keys(int b) const { return appended.empty() ? 0 : appended[static_cast<std::size_t>(b)]; }
  int all_keys(int b) const { return keys[static_cast<std::size_t>(b)] + new_keys(b); }
  int batch() const { return static_cast<int>(keys.size()); }
  int most_queries() const {
    return std::max(1, *std::max_element(queries.begin(), queries.end()));
  }
  int most_keys() const {
    int most = 1;
    for (int b = 0; b < batch(); ++b) most = std::max(most, all_keys(b));
    return most + spare_keys;
  }
};

/// A problem's lengths and pages, as the arguments have them.
struct ServingTables {
  std::vector<std::int32_t> cu_seqlens_q, cu_seqlens_k, cu_seqlens_new, seqused_k, page_table;
  int pages = 0;
  std::vector<std::int32_t> uploaded_table;  ///< in the place of page_table, where there is one

  explicit ServingTables(ServingProblem const& p) {
    auto const cumulative = [](std::vector<int> const& lengths) {
      std::vector<std::int32_t> sums = {0};
      for (int const length : lengths) sums.push_back(sums.back() + length);
      return sums;
    };
    if (p.packed_q) cu_seqlens_q = cumulative(p.queries);
    if (p.packed_k) cu_seqlens_k = cumulative(p.keys);
    if (p.packed_new) cu_seqlens_new = cumulative(p.appended);
    if (!p.packed_k && !p.one_length) seqused_k.assign(p.keys.begin(), p.keys.end());
    if (p.page_size == 0) return;
    int const columns = (p.most_keys() + p.page_size - 1) / p.page_size;
    pages = columns * p.batch() + 3;  // three are nobody's
    page_table.resize(static_cast<std::size_t>(pages));
    std::iota(page_table.begin(), page_table.end(), 0);
    std::mt19937_64 random(p.seed);
    std::shuffle(page_table.begin(), page_table.end(), random);
    page_table.resize(static_cast<std::size_t>(columns * p.batch()));
    for (int b = 0; b < p.batch(); ++b) {  // behind a sequence's last page stands none
      int const used = (p.all_keys(b) + p.page_size - 1) / p.page_size;
      for (int i = used; i < columns; ++i)
        page_table[static_cast<std::size_t>(b * columns + i)] = -7;
    }
  }
};

/// The same arguments but for their pointers.
inline AttentionArguments arguments_of(ServingProblem const& p, ServingTables const& tables) {
  AttentionArguments a{.dtype = p.dtype,
                       .out = p.out,
                       .batch = p.batch(),
                       .heads = p.heads,
                       .kv_heads = p.kv_heads,
                       .seq_q = p.most_queries(),
                       .seq_k = p.most_keys(),
                       .head_dim = p.head_dim,
                       .head_dim_v = p.dim_v(),
                       .causal = p.causal,
                       .window_left = p.window_left,
                       .window_right = p.window_right,
                       .softcap = p.softcap};
  a.sink = p.sink.empty() ? nullptr : p.sink.data();
  a.splits = p.splits;
  auto const data = [](std::vector<std::int32_t> const& v) {
    return v.empty() ? nullptr : v.data();
  };
  a.cu_seqlens_q = data(tables.cu_seqlens_q), a.cu_seqlens_k = data(tables.cu_seqlens_k);
  a.seqused_k = data(tables.seqused_k), a.page_table = data(tables.page_table);
  if (p.packed_q) a.total_q = tables.cu_seqlens_q.back() + 2;  // two tokens are nobody's
  if (p.packed_k) a.total_k = tables.cu_seqlens_k.back() + 2;
  if (p.page_size != 0) a.pages = tables.pages, a.page_size = p.page_size;
  if (p.one_tensor()) a.v_stride = a.k_stride;
  if (!p.appended.empty()) a.seq_new = *std::max_element(p.appended.begin(), p.appended.end());
  a.cu_seqlens_new = data(tables.cu_seqlens_new);
  a.new_dtype = p.new_dtype;
  a.descale_stride = p.descale_stride();
  auto const factors = [](std::vector<float> const& v) { return v.empty() ? nullptr : v.data(); };
  a.q_descale = factors(p.q_descale), a.k_descale = factors(p.k_descale);
  a.v_descale = factors(p.v_descale);
  if (p.packed_new) a.total_new = tables.cu_seqlens_new.back() + 2;
  return with_defaults(a);
}

/// Random elements where a sequence has tokens, NaN elsewhere. `offset` says where token i of
/// sequence b lies, in elements.
template <class Offset>
std::vector<std::uint8_t> sequences_of(DType type, std::int64_t elements,
                                       std::vector<int> const& lengths, int row, std::uint64_t seed,
                                       Offset offset) {
  auto bytes = random_elements(type, elements, seed, [](auto&) { return __builtin_nanf(""); });
  std::uint64_t number = 0;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    for (int i = 0; i < lengths[b]; ++i) {
      auto const values = random_elements(type, row, 1000003 * seed + number++, normal);
      auto const at = static_cast<std::size_t>(offset(static_cast<int>(b), i) * (bits(type) / 8));
      std::copy(values.begin(), values.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return bytes;
}

struct ServingResult {
  std::vector<std::uint8_t> o;
  std::vector<float> lse;
  int parts = 0;  ///< of the most keys, by what the plan says
  std::vector<std::uint8_t> q, k, v, k_new, v_new;
  std::vector<std::uint8_t> k_after, v_after;  ///< what k and v are then
  AttentionArguments host;                     ///< with pointers to memory here
};

/// Where token j of sequence b lies in k or v, but for its head.
inline std::int64_t place_of_key(ServingProblem const& p, ServingTables const& tables,
                                 AttentionArguments const& a, TokenStrides const& s, int b, int j) {
  if (p.page_size != 0) {
    auto const entry = static_cast<std::size_t>(b * *a.page_table_stride + j / p.page_size);
    return tables.page_table[entry] * s.batch + j % p.page_size * s.seq;
  }
  return p.packed_k ? (tables.cu_seqlens_k[static_cast<std::size_t>(b)] + j) * s.seq
                    : b * s.batch + j * s.seq;
}
/// And new key i of it in k_new or v_new.
inline std::int64_t place_of_new_key(ServingProblem const& p, ServingTables const& tables,
                                     TokenStrides const& s, int b, int i) {
  return p.packed_new ? (tables.cu_seqlens_new[static_cast<std::size_t>(b)] + i) * s.seq
                      : b * s.batch + i * s.seq;
}

/// Runs a problem by the configuration that is chosen for it, or one asked for.
inline ServingResult run(Machine const& machine, ServingProblem const& p,
                         ServingTables const& tables, std::optional<int> configuration = {}) {
  ServingResult r;
  AttentionArguments a = arguments_of(p, tables);
  r.host = a;
  TokenExtents const queries = query_extents(a), keys = key_extents(a);
  auto const query = [&](int b, int i) {
    return p.packed_q ? (tables.cu_seqlens_q[static_cast<std::size_t>(b)] + i) * a.q_stride->seq
                      : b * a.q_stride->batch + i * a.q_stride->seq;
  };
  auto const key = [&](TokenStrides const& s) {
    return [&, s](int b, int j) { return place_of_key(p, tables, a, s, b, j); };
  };
  std::int64_t const tokens_q = queries.batch * queries.seq, tokens_k = keys.batch * keys.seq;
  std::vector<int> const all_queries =
      p.packed_q ? p.queries
                 : std::vector<int>(static_cast<std::size_t>(p.batch()), p.most_queries());
  r.q = sequences_of(p.dtype, tokens_q * p.heads * p.head_dim, all_queries, p.heads * p.head_dim,
                     3 * p.seed, query);
  r.k = sequences_of(p.dtype, tokens_k * p.kv_heads * p.head_dim, p.keys, p.kv_heads * p.head_dim,
                     3 * p.seed + 1, key(*a.k_stride));
  if (!p.one_tensor())
    r.v = sequences_of(p.dtype, tokens_k * p.kv_heads * p.dim_v(), p.keys, p.kv_heads * p.dim_v(),
                       3 * p.seed + 2, key(*a.v_stride));
  auto const new_key = [&](TokenStrides const& s) {
    return [&, s](int b, int i) { return place_of_new_key(p, tables, s, b, i); };
  };
  TokenExtents const new_keys = new_key_extents(a);
  auto const new_rows = [&](TokenStrides const& s, int dim, std::uint64_t seed) {
    return sequences_of(p.new_type(), new_keys.batch * new_keys.seq * p.kv_heads * dim, p.appended,
                        p.kv_heads * dim, seed, new_key(s));
  };
  r.k_new = new_rows(*a.k_new_stride, p.head_dim, 5 * p.seed + 3);
  if (!p.one_tensor()) r.v_new = new_rows(*a.v_new_stride, p.dim_v(), 5 * p.seed + 4);
  Buffer<std::uint8_t> const q(machine, r.q, "q"), k(machine, r.k, "k"), v(machine, r.v, "v"),
      k_new(machine, r.k_new, "k_new"), v_new(machine, r.v_new, "v_new");
  Buffer<std::int32_t> const cu_q(machine, tables.cu_seqlens_q, "cu_seqlens_q"),
      cu_k(machine, tables.cu_seqlens_k, "cu_seqlens_k"),
      cu_new(machine, tables.cu_seqlens_new, "cu_seqlens_new"),
      used(machine, tables.seqused_k, "seqused_k"),
      pages(machine, tables.uploaded_table.empty() ? tables.page_table : tables.uploaded_table,
            "page_table");
  Buffer<float> const sink(machine, p.sink, "sink"), q_descale(machine, p.q_descale, "q_descale"),
      k_descale(machine, p.k_descale, "k_descale"), v_descale(machine, p.v_descale, "v_descale");
  auto const o = poisoned(machine, tokens_q * p.heads * p.dim_v() * (bits(p.out_type()) / 8), "o");
  Buffer<float> lse(machine, tokens_q * p.heads, "lse");
  lse.fill(kPoison);
  a.q = q.data(), a.k = k.data(), a.o = o.data(), a.lse = lse.data();
  a.v = p.one_tensor() ? a.k : v.data();
  a.k_new = r.k_new.empty() ? nullptr : k_new.data();
  a.v_new = r.v_new.empty() ? nullptr : v_new.data();
  a.sink = p.sink.empty() ? nullptr : sink.data();
  a.q_descale = p.q_descale.empty() ? nullptr : q_descale.data();
  a.k_descale = p.k_descale.empty() ? nullptr : k_descale.data();
  a.v_descale = p.v_descale.empty() ? nullptr : v_descale.data();
  auto const there = [](Buffer<std::int32_t> const& b) {
    return b.size() == 0 ? nullptr : b.data();
  };
  a.cu_seqlens_q = there(cu_q), a.cu_seqlens_k = there(cu_k);
  a.seqused_k = there(used), a.page_table = there(pages), a.cu_seqlens_new = there(cu_new);
  FamilyId const family =
      machine.compute_capability() == 100 ? FamilyId(attention_sm100) : FamilyId(attention_sm90);
  AttentionConstraints const wanted{family, configuration};
  Buffer<std::uint8_t> const workspace(
      machine, attention_workspace_bytes(a, machine.properties(), wanted), "workspace");
  a.workspace = workspace.size() == 0 ? nullptr : workspace.data();
  a.workspace_bytes = workspace.size();
  check(a, machine.compute_capability());
  attention(machine, a, choose_attention(a, machine.properties(), wanted));
  machine.synchronize();
  r.o = o.download(), r.lse = lse.download();
  r.k_after = k.download(), r.v_after = v.download();
  auto const data = [](std::vector<std::uint8_t> const& x) {
    return x.empty() ? nullptr : x.data();
  };
  r.host.q = r.q.data(), r.host.k = r.k.data(), r.host.k_new = data(r.k_new);
  r.host.v = p.one_tensor() ? r.host.k : r.v.data(), r.host.v_new = data(r.v_new);
  r.parts = workspace.size() > 0 ? 2 : 1;
  return r;
}

/// Elements of new rows as the cache has them: as they are, or divided by `factor` and rounded.
inline std::vector<std::uint8_t> in_cache(ServingProblem const& p, std::uint8_t const* rows,
                                          std::int64_t count, float factor) {
  std::int64_t const width = bits(p.new_type()) / 8;
  std::vector<std::uint8_t> elements(rows, rows + width * count);
  if (p.new_type() == p.dtype) return elements;
  for (std::int64_t i = 0; i < count; ++i) {
    auto const x = static_cast<float>(reference::element(rows, p.new_type(), i));
    elements[static_cast<std::size_t>(i)] = to_float_e4m3(x / factor).bits;
  }
  elements.resize(static_cast<std::size_t>(count));
  return elements;
}

/// Holds the cache against what it was, with the new rows in their places.
inline void expect_appended(ServingProblem const& p, ServingTables const& tables,
                            ServingResult const& r) {
  AttentionArguments const& a = r.host;
  auto const appended = [&](std::vector<std::uint8_t> cache, TokenStrides const& s,
                            std::vector<std::uint8_t> const& rows, TokenStrides const& new_s,
                            std::vector<float> const& factors, int dim) {
    std::int64_t const width = bits(p.dtype) / 8, new_width = bits(p.new_type()) / 8;
    for (int b = 0; b < p.batch() && !rows.empty(); ++b)
      for (int i = 0; i < p.new_keys(b); ++i) {
        int const place = p.keys[static_cast<std::size_t>(b)] + i;
        if (place >= p.most_keys()) continue;
        for (int h = 0; h < p.kv_heads; ++h) {
          auto const of =
              static_cast<std::size_t>(b * p.descale_stride().batch + h * p.descale_stride().head);
          std::int64_t const from = place_of_new_key(p, tables, new_s, b, i) + h * new_s.head,
                             to = place_of_key(p, tables, a, s, b, place) + h * s.head;
          auto const row = in_cache(p, rows.data() + new_width * from, dim,
                                    factors.empty() ? 1.0f : factors[of]);
          std::copy(row.begin(), row.end(), cache.begin() + width * to);
        }
      }
    return cache;
  };
  EXPECT_EQ(r.k_after,
            appended(r.k, *a.k_stride, r.k_new, *a.k_new_stride, p.k_descale, p.head_dim));
  EXPECT_EQ(r.v_after,
            appended(r.v, *a.v_stride, r.v_new, *a.v_new_stride, p.v_descale, p.dim_v()));
}

/// Runs it and holds every row of every sequence against float64, and all else that was given for
/// output against the poison.
inline ServingResult expect_correct(Machine const& machine, ServingProblem const& p,
                                    std::optional<int> configuration = {}) {
  ServingTables const tables(p);
  ServingResult r = run(machine, p, tables, configuration);
  expect_appended(p, tables, r);
  AttentionArguments const& a = r.host;
  std::vector<std::int64_t> rows;
  std::vector<double> o, lse;
  std::vector<bool> written(r.lse.size());
  std::int64_t const queries = query_extents(a).seq;
  for (int b = 0; b < p.batch(); ++b) {
    int const count = p.packed_q ? p.queries[static_cast<std::size_t>(b)] : p.most_queries();
    for (int h = 0; h < p.heads; ++h) {
      for (int i = 0; i < count; ++i) {
        rows.push_back((std::int64_t{b} * p.heads + h) * a.seq_q + i);
        std::int64_t const token = p.packed_q ? tables.cu_seqlens_q[static_cast<std::size_t>(b)] + i
                                              : std::int64_t{b} * queries + i;
        for (int d = 0; d < p.dim_v(); ++d)
          o.push_back(
              reference::element(r.o.data(), p.out_type(), (token * p.heads + h) * p.dim_v() + d));
        auto const at = static_cast<std::size_t>(
            p.packed_q ? h * queries + token : (std::int64_t{b} * p.heads + h) * queries + i);
        lse.push_back(r.lse[at]);
        written[at] = true;
      }
    }
  }
  auto const exact = reference::attention(a, rows);
  auto const of_o = reference::compare(o, exact.o, reference::largest_finite(p.out_type()));
  auto const of_lse = reference::compare(lse, exact.lse, reference::largest_finite(DType::f32));
  std::string const name = to_string(a);
  EXPECT_TRUE(of_o.within()) << name << ": element " << of_o.worst << " of O is "
                             << of_o.worst_result << ", not "
                             << exact.o.value[static_cast<std::size_t>(of_o.worst)] << ": "
                             << of_o.max_ratio << " times the bound";
  EXPECT_TRUE(of_lse.within()) << name << ": row " << of_lse.worst << "'s log-sum-exp is "
                               << of_lse.worst_result << ", not "
                               << exact.lse.value[static_cast<std::size_t>(of_lse.worst)] << ": "
                               << of_lse.max_ratio << " times the bound";
  std::uint32_t poison = 0;
  std::fill_n(reinterpret_cast<std::uint8_t*>(&poison), 4, kPoison);
  for (std::size_t i = 0; i < written.size(); ++i)
    if (!written[i]) {
      EXPECT_EQ(__builtin_bit_cast(std::uint32_t, r.lse[i]), poison) << name;
    }
  std::size_t const of_token =
      r.o.size() / static_cast<std::size_t>(query_extents(a).batch * queries);
  for (std::int64_t token = p.packed_q ? tables.cu_seqlens_q.back() : queries;
       p.packed_q && token < queries; ++token)
    for (std::size_t i = 0; i < of_token; ++i)
      EXPECT_EQ(r.o[static_cast<std::size_t>(token) * of_token + i], kPoison) << name;
  return r;
}

/// Sequences of their own lengths, over the edges of tiles, some without queries or keys; and one
/// behind two without queries, with a window. `like`: heads and types.
inline void expect_own_lengths_correct(Machine const& machine, ServingProblem const& like) {
  ServingProblem p = like;
  p.packed_q = true;
  p.queries = {1, 0, 130, 64, 300, 5}, p.keys = {300, 20, 131, 1, 257, 0};
  for (bool const causal : {false, true}) {
    for (bool const packed_k : {false, true}) {
      p.causal = causal, p.packed_k = packed_k;
      expect_correct(machine, p);
    }
  }
  p.queries = {0, 0, 300}, p.keys = {0, 5, 200}, p.window_left = 50;
  expect_correct(machine, p);
}

}  // namespace tegula
