#pragma once

#include <cstdint>

#include "instruction_kernels.hpp"

/// One tiny kernel for each collective that instruction_kernels.hpp has not: shuffles of a part of
/// a warp and of values that are no word, matches, reductions of bits, barriers that reduce.
namespace tegula::collective_kernels {

using instruction_kernels::Kernels;
using instruction_kernels::Nothing;
using instruction_kernels::OneWarp;
using instruction_kernels::Pair;
using instruction_kernels::Words;

/// The four shuffles of segments of Width lanes, with operands that differ by lane; what they say
/// of the lane they asked for; a pair of words and a half. in: 32 values, 32 operands. out, by
/// lane: idx, bfly, up, down, the three predicates as bits, the pair by bfly, the half by idx.
template <int Width> struct ShuffleWidths : OneWarp {
  static constexpr int in_words = 64;
  static constexpr int out_words = 32 * 8;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    auto const v = ld_global<std::uint32_t>(p.in + lane);
    auto const by = static_cast<int>(ld_global<std::uint32_t>(p.in + 32 + lane) % 64);
    std::uint32_t* const out = p.out + 8 * lane;
    st_global(out, warp::shfl<Width>(v, by));
    st_global(out + 1, warp::shfl_xor<Width>(v, by));
    st_global(out + 2, warp::shfl_up<Width>(v, by));
    st_global(out + 3, warp::shfl_down<Width>(v, by));
    auto const bfly = warp::shfl_xor_in_range<Width>(v, by);
    auto const up = warp::shfl_up_in_range<Width>(v, by);
    auto const down = warp::shfl_down_in_range<Width>(v, by);
    st_global(out + 4, (bfly.in_range ? 1u : 0u) | (up.in_range ? 2u : 0u) |
                           (down.in_range ? 4u : 0u) | (bfly.value ^ up.value ^ down.value) << 3);
    auto const pair = warp::shfl_xor<Width>(Pair{{v, ~v}}, by);
    st_global(out + 5, pair.word[0]);
    st_global(out + 6, pair.word[1]);
    auto const half = warp::shfl<Width>(static_cast<std::uint16_t>(v), by);
    st_global(out + 7, std::uint32_t{half} << 8 |
                           std::uint32_t{warp::shfl<Width>(static_cast<std::uint8_t>(v), by)});
  }
};

/// Matches of words and of pairs, by all lanes and by halves. out, by lane: any of the word, any of
/// the pair, any within the half, all of what agrees, all of what does not, all within the half.
struct Matches : OneWarp {
  static constexpr int in_words = 64;
  static constexpr int out_words = 32 * 6;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    std::uint32_t const v = ld_global<std::uint32_t>(p.in + lane) % 5;
    std::uint32_t const w = ld_global<std::uint32_t>(p.in + 32 + lane) % 2;
    std::uint32_t* const out = p.out + 6 * lane;
    st_global(out, warp::match_any(v));
    st_global(out + 1, warp::match_any(std::uint64_t{w} << 40 | v));
    st_global(out + 3, warp::match_all(1.5f));
    st_global(out + 4, warp::match_all(std::uint64_t{v} << 33));
    std::uint32_t const half = lane < 16 ? 0xffffu : 0xffff0000u;
    st_global(out + 2, warp::match_any(v, half));
    st_global(out + 5, warp::match_all(lane / 16, half));
  }
};

/// Reductions of bits, and the masks of lanes. out, by lane: and, or, xor; eq, lt, le, gt, ge.
struct BitReductions : OneWarp {
  static constexpr int in_words = 32;
  static constexpr int out_words = 32 * 8;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    auto const v = ld_global<std::uint32_t>(p.in + lane);
    std::uint32_t* const out = p.out + 8 * lane;
    st_global(out, warp::reduce_and(v | 0xff00u));
    st_global(out + 1, warp::reduce_or(v & 0xff00u));
    st_global(out + 2, warp::reduce_xor(static_cast<std::int32_t>(v)));
    st_global(out + 3, lanemask_eq());
    st_global(out + 4, lanemask_lt());
    st_global(out + 5, lanemask_le());
    st_global(out + 6, lanemask_gt());
    st_global(out + 7, lanemask_ge());
  }
};

/// Barriers that reduce: of all threads, of a pair of warps, and of lanes on two paths; each orders
/// a store before it and a load after it. out, by thread: count, and, or of all; likewise of its
/// pair of warps; the unaligned count; the sum of the words that it read.
struct BarrierReductions : OneWarp {
  static constexpr int threads = 128;
  struct SharedStorage {
    std::uint32_t words[3][threads];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = threads;
  static constexpr int out_words = threads * 8;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    auto const v = ld_global<std::uint32_t>(p.in + t);
    bool const odd = (v & 1) != 0;
    auto const word = [&](int stage, int i) { return shared_address(&smem.words[stage][i]); };
    std::uint32_t* const out = p.out + 8 * t;

    st_shared(word(0, t), v);
    st_global(out, static_cast<std::uint32_t>(cta::sync_count(odd)));
    std::uint32_t sum = ld_shared<std::uint32_t>(word(0, (t + 37) % threads));
    st_global(out + 1, static_cast<std::uint32_t>(cta::sync_and(v != 0 || !odd)));
    st_global(out + 2, static_cast<std::uint32_t>(cta::sync_or(t == 77 && odd)));

    int const pair = t / 64;
    st_shared(word(1, t), v);
    st_global(out + 3, static_cast<std::uint32_t>(cta::bar_red_popc(1 + pair, 64, odd)));
    sum += ld_shared<std::uint32_t>(word(1, 64 * pair + (t + 37) % 64));
    st_global(out + 4,
              static_cast<std::uint32_t>(cta::bar_red_and(1 + pair, 64, odd || pair == 0)));
    st_global(out + 5, static_cast<std::uint32_t>(cta::bar_red_or(1 + pair, 64, odd && pair == 1)));

    st_shared(word(2, t), v);
    // on one line, for the counters: the lane that comes last says which
    auto const vote = [](bool predicate) { return cta::barrier_red_popc(3, threads, predicate); };
    int count = 0;
    if (lane_id() < 16) {
      count = vote(odd);
    } else {
      count = vote(!odd);
    }
    sum += ld_shared<std::uint32_t>(word(2, (t + 37) % threads));
    bool const all = cta::barrier_red_and(3, threads, true);
    bool const any = cta::barrier_red_or(3, threads, t < 0);
    st_global(out + 6, static_cast<std::uint32_t>(4 * count + (all ? 2 : 0) + (any ? 1 : 0)));
    st_global(out + 7, sum);
  }
};

/// All kernels of this file.
using AllKernels =
    Kernels<ShuffleWidths<1>, ShuffleWidths<2>, ShuffleWidths<4>, ShuffleWidths<8>,
            ShuffleWidths<16>, ShuffleWidths<32>, Matches, BitReductions, BarrierReductions>;

}  // namespace tegula::collective_kernels
