// Copies and reductions in bulk, hints to the caches, and what goes with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "copy_kernels.hpp"
#include "run_kernel.hpp"
#include "schedules.hpp"

namespace tegula {
namespace {

using namespace copy_kernels;

using U32 = std::vector<std::uint32_t>;

/// Runs the kernel on random words, at every schedule and with several seeds; it must be clean and
/// give what `expected` does.
template <class Kernel, class F> void expect_everywhere(F&& expected) {
  std::uint32_t seed = 1;
  for (sim::Options options : every_schedule(2)) {
    options.generation = sim::Generation::sm90;
    auto const in = words(Kernel::in_words, ++seed);
    sim::Machine machine(options);
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected(in)) << sim::type_name<Kernel>();
  }
}

template <class V> void expect_hints_change_nothing() {
  expect_everywhere<Hints<V>>([](U32 const& in) {
    U32 out(in.size());
    for (std::size_t i = 0; i < 4; ++i)
      std::memcpy(out.data() + 128 * i, in.data() + 128 * i, 32 * sizeof(V));
    return out;
  });
}

TEST(CacheHints, ChangeNothing) {
  expect_hints_change_nothing<std::uint8_t>();
  expect_hints_change_nothing<std::uint16_t>();
  expect_hints_change_nothing<std::uint32_t>();
  expect_hints_change_nothing<Pair>();
  expect_hints_change_nothing<Quad>();
  expect_everywhere<CopyHints>([](U32 const& in) { return in; });
}

TEST(CacheHints, PoliciesAreThoseOfCreatepolicy) {
  // What ptxas makes of createpolicy.fractional for sm_80.
  EXPECT_EQ(cache_policy(L2Hint::none), 0u);
  EXPECT_EQ(cache_policy(L2Hint::evict_first), 0x12f0000000000000u);
  EXPECT_EQ(cache_policy(L2Hint::evict_last), 0x14f0000000000000u);
  EXPECT_EQ(cache_policy(L2Hint::evict_normal), 0x16f0000000000000u);
  EXPECT_EQ(cache_policy(L2Hint::evict_unchanged), 0x10f0000000000000u);
  EXPECT_EQ(cache_policy(L2Policy(L2Hint::evict_first, 8)), 0x1270000000000000u);
  EXPECT_EQ(cache_policy(L2Policy(L2Hint::evict_last, 4, true)), 0x1530000000000000u);
  EXPECT_EQ(cache_policy(L2Policy(L2Hint::evict_unchanged, 1, true)), 0x1100000000000000u);
}

template <int Ctas, unsigned Mask> void expect_row_multicast() {
  expect_everywhere<MulticastsRow<Ctas, Mask>>([](U32 const& in) {
    U32 out;
    for (std::size_t cta = 0; cta < 2 * Ctas; ++cta) {
      for (std::size_t i = 0; i < 64; ++i)
        out.push_back((Mask >> cta % Ctas & 1) != 0 ? in[64 * (cta / Ctas) + i] : 7u);
    }
    return out;
  });
}

TEST(BulkMulticast, BringsARowToTheCtasOfTheMask) {
  expect_row_multicast<2, 0b11>();
  expect_row_multicast<2, 0b01>();
  expect_row_multicast<4, 0b1111>();
  expect_row_multicast<4, 0b1011>();
  expect_row_multicast<8, 0b10000001>();
}

/// 64 words as elements, each combined with another's by f.
template <class T, class F> U32 combine(U32 const& a, std::uint32_t const* b, F&& f) {
  U32 out(64);
  for (std::size_t i = 0; i < 256 / sizeof(T); ++i) {
    T x, y;
    std::memcpy(&x, reinterpret_cast<char const*>(a.data()) + i * sizeof(T), sizeof(T));
    std::memcpy(&y, reinterpret_cast<char const*>(b) + i * sizeof(T), sizeof(T));
    T const z = f(x, y);
    std::memcpy(reinterpret_cast<char*>(out.data()) + i * sizeof(T), &z, sizeof(T));
  }
  return out;
}

template <TmaReduce Op, class T, class F> void expect_reduced(F&& f) {
  expect_everywhere<Reduces<Op, T>>(
      [&](U32 const& in) { return combine<T>(in, in.data() + 64, f); });
}
template <TmaReduce Op, class T, int Ctas, class F> void expect_reduced_in_cluster(F&& f) {
  expect_everywhere<ReducesInCluster<Op, T, Ctas>>([&](U32 const& in) {
    U32 out(in.begin(), in.begin() + 64);
    for (std::size_t cta = 1; cta < Ctas; ++cta) out = combine<T>(out, in.data() + 64 * cta, f);
    return out;
  });
}

constexpr auto sum = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
constexpr auto least = [](auto a, auto b) { return std::min(a, b); };
constexpr auto most = [](auto a, auto b) { return std::max(a, b); };
constexpr auto both = [](auto a, auto b) { return a & b; };
constexpr auto either = [](auto a, auto b) { return a | b; };
constexpr auto one = [](auto a, auto b) { return a ^ b; };
constexpr auto up = [](std::uint32_t a, std::uint32_t b) { return a >= b ? 0u : a + 1; };
constexpr auto down = [](std::uint32_t a, std::uint32_t b) { return a == 0 || a > b ? b : a - 1; };

TEST(BulkReduce, CombinesEachElementWithGlobalMemory) {
  using S32 = std::int32_t;
  using S64 = std::int64_t;
  using U64 = std::uint64_t;
  constexpr auto wrapped = [](S32 a, S32 b) {
    return static_cast<S32>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  };
  constexpr auto wrapped64 = [](S64 a, S64 b) {
    return static_cast<S64>(static_cast<U64>(a) + static_cast<U64>(b));
  };
  expect_reduced<TmaReduce::add, std::uint32_t>(sum);
  expect_reduced<TmaReduce::add, S32>(wrapped);
  expect_reduced<TmaReduce::add, U64>(sum);
  expect_reduced<TmaReduce::add, S64>(wrapped64);
  expect_reduced<TmaReduce::min, S32>(least);
  expect_reduced<TmaReduce::max, std::uint32_t>(most);
  expect_reduced<TmaReduce::min, U64>(least);
  expect_reduced<TmaReduce::max, S64>(most);
  expect_reduced<TmaReduce::inc, std::uint32_t>(up);
  expect_reduced<TmaReduce::dec, std::uint32_t>(down);
  expect_reduced<TmaReduce::bit_and, std::uint32_t>(both);
  expect_reduced<TmaReduce::bit_or, S64>(either);
  expect_reduced<TmaReduce::bit_xor, U64>(one);
  expect_reduced_in_cluster<TmaReduce::add, S32, 4>(wrapped);
  expect_reduced_in_cluster<TmaReduce::add, S64, 4>(wrapped64);
  expect_reduced_in_cluster<TmaReduce::min, S32, 8>(least);
  expect_reduced_in_cluster<TmaReduce::max, std::uint32_t, 2>(most);
  expect_reduced_in_cluster<TmaReduce::inc, std::uint32_t, 2>(up);
  expect_reduced_in_cluster<TmaReduce::dec, std::uint32_t, 2>(down);
  expect_reduced_in_cluster<TmaReduce::bit_and, std::uint32_t, 4>(both);
  expect_reduced_in_cluster<TmaReduce::bit_or, S32, 4>(either);
  expect_reduced_in_cluster<TmaReduce::bit_xor, std::uint32_t, 4>(one);
}

/// Of numbers that are none, tma_test.cpp: the two forms compute alike.
TEST(BulkReduce, RoundsSumsOnce) {
  auto const keeps_numbers = [](U32 words) {
    for (std::uint32_t& word : words) word &= 0xbfffbfffu;  // neither infinite nor a NaN
    return words;
  };
  std::uint32_t seed = 1;
  for (sim::Options options : every_schedule(1)) {
    options.generation = sim::Generation::sm90;
    auto const in = keeps_numbers(words(128, ++seed));
    sim::Machine machine(options);
    EXPECT_EQ((run_kernel<Reduces<TmaReduce::add, float>>(machine, in)),
              combine<float>(in, in.data() + 64, sum));
    EXPECT_EQ((run_kernel<Reduces<TmaReduce::add, double>>(machine, in)),
              combine<double>(in, in.data() + 64, sum));
    auto const narrow = [](auto a, auto b) {
      return from_float<decltype(a)>(to_float(a) + to_float(b));
    };
    EXPECT_EQ((run_kernel<Reduces<TmaReduce::add, half>>(machine, in)),
              combine<half>(in, in.data() + 64, narrow));
    EXPECT_EQ((run_kernel<Reduces<TmaReduce::add, bfloat16>>(machine, in)),
              combine<bfloat16>(in, in.data() + 64, narrow));
    EXPECT_EQ((run_kernel<Reduces<TmaReduce::min, half>>(machine, in)),
              combine<half>(in, in.data() + 64, [](half a, half b) {
                if (to_float(a) == to_float(b)) return std::signbit(to_float(a)) ? a : b;
                return to_float(a) < to_float(b) ? a : b;
              }));
  }
}

TEST(BulkReduce, AddsHistogramsThatCtasCountBySelf) {
  expect_everywhere<Histogram>([](U32 const& in) {
    U32 counts(Histogram::bins);
    for (std::uint32_t const word : in) {
      for (int byte = 0; byte < 4; ++byte) ++counts[(word >> (8 * byte)) % Histogram::bins];
    }
    return counts;
  });
}

/// What sm_100 has more: a store with a mask of bytes, zeros in bulk, and 32 bytes at once.
struct Wide {
  std::uint32_t word[8];
};
struct OfBlackwell : OneWarp {
  struct SharedStorage {
    alignas(16) std::uint32_t words[64];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = 32 * 8, out_words = 32 * 8 + 128;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    SharedAddr const all = shared_address(smem.words);
    st_global<CacheHint{.l1 = L1Eviction::no_allocate}>(
        p.out + 8 * lane,
        ld_global_nc<Wide, CacheHint{.l2 = L2Hint::evict_first}>(p.in + 8 * lane));
    st_shared(all + 4u * static_cast<SharedAddr>(lane), ~0u);
    warp::sync();
    if (lane == 0) st_bulk_zero(all + 64, 192);
    fence_proxy_async();
    warp::sync();
    if (lane != 0) return;
    bulk_store_masked(p.out + 256, all, 256, 0x8003);
    bulk_commit_group();
    bulk_store_masked(p.out + 320, all, 256, 0xffff);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(OfBlackwell, MasksBytesAndMovesWideVectors) {
  for (sim::Options options : every_schedule(2)) {
    options.generation = sim::Generation::sm100;
    sim::Machine machine(options);
    auto const in = words(OfBlackwell::in_words);
    auto expected = in;
    for (int i = 0; i < 128; ++i) {
      std::uint32_t const word = i % 64 < 16 ? ~0u : 0u;
      std::uint32_t const mask = i >= 64      ? ~0u
                                 : i % 4 == 0 ? 0xffffu
                                 : i % 4 == 3 ? 0xff000000u
                                              : 0;
      expected.push_back(word & mask);
    }
    EXPECT_EQ(run_kernel<OfBlackwell>(machine, in), expected);
  }
}

/// The ways to change a synchronising statement of the kernel of which no schedule gives a finding
/// or another result: "cluster_wait 2 delayed" is that of the second cluster_wait.
template <class Kernel> std::vector<std::string> survivors() {
  auto const in = words(Kernel::in_words, 3);
  auto const run = [&](sim::Options options, sim::Report& report) {
    options.generation = sim::Generation::sm90;
    options.throw_on_finding = false;
    sim::Machine machine(options);
    return run_kernel<Kernel>(machine, in, &report);
  };
  sim::Options lists;
  lists.list_marked = true;
  sim::Report report;
  U32 const right = run(lists, report);
  EXPECT_TRUE(report.ok()) << report.text();
  std::sort(report.marked.begin(), report.marked.end(),
            [](auto const& a, auto const& b) { return a.where.line < b.where.line; });
  std::vector<std::string> all;
  std::map<Operation, int> number;
  for (sim::MarkedStatement const& statement : report.marked) {
    ++number[statement.operation];
    for (int bit = 1; bit < 64; bit *= 2) {
      auto const mutation = static_cast<Mutation>(bit);
      if (!admits(statement.admitted, mutation)) continue;
      bool found = false;
      for (sim::Options options : every_schedule(1)) {
        options.mutant =
            sim::Mutant{statement.where.file, statement.where.line, statement.operation, mutation};
        sim::Report of_mutant;
        bool const wrong = run(options, of_mutant) != right;
        found = found || wrong || !of_mutant.ok();
      }
      if (!found)
        all.push_back(std::string(to_string(statement.operation)) + " " +
                      std::to_string(number[statement.operation]) + " " + to_string(mutation));
    }
  }
  EXPECT_FALSE(report.marked.empty());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(BulkCopyMutants, AreFoundButForThoseThatDoNoHarm) {
  using Equivalent = std::vector<std::string>;
  // Another instruction of the same barrier follows the fence. Bytes may come before they are
  // expected, and the arrival publishes nothing.
  Equivalent const of_expecting{"fence_mbarrier_init 1 delayed",
                                "mbarrier_arrive_expect_tx 1 delayed",
                                "mbarrier_arrive_expect_tx 1 weakened"};
  EXPECT_EQ((survivors<MulticastsRow<4, 0b1011>>()), of_expecting);
  // The kernel ends after the second wait for the cluster.
  Equivalent of_cluster = of_expecting;
  of_cluster.insert(of_cluster.begin(), "cluster_wait 2 delayed");
  EXPECT_EQ((survivors<ReducesInCluster<TmaReduce::add, std::uint32_t, 4>>()), of_cluster);
  // The kernel ends after the wait, and nobody reads what it waits for. Lane 0, which reduces,
  // executes its own fence after the warp's barrier.
  EXPECT_EQ((survivors<Reduces<TmaReduce::add, std::uint32_t>>()),
            (Equivalent{"bulk_wait_group 1 delayed", "bulk_wait_group 1 weakened",
                        "fence_proxy_async 1 delayed"}));
  // Likewise; and the instruction after the first barrier reads global memory.
  EXPECT_EQ(survivors<Histogram>(),
            (Equivalent{"bulk_wait_group_read 1 delayed", "fence_proxy_async 1 delayed",
                        "warp_sync 1 delayed"}));
}

}  // namespace
}  // namespace tegula
