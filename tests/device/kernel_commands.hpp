#pragma once

/// The `tegula` command, run whole.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace tegula::testing {

struct Outcome {
  int status;
  std::string output;  ///< standard output and standard error
};

inline Outcome run(std::string const& arguments) {
  std::string const command = std::string(TEGULA_TOOL) + " " + arguments + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> block{};
  for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;)
    output.append(block.data(), n);
  return {WEXITSTATUS(pclose(pipe)), output};
}

inline nlohmann::json run_json(std::string const& arguments) {
  Outcome const r = run(arguments + " --json --device sim");
  EXPECT_EQ(r.status, 0) << r.output;
  return nlohmann::json::parse(r.output);
}

}  // namespace tegula::testing
