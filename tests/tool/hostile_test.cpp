// Every option of every command with values as a hostile user would give them: no signal, no hang,
// and one short sentence that names the option and the value. A table, not chance: what is found
// here stays found.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "run_tool.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool_test {
namespace {

using Line = Words;

/// What an option takes, and what it does not.
struct Kind {
  std::vector<std::string> bad;
};
std::string const kControl = "\x1b[31m\n";
std::string const kLong(5000, '7');

Kind const kExtent{{"", "0", "-1", "x", "1.5", "1e3", "0x10", " 16", "16 ", "1073740801",
                    "4294967312", "9223372036854775808", kLong}};
Kind const kCount{
    {"", "-0", "-1", "x", "1.5", "2147483648", "4294967297", "99999999999999999999", kControl}};
Kind const kHeadDim{
    {"", "0", "-32", "33", "512", "x", "64x", "1073740801", "18446744073709551680"}};
Kind const kLengths{{"", "0", "-0", "-0,3", "3,-0", "-1", "x", ",", "1,,", ",1", "1 2", "1,x",
                     "1073740801", "1073740800,1", "2147483648", kControl, "9," + kLong}};
Kind const kConfiguration{{"", "-0", "-1", "x", "100000", "2147483648"}};
Kind const kSeed{{"", "-1", "x", "0.5", "18446744073709551616"}};
Kind const kReal{
    {"", "x", "nan", "inf", "-inf", "1e40", "1e-46", "0x1p3", "1,5", "1 2", "+-1", kLong}};
Kind const kPositive{{"", "0", "-1", "nan", "inf", "1e-46", "1e39"}};
Kind const kWord{{"", "x", "NONE", "none ", "-", kControl, kLong}};
Kind const kType{{"", "f64", "F16", "bf16 ", "int8", kControl, kLong}};
Kind const kPair{{"", "x", "64", "64x", "x64", "0x0", "0x64", "-64x64", "64x64x64",
                  "4294967360x128", "64 x 64", "7x7"}};
Kind const kInputArray{{"", "missing.npy", "missing.safetensors:w", "text.npy", "text.txt",
                        "text.safetensors:w", ".", "text.npy/x.npy", "pipe.npy", "empty.npy",
                        "empty.safetensors", "empty.safetensors:", kControl}};
Kind const kOutputArray{{"", "nowhere/x.npy", "x.txt", ".", "x.npy/", kControl,
                         "x.safetensors:", "x.safetensors:__metadata__", "x.safetensors:\xff"}};
Kind const kOutputFile{{"", "nowhere/x", ".", "new/", "text.npy/x"}};
Kind const kOutputOfRun{{"", "nowhere/x", ".", "new/", "text.npy/x", "-", "/dev/full"}};
Kind const kDevice{{"", "x", "SIM", "cuda:", "cuda:-1", "cuda:x", "cuda:99999999999", kControl}};

struct Option {
  std::string name;
  Kind kind;
};
std::vector<Option> const kMachineOptions = {
    {"--device", kDevice},
    {"--arch", kWord},
    {"--scheduler", kWord},
    {"--completion", kWord},
    {"--interleaving", kWord},
    {"--choices", {{"", "x", "1 2 x", kLong}}},
    {"--seed", kSeed},
    {"--workers", {{"", "-1", "x", "1025"}}},
    {"--sms", {{"", "0", "-1", "65537", "x"}}},
    {"--report", kOutputOfRun},
    {"--trace", kOutputOfRun},
    {"--svg", kOutputOfRun},
    {"--trace-ctas", {{"", "0", "-1", "x", "4097"}}},
    {"--bank-conflicts", kCount},
    {"--excess-sectors", kCount},
    {"--allow", {{"", "missing.json", ".", "text.npy", "empty.npy", "-", "/dev/zero"}}},
    {"--repeat", {{"", "0", "-1", "x", "2147483648"}}}};

struct Command {
  Line base;  ///< which runs as it stands
  std::vector<Option> options;
};

std::vector<Command> commands() {
  Command gemm{
      {"gemm", "--m", "16", "--n", "16", "--k", "16"},
      {{"--a", kInputArray},       {"--b", kInputArray},
       {"--c", kInputArray},       {"--bias", kInputArray},
       {"--m", kExtent},           {"--n", kExtent},
       {"--k", kExtent},           {"--batch", kExtent},
       {"--dtype", kType},         {"--in-b", kType},
       {"--out-type", kType},      {"--alpha", kReal},
       {"--beta", kReal},          {"--scale-a", kReal},
       {"--scale-b", kReal},       {"--activation", kWord},
       {"--output", kOutputArray}, {"--draw-tiles", kOutputOfRun},
       {"--kernel", kWord},        {"--config", kConfiguration},
       {"--schedule", kWord},      {"--tile", kPair},
       {"--cluster", kPair},       {"--split-k", {{"", "0", "-1", "x", "77", "2147483648"}}},
       {"--raster", kWord},        {"--group", {{"", "0", "-1", "x", "2147483648"}}},
       {"--widths", kWord},        {"--scales", kWord},
       {"--grouping", kWord},      {"--groups", kLengths}}};
  Command attention{
      {"attention", "--seq-q", "16", "--head-dim", "64"},
      {{"--q", kInputArray},
       {"--k", kInputArray},
       {"--v", kInputArray},
       {"--layout", kWord},
       {"--batch", kExtent},
       {"--heads", kExtent},
       {"--kv-heads", kExtent},
       {"--seq-q", kExtent},
       {"--seq-k", kExtent},
       {"--head-dim", kHeadDim},
       {"--head-dim-v", kHeadDim},
       {"--window-left", kCount},
       {"--window-right", kCount},
       {"--softcap", kPositive},
       {"--sink", kInputArray},
       {"--kernel", kWord},
       {"--config", kConfiguration},
       {"--dtype", kType},
       {"--scale", kPositive},
       {"--exponential", kWord},
       {"--output", kOutputArray},
       {"--lse", kOutputArray},
       {"--out-type", kType},
       {"--q-descale", kInputArray},
       {"--k-descale", kInputArray},
       {"--v-descale", kInputArray},
       {"--lengths-q", kLengths},
       {"--lengths-k", kLengths},
       {"--append", kLengths},
       {"--page-size",
        {{"", "0", "-1", "x", "1", "17", "48", "129", "2147483520", "2147483648", kLong}}},
       {"--splits", {{"", "0", "-1", "x", "1025", "2147483648"}}}}};
  for (Command* const command : {&gemm, &attention})
    command->options.insert(command->options.end(), kMachineOptions.begin(), kMachineOptions.end());
  std::string const mma = "SM80_16x8x16_F32F16F16F32_TN";
  Kind const layout{
      {"", "(", "x", "(2,2", "0", "(2,2):(1", "(0,1)", "9223372036854775808", kControl, kLong}};
  Kind const name{{"", "x", "SM80", kControl, kLong}};
  return {gemm,
          attention,
          {{"compile", "gemm_sm90"}, {{"--arch", {{"", "x", "sm_1", "90a", kControl, kLong}}}}},
          {{"layout", "(4,8)"},
           {{"--banks", {{"x", "0", "-1", "7", "256", "1e1"}}},
            {"--svg", kOutputFile},
            {"--latex", kOutputFile}}},
          {{"layout"}, {{"--batch", {{"", "missing.jsonl", ".", "/dev/zero", "/dev/urandom"}}}}},
          {{"atom", mma}, {{"--svg", kOutputFile}}},
          {{"tiled-mma", "--atom", mma},
           {{"--atom", name},
            {"--layout", layout},
            {"--tile", {{"", "<", "x", "<1,1,1>", "<0,0,0>", kControl}}},
            {"--svg", kOutputFile}}},
          {{"tiled-copy", "--atom", "UniversalCopy<uint32_t>", "--threads", "(4,2)", "--values",
            "(1,2)"},
           {{"--atom", name},
            {"--type", {{"", "x", "0", "-8", "7", kControl}}},
            {"--threads", layout},
            {"--values", layout},
            {"--svg", kOutputFile}}},
          {{"tiled-copy", "--atom", "SM75_U32x4_LDSM_N", "--of", "a", "--mma", mma},
           {{"--of", {{"", "x", "d", "ab", kControl}}},
            {"--mma", name},
            {"--layout", layout},
            {"--tile", {{"", "<", "x", "<1,1,1>"}}}}}};
}

/// The base with the option set to the value, in place of what it says there.
Line with(Line line, std::string const& option, std::string const& value) {
  auto const at = std::find(line.begin(), line.end(), option);
  if (at != line.end()) line.erase(at, at + 2);
  line.insert(line.end(), {option, value});
  return line;
}

/// A folder with files that are not what they are called.
void fill(TemporaryFolder const& folder) {
  write(folder / "text.npy", "no array\n");
  write(folder / "text.txt", "no array\n");
  write(folder / "text.safetensors", "no tensors here\n");
  write(folder / "empty.npy", "");
  write(folder / "empty.safetensors", "");
  run_shell("mkfifo pipe.npy", folder.path());
}

constexpr int kTimedOut = 124;

Outcome run(Line const& line, TemporaryFolder const& folder) {
  std::string text = "timeout 10 tegula";
  for (std::string const& argument : line) text += " " + quoted(argument);
  return run_shell(text + " </dev/null", folder.path());
}

/// The text as a sentence shows it, or the beginning of that; of a tensor of a file, the file.
std::string shown(std::string const& value) {
  return value.empty()
             ? "''"
             : io::printable(value.substr(0, std::min<std::size_t>(40, value.find(":w"))));
}

std::string shown(Line const& line) {
  std::string text;
  for (std::string const& argument : line) text += io::in_quotes(argument.substr(0, 40)) + " ";
  return text;
}

/// One sentence, not too long, without control characters.
void expect_sentence(Outcome const& outcome, std::string const& what) {
  EXPECT_TRUE(outcome.status == 1 || outcome.status == 2)
      << what
      << (outcome.status == kTimedOut ? "has no end"
                                      : "ends with " + std::to_string(outcome.status));
  EXPECT_TRUE(outcome.err.starts_with("tegula: ") && outcome.err.ends_with("\n"))
      << what << outcome.err;
  EXPECT_LT(outcome.err.size(), 1000u) << what;
  EXPECT_EQ(std::count_if(outcome.err.begin(), outcome.err.end(),
                          [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
            1)
      << what << "prints control characters";
}

/// The first names of the options of a command's --help that take a value.
std::vector<std::string> options_in_help(std::string const& command,
                                         TemporaryFolder const& folder) {
  std::istringstream help(run({command, "--help"}, folder).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  --")) continue;
    // "--name TYPE", and behind two spaces what it is for; a flag has no type.
    std::string const option = line.substr(2, line.find("  ", 2) - 2);
    if (option.find(' ') != std::string::npos)
      names.push_back(option.substr(0, option.find_first_of(", ")));
  }
  return names;
}

TEST(Hostile, EveryOptionThatTakesAValueIsTriedHere) {
  TemporaryFolder const folder;
  std::set<std::string> tried, known;
  for (Command const& command : commands())
    for (Option const& option : command.options) tried.insert(command.base[0] + " " + option.name);
  for (std::string const& command : command_names())
    for (std::string const& option : options_in_help(command, folder))
      known.insert(command + " " + option);
  EXPECT_EQ(tried, known);
}

TEST(Hostile, EveryOptionRefusesBadValuesByName) {
  TemporaryFolder const folder;
  fill(folder);
  int lines = 0;
  for (Command const& command : commands()) {
    for (Option const& option : command.options) {
      for (std::string const& value : option.kind.bad) {
        Line line = with(command.base, option.name, value);
        // What only the simulated machine has is refused by that name on a GPU.
        if (option.name == "--report" || option.name == "--trace" || option.name == "--svg") {
          if (line[0] == "gemm" || line[0] == "attention")
            line.insert(line.end(), {"--device", "sim"});
        }
        std::string const what = shown(line);
        Outcome const outcome = run(line, folder);
        expect_sentence(outcome, what);
        EXPECT_THAT(outcome.err, ::testing::HasSubstr(option.name)) << what;
        std::string const value_shown = shown(value);
        EXPECT_THAT(outcome.err, ::testing::HasSubstr(value_shown)) << what;
        ++lines;
      }
    }
  }
  EXPECT_GE(lines, 400);
}

TEST(Hostile, OptionsWithoutAValueTwiceOrUnknownAreRefused) {
  TemporaryFolder const folder;
  fill(folder);
  for (Command const& command : commands()) {
    for (Option const& option : command.options) {
      bool const optional_value =
          option.name == "--banks" || option.name == "--latex" ||
          (option.name == "--svg" && command.base[0] != "gemm" && command.base[0] != "attention");
      Line missing = with(command.base, option.name, "");
      missing.pop_back();
      if (!optional_value) {
        Outcome const outcome = run(missing, folder);
        expect_sentence(outcome, shown(missing));
        EXPECT_THAT(outcome.err, ::testing::HasSubstr(option.name)) << shown(missing);
        EXPECT_THAT(outcome.err, ::testing::HasSubstr("; it takes: ")) << shown(missing);
      }
      Line empty = with(command.base, option.name, "");
      empty.pop_back(), empty.back() += "=";
      Outcome const without = run(empty, folder);
      expect_sentence(without, shown(empty));
      EXPECT_THAT(without.err, ::testing::HasSubstr(option.name + ": '' is given; it takes"))
          << shown(empty);
      Line twice = with(command.base, option.name, "16");
      twice.insert(twice.end(), {option.name, "32"});
      Outcome const outcome = run(twice, folder);
      expect_sentence(outcome, shown(twice));
      EXPECT_THAT(outcome.err, ::testing::HasSubstr(option.name)) << shown(twice);
    }
    for (std::string const& unknown : {std::string("--frobnicate"), std::string("-x"),
                                       std::string("extra"), "--" + kLong, std::string("--\n")}) {
      Line line = command.base;
      line.push_back(unknown);
      if (command.base == Line{"layout"} && unknown == "extra") continue;  // an expression
      Outcome const outcome = run(line, folder);
      expect_sentence(outcome, shown(line));
      EXPECT_THAT(outcome.err, ::testing::HasSubstr(shown(unknown))) << shown(line);
    }
    for (std::string const flag :
         {"--json=maybe", "--json=", "--json=false", "--json=2", "--help=0"}) {
      Line line = command.base;
      line.push_back(flag);
      Outcome const outcome = run(line, folder);
      expect_sentence(outcome, shown(line));
      EXPECT_EQ(outcome.status, 2) << shown(line);
      EXPECT_THAT(outcome.err, ::testing::HasSubstr(flag.substr(0, 6))) << shown(line);
    }
  }
}

TEST(Hostile, OptionsThatChangeNothingAreRefusedByName) {
  TemporaryFolder const folder;
  std::string const mma = "SM80_16x8x16_F32F16F16F32_TN";
  Line const copy = {"tiled-copy", "--atom", "UniversalCopy<uint32_t>"};
  Line const of_a = {"tiled-copy", "--atom", "SM75_U32x4_LDSM_N", "--of", "a", "--mma", mma};
  Line const gemm = {"gemm", "--m", "16", "--n", "16", "--k", "16", "--device", "sim"};
  struct Case {
    Line line, unheeded;  ///< the option that is refused, with its value
  };
  std::vector<Case> cases = {{{"layout", "--batch", "-"}, {"--svg", "x.svg"}},
                             {{"layout", "--batch", "-"}, {"--latex"}},
                             {{"layout", "--batch", "-"}, {"--banks", "8"}},
                             {copy + Line{"--threads", "(4,2)"}, {"--mma", mma}},
                             {copy + Line{"--threads", "(4,2)"}, {"--layout", "(2,2,1)"}},
                             {copy + Line{"--threads", "(4,2)"}, {"--tile", "<_,_,_>"}},
                             {of_a, {"--values", "(1,2)"}},
                             {gemm + Line{"--explain"}, {"--measure"}},
                             {gemm + Line{"--measure"}, {"--output", "x.npy"}},
                             {gemm + Line{"--measure"}, {"--draw-tiles", "x.svg"}},
                             {gemm + Line{"--groups", "16"}, {"--trans-a"}},
                             {gemm + Line{"--groups", "16"}, {"--trans-b"}}};
  for (char const* const scales : {"none", "1x128,128x128", "1x128,1x128", "mx", "nv"})
    cases.push_back({gemm + Line{"--scales", scales}, {"--trans-b"}});
  for (Line const& command : {gemm, Line{"attention", "--device", "sim"}}) {
    for (Line const& of_run : std::vector<Line>{{"--repeat", "2"},
                                                {"--scheduler", "first"},
                                                {"--completion", "first"},
                                                {"--interleaving", "random"},
                                                {"--choices", "sync 0"},
                                                {"--workers", "2"},
                                                {"--unchecked"},
                                                {"--report", "x.json"},
                                                {"--report-without-counters"},
                                                {"--bank-conflicts", "1"},
                                                {"--excess-sectors", "1"},
                                                {"--allow", "x.json"},
                                                {"--trace", "x.json"},
                                                {"--svg", "x.svg"},
                                                {"--trace-ctas", "1"},
                                                {"--trace-barriers"}})
      cases.push_back({command + Line{"--explain"}, of_run});
    cases.push_back({command, {"--trace-ctas", "3"}});
    cases.push_back({command, {"--trace-barriers"}});
    cases.push_back({command, {"--report-without-counters"}});
    for (char const* const found : {"--bank-conflicts", "--excess-sectors", "--allow"})
      cases.push_back({command + Line{"--unchecked"}, {found, "1"}});
    cases.push_back(
        {command + Line{"--unchecked", "--report", "x.json"}, {"--report-without-counters"}});
    cases.push_back({command + Line{"--completion", "last", "--interleaving", "random"},
                     {"--scheduler", "first"}});
    cases.push_back({command + Line{"--choices", "sync 0"}, {"--workers", "2"}});
  }
  for (auto const& [line, unheeded] : cases) {
    Outcome const outcome = run(line + unheeded, folder);
    expect_sentence(outcome, shown(line + unheeded));
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(unheeded[0])) << shown(line + unheeded);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << shown(line + unheeded);
  }
}

TEST(Hostile, NumbersThatBeginWithZeroAreDecimal) {
  TemporaryFolder const folder;
  Outcome const outcome = run({"gemm", "--m", "016", "--n", "0010", "--k", "064", "--seed", "011",
                               "--alpha", "010", "--device", "sim", "--explain", "--json"},
                              folder);
  for (char const* const field :
       {"\"m\":16,", "\"n\":10,", "\"k\":64,", "\"seed\":11,", "\"alpha\":10.0,"})
    EXPECT_THAT(outcome.out, ::testing::HasSubstr(field)) << outcome.err;
}

TEST(Hostile, PositionalArgumentsAreRefusedByTheirText) {
  TemporaryFolder const folder;
  for (Line const& line :
       std::vector<Line>{{"layout", ""},
                         {"layout", " "},
                         {"layout", "4:"},
                         {"layout", ":4"},
                         {"layout", "(4,8"},
                         {"layout", "(4,8)) "},
                         {"layout", "0:1"},
                         {"layout", "-4:1"},
                         {"layout", "4:1:1"},
                         {"layout", "4:9223372036854775808"},
                         {"layout", "(4,8):(1,4,2)"},
                         {"layout", "Sw<3,3> o 8"},
                         {"layout", "Sw<-1,3,3> o 8"},
                         {"layout", "Sw<99,3,3> o 8"},
                         {"layout", "compose(4,4)"},
                         {"layout", "composition(4)"},
                         {"layout", "composition(4,4,4)"},
                         {"layout", "composition((4,3):(1,8),5:1)"},
                         {"layout", "upcast(8:1,0)"},
                         {"layout", "upcast(8:1,-2)"},
                         {"layout", "downcast(8:1,9223372036854775807)"},
                         {"layout", "recast(8:1,0,0)"},
                         {"layout", "select((2,3),9)"},
                         {"layout", "take((2,3),2,1)"},
                         {"layout", "group((2,3),-1,9)"},
                         {"layout", "idx2crd(-1,(2,3))"},
                         {"layout", "idx2crd(6,(2,3))"},
                         {"layout", "slice((2,3),(_,_,_))"},
                         {"layout", "size((4,8),2)"},
                         {"layout", "nullspace(x)"},
                         {"layout", kControl},
                         {"layout", kLong},
                         {"atom", ""},
                         {"atom", "x"},
                         {"atom", "SM80_16x8x16"},
                         {"atom", "UniversalCopy<uint7_t>"},
                         {"atom", "UniversalCopy<0>"},
                         {"atom", "SM90_64x12x16_F32F16F16_SS"},
                         {"atom", kControl},
                         {"atom", kLong},
                         {"", ""},
                         {"x"},
                         {"GEMM"},
                         {kControl},
                         {kLong},
                         {"info", "x"},
                         {"atoms", "x"},
                         {"gemm", "x"},
                         {"attention", "--", "x"},
                         {"layout", "4", "8"},
                         {"atom"},
                         {"layout"},
                         {"layout", "4", "--batch", "-"},
                         {"layout", "4", "--svg", "-", "--json"},
                         {"layout", "4", "--svg", "--latex"},
                         {"gemm", "--measure", "--device", "sim", "--m", "16"},
                         {"gemm", "--explain", "--output", "x.npy"},
                         {"gemm", "--explain", "--report", "x.json"},
                         {"gemm", "--completion", "last", "--choices", "x"},
                         {"gemm", "--in", "e4m3"},
                         {"gemm", "--in", "tf32", "--trans-a", "--trans-b"},
                         {"gemm", "--in", "f16", "--in-b", "bf16"},
                         {"gemm", "--in", "e4m3", "--trans-b", "--k", "17"},
                         {"gemm", "--beta", "1e38", "--c", "x.npy"},
                         {"gemm", "--batch", "1073740800", "--m", "1073740800"},
                         {"attention", "--heads", "4", "--kv-heads", "3"},
                         {"attention", "--dtype", "f32"},
                         {"attention", "--dtype", "e5m2"},
                         {"attention", "--dtype", "e4m3", "--arch", "sm80"},
                         {"attention", "--dtype", "e4m3", "--head-dim", "72"},
                         {"attention", "--dtype", "bf16", "--out-type", "f16"},
                         {"attention", "--softcap", "1e-30"},
                         {"attention", "--causal", "--window-right", "1"},
                         {"attention", "--kernel", "sm80", "--window-left", "1"},
                         {"attention", "--explain", "--output", "x.npy"},
                         {"attention", "--explain", "--svg", "x.svg"},
                         {"attention", "--arch", "sm80", "--head-dim", "64", "--head-dim-v", "32"},
                         {"attention", "--arch", "sm80", "--head-dim", "48"},
                         {"gemm", "--m", "16", "--lines", "--json"},
                         {"gemm", "--explain", "--lines", "--json"},
                         {"gemm", "--", "--m", "5"},
                         {"layout", "(8,8):(1@0,1@1)", "--banks", "16"}}) {
    expect_sentence(run(line, folder), shown(line));
  }
}

TEST(Hostile, WhatIsAcceptedStandsInTheAnswerToAMissingOrSecondValue) {
  TemporaryFolder const folder;
  auto const says = [&](Line const& line, std::string const& sentence) {
    Outcome const outcome = run(line, folder);
    expect_sentence(outcome, shown(line));
    EXPECT_EQ(outcome.status, 2) << shown(line);
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(sentence)) << shown(line);
  };
  std::string const extent = "a whole number from 1 to 1073740800";
  says({"gemm", "--m"}, "--m: is given without a value; it takes: " + extent);
  says({"gemm", "--m", "5", "--m=6"},
       "--m: is given more than once; it takes one value: " + extent);
  says({"gemm", "--in", "f16", "--in", "f16"},
       "--in: is given more than once; it takes one value: ");
  says({"gemm", "--tile"}, "--tile: is given without a value; it takes: rows and columns of D");
  says({"attention", "--head-dim"}, "it takes: a multiple of 8 from 8 to 256 or 576 ");
  says({"gemm", "--json", "--json"}, "--json: is given more than once; once is enough");
  says({"atom"}, "NAME is left out; it is required: ");
  // The next option is no value.
  says({"gemm", "--tile", "--n", "4"}, "--tile: is given without a value; it takes: rows and");
  says({"gemm", "--a", "--n", "4"}, "--a: is given without a value; it takes: the name of a file");
  says({"gemm", "--in", "--n=4"}, "--in: is given without a value; it takes: type of A and B");
  says({"gemm", "--groups", "--json"}, "--groups: is given without a value; it takes: ");
  says({"gemm", "--m", "--n", "4"}, "--m: is given without a value; it takes: " + extent);
  says({"attention", "--lengths-q", "--causal"}, "--lengths-q: is given without a value; ");
  says({"tiled-mma", "--atom", "-h"}, "--atom: is given without a value; it takes: ");
  says({"gemm", "--scheduler", "first", "--choices", "x"},
       "--scheduler and --choices are both given; they exclude each other");
}

TEST(Hostile, ExamplesInSentencesAreTaken) {
  TemporaryFolder const folder;
  Line const gemm{"gemm", "--trans-b", "--explain", "--device", "sim"};
  Line const groups{"gemm", "--explain", "--device", "sim"};
  for (auto const& [base, option, wrong, behind] :
       std::vector<std::tuple<Line, std::string, std::string, std::string>>{
           {gemm, "--tile", "0x1", "such as "},
           {gemm, "--cluster", "0x1", "such as "},
           {groups, "--groups", "x", ", as "}}) {
    std::string const sentence = run(base + Line{option, wrong}, folder).err;
    auto const at = sentence.find(behind);
    ASSERT_NE(at, std::string::npos) << sentence;
    std::string example = sentence.substr(at + behind.size());
    example = example.substr(0, example.find_first_of(". \n"));
    if (example.ends_with(',')) example.pop_back();
    EXPECT_EQ(run(base + Line{option, example}, folder).err, "") << option << " " << example;
  }
  EXPECT_THAT(run({"gemm", "--groups", "2147483648"}, folder).err,
              ::testing::HasSubstr("at most 1073740800 in all."));
}

/// The values between `behind` and the end of a sentence: "f16, bf16 or f32".
std::vector<std::string> offered(std::string const& sentence, std::string const& behind) {
  std::vector<std::string> values;
  auto const at = sentence.find(behind);
  if (at == std::string::npos) return values;
  std::istringstream words(sentence.substr(at + behind.size()));
  for (std::string word; words >> word;) {
    while (word.ends_with(',') || word.ends_with('.')) word.pop_back();
    if (word != "or") values.push_back(word);
  }
  return values;
}

TEST(Hostile, TypesThatASentenceOffersAreTaken) {
  TemporaryFolder const folder;
  std::string const behind = "it must be ";
  Line const gemm{"gemm", "--trans-b", "--explain", "--device", "sim"};
  Line const scaled{"gemm", "--scales", "mx", "--explain", "--device", "sim", "--arch", "sm100"};
  Line const attention{"attention", "--explain", "--device", "sim"};
  Line const of_128{"gemm", "--scales", "1x128,128x128", "--explain", "--device", "sim"};
  Line const rows{"gemm", "--scales", "1x128,1x128", "--explain", "--device", "sim"};
  for (auto const& [base, option, count] :
       std::vector<std::tuple<Line, std::string, std::size_t>>{{gemm, "--dtype", 5},
                                                               {gemm, "--out-type", 3},
                                                               {scaled, "--dtype", 5},
                                                               {scaled, "--in-b", 5},
                                                               {of_128, "--dtype", 2},
                                                               {rows, "--dtype", 2},
                                                               {attention, "--dtype", 3}}) {
    std::vector<std::string> const types =
        offered(run(base + Line{option, "x"}, folder).err, behind);
    EXPECT_EQ(types.size(), count) << option;
    for (std::string const& type : types) {
      Outcome const outcome = run(base + Line{option, type}, folder);
      // That this build has no such configuration is another matter.
      EXPECT_THAT(outcome.err, ::testing::AnyOf("", ::testing::HasSubstr("of this build")))
          << option << " " << type;
    }
  }
}

TEST(Hostile, WhoseMachineIsNotThereIsNamed) {
  TemporaryFolder const folder;
  for (Line const& line :
       {Line{"gemm", "--device", "cuda:99"}, {"attention", "--device", "cuda:99"}}) {
    Outcome const outcome = run(line, folder);
    expect_sentence(outcome, shown(line));
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("--device cuda:99: ")) << shown(line);
  }
  Line const groups{"gemm", "--groups", "16", "--device", "sim", "--arch", "sm80"};
  EXPECT_THAT(run(groups, folder).err, ::testing::HasSubstr("--arch sm80: "));
  EXPECT_THAT(run({"compile", "x"}, folder).err,
              ::testing::HasSubstr("CONFIG: no kernel is named 'x'"));
}

// What no kernel at hand can do is not done in part.
TEST(Hostile, KeysAreComputedInPartsOrRefused) {
  TemporaryFolder const folder;
  Line const few{"attention", "--seq-q", "1", "--seq-k", "300", "--device", "sim", "--json"};
  for (Line const& options : std::vector<Line>{{"--splits", "2", "--arch", "sm80"},
                                               {"--splits", "2", "--arch", "sm100"},
                                               {"--splits", "2", "--kernel", "sm80"},
                                               {"--splits", "2", "--config", "0"}}) {
    Line const line = few + options;
    Outcome const outcome = run(line, folder);
    expect_sentence(outcome, shown(line));
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("--splits 2")) << shown(line);
  }
  // Many queries too, which are not computed in parts unless that is asked for.
  Line const many{"attention", "--seq-q", "300", "--seq-k", "300", "--device", "sim"};
  EXPECT_THAT(run(many, folder).out, ::testing::Not(::testing::HasSubstr("serving")));
  EXPECT_THAT(
      run(many + Line{"--splits", "3"}, folder).out,
      ::testing::AllOf(::testing::HasSubstr("serving"), ::testing::HasSubstr("within bounds")));
}

TEST(Hostile, TilesAreCountedBeforeTheyAreNarrowed) {
  TemporaryFolder const folder;
  Line const mma{"tiled-mma", "--json", "--atom", "SM80_16x8x16_F32F16F16F32_TN"};
  Line const copy{"tiled-copy", "--json", "--atom", "UniversalCopy<uint32_t>", "--type", "f32"};
  for (Line const& line :
       {mma + Line{"--layout", "(4294967297,1,1)"}, mma + Line{"--layout", "(200000000,2,1)"},
        mma + Line{"--tile", "<4294967312,8,16>"}, mma + Line{"--layout", "(134217728,1,1)"},
        copy + Line{"--threads", "4294967328"},
        copy + Line{"--threads", "(65536,65536)", "--values", "(65536,65536)"},
        copy + Line{"--threads", "32", "--values", "(1,134217728)"}}) {
    Outcome const outcome = run(line, folder);
    expect_sentence(outcome, shown(line));
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("a tile has at most 2^31 - 1 of them"))
        << shown(line);
  }
}

}  // namespace
}  // namespace tegula::tool_test
