#include "tegula/device/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "representative.hpp"

namespace tegula {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The cheapest of the configurations that `admits` accepts, the first of equals.
template <class Config, class Admits, class Cost>
std::optional<int> cheapest(std::span<Config const> table, Admits&& admits, Cost&& cost) {
  std::optional<int> best;
  double best_cost = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!admits(table[i])) continue;
    double const c = cost(table[i]);
    if (!best || c < best_cost) best = static_cast<int>(i), best_cost = c;
  }
  return best;
}

/// Multiply-adds are this many times cheaper than the elements that must be copied to a CTA's shared memory
/// for them. Tuned for speed: a wrong value chooses a slower configuration, never a wrong result.
constexpr double kCopyCost = 64;

/// Time of all CTAs: rounds over the multiprocessors, each as long as one CTA.
double rounds(std::int64_t ctas, int multiprocessors) {
  return static_cast<double>(ceil_div(ctas, multiprocessors));
}

char const* text(Major major) { return major == Major::k ? "k" : "mn"; }
char const* text(Exponential exponential) {
  return exponential == Exponential::polynomial ? "polynomial" : "ex2_approx";
}

}  // namespace

std::string to_string(AttentionConfig const& c) {
  return fmt::format("attention_sm80 {} d{} {}x{} {} warps {} stages{} {}", to_string(c.dtype), c.head_dim,
                     c.block_m, c.block_n, c.warps, c.stages, c.causal ? " causal" : "", text(c.exponential));
}

std::string to_string(GemmConfig const& c) {
  return fmt::format("gemm_sm80 {}->{} A:{} B:{} {}x{}x{} {}x{} warps {} stages {}-byte", to_string(c.in),
                     to_string(c.out), text(c.a_major), text(c.b_major), c.block_m, c.block_n, c.block_k,
                     c.warps_m, c.warps_n, c.stages, c.vector_bytes);
}

void check(DeviceProperties const& device) {
  if (device.multiprocessors < 1)
    throw argument_error(
        fmt::format("the device has {} multiprocessors; it must have at least 1.", device.multiprocessors));
}

int vector_bytes(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  int const element = bits(g.in) / 8;
  auto const aligned = [&](void const* pointer, std::int64_t ld, std::int64_t contiguous,
                           std::int64_t batch_stride) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld * element % 16 == 0 &&
           contiguous * element % 16 == 0 && (g.batch == 1 || batch_stride * element % 16 == 0);
  };
  return aligned(g.a, *g.lda, g.a_major == Major::k ? g.k : g.m, *g.a_batch_stride) &&
                 aligned(g.b, *g.ldb, g.b_major == Major::k ? g.k : g.n, *g.b_batch_stride)
             ? 16
             : element;
}

int attention_heads_per_l2_group(AttentionArguments const& arguments) {
  AttentionArguments const a = with_defaults(arguments);
  if (!a.causal) return 1;
  // Tuned for speed on an H100, over 512 to 16384 keys and head dims 64 and 128: about a tenth faster than
  // one head at a time from 4096 keys on, less below. Larger groups than its L2 cache of 50 MB still gain,
  // for at any time their CTAs read only part of the keys.
  constexpr std::int64_t served = std::int64_t{64} << 20;
  std::int64_t const keys_and_values = 2 * *a.seq_k * a.head_dim * (bits(a.dtype) / 8);
  std::int64_t const heads = served / keys_and_values * (a.heads / *a.kv_heads);
  return static_cast<int>(std::clamp<std::int64_t>(heads, 1, a.batch * a.heads));
}

int select(AttentionArguments const& arguments, std::span<AttentionConfig const> table,
           DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  check(device);
  auto const admits = [&](AttentionConfig const& c) {
    return c.dtype == a.dtype && c.head_dim == a.head_dim && c.causal == a.causal &&
           c.exponential == a.exponential && static_cast<std::size_t>(shared_bytes(c)) <= device.shared_bytes;
  };
  auto const cost = [&](AttentionConfig const& c) {
    double const keys = static_cast<double>(ceil_div(*a.seq_k, c.block_n) * c.block_n);
    double const cta =
        static_cast<double>(c.head_dim) * (keys * (c.block_m + kCopyCost) + kCopyCost * c.block_m);
    return rounds(ceil_div(a.seq_q, c.block_m) * a.heads * a.batch, device.multiprocessors) * cta;
  };
  if (auto const best = cheapest(table, admits, cost)) return *best;
  throw argument_error(fmt::format(
      "attention: no configuration of this build computes {} with head_dim {}{} and {} exponentials.{}",
      to_string(a.dtype), a.head_dim, a.causal ? ", causal," : "", text(a.exponential),
      missing_configurations_note()));
}

}  // namespace tegula
