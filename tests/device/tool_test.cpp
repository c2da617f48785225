// `tegula gemm`, `tegula attention` and `tegula info`, run whole on the simulated machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scratch.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/safetensors.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula {
namespace {

using nlohmann::json;
using tegula::testing::Scratch;
using ::testing::HasSubstr;

struct Outcome {
  int status;
  std::string output;  ///< standard output and standard error
};

Outcome run(std::string const& arguments) {
  std::string const command = std::string(TEGULA_TOOL) + " " + arguments + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> block{};
  for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;)
    output.append(block.data(), n);
  return {WEXITSTATUS(pclose(pipe)), output};
}

json run_json(std::string const& arguments) {
  Outcome const r = run(arguments + " --json --device sim");
  EXPECT_EQ(r.status, 0) << r.output;
  return json::parse(r.output);
}

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
  EXPECT_THAT(run_json("gemm --m 70 --scales 1x128,128x128 --explain")["reason"].get<std::string>(),
              HasSubstr("least time"));
  EXPECT_THAT(run_json("gemm --m 64 --n 576 --k 7168 --scales 1x128,128x128 --explain")["reason"]
                  .get<std::string>(),
              AllOf(HasSubstr("split-k"), HasSubstr("CTAs have a share of K each")));
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
  Outcome const text = run("gemm --m 64 --n 4096 --k 7168 --trans-b --device sim --explain");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("total us"));
  EXPECT_THAT(text.output, HasSubstr("is predicted to take the least time"));
  EXPECT_THAT(run("gemm --m 64 --n 4095 --trans-a --device sim --explain").output,
              HasSubstr("gemm_sm90 is ruled out: TMA cannot address the problem"));
}

// 8 tiles of 256 columns on 3 clusters take 3 waves, of 768 columns; with a row of 5 tiles of 240
// none of the clusters has more than 752.
std::string const kUneven = "gemm --m 512 --n 1024 --trans-b --sms 6 --tile 128x256 --cluster 2x1";

TEST(GemmCommand, CutsDIntoTilesOfOneWidthOrTwo) {
  json const one = run_json(kUneven + " --k 4096 --explain --widths one")["chosen"];
  json const plan = run_json(kUneven + " --k 4096 --explain --widths two");
  json const two = plan["chosen"];
  EXPECT_EQ(one["clusters"], 3);
  EXPECT_EQ(one["tiles"], 16) << "of CTAs";
  EXPECT_EQ(one["share"], 3.0);
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

/// A tile as the tooltip of a drawing has it, and the rectangle that it is about.
struct DrawnTile {
  int index, row, row_end, column, column_end, batch = 0, wave = 0, worker = 0;
  double x, y, width, height;
  std::string colour;
};
std::vector<DrawnTile> drawn_tiles(std::string const& svg) {
  std::vector<DrawnTile> tiles;
  for (std::size_t at = 0; (at = svg.find("<rect ", at)) != std::string::npos; ++at) {
    DrawnTile t{};
    int end = 0;
    std::string const line = svg.substr(at, svg.find('\n', at) - at);
    if (std::sscanf(
            line.c_str(),
            "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"><title>tile %d: rows %d to %d, "
            "columns %d to %d%n",
            &t.x, &t.y, &t.width, &t.height, &t.index, &t.row, &t.row_end, &t.column, &t.column_end,
            &end) != 9)
      continue;
    std::sscanf(line.c_str() + end, ", batch %d", &t.batch);
    std::sscanf(line.c_str() + line.find("; wave"), "; wave %d, %*s %d", &t.wave, &t.worker);
    t.colour = svg.substr(svg.rfind("fill=", at), 14);  // fill="#012345"
    tiles.push_back(t);
  }
  return tiles;
}

TEST(GemmCommand, DrawsEveryTileOnce) {
  struct Form {
    std::string problem;
    int m, n, batch, clusters;
    std::string cut;
  };
  Scratch const scratch;
  std::string const path = scratch.path("tiles.svg");
  for (
      auto const& [problem, m, n, batch, clusters, cut] :
      {Form{kUneven + " --k 4096 --widths two", 512, 1024, 1, 3,
            "1 row of 4 tiles and 1 row of 5, of which 5 are 240 columns wide and the others 256"},
       Form{kUneven + " --k 4096 --widths one", 512, 1024, 1, 3, "2 rows of 4 tiles"},
       Form{
           "gemm --m 500 --n 1016 --batch 2 --k 4096 --trans-b --sms 6 --tile 128x256 --widths two",
           500, 1016, 2, 3,
           "1 row of 4 tiles and 1 row of 5, of which 5 are 240 columns wide and the others 256, in each of 2 "
           "batches"},
       Form{
           "gemm --m 700 --n 960 --batch 3 --k 1024 --trans-b --sms 10 --schedule pingpong --tile 128x176 "
           "--widths two",
           700, 960, 3, 5, "3 rows of 6 tiles, all 160 columns wide, in each of 3 batches"},
       Form{"gemm --m 300 --n 504 --k 1024 --trans-b --cluster 1x2", 300, 504, 1, 4,
            "2 rows of 2 tiles"}}) {
    json const chosen = run_json(problem + " --explain --draw-tiles " + path)["chosen"];
    std::string const svg = tegula::testing::contents(path);
    std::vector<DrawnTile> const tiles = drawn_tiles(svg);
    EXPECT_THAT(svg, HasSubstr(": " + cut + "</text>")) << problem;
    EXPECT_EQ(2 * tiles.size(), chosen["tiles"].get<std::size_t>()) << problem;
    EXPECT_EQ(chosen["clusters"], clusters) << problem;
    std::vector<int> drawn(static_cast<std::size_t>(batch * m * n));
    double area = 0;
    int narrow = 0;
    std::map<int, std::string> waves;
    std::set<std::string> colours;
    for (DrawnTile const& t : tiles) {
      area += t.width * t.height;
      char hatched[160];
      std::snprintf(hatched, sizeof(hatched),
                    "x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" pointer-events", t.x, t.y,
                    t.width, t.height);
      narrow += svg.find(hatched) != std::string::npos;
      EXPECT_EQ(waves.emplace(t.wave, t.colour).first->second, t.colour) << "one colour a wave";
      colours.insert(t.colour);
      EXPECT_EQ(t.wave, t.index / clusters);
      EXPECT_EQ(t.worker, t.index % clusters);
      for (int i = t.row; i <= t.row_end; ++i)
        for (int j = t.column; j <= t.column_end; ++j)
          ++drawn.at(static_cast<std::size_t>((t.batch * m + i) * n + j));
    }
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 1), std::ssize(drawn)) << problem;
    EXPECT_EQ(colours.size(), waves.size()) << problem;
    EXPECT_EQ(narrow, chosen.value("narrower", 0)) << problem;
    std::size_t const outlined = svg.find("<g class=\"o\">\n");
    std::string const of_worker_0 = svg.substr(outlined, svg.find("</g>", outlined) - outlined);
    EXPECT_EQ(std::count(of_worker_0.begin(), of_worker_0.end(), '/'), chosen["waves"].get<int>())
        << problem;
    EXPECT_EQ(svg.find("columns wide</text>", svg.find("wave 0")) != std::string::npos, narrow > 0)
        << problem;
    // The frames of D, one for each batch. Places are rounded to a tenth of a pixel, of tiles that
    // are at least 5 either way.
    double frames = 0;
    for (std::size_t at = 0; (at = svg.find(" class=\"b\"", at)) != std::string::npos; ++at) {
      double width = 0, height = 0;
      std::sscanf(svg.c_str() + svg.rfind("width", at), "width=\"%lf\" height=\"%lf\"", &width,
                  &height);
      frames += width * height;
    }
    EXPECT_GT(frames, 1e4);
    EXPECT_NEAR(area / frames, 1, 2 * 0.05 / 5) << problem;
  }
}

TEST(GemmCommand, DrawsTheTilesOfARun) {
  Scratch const scratch;
  run_json("gemm --m 128 --n 256 --k 64 --trans-b --tile 64x64 --split-k 1 --draw-tiles " +
           scratch.path("t.svg"));
  EXPECT_EQ(drawn_tiles(tegula::testing::contents(scratch.path("t.svg"))).size(), 8u);
}

// docs/images/tiles_*.svg are what the page's commands draw.
TEST(GemmCommand, DrawsThePicturesOfItsPage) {
  Scratch const scratch;
  std::string const page = tegula::testing::contents(TEGULA_DOCS "/hopper_gemm.md");
  std::string const command = "\ntegula ", folder = "docs/images/";
  int pictures = 0;
  for (std::size_t at = 0; (at = page.find(command, at)) != std::string::npos; ++at) {
    std::size_t const begin = at + command.size();
    std::string const arguments = page.substr(begin, page.find('\n', begin) - begin);
    std::size_t const file = arguments.find("--draw-tiles " + folder);
    if (file == std::string::npos) continue;
    std::string const name = arguments.substr(arguments.find(folder) + folder.size());
    Outcome const outcome = run(arguments.substr(0, file) + "--draw-tiles " + scratch.path(name));
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    bool const same = tegula::testing::contents(scratch.path(name)) ==
                      tegula::testing::contents(TEGULA_DOCS "/images/" + name);
    EXPECT_TRUE(same) << name << " is out of date: tegula " << arguments;
    ++pictures;
  }
  EXPECT_EQ(pictures, 2);
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

/// The names of the threads of a timeline in Chrome's format.
std::vector<std::string> rows_of(std::string const& path) {
  std::vector<std::string> rows;
  json const trace = json::parse(tegula::testing::contents(path));
  for (auto const& event : trace["traceEvents"])
    if (event["name"] == "thread_name") rows.push_back(event["args"]["name"]);
  return rows;
}

TEST(GemmCommand, WritesTheTimelineOfASimulatedLaunch) {
  Scratch const scratch;
  std::string const trace = scratch.path("t.json"), svg = scratch.path("t.svg");
  run_json(
      "gemm --m 192 --n 64 --k 128 --trans-b --sms 1 --schedule basic --tile 64x64 --cluster 1x1 --split-k 1 --trace " +
      trace + " --svg " + svg);
  EXPECT_THAT(rows_of(trace), ::testing::UnorderedElementsAre("producer", "consumer 0", "TMA load",
                                                              "tensor core", "TMA store"))
      << "of one CTA, which computes all tiles";
  std::string const drawn = tegula::testing::contents(svg);
  EXPECT_THAT(drawn, HasSubstr(">gemm_sm90 bf16-"));
  EXPECT_THAT(drawn, HasSubstr("epilogue 2")) << "of the third tile";
  EXPECT_THAT(drawn, HasSubstr("gemm_sm90.hpp:")) << "a tooltip says where";
}

TEST(GemmCommand, ShowsAsManyCtasAsAskedForAndTheirBarriers) {
  Scratch const scratch;
  std::string const path = scratch.path("t.json");
  auto const count = [&](std::string const& name) {
    auto const rows = rows_of(path);
    return std::count(rows.begin(), rows.end(), name);
  };
  std::string const problem =
      "gemm --m 256 --n 64 --k 64 --trans-b --schedule basic --tile 64x64 --cluster 1x1 --split-k 1 --trace " +
      path;
  run_json(problem);
  EXPECT_EQ(count("tensor core"), 2);
  EXPECT_EQ(count("full[0]"), 0);
  run_json(problem + " --trace-ctas 3 --trace-barriers");
  EXPECT_EQ(count("tensor core"), 3);
  EXPECT_EQ(count("full[0]"), 3);
}

TEST(AttentionCommand, WritesTheTimelineOfASimulatedLaunch) {
  Scratch const scratch;
  std::string const svg = scratch.path("t.svg");
  run_json("attention --arch sm80 --seq-q 64 --head-dim 32 --svg " + svg);
  std::string const drawn = tegula::testing::contents(svg);
  EXPECT_THAT(drawn, HasSubstr("wait cp.async"));
  EXPECT_THAT(drawn, HasSubstr(">warp 0<"));
}

TEST(KernelCommands, RefuseATimelineThatCannotBeWritten) {
  Outcome const nowhere = run("gemm --m 16 --n 16 --k 16 --device sim --svg /nowhere/t.svg");
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.output, HasSubstr("/nowhere/t.svg: cannot be opened for writing"));
  Outcome const none = run("gemm --m 16 --n 16 --k 16 --device sim --svg t.svg --trace-ctas 0");
  EXPECT_NE(none.status, 0);
  EXPECT_THAT(none.output, HasSubstr("'0' is not a whole number from 1"));
}

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

TEST(KernelCommands, AnswerBadInputWithASentence) {
  Scratch const scratch;
  io::write_array(scratch.path("f32.npy"),
                  io::array_of(io::ElementType::f32, {2, 3}, std::vector<float>(6)));
  io::write_array(scratch.path("f16.npy"),
                  io::array_of(io::ElementType::f16, {2, 3}, std::vector<half>(6)));
  io::write_array(scratch.path("s32.npy"),
                  io::array_of(io::ElementType::s32, {2, 3}, std::vector<int>(6)));
  auto const expect_refused = [&](std::string const& arguments, std::string const& part) {
    Outcome const r = run(arguments + " --device sim");
    EXPECT_NE(r.status, 0) << arguments;
    EXPECT_THAT(r.output, HasSubstr(part)) << arguments;
  };
  expect_refused("gemm --m 0", "--m");
  expect_refused("gemm --m -4", "--m");
  expect_refused("gemm --dtype f32", "in is f32");
  expect_refused("gemm --dtype f64", "'f64'");
  expect_refused("gemm --dtype e4m3", "B is stored as (k, n) without --trans-b");
  expect_refused("gemm --dtype tf32 --trans-b --trans-a", "A is stored as (k, m)");
  expect_refused("gemm --dtype e4m3 --in-b f16 --trans-b", "in is e4m3 and in_b is f16");
  expect_refused("gemm --dtype e4m3 --trans-b --k 100", "lda is 100 elements");
  expect_refused("gemm --dtype e4m3 --trans-b --arch sm80", "sm_90 and sm_100 only");
  expect_refused("gemm --tile 128", "--tile is '128'");
  expect_refused("gemm --tile 100x100", "what was asked for");
  expect_refused("gemm --measure", "only a GPU has times to measure");
  expect_refused("gemm --schedule fast", "fast");
  expect_refused("gemm --widths three", "three");
  expect_refused("gemm --kernel sm80 --widths one", "what was asked for");
  expect_refused("gemm --measure --draw-tiles t.svg", "--measure times several");
  expect_refused("gemm --explain --draw-tiles ''", "'' is not the name of a file");
  expect_refused("gemm --m 64 --n 64 --k 64 --trans-b --draw-tiles /nowhere/t.svg",
                 "/nowhere/t.svg: cannot be opened for writing");
  expect_refused(
      "gemm --m 100000 --n 100000 --k 64 --trans-b --explain --tile 128x256 --draw-tiles t.svg",
      "D is cut into 152881 tiles; at most 4000 are drawn");
  expect_refused("gemm --n 255 --trans-a --explain --draw-tiles t.svg",
                 "only gemm_sm90's tiles are drawn");
  expect_refused("gemm --activation tanh", "tanh");
  expect_refused("gemm --groups 3,x", "--groups is '3,x'");
  expect_refused("gemm --groups 3,4 --m 8", "--m is 8 and the sizes of --groups add up to 7");
  expect_refused("gemm --groups 3,4 --grouping masked --m 3", "has a group of 4 rows");
  expect_refused("gemm --groups 3,4 --grouping k", "has a group of 3 columns of bf16");
  expect_refused("gemm --grouping masked", "there is no --groups");
  expect_refused("gemm --groups 3 --trans-a", "--trans-a is given");
  expect_refused("gemm --scales 1x128,1x128 --beta 2", "--beta is 2");
  expect_refused("gemm --scales 1x128,1x128 --cluster 2x1", "--cluster is 2x1");
  expect_refused("gemm --scales 1x64", "1x64");
  expect_refused("gemm --scales 1x128,1x128 --split-k 3", "--split-k 3");
  expect_refused("gemm --scales mx", "sm_100 only");
  expect_refused("gemm --scales mx --groups 3,4", "--scales is mx; with --groups");
  expect_refused("gemm --scales nv --in e4m3 --arch sm100", "both must be e2m1");
  expect_refused("gemm --scales mx --in e2m1 --k 33 --arch sm100", "k is 33");
  expect_refused("gemm --in e2m1 --arch sm100", "--scales is left out");
  expect_refused("gemm --scales mx --trans-a --arch sm100", "contiguous along k");
  expect_refused("gemm --a no.npy", "no.npy: cannot be opened");
  expect_refused("gemm --a " + scratch.path("f32.npy"), "holds f32");
  expect_refused("gemm --a " + scratch.path("s32.npy") + " --dtype f16", "holds s32");
  expect_refused("gemm --a " + scratch.path("f16.npy") + " --k 4", "k is 3, but 4 by --k");
  expect_refused("gemm --a " + scratch.path("f16.npy") + " --b " + scratch.path("f16.npy"),
                 "k is 2, but 3 by --a");
  expect_refused("gemm --bias " + scratch.path("f16.npy"), "must have 1 axes");
  expect_refused("gemm --scheduler never", "never");
  expect_refused("attention --head-dim 36",
                 "--head-dim: '36' is not a multiple of 8 from 8 to 256");
  expect_refused("attention --head-dim 80 --arch sm80",
                 "head_dim is 80; 32, 64, 96, 128 and 256 are computed");
  expect_refused("attention --window-left 8 --arch sm80",
                 "attention_sm90 cannot compute it: the device is sm_80");
  expect_refused("attention --causal --window-right 2", "window_right is 2 and causal is true");
  expect_refused("attention --kernel sm80 --softcap 3", "--kernel sm80: attention: none of the ");
  expect_refused("attention --kernel sm90 --config 12345",
                 "--kernel sm90 --config 12345: attention: none of the ");
  expect_refused("attention --kernel sm90 --arch sm80", "is what was asked for");
  expect_refused("attention --sink " + scratch.path("f32.npy"), "must have 1 axes");
  expect_refused("attention --explain --lse " + scratch.path("lse.npy"), "--lse is of a run");
  expect_refused("attention --heads 6 --kv-heads 4", "kv_heads is 4");
  expect_refused("attention --q " + scratch.path("f16.npy"), "must have 3 or 4 axes");
  expect_refused("attention --seq-q 4000000000000", "not a whole number from 1 to 1073740800");
  EXPECT_THAT(run("gemm --device gpu").output, HasSubstr("sim, cuda, cuda:NUMBER or auto"));
}

TEST(InfoCommand, ListsMachinesAndConfigurations) {
  Outcome const r = run("info --json");
  ASSERT_EQ(r.status, 0) << r.output;
  json const info = json::parse(r.output);
  EXPECT_EQ(info["machines"][0]["name"], "simulated sm_80");
  EXPECT_EQ(info["machines"][1]["compute_capability"], 90);
  EXPECT_EQ(info["machines"][2]["compute_capability"], 100);
  EXPECT_TRUE(info["machines"][3].contains("unusable") ||
              info["machines"][3]["simulated"] == false);
  EXPECT_GE(info["kernels"]["attention_sm80"].size(), 10u);
  for (auto const& [kernel, table] : info["kernels"].items())
    for (auto const& c : table) {
      EXPECT_EQ(c["threads"].get<int>() % 32, 0);
      EXPECT_GT(c["shared_bytes"].get<int>(), 0);
      EXPECT_THAT(c["name"].get<std::string>(), HasSubstr(kernel));
    }
  EXPECT_THAT(run("info").output, HasSubstr("simulated sm_90"));
}

TEST(KernelCommands, PrintForPeople) {
  Outcome const gemm = run("gemm --m 20 --n 20 --k 20 --device sim --lines");
  EXPECT_EQ(gemm.status, 0);
  EXPECT_THAT(gemm.output,
              HasSubstr("D = A B: m 20, n 20, k 20, A bf16 k-major, B bf16 mn-major, D bf16"));
  EXPECT_THAT(gemm.output, HasSubstr("within bounds"));
  EXPECT_THAT(gemm.output, HasSubstr("gemm_sm80.hpp")) << "counters by source line";
  for (std::string const command : {"gemm", "attention", "info"}) {
    Outcome const help = run(command + " --help");
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.output, HasSubstr("Examples:"));
  }
}

}  // namespace
}  // namespace tegula
