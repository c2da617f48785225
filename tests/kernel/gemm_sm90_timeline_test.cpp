// What the timelines of the Hopper GEMM's schedules show: docs/hopper_gemm.md, "Three schedules".

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "timelines/gemm_timeline.hpp"

namespace tegula {
namespace {

using sim::SpanKind;
using sim::Trace;
using sim::TraceSpan;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr GemmSm90Config square(Schedule schedule) {
  return {.block_m = 128, .block_n = 128, .schedule = schedule};
}

constexpr int kTiles = 4, kDepth = 256;
constexpr double kTensorCycles = double{kTiles} * 128 * 128 * kDepth / 2048;

template <Schedule schedule> Trace const& trace() {
  static Trace const made = gemm_timeline<square(schedule)>({.tiles_m = kTiles, .k = kDepth}, "");
  return made;
}

int track(Trace const& trace, std::string const& name, int rank = 0) {
  for (std::size_t i = 0; i < trace.tracks.size(); ++i)
    if (trace.tracks[i].name == name && trace.tracks[i].rank == rank) return static_cast<int>(i);
  ADD_FAILURE() << "no track " << name;
  return 0;
}

std::vector<TraceSpan> spans(Trace const& trace, SpanKind kind) {
  std::vector<TraceSpan> found;
  std::copy_if(trace.spans.begin(), trace.spans.end(), std::back_inserter(found),
               [&](TraceSpan const& span) {
                 return span.kind == kind &&
                        trace.tracks[static_cast<std::size_t>(span.track)].rank == 0;
               });
  return found;
}

double tensor_share(Trace const& trace) {
  return trace.share(track(trace, "tensor core"), SpanKind::tensor);
}

/// Cycles in which some consumer's epilogue and the tensor cores are both under way.
double covered_epilogue(Trace const& trace) {
  double covered = 0;
  for (TraceSpan const& epilogue : spans(trace, SpanKind::epilogue)) {
    for (TraceSpan const& tensor : spans(trace, SpanKind::tensor))
      covered += std::max(
          0.0, std::min(epilogue.end, tensor.end) - std::max(epilogue.begin, tensor.begin));
  }
  return covered;
}

double total(std::vector<TraceSpan> const& spans) {
  double sum = 0;
  for (TraceSpan const& span : spans) sum += span.end - span.begin;
  return sum;
}

std::vector<std::string> names(Trace const& trace) {
  std::vector<std::string> result;
  for (auto const& track : trace.tracks) result.push_back(track.name);
  return result;
}

TEST(GemmSm90Timeline, HasARowForEachRoleAndEngine) {
  EXPECT_THAT(
      names(trace<Schedule::basic>()),
      UnorderedElementsAre("producer", "consumer 0", "TMA load", "tensor core", "TMA store"));
  EXPECT_THAT(names(trace<Schedule::pingpong>()),
              UnorderedElementsAre("producer", "consumer 0", "consumer 1", "TMA load",
                                   "tensor core", "TMA store"));
}

TEST(GemmSm90Timeline, EveryScheduleWorksTheTensorCoresAsLong) {
  EXPECT_NEAR(total(spans(trace<Schedule::basic>(), SpanKind::tensor)), kTensorCycles, 1);
  EXPECT_NEAR(total(spans(trace<Schedule::cooperative>(), SpanKind::tensor)), kTensorCycles, 1);
  EXPECT_NEAR(total(spans(trace<Schedule::pingpong>(), SpanKind::tensor)), kTensorCycles, 1);
}

TEST(GemmSm90Timeline, BasicLeavesTheTensorCoresIdleInEachEpilogue) {
  Trace const& basic = trace<Schedule::basic>();
  EXPECT_EQ(spans(basic, SpanKind::epilogue).size(), static_cast<std::size_t>(kTiles));
  EXPECT_EQ(covered_epilogue(basic), 0);
  EXPECT_LT(tensor_share(basic), 0.9);
}

TEST(GemmSm90Timeline, CooperativeConsumersTakeTurnsWithinATile) {
  Trace const& cooperative = trace<Schedule::cooperative>();
  auto const tensor = spans(cooperative, SpanKind::tensor);
  EXPECT_GT(tensor.size(), std::size_t{4 * kTiles}) << "stripes";
  EXPECT_EQ(spans(cooperative, SpanKind::epilogue).size(), std::size_t{2 * kTiles})
      << "each stores its half";
  EXPECT_GT(tensor_share(cooperative), tensor_share(trace<Schedule::basic>()));
}

TEST(GemmSm90Timeline, PingpongHidesTheEpilogueUnderTheOtherTile) {
  Trace const& pingpong = trace<Schedule::pingpong>();
  std::vector<std::pair<int, std::string>>
      turns;  // a tile at a time: its consumer, and the how manieth of it
  for (TraceSpan const& span : spans(pingpong, SpanKind::tensor)) {
    if (turns.empty() || turns.back() != std::pair(span.issuer, span.name))
      turns.emplace_back(span.issuer, span.name);
  }
  int const first = track(pingpong, "consumer 0"), second = track(pingpong, "consumer 1");
  EXPECT_THAT(turns, ElementsAre(std::pair(first, "wgmma 0"), std::pair(second, "wgmma 0"),
                                 std::pair(first, "wgmma 1"), std::pair(second, "wgmma 1")));
  EXPECT_GT(tensor_share(pingpong), 0.97);
  auto const epilogues = spans(pingpong, SpanKind::epilogue);
  EXPECT_EQ(epilogues.size(), static_cast<std::size_t>(kTiles));
  double const last = epilogues.back().end - epilogues.back().begin;
  EXPECT_GT(covered_epilogue(pingpong), 0.95 * (total(epilogues) - last)) << "all but the last";
}

TEST(GemmSm90Timeline, TheProducerRunsAheadUntilTheRingIsFull) {
  Trace const& basic = trace<Schedule::basic>();
  constexpr int stages = GemmSm90<square(Schedule::basic)>::stages;
  std::set<std::string> waits;
  double first_tensor = spans(basic, SpanKind::tensor).front().begin;
  int issued = 0;
  for (TraceSpan const& span : basic.spans) {
    if (span.track != track(basic, "producer")) continue;
    if (span.kind == SpanKind::wait) waits.insert(span.name);
    if (span.kind == SpanKind::issue && span.end < first_tensor) issued += span.count;
  }
  EXPECT_EQ(issued, 2 * stages) << "A and B of every stage";
  EXPECT_TRUE(waits.contains("wait empty[0]"));
  EXPECT_FALSE(waits.contains("wait full[0]"));
}

TEST(GemmSm90Timeline, MulticastFeedsTensorCoresThatWaitForL2Otherwise) {
  constexpr GemmSm90Config alone = {.block_m = 128, .block_n = 256};
  constexpr GemmSm90Config paired = {.block_m = 128, .block_n = 256, .cluster_m = 2};
  Trace const one = gemm_timeline<alone>({.tiles_m = 132, .k = kDepth, .clusters = 132}, "");
  Trace const two = gemm_timeline<paired>({.tiles_m = 66, .k = kDepth, .clusters = 66}, "");
  EXPECT_LT(tensor_share(one), 0.9);
  EXPECT_GT(tensor_share(two), 0.97);
  EXPECT_EQ(two.tracks[static_cast<std::size_t>(track(two, "tensor core", 1))].cta,
            (Dim3{1, 0, 0}));
}

}  // namespace
}  // namespace tegula
