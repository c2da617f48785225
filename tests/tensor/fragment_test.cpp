// Registers: what is written, read, computed and found of them; the code of docs/tensors.md.

#include "tegula/tensor/fragment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/axpby.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/register_reduce.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {
namespace {

/// A kernel of one warp whose body is F, on one array of T.
template <class T, class F, int Threads = 32> struct Body {
  struct Params {
    T* data;
  };
  struct SharedStorage {};
  static constexpr int threads = Threads;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const { F{}(p.data); }
};

struct Ran {
  sim::Report report;
  bool found(sim::FindingKind kind, int line, std::string const& part) const {
    return std::any_of(report.findings.begin(), report.findings.end(), [&](sim::Finding const& f) {
      return f.kind == kind && f.where.line == line && f.message.find(part) != std::string::npos;
    });
  }
};

/// Runs Body<T, F> on `data`, which then holds what it wrote.
template <class F, int Threads = 32, class T>
Ran run_on(std::vector<T>& data, sim::Completion completion = sim::Completion::last) {
  sim::Machine machine({.completion = completion, .throw_on_finding = false});
  auto* const device = static_cast<T*>(machine.allocate(data.size() * sizeof(T), "data"));
  machine.upload(device, data.data(), data.size() * sizeof(T));
  Ran result{sim::launch<Body<T, F, Threads>>(machine, {1, 1, 1}, {device})};
  machine.download(data.data(), device, data.size() * sizeof(T));
  return result;
}

using Four = identity_map<2, 2>;

// ---- values of a narrow format

template <class T> struct Assigns {
  TEGULA_DEVICE void operator()(T* data) const {
    auto const part = local_partition<"(8,4):(4,1)"_layout>(
        local_tile<16, 16>(matrix<1>(data, 16, 16, 16), 0, 0), thread_idx());  // (2, 4)
    auto r = make_fragment_like(part);
    copy(part, r);
    for (int i = 0; i < 2; ++i) {
      T const old = r(i, 0);
      r(i, 0) = r(i, 1);  // between references: the value
      r(i, 1) = old;
      auto const now = r(i, 2).value();
      r(i, 2) = from_float<T>(2 * to_float(r(i, 3)));
      r(i, 3) = now;
    }
    for_each(r, [](T& x) { x = from_float<T>(to_float(x) + 1); });
    copy(r, part);
  }
};

template <class T> void assigns() {
  std::vector<T> data(256);
  for (std::size_t i = 0; i < 256; ++i) data[i] = from_float<T>(static_cast<float>(i % 3));
  auto const before = data;
  auto const ran = run_on<Assigns<T>>(data);
  EXPECT_TRUE(ran.report.ok()) << ran.report.text();
  for (int row = 0; row < 16; ++row) {
    for (int thread = 0; thread < 4; ++thread) {
      auto const old = [&](int j) {
        return to_float(before[static_cast<std::size_t>(16 * row + thread + 4 * j)]);
      };
      float const expected[] = {old(1) + 1, old(0) + 1, 2 * old(3) + 1, old(2) + 1};
      for (int j = 0; j < 4; ++j)
        EXPECT_EQ(to_float(data[static_cast<std::size_t>(16 * row + thread + 4 * j)]), expected[j]);
    }
  }
}
TEST(Fragment, ValuesOfNarrowFormatsAreAssigned) {
  assigns<half>(), assigns<bfloat16>(), assigns<float_e4m3>(), assigns<float_e5m2>();
}

// ---- registers that nobody has written

using B = bfloat16;
using Mma = TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), 16, 8}>;
using Wgmma =
    TiledMma<TiledMmaSpec{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64), 64, 64}>;

int line_of_read = 0;

struct Element {
  TEGULA_DEVICE void operator()(float* data) const {
    Fragment<float, Four> r;
    Fragment<float, Four> const& read = r;
    r(0) = 1, r(1) = 2, r(2) = 3;
    line_of_read = __LINE__ + 1;
    float const x = read(1, 1);
    data[0] = x != x ? 1.0f : 0.0f;
  }
};
struct Computed {
  TEGULA_DEVICE void operator()(float* data) const {
    auto const part = local_partition<"(8,4):(4,1)"_layout>(
        local_tile<16, 8>(matrix<1>(data, 8, 16, 8), 0, 0), thread_idx());
    auto r = make_fragment_like(part);
    for (int i = 0; i < r.size; ++i) r(i) += 1.0f;  // NaN plus 1
    line_of_read = __LINE__ + 1;
    copy(r, part);
  }
};
struct Product {
  TEGULA_DEVICE void operator()(float*) const {
    Mma::FragmentA<> a;
    Mma::FragmentB<> b;
    Mma::Accumulator c;
    clear(a), clear(b);
    line_of_read = __LINE__ + 1;
    gemm(Mma{0}, a, b, c);
  }
};
struct OperandOfProduct {
  TEGULA_DEVICE void operator()(float*) const {
    Mma::FragmentA<> a;
    Mma::FragmentB<> b;
    Mma::Accumulator c;
    clear(a), clear(c);
    line_of_read = __LINE__ + 1;
    gemm(Mma{0}, a, b, c);
  }
};
struct Added {
  TEGULA_DEVICE void operator()(float*) const {
    Mma::Accumulator c, d;
    clear(c);
    line_of_read = __LINE__ + 1;
    c += d;
  }
};
struct NarrowAssigned {
  TEGULA_DEVICE void operator()(float*) const {
    Fragment<half, Four> r;
    r(0) = to_half(1.0f);
    line_of_read = __LINE__ + 1;
    float const x = to_float(r(2));
    r(3) = to_half(x);
  }
};
struct ReducedUnwritten {
  TEGULA_DEVICE void operator()(float*) const {
    Mma::Accumulator c;
    line_of_read = __LINE__ + 1;
    auto const sums = reduce<1>(c, Maximum{});
    (void)sums;
  }
};
struct Whole {
  TEGULA_DEVICE void operator()(float*) const {
    Fragment<std::int32_t, Four> r{};  // braces write nothing: as on a GPU
    line_of_read = __LINE__ + 1;
    auto const other = convert<float>(r);
    (void)other;
  }
};

template <class F> void finds(char const* part) {
  std::vector<float> data(128, 1.0f);
  auto const ran = run_on<F>(data);
  EXPECT_TRUE(ran.found(sim::FindingKind::uninitialized_read, line_of_read, part))
      << "line " << line_of_read << ": " << ran.report.text();
  EXPECT_EQ(ran.report.findings.size(), 1u) << ran.report.text();
}
TEST(Fragment, AReadOfARegisterThatNobodyWroteIsFound) {
  finds<Element>("value 3 of a fragment, (1, 1) from the thread's first");
  finds<Computed>("value 0 of a fragment");
  finds<Product>("value 0 of a fragment");
  finds<OperandOfProduct>("value 0 of a fragment");
  finds<Added>("value 0 of a fragment");
  finds<NarrowAssigned>("value 2 of a fragment, (0, 1) from the thread's first");
  finds<ReducedUnwritten>("value 0 of a fragment");
  finds<Whole>("value 0 of a fragment");
}

// What a kernel may leave unwritten: copies of a whole fragment, values that nobody reads, and all
// that is written first through a reference, a slice or for_each.
struct Unwritten {
  TEGULA_DEVICE void operator()(float* data) const {
    Fragment<float, identity_map<2, 4>> r, s;
    Fragment<half, identity_map<2, 4>> narrow;
    auto const row = r(1, _);
    for (int j = 0; j < 4; ++j) row(j) = 1.0f;
    s = r;  // values 0, 2, ... are as unwritten as before
    auto const t = s;
    for_each(narrow, Coordinate<2>{{0, 0}},
             [](half& x, Index i, Index j) { x = to_half(static_cast<float>(i + j)); });
    float sum = to_float(narrow(1, 3)) - 4;
    for (int j = 0; j < 4; ++j) sum += t(1, j);
    fill(r, 2.0f);
    st_global(data + thread_idx(), sum + r(0, 0));
  }
};
TEST(Fragment, WhatNobodyReadsMayStayUnwritten) {
  std::vector<float> data(32, 0.0f);
  auto const ran = run_on<Unwritten>(data);
  EXPECT_TRUE(ran.report.ok()) << ran.report.text();
  for (float const x : data) EXPECT_EQ(x, 6.0f);
}

template <bool Clears, bool Accumulates> struct WarpgroupProduct {
  struct Params {
    float* out;
  };
  struct SharedStorage {
    SharedTile<B, OperandTile{16, 64, 64, 1}> a;
  };
  static constexpr int threads = 128;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    auto const sA = tensor(smem.a);
    using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), B>;
    auto ones = make_fragment_like(Copy{thread}.partition(sA));
    fill(ones, 1.0f);
    copy(Copy{thread}, ones, sA);
    fence_proxy_async_shared();
    cta::sync();
    Wgmma::Accumulator c;
    if constexpr (Clears) clear(c);
    wgmma_fence();
    gemm(Wgmma{thread}, Wgmma{thread}.partition_a(sA), Wgmma{thread}.partition_b(sA), c,
         Accumulates);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    wgmma_pin(c);
    copy(c, Wgmma{thread}.partition_c(local_tile<64, 64>(matrix<1>(p.out, 64, 64, 64), 0, 0)));
  }
};
template <bool Clears, bool Accumulates> sim::Report warpgroup_product() {
  sim::Machine machine({.generation = sim::Generation::sm90, .throw_on_finding = false});
  std::vector<float> out(64 * 64, -1.0f);
  auto* const device = static_cast<float*>(machine.allocate(out.size() * 4, "out"));
  auto report = sim::launch<WarpgroupProduct<Clears, Accumulates>>(machine, {1, 1, 1}, {device});
  machine.download(out.data(), device, out.size() * 4);
  if (report.ok()) {
    for (float const x : out) EXPECT_EQ(x, 64.0f);
  }
  return report;
}
TEST(Fragment, AWarpgroupProductReadsAccumulatorsOnlyWhereItAddsToThem) {
  EXPECT_TRUE((warpgroup_product<true, true>().ok()));
  EXPECT_TRUE((warpgroup_product<false, false>().ok()));
  auto const report = warpgroup_product<false, true>();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, sim::FindingKind::uninitialized_read) << report.text();
}

// ---- indices that there are not

struct Beyond {
  TEGULA_DEVICE void operator()(int* data) const {
    Fragment<float, identity_map<4>> r, q;
    fill(r, 1.0f), fill(q, 2.0f);
    line_of_read = __LINE__ + 1;
    for (int i = 0; i < ld_global<int>(data); ++i) r(i) = 5.0f;
    for (int i = 0; i < 4; ++i) data[i + 1] = r(i) == 5.0f && q(i) == 2.0f ? 1 : 0;
  }
};
struct BeyondAMode {
  TEGULA_DEVICE void operator()(int* data) const {
    Fragment<half, Four> r;
    clear(r);
    line_of_read = __LINE__ + 1;
    r(ld_global<int>(data) - 4, 0) = to_half(1.0f);  // (2, 0) would be value 2 of 4
  }
};
struct BeyondASlice {
  TEGULA_DEVICE void operator()(int* data) const {
    Fragment<float, Four> r;
    clear(r);
    auto const row = r(0, _);
    line_of_read = __LINE__ + 1;
    row(ld_global<int>(data) - 4) = 1.0f;
  }
};
template <class F> void finds_beyond(char const* part) {
  std::vector<int> data(8, 0);
  data[0] = 6;
  auto const ran = run_on<F>(data);
  EXPECT_TRUE(ran.found(sim::FindingKind::out_of_bounds, line_of_read, part)) << ran.report.text();
  EXPECT_EQ(ran.report.findings.size(), 1u) << ran.report.text();
}
TEST(Fragment, AnIndexBeyondAFragmentIsFound) {
  finds_beyond<Beyond>("index 4 of a fragment of 4 values");
  finds_beyond<BeyondAMode>("index 2 of a fragment whose mode 0 has extent 2");
  finds_beyond<BeyondASlice>("index 2 of a fragment of 2 values");
}
TEST(Fragment, AnIndexOfACompileTimeConstantIsAnyOther) {
  Fragment<int, Four> r;
  r(std::integral_constant<int, 1>{}, std::integral_constant<int, 1>{}) = 7;
  EXPECT_EQ(r(std::integral_constant<int, 3>{}), 7);
}

// ---- arithmetic, against the same in double

template <class T> std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> result(count);
  for (T& x : result) {
    int const number = static_cast<int>(random() % 129) - 64;
    if constexpr (std::is_unsigned_v<T>) {
      x = static_cast<T>(number + 64);
    } else {
      x = detail::as_number<T>(static_cast<float>(number) / (std::is_integral_v<T> ? 1 : 8));
    }
  }
  return result;
}
template <class T> double real(T x) { return detail::as_number<double>(x); }

/// What arithmetic in T makes of an exact result: integers wrap.
template <class T> T as(double exact) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(exact));
  } else {
    return detail::as_number<T>(static_cast<float>(exact));
  }
}

template <class T> void arithmetic(unsigned seed) {
  using F = Fragment<T, identity_map<3, 5>>;
  auto const a = random_values<T>(15, seed), b = random_values<T>(15, seed + 1);
  F x, y;
  for (int i = 0; i < 15; ++i) {
    x(i) = a[static_cast<std::size_t>(i)];
    y(i) = b[static_cast<std::size_t>(i)];
  }
  auto const expect = [&](F const& result, auto f) {
    for (int i = 0; i < 15; ++i) {
      auto const at = static_cast<std::size_t>(i);
      EXPECT_EQ(real(T(result(i))), real(as<T>(f(real(a[at]), real(b[at]))))) << i;
    }
  };
  F r = x;
  r += y;
  expect(r, [](double p, double q) { return p + q; });
  r = x, r -= y;
  expect(r, [](double p, double q) { return p - q; });
  r = x, r *= y;
  expect(r, [](double p, double q) { return p * q; });
  r = x, r *= 2;
  expect(r, [](double p, double) { return p * 2; });
  r = x, r += 1;
  expect(r, [](double p, double) { return p + 1; });
  r = x, r -= 1;
  expect(r, [](double p, double) { return p - 1; });
  transform(x, y, r, Maximum{});
  expect(r, [](double p, double q) { return std::max(p, q); });
  transform(x, r, [](auto p) { return p + p; });
  expect(r, [](double p, double) { return p + p; });
  transform(r, [](auto p) { return p; });
  expect(r, [](double p, double) { return p + p; });
  r(1, _) += 3;  // a slice
  for (int i = 0; i < 15; ++i) {
    T const twice = as<T>(2 * real(a[static_cast<std::size_t>(i)]));
    EXPECT_EQ(real(T(r(i))), real(as<T>(real(twice) + (i % 3 == 1 ? 3 : 0))));
  }
  fill(r, 3);
  expect(r, [](double, double) { return 3.0; });

  auto const sums = reduce<1>(x, Plus{});
  auto const largest = reduce<0>(x, Maximum{});
  static_assert(sums.size == 3 && largest.size == 5);
  for (int i = 0; i < 3; ++i) {
    double sum = 0;
    for (int j = 0; j < 5; ++j) sum += real(a[static_cast<std::size_t>(i + 3 * j)]);
    if constexpr (std::is_integral_v<T>) sum = real(as<T>(sum));
    EXPECT_EQ(static_cast<double>(sums(i)), sum);
  }
  for (int j = 0; j < 5; ++j) {
    double most = -1e9;
    for (int i = 0; i < 3; ++i) most = std::max(most, real(a[static_cast<std::size_t>(i + 3 * j)]));
    EXPECT_EQ(static_cast<double>(largest(j)), most);
  }
}
TEST(Fragment, ArithmeticIsThatOfTheNumbersRounded) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    arithmetic<float>(seed), arithmetic<double>(seed), arithmetic<std::int32_t>(seed);
    arithmetic<half>(seed), arithmetic<bfloat16>(seed), arithmetic<float_e5m2>(seed),
        arithmetic<float_e4m3>(seed);
    arithmetic<std::int8_t>(seed), arithmetic<std::uint8_t>(seed), arithmetic<std::int16_t>(seed);
    arithmetic<tfloat32>(seed);
  }
}

// Every pair of types, on numbers that all of them hold, and on such as the target does not.
template <class To, class From> void converts() {
  Fragment<From, identity_map<7>> from;
  float const numbers[] = {0, 1, 2, 3, 4, 6, 8};
  for (int i = 0; i < 7; ++i) from(i) = detail::as_number<From>(numbers[i]);
  auto const to = convert<To>(from);
  static_assert(std::is_same_v<typename decltype(to)::Element, To>);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(real(To(to(i))), numbers[i]);
}
template <class To> void converts_from_all() {
  converts<To, float>(), converts<To, double>(), converts<To, half>(), converts<To, bfloat16>();
  converts<To, float_e4m3>(), converts<To, float_e5m2>(), converts<To, tfloat32>();
  converts<To, std::int8_t>(), converts<To, std::uint8_t>(), converts<To, std::int32_t>(),
      converts<To, std::uint32_t>();
}
TEST(Fragment, AnyNumberIsConvertedToAnyOther) {
  converts_from_all<float>(), converts_from_all<double>(), converts_from_all<half>(),
      converts_from_all<bfloat16>();
  converts_from_all<float_e4m3>(), converts_from_all<float_e5m2>(), converts_from_all<tfloat32>();
  converts_from_all<std::int8_t>(), converts_from_all<std::uint8_t>(),
      converts_from_all<std::int32_t>(), converts_from_all<std::uint32_t>();
}
template <class To> void cuts() {
  Fragment<float, identity_map<8>> from;
  float const infinity = std::numeric_limits<float>::infinity();
  float const numbers[] = {2.75f, -2.75f, 1e30f, -1e30f, infinity, -infinity, std::nanf(""), -0.5f};
  for (int i = 0; i < 8; ++i) from(i) = numbers[i];
  auto const to = convert<To>(from);
  using Limits = std::numeric_limits<To>;
  To const expected[] = {2,
                         std::is_signed_v<To> ? static_cast<To>(-2) : To{0},
                         Limits::max(),
                         Limits::min(),
                         Limits::max(),
                         Limits::min(),
                         0,
                         0};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(To(to(i)), expected[i]) << i;
}
TEST(Fragment, ConversionsToIntegersCutAndSaturate) {
  cuts<std::int8_t>(), cuts<std::uint8_t>(), cuts<std::int16_t>(), cuts<std::int32_t>(),
      cuts<std::uint32_t>();
}
TEST(Fragment, ConversionsRoundAsFromFloatDoes) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    Fragment<float, identity_map<4>> from;
    for (int i = 0; i < 4; ++i) from(i) = bits_as<float>(static_cast<std::uint32_t>(random()));
    auto const f16 = convert<half>(from);
    auto const bf16 = convert<bfloat16>(from);
    auto const e4m3 = convert<float_e4m3>(from);
    auto const e5m2 = convert<float_e5m2>(from);
    for (int i = 0; i < 4; ++i) {
      float const x = from(i);
      EXPECT_EQ(f16(i).bits, to_half(x).bits);
      EXPECT_EQ(bf16(i).bits, to_bfloat16(x).bits);
      EXPECT_EQ(e4m3(i).bits, to_float_e4m3(x).bits);
      EXPECT_EQ(e5m2(i).bits, to_float_e5m2(x).bits);
    }
  }
}

// ---- sums across the threads that share a row, or a column

template <TiledMmaSpec S, int Axis, class T> struct Reduces {
  struct Params {
    T const* in;
    T* out;
  };
  struct SharedStorage {};
  static constexpr int threads = TiledMma<S>::threads;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    using M = TiledMma<S>;
    M const mma{thread_idx()};
    auto const part =
        mma.partition_c(local_tile<M::m, M::n>(matrix<1>(p.in, M::n, M::m, M::n), 0, 0));
    auto c = make_fragment_like(part);
    copy(part, c);
    auto sums = reduce<Axis>(c, Plus{});
    reduce_lanes<Axis>(mma, sums, Plus{});
    auto const origin = mma.origin_c();
    for (int i = 0; i < sums.size; ++i) {
      int const at = origin[1 - Axis] + step_along<1 - Axis>(typename M::ValuesC{}, i);
      st_global(p.out + at, sums(i));
    }
  }
};
template <TiledMmaSpec S, int Axis, class T> void reduces() {
  using M = TiledMma<S>;
  static_assert(shared_within_warp<M, Axis>);
  auto const in = random_values<T>(M::m * M::n, 5);
  constexpr int kept = Axis == 1 ? M::m : M::n;
  sim::Machine machine({.generation = sim::Generation::sm90, .throw_on_finding = false});
  auto* const device_in = static_cast<T*>(machine.allocate(in.size() * sizeof(T), "in"));
  auto* const device_out = static_cast<T*>(machine.allocate(kept * sizeof(T), "out"));
  machine.upload(device_in, in.data(), in.size() * sizeof(T));
  auto const report = sim::launch<Reduces<S, Axis, T>>(machine, {1, 1, 1}, {device_in, device_out});
  // The threads of a row write the same sum, one after another.
  for (auto const& finding : report.findings)
    EXPECT_NE(finding.kind, sim::FindingKind::uninitialized_read) << report.text();
  std::vector<T> out(kept);
  machine.download(out.data(), device_out, out.size() * sizeof(T));
  for (int i = 0; i < kept; ++i) {
    double sum = 0;
    for (int j = 0; j < M::m * M::n / kept; ++j)
      sum += real(in[static_cast<std::size_t>(Axis == 1 ? i * M::n + j : j * M::n + i)]);
    EXPECT_EQ(static_cast<double>(out[static_cast<std::size_t>(i)]), sum) << i;
  }
}
struct Specs {
  static constexpr TiledMmaSpec rows{warp_mma(DType::bf16, DType::f32, 16), 64, 32, 4, 1};
  static constexpr TiledMmaSpec columns{warp_mma(DType::bf16, DType::f32, 16), 16, 32, 1, 4};
  static constexpr TiledMmaSpec raked{
      warp_mma(DType::bf16, DType::f32, 16), 32, 32, 2, 1, Share::raked};
  static constexpr TiledMmaSpec warpgroup{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64),
                                          64, 64};
};
TEST(Fragment, LanesThatShareARowOrAColumnAreReduced) {
  reduces<Specs::rows, 1, float>(), reduces<Specs::rows, 1, double>(),
      reduces<Specs::rows, 1, std::int32_t>();
  reduces<Specs::columns, 0, float>(), reduces<Specs::raked, 1, float>(),
      reduces<Specs::warpgroup, 1, float>();
  static_assert(!shared_within_warp<TiledMma<Specs::columns>, 1> &&
                !shared_within_warp<TiledMma<Specs::rows>, 0>);
}

// ---- what docs/tensors.md says of registers, in one kernel: 2^(x - the largest of x's row)

template <class T> struct Exponentials {
  struct Params {
    T const* in;
    T* out;
    int columns;  ///< of 64, those that count
  };
  static constexpr int threads = 128;
  using Tile = SharedTile<T, OperandTile{16, 64, 64, 1}>;
  struct SharedStorage {
    Tile tile;
  };
  using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), T>;
  static constexpr TiledMmaSpec spec{warp_mma(dtype_of<T>, DType::f32, 16), 64, 64, 4, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    auto const gIn = local_tile<64, 64>(matrix<1>(p.in, 64, 64, 64), 0, 0);
    auto const gOut = local_tile<64, 64>(matrix<1>(p.out, 64, 64, 64), 0, 0);
    auto const sTile = tensor(smem.tile);
    TiledMma<spec> const mma{thread};

    // registers for a thread's part of a tile, not yet written
    auto staged = make_fragment_like(Copy{thread}.partition(gIn));
    copy(Copy{thread}, gIn, staged);    // global memory to registers
    copy(Copy{thread}, staged, sTile);  // registers to shared memory
    cta::sync();

    auto part = make_fragment_like(mma.partition_c(sTile));  // as accumulators lie
    copy(mma.partition_c(sTile), part);
    auto x = convert<float>(part);
    for_each(x, mma.origin_c(), [&](float& value, Index, Index column) {
      if (column >= p.columns) value = -1000.0f;
    });

    auto largest = reduce<1>(x, Maximum{});    // of the thread's own values of a row
    reduce_lanes<1>(mma, largest, Maximum{});  // and of the other lanes that share it
    for_each(x, mma.origin_c(), [&](float& value, Index row, Index) {
      value -= largest(row.step / 8);  // a thread's rows are 8 apart
    });
    transform(x, [](float value) { return value < -100.0f ? 0.0f : ex2_approx_ftz(value); });

    auto scale = make_fragment_like(mma.partition_c(sTile));
    fill(scale, 0.5f);                                               // clear(scale): zeros
    transform(x, scale, x, [](float a, float b) { return a * b; });  // of bf16, too
    x *= 2.0f;
    part = convert<T>(x);  // rounded, to nearest even
    part(0) = part(1);     // a value of 16 bits is assigned as any other
    copy(part, mma.partition_c(gOut));
  }
};
TEST(Fragment, TheRegistersOfThePageDoWhatItSays) {
  std::vector<bfloat16> in(4096), out(4096);
  std::mt19937 random(1);
  for (auto& x : in) x = to_bfloat16(static_cast<float>(random() % 64) / 8);
  sim::Machine machine;
  auto* const device_in = static_cast<bfloat16*>(machine.allocate(8192, "in"));
  auto* const device_out = static_cast<bfloat16*>(machine.allocate(8192, "out"));
  machine.upload(device_in, in.data(), 8192);
  sim::launch<Exponentials<bfloat16>>(machine, {1, 1, 1}, {device_in, device_out, 60});
  machine.download(out.data(), device_out, 8192);
  for (std::size_t row = 0; row < 64; ++row) {
    float largest = 0;
    for (std::size_t j = 0; j < 60; ++j) largest = std::max(largest, to_float(in[64 * row + j]));
    for (std::size_t j = 0; j < 64; ++j) {
      std::size_t from = j;
      if (row % 16 < 8 && j < 8 && j % 2 == 0) from = j + 1;  // part(0) = part(1)
      float const expected = from >= 60 ? 0.0f : std::exp2(to_float(in[64 * row + from]) - largest);
      EXPECT_NEAR(to_float(out[64 * row + j]), expected, 0.01f * expected) << row << " " << j;
    }
  }
}

}  // namespace
}  // namespace tegula
