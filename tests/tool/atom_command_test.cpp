#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace tegula::tool_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

json run_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  Outcome const outcome = run_tool(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json::parse(outcome.out);
}

TEST(AtomCommand, GivesTheFragmentsOfAnMma) {
  json const atom = run_json({"atom", "SM80_16x8x16_F32F16F16F32_TN"});
  EXPECT_EQ(atom["name"], "SM80_16x8x16_F32F16F16F32_TN");
  EXPECT_EQ(atom["kind"], "mma");
  EXPECT_EQ(atom["shape_mnk"], json({16, 8, 16}));
  EXPECT_EQ(atom["threads"], 32);
  EXPECT_EQ(atom["a"]["layout"], "((4,8),(2,2,2)):((32,1),(16,8,128))");
  EXPECT_EQ(atom["a"]["values"], 8);
  EXPECT_EQ(atom["b"]["values"], 4);
  EXPECT_EQ(atom["c"]["values"], 4);
  ASSERT_EQ(atom["a"]["table"].size(), 256u);
  // PTX ISA, mma.m16n8k16, A: row = group (+8 for elements 2, 3, 6, 7), column = 2 t + (i & 1) (+8
  // from element 4 on).
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i) {
      int const row = lane / 4 + (i % 4 < 2 ? 0 : 8);
      int const column = 2 * (lane % 4) + i % 2 + (i < 4 ? 0 : 8);
      EXPECT_EQ(atom["a"]["table"][static_cast<std::size_t>(lane + 32 * i)], row + 16 * column);
    }
  }
}

TEST(AtomCommand, GivesTheBitsOfACopy) {
  json const atom = run_json({"atom", "SM75_U32x2_LDSM_N"});
  EXPECT_EQ(atom["kind"], "copy");
  EXPECT_EQ(atom["threads"], 32);
  EXPECT_EQ(atom["src"]["layout"], "((16,2),128):((128,0),1)");
  EXPECT_EQ(atom["src"]["values"], 128);
  EXPECT_EQ(atom["dst"]["layout"], "(32,(32,2)):(32,(1,1024))");
  EXPECT_EQ(atom["ref"], atom["dst"]);
  EXPECT_EQ(atom["src"]["table"].size(), 32u * 128u);
  EXPECT_EQ(atom["src"]["table"][17], 128);  // lane 17 repeats the address of lane 1
}

TEST(AtomCommand, EveryAtomListedCanBeShownAndDrawn) {
  TemporaryFolder const folder;
  json const list = run_json({"atoms"});
  EXPECT_GT(list.size(), 90u);
  std::string const text = run_tool({"atoms"}).out;
  std::set<std::string> kinds;
  int tiles = 0;
  for (json const& entry : list) {
    std::string const name = entry["name"];
    if (name.starts_with("SM90_64x")) {
      // Listed once for all widths; shown at the least, at an odd one and at the greatest.
      int const n = entry["shape_mnk"][1];
      std::string listed = name;
      listed.replace(8, std::to_string(n).size(), "N");
      EXPECT_THAT(text, HasSubstr(listed + " "));
      if (n != 8 && n != 24 && (n != 256 || !name.ends_with("F32BF16BF16_RS"))) continue;
    } else {
      EXPECT_THAT(text, HasSubstr(name));
    }
    kinds.insert(entry["kind"].get<std::string>());
    if (name.starts_with("SM90_TMA") || name.starts_with("SM90_BULK")) {
      Outcome const refused = run_tool({"atom", name});
      EXPECT_EQ(refused.status, 1) << name;
      EXPECT_THAT(refused.err,
                  AllOf(HasSubstr(name), HasSubstr("moves a whole tile that one thread asks for")));
      ++tiles;
      continue;
    }
    json const atom = run_json({"atom", name});
    EXPECT_EQ(atom["name"], name);
    EXPECT_EQ(atom["kind"], entry["kind"]);
    Outcome const shown = run_tool({"atom", name, "--svg", (folder / "a.svg").string()});
    EXPECT_EQ(shown.status, 0) << name << ": " << shown.err;
    EXPECT_THAT(shown.out, StartsWith(name + "\n"));
    EXPECT_THAT(read(folder / "a.svg"), AllOf(StartsWith("<svg "), EndsWith("</svg>\n")));
  }
  EXPECT_EQ(tiles, 6);
  EXPECT_EQ(kinds, (std::set<std::string>{"copy", "mma"}));
}

TEST(AtomCommand, SaysWhatWgmmaReadsFromSharedMemory) {
  json const ss = run_json({"atom", "SM90_64x16x16_F32BF16BF16_SS"});
  EXPECT_EQ(ss["threads"], 128);
  EXPECT_EQ(
      ss["a"],
      json({{"layout", "(128,(64,16)):(0,(1,64))"}, {"values", 1024}, {"in", "shared memory"}}));
  EXPECT_EQ(ss["c"]["layout"], "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(ss["c"]["table"][37 + 128 * 3], 16 + 1 + 8 + 64 * 3);  // row 8 on, the pair's second
  json const rs = run_json({"atom", "SM90_64x16x16_F32BF16BF16_RS"});
  EXPECT_EQ(rs["a"]["layout"], "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(rs["b"]["in"], "shared memory");
  EXPECT_THAT(run_tool({"atom", "SM90_64x16x16_F32BF16BF16_SS"}).out,
              HasSubstr("128 threads; A and B in shared memory"));
  EXPECT_THAT(run_tool({"atom", "SM90_64x16x16_F32BF16BF16_RS"}).out,
              HasSubstr("128 threads; B in shared memory"));
}

TEST(AtomCommand, AnUnknownNameIsAnsweredWithSimilarOnes) {
  Outcome const outcome = run_tool({"atom", "SM80_16x8x16_F32F16F16F32_NT"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("'SM80_16x8x16_F32F16F16F32_NT'"),
                                 HasSubstr("SM80_16x8x16_F32F16F16F32_TN")));
  EXPECT_NE(run_tool({"atom"}).status, 0);
}

TEST(TiledMmaCommand, GivesTheLayoutsOverTheTile) {
  json const mma = run_json({"tiled-mma", "--atom", "SM80_16x8x16_F32F16F16F32_TN", "--layout",
                             "(2,2,1)", "--tile", "<32,32,16>"});
  EXPECT_EQ(mma["threads"], 128);
  EXPECT_EQ(mma["tile"], json({32, 32, 16}));
  EXPECT_EQ(mma["a"]["layout"], "((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))");
  EXPECT_EQ(mma["b"]["layout"], "((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,0)))");
  EXPECT_EQ(mma["c"]["layout"], "((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(0,512)))");
  EXPECT_EQ(mma["c"]["values"], 8);
  std::set<int> const held = mma["c"]["table"];
  EXPECT_EQ(held.size(), 32u * 32u);
  // Thread 37 is lane 5 of group 1, at M half 1: row 1 of the atom, columns 2 and 3.
  EXPECT_EQ(mma["c"]["table"][37], 16 + 1 + 32 * 2);
  EXPECT_EQ(mma["c"]["table"][37 + 128], 16 + 1 + 32 * 3);
}

TEST(TiledMmaCommand, TakesPermutationsAndDefaults) {
  std::string const name = "SM80_16x8x16_F32F16F16F32_TN";
  EXPECT_EQ(run_json({"tiled-mma", "--atom", name})["tile"], json({16, 8, 16}));
  EXPECT_EQ(run_json({"tiled-mma", "--atom", name, "--layout", "(2,2)"})["tile"],
            json({32, 16, 16}));
  EXPECT_EQ(run_json({"tiled-mma", "--atom", name, "--tile", "(32,16,16)"})["tile"],
            json({32, 16, 16}));
  json const plain =
      run_json({"tiled-mma", "--atom", name, "--layout", "(1,2,1)", "--tile", "<_,32,_>"});
  json const permuted = run_json(
      {"tiled-mma", "--atom", name, "--layout", "(1,2,1)", "--tile", "<_,(8,2,2):(1,16,8),_>"});
  EXPECT_EQ(plain["tile"], permuted["tile"]);
  // Position n in atom order lies at column 16 * ((n / 8) % 2) + 8 * (n / 16) + n % 8 of the tile.
  for (std::size_t i = 0; i < plain["b"]["table"].size(); ++i) {
    int const index = plain["b"]["table"][i];
    int const n = index % 32;
    EXPECT_EQ(permuted["b"]["table"][i],
              16 * ((n / 8) % 2) + 8 * (n / 16) + n % 8 + 32 * (index / 32));
  }
}

TEST(TiledCopyCommand, GivesSourceAndDestination) {
  json const copy = run_json({"tiled-copy", "--atom", "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>",
                              "--type", "f16", "--threads", "(16,8):(8,1)", "--values", "(1,8)"});
  EXPECT_EQ(copy["threads"], 128);
  EXPECT_EQ(copy["tile"], json({16, 64}));
  EXPECT_EQ(copy["src"]["values"], 8);
  EXPECT_EQ(copy["src"]["table"], copy["dst"]["table"]);
  for (int thread = 0; thread < 128; ++thread) {
    for (int value = 0; value < 8; ++value) {
      EXPECT_EQ(copy["src"]["table"][static_cast<std::size_t>(thread + 128 * value)],
                thread / 8 + 16 * (8 * (thread % 8) + value));
    }
  }
  // Without --type the elements are the operand's.
  Words const of_bytes = {"tiled-copy", "--atom", "SM75_U32x4_LDSM_N",         "--of",
                          "a",          "--mma",  "SM80_16x8x32_S32S8S8S32_TN"};
  Words said = of_bytes;
  said.insert(said.end(), {"--type", "s8"});
  EXPECT_EQ(run_json(of_bytes), run_json(said));
  EXPECT_EQ(run_json(of_bytes)["tile"], json({16, 32}));

  json const by_width = run_json({"tiled-copy", "--atom", "SM80_CP_ASYNC_CACHEGLOBAL", "--type",
                                  "16", "--threads", "(16,8):(8,1)", "--values", "(1,8)"});
  EXPECT_EQ(by_width, copy);
}

TEST(TiledCopyCommand, MatchesAnOperandOfATiledMma) {
  std::vector<std::string> const mma = {"SM80_16x8x16_F32F16F16F32_TN", "--layout", "(2,2,1)",
                                        "--tile", "<32,32,16>"};
  json const operands = run_json({"tiled-mma", "--atom", mma[0], mma[1], mma[2], mma[3], mma[4]});
  for (std::string const operand : {"a", "b"}) {
    json const copy = run_json({"tiled-copy", "--atom", "SM75_U32x4_LDSM_N", "--type", "f16",
                                "--of", operand, "--mma", mma[0], mma[1], mma[2], mma[3], mma[4]});
    EXPECT_EQ(copy["threads"], 128);
    EXPECT_EQ(copy["tile"], json({32, 16}));
    EXPECT_EQ(copy["dst"]["table"], operands[operand]["table"])
        << "the registers are filled as the MMA wants them";
    EXPECT_NE(copy["src"]["table"], copy["dst"]["table"]);
  }
  json const store = run_json(
      {"tiled-copy", "--atom", "SM90_U32x2_STSM_N", "--type", "f16", "--of", "C", "--mma", mma[0]});
  EXPECT_EQ(store["tile"], json({16, 8}));
}

TEST(TiledCopyCommand, SaysWhichWidthsAnElementHas) {
  for (char const* const type : {"3", "0", "128"}) {
    Outcome const outcome = run_tool(
        {"tiled-copy", "--atom", "UniversalCopy<uint32_t>", "--type", type, "--threads", "(4,2)"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("or its width in bits: 1, 4, 8, 16, 32, 64\n"));
  }
}

TEST(TiledCommands, RefuseWhatDoesNotFitWithASentence) {
  auto const refusal = [](std::vector<std::string> const& arguments) {
    Outcome const outcome = run_tool(arguments);
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("tegula: "));
    return outcome.err;
  };
  std::string const mma = "SM80_16x8x16_F32F16F16F32_TN";
  EXPECT_THAT(refusal({"tiled-mma", "--layout", "(2,2,1)"}), HasSubstr("--atom"));
  EXPECT_THAT(refusal({"tiled-mma", "--atom", "SM75_U32x4_LDSM_N"}),
              AllOf(HasSubstr("--atom"), HasSubstr("is a copy")));
  EXPECT_THAT(refusal({"tiled-mma", "--atom", mma, "--tile", "<24,8,16>"}), HasSubstr("multiple"));
  EXPECT_THAT(refusal({"tiled-mma", "--atom", mma, "--tile", "32"}),
              AllOf(HasSubstr("--tile"), HasSubstr("'32'")));
  EXPECT_THAT(refusal({"tiled-mma", "--atom", mma, "--layout", "<2,2,1>"}),
              AllOf(HasSubstr("--layout"), HasSubstr("'<2,2,1>'")));
  EXPECT_THAT(refusal({"tiled-mma", "--atom", mma, "--layout", "(2,"}), HasSubstr("(2,"));
  EXPECT_THAT(refusal({"tiled-copy", "--atom", mma, "--threads", "32:1"}), HasSubstr("is an MMA"));
  EXPECT_THAT(refusal({"tiled-copy", "--atom", "SM75_U32x4_LDSM_N"}), HasSubstr("--threads"));
  EXPECT_THAT(refusal({"tiled-copy", "--atom", "SM75_U32x4_LDSM_N", "--of", "a"}),
              HasSubstr("--mma"));
  EXPECT_THAT(
      refusal({"tiled-copy", "--atom", "SM75_U32x4_LDSM_N", "--of", "b", "--mma",
               "SM90_64x128x16_F32BF16BF16_RS"}),
      AllOf(HasSubstr("--of b: 'SM90_64x128x16_F32BF16BF16_RS'"), HasSubstr("shared memory")));
  EXPECT_THAT(refusal({"tiled-copy", "--atom", "SM75_U32x4_LDSM_N", "--of", "d", "--mma", mma}),
              AllOf(HasSubstr("--of"), HasSubstr("d")));
  EXPECT_THAT(refusal({"tiled-mma", "--atom", mma, "--layout", "(1024,1024,1)"}),
              AllOf(HasSubstr("--layout '(1024,1024,1)': "), HasSubstr("65536 cells")));
  EXPECT_THAT(run_tool({"tiled-mma", "--atom", mma, "--tile", "<8192,8192,16>", "--json"}).err,
              AllOf(HasSubstr("--tile '<8192,8192,16>': "), HasSubstr("at most 4194304 elements")));
  EXPECT_THAT(refusal({"tiled-copy", "--atom", "UniversalCopy<16>", "--threads", "(256,257)"}),
              AllOf(HasSubstr("--threads '(256,257)' --values '1:1': "), HasSubstr("65536 cells")));
  EXPECT_THAT(
      refusal({"tiled-copy", "--atom", "UniversalCopy", "--type", "f12", "--threads", "32:1"}),
      AllOf(HasSubstr("'f12'"), HasSubstr("bf16")));
  EXPECT_THAT(
      refusal({"tiled-copy", "--atom", "UniversalCopy", "--threads", "32:1", "--values", "4:1"}),
      HasSubstr("multiple"));
}

}  // namespace
}  // namespace tegula::tool_test
