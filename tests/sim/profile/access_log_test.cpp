#include "profile/access_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "broken_kernel.hpp"
#include "schedules.hpp"

/// How the instructions of a warp's lanes are put together to instructions of the warp.
namespace tegula {
namespace {

using sim::AccessLog;
using sim::Alignment;
using Sequence = std::vector<std::uint32_t>;
using Record = AccessLog::Record;

Alignment alignment_of(Sequence const& a, Sequence const& b, std::size_t window = 256) {
  Alignment alignment;
  sim::align(a, b, alignment, window);
  return alignment;
}

/// The length of the longest sequence that is part of both, by trying.
std::size_t most_in_common(Sequence const& a, std::size_t i, Sequence const& b, std::size_t j) {
  if (i == a.size() || j == b.size()) return 0;
  std::size_t most = std::max(most_in_common(a, i + 1, b, j), most_in_common(a, i, b, j + 1));
  if (a[i] == b[j]) most = std::max(most, 1 + most_in_common(a, i + 1, b, j + 1));
  return most;
}

Sequence random_sequence(std::mt19937& random, std::size_t most, std::uint32_t kinds) {
  Sequence s(random() % (most + 1));
  for (std::uint32_t& element : s) element = static_cast<std::uint32_t>(random() % kinds);
  return s;
}

/// Both sequences are in what was merged, in order and whole, and nothing else; the number that
/// fell together.
std::size_t expect_supersequence(Sequence const& a, Sequence const& b, Alignment const& alignment) {
  EXPECT_EQ(alignment.first.size(), a.size());
  EXPECT_EQ(alignment.second.size(), b.size());
  std::vector<int> users(alignment.merged.size());
  for (auto const& [sequence, places] :
       {std::pair(&a, &alignment.first), std::pair(&b, &alignment.second)}) {
    for (std::size_t i = 0; i < places->size(); ++i) {
      EXPECT_EQ(alignment.merged.at((*places)[i]), (*sequence)[i]);
      EXPECT_TRUE(i == 0 || (*places)[i - 1] < (*places)[i]);
      ++users[(*places)[i]];
    }
  }
  EXPECT_EQ(std::count(users.begin(), users.end(), 0), 0);
  return static_cast<std::size_t>(std::count(users.begin(), users.end(), 2));
}

TEST(Alignment, LetsAsManyFallTogetherAsCan) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Sequence const a = random_sequence(random, 7, 3), b = random_sequence(random, 7, 3);
    EXPECT_EQ(expect_supersequence(a, b, alignment_of(a, b)), most_in_common(a, 0, b, 0));
  }
}

TEST(Alignment, OfLongSequencesKeepsOrder) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    Sequence const a = random_sequence(random, 60, 4);
    Sequence const b = random_sequence(random, 60, 4);
    expect_supersequence(a, b, alignment_of(a, b, 5));
    // A part of a sequence lies in it as a whole, if the window holds what is left out.
    Sequence part;
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (k % 3 != 1) part.push_back(a[k]);
    }
    EXPECT_EQ(expect_supersequence(a, part, alignment_of(a, part, 60)), part.size());
  }
  // Rounds of a loop beyond the window: one lane skips an instruction in every other round.
  Sequence rounds, skips;
  for (std::uint32_t round = 0; round < 1000; ++round) {
    rounds.insert(rounds.end(), {1, 2, 3});
    skips.push_back(1);
    if (round % 2 == 0) skips.push_back(2);
    skips.push_back(3);
  }
  EXPECT_EQ(expect_supersequence(rounds, skips, alignment_of(rounds, skips, 16)), skips.size());
}

TEST(Alignment, TakesTheFirstRounds) {
  Alignment const a = alignment_of({1, 1, 1, 2}, {1, 2});
  EXPECT_EQ(a.merged, (Sequence{1, 1, 1, 2}));
  EXPECT_EQ(a.second, (Sequence{0, 3}));
}

/// What the lanes of a warp do, each in its own order: the numbers stand for lines.
using Lanes = std::vector<Sequence>;

/// The instructions of the warp where the lanes' come in an order drawn by `seed`; 0: lane by lane.
std::vector<Record> instructions(Lanes const& lanes, std::uint32_t seed) {
  AccessLog log;
  std::vector<std::size_t> next(lanes.size());
  std::mt19937 random(seed);
  std::vector<int> left;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    left.insert(left.end(), lanes[lane].size(), static_cast<int>(lane));
  if (seed != 0) std::shuffle(left.begin(), left.end(), random);
  for (int const lane : left) {
    std::size_t const i = next[static_cast<std::size_t>(lane)]++;
    SourceLocation const where{"file", static_cast<int>(lanes[static_cast<std::size_t>(lane)][i])};
    EXPECT_TRUE(
        log.note(lane, sim::Instruction::ld_shared, where, 4, static_cast<std::uint32_t>(i), 0, 0));
  }
  std::vector<Record> found;
  log.flush([&](Record const& record) { found.push_back(record); });
  EXPECT_TRUE(log.empty());
  return found;
}

/// "12: 0 1 3" for each: the line, and the lanes.
std::vector<std::string> texts(std::vector<Record> const& records) {
  std::vector<std::string> lines;
  for (Record const& record : records) {
    std::string line = std::to_string(record.site.where.line) + ":";
    for (int lane = 0; lane < 32; ++lane) {
      if ((record.lanes >> lane & 1) != 0)
        line += " " + std::to_string(lane) + "." + std::to_string(record.shared[lane]);
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(AccessLog, LanesThatSkipAnInstructionInSomeRoundsAreMissingFromThose) {
  // for (2 rounds) { 1; 1; if (...) 2; }: lane 0 executes 2 in the second round alone, lane 1 in
  // the first, lane 2 in both, lane 3 leaves the loop after one round; 3 comes after it.
  Lanes const lanes = {{1, 1, 1, 1, 2, 3}, {1, 1, 2, 1, 1, 3}, {1, 1, 2, 1, 1, 2, 3}, {1, 1, 2, 3}};
  std::vector<std::string> const expected = {
      "1: 0.0 1.0 2.0 3.0", "1: 0.1 1.1 2.1 3.1", "2: 1.2 2.2 3.2",    "1: 0.2 1.3 2.3",
      "1: 0.3 1.4 2.4",     "2: 0.4 2.5",         "3: 0.5 1.5 2.6 3.3"};
  for (std::uint32_t seed = 0; seed < 100; ++seed)
    ASSERT_EQ(texts(instructions(lanes, seed)), expected) << seed;
}

TEST(AccessLog, TheOrderOfArrivalDoesNotMatter) {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    Lanes lanes(32);
    for (Sequence& lane : lanes) lane = random_sequence(random, 12, 3);
    auto const expected = texts(instructions(lanes, 0));
    for (std::uint32_t seed = 1; seed < 5; ++seed)
      ASSERT_EQ(texts(instructions(lanes, seed)), expected);
  }
}

TEST(AccessLog, SizesOnOneLineAreKeptApart) {
  AccessLog log;
  for (int lane = 0; lane < 2; ++lane)
    log.note(lane, sim::Instruction::st_shared, SourceLocation{"file", 1}, lane == 0 ? 4 : 8, 0, 0,
             0);
  int count = 0;
  log.flush([&](Record const&) { ++count; });
  EXPECT_EQ(count, 2);
}

template <class Kernel> void expect_the_same_at_every_schedule(sim::Report const& expected) {
  for (sim::Options const& schedule : every_schedule(3)) {
    sim::Report const report = report_of<Kernel>(schedule);
    EXPECT_TRUE(report.ok()) << schedule_text(schedule) << "\n" << report.text();
    EXPECT_EQ(counters_text(report), counters_text(expected)) << schedule_text(schedule);
  }
}

struct Tiles : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(16) std::uint32_t tile[2][8][32];
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
};

/// A round's words lie in a row of the tile; lanes begin to store in rounds of their own, and leave
/// the loop after rounds of their own. Put together by their number of execution, stores of several
/// rounds would ask a bank for words of several rows.
struct BeginLateAndLeaveEarly : Tiles {
  static constexpr sim::Limits limits = {.bank_conflicts = 0};
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const& tile = smem.tile[warp_id()];
    for (int round = 0; round < 4 + lane_id() % 5; ++round) {
      auto const value = ld_global<std::uint32_t>(p.in + 128 * round + 4 * lane_id());
      if (round >= lane_id() % 8)
        st_shared(shared_address(&tile[round][(31 - 4 * round + lane_id()) % 32]), value);
    }
    warp::sync();
  }
};

TEST(Counters, AreTheSameAtEveryScheduleWhereLanesSkipRounds) {
  sim::Report const report = report_of<BeginLateAndLeaveEarly>();
  EXPECT_EQ(report.instruction("ld.global").instructions, 2 * 8) << report.text();
  EXPECT_EQ(report.instruction("st.shared").instructions, 2 * 8);
  expect_the_same_at_every_schedule<BeginLateAndLeaveEarly>(report);
}

/// Lanes load more often than the log holds before they meet: the first 8192 times together, then
/// each alone.
struct Loads : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    for (std::uint32_t i = 0; i < AccessLog::kMost + 100; ++i)
      ld_global<std::uint32_t>(p.in + 4 * lane_id());
    warp::sync();
    ld_global<std::uint32_t>(p.in + 4 * lane_id());
  }
};

TEST(Counters, WhatTheLogDoesNotHoldIsCountedLaneByLane) {
  sim::Report const report = report_of<Loads>();
  ASSERT_EQ(report.lines.size(), 3u) << report.text();
  EXPECT_EQ(report.lines[0].instructions, 8192 + 32 * 100);
  EXPECT_EQ(report.lines[0].global_sectors, 4 * 8192 + 32 * 100);
  EXPECT_EQ(report.lines[2].instructions, 1);
  for (auto const interleaving : {sim::Interleaving::round_robin, sim::Interleaving::random})
    EXPECT_EQ(counters_text(report_of<Loads>({.interleaving = interleaving})),
              counters_text(report));
}

}  // namespace
}  // namespace tegula
