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

template <AttentionOverlap overlap> Trace const& trace() {
  constexpr AttentionSm90Config config = {
      .head_dim = 128, .head_dim_v = 128, .block_n = 128, .overlap = overlap};
  static Trace const made = attention_timeline<config>(1, kBlocks, "");
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

TEST(AttentionSm90Timeline, EachWorksTheTensorCoresAsLong) {
  double const products = 2 * 2 * kBlocks * kProduct;
  for (Trace const* const t :
       {&trace<AttentionOverlap::none>(), &trace<AttentionOverlap::intra_warpgroup>(),
        &trace<AttentionOverlap::pingpong>()})
    EXPECT_NEAR(total(spans(*t, SpanKind::tensor, "tensor core")), products, 1);
}

TEST(AttentionSm90Timeline, OverlapsMakeItShorter) {
  Trace const &none = trace<AttentionOverlap::none>(),
              &intra = trace<AttentionOverlap::intra_warpgroup>(),
              &pingpong = trace<AttentionOverlap::pingpong>();
  EXPECT_LT(intra.cycles(), none.cycles());
  EXPECT_LT(pingpong.cycles(), intra.cycles());
  EXPECT_GT(tensor_share(intra), tensor_share(none));
  EXPECT_GT(tensor_share(pingpong), tensor_share(intra));
}

}  // namespace
}  // namespace tegula
