// On a machine with a GPU: the whole kernels give the same bits there and on the simulated machine
// of the same architecture.

#include "attention_problem.hpp"
#include "gemm_problem.hpp"
#include "gemm_sm90_problem.hpp"
#include "serving_problem.hpp"

namespace tegula {
namespace {

/// NaNs count as one value: their payloads are not part of a result (docs/decisions.md).
template <class T>
void expect_same_bits(std::vector<T> const& gpu, std::vector<T> const& simulated) {
  ASSERT_EQ(gpu.size(), simulated.size());
  std::size_t different = 0, first = 0;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    bool same = std::memcmp(&gpu[i], &simulated[i], sizeof(T)) == 0;
    if constexpr (std::is_floating_point_v<T>)
      same = same || (gpu[i] != gpu[i] && simulated[i] != simulated[i]);
    if (!same && different++ == 0) first = i;
  }
  EXPECT_EQ(different, 0u) << "of " << gpu.size() << " values, first at " << first;
}

/// The same of elements of `type` by their bytes.
void expect_same_bits(std::vector<std::uint8_t> const& gpu,
                      std::vector<std::uint8_t> const& simulated, DType type) {
  auto const is_nan = [&](std::vector<std::uint8_t> const& bytes, std::size_t i) {
    return std::isnan(reference::element(bytes.data(), type, static_cast<std::int64_t>(i)));
  };
  ASSERT_EQ(gpu.size(), simulated.size());
  std::size_t const width = static_cast<std::size_t>(bits(type) / 8), count = gpu.size() / width;
  std::size_t different = 0, first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bool const same = std::memcmp(&gpu[i * width], &simulated[i * width], width) == 0;
    if (!same && !(is_nan(gpu, i) && is_nan(simulated, i)) && different++ == 0) first = i;
  }
  EXPECT_EQ(different, 0u) << "of " << count << " values, first at " << first;
}

class BitIdentity : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    if (Machine::cuda().compute_capability() != 90)
      GTEST_SKIP() << "the simulated arithmetic of a kernel is that of an sm_90";
  }
  /// Whether this build has only representative configurations of a family: the problems of some
  /// tests need the others, too, which `./run gpu` builds.
  static bool lacks_some(FamilyId family) {
    return device::configurations(family, Kernels::built).count <
           device::configurations(family, Kernels::all).count;
  }
  Machine simulated = Machine::simulated(Arch::sm90);
};

TEST_F(BitIdentity, OfGemm) {
  if (lacks_some(gemm_sm80)) GTEST_SKIP() << "this build has not all configurations";
  Machine const gpu = Machine::cuda();
  for (DType const in : {DType::f16, DType::bf16}) {
    for (DType const out : {DType::f16, DType::bf16, DType::f32}) {
      for (Major const a_major : {Major::k, Major::mn}) {
        for (Major const b_major : {Major::k, Major::mn}) {
          GemmProblem p{.in = in,
                        .out = out,
                        .a_major = a_major,
                        .b_major = b_major,
                        .m = 200,
                        .n = 136,
                        .k = 264,
                        .alpha = 0.7f,
                        .beta = 1.3f,
                        .bias = true};
          expect_same_bits(run(gpu, p).d, run(simulated, p).d);
        }
      }
    }
  }
  expect_same_bits(run(gpu, GemmProblem{.m = 67, .n = 61, .k = 333}).d,
                   run(simulated, GemmProblem{.m = 67, .n = 61, .k = 333}).d);
}

// Every configuration of gemm_sm90, over the edges of its tiles and once round its ring; and
// adversarial values.
TEST_F(BitIdentity, OfGemmOnHopper) {
  Machine const gpu = Machine::cuda();
  for (int i = 0; i < static_cast<int>(table().size()); ++i) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    SCOPED_TRACE(to_string(c));
    GemmProblem p = problem_for(c);
    p.m = c.block_m * c.cluster_m + 9, p.n = c.block_n * c.cluster_n + 3, p.k = block_k(c) * 6 + 5;
    p.batch = 2, p.alpha = 0.7f, p.beta = 1.3f, p.bias = true;
    if (bits(c.a) == 8) p.scale_a = 0.3f, p.scale_b = 0.9f;
    Launch const launch{.configuration = i, .clusters = 2};
    expect_same_bits(run(gpu, p, launch).d, run(simulated, p, launch).d, p.out);
    p.a = p.b = p.c = adversarial;
    p.m = 70, p.n = 50, p.k = 80;
    expect_same_bits(run(gpu, p, launch).d, run(simulated, p, launch).d, p.out);
  }
}

// Every configuration of gemm_sm90 with tiles of two widths, on clusters that compute both.
TEST_F(BitIdentity, OfGemmOnHopperInTilesOfTwoWidths) {
  Machine const gpu = Machine::cuda();
  for (int const i : configurations_that(of_two_widths)) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    SCOPED_TRACE(to_string(c));
    for (bool const even : {false, true}) {
      GemmProblem p = fitted_problem(c, even);
      if (!even) p.alpha = 0.7f, p.beta = 1.3f, p.bias = true;
      Launch const launch{.configuration = i, .clusters = 2, .fitted = true};
      expect_same_bits(run(gpu, p, launch).d, run(simulated, p, launch).d, p.out);
    }
  }
}

TEST_F(BitIdentity, OfTheGemmThatIsChosen) {
  Machine const gpu = Machine::cuda();
  for (auto const& [m, n, k] : {std::tuple(64, 512, 1024),
                                {128, 264, 512},
                                {333, 520, 264},
                                {512, 512, 128},
                                {1, 1000, 72}}) {
    for (DType const in : {DType::bf16, DType::f16, DType::tf32, DType::e4m3}) {
      GemmProblem const p{.in = in, .m = m, .n = n, .k = k, .aligned = true};
      expect_same_bits(run(gpu, p).d, run(simulated, p).d, p.out);
    }
  }
}

/// A problem on both machines by a kernel of the family.
void expect_same_attention(FamilyId family, Machine const& gpu, Machine const& simulated,
                           AttentionProblem const& p) {
  AttentionResult const on_gpu = run_on(family, gpu, p), on_machine = run_on(family, simulated, p);
  expect_same_bits(on_gpu.o, on_machine.o);
  expect_same_bits(on_gpu.lse, on_machine.lse);
}

TEST_F(BitIdentity, OfAttention) {
  if (lacks_some(attention_sm80)) GTEST_SKIP() << "this build has not all configurations";
  Machine const gpu = Machine::cuda();
  for (Exponential const e : {Exponential::polynomial, Exponential::ex2_approx}) {
    for (DType const dtype : {DType::f16, DType::bf16}) {
      for (int const head_dim : {32, 64, 96, 128, 256}) {
        for (bool const causal : {false, true}) {
          AttentionProblem const p{.dtype = dtype,
                                   .head_dim = head_dim,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .seq_q = 150,
                                   .seq_k = 203,
                                   .causal = causal,
                                   .exponential = e};
          expect_same_attention(attention_sm80, gpu, simulated, p);
        }
      }
    }
  }
}

TEST_F(BitIdentity, OfAttentionSm90) {
  Machine const gpu = Machine::cuda();
  // bf16 at every head dim; the polynomial and f16 at the smallest.
  for (auto const& [head_dim, dim_v] :
       {std::pair{32, 32}, {64, 64}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}}) {
    for (bool const causal : {false, true}) {
      AttentionProblem p{.head_dim = head_dim,
                         .head_dim_v = dim_v,
                         .heads = 2,
                         .kv_heads = 1,
                         .seq_q = 250,
                         .seq_k = 303,
                         .causal = causal};
      expect_same_attention(attention_sm90, gpu, simulated, p);
      if (head_dim > 64) continue;
      p.exponential = Exponential::polynomial;
      expect_same_attention(attention_sm90, gpu, simulated, p);
      p.exponential = Exponential::ex2_approx;
      p.dtype = DType::f16;
      expect_same_attention(attention_sm90, gpu, simulated, p);
    }
  }
}

// e4m3 at every head dim of a tile; several blocks of keys; factors, windows, softcap and sinks.
TEST_F(BitIdentity, OfAttentionSm90InFp8) {
  Machine const gpu = Machine::cuda();
  for (int const head_dim : {32, 64, 96, 128, 192, 256}) {
    for (bool const causal : {false, true}) {
      AttentionProblem p{.dtype = DType::e4m3,
                         .head_dim = head_dim,
                         .heads = 2,
                         .kv_heads = 1,
                         .seq_q = 250,
                         .seq_k = 777,
                         .causal = causal};
      expect_same_attention(attention_sm90, gpu, simulated, p);
      p.out = DType::f16;
      p.q_descale = {0.7f}, p.k_descale = {1.3f}, p.v_descale = {0.1f};
      expect_same_attention(attention_sm90, gpu, simulated, p);
    }
  }
  AttentionProblem p{.dtype = DType::e4m3,
                     .head_dim = 64,
                     .heads = 2,
                     .kv_heads = 2,
                     .seq_q = 250,
                     .seq_k = 503,
                     .window_left = 170,
                     .window_right = 20};
  expect_same_attention(attention_sm90, gpu, simulated, p);
  p.softcap = 5.0f;
  expect_same_attention(attention_sm90, gpu, simulated, p);
  p.sink = {0.5f, -1.0f};
  expect_same_attention(attention_sm90, gpu, simulated, p);
}

// Every configuration of e4m3, among them those that are not chosen. (Those for serving: below.)
TEST_F(BitIdentity, OfEveryFp8Configuration) {
  Machine const gpu = Machine::cuda();
  for (int i = 0; i < static_cast<int>(configurations(attention_sm90).size()); ++i) {
    AttentionSm90Config const& c = configuration(attention_sm90, i);
    if (c.dtype != DType::e4m3 || c.serving) continue;
    AttentionProblem const p{.dtype = c.dtype,
                             .head_dim = c.head_dim,
                             .head_dim_v = c.head_dim_v,
                             .seq_q = block_m(c) + 5,
                             .seq_k = 3 * c.block_n + 9,
                             .precise = precise_of(c),
                             .exponential = c.exponential};
    AttentionResult const on_gpu = run_on(attention_sm90, gpu, p, i);
    AttentionResult const on_machine = run_on(attention_sm90, simulated, p, i);
    expect_same_bits(on_gpu.o, on_machine.o);
    expect_same_bits(on_gpu.lse, on_machine.lse);
  }
}

TEST_F(BitIdentity, OfWindowsSoftcapAndSinks) {
  Machine const gpu = Machine::cuda();
  AttentionProblem p{
      .heads = 2, .kv_heads = 2, .seq_q = 250, .seq_k = 303, .window_left = 70, .window_right = 20};
  expect_same_attention(attention_sm90, gpu, simulated, p);
  p.softcap = 5.0f;
  expect_same_attention(attention_sm90, gpu, simulated, p);
  p.sink = {0.5f, -1.0f};
  expect_same_attention(attention_sm90, gpu, simulated, p);
}

// Few queries of grouped heads with the keys in parts, sequences of their own lengths, and pages,
// by every configuration for serving that the build has; the device is one on which parts of a tile
// arrive in any order.
TEST_F(BitIdentity, OfAttentionForServing) {
  Machine const gpu = Machine::cuda();
  auto const expect_same = [&](ServingProblem const& p, std::optional<int> configuration = {}) {
    ServingTables const tables(p);
    ServingResult const on_gpu = run(gpu, p, tables, configuration),
                        on_machine = run(simulated, p, tables, configuration);
    expect_same_bits(on_gpu.o, on_machine.o, p.dtype);
    expect_same_bits(on_gpu.lse, on_machine.lse);
    expect_same_bits(on_gpu.k_after, on_machine.k_after, p.dtype);
  };
  int number = 0;
  for (AttentionSm90Config const& c : configurations(attention_sm90)) {
    if (c.serving) {
      SCOPED_TRACE(to_string(c));
      for (int const page_size : {0, 16, 128})
        expect_same({.dtype = c.dtype,
                     .head_dim = c.head_dim,
                     .head_dim_v = c.head_dim_v,
                     .heads = 14,
                     .kv_heads = 2,
                     .queries = {1, 0, 40, 7},
                     .keys = {1000, 40, 300, 0},
                     .packed_q = true,
                     .packed_k = page_size == 0,
                     .page_size = page_size,
                     .causal = true,
                     .splits = 5},
                    number);
    }
    ++number;
  }
  for (int const keys : {1, 128, 5000})
    expect_same({.head_dim = 128,
                 .heads = 64,
                 .kv_heads = 8,
                 .queries = {1, 1},
                 .keys = {keys, keys},
                 .one_length = true,
                 .splits = 16});
  // New keys, appended by a launch that attention's may overlap: a few times.
  for (int const page_size : {0, 16, 64, 16, 64})
    expect_same({.head_dim = 128,
                 .heads = 16,
                 .kv_heads = 2,
                 .queries = {1, 1, 1},
                 .keys = {700, 63, 0},
                 .appended = {1, 1, 1},
                 .page_size = page_size});
}

TEST_F(BitIdentity, OfAttentionOnHugeLogits) {
  if (lacks_some(attention_sm80)) GTEST_SKIP() << "this build has not all configurations";
  Machine const gpu = Machine::cuda();
  AttentionProblem p{.dtype = DType::f16, .head_dim = 64, .seq_q = 150, .seq_k = 500};
  p.q = p.k = [](std::mt19937_64& random) { return 30.0f * normal(random); };
  for (FamilyId const family : {FamilyId(attention_sm80), FamilyId(attention_sm90)}) {
    for (Exponential const e : {Exponential::polynomial, Exponential::ex2_approx}) {
      if (family == FamilyId(attention_sm90)) p.dtype = DType::bf16;  // at hand in every build
      p.exponential = e;
      expect_same_attention(family, gpu, simulated, p);
    }
  }
}

}  // namespace
}  // namespace tegula
