// `tegula attention`, run whole on the simulated machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernel_commands.hpp"
#include "scratch.hpp"
#include "tegula/io/files.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula {
namespace {

using nlohmann::json;
using tegula::testing::Outcome;
using tegula::testing::run;
using tegula::testing::run_json;
using tegula::testing::Scratch;
using ::testing::HasSubstr;

TEST(AttentionCommand, ComputesGeneratedProblems) {
  for (
      std::string const form :
      {"--seq-q 70 --head-dim 32",
       "--batch 2 --heads 4 --kv-heads 2 --seq-q 20 --seq-k 50 --causal --head-dim 64 --dtype f16",
       "--seq-q 50 --seq-k 20 --causal --head-dim 128 --layout bhsd --heads 2 --exponential polynomial",
       "--seq-q 33 --head-dim 128 --scale 2",
       "--seq-q 17 --head-dim 256 --arch sm80 --scheduler random"}) {
    json const result = run_json("attention " + form);
    EXPECT_TRUE(result["within_bound"]) << form << result;
    EXPECT_GT(result["O"]["max_error"], 0.0);
    EXPECT_GT(result["report"]["total"]["fused_multiply_adds"], 0);
  }
}

TEST(AttentionCommand, ComputesWindowsSoftcapAndHeadDimsOfTheirOwn) {
  std::string const problem = "attention --heads 2 --seq-q 40 --seq-k 70 ";
  for (std::string const form :
       {"--head-dim 72 --head-dim-v 40 --causal --window-left 16", "--head-dim 40 --head-dim-v 120",
        "--window-left 9 --window-right 4 --softcap 5 --layout bhsd", "--kernel sm90",
        "--kernel sm80"}) {
    json const result = run_json(problem + form);
    EXPECT_TRUE(result["within_bound"]) << form << result;
    EXPECT_GT(result["O"]["max_error"], 0.0);
  }
  json const result =
      run_json(problem + "--head-dim 16 --head-dim-v 24 --window-left 3 --window-right 1");
  EXPECT_EQ(result["head_dim_v"], 24);
  EXPECT_EQ(result["window_left"], 3);
  EXPECT_EQ(result["window_right"], 1);
  // The last query stands at the last key: 40 queries of 5 keys, but for the last, which has none
  // behind it.
  double const flops = 2.0 * 2 * (40 * 5 - 1) * (16 + 24);
  double const counted = static_cast<double>(result["flops_per_second"]) *
                         static_cast<double>(result["milliseconds"]) * 1e-3;
  EXPECT_NEAR(counted, flops, 1e-6 * flops);
}

TEST(AttentionCommand, ReadsASinkForEachHead) {
  Scratch const scratch;
  std::string const sink = scratch.path("sink.npy");
  io::write_array(sink, io::array_of(io::ElementType::f32, {3}, std::vector<float>{0.5f, -1, 40}));
  auto const lse_of = [&](std::string const& options) {
    std::string const file = scratch.path("lse.npy");
    json const result =
        run_json("attention --heads 3 --seq-q 20 --head-dim 64 --lse " + file + options);
    EXPECT_TRUE(result["within_bound"]) << result;
    EXPECT_EQ(result["sink"], !options.empty());
    EXPECT_EQ(result["heads"], 3);
    return io::read_array(file).as<float>();
  };
  auto const without = lse_of(""), with = lse_of(" --sink " + sink);
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_GT(with[i], without[i]);
  EXPECT_NEAR(with.back(), 40, 1e-4) << "a score of 40 outweighs 20 of less than 8";
  EXPECT_EQ(run_json("attention --seq-q 20 --sink " + sink + " --explain")["heads"], 3);
}

TEST(AttentionCommand, ExplainsItsChoice) {
  std::string const problem = "attention --seq-q 500 --heads 4 --head-dim 64 ";
  json const plan = run_json(problem + "--explain");
  json const chosen = plan["chosen"];
  EXPECT_EQ(chosen["kernel"], "attention_sm90");
  EXPECT_EQ(chosen, plan["candidates"][0]);
  EXPECT_EQ(run_json(problem)["configuration"]["name"], chosen["name"]);
  std::set<std::string> refusals;
  for (json const& candidate : plan["candidates"]) {
    ASSERT_NE(candidate.contains("cost"), candidate.contains("refused")) << candidate;
    if (candidate.contains("refused")) {
      refusals.insert(candidate["refused"]);
    } else {
      EXPECT_GE(candidate["cost"], chosen["cost"]);
    }
  }
  EXPECT_THAT(refusals, ::testing::IsSupersetOf({"another type", "another mask",
                                                 "another head dimension", "another exponential",
                                                 "attention_sm90 computes the problem"}));

  json const other = plan["candidates"][1];  // of more columns than the problem has
  ASSERT_TRUE(other.contains("cost"));
  std::string const config = std::to_string(static_cast<int>(other["index"]));
  EXPECT_EQ(run_json(problem + "--explain --config " + config)["chosen"], other);
  json const result = run_json(problem + "--config " + config);
  EXPECT_TRUE(result["within_bound"]);
  EXPECT_EQ(result["configuration"]["name"], other["name"]);
  EXPECT_EQ(run_json(problem + "--explain --kernel sm80")["chosen"]["kernel"], "attention_sm80");

  EXPECT_THAT(run_json(problem + "--explain --arch sm80")["reason"].get<std::string>(),
              HasSubstr("attention_sm90 is ruled out: the device is sm_80"));
  EXPECT_THAT(run(problem + "--device sim --explain").output,
              HasSubstr(" refused: another mask\n"));
  EXPECT_THAT(
      run(problem + "--device sim --explain --lines").output,
      ::testing::ContainsRegex("not [0-9]+: attention_sm80 f16 d64 [^\n]*: another type\n"));
}

TEST(AttentionCommand, ReadsAndWritesFilesInEitherLayout) {
  Scratch const scratch;
  constexpr int heads = 2, seq = 10, dim = 32;
  std::mt19937 random(4);
  std::vector<half> q(heads * seq * dim);
  for (auto& v : q) v = to_half(static_cast<float>(random() % 1000) / 500 - 1);
  std::vector<half> by_head(q.size());
  for (int h = 0; h < heads; ++h)
    for (int s = 0; s < seq; ++s)
      for (int d = 0; d < dim; ++d)
        by_head[static_cast<std::size_t>((h * seq + s) * dim + d)] =
            q[static_cast<std::size_t>((s * heads + h) * dim + d)];
  io::write_array(scratch.path("bshd.npy"),
                  io::array_of(io::ElementType::f16, {seq, heads, dim}, q));
  io::write_array(scratch.path("bhsd.npy"),
                  io::array_of(io::ElementType::f16, {1, heads, seq, dim}, by_head));
  for (std::string const layout : {"bshd", "bhsd"}) {
    std::string const file = scratch.path(layout + ".npy");
    json const result =
        run_json("attention --q " + file + " --k " + file + " --v " + file + " --layout " + layout +
                 " --output " + scratch.path("o-" + layout + ".npy") + " --lse " +
                 scratch.path("lse-" + layout + ".npy"));
    EXPECT_TRUE(result["within_bound"]);
    EXPECT_EQ(result["dtype"], "f16");
  }
  auto const o = io::read_array(scratch.path("o-bshd.npy")).as<half>(),
             o_by_head = io::read_array(scratch.path("o-bhsd.npy")).as<half>();
  for (int h = 0; h < heads; ++h)
    for (int s = 0; s < seq; ++s)
      for (int d = 0; d < dim; ++d)
        EXPECT_EQ(o[static_cast<std::size_t>((s * heads + h) * dim + d)].bits,
                  o_by_head[static_cast<std::size_t>((h * seq + s) * dim + d)].bits);
  EXPECT_EQ(io::read_array(scratch.path("lse-bshd.npy")).data,
            io::read_array(scratch.path("lse-bhsd.npy")).data);
  EXPECT_EQ(io::read_array(scratch.path("lse-bshd.npy")).shape,
            (std::vector<std::int64_t>{1, heads, seq}));
}

}  // namespace
}  // namespace tegula
