// Every line "expression  ->  result" of docs/layouts.md is what the tool's evaluator says.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "expression.hpp"

namespace tegula {
namespace {

std::string evaluated(std::string const& expression) {
  try {
    return tool::to_text(tool::evaluate(expression));
  } catch (layout_error const& error) {
    std::string const text = error.what();
    return "refused: " + text.substr(text.find("): ") + 3);
  }
}

TEST(Docs, LayoutExamplesHold) {
  std::ifstream file(TEGULA_DOCS "/layouts.md");
  ASSERT_TRUE(file.is_open());
  int examples = 0;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```layout";
      continue;
    }
    if (!inside) continue;
    std::size_t const arrow = line.find("  ->  ");
    ASSERT_NE(arrow, std::string::npos) << line;
    EXPECT_EQ(evaluated(line.substr(0, arrow)), line.substr(arrow + 6)) << line;
    ++examples;
  }
  EXPECT_GT(examples, 40);
}

}  // namespace
}  // namespace tegula
