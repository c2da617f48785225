// No false alarm: every correct kernel of the repository under the checker, at a handful of
// schedules: the two extremes, and one of three more by the kernel's number; thoroughly all five.
// (At a hundred seeds of every schedule: clean_runs, `./run nightly`.)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cctype>

#include "correct_kernels.hpp"
#include "schedules.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

std::vector<CorrectKernel> const& all_kernels() {
  static std::vector<CorrectKernel> const all = correct_kernels();
  return all;
}

CorrectKernel const& kernel_number(int i) { return all_kernels()[static_cast<std::size_t>(i)]; }

class EveryCorrectKernel : public testing::TestWithParam<int> {};

TEST_P(EveryCorrectKernel, IsCleanAndTheSameAtEverySchedule) {
  using sim::Completion, sim::Interleaving;
  CorrectKernel const& kernel = kernel_number(GetParam());
  std::array<sim::Options, 5> schedules;
  schedules[1].completion = Completion::first,
  schedules[1].interleaving = Interleaving::round_robin;
  schedules[2].interleaving = Interleaving::one_warp_behind;
  for (std::size_t i = 3; i < schedules.size(); ++i) {
    schedules[i].completion = Completion::random, schedules[i].interleaving = Interleaving::random;
    schedules[i].seed = i;
  }
  std::vector<std::uint8_t> expected;
  std::string counters;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (i > 1 && !chosen(static_cast<int>(i) + GetParam(), 3)) continue;
    sim::Options& schedule = schedules[i];
    schedule.workers = 1;  // tests run side by side
    SCOPED_TRACE(kernel.name + ", " + schedule_text(schedule));
    Outcome const outcome = kernel.run(schedule);
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    ASSERT_FALSE(outcome.output.empty());
    if (expected.empty()) {
      expected = outcome.output;
      counters = counters_text(outcome.report, kernel.polls);
    }
    ASSERT_EQ(outcome.output, expected) << "the schedule changed the output";
    ASSERT_EQ(counters_text(outcome.report, kernel.polls), counters)
        << "the schedule changed what is counted";
  }
}

INSTANTIATE_TEST_SUITE_P(Checker, EveryCorrectKernel,
                         testing::Range(0, static_cast<int>(all_kernels().size())),
                         [](auto const& info) {
                           CorrectKernel const& kernel = kernel_number(info.param);
                           std::string name =
                               fmt::format("{}_{}_{}", info.param, kernel.family, kernel.name);
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace tegula
