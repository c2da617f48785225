#pragma once

#include <cstdint>

#include "collective_kernels.hpp"
#include "scalar_kernels.hpp"
#include "tegula/arch/bits.hpp"

/// Kernels as one ports them from CUDA, each short and whole: they stand on the collectives and the
/// scalar vocabulary.
namespace tegula::ported_kernels {

using instruction_kernels::Kernels;
using instruction_kernels::OneWarp;
using instruction_kernels::Words;
using scalar_kernels::small_number;

/// Sums from the first lane of each segment of Width lanes to each lane.
template <int Width> struct SegmentedScan : OneWarp {
  static constexpr int in_words = 32;
  static constexpr int out_words = 32;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    auto sum = ld_global<std::uint32_t>(p.in + lane_id());
    for (int distance = 1; distance < Width; distance *= 2) {
      auto const before = warp::shfl_up_in_range<Width>(sum, distance);
      if (before.in_range) sum += before.value;
    }
    st_global(p.out + lane_id(), sum);
  }
};

/// One pass of a radix sort: keys by their lowest 4 bits, equal ones in their order.
struct RadixPass : OneWarp {
  static constexpr int threads = 128, warps = threads / 32, digits = 16;
  struct SharedStorage {
    std::uint32_t counts[digits][warps];  // first how many, then where they begin
    template <class F> void name_buffers(F&& name) { name("counts", counts); }
  };
  static constexpr int in_words = threads;
  static constexpr int out_words = threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    auto const count = [&](int digit, int warp) {
      return shared_address(&smem.counts[digit][warp]);
    };
    if (t < digits * warps) st_shared(count(t / warps, t % warps), 0u);
    cta::sync();  // all counts are 0

    auto const key = ld_global<std::uint32_t>(p.in + t);
    int const digit = static_cast<int>(key % digits);
    std::uint32_t const same = warp::match_any(key % digits);
    int const rank = popc(same & lanemask_lt());
    // One lane of each digit counts for all.
    if (rank == 0) st_shared(count(digit, warp_id()), static_cast<std::uint32_t>(popc(same)));
    cta::sync();  // each warp's counts are there

    if (warp_id() == 0) {  // 64 counts, digit by digit: two to a lane
      std::uint32_t const a = ld_shared<std::uint32_t>(count(lane_id() / 2, lane_id() % 2 * 2));
      std::uint32_t const b = ld_shared<std::uint32_t>(count(lane_id() / 2, lane_id() % 2 * 2 + 1));
      std::uint32_t upto = a + b;
      for (int distance = 1; distance < 32; distance *= 2) {
        auto const before = warp::shfl_up_in_range(upto, distance);
        if (before.in_range) upto += before.value;
      }
      st_shared(count(lane_id() / 2, lane_id() % 2 * 2), upto - a - b);
      st_shared(count(lane_id() / 2, lane_id() % 2 * 2 + 1), upto - b);
    }
    cta::sync();  // where each warp's keys of each digit begin
    st_global(p.out + ld_shared<std::uint32_t>(count(digit, warp_id())) + rank, key);
  }
};

/// The odd words, in their order, a block of the CTA's size at a time. out: how many, then they.
struct Compact : OneWarp {
  static constexpr int threads = 96, warps = threads / 32, blocks = 5;
  struct SharedStorage {
    int of_warp[warps];
    template <class F> void name_buffers(F&& name) { name("of_warp", of_warp); }
  };
  static constexpr int in_words = threads * blocks;
  static constexpr int out_words = 1 + threads * blocks;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int kept = 0;
    for (int block = 0; block < blocks; ++block) {
      auto const value = ld_global<std::uint32_t>(p.in + threads * block + thread_idx());
      bool const keeps = (value & 1) != 0;
      std::uint32_t const votes = warp::ballot(keeps);
      if (lane_id() == 0) st_shared(shared_address(&smem.of_warp[warp_id()]), popc(votes));
      int const of_block = cta::sync_count(keeps);  // and the warps' counts are there
      int to = 1 + kept + popc(votes & lanemask_lt());
      for (int warp = 0; warp < warp_id(); ++warp)
        to += ld_shared<int>(shared_address(&smem.of_warp[warp]));
      if (keeps) st_global(p.out + to, value);
      kept += of_block;
      cta::sync();  // nobody reads the counts that the next block overwrites
    }
    if (thread_idx() == 0) st_global(p.out, static_cast<std::uint32_t>(kept));
  }
};

/// (x - mean) / sqrt(variance + 1e-5) * gamma + beta of rows of 256, a row for each CTA of two
/// warps. in: the rows, gamma, beta, all small numbers.
struct LayerNorm : OneWarp {
  static constexpr int threads = 64, rows = 3, width = 256, each = width / threads;
  static constexpr Dim3 grid() { return {rows, 1, 1}; }
  struct SharedStorage {
    float sums[2][2];
    template <class F> void name_buffers(F&& name) { name("sums", sums); }
  };
  static constexpr int in_words = (rows + 2) * width;
  static constexpr int out_words = rows * width;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const row = block_idx().x;
    auto const load = [&](int r, int i) {
      return small_number(ld_global<std::uint32_t>(p.in + width * r + threads * i + thread_idx()));
    };
    float x[each];
    float sum = 0;
    for (int i = 0; i < each; ++i) {
      x[i] = load(row, i);
      sum = add_rn(sum, x[i]);
    }
    float const mean = mul_rn(total(sum, smem, 0), 1.0f / width);
    float squares = 0;
    for (int i = 0; i < each; ++i) {
      x[i] = sub_rn(x[i], mean);
      squares = fma_rn(x[i], x[i], squares);
    }
    float const variance = mul_rn(total(squares, smem, 1), 1.0f / width);
    float const scale = rcp_rn(sqrt_rn(add_rn(variance, 1e-5f)));
    for (int i = 0; i < each; ++i) {
      st_global(p.out + width * row + threads * i + thread_idx(),
                fma_rn(mul_rn(x[i], scale), load(rows, i), load(rows + 1, i)));
    }
  }

 private:
  /// The sum over the CTA's threads, the same in each.
  TEGULA_DEVICE static float total(float sum, SharedStorage& smem, int which) {
    for (int distance = 16; distance > 0; distance /= 2)
      sum = add_rn(sum, warp::shfl_xor(sum, distance));
    if (lane_id() == 0) st_shared(shared_address(&smem.sums[which][warp_id()]), sum);
    cta::sync();  // both warps' sums are there
    return add_rn(ld_shared<float>(shared_address(&smem.sums[which][0])),
                  ld_shared<float>(shared_address(&smem.sums[which][1])));
  }
};

/// Rotary embedding of rows of 64 numbers at positions of up to a million: number i and i + 32 turn
/// by position / 10000^(i / 32). in: a position, then its row. A warp has a row.
struct Rope : OneWarp {
  static constexpr int threads = 128, rows = threads / 32, width = 64;
  static constexpr int in_words = rows * (1 + width);
  static constexpr int out_words = rows * width;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const i = lane_id();
    std::uint32_t const* const in = p.in + (1 + width) * warp_id();
    auto const position = static_cast<float>(ld_global<std::uint32_t>(in) % 1000000);
    // 10000^(-i / 32); of the factor's error the angle has at most 2^-22 of itself.
    float const frequency = exp_polynomial(mul_rn(static_cast<float>(i), -0.287823141f));
    SinCos const turn = sin_cos_polynomial(mul_rn(position, frequency));
    float const x = small_number(ld_global<std::uint32_t>(in + 1 + i));
    float const y = small_number(ld_global<std::uint32_t>(in + 1 + width / 2 + i));
    float* const out = reinterpret_cast<float*>(p.out) + width * warp_id();
    st_global(out + i, fma_rn(x, turn.cos, -mul_rn(y, turn.sin)));
    st_global(out + width / 2 + i, fma_rn(x, turn.sin, mul_rn(y, turn.cos)));
  }
};

/// x/2 (1 + erf(x / sqrt 2)), of a small number each.
struct GeluByErf : scalar_kernels::PerThread<1, 1> {
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    float const x = small_number(ld_global<std::uint32_t>(p.in + thread_idx())) * 0.25f;
    float const half = mul_rn(0.5f, x);
    st_global(p.out + thread_idx(), fma_rn(half, erf_polynomial(mul_rn(x, 0.707106769f)), half));
  }
};

/// All kernels of this file.
using AllKernels = Kernels<SegmentedScan<4>, SegmentedScan<16>, SegmentedScan<32>, RadixPass,
                           Compact, LayerNorm, Rope, GeluByErf>;

}  // namespace tegula::ported_kernels
