// The choice of an attention configuration, over many problems: always one that can
// compute the problem, and the same for the same arguments; and what the tables hold. (Of
// GEMMs: gemm_plan_test.cpp.)

#include "tegula/device/selection.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "addresses.hpp"
#include "families/attention_serving.hpp"
#include "families/attention_sm90.hpp"
#include "families/attention_tensors.hpp"
#include "problem.hpp"
#include "scratch.hpp"
#include "tegula/device/attention_plan.hpp"
#include "tegula/device/launch.hpp"

namespace tegula {
namespace {

constexpr DeviceProperties kDevice = properties_of(sim::Generation::sm90);

using tegula::testing::at;
using tegula::testing::message_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kLengths[] = {1, 7, 8, 64, 100, 127, 128, 129, 1000, 4096, 100000};

TEST(Selection, FindsAnAttentionConfigurationForEveryCheckedProblem) {
  std::set<int> chosen;
  for (DType const dtype : {DType::f16, DType::bf16})
    for (int const head_dim : {32, 64, 96, 128, 256})
      for (bool const causal : {false, true})
        for (Exponential const exponential : {Exponential::ex2_approx, Exponential::polynomial})
          for (auto const seq_q : kLengths)
            for (auto const seq_k : kLengths) {
              AttentionArguments const a = {.dtype = dtype,
                                            .q = at(0x1000),
                                            .k = at(std::uintptr_t{1} << 44),
                                            .v = at(std::uintptr_t{2} << 44),
                                            .o = at(std::uintptr_t{3} << 44),
                                            .heads = 3,
                                            .seq_q = seq_q,
                                            .seq_k = seq_k,
                                            .head_dim = head_dim,
                                            .causal = causal,
                                            .exponential = exponential};
              check(a, 90);
              // attention_sm90 has the polynomial for bf16 alone, to head dim 128.
              FamilyId expected = attention_sm90;
              if (exponential == Exponential::polynomial && (dtype == DType::f16 || head_dim > 128))
                expected = attention_sm80;
              EXPECT_EQ(choose_attention(a, kDevice).kernel, expected);
              AttentionChoice const choice =
                  choose_attention(a, kDevice, {.kernel = attention_sm80});
              ASSERT_EQ(choice.kernel, attention_sm80);
              AttentionConfig const& c = configuration(attention_sm80, choice.configuration);
              EXPECT_EQ(c.dtype, dtype);
              EXPECT_EQ(c.head_dim, head_dim);
              EXPECT_EQ(c.causal, causal);
              EXPECT_EQ(c.exponential, exponential);
              chosen.insert(choice.configuration);
            }
  EXPECT_GE(chosen.size(), 40u) << "each combination has a configuration of its own";
}

TEST(Selection, GroupsCausalHeadsByWhatL2Serves) {
  auto const group = [](auto&& change) {
    AttentionArguments a = {.dtype = DType::f16,
                            .batch = 4,
                            .heads = 16,
                            .seq_q = 4096,
                            .head_dim = 128,
                            .causal = true};
    change(a);
    return attention_heads_per_l2_group(a);
  };
  EXPECT_EQ(group([](auto&) {}), 32) << "2 MiB of K and V for each head";
  EXPECT_EQ(group([](auto& a) { a.causal = false; }), 1);
  EXPECT_EQ(group([](auto& a) { a.kv_heads = 8; }), 64) << "two heads share K and V";
  EXPECT_EQ(group([](auto& a) { a.seq_k = 100; }), 64) << "no more than there are";
  EXPECT_EQ(group([](auto& a) { a.seq_k = kMaxExtent; }), 1) << "no less than one";
}

/// One query of 64 heads that share 8, or those of sequences with lengths of their own.
AttentionArguments decoding(std::int64_t batch, std::int64_t seq_k) {
  return {.q = at(0x1000),
          .k = at(std::uintptr_t{1} << 44),
          .v = at(std::uintptr_t{2} << 44),
          .o = at(std::uintptr_t{3} << 44),
          .batch = batch,
          .heads = 64,
          .kv_heads = 8,
          .seq_q = 1,
          .seq_k = seq_k,
          .head_dim = 128};
}

TEST(Selection, KeysAreComputedInAsManyPartsAsAreAskedForOrRefused) {
  auto const refusal = [](AttentionArguments const& a, DeviceProperties const& device,
                          AttentionConstraints const& wanted = {}) {
    try {
      return configuration_name(choose_attention(a, device, wanted).kernel,
                                choose_attention(a, device, wanted).configuration);
    } catch (argument_error const& error) {
      return std::string(error.what());
    }
  };
  AttentionArguments a = decoding(1, 8192);
  a.splits = 3;
  std::int64_t const bytes = attention_workspace_bytes(a, kDevice);
  EXPECT_THAT(refusal(a, kDevice),
              HasSubstr(fmt::format(
                  "splits is 3 and workspace_bytes is 0; so many parts need {} bytes.", bytes)));
  a.workspace_bytes = bytes - 1;
  EXPECT_THAT(refusal(a, kDevice), HasSubstr("so many parts need"));
  a.workspace_bytes = bytes;
  EXPECT_THAT(refusal(a, kDevice), HasSubstr("serving"));
  EXPECT_THAT(refusal(a, kDevice, {.kernel = attention_sm80}),
              HasSubstr("splits is 3, and no configuration that is asked for"));
  DeviceProperties ampere = kDevice;
  ampere.compute_capability = 80;
  EXPECT_THAT(refusal(a, ampere), HasSubstr("no configuration of this build computes the keys of "
                                            "this problem on an sm_80 in so many parts"));
  // There are too few counters of arrivals for so many parts of so many tiles.
  AttentionArguments many = decoding(64, 8192);
  many.splits = 60, many.workspace_bytes = std::int64_t{1} << 40;
  EXPECT_THAT(refusal(many, kDevice), HasSubstr("in so many parts; say fewer"));
  many.splits = 2;
  EXPECT_THAT(refusal(many, kDevice), HasSubstr("serving"));
}

TEST(Selection, PacksHeadsAndSplitsTheKeysOfFewQueries) {
  auto const reason = [](AttentionArguments a) {
    a.workspace_bytes = attention_workspace_bytes(a, kDevice);
    AttentionPlan const plan = plan_attention(a, kDevice);
    EXPECT_TRUE(configuration(attention_sm90, plan.chosen().configuration).serving);
    return plan.reason;
  };
  EXPECT_THAT(reason(decoding(1, 8192)),
              HasSubstr("8 tiles of 8 x 8 heads and positions for each consumer, 64 blocks of keys "
                        "in 16 parts of 4"));
  EXPECT_THAT(reason(decoding(4, 131072)), HasSubstr("1024 blocks of keys in 4 parts of 256"));
  EXPECT_THAT(reason(decoding(64, 8192)), HasSubstr("512 tiles"));
  EXPECT_EQ(attention_workspace_bytes(decoding(64, 8192), kDevice), 0) << "tiles enough";
  EXPECT_THAT(plan_attention(decoding(1, 8192), kDevice).reason, HasSubstr(", 64 blocks of keys;"))
      << "without a workspace one part";
  AttentionArguments window = decoding(1, 1 << 20);
  window.window_left = 300, window.window_right = 0;
  EXPECT_THAT(reason(window), HasSubstr(" 4 blocks of keys"));
  AttentionArguments asked = decoding(1, 8192);
  asked.splits = 3;
  EXPECT_THAT(reason(asked), HasSubstr("in 3 parts of 22"));
  asked.splits = 100;
  EXPECT_THAT(reason(asked), HasSubstr("in 64 parts of 1")) << "as many as there are blocks";

  AttentionArguments uneven = decoding(32, 32768);
  EXPECT_EQ(attention_workspace_bytes(uneven, kDevice), 0) << "tiles enough, of one length";
  uneven.seqused_k = at<std::int32_t>(0x2000);
  EXPECT_THAT(reason(uneven), HasSubstr("256 blocks of keys in 16 parts of 16"))
      << "the longest sequence may be a small part of all of them, and is not to come last";

  AttentionArguments many = decoding(1, 8192);
  many.seq_q = 4096;
  EXPECT_FALSE(
      configuration(attention_sm90, choose_attention(many, kDevice).configuration).serving);
  many.seqused_k = at<std::int32_t>(0x2000);
  AttentionSm90Config const chosen =
      configuration(attention_sm90, choose_attention(many, kDevice).configuration);
  EXPECT_TRUE(chosen.serving);
  EXPECT_EQ(chosen.consumers, 2) << "tiles are full";
}

using DenseTraits = device::FamilyTraits<AttentionSm90Family>;

/// Sequences of as many queries as keys.
AttentionArguments dense(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t seq, std::int64_t head_dim, bool causal = false) {
  AttentionArguments a = decoding(batch, seq);
  a.heads = heads, a.kv_heads = kv_heads, a.seq_q = seq, a.head_dim = head_dim, a.causal = causal;
  return a;
}

/// Heads that the tiles of the configuration pack which is chosen.
int packed_heads(AttentionArguments const& a) {
  AttentionSm90Config const c =
      configuration(attention_sm90, choose_attention(a, kDevice).configuration);
  EXPECT_FALSE(c.serving);
  return DenseTraits::group(with_defaults(a), c, kDevice);
}

TEST(Selection, PacksHeadsOfDenseProblemsWhereThatPays) {
  AttentionArguments const short_ones = dense(21, 24, 2, 92, 64);
  EXPECT_EQ(packed_heads(short_ones), 2) << "of 192 rows 92 would be used, and so 184";
  EXPECT_THAT(plan_attention(short_ones, kDevice).reason,
              HasSubstr("252 tiles of 2 x 32 heads and positions for each consumer"));
  EXPECT_EQ(packed_heads(dense(32, 24, 2, 710, 128, /*causal=*/true)), 4)
      << "narrow tiles waste less of the diagonal";
  EXPECT_EQ(packed_heads(dense(1, 32, 8, 31040, 64)), 1) << "tiles are full";
  EXPECT_THAT(plan_attention(dense(1, 32, 8, 31040, 64), kDevice).reason,
              ::testing::Not(HasSubstr("positions")));
}

TEST(Selection, PacksADivisorOfTheHeadsThatShareKeys) {
  for (std::int64_t const head_dim : {64, 128, 256})
    for (bool const causal : {false, true})
      for (std::int64_t const seq : {40, 92, 155, 300, 770})
        for (std::int64_t const sharing : {1, 2, 5, 7, 12, 72}) {
          int const group = packed_heads(dense(64, 2 * sharing, 2, seq, head_dim, causal));
          EXPECT_EQ(sharing % group, 0);
          EXPECT_LE(group, kAttentionConsumerRows);
        }
}

TEST(Selection, PacksNoHeadsThatTmaCannotAddress) {
  AttentionArguments a = dense(21, 24, 2, 92, 64);
  // Twelve heads are 2^40 bytes and more apart, six are not.
  a.q_stride = TokenStrides{64, 24 * 64, (std::int64_t{1} << 39) / 12 + 8};
  EXPECT_TRUE(device::can_pack(with_defaults(a), 6));
  EXPECT_FALSE(device::can_pack(with_defaults(a), 12)) << "there are two groups of them";
  a.q_stride->head = (std::int64_t{1} << 39) - 8;
  EXPECT_FALSE(device::can_pack(with_defaults(a), 2));
  EXPECT_EQ(DenseTraits::group(with_defaults(a), AttentionSm90Family::table[0], kDevice), 1);
}

// The sum in closed form against the tiles one by one, or, where the mask has them see ever more
// keys, against the consumers.
TEST(Selection, CountsTheBlocksOfKeysOfAllTiles) {
  std::mt19937 random(1);
  auto const up_to = [&](int most) { return static_cast<std::int64_t>(random() % most) + 1; };
  for (int i = 0; i < 2000; ++i) {
    PackedHeads const packed(static_cast<int>(up_to(64)), 64);
    AttentionArguments a = dense(1, packed.group, 1, up_to(1000), 64, i % 3 == 1);
    a.seq_k = up_to(1000);
    if (i % 3 == 2 || i % 5 == 0) a.window_left = up_to(600) - 1;
    if (i % 3 == 2) a.window_right = up_to(600) - 1;
    a = with_defaults(a);
    AttentionMask const mask = device::mask_of(a);
    int const consumers = 1 + i % 3, block_n = 16 * static_cast<int>(up_to(10)),
              positions = (device::grows(mask) ? 1 : consumers) * packed.positions;
    int blocks = 0, tiles = 0;
    for (int first = 0; first < a.seq_q; first += positions, ++tiles)
      if (KeyBlocks const of_tile = key_blocks(mask, first, positions, block_n); !of_tile.empty())
        blocks += of_tile.last - of_tile.first;
    device::AttentionRounds const all =
        device::attention_rounds(a, consumers, packed, block_n, kDevice);
    EXPECT_DOUBLE_EQ(all.key_blocks, static_cast<double>(blocks) / tiles)
        << a.seq_q << " queries, " << *a.seq_k << " keys, " << positions << " positions, blocks of "
        << block_n;
  }
}

TEST(Selection, NeverTakesMoreWorkspaceThanThereIs) {
  for (std::int64_t const batch : {1, 3, 16})
    for (std::int64_t const seq_k : {100, 5000, 100000}) {
      AttentionArguments a = decoding(batch, seq_k);
      std::int64_t const best = attention_workspace_bytes(a, kDevice);
      for (std::int64_t const bytes : {best, best / 2, best / 7, std::int64_t{1000}}) {
        a.workspace_bytes = bytes;
        AttentionSm90Config const c =
            configuration(attention_sm90, choose_attention(a, kDevice).configuration);
        device::AttentionShares const shares =
            device::attention_shares(a, device::serving_tile(c), kDevice);
        EXPECT_LE(device::partial_bytes(a, device::serving_tile(c), shares), bytes);
        if (shares.parts > 1) {
          EXPECT_LE(shares.items() * c.consumers, device::kMostArrivals);
        }
      }
    }
}

// A configuration that no problem is given to costs its compilation for nothing.
TEST(Selection, GivesEveryConfigurationOfAttentionOnHopperSomeProblem) {
  std::set<int> chosen;
  for (DType const dtype : {DType::f16, DType::bf16, DType::e4m3})
    for (auto const& [dim, dim_v] :
         {std::pair{64, 64}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}, {576, 512}})
      for (Exponential const exponential : {Exponential::ex2_approx, Exponential::polynomial})
        for (bool const precise : {false, true})
          for (bool const lengths : {false, true})
            for (auto const& [seq_q, seq_k] : {std::pair{1, 8192},
                                               {100, 8192},
                                               {1000, 8192},
                                               {8192, 8192},
                                               {192, 192},
                                               {256, 256}})
              for (std::int64_t const batch : {1, 16}) {
                AttentionArguments a = {.dtype = dtype,
                                        .batch = batch,
                                        .heads = 32,
                                        .kv_heads = dim == 576 ? 1 : 8,
                                        .seq_q = seq_q,
                                        .seq_k = seq_k,
                                        .head_dim = dim,
                                        .head_dim_v = dim_v,
                                        .exponential = exponential};
                if (dtype == DType::e4m3) a.precise = precise;
                if (lengths) a.seqused_k = at<std::int32_t>(0x2000);
                try {
                  AttentionChoice const choice = choose_attention(a, kDevice);
                  if (choice.kernel == attention_sm90) chosen.insert(choice.configuration);
                } catch (argument_error const&) {  // this form of it is not computed
                }
              }
  for (int i = 0; i < AttentionSm90Family::table.count; ++i)
    EXPECT_TRUE(chosen.count(i)) << to_string(configuration(attention_sm90, i));
  EXPECT_LE(AttentionSm90Family::table.count, 40);
}

TEST(Selection, SaysWhatTheTableLacks) {
  AttentionArguments const a = {.dtype = DType::f16, .seq_q = 1, .head_dim = 96, .causal = true};
  DeviceProperties tiny = kDevice;
  tiny.shared_bytes = 1024;
  EXPECT_THAT(message_of<argument_error>([&] { choose_attention(a, tiny); }),
              HasSubstr("1 query, 1 key, head_dim 96, causal, ex2_approx"));
}

TEST(Selection, PrintsEveryConfigurationDifferently) {
  std::set<std::string> names;
  Families::for_each([&](auto family) {
    for (int i = 0; i < static_cast<int>(configurations(family).size()); ++i) {
      std::string const name = configuration_name(family, i);
      EXPECT_THAT(name, StartsWith(fmt::format("{} ", family.name)));
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  });
  EXPECT_EQ(to_string(GemmConfig{.in = DType::f16, .out = DType::f32, .b_major = Major::mn}),
            "gemm_sm80 f16->f32 A:k B:mn 128x128x32 2x2 warps 3 stages 16-byte");
  EXPECT_EQ(to_string(AttentionConfig{.dtype = DType::f16, .causal = true}),
            "attention_sm80 f16 d64 128x64 4 warps 2 stages causal ex2_approx");
  EXPECT_EQ(
      to_string(GemmSm90Config{.a = DType::e4m3,
                               .b = DType::e5m2,
                               .out = DType::f32,
                               .block_n = 128,
                               .cluster_n = 2,
                               .activates = true}),
      "gemm_sm90 e4m3xe5m2->f32 A:k B:k 128x128x128 cooperative cluster 1x2 activation 6 stages");
  EXPECT_EQ(to_string(GemmSm90Config{.b_major = Major::mn,
                                     .block_m = 64,
                                     .block_n = 128,
                                     .schedule = Schedule::basic,
                                     .split_k = 2}),
            "gemm_sm90 bf16->bf16 A:k B:mn 64x128x64 basic split-k 2 8 stages");
}

/// What the chosen kernel asks for, of which the GEMMs' barriers on Hopper are not counted.
std::size_t shared_bytes_of(FamilyId kernel, int number) {
  int bytes = 0;
  kernel.visit([&](auto family) {
    auto const& c = configuration(family, number);
    if constexpr (requires { shared_bytes(c); }) {
      bytes = shared_bytes(c);
    } else if constexpr (requires { stages(c); }) {
      bytes = stages(c) * stage_bytes(c);
      if constexpr (requires { epilogue_bytes(c); }) bytes += epilogue_bytes(c);
    }
  });
  return static_cast<std::size_t>(bytes);
}

TEST(Selection, KeepsToTheSharedMemoryOfTheDevice) {
  constexpr DeviceProperties kA10{
      .compute_capability = 86, .multiprocessors = 72, .shared_bytes = 99 * 1024};
  for (DeviceProperties const& device : {properties_of(sim::Generation::sm80), kA10, kDevice}) {
    for (int const head_dim : {32, 64, 96, 128, 256}) {
      AttentionArguments const a{.seq_q = 1000, .head_dim = head_dim};
      if (device.compute_capability == 86 && head_dim > 128) {
        EXPECT_THROW(choose_attention(a, device), argument_error);
      } else {
        AttentionChoice const chosen = choose_attention(a, device);
        EXPECT_LE(shared_bytes_of(chosen.kernel, chosen.configuration), device.shared_bytes);
      }
    }
    GemmArguments const g = {
        .m = 8192, .n = 8192, .k = 8192, .a = at(0x1000), .b = at(0x2000), .d = at(0x3000)};
    GemmChoice const chosen = choose_gemm(g, device);
    EXPECT_EQ(chosen.kernel, device.compute_capability == 90 ? FamilyId(gemm_sm90) : gemm_sm80);
    EXPECT_LE(shared_bytes_of(chosen.kernel, chosen.configuration), device.shared_bytes);
  }
}

}  // namespace
}  // namespace tegula
