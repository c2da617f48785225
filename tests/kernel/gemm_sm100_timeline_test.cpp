// What the timeline of the Blackwell GEMM shows: docs/blackwell.md.

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

constexpr int kTiles = 4, kDepth = 512;

Trace const& trace() {
  static Trace const made =
      gemm_timeline<GemmSm100Config{.block_n = 128}>({.tiles_m = kTiles, .k = kDepth}, "");
  return made;
}

int track(std::string const& name) {
  for (std::size_t i = 0; i < trace().tracks.size(); ++i)
    if (trace().tracks[i].name == name) return static_cast<int>(i);
  ADD_FAILURE() << "no track " << name;
  return 0;
}

std::vector<TraceSpan> spans(SpanKind kind) {
  std::vector<TraceSpan> found;
  std::copy_if(trace().spans.begin(), trace().spans.end(), std::back_inserter(found),
               [&](TraceSpan const& span) { return span.kind == kind; });
  return found;
}

double total(std::vector<TraceSpan> const& spans) {
  double sum = 0;
  for (TraceSpan const& span : spans) sum += span.end - span.begin;
  return sum;
}

TEST(GemmSm100Timeline, HasARowForEachRole) {
  for (char const* const name : {"load", "multiply", "epilogue", "tensor core"}) track(name);
}

// 4096 multiply-adds a cycle.
TEST(GemmSm100Timeline, TheTensorCoreWorksAtItsRate) {
  EXPECT_NEAR(total(spans(SpanKind::tensor)), double{kTiles} * 128 * 128 * kDepth / 4096, 1);
  std::set<std::string> results;
  for (TraceSpan const& span : spans(SpanKind::tensor)) results.insert(span.name);
  EXPECT_EQ(results, (std::set<std::string>{"mma 0", "mma 1", "mma 2", "mma 3"}));
}

// A pair's tile is twice as high, and its products take as long: two tensor cores share them.
TEST(GemmSm100Timeline, APairMultipliesWithTwoTensorCores) {
  Trace const pair = gemm_timeline<GemmSm100Config{.block_n = 128, .ctas = 2}>(
      {.tiles_m = kTiles, .k = kDepth}, "");
  double sum = 0;
  for (TraceSpan const& span : pair.spans)
    if (span.kind == SpanKind::tensor) sum += span.end - span.begin;
  EXPECT_NEAR(sum, total(spans(SpanKind::tensor)), 1);
}

// All epilogues but the last tile's are over before its products are.
TEST(GemmSm100Timeline, EpiloguesLieUnderMainLoops) {
  double last_product = 0;
  for (TraceSpan const& span : spans(SpanKind::tensor))
    last_product = std::max(last_product, span.end);
  std::set<std::string> under, after;
  for (TraceSpan const& span : spans(SpanKind::epilogue))
    (span.end < last_product ? under : after).insert(span.name);
  EXPECT_EQ(under, (std::set<std::string>{"epilogue 0", "epilogue 1", "epilogue 2"}));
  EXPECT_EQ(after, (std::set<std::string>{"epilogue 3"}));
}

}  // namespace
}  // namespace tegula
