// The model of time on its own, by events given by hand, and the writers of what it records.

#include "profile/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace tegula::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr SourceLocation kHere = {"kernel.hpp", 7};

/// A timing of round numbers.
Timing round_timing() {
  Timing t;
  t.tensor_rate = 1000;
  t.mma_sync_share = 0.5;
  t.special_rate = 8;
  t.shared_bytes = 100;
  t.tma_latency = 500;
  t.l2_bytes = 10;
  t.port_bytes = 20;
  t.tma_box = 5;
  t.store_latency = 300;
  t.global_latency = 200;
  t.issue = 1;
  t.access = 50;
  t.wake = 10;
  t.cluster_latency = 100;
  return t;
}

/// Warp 0 to 3 produce; the other warpgroups compute.
std::string role(int warp) {
  return warp < 4 ? "producer" : "consumer " + std::to_string(warp / 4 - 1);
}

Timeline one_cta(int consumers = 2) {
  return {{.timing = round_timing()}, {{2, 0, 0}}, 1, 128 * (1 + consumers), role};
}

std::vector<TraceSpan> spans_of(Trace const& trace, std::string const& track) {
  std::vector<TraceSpan> result;
  for (TraceSpan const& span : trace.spans)
    if (trace.tracks[static_cast<std::size_t>(span.track)].name == track) result.push_back(span);
  return result;
}

/// "name begin-end" of each.
std::vector<std::string> texts(std::vector<TraceSpan> const& spans) {
  std::vector<std::string> result;
  for (TraceSpan const& s : spans)
    result.push_back(s.name + " " + std::to_string(std::lround(s.begin)) + "-" +
                     std::to_string(std::lround(s.end)));
  return result;
}

TEST(Timeline, WgmmaQueueUpAndTheirWarpgroupGoesOn) {
  Timeline t = one_cta();
  EXPECT_EQ(t.tensor(0, 128, 128, "wgmma", 100'000, 0, false, kHere), 100);
  EXPECT_EQ(t.clock(0, 128), 1);
  EXPECT_EQ(t.tensor(0, 128, 128, "wgmma", 100'000, 0, true, kHere), 200);
  EXPECT_EQ(t.clock(0, 255), 2) << "though the one before is not done";
  EXPECT_EQ(t.tensor(0, 256, 128, "wgmma", 100'000, 0, false, kHere), 300)
      << "the tensor cores are the SM's";
  EXPECT_EQ(t.clock(0, 256), 1);
  EXPECT_EQ(t.clock(0, 0), 0);
}

TEST(Timeline, AThreadGoesOnWhenTheTensorCoresBeginItsMma) {
  Timeline t = one_cta();
  EXPECT_EQ(t.tensor(0, 128, 1, "mma", 100'000, 0, false, kHere), 100);
  EXPECT_EQ(t.clock(0, 128), 1) << "taken in at once";
  EXPECT_EQ(t.tensor(0, 128, 1, "mma", 100'000, 0, true, kHere), 200);
  EXPECT_EQ(t.clock(0, 128), 100) << "when the one before is done";
  EXPECT_EQ(t.clock(0, 129), 0);
}

TEST(Timeline, AnInstructionThatReadsMoreThanItMultipliesIsBoundBySharedMemory) {
  Timeline t = one_cta();
  EXPECT_EQ(t.tensor(0, 128, 128, "wgmma", 1'000, 4'000, false, kHere), 40);
}

TEST(Timeline, WgmmaOfOneAccumulationAreOneSpanAndNumbered) {
  Timeline t = one_cta();
  for (int tile = 0; tile < 2; ++tile) {
    for (int k = 0; k < 4; ++k) t.tensor(0, 128, 128, "wgmma", 10'000, 0, k > 0, kHere);
    t.wait_until(40.0 * (tile + 1), 0, 128, "wait wgmma", kHere);
  }
  t.tensor(0, 256, 128, "wgmma", 10'000, 0, false, kHere);
  Trace const trace = t.finish();
  auto const tensor = spans_of(trace, "tensor core");
  EXPECT_THAT(texts(tensor), ElementsAre("wgmma 0 0-40", "wgmma 1 40-80", "wgmma 0 80-90"));
  EXPECT_EQ(tensor[0].count, 4);
  EXPECT_EQ(trace.tracks[static_cast<std::size_t>(tensor[1].issuer)].name, "consumer 0");
  EXPECT_EQ(trace.tracks[static_cast<std::size_t>(tensor[2].issuer)].name, "consumer 1");
}

TEST(Timeline, ALoadTakesTheLatencyAndItsShareOfL2AfterThoseBeforeIt) {
  Timeline t = one_cta();
  EXPECT_EQ(t.load(0, 0, 0, 1000, false, "A[0]", kHere), 1 + 100 + 500);
  EXPECT_EQ(t.load(0, 0, 0, 1000, false, "B[0]", kHere), 1 + 200 + 500);
  EXPECT_EQ(t.clock(0, 0), 2) << "the thread goes on";
  EXPECT_EQ(t.load(0, 0, 0, 10, false, "C", kHere), 1 + 205 + 500)
      << "a box takes 5 cycles at least";
  EXPECT_THAT(texts(spans_of(t.finish(), "TMA load")),
              ElementsAre("A[0] 501-601", "B[0] 601-701", "C 701-706"));
}

TEST(Timeline, AMulticastIsFetchedOnceAndArrivesEverywhere) {
  Timeline t({.timing = round_timing()}, {{0, 0, 0}, {1, 0, 0}}, 1, 128, role);
  EXPECT_EQ(t.load(0, 0, 0, 1000, false, "A[0]", kHere), 601);
  EXPECT_EQ(t.load(0, 0, 1, 1000, true, "A[0]", kHere), 601);
  EXPECT_EQ(t.load(1, 0, 0, 1000, false, "A[0]", kHere), 651);
  EXPECT_EQ(t.load(1, 0, 1, 1000, true, "A[0]", kHere), 651)
      << "each CTA's engine fetches its half at the same time; a port takes 20 bytes a cycle";
  Trace const trace = t.finish();
  auto const loads = spans_of(trace, "TMA load");
  EXPECT_THAT(texts(loads),
              ElementsAre("A[0] 501-601", "A[0] 601-651", "A[0] 501-601", "A[0] 601-651"));
  EXPECT_EQ(trace.tracks[static_cast<std::size_t>(loads[1].issuer)].rank, 1);
}

TEST(Timeline, TheCtasOfAGridShareL2UpToTheSmsThereAre) {
  Timing timing = round_timing();
  timing.l2_bytes = 100;
  timing.multiprocessors = 20;
  auto const landed = [&](std::int64_t ctas) {
    Timeline t({.timing = timing}, {{0, 0, 0}}, ctas, 128, role);
    return t.load(0, 0, 0, 1000, false, "A", kHere);
  };
  EXPECT_EQ(landed(1), 1 + 50 + 500) << "the port takes 20 bytes a cycle";
  EXPECT_EQ(landed(10), 1 + 100 + 500);
  EXPECT_EQ(landed(20), 1 + 200 + 500);
  EXPECT_EQ(landed(1000), 1 + 200 + 500);
}

TEST(Timeline, AStoreIsReadBeforeItLands) {
  Timeline t = one_cta();
  TimeOfCopy const first = t.store(0, 0, 100, "D", kHere), second = t.store(0, 0, 100, "D", kHere);
  EXPECT_EQ(first.read, 11);
  EXPECT_EQ(first.landed, 311);
  EXPECT_EQ(second.read, 21) << "one after another";
}

TEST(Timeline, APhaseIsCompleteWithItsLastArrivalAndWaitersGoOnThen) {
  Timeline t = one_cta();
  TimeGate full{.name = "full[0]"};
  full.arrive(300);
  full.arrive(200);
  std::int64_t const phase = full.phase();
  full.open();
  full.arrive(900);
  full.open();
  for (int thread = 128; thread < 256; ++thread) t.pass(full, phase, 0, thread, kHere);
  EXPECT_EQ(t.clock(0, 130), 310)
      << "woken 10 cycles later; the phase after is none of its business";
  t.pass(full, -1, 0, 0, kHere);
  EXPECT_EQ(t.clock(0, 0), 0) << "the phase before the first is complete from the beginning";
  t.wait_until(500, 0, 256, "later", kHere);
  t.pass(full, phase, 0, 256, kHere);
  EXPECT_EQ(t.clock(0, 256), 500) << "no wait for what is over";
  EXPECT_THAT(texts(spans_of(t.finish(), "consumer 0")), ElementsAre("wait full[0] 0-310"));
}

TEST(Timeline, ShowsThePhasesOfMbarriersWhereAskedTo) {
  for (bool const barriers : {false, true}) {
    Timeline t({.timing = round_timing(), .barriers = barriers}, {{0, 0, 0}, {1, 0, 0}}, 1, 128,
               role);
    TimeGate full{.name = "full[1]"}, empty{.name = "empty[0]"};
    full.arrive(300);
    t.complete_phase(1, 1032, full);
    full.arrive(800);
    t.complete_phase(1, 1032, full);
    empty.arrive(500);
    t.complete_phase(1, 1024, empty);
    t.wait_until(10, 0, 0, "wait", kHere);
    t.wait_until(10, 1, 0, "wait", kHere);
    EXPECT_THAT(full.done, ElementsAre(300, 800));
    Trace const trace = t.finish();
    ASSERT_EQ(trace.tracks.size(), barriers ? 4u : 2u);
    EXPECT_EQ(trace.tracks.back().rank, 1);
    if (!barriers) continue;
    EXPECT_EQ(trace.tracks[2].name, "empty[0]") << "by address, after the CTA's other tracks";
    EXPECT_THAT(texts(spans_of(trace, "full[1]")), ElementsAre("phase 0 0-300", "phase 1 300-800"));
    EXPECT_THAT(texts(spans_of(trace, "empty[0]")), ElementsAre("phase 0 0-500"));
    EXPECT_THAT(to_svg(trace), HasSubstr("of parity 1"));
  }
}

TEST(Timeline, ThreadsThatMeetGoOnFromTheLatest) {
  Timeline t = one_cta();
  t.execute(0, 3, Instruction::ld_global, kHere);
  t.execute(0, 4, Instruction::shfl_sync, kHere);
  t.meet(0, 0, 0x18);
  EXPECT_EQ(t.clock(0, 4), 50);
  EXPECT_EQ(t.clock(0, 5), 0);
  t.meet_all(0, 0, 128);
  EXPECT_EQ(t.clock(0, 127), 50);
  EXPECT_EQ(t.clock(0, 128), 0);
}

TEST(Timeline, AnEpilogueIsWhatThoseWhoComputeDoToMemoryUntilTheyComputeAgain) {
  Timeline t = one_cta();
  t.execute(0, 128, Instruction::ld_shared, kHere);  // before any result: none
  for (int tile = 0; tile < 2; ++tile) {
    t.meet_all(0, 128, 128);
    double const done = t.tensor(0, 128, 128, "wgmma", 10'000, 0, false, kHere);
    for (int thread = 128; thread < 256; ++thread) {
      t.wait_until(done, 0, thread, "wait wgmma", kHere);
      t.execute(0, thread, Instruction::stmatrix, kHere);
      if (thread < 160) t.execute(0, thread, Instruction::st_global, kHere);
    }
    t.store(0, 128, 100, "D", kHere);
    double const later = t.clock(0, 128) + 40;
    for (int thread = 128; thread < 256; ++thread) t.wait_until(later, 0, thread, "wait", kHere);
  }
  auto spans = spans_of(t.finish(), "consumer 0");
  std::erase_if(spans, [](TraceSpan const& s) { return s.kind != SpanKind::epilogue; });
  EXPECT_THAT(texts(spans), ElementsAre("epilogue 0 60-161", "epilogue 1 211-312"));
}

TEST(Timeline, MmaSyncKeepsAQuarterOfTheTensorCoresBusy) {
  Timeline t({.timing = round_timing()}, {{0, 0, 0}}, 1, 160,
             [](int warp) { return "warp " + std::to_string(warp); });
  t.mma_sync(0, 0, 1000, kHere);
  t.mma_sync(0, 32, 1000, kHere);
  t.mma_sync(0, 128, 1000, kHere);  // warp 4 shares warp 0's quarter
  Trace const trace = t.finish();
  auto const first = spans_of(trace, "tensor core 0");
  EXPECT_THAT(texts(first), ElementsAre("mma.sync 0-8", "mma.sync 8-16"));
  EXPECT_EQ(spans_of(trace, "tensor core 1").size(), 1u);
  EXPECT_EQ(trace.tracks[static_cast<std::size_t>(first[1].issuer)].name, "warp 4")
      << "a track whose warps only issued is shown too";
}

/// Each lane of the warp computes so many exponentials, one lane after another, and they meet.
double exponentiate(Timeline& t, int cta, int warp, int count) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < count; ++i) t.special_function(cta, 32 * warp + lane, true);
  }
  t.meet(cta, 32 * warp, 0xffffffffu);
  return t.clock(cta, 32 * warp);
}

TEST(Timeline, TheSpecialFunctionUnitsOfASchedulerServeTwoLanesACycleOfEightTheSmServes) {
  Timeline t({.timing = round_timing()}, {{0, 0, 0}, {1, 0, 0}}, 1, 288, role);
  EXPECT_EQ(exponentiate(t, 0, 0, 4), 64) << "a warp's lanes: 32 * 4 / 2";
  EXPECT_EQ(exponentiate(t, 0, 4, 4), 128) << "warp 4 has warp 0's scheduler";
  EXPECT_EQ(exponentiate(t, 0, 8, 1), 144) << "and so has warp 8";
  EXPECT_EQ(exponentiate(t, 0, 5, 4), 64) << "warp 5 has another";
  EXPECT_EQ(exponentiate(t, 1, 0, 4), 64) << "each CTA has its own SM";
  t.wait_until(500, 0, 32, "wait", kHere);
  t.special_function(0, 32, false);
  EXPECT_EQ(t.clock(0, 32), 500.5) << "the units were idle meanwhile";
}

TEST(Timeline, ARunOfExponentialsEndsWhereTheThreadsWaitOrIssue) {
  Timeline t = one_cta();
  exponentiate(t, 0, 4, 2);                          // until 32
  t.execute(0, 128, Instruction::shfl_sync, kHere);  // a cycle: the run goes on
  exponentiate(t, 0, 4, 2);                          // from 33 to 65
  t.special_function(0, 128, false);                 // 0.5 cycles, not shown
  t.wait_until(60, 0, 128, "wait for what is over", kHere);
  exponentiate(t, 0, 4, 2);  // until 97.5
  t.wait_until(200, 0, 128, "wait", kHere);
  for (int lane = 1; lane < 32; ++lane) t.wait_until(200, 0, 128 + lane, "wait", kHere);
  exponentiate(t, 0, 4, 2);  // until 232
  t.meet_all(0, 128, 128);
  t.tensor(0, 128, 128, "wgmma", 100'000, 0, false, kHere);
  exponentiate(t, 0, 4, 2);  // from 233 to 265
  auto const spans = spans_of(t.finish(), "consumer 0");
  EXPECT_THAT(texts(spans), ElementsAre("exponentials 0-98", "wait 98-200", "exponentials 200-232",
                                        "issue wgmma 232-233", "exponentials 233-265"));
  EXPECT_EQ(spans[0].kind, SpanKind::exponentials);
  EXPECT_EQ(spans[0].count, 1) << "not as many as there are lanes";
}

/// Whether the spans of each track lie one after another or within each other.
void expect_nested(Trace const& trace) {
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    for (std::size_t j = i + 1; j < trace.spans.size(); ++j) {
      TraceSpan const &a = trace.spans[i], &b = trace.spans[j];
      if (a.track != b.track) continue;
      EXPECT_LE(a.begin, b.begin);
      EXPECT_TRUE(b.begin >= a.end - 1e-5 || b.end <= a.end + 1e-5)
          << a.name << " " << a.begin << "-" << a.end << ", " << b.name << " " << b.begin << "-"
          << b.end;
    }
  }
}

TEST(Timeline, WarpsOfOneRoleThatDoDifferentThingsAtATimeStillNest) {
  Timeline t = one_cta();
  t.wait_until(100, 0, 128, "wait a", kHere);
  t.execute(0, 160, Instruction::fence, kHere);
  t.wait_until(50, 0, 160, "wait b", kHere);
  t.wait_until(150, 0, 160, "wait c", kHere);
  t.wait_until(120, 0, 192, "wait a", kHere);
  Trace const trace = t.finish();
  expect_nested(trace);
  EXPECT_THAT(texts(trace.spans), ElementsAre("wait a 0-120", "wait b 1-50", "wait c 120-150"));
}

/// Two consumers and a producer for a few steps.
Trace some_trace() {
  Timeline t = one_cta();
  TimeGate full{.name = "full[0]"};
  full.arrive(t.load(0, 0, 0, 1000, false, "A<B> & \"C\"", kHere));
  full.open();
  for (int c = 0; c < 2; ++c) {
    int const first = 128 * (c + 1);
    for (int i = 0; i < 128; ++i) t.pass(full, 0, 0, first + i, kHere);
    double const done = t.tensor(0, first, 128, "wgmma", 100'000, 0, false, kHere);
    for (int i = 0; i < 128; ++i) t.wait_until(done, 0, first + i, "wait wgmma", kHere);
    for (int i = 0; i < 128; ++i) t.special_function(0, first + i, true);
    for (int i = 0; i < 128; ++i) t.execute(0, first + i, Instruction::stmatrix, kHere);
    t.store(0, first, 400, "D", kHere);
  }
  Trace trace = t.finish();
  trace.kernel = "Demo<int>";
  return trace;
}

TEST(Trace, ChromeJsonHasAProcessForACtaAndAThreadForATrack) {
  Trace const trace = some_trace();
  auto const json = nlohmann::json::parse(to_chrome_json(trace));
  std::map<int, std::string> threads;
  std::set<std::string> processes;
  int complete = 0;
  for (auto const& event : json["traceEvents"]) {
    if (event["name"] == "thread_name") threads[event["tid"]] = event["args"]["name"];
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["ph"] == "X") {
      ++complete;
      EXPECT_TRUE(threads.contains(event["tid"]));
      EXPECT_GT(event["dur"].get<double>(), 0);
    }
  }
  EXPECT_THAT(processes, ElementsAre("CTA (2, 0, 0)"));
  EXPECT_EQ(complete, static_cast<int>(trace.spans.size()));
  EXPECT_EQ(threads.size(), trace.tracks.size());
  auto const tensor = std::find_if(
      json["traceEvents"].begin(), json["traceEvents"].end(),
      [](auto const& event) { return event["ph"] == "X" && event["cat"] == "tensor"; });
  ASSERT_NE(tensor, json["traceEvents"].end());
  EXPECT_EQ((*tensor)["args"]["issuer"], "consumer 0");
  EXPECT_EQ((*tensor)["args"]["line"], "kernel.hpp:7");
  EXPECT_NEAR((*tensor)["ts"].get<double>(), 0.611, 1e-9)
      << "601 cycles and 10 to wake, a nanosecond each";
  EXPECT_TRUE(std::any_of(json["traceEvents"].begin(), json["traceEvents"].end(),
                          [](auto const& event) {
                            return event["ph"] == "X" && event["cat"] == "exponentials" &&
                                   event["dur"] == 0.016;
                          }))
      << "16 cycles: a warp on each scheduler";
}

TEST(Trace, SharesAreOfTheTracksOwnTime) {
  Trace const trace = some_trace();
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    double const tensor = trace.share(static_cast<int>(i), SpanKind::tensor);
    EXPECT_EQ(tensor, trace.tracks[i].name == "tensor core" ? 1 : 0) << trace.tracks[i].name;
  }
  EXPECT_EQ(Trace{}.cycles(), 0);
}

TEST(Trace, SvgShowsEverySpanWithATooltipAndEscapesNames) {
  Trace const trace = some_trace();
  std::string const svg = to_svg(trace, 1000);
  std::size_t tooltips = 0;
  for (std::size_t at = svg.find("<title>"); at != std::string::npos;
       at = svg.find("<title>", at + 1))
    ++tooltips;
  EXPECT_EQ(tooltips, trace.spans.size());
  EXPECT_THAT(
      svg,
      HasSubstr(
          "A&lt;B&gt; &amp; &quot;C&quot;: 100 cycles, 501 to 601; by producer; kernel.hpp:7"));
  EXPECT_THAT(svg, Not(HasSubstr("A<B>")));
  EXPECT_THAT(svg, HasSubstr("Demo&lt;int&gt;"));
  for (std::string const text :
       {"CTA (2, 0, 0)", ">producer<", ">consumer 1<", ">TMA store<",
        ">tensor cores for consumer 1<", ">epilogue of consumer 0<", ">exponentials<", ">cycles<"})
    EXPECT_THAT(svg, HasSubstr(text));
}

/// The rectangles of one colour: (x, width) in pixels.
std::vector<std::pair<double, double>> rectangles(std::string const& svg,
                                                  std::string const& colour) {
  std::vector<std::pair<double, double>> result;
  for (std::size_t at = svg.find("<rect"); at != std::string::npos;
       at = svg.find("<rect", at + 1)) {
    std::string const element = svg.substr(at, svg.find('>', at) - at);
    if (element.find(colour) == std::string::npos ||
        element.find(" height=\"12\"") != std::string::npos)
      continue;
    auto const number = [&](std::string const& name) {
      return std::stod(element.substr(element.find(" " + name + "=\"") + name.size() + 3));
    };
    result.emplace_back(number("x"), number("width"));
  }
  return result;
}

TEST(Trace, SvgIsToScale) {
  Trace trace;
  trace.tracks = {{{0, 0, 0}, 0, "tensor core"}, {{0, 0, 0}, 0, "c"}};
  trace.spans = {{0, SpanKind::tensor, "wgmma 0", 0, 250, 1, 1, kHere},
                 {0, SpanKind::tensor, "wgmma 1", 750, 1000, 1, 1, kHere}};
  auto const boxes = rectangles(to_svg(trace, 1000), "#2f6fb3");
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_NEAR(boxes[0].second, 250, 0.2);
  EXPECT_NEAR(boxes[1].first - boxes[0].first, 750, 0.2);
}

TEST(Trace, SvgNamesExponentialsAsFarAsThereIsRoom) {
  Trace trace;
  trace.tracks = {{{0, 0, 0}, 0, "c"}};
  trace.spans = {{0, SpanKind::exponentials, "exponentials", 0, 200, -1, 1, {}},
                 {0, SpanKind::exponentials, "exponentials", 900, 930, -1, 1, {}},
                 {0, SpanKind::exponentials, "exponentials", 990, 1000, -1, 1, {}}};
  std::string const svg = to_svg(trace, 1000);
  EXPECT_EQ(rectangles(svg, "#c8506a").size(), 3u);
  auto const count = [&](std::string const& text) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(">exponentials<"), 2u) << "of the legend and of the widest";
  EXPECT_EQ(count(">exp<"), 1u) << "of the one of 30 pixels; 10 are too few";
}

}  // namespace
}  // namespace tegula::sim
