// `tegula gemm`, run whole on the simulated machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel_commands.hpp"
#include "scratch.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/safetensors.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula {
namespace {

using nlohmann::json;
using tegula::testing::kUneven;
using tegula::testing::Outcome;
using tegula::testing::run;
using tegula::testing::run_json;
using tegula::testing::Scratch;
using ::testing::HasSubstr;

TEST(GemmCommand, ComputesGeneratedProblemsOfEveryForm) {
  for (std::string const form :
       {"", "--trans-a", "--trans-b", "--trans-a --trans-b", "--beta 0.5 --alpha -2"})
    for (std::string const type : {"f16 --out-type f32", "bf16"}) {
      json const result = run_json("gemm --m 70 --n 45 --k 33 " + form + " --dtype " + type);
      EXPECT_TRUE(result["within_bound"]) << form << type;
      EXPECT_EQ(result["m"], 70);
      EXPECT_EQ(result["rows_checked"], 70);
      EXPECT_GT(result["D"]["max_error"], 0.0) << "rounding leaves an error in some element";
      EXPECT_LE(result["D"]["max_error_over_bound"], 1.0);
      EXPECT_EQ(result["machine"], "simulated sm_90");
      EXPECT_GE(result["report"]["total"]["fused_multiply_adds"], 70 * 45 * 33);
      EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr("2-byte"))
          << "33 and 45 rule out 16-byte copies";
    }
}

TEST(GemmCommand, ComputesEveryTypeBatchAndActivation) {
  struct Form {
    char const *options, *configuration;
  };
  for (auto const& [options, configuration] :
       {Form{"--in tf32 --trans-b", "gemm_sm90 tf32->f32"},
        {"--in e4m3 --trans-b --scale-a 0.5 --scale-b 3", "gemm_sm90 e4m3->bf16"},
        {"--in e4m3 --in-b e5m2 --trans-b --batch 2 --beta 1 --activation relu",
         "gemm_sm90 e4m3xe5m2->bf16"},
        {"--trans-a --batch 3 --alpha 0.5", "gemm_sm90 bf16->bf16 A:mn B:mn"},
        {"--in f16 --trans-b --activation gelu --beta -1", " activation"},
        {"--in e4m3 --in-b e5m2 --trans-b --out f32 --scale-b 2", "gemm_sm90 e4m3xe5m2->f32"},
        {"--trans-a --activation silu --batch 2", "gemm_sm80 bf16->bf16 A:mn B:mn"},
        {"--trans-b --arch sm80 --activation relu --batch 2 --scale-b 2",
         "gemm_sm80 bf16->bf16"}}) {
    json const result = run_json(std::string("gemm --m 80 --n 48 --k 64 ") + options);
    EXPECT_TRUE(result["within_bound"]) << options << result;
    EXPECT_GT(result["D"]["max_error"], 0.0) << options;
    EXPECT_EQ(result["rows_checked"], result["batch"].get<int>() * 80);
    EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr(configuration));
  }
}

TEST(GemmCommand, ComputesScalesOfBlocksAndGroups) {
  for (char const* const options :
       {"--m 70 --in e4m3 --scales 1x128,128x128", "--groups 70,0,9 --in bf16 --beta 1",
        "--groups 3,70 --grouping masked --m 80 --scales 1x128,128x128",
        "--m 9 --scales 1x128,128x128 --tile 64x64 --split-k 4"}) {
    json const result = run_json(std::string("gemm --n 136 --k 272 ") + options);
    EXPECT_TRUE(result["within_bound"]) << options << result;
    EXPECT_GT(result["D"]["max_error"], 0.0) << options;
    EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr("grouped_gemm_sm90"));
  }
  json const by_k =
      run_json("gemm --m 40 --n 40 --groups 160,0,33 --grouping k --scales 1x128,1x128 --out f32");
  EXPECT_TRUE(by_k["within_bound"]) << by_k;
  // Beside e5m2 no kernel has e5m2, and none has D in bf16 with scales of rows in every build.
  EXPECT_EQ(run_json("gemm --m 70 --scales 1x128,128x128 --in e5m2 --explain")["in_b"], "e4m3");
  json const rows = run_json("gemm --m 16 --n 16 --k 16 --scales 1x128,1x128");
  EXPECT_TRUE(rows["within_bound"]) << rows;
  EXPECT_THAT(rows["configuration"]["name"].get<std::string>(),
              HasSubstr("->" + rows["out"].get<std::string>() + " scales 1x128,1x128"));
  EXPECT_THAT(run_json("gemm --m 70 --scales 1x128,128x128 --explain")["reason"].get<std::string>(),
              HasSubstr("least time"));
  EXPECT_THAT(run_json("gemm --m 64 --n 576 --k 7168 --scales 1x128,128x128 --explain")["reason"]
                  .get<std::string>(),
              AllOf(HasSubstr("split-k"), HasSubstr("CTAs have a share of K each")));
}

TEST(GemmCommand, ComputesGroupsOnAnSm100) {
  for (auto const& [options, configuration] :
       {std::pair("--k 72 --groups 70,0,9 --beta 1", "grouped_gemm_sm100 bf16->bf16"),
        {"--k 72 --groups 3,70 --grouping masked --m 80 --in f16", "f16->f16"},
        {"--m 40 --groups 72,0,33 --grouping k --out f32", "bf16->f32"},
        {"--k 72 --groups 300,7 --cluster 1x1 --tile 256x256", "256x256x64 pair"},
        {"--k 80 --groups 9,130 --in e4m3 --scales none", "e4m3->bf16"},
        {"--k 80 --groups 256,3 --scales mx --beta 1", "ue8m0 for each 32"},
        {"--k 80 --groups 9,130 --grouping masked --scales nv", "ue4m3 for each 16"}}) {
    json const result = run_json(std::string("gemm --n 136 --arch sm100 ") + options);
    EXPECT_TRUE(result["within_bound"]) << options << result;
    EXPECT_GT(result["D"]["max_error"], 0.0) << options;
    EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr(configuration));
  }
}

TEST(GemmCommand, ComputesBlockScalesOnAnSm100) {
  struct Form {
    char const *options, *configuration;
  };
  for (auto const& [options, configuration] :
       {Form{"--scales mx --beta 1", "scaled_gemm_sm100 e4m3->bf16"},
        {"--scales mx --in e5m2 --in-b e4m3 --out f32 --alpha 0.5", "e5m2xe4m3->f32"},
        {"--scales mx --in e2m1", "e2m1->bf16 A:k B:k 128x128x256 ue8m0 for each 32"},
        {"--scales nv --activation gelu --scale-a 2 --kernel sm100", "ue4m3 for each 16"}}) {
    json const result = run_json(std::string("gemm --m 40 --n 136 --k 70 --arch sm100 ") + options);
    EXPECT_TRUE(result["within_bound"]) << options << result;
    EXPECT_GT(result["D"]["max_error"], 0.0) << options;
    EXPECT_EQ(result["trans_b"], true);
    EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr(configuration));
  }
}

TEST(GemmCommand, TakesTheConfigurationThatIsAskedFor) {
  for (auto const& [options, name] :
       {std::pair("--schedule pingpong", "pingpong"),
        {"--schedule basic --tile 64x64 --raster m --group 2", "64x64x64 basic"},
        {"--split-k 2", "split-k 2"},
        {"--cluster 2x1", "cluster 2x1"},
        {"--config 5", "gemm_sm90"},
        {"--kernel sm80", "gemm_sm80"}}) {
    json const result = run_json(std::string("gemm --m 100 --n 136 --k 72 --trans-b ") + options);
    EXPECT_TRUE(result["within_bound"]) << options;
    EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr(name));
  }
}

TEST(GemmCommand, TakesTheClusterThatIsAskedForOnAnSm100) {
  for (auto const& [options, name] : {std::pair("--cluster 2x1", "256x256x64 pair 6 stages"),
                                      {"--cluster 1x2", "128x128x64 cluster 1x2"},
                                      {"--cluster 4x1", "256x256x64 pair cluster 4x1"},
                                      {"--cluster 2x2", "256x128x64 pair cluster 2x2"},
                                      {"--cluster 4x2 --in e4m3", "pair cluster 4x2"}}) {
    std::string const command =
        std::string("gemm --m 300 --n 136 --k 80 --trans-b --arch sm100 ") + options;
    json const result = run_json(command);
    EXPECT_TRUE(result["within_bound"]) << options;
    EXPECT_GT(result["D"]["max_error"], 0.0) << options;
    EXPECT_THAT(result["configuration"]["name"].get<std::string>(), HasSubstr(name));
    json const chosen = run_json(command + " --explain")["chosen"];
    EXPECT_EQ(chosen["name"], result["configuration"]["name"]);
  }
  for (char const* const options :
       {"--trans-b --cluster 3x1", "--cluster 2x2 --in e4m3 --scales mx",
        "--trans-b --cluster 4x1 --tile 64x64"}) {
    Outcome const refused = run(std::string("gemm --m 300 --n 136 --k 80 --arch sm100 ") + options);
    EXPECT_NE(refused.status, 0) << options;
    EXPECT_THAT(refused.output, AllOf(HasSubstr("--cluster"), HasSubstr("is what was asked for")));
  }
}

TEST(GemmCommand, ExplainsItsChoiceWithoutComputing) {
  json const plan = run_json("gemm --m 100000 --n 100000 --k 100000 --trans-b --explain");
  EXPECT_THAT(plan["reason"].get<std::string>(),
              HasSubstr(plan["chosen"]["name"].get<std::string>()));
  EXPECT_EQ(plan["chosen"], plan["candidates"][0]);
  EXPECT_GT(plan["chosen"]["microseconds"]["total"], 1e6) << "2e15 operations at 1e15 a second";
  double last = 0;
  int refused = 0;
  for (json const& candidate : plan["candidates"]) {
    if (candidate.contains("refused")) {
      ++refused;
      continue;
    }
    EXPECT_EQ(refused, 0);
    EXPECT_GE(candidate["microseconds"]["total"], last);
    last = candidate["microseconds"]["total"];
  }
  EXPECT_GT(refused, 20);
  // Groups have the same members, but for what only a GEMM's cost has.
  for (char const* const options :
       {"--scales 1x128,128x128", "--groups 70,9 --in bf16", "--groups 70,9 --arch sm100"}) {
    json const grouped = run_json(std::string("gemm --explain ") + options);
    EXPECT_EQ(grouped["chosen"], grouped["candidates"][0]) << options;
    EXPECT_THAT(grouped["reason"].get<std::string>(),
                HasSubstr(grouped["chosen"]["name"].get<std::string>()));
    std::set<std::pair<std::string, int>> seen;
    for (json const& candidate : grouped["candidates"]) {
      EXPECT_THAT(candidate["name"].get<std::string>(),
                  HasSubstr(candidate["kernel"].get<std::string>()));
      seen.emplace(candidate["kernel"], candidate["index"]);
      if (candidate.contains("refused")) continue;
      for (char const* const member : {"tiles", "waves", "band", "clusters"})
        EXPECT_GE(candidate[member].get<int>(), 1) << member;
      for (char const* const part : {"total", "tensor", "l2", "dram", "epilogue"})
        EXPECT_TRUE(candidate["microseconds"].contains(part)) << part;
    }
    EXPECT_EQ(seen.size(), grouped["candidates"].size()) << "kernel and index are one candidate's";
  }
  Outcome const text = run("gemm --m 64 --n 4096 --k 7168 --trans-b --device sim --explain");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("total us"));
  EXPECT_THAT(text.output, HasSubstr("is predicted to take the least time"));
  EXPECT_THAT(run("gemm --m 64 --n 4095 --trans-a --device sim --explain").output,
              HasSubstr("gemm_sm90 is ruled out: TMA cannot address the problem"));
}

TEST(GemmCommand, CutsDIntoTilesOfOneWidthOrTwo) {
  json const one = run_json(kUneven + " --k 4096 --explain --widths one")["chosen"];
  json const plan = run_json(kUneven + " --k 4096 --explain --widths two");
  json const two = plan["chosen"];
  EXPECT_EQ(one["clusters"], 3);
  EXPECT_EQ(one["tiles"], 16) << "of CTAs";
  EXPECT_EQ(one["share"], 3.0);
  EXPECT_NEAR(one["learned"], 1.0, 0.5);
  EXPECT_FALSE(one.contains("narrower"));
  EXPECT_EQ(two["tiles"], 18);
  EXPECT_EQ(two["narrower"], 5);
  EXPECT_EQ(two["waves"], 3);
  EXPECT_LT(two["share"], 3.0);
  EXPECT_GE(two["share"], 752.0 / 256);
  char const* const sentence =
      "for 3 clusters D is cut into 1 row of 4 tiles and 1 row of 5, of which 5 are 240 columns wide and the "
      "others 256: the busiest cluster computes 2.94 tiles' worth, not 3";
  EXPECT_THAT(plan["reason"].get<std::string>(), HasSubstr(sentence));
  std::string const text = run(kUneven + " --k 4096 --explain --widths two --device sim").output;
  EXPECT_THAT(text, HasSubstr(sentence));
  EXPECT_THAT(text, HasSubstr("3 clusters, two widths\n"));
  EXPECT_THAT(run(kUneven + " --k 4096 --explain --widths one --device sim").output,
              ::testing::Not(HasSubstr("two widths")));
}

TEST(GemmCommand, GivesTheSameBitsInTilesOfOneWidthOrTwo) {
  Scratch const scratch;
  auto const bytes = [&](std::string const& widths) {
    std::string const options = " --k 128 --widths " + widths;
    EXPECT_EQ(run_json(kUneven + options + " --explain")["chosen"].contains("narrower"),
              widths == "two");
    json const result = run_json(kUneven + options + " --output " + scratch.path("d.npy"));
    EXPECT_TRUE(result["within_bound"]) << widths;
    return tegula::testing::contents(scratch.path("d.npy"));
  };
  EXPECT_EQ(bytes("one"), bytes("two"));
}

TEST(GemmCommand, TakesBatchesFromFiles) {
  Scratch const scratch;
  std::vector<float> a(2 * 3 * 8), b(8 * 4);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 3);
  io::write_array(scratch.path("a.npy"), io::array_of(io::ElementType::f32, {2, 3, 8}, a));
  io::write_array(scratch.path("b.npy"), io::array_of(io::ElementType::f32, {8, 4}, b));
  json const result =
      run_json("gemm --a " + scratch.path("a.npy") + " --b " + scratch.path("b.npy") +
               " --dtype bf16 --output " + scratch.path("d.npy"));
  EXPECT_EQ(result["batch"], 2);
  io::Array const d = io::read_array(scratch.path("d.npy"));
  EXPECT_EQ(d.shape, (std::vector<std::int64_t>{2, 3, 4}));
  auto const values = io::to_floats(d);
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t j = 0; j < 4; ++j) {
      float expected = 0;
      for (std::size_t p = 0; p < 8; ++p) expected += a[row * 8 + p] * b[p * 4 + j];
      EXPECT_EQ(values[row * 4 + j], expected);
    }
  EXPECT_THAT(
      run("gemm --a " + scratch.path("a.npy") + " --dtype f16 --batch 3 --device sim").output,
      HasSubstr("batch is 2, but 3 by"));
}

TEST(GemmCommand, ReadsAndWritesFiles) {
  Scratch const scratch;
  // Small integers: the product is exact in f16.
  std::mt19937 random(3);
  auto const integers = [&](int count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (auto& v : values) v = static_cast<float>(static_cast<int>(random() % 5) - 2);
    return values;
  };
  constexpr int m = 9, n = 24, k = 16;
  auto const a = integers(m * k), b = integers(n * k), bias = integers(n);
  io::write_array(scratch.path("a.npy"), io::array_of(io::ElementType::f32, {m, k}, a));
  io::write_safetensors(scratch.path("w.safetensors"),
                        {{"weight", io::array_of(io::ElementType::f32, {n, k}, b)},
                         {"bias", io::array_of(io::ElementType::f32, {n}, bias)}});
  json const result =
      run_json("gemm --a " + scratch.path("a.npy") + " --b " + scratch.path("w.safetensors") +
               ":weight --trans-b --bias " + scratch.path("w.safetensors") +
               ":bias --dtype f16 --output " + scratch.path("d.npy"));
  EXPECT_TRUE(result["within_bound"]);
  EXPECT_EQ(result["D"]["max_error"], 0.0);
  io::Array const d = io::read_array(scratch.path("d.npy"));
  EXPECT_EQ(d.type, io::ElementType::f16);
  EXPECT_EQ(d.shape, (std::vector<std::int64_t>{m, n}));
  auto const values = io::to_floats(d);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float expected = bias[static_cast<std::size_t>(j)];
      for (int p = 0; p < k; ++p)
        expected += a[static_cast<std::size_t>(i * k + p)] * b[static_cast<std::size_t>(j * k + p)];
      EXPECT_EQ(values[static_cast<std::size_t>(i * n + j)], expected);
    }
}

TEST(GemmCommand, GivesTheSameBitsForTheSameSeedWhateverTheScheduler) {
  Scratch const scratch;
  auto const bytes = [&](std::string const& options) {
    run_json("gemm --m 40 --n 40 --k 40 --output " + scratch.path("d.npy") + " " + options);
    return tegula::testing::contents(scratch.path("d.npy"));
  };
  auto const first = bytes("--seed 5");
  EXPECT_EQ(bytes("--seed 5 --scheduler first"), first);
  EXPECT_EQ(bytes("--seed 5 --scheduler last --workers 1"), first);
  EXPECT_EQ(bytes("--seed 5 --unchecked"), first);
  EXPECT_NE(bytes("--seed 6"), first);
}

}  // namespace
}  // namespace tegula
