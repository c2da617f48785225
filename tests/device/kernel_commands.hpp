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

/// 8 tiles of 256 columns on 3 clusters take 3 waves, of 768 columns; with a row of 5 tiles of 240
/// none of the clusters has more than 752.
inline std::string const kUneven =
    "gemm --m 512 --n 1024 --trans-b --sms 6 --tile 128x256 --cluster 2x1";

}  // namespace tegula::testing
