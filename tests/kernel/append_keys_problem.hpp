#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tegula/device/append_keys.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"
#include "test_machine.hpp"

namespace tegula {

/// New keys for sequences in a cache that holds nothing else.
struct AppendKeysProblem {
  std::vector<std::int32_t> keys = {5, 0, 30};
  int appended = 3, kv_heads = 2, head_dim = 72, seq_k = 40;
};

struct AppendKeysResult {
  std::vector<std::uint8_t> k, k_new;
  std::vector<std::int32_t> keys;
  AppendKeysArguments host;
};

/// Runs a problem by `launch(arguments)`; V is as K.
template <class Launch>
AppendKeysResult run_by(Machine const& machine, AppendKeysProblem const& p, Launch launch) {
  auto const batch = static_cast<std::int64_t>(p.keys.size());
  AppendKeysResult r;
  r.k_new = random_elements(DType::bf16, batch * p.appended * p.kv_heads * p.head_dim, 1, normal);
  r.keys = p.keys;
  Buffer<std::uint8_t> const k_new(machine, r.k_new, "k_new"), v_new(machine, r.k_new, "v_new");
  Buffer<std::int32_t> const keys(machine, p.keys, "keys");
  std::int64_t const bytes = 2 * batch * p.seq_k * p.kv_heads * p.head_dim;
  auto const k = poisoned(machine, bytes, "k"), v = poisoned(machine, bytes, "v");
  AttentionArguments& a = r.host.attention;
  a = {.k = k.data(),
       .v = v.data(),
       .batch = batch,
       .heads = p.kv_heads,
       .seq_q = 1,
       .seq_k = p.seq_k,
       .head_dim = p.head_dim};
  a.seqused_k = keys.data(), a.seq_new = p.appended;
  a.k_new = k_new.data(), a.v_new = v_new.data();
  launch(r.host);
  machine.synchronize();
  r.k = k.download();
  EXPECT_EQ(v.download(), r.k);
  a = with_defaults(a);
  a.k = r.k.data(), a.k_new = r.k_new.data(), a.seqused_k = r.keys.data();
  return r;
}

/// Rows are (sequence, new key, head).
inline std::vector<std::int64_t> rows_of(AppendKeysProblem const& p) {
  auto const count = static_cast<std::int64_t>(p.keys.size()) * p.appended * p.kv_heads;
  return reference::some_rows(count, count);
}

/// Holds the new rows of the cache against what was given, and its other bytes against the poison.
inline void expect_near(AppendKeysProblem const& p, AppendKeysResult const& r,
                        reference::Values const& exact) {
  AttentionArguments const& a = r.host.attention;
  std::vector<double> rows;
  for (std::size_t b = 0; b < p.keys.size(); ++b)
    for (int i = 0; i < p.appended * p.kv_heads * p.head_dim; ++i)
      rows.push_back(reference::element(
          r.k.data(), DType::bf16,
          static_cast<std::int64_t>(b) * a.k_stride->batch + p.keys[b] * a.k_stride->seq + i));
  EXPECT_EQ(rows, exact.value);
  auto const untouched = std::count(r.k.begin(), r.k.end(), kPoison);
  EXPECT_GE(untouched, static_cast<std::ptrdiff_t>(r.k.size() - r.k_new.size()));
}

}  // namespace tegula
