// What the timelines of attention on Hopper show: docs/hopper_attention.md, "Who does what".

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "timelines/attention_timeline.hpp"

namespace tegula {
namespace {

using sim::SpanKind;
using sim::Trace;
using sim::TraceSpan;
using ::testing::UnorderedElementsAre;

constexpr int kBlocks = 6;
/// Of S and of O, for 64 rows and a block of 128 keys, head dim 128.
constexpr double kProduct = 64.0 * 128 * 128 / 2048;
/// Of a warp, 16 rows; each scheduler has one of each consumer.
constexpr double kExponentials = 16.0 * 128 / 4;

constexpr int consumers(AttentionOverlap overlap) {
  return overlap == AttentionOverlap::pingpong ? 2 : 1;
}

template <AttentionOverlap overlap> Trace const& trace() {
  constexpr AttentionSm90Config config = {
      .head_dim = 128, .head_dim_v = 128, .block_n = 128, .stages = 3, .overlap = overlap};
  // Of one consumer, but where two take turns.
  static Trace const made = attention_timeline<config>(64 * consumers(overlap), kBlocks, "");
  return made;
}

int track(Trace const& trace, std::string const& name) {
  for (std::size_t i = 0; i < trace.tracks.size(); ++i)
    if (trace.tracks[i].name == name) return static_cast<int>(i);
  ADD_FAILURE() << "no track " << name;
  return 0;
}

/// Of one track; those that another has issued where `issuer` says whose.
std::vector<TraceSpan> spans(Trace const& trace, SpanKind kind, std::string const& of,
                             std::string const& issuer = "") {
  std::vector<TraceSpan> found;
  for (TraceSpan const& span : trace.spans) {
    if (span.kind == kind && span.track == track(trace, of) &&
        (issuer.empty() || span.issuer == track(trace, issuer)))
      found.push_back(span);
  }
  return found;
}

double total(std::vector<TraceSpan> const& spans) {
  double sum = 0;
  for (TraceSpan const& span : spans) sum += span.end - span.begin;
  return sum;
}

/// Cycles of `spans` in which some of `others` is under way, too.
double covered(std::vector<TraceSpan> const& spans, std::vector<TraceSpan> const& others) {
  double sum = 0;
  for (TraceSpan const& span : spans) {
    for (TraceSpan const& other : others)
      sum += std::max(0.0, std::min(span.end, other.end) - std::max(span.begin, other.begin));
  }
  return sum;
}

double tensor_share(Trace const& trace) {
  return trace.share(track(trace, "tensor core"), SpanKind::tensor);
}

TEST(AttentionSm90Timeline, HasARowForEachRoleAndEngine) {
  std::vector<std::string> names;
  for (auto const& track : trace<AttentionOverlap::pingpong>().tracks) names.push_back(track.name);
  EXPECT_THAT(names, UnorderedElementsAre("producer", "consumer 0", "consumer 1", "TMA load",
                                          "tensor core"));
}

TEST(AttentionSm90Timeline, EachConsumerWorksTheTensorCoresAsLong) {
  double const products = 2 * kBlocks * kProduct;
  EXPECT_NEAR(total(spans(trace<AttentionOverlap::none>(), SpanKind::tensor, "tensor core")),
              products, 1);
  EXPECT_NEAR(
      total(spans(trace<AttentionOverlap::intra_warpgroup>(), SpanKind::tensor, "tensor core")),
      products, 1);
  EXPECT_NEAR(total(spans(trace<AttentionOverlap::pingpong>(), SpanKind::tensor, "tensor core")),
              2 * products, 1);
}

TEST(AttentionSm90Timeline, OverlapsMakeSixtyFourRowsShorter) {
  Trace const &none = trace<AttentionOverlap::none>(),
              &intra = trace<AttentionOverlap::intra_warpgroup>(),
              &pingpong = trace<AttentionOverlap::pingpong>();
  EXPECT_LT(intra.cycles(), 0.85 * none.cycles());
  EXPECT_LT(pingpong.cycles() / 2, 0.85 * intra.cycles());
  EXPECT_LT(tensor_share(none), 0.7);
  EXPECT_GT(tensor_share(intra), 0.85);
  EXPECT_GT(tensor_share(pingpong), 0.98);
}

TEST(AttentionSm90Timeline, WithoutOverlapExponentialsLeaveTheTensorCoreIdle) {
  Trace const& none = trace<AttentionOverlap::none>();
  auto const exponentials = spans(none, SpanKind::exponentials, "consumer 0");
  EXPECT_EQ(exponentials.size(), std::size_t{kBlocks});
  EXPECT_GE(total(exponentials), kBlocks * kExponentials);
  EXPECT_EQ(covered(exponentials, spans(none, SpanKind::tensor, "tensor core")), 0);
}

TEST(AttentionSm90Timeline, WithinAWarpgroupExponentialsLieUnderItsOwnProduct) {
  Trace const& intra = trace<AttentionOverlap::intra_warpgroup>();
  auto const exponentials = spans(intra, SpanKind::exponentials, "consumer 0");
  double const first = exponentials.front().end - exponentials.front().begin;
  EXPECT_GT(covered(exponentials, spans(intra, SpanKind::tensor, "tensor core", "consumer 0")),
            0.85 * (total(exponentials) - first))
      << "all but the first block's";
}

TEST(AttentionSm90Timeline, InPingPongTheyLieUnderTheOthersProducts) {
  Trace const& pingpong = trace<AttentionOverlap::pingpong>();
  auto exponentials = spans(pingpong, SpanKind::exponentials, "consumer 1");
  EXPECT_GE(exponentials.size(), std::size_t{kBlocks});
  auto const products = spans(pingpong, SpanKind::tensor, "tensor core");
  std::erase_if(exponentials, [](TraceSpan const& s) { return s.begin < 3300; });
  EXPECT_GT(covered(exponentials, products), 0.98 * total(exponentials))
      << "behind the first block";
}

}  // namespace
}  // namespace tegula
