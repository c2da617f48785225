#include "isolated.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

/// Checks that break their process are told apart from those beside them.
namespace tegula::isolated {
namespace {

using Verdicts = std::vector<std::string>;

Check sound(std::string name) {
  return {std::move(name), [] { return ""; }};
}

TEST(Isolated, VerdictsComeInOrder) {
  EXPECT_EQ(run({sound("a"), {"b", [] { return "two\nlines"; }}, sound("c")}),
            (Verdicts{"", "two\nlines", ""}));
  EXPECT_EQ(run({}), Verdicts{});
}

TEST(Isolated, AnExceptionIsAVerdict) {
  EXPECT_EQ(
      run({{"throws", []() -> std::string { throw std::runtime_error("wrong"); }}, sound("next")}),
      (Verdicts{"wrong", ""}));
}

TEST(Isolated, TheNextCheckRunsWhenAProcessEnds) {
  auto const dies = [](int signal) {
    return [signal]() -> std::string {
      raise(signal);
      return "";
    };
  };
  EXPECT_EQ(run({{"killed", dies(SIGKILL)},
                 {"aborts", dies(SIGABRT)},
                 sound("next"),
                 {"last",
                  [] {
                    _exit(3);
                    return "";
                  }}}),
            (Verdicts{"its process ended by signal 9", "its process ended by signal 6", "",
                      "its process ended with status 3"}));
}

TEST(Isolated, ACheckThatHangsIsEnded) {
  Limits limits;
  limits.each = std::chrono::milliseconds(50);
  EXPECT_EQ(run({{"hangs",
                  [] {
                    for (;;) pause();
                    return "";
                  }},
                 sound("next")},
                limits),
            (Verdicts{"gave no answer in 50 ms", ""}));
}

TEST(Isolated, NoCheckBeginsWhenTheTimeIsOver) {
  Limits limits;
  limits.all = std::chrono::milliseconds(-1);
  EXPECT_EQ(run({sound("a"), sound("b")}, limits),
            (Verdicts{"did not run: the time for all was over",
                      "did not run: the time for all was over"}));
}

/// What one check does to its process the next one sees, unless that process is broken.
TEST(Isolated, ABrokenProcessIsNotUsedAgain) {
  static int calls = 0;
  auto const counts = [] { return std::to_string(++calls); };
  EXPECT_EQ(run({{"1", counts},
                 {"2", counts},
                 {"breaks", []() -> std::string { throw broken_process("broken"); }},
                 {"1 again", counts}}),
            (Verdicts{"1", "2", "broken", "1"}));
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace tegula::isolated
