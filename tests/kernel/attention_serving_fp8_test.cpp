// attention_sm90 for serving with a cache of e4m3: in pages and parts, of sequences of their own
// lengths, with factors, and with new keys, of e4m3 or quantised as they are appended. Against
// float64, under the checker; what lies between the sequences holds NaN.

#include "serving_problem.hpp"

namespace tegula {
namespace {

ServingProblem e4m3(ServingProblem p) {
  p.dtype = DType::e4m3;
  return p;
}

TEST(AttentionServingFp8, ComputesKeysInPagesAndParts) {
  Machine const machine = test_machine();
  for (int const page_size : {0, 16, 64, 128}) {
    SCOPED_TRACE(page_size);
    for (int const splits : {1, 3})
      expect_correct(machine, e4m3({.head_dim = 128,
                                    .heads = 8,
                                    .kv_heads = 2,
                                    .queries = {2, 2, 2},
                                    .keys = {300, 1, 128},
                                    .page_size = page_size,
                                    .causal = page_size == 16,
                                    .splits = splits}));
  }
}

TEST(AttentionServingFp8, ComputesSequencesOfTheirOwnLengths) {
  Machine const machine = test_machine();
  for (bool const packed_k : {false, true})
    expect_correct(machine, e4m3({.head_dim = 128,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .queries = {1, 0, 130, 64, 5},
                                  .keys = {300, 20, 131, 1, 0},
                                  .packed_q = true,
                                  .packed_k = packed_k,
                                  .causal = packed_k}));
}

// Without lengths: heads are packed because the queries are few.
TEST(AttentionServingFp8, DecodesKeysOfOneLength) {
  expect_correct(test_machine(), e4m3({.out = DType::f16,
                                       .head_dim = 64,
                                       .heads = 8,
                                       .kv_heads = 1,
                                       .queries = {3, 3},
                                       .keys = {515, 515},
                                       .one_length = true,
                                       .causal = true,
                                       .splits = 3}));
}

TEST(AttentionServingFp8, MultipliesWithFactorsInParts) {
  Machine const machine = test_machine();
  ServingProblem p = e4m3({.head_dim = 128,
                           .heads = 4,
                           .kv_heads = 2,
                           .queries = {2, 2},
                           .keys = {300, 150},
                           .page_size = 32});
  p.q_descale = {0.5f, 1.0f, 0.25f, 2.0f}, p.k_descale = {1.0f, 0.1f, 2.0f, 0.3f},
  p.v_descale = {1.0f, 0x1p10f, 0.0f, -3.0f};
  for (int const splits : {1, 2}) {
    p.splits = splits;
    expect_correct(machine, p);
  }
  p.softcap = 2.0f, p.sink = {0.0f, 3.0f, 1000.0f, -__builtin_inff()}, p.window_left = 170;
  expect_correct(machine, p);
}

TEST(AttentionServingFp8, AppendsNewKeys) {
  Machine const machine = test_machine();
  for (std::optional<DType> const type : {std::optional<DType>(), {DType::bf16}, {DType::f16}}) {
    for (int const page_size : {0, 16}) {
      ServingProblem p = e4m3({.new_dtype = type,
                               .head_dim = 128,
                               .heads = 4,
                               .kv_heads = 2,
                               .queries = {1, 1},
                               .keys = {150, 0},
                               .appended = {2, 1},
                               .packed_new = true,
                               .page_size = page_size,
                               .splits = 2});
      expect_correct(machine, p);
      p.k_descale = {0.5f, 0.1f, 3.0f, 1.0f}, p.v_descale = {0x1p-10f, 0.3f, -1.0f, 2.0f};
      expect_correct(machine, p);
      p.k_descale = {0.25f}, p.v_descale = {0.7f};
      expect_correct(machine, p);
    }
  }
}

}  // namespace
}  // namespace tegula
