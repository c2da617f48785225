// The Hopper attention kernel with heads that share keys packed into tiles of sequences of one
// length: against float64, whatever number of heads is packed, over ragged sizes, masks, softcaps,
// sinks and strides; the same bits as with one head's rows; and clean at every schedule.

#include "attention_problem.hpp"
#include "families/attention_sm90.hpp"
#include "schedules.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

using Traits = device::FamilyTraits<AttentionSm90Family>;

/// Runs a problem by a configuration whose tiles pack `group` heads, whether or not it pays.
AttentionResult run_packed(Machine const& machine, AttentionProblem const& p, int configuration,
                           int group) {
  return run_by(machine, p, [&](AttentionArguments const& a) {
    auto const& c = tegula::configuration(attention_sm90, configuration);
    launch_kernel(machine, attention_sm90, configuration, Traits::lower(machine, a, c, group));
  });
}

AttentionResult expect_packed_correct(Machine const& machine, AttentionProblem const& p,
                                      int configuration, int group) {
  SCOPED_TRACE(testing::Message() << "configuration " << configuration << ", " << group
                                  << " heads packed");
  AttentionResult r = run_packed(machine, p, configuration, group);
  expect_near(p, r, reference::attention(r.host, rows_of(p)));
  return r;
}

/// Calls f(number, configuration) for those of the build that are not for serving.
template <class F> void for_dense(F f) {
  for (int i = 0; i < static_cast<int>(configurations(attention_sm90).size()); ++i)
    if (AttentionSm90Config const& c = configuration(attention_sm90, i); !c.serving) f(i, c);
}

AttentionProblem problem_of(AttentionSm90Config const& c) {
  return {.dtype = c.dtype,
          .head_dim = c.head_dim,
          .head_dim_v = c.head_dim_v,
          .precise = precise_of(c),
          .exponential = c.exponential};
}

/// With the mask of that number, and what is done to scores.
AttentionProblem with_mask(AttentionProblem p, int number) {
  p.causal = number % 5 == 1 || number % 5 == 3;
  if (number % 5 == 2) p.window_left = 40, p.window_right = 9;
  if (number % 5 == 3) p.softcap = 2.0f;
  if (number % 5 >= 3)
    for (int head = 0; head < p.heads; ++head)
      p.sink.push_back(static_cast<float>(head % 7) - 3.0f);
  return p;
}

// Groups that divide a consumer's rows and such that leave some of them to nobody, alone and beside
// others that share the same keys; the last positions within a consumer, and within a tile.
TEST(AttentionSm90Packed, IsCorrectForEveryGroupAndRaggedRows) {
  Machine const machine = test_machine();
  int number = 0;
  for_dense([&](int i, AttentionSm90Config const& c) {
    if (c.head_dim != 64 || c.exponential != Exponential::ex2_approx) return;
    for (int const group : {2, 3, 4, 7, 8, 12}) {
      for (int const seq_q : {1, 63, 64, 65, 92, 155}) {
        if (!chosen(number++ / 5, 2)) continue;  // every length, of some groups
        AttentionProblem p = problem_of(c);
        p.batch = 1 + number % 2, p.kv_heads = group < 7 ? 2 : 1;
        p.heads = group * (group < 4 ? 4 : p.kv_heads);
        p.seq_q = seq_q, p.seq_k = number % 3 == 0 ? seq_q : 150;
        p.head_major = number % 4 == 1, p.padding = number % 3 == 2 ? 16 : 0;
        p.seed = static_cast<std::uint64_t>(number) + 1;
        expect_packed_correct(machine, with_mask(p, number), i, group);
      }
    }
    ++number;  // the next configuration has another mask for the same rows
  });
  EXPECT_GE(number, 3 * 37) << "bf16, f16 and e4m3";
}

// The rows of Q that no load writes are cleared in tiles of every shape.
TEST(AttentionSm90Packed, IsCorrectInEveryConfiguration) {
  Machine const machine = test_machine();
  for_dense([&](int i, AttentionSm90Config const& c) {
    AttentionProblem p = problem_of(c);
    p.heads = 6, p.kv_heads = 2, p.seq_q = 21 * c.consumers + 5, p.seq_k = c.block_n + 9;
    p.causal = i % 2 == 0;
    expect_packed_correct(machine, p, i, 3);
  });
}

TEST(AttentionSm90Packed, MultipliesWithFactorsOfHeadsOfKeys) {
  for_dense([&](int i, AttentionSm90Config const& c) {
    if (c.dtype != DType::e4m3 || c.head_dim != 64) return;
    AttentionProblem p = problem_of(c);
    p.batch = 2, p.heads = 12, p.kv_heads = 2, p.seq_q = 40, p.seq_k = 130;
    p.q_descale = {0.5f, 1.0f, 0.25f, 2.0f}, p.k_descale = {1.0f, 0.1f, 2.0f, 0.3f},
    p.v_descale = {1.0f, 0x1p10f, 0.0f, -3.0f};
    for (int const group : {2, 3, 6}) expect_packed_correct(test_machine(), p, i, group);
  });
}

// Without a mask a row's keys come in the same blocks however heads are packed.
TEST(AttentionSm90Packed, HasTheBitsOfOneHeadsRows) {
  Machine const machine = test_machine();
  for_dense([&](int i, AttentionSm90Config const& c) {
    if (c.head_dim > 128) return;
    AttentionProblem p = problem_of(c);
    p.heads = 12, p.kv_heads = 1, p.seq_q = 35, p.seq_k = 2 * c.block_n + 9;
    AttentionResult const alone = run_packed(machine, p, i, 1);
    for (int const group : {4, 12}) {
      AttentionResult const packed = run_packed(machine, p, i, group);
      EXPECT_EQ(alone.o, packed.o) << to_string(c) << ", " << group << " heads packed";
      EXPECT_EQ(alone.lse, packed.lse) << to_string(c) << ", " << group << " heads packed";
    }
  });
}

TEST(AttentionSm90Packed, GivesZeroAndMinusInfinityToRowsThatSeeNoKey) {
  AttentionProblem const p{.heads = 7, .kv_heads = 1, .seq_q = 90, .seq_k = 3, .causal = true};
  AttentionChoice const choice =
      choose_attention({.heads = 7, .kv_heads = 1, .seq_q = 90, .seq_k = 3, .head_dim = 64},
                       test_machine().properties(), {.kernel = attention_sm90});
  AttentionResult const r = expect_packed_correct(test_machine(), p, choice.configuration, 7);
  for (int head = 0; head < p.heads; ++head)
    EXPECT_EQ(r.lse[static_cast<std::size_t>(head * p.seq_q)], -__builtin_inff());
}

// Chosen, not forced: tiles that are dealt out dynamically to few CTAs.
TEST(AttentionSm90Packed, IsTheSameFromRunToRunAndAtEverySchedule) {
  for (DType const dtype : {DType::bf16, DType::e4m3}) {
    AttentionProblem const p{.dtype = dtype,
                             .batch = 2,
                             .heads = 6,
                             .kv_heads = 2,
                             .seq_q = 68,
                             .seq_k = 200,
                             .causal = true};
    std::optional<AttentionResult> first;
    for (sim::Options options : every_schedule(2)) {
      options.multiprocessors = 2;
      Machine const machine = Machine::simulated(Arch::sm90, options);
      AttentionResult const r = run_by(machine, p, [&](AttentionArguments const& a) {
        AttentionChoice const choice =
            choose_attention(a, machine.properties(), {.kernel = attention_sm90});
        EXPECT_EQ(
            Traits::group(with_defaults(a), configuration(attention_sm90, choice.configuration),
                          machine.properties()),
            3);
        attention(machine, a, choice);
      });
      if (!first) {
        expect_near(p, r, reference::attention(r.host, rows_of(p)));
        first = r;
      }
      EXPECT_EQ(first->o, r.o) << schedule_text(options);
      EXPECT_EQ(first->lse, r.lse) << schedule_text(options);
    }
  }
}

}  // namespace
}  // namespace tegula
