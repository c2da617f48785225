#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "run_tool.hpp"

namespace tegula::tool_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

json lines_of(std::string const& text) {
  json result = json::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    result.push_back(json::parse(line));
  }
  return result;
}

json batch(std::vector<std::string> const& expressions) {
  std::string input;
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    input += json{{"id", i}, {"expr", expressions[i]}}.dump() + "\n";
  }
  Outcome const outcome = run_tool({"layout", "--batch", "-"}, input);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  json const answers = lines_of(outcome.out);
  EXPECT_EQ(answers.size(), expressions.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i]["id"], i);
  }
  return answers;
}

std::string error_of(std::string const& expression) {
  json const answer = batch({expression})[0];
  EXPECT_FALSE(answer.contains("result")) << answer;
  return answer.value("error", "");
}

TEST(LayoutBatch, AnswersTheLineOfTheSpecification) {
  Outcome const outcome =
      run_tool({"layout", "--batch", "-"},
               R"json({"id":7,"expr":"composition((4,4):(4,1),(4,2,2):(2,1,8))"})json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            R"json({"id":7,"result":"((2,2),2,2):((8,1),4,2)","size":16,"cosize":16,)json"
            R"json("table":[0,8,1,9,4,12,5,13,2,10,3,11,6,14,7,15]})json"
            "\n");
}

/// Each call of the language, with what the published semantics make of it.
TEST(LayoutBatch, KnowsEveryCall) {
  struct Case {
    char const* expression;
    json result;
  };
  std::vector<Case> const cases = {
      {"8:1", "8:1"},
      {"(4,(3,6)):(1,(4,12))", "(4,(3,6)):(1,(4,12))"},
      {"(4,(3,6))", "(4,(3,6)):(1,(4,12))"},
      {"8", "8:1"},
      {" ( 4 , 8 ) : ( 8 , 1 ) ", "(4,8):(8,1)"},
      {"(8,4):(-1,8)", "(8,4):(-1,8)"},
      {"(16,8):(1@0,1@1)", "(16,8):(1@0,1@1)"},
      {"Sw<3,4,3> o (8,64):(64,1)", "Sw<3,4,3> o (8,64):(64,1)"},
      {"Sw<3,4,3> o 16 o (8,64)", "Sw<3,4,3> o 16 o (8,64):(1,8)"},
      {"<4:1,_,<2,8:2>>", "<4:1,_,<2:1,8:2>>"},
      {"coalesce((2,(1,6)):(1,(6,2)))", "12:1"},
      {"coalesce((2,(1,6)):(1,(6,2)),(1,1))", "(2,6):(1,2)"},
      {"complement(4:2,24)", "(2,3):(1,8)"},
      {"complement((2,4):(1,6),24)", "3:2"},
      {"complement(6:1,(4,8))", "4:6"},
      {"complement(4:1,(4,8))", "8:4"},
      {"composition(20:2,(5,4):(4,1))", "(5,4):(8,2)"},
      {"composition((10,2):(16,4),(5,4):(1,5))", "(5,(2,2)):(16,(80,4))"},
      {"composition((12,(4,8)):(59,(13,1)),<3:4,8:2>)", "(3,(2,4)):(236,(26,1))"},
      {"composition((8,8):(8,1),<_,2>)", "(8,2):(8,1)"},
      {"composition(Sw<2,0,3> o (8,8):(8,1),<4:2,_>)", "Sw<2,0,3> o (4,8):(16,1)"},
      {"right_inverse((4,8):(8,1))", "(8,4):(4,1)"},
      {"left_inverse((4,8):(8,1))", "(8,4):(4,1)"},
      {"logical_divide((4,2,3):(2,1,8),4:2)", "((2,2),(2,3)):((4,1),(2,8))"},
      {"logical_divide((9,(4,8)):(59,(13,1)),<3:3,(2,4):(1,8)>)",
       "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"},
      {"zipped_divide((9,(4,8)):(59,(13,1)),<3:3,(2,4):(1,8)>)",
       "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"},
      {"tiled_divide((8,12):(12,1),<4,3>)", "((4,3),2,4):((12,1),48,3)"},
      {"flat_divide((8,12):(12,1),<4,3>)", "(4,3,2,4):(12,1,48,3)"},
      {"logical_product((2,2):(4,1),6:1)", "((2,2),(2,3)):((4,1),(2,8))"},
      {"zipped_product((2,5):(5,1),<3:5,4:6>)", "((2,5),(3,4)):((5,1),(10,30))"},
      {"tiled_product((2,2):(4,1),6:1)", "((2,2),2,3):((4,1),2,8)"},
      {"flat_product((2,2):(4,1),6:1)", "(2,2,2,3):(4,1,2,8)"},
      {"blocked_product((2,5):(5,1),(3,4):(1,3))", "((2,3),(5,4)):((5,10),(1,30))"},
      {"raked_product((2,5):(5,1),(3,4):(1,3))", "((3,2),(4,5)):((10,5),(30,1))"},
      {"tile_to_shape((2,4):(4,1),(4,8))", "((2,2),(4,2)):((4,8),(1,16))"},
      {"tile_to_shape((2,4):(4,1),(4,8),(2,1))", "((2,2),(4,2)):((4,16),(1,8))"},
      {"tile_to_shape(Sw<3,3,3> o (8,64):(64,1),(16,128))",
       "Sw<3,3,3> o ((8,2),(64,2)):((64,512),(1,1024))"},
      {"flatten((4,(3,6)):(1,(4,12)))", "(4,3,6):(1,4,12)"},
      {"flatten((4,(3,6)))", "(4,3,6):(1,4,12)"},
      {"group((2,3,4):(1,2,6),0,2)", "((2,3),4):((1,2),6)"},
      {"select((2,3,4):(1,2,6),2,0)", "(4,2):(6,1)"},
      {"take((2,3,4):(1,2,6),1,3)", "(3,4):(2,6)"},
      {"append((4,8):(8,1),3:32)", "(4,8,3):(8,1,32)"},
      {"append((4,8):(8,1),4,1:0)", "(4,8,1,1):(8,1,0,0)"},
      {"prepend((4,8):(8,1),3:32)", "(3,4,8):(32,8,1)"},
      {"prepend((4,8):(8,1),3,1:0)", "(1,4,8):(0,8,1)"},
      {"replace((4,8):(8,1),1,(2,2):(5,9))", "(4,(2,2)):(8,(5,9))"},
      {"slice((3,(2,4)):(8,(4,1)),(_,(1,_)))", "(3,4):(8,1)"},
      {"slice((_,3),(4,8):(8,1))", "(4):(8)"},
      {"slice(Sw<1,0,2> o (4,8):(8,1),(_,3))", "Sw<1,0,2> o 3 o (4):(8)"},
      {"with_shape(24:1,(4,6))", "(4,6):(1,4)"},
      {"with_shape(24:1,4,6)", "(4,6):(1,4)"},
      {"upcast((8,4):(1,8),2)", "(4,4):(1,4)"},
      {"downcast((4,4):(1,4),2)", "(8,4):(1,8)"},
      {"recast((8,4):(1,8),16,32)", "(4,4):(1,4)"},
      {"recast(Sw<3,3,3> o (8,64):(64,1),16,8)", "Sw<3,4,3> o (8,128):(128,1)"},
      {"max_common_vector((8,4):(1,8),(8,4):(1,16))", 8},
      {"max_common_layout((8,4):(1,8),(8,4):(1,16))", "8:1"},
      {"nullspace((4,3,2):(1,0,4))", "3:4"},
      {"size((4,(3,6)))", 72},
      {"size((4,(3,6)),1)", 18},
      {"size((4,(3,6)),1,0)", 3},
      {"cosize((4,8):(16,1))", 56},
      {"cosize((4,2):(-1,8))", 12},
      {"cosize(Sw<2,0,3> o 8:-1)", 1},
      {"rank((4,(3,6)))", 2},
      {"depth((4,(3,6)))", 2},
      {"depth(7)", 0},
      {"idx2crd(7,(4,(2,3)))", {3, {1, 0}}},
      {"idx2crd(7,8)", 7},
      {"idx2crd(9,(4,8),(8,1))", {1, 1}},
      {"crd2idx((3,(1,2)),(4,(2,3)))", 23},
      {"crd2idx((1,5),(4,8):(8,1))", 13},
      {"crd2idx((1,5),(4,8),(8,1))", 13},
      {"crd2idx(5,(4,8):(8,1))", 9},
      {"crd2idx((1,1),Sw<1,0,2> o (8,8):(4,1))", 4},
      {"flatten(idx2crd(7,(4,(2,3))))", {3, 1, 0}},
      {"size(zipped_divide(composition((8,8):(8,1),(4,16):(16,1)),<2:1,4:2>),0)", 8},
  };
  std::vector<std::string> expressions;
  for (Case const& c : cases) {
    expressions.emplace_back(c.expression);
  }
  json const answers = batch(expressions);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(answers[i].value("result", json()), cases[i].result)
        << cases[i].expression << ": " << answers[i];
  }
}

TEST(LayoutBatch, TablesAreTheLayoutsValues) {
  json const answers = batch({"(2,3):(10,1)", "Sw<1,0,2> o (4,4):(4,1)", "(2,2):(1@1,2@0)",
                              "4096:2", "4097:2", "(2,2):(-1,4)"});
  EXPECT_EQ(answers[0]["table"], json({0, 10, 1, 11, 2, 12}));
  // Offset x becomes x with bit 0 flipped where bit 2 is set.
  EXPECT_EQ(answers[1]["table"], json({0, 5, 8, 13, 1, 4, 9, 12, 2, 7, 10, 15, 3, 6, 11, 14}));
  EXPECT_EQ(answers[2]["table"], json({{0, 0}, {0, 1}, {2, 0}, {2, 1}}));
  EXPECT_FALSE(answers[2].contains("cosize"));
  EXPECT_EQ(answers[3]["table"].size(), 4096u);
  EXPECT_FALSE(answers[4].contains("table"));
  EXPECT_EQ(answers[4]["cosize"], 8193);
  EXPECT_EQ(answers[5]["table"], json({0, -1, 4, 3}));
}

TEST(LayoutBatch, ErrorsSayWhereAndWhatWasExpected) {
  EXPECT_THAT(error_of("complement(4:2"),
              AllOf(HasSubstr("character 15"), HasSubstr("the end"), HasSubstr("',' or ')'")));
  EXPECT_THAT(error_of("complement(4:2,5) x"),
              AllOf(HasSubstr("character 19"), HasSubstr("end of the expression")));
  EXPECT_THAT(error_of("foo(3)"), AllOf(HasSubstr("'foo(3)'"), HasSubstr("logical_divide")));
  EXPECT_THAT(error_of(""), HasSubstr("a layout such as"));
  EXPECT_THAT(error_of("(4,8):(1)"), HasSubstr("not nested as the shape"));
  EXPECT_THAT(error_of("<4:1,8:2"), HasSubstr("',' or '>'"));
  EXPECT_THAT(error_of("Sw<3,4> o 8:1"), HasSubstr("Sw<bits,base,shift>"));
  EXPECT_THAT(error_of("Sw<3,4,3> 8:1"), HasSubstr("'o'"));
  EXPECT_THAT(error_of("Sw<3,4,2> o 8:1"), HasSubstr("groups overlap"));
  EXPECT_THAT(error_of("size()"), HasSubstr("size has 0 arguments"));
  EXPECT_THAT(error_of("group(8:1,1)"),
              AllOf(HasSubstr("group has 2 arguments"), HasSubstr("BEGIN, END")));
  EXPECT_THAT(
      error_of("right_inverse(<4:1>)"),
      AllOf(HasSubstr("argument 1 of right_inverse is a tiler"), HasSubstr("a layout is needed")));
  EXPECT_THAT(error_of("right_inverse(Sw<1,0,2> o 8:1)"), HasSubstr("plain layout"));
  EXPECT_THAT(error_of("upcast(8:1,(2,2))"), HasSubstr("an integer is needed"));
  EXPECT_THAT(error_of("complement(4:1,0)"), HasSubstr("a size of at least 1 is needed"));
  EXPECT_THAT(error_of("complement(4:1,-4)"), HasSubstr("a size of at least 1 is needed"));
  EXPECT_THAT(error_of("complement(4:1,(4,0))"), HasSubstr("at least 1"));
  EXPECT_THAT(error_of("99999999999999999999:1"), HasSubstr("2^62"));
  EXPECT_THAT(error_of("(0,4)"), HasSubstr("extent"));
  EXPECT_THAT(error_of("composition((3,4):(4,1),4:2)"),
              AllOf(HasSubstr("composition((3,4):(4,1), 4:2)"), HasSubstr("no layout")));
  EXPECT_THAT(error_of(std::string(40, '(')), HasSubstr("deep"));
  EXPECT_THAT(error_of([] {
                std::string nested = "8:1";
                for (int i = 0; i < 100; ++i) {
                  nested = "coalesce(" + nested + ")";
                }
                return nested;
              }()),
              HasSubstr("nested at most"));
}

// What a call is made of refuses operands that nobody wrote: the call stands in front.
TEST(LayoutBatch, RefusalsNameTheCallThatWasMade) {
  for (auto const& [expression, sentence] :
       {std::pair("tile_to_shape((4):(2),(12))",
                  "tile_to_shape((4):(2), (12)): composition((2,2):(1,8), (3):(1)): "),
        {"zipped_divide((4,4),<4,4,4>)", "zipped_divide((4,4):(1,4), <4:1,4:1,4:1>): the tiler"},
        {"flat_divide((4,4),<4,4,4>)", "flat_divide((4,4):(1,4), <4:1,4:1,4:1>): the tiler"},
        {"logical_divide((2,2):(1,8),3)", "logical_divide((2,2):(1,8), 3): composition("},
        {"complement((4,4):(1@0,1@1))", "complement((4,4):(1@0,1@1)): the layout's values are"},
        {"complement((4,4):(1@0,1@1),16)", "complement((4,4):(1@0,1@1), 16): the layout's"},
        {"size((4,8),5)", "size((4,8), 5): "},
        {"size(with_shape(24:1,(7,4)),3)", "size((7,4):(1,7), 3): "},
        {"composition(8:100000000000000000,64:1)",
         "composition(8:100000000000000000, 64:1): arithmetic("}})
    EXPECT_THAT(error_of(expression), StartsWith(sentence));
  // A layout of coordinates has no index to give.
  for (char const* const call : {"crd2idx((1,2),(4,4):(1@0,1@1))", "idx2crd(5,(4,4):(1@0,1@1))"})
    EXPECT_THAT(error_of(call),
                AllOf(HasSubstr("argument 2 of "), HasSubstr("is a layout (4,4):(1@0,1@1)"),
                      HasSubstr("integer strides is needed: the values of this one are")));
}

TEST(LayoutBatch, ABadLineDoesNotStopTheOthers) {
  Outcome const outcome = run_tool({"layout", "--batch", "-"},
                                   "{\"id\":1,\"expr\":\"4:1\"}\n"
                                   "this is not JSON\n"
                                   "\n"
                                   "{\"id\":3}\n"
                                   "{\"expr\":\"5:1\"}\n"
                                   "[1,2]\n"
                                   "{\"id\":\"text\",\"expr\":7}\n"
                                   "{\"id\":8,\"expr\":\"\xff\xfe\"}\n"
                                   "{\"id\":9,\"expr\":\"6:1\"}");
  EXPECT_EQ(outcome.status, 0);
  json const answers = lines_of(outcome.out);
  ASSERT_EQ(answers.size(), 8u);
  EXPECT_EQ(answers[0]["result"], "4:1");
  EXPECT_EQ(answers[1]["line"], 2);
  EXPECT_THAT(answers[1]["error"], HasSubstr("line 2 is not JSON"));
  EXPECT_EQ(answers[2]["id"], 3);
  EXPECT_THAT(answers[2]["error"], HasSubstr("expr"));
  EXPECT_EQ(answers[3]["line"], 5);
  EXPECT_EQ(answers[3]["result"], "5:1");
  EXPECT_THAT(answers[4]["error"], HasSubstr("expr"));
  EXPECT_EQ(answers[5]["id"], "text");
  EXPECT_THAT(answers[5]["error"], HasSubstr("expr"));
  EXPECT_TRUE(answers[6].contains("error"));
  EXPECT_EQ(answers[7]["result"], "6:1");
}

TEST(LayoutBatch, ReadsAFileAndTenThousandLinesTakeLittleTime) {
  TemporaryFolder const folder;
  std::mt19937 random(7);
  auto const pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string text;
  constexpr int kLines = 10000;
  for (int i = 0; i < kLines; ++i) {
    int const m = 1 << (2 + pick(4));
    int const n = 1 << (2 + pick(4));
    std::string const layout =
        "(" + std::to_string(m) + "," + std::to_string(n) + "):(" + std::to_string(n) + ",1)";
    std::string const tile = "<" + std::to_string(m / 2) + ":1," + std::to_string(n / 4) + ":4>";
    text += json{{"id", i},
                 {"expr", "composition(zipped_divide(" + layout + "," + tile + "),(" +
                              std::to_string(m * n / 4) + ",4))"}}
                .dump() +
            "\n";
  }
  write(folder / "lines.jsonl", text);
  auto const start = std::chrono::steady_clock::now();
  Outcome const outcome = run_tool({"layout", "--batch", (folder / "lines.jsonl").string()});
  double const seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(outcome.status, 0);
  json const answers = lines_of(outcome.out);
  ASSERT_EQ(answers.size(), static_cast<std::size_t>(kLines));
  for (json const& answer : answers) {
    ASSERT_TRUE(answer.contains("table")) << answer;
  }
  EXPECT_LT(seconds, 5.0);
}

TEST(LayoutCommand, PrintsTheResultAndATable) {
  Outcome const outcome = run_tool({"layout", "(2,4):(4,1)"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, StartsWith("result  (2,4):(4,1)\nsize    8\ncosize  8\n"));
  EXPECT_THAT(outcome.out, HasSubstr("0 | 0 1 2 3\n"));
  EXPECT_THAT(outcome.out, HasSubstr("1 | 4 5 6 7\n"));
  EXPECT_EQ(run_tool({"layout", "size((4,8))"}).out, "32\n");
  EXPECT_EQ(run_tool({"layout", "idx2crd(7,(4,(2,3)))"}).out, "(3,(1,0))\n");
  EXPECT_THAT(run_tool({"layout", "(128,128)"}).out, HasSubstr("not printed"));
  EXPECT_THAT(run_tool({"layout", "(2,2):(1@0,1@1)"}).out, HasSubstr("(1,1)"));
}

TEST(LayoutCommand, WritesJson) {
  json const answer = json::parse(run_tool({"layout", "complement(4:2,24)", "--json"}).out);
  EXPECT_EQ(
      answer,
      json::parse(
          R"json({"result":"(2,3):(1,8)","size":6,"cosize":18,"table":[0,1,8,9,16,17]})json"));
}

TEST(LayoutCommand, ShowsBanks) {
  // Rows of 64 half-precision elements are 128 bytes: each row begins in bank 0.
  json const plain = json::parse(run_tool({"layout", "(8,64):(64,1)", "--json", "--banks"}).out);
  EXPECT_EQ(plain["banks"]["element_bits"], 16);
  for (int row = 0; row < 8; ++row) {
    EXPECT_EQ(plain["banks"]["table"][static_cast<std::size_t>(row)], 0);
  }
  // The 128-byte swizzle moves the first 16 bytes of row r to the banks from 4 r on.
  json const swizzled =
      json::parse(run_tool({"layout", "Sw<3,3,3> o (8,64):(64,1)", "--json", "--banks", "16"}).out);
  for (int row = 0; row < 8; ++row) {
    EXPECT_EQ(swizzled["banks"]["table"][static_cast<std::size_t>(row)], 4 * row);
  }
  EXPECT_THAT(run_tool({"layout", "(8,64):(64,1)", "--banks", "32"}).out, HasSubstr("banks"));
  Outcome const wrong = run_tool({"layout", "8:1", "--banks", "7"});
  EXPECT_NE(wrong.status, 0);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--banks"), HasSubstr("'7'"), HasSubstr("16, 32")));
  EXPECT_NE(run_tool({"layout", "size(8:1)", "--banks"}).status, 0);
}

TEST(LayoutCommand, DrawsSvgAndLatexWholeOrNotAtAll) {
  TemporaryFolder const folder;
  std::string const svg = (folder / "a.svg").string();
  std::string const tex = (folder / "a.tex").string();
  EXPECT_EQ(run_tool({"layout", "Sw<2,0,3> o (4,8):(8,1)", "--svg", svg, "--latex", tex}).status,
            0);
  EXPECT_THAT(read(svg), AllOf(StartsWith("<svg "), EndsWith("</svg>\n")));
  EXPECT_THAT(read(tex), AllOf(HasSubstr("tikz"), HasSubstr("\\end{document}")));
  std::string const offsets = read(svg);
  EXPECT_EQ(run_tool({"layout", "Sw<2,0,3> o (4,8):(8,1)", "--svg", svg, "--banks", "32"}).status,
            0);
  EXPECT_NE(read(svg), offsets);

  Outcome const to_output = run_tool({"layout", "(2,2)", "--svg"});
  EXPECT_THAT(to_output.out, AllOf(StartsWith("<svg "), EndsWith("</svg>\n")));
  EXPECT_THAT(run_tool({"layout", "(2,2)", "--svg", "--json"}).err,
              AllOf(HasSubstr("--svg"), HasSubstr("--json")));
  EXPECT_THAT(run_tool({"layout", "(2,2)", "--svg", "--latex"}).err,
              AllOf(HasSubstr("--latex"), HasSubstr("a file is needed")));
  // A file whose picture can be drawn is not written where the other cannot be.
  std::string const other = (folder / "other.svg").string();
  EXPECT_NE(run_tool({"layout", "(2,2)", "--svg", other, "--latex", "--json"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(other));

  write(svg, "before");
  EXPECT_NE(run_tool({"layout", "complement(4:2", "--svg", svg}).status, 0);
  EXPECT_EQ(read(svg), "before");
  EXPECT_NE(run_tool({"layout", "size(8:1)", "--svg", svg}).status, 0);
  EXPECT_EQ(read(svg), "before");
  Outcome const nowhere = run_tool({"layout", "8:1", "--svg", (folder / "none/a.svg").string()});
  EXPECT_NE(nowhere.status, 0);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("none/a.svg"), HasSubstr("No such file")));
  std::size_t files = 0;
  for ([[maybe_unused]] auto const& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  EXPECT_EQ(files, 2u) << "a temporary file was left behind";
}

TEST(LayoutCommand, RefusesBadInputWithASentenceAndAStatus) {
  Outcome const bad = run_tool({"layout", "complement(4:2"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_EQ(bad.out, "");
  EXPECT_THAT(bad.err, AllOf(StartsWith("tegula: "), HasSubstr("character 15")));
  Outcome const as_json = run_tool({"layout", "complement(4:2", "--json"});
  EXPECT_EQ(as_json.status, 1);
  EXPECT_THAT(json::parse(as_json.out)["error"].get<std::string>(), HasSubstr("character 15"));
  EXPECT_THAT(run_tool({"layout"}).err, HasSubstr("expression"));
  EXPECT_THAT(run_tool({"layout", "8:1", "--batch", "-"}).err, HasSubstr("not both"));
  EXPECT_THAT(run_tool({"layout", "--batch", "no such file"}).err,
              AllOf(HasSubstr("no such file"), HasSubstr("No such file")));
  for (auto const& [expression, part] :
       {std::pair("3:4611686018427387903", "'3:4611686018427387903': arithmetic("),
        {"(2147483648,2147483648,2)", "'(2147483648,2147483648,2)': arithmetic("},
        {"Sw<3,3,3> o 4611686018427387904 o 8:1", "o 4611686018427387904 o 8:1': arithmetic("},
        {"select((2,3),4294967296)", "number of a mode is needed, from 0 to 32"},
        {"append((2,3),1000000,4:1)", "a rank is needed, from 1 to 32"},
        {"prepend((2,3),0,4:1)", "argument 2 of prepend is an integer 0, but a rank is needed"}})
    EXPECT_THAT(run_tool({"layout", expression}).err, HasSubstr(part));
  for (auto const& [option, expression, part] : {std::tuple("--svg", "(1024,1024)", "65536 cells"),
                                                 {"--latex", "(1024,1024)", "65536 cells"},
                                                 {"--svg", "size(8)", "8 is not a layout"},
                                                 {"--banks", "8:1@0", "lie in no banks"}})
    EXPECT_THAT(run_tool({"layout", expression, option}).err,
                AllOf(StartsWith(std::string("tegula: ") + option + ": "), HasSubstr(part)));
  EXPECT_THAT(run_tool({"layout", "8:1", "--colour"}).err, HasSubstr("--colour"));
}

}  // namespace
}  // namespace tegula::tool_test
