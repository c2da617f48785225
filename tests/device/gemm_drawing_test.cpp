// `tegula gemm --draw-tiles`: every tile of D once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernel_commands.hpp"
#include "scratch.hpp"

namespace tegula {
namespace {

using nlohmann::json;
using tegula::testing::kUneven;
using tegula::testing::Outcome;
using tegula::testing::run;
using tegula::testing::run_json;
using tegula::testing::Scratch;
using ::testing::HasSubstr;

/// A tile as the tooltip of a drawing has it, and the rectangle that it is about.
struct DrawnTile {
  int index, row, row_end, column, column_end, batch = 0, part = 0, wave = 0, worker = 0;
  double x, y, width, height;
  std::string colour;
};
std::vector<DrawnTile> drawn_tiles(std::string const& svg) {
  std::vector<DrawnTile> tiles;
  for (std::size_t at = 0; (at = svg.find("<rect ", at)) != std::string::npos; ++at) {
    DrawnTile t{};
    int end = 0;
    std::string const line = svg.substr(at, svg.find('\n', at) - at);
    if (std::sscanf(line.c_str(),
                    "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"><title>tile %d: %n",
                    &t.x, &t.y, &t.width, &t.height, &t.index, &end) != 5)
      continue;
    char const* text = line.c_str() + end;
    // Down the picture, then along it: of a transposed D the columns first.
    if (std::sscanf(text, "rows %d to %d, columns %d to %d%n", &t.row, &t.row_end, &t.column,
                    &t.column_end, &end) != 4 &&
        std::sscanf(text, "columns %d to %d, rows %d to %d%n", &t.column, &t.column_end, &t.row,
                    &t.row_end, &end) != 4)
      continue;
    text += end;
    if (std::sscanf(text, ", batch %d%n", &t.batch, &end) == 1) text += end;
    std::sscanf(text, ", part %d of k", &t.part);
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
       Form{"gemm --m 300 --n 504 --k 1024 --trans-b --tile 256x128 --cluster 1x2", 300, 504, 1, 4,
            "2 rows of 2 tiles"},
       Form{"gemm --m 170 --n 504 --k 1024 --trans-b --tile 128x160 --cluster 2x1", 170, 504, 1, 4,
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

// Each part of K has a panel of its own, with every tile.
TEST(GemmCommand, DrawsThePartsOfK) {
  Scratch const scratch;
  json const chosen = run_json(
      "gemm --m 300 --n 200 --batch 2 --k 1024 --trans-b --tile 192x144 "
      "--split-k 3 --explain --draw-tiles " +
      scratch.path("t.svg"))["chosen"];
  EXPECT_EQ(chosen["parts"], 3);
  EXPECT_EQ(chosen["tiles"], 2 * 2 * 2);
  std::string const svg = tegula::testing::contents(scratch.path("t.svg"));
  EXPECT_THAT(svg, HasSubstr("D of 300 x 200 x 2: 4 tiles for each of 3 parts of k"));
  std::set<std::tuple<int, int, int, int>> drawn;
  for (DrawnTile const& t : drawn_tiles(svg)) drawn.emplace(t.batch, t.part, t.row, t.column);
  EXPECT_EQ(drawn.size(), 2u * 3 * 2 * 2);
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
  EXPECT_EQ(pictures, 3);
}

}  // namespace
}  // namespace tegula
