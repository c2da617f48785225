// What `tegula gemm` and `tegula attention` have in common, and `tegula info`, run whole on the
// simulated machine: timelines, refusals, what people read.

#include "kernel_commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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

using Options = std::map<std::string, std::string>;

/// What "... must be A, B or C, or --dtype D." at the end of a sentence names.
std::vector<Options::value_type> suggested(std::string const& sentence) {
  std::vector<Options::value_type> all;
  std::size_t const begin = sentence.rfind(" --", sentence.rfind(" must be "));
  std::istringstream words(sentence.substr(begin, sentence.rfind('.') - begin));
  std::string option, word;
  while (words >> word) {
    if (word.back() == ',') word.pop_back();
    if (word.starts_with("--"))
      option = word;
    else if (word != "must" && word != "be" && word != "or")
      all.emplace_back(option, word);
  }
  return all;
}

TEST(KernelCommands, SuggestWhatIsComputedWithAllOtherOptions) {
  auto const outcome = [](Options const& problem, Options const& choice) {
    std::string line = "gemm --m 64 --n 64 --k 64 --device sim --explain";
    for (Options const& options : {problem, choice})
      for (auto const& [option, value] : options) line += " " + option + " " + value;
    return run(line);
  };
  // No kernel of any build has an f16 D of these.
  Options const plain = {{"--trans-b", ""}, {"--dtype", "bf16"}, {"--out-type", "f16"}},
                scaled = {{"--scales", "1x128,1x128"}, {"--dtype", "e4m3"}, {"--out-type", "f16"}};
  int with = 0, without = 0;
  for (auto const& [problem, choice] : {std::pair(plain, Options{}),
                                        {plain, {{"--schedule", "pingpong"}}},
                                        {plain, {{"--schedule", "basic"}}},
                                        {plain, {{"--tile", "128x256"}, {"--cluster", "2x1"}}},
                                        {scaled, {}},
                                        {scaled, {{"--tile", "64x128"}}},
                                        {scaled, {{"--tile", "128x128"}, {"--cluster", "2x1"}}}}) {
    Outcome const refused = outcome(problem, choice);
    ASSERT_EQ(refused.status, 1) << refused.output;
    bool const of_choice = refused.output.find(". Without --") != std::string::npos;
    ++(of_choice ? without : with);
    EXPECT_TRUE(of_choice ||
                refused.output.find(". With the other options --") != std::string::npos)
        << refused.output;
    for (auto const& [option, value] : suggested(refused.output)) {
      Options other = problem;
      other[option] = value;
      Outcome const taken = outcome(other, of_choice ? Options{} : choice);
      EXPECT_EQ(taken.status, 0) << option << ": " << taken.output << refused.output;
    }
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
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
  expect_refused("gemm --dtype f32", "--dtype is 'f32'; it must be f16, bf16, tf32, e4m3 or e5m2.");
  expect_refused("gemm --out tf32 --trans-b", "--out-type is 'tf32'; it must be f16, bf16 or f32.");
  expect_refused("gemm --groups 1073740800,1", "at most 1073740800 in all.");
  expect_refused("gemm --groups 1073740800,1 --grouping masked", "at most 1073740800 in all.");
  expect_refused(
      "gemm --groups 8 --grouping k --m 1073740800 --n 1073740800 --dtype e5m2 --in-b bf16",
      "--dtype e5m2 --in-b bf16: grouped_gemm: in is e5m2");
  expect_refused("gemm --dtype f64", "'f64'");
  expect_refused("gemm --dtype e4m3", "B is stored as (k, n) without --trans-b");
  expect_refused("gemm --dtype tf32 --trans-b --trans-a", "A is stored as (k, m)");
  expect_refused("gemm --dtype e4m3 --in-b f16 --trans-b",
                 "--dtype e4m3 --in-b f16: gemm: in is e4m3 and in_b is f16");
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
      "--draw-tiles t.svg: gemm: D is cut into 152881 tiles; at most 4000 are drawn");
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
  expect_refused("gemm --scales 1x128,1x128 --cluster 2x1",
                 "--cluster 2x1: grouped_gemm: none of the ");
  expect_refused("gemm --scales 1x64", "1x64");
  expect_refused("gemm --scales 1x128,1x128 --split-k 3", "--split-k 3");
  expect_refused("gemm --scales mx", "--scales mx --arch sm90: gemm: block_scale is ue8m0");
  expect_refused("gemm --scales mx --groups 3",
                 "--scales mx --arch sm90: grouped_gemm: block_scale has a block of 32");
  expect_refused("gemm --scales mx --groups 3 --arch sm100 --in e2m3",
                 "--dtype is 'e2m3'; with --scales mx and --groups it must be e4m3, e5m2 or e2m1.");
  expect_refused("gemm --groups 8 --scales mx --arch sm100 --in e2m1 --in-b e4m3",
                 "--dtype e2m1 --in-b e4m3 --scales mx: grouped_gemm: in is e2m1, in_b is e4m3");
  expect_refused("gemm --groups 8 --scales nv --arch sm100 --in-b e4m3",
                 "--in-b is 'e4m3'; with --scales nv and --groups it must be e2m1.");
  expect_refused("gemm --scales 1x128,128x128 --in e2m1",
                 "--dtype is 'e2m1'; with --scales 1x128,128x128 it must be e4m3 or e5m2.");
  expect_refused("gemm --scales none --in e2m1",
                 "--dtype is 'e2m1'; with --scales none on an sm_90 it must be f16 or bf16.");
  expect_refused("gemm --scales none --in e2m1 --arch sm100",
                 "--dtype is 'e2m1'; with --scales none it must be f16, bf16, e4m3 or e5m2.");
  expect_refused("gemm --groups 64 --n 64 --k 64 --in tf32 --scales none",
                 "with --scales none and --groups on an sm_90 it must be f16 or bf16.");
  expect_refused("gemm --dtype f32 --arch sm80",
                 "--dtype is 'f32'; on an sm_80 it must be f16 or bf16.");
  expect_refused("attention --dtype tf32 --arch sm80",
                 "--dtype is 'tf32'; it must be f16 or bf16.");
  expect_refused("gemm --groups 5 --in-b e2m3",
                 "--in-b is 'e2m3'; with --groups it must be f16, bf16, e4m3 or e5m2.");
  // The machine comes before what would have to be mended on another one.
  expect_refused("gemm --groups 5,7 --scales nv --arch sm80", "--arch sm80: grouped_gemm: ");
  expect_refused("gemm --groups 5,7 --scales nv", "--scales nv --arch sm90: grouped_gemm: ");
  expect_refused("gemm --scales nv --in e4m3", "--scales nv --arch sm90: gemm: ");
  expect_refused("gemm --in e4m3 --arch sm80", "--dtype e4m3 --arch sm80: gemm: in is e4m3");
  // Rows that TMA cannot address are named by the option that says their length.
  expect_refused("gemm --in e4m3 --trans-b --k 17", "--k 17: gemm: lda is 17");
  expect_refused("gemm --in e4m3 --trans-b --k 17", "it must be a multiple of 16.");
  expect_refused("gemm --in e4m3 --trans-b --n 17", "--n 17: gemm: ldd is 17");
  expect_refused("gemm --in tf32 --trans-b --k 17", "it must be a multiple of 4.");
  expect_refused("gemm --scales nv --arch sm100 --n 51", "--n 51: gemm: ldd is 51");
  expect_refused("gemm --scales mx --arch sm100 --n 50 --out f32", "it must be a multiple of 4.");
  // What no kernel computes is refused with the types that one does.
  expect_refused("gemm --scales 1x128,128x128 --in-b e5m2",
                 "--in-b e5m2 --scales 1x128,128x128: grouped_gemm: no configuration computes D");
  expect_refused("gemm --scales 1x128,128x128 --in-b e5m2",
                 "scales 1x128,128x128. With the other options --in-b must be e4m3.");
  expect_refused("gemm --scales 1x128,1x128 --out f16", "must be f32");
  expect_refused("gemm --groups 64 --in e4m3 --in-b e5m2", "options --in-b must be e4m3.");
  expect_refused("gemm --out f16 --trans-b --arch sm90",
                 "--out-type f16: gemm: no configuration of this build computes this problem");
  expect_refused("gemm --scales mx --in e2m3 --out f32 --k 128 --arch sm100",
                 "--dtype e2m3 --out-type f32 --scales mx: gemm: no configuration computes this");
  expect_refused("gemm --groups 3 --in e2m1",
                 "--scales is left out; of e2m1 it must be mx or nv, and the machine an sm_100.");
  run_json("gemm --scales nv --groups 3 --n 64 --k 64 --arch sm100 --in e2m1");
  expect_refused("gemm --scales mx --groups 3,4 --arch sm100", "must be a multiple of 128");
  expect_refused("gemm --scales mx --groups 32,32 --grouping k --arch sm100",
                 "a group begins with a piece of scales");
  run_json("gemm --scales mx --groups 128,32 --grouping k --n 64 --arch sm100");
  expect_refused("gemm --groups 3,4 --arch sm80", "sm_90 and sm_100 only");
  run_json("gemm --groups 3,4 --n 64 --k 64 --in e4m3 --arch sm100");
  expect_refused("gemm --groups 3,4 --in e4m3 --scales 1x128,1x128 --arch sm100", "must be none");
  expect_refused("gemm --scales nv --in e4m3 --arch sm100",
                 "--dtype is 'e4m3'; with --scales nv it must be e2m1.");
  expect_refused("gemm --scales mx --in e2m1 --k 33 --arch sm100", "k is 33");
  expect_refused("gemm --in e2m1 --arch sm100", "--scales is left out");
  expect_refused("gemm --scales mx --trans-a --arch sm100", "contiguous along k");
  expect_refused("gemm --a no.npy", "no.npy: cannot be opened");
  expect_refused("gemm --a " + scratch.path("f32.npy"), "holds f32");
  expect_refused("gemm --a " + scratch.path("s32.npy") + " --dtype f16", "holds s32");
  expect_refused("gemm --a " + scratch.path("f16.npy") + " --k 4", "k is 3, but 4 by --k");
  expect_refused("gemm --a " + scratch.path("f16.npy") + " --b " + scratch.path("f16.npy"),
                 "k is 2, but 3 by --a");
  expect_refused("gemm --bias " + scratch.path("f16.npy"), "must have 1 axis");
  expect_refused("gemm --scheduler never", "never");
  expect_refused("attention --head-dim 36",
                 "--head-dim: '36' is not a multiple of 8 from 8 to 256");
  expect_refused("attention --head-dim 80 --arch sm80",
                 "head_dim is 80; 32, 64, 96, 128 and 256 are computed");
  expect_refused("attention --window-left 8 --arch sm80",
                 "attention_sm90 cannot compute it: the device is sm_80");
  expect_refused("attention --causal --window-right 2",
                 "--window-right 2 --causal: attention: window_right is 2 and causal is true");
  expect_refused("attention --dtype tf32 --heads 4",
                 "--dtype is 'tf32'; it must be f16, bf16 or e4m3.");
  expect_refused("attention --out-type bf16 --dtype f16",
                 "--dtype f16 --out-type bf16: attention: out is bf16 and dtype is f16");
  expect_refused("attention --fast-sums", "--fast-sums: attention: precise is false");
  expect_refused("attention --dtype e4m3 --exponential polynomial",
                 "--dtype e4m3 --exponential polynomial: attention: exponential is polynomial");
  // The limits of the options are those of the kernels.
  for (std::string const wrong : {"0", "-1", "nan", "1.1e-38", "1e38", "1e-46", "1e39"})
    expect_refused("attention --scale " + wrong,
                   "--scale: '" + wrong + "' is not a number from 2^-126 to 2^126");
  for (std::string const wrong : {"0", "8e-19", "4097"})
    expect_refused("attention --softcap " + wrong,
                   "--softcap: '" + wrong + "' is not a number from 2^-60 to 2^12");
  for (std::string const right :
       {"--scale 1.1754944e-38", "--scale 8.507059e37", "--softcap 8.673618e-19", "--softcap 4096"})
    EXPECT_EQ(run("attention --explain --device sim " + right).status, 0) << right;
  // What was left out is named by what it follows.
  expect_refused("attention --arch sm100 --head-dim 160",
                 "--head-dim 160: attention: head_dim_v is 160; multiples of 8 from 8 to 128");
  expect_refused("attention --arch sm80 --head-dim-v 40",
                 "--head-dim-v 40: attention: head_dim is 40; 32, 64, 96, 128 and 256 are");
  expect_refused("attention --append 1073740800 --lengths-k 1 --seq-q 1",
                 "--lengths-k 1 --append 1073740800: attention: seq_k is 1073740801");
  expect_refused("attention --page-size 16 --arch sm80", "--page-size 16: attention: page_table");
  expect_refused("attention --append 1073740800 --lengths-k 1",
                 "--lengths-k 1 --append 1073740800: attention: seq_q is 1073740801");
  expect_refused("attention --heads 65536 --batch 65536 --seq-q 64",
                 "--batch 65536 --heads 65536 --seq-q 64: attention: batch * heads * seq_q / 64");
  expect_refused("attention --lengths-q 1,2 --seq-q 1", "--lengths-q has 2, and --seq-q is 1");
  expect_refused("attention --kernel sm80 --softcap 3", "--kernel sm80: attention: none of the ");
  expect_refused("attention --kernel sm90 --config 12345",
                 "--kernel sm90 --config 12345: attention: none of the ");
  expect_refused("attention --kernel sm90 --arch sm80", "is not what was asked for");
  // The first ones are named with their numbers, for --config.
  expect_refused("gemm --tile 7x7", ", gemm_sm90 bf16->bf16 ");
  expect_refused("gemm --groups 3,4 --tile 9x9", ", grouped_gemm_sm90 ");
  expect_refused("gemm --trans-b --split-k 33", " more.");
  expect_refused("attention --sink " + scratch.path("f32.npy"), "must have 1 axis");
  expect_refused("attention --explain --lse " + scratch.path("lse.npy"), "--lse is of a run");
  expect_refused("attention --heads 6 --kv-heads 4",
                 "--heads 6 --kv-heads 4: attention: heads is 6 and kv_heads is 4");
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
