#include "tegula/sim/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "values/place.hpp"

namespace tegula::sim {

char const* to_string(SpanKind kind) {
  switch (kind) {
    case SpanKind::wait:
      return "wait";
    case SpanKind::issue:
      return "issue";
    case SpanKind::epilogue:
      return "epilogue";
    case SpanKind::exponentials:
      return "exponentials";
    case SpanKind::load:
      return "load";
    case SpanKind::store:
      return "store";
    case SpanKind::tensor:
      return "tensor";
    case SpanKind::phase:
      return "phase";
  }
  return "";
}

void Trace::append(Trace&& other) {
  int const first = static_cast<int>(tracks.size());
  for (TraceTrack& track : other.tracks) tracks.push_back(std::move(track));
  for (TraceSpan& span : other.spans) {
    span.track += first;
    if (span.issuer >= 0) span.issuer += first;
    spans.push_back(std::move(span));
  }
}

double Trace::cycles() const {
  double latest = 0;
  for (TraceSpan const& span : spans) latest = std::max(latest, span.end);
  return latest;
}

double Trace::share(int track, SpanKind kind) const {
  double begin = cycles(), end = 0, inside = 0;
  for (TraceSpan const& span : spans) {
    if (span.track != track) continue;
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
    if (span.kind == kind) inside += span.end - span.begin;
  }
  return end > begin ? inside / (end - begin) : 0;
}

std::string to_chrome_json(Trace const& trace) {
  using nlohmann::ordered_json;
  constexpr double kMicroseconds = 1e-3;  // a cycle, as the viewer takes it
  ordered_json events = ordered_json::array();
  std::map<std::tuple<int, int, int>, int> processes;
  std::vector<int> process_of;
  for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
    TraceTrack const& track = trace.tracks[t];
    auto const added = processes.try_emplace(std::tuple(track.cta.x, track.cta.y, track.cta.z),
                                             static_cast<int>(processes.size()));
    int const process = added.first->second;
    process_of.push_back(process);
    auto const name = [&](char const* what, ordered_json const& args) {
      events.push_back({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", t}, {"args", args}});
    };
    if (added.second)
      name("process_name",
           {{"name", fmt::format("CTA ({}, {}, {})", track.cta.x, track.cta.y, track.cta.z)}});
    name("thread_name", {{"name", track.name}});
    name("thread_sort_index", {{"sort_index", t}});
  }
  for (TraceSpan const& span : trace.spans) {
    ordered_json args = {{"cycles", span.end - span.begin}};
    if (span.count > 1) args["instructions"] = span.count;
    if (span.issuer >= 0) args["issuer"] = trace.tracks[static_cast<std::size_t>(span.issuer)].name;
    if (span.where.line != 0) args["line"] = place_text(span.where);
    events.push_back({{"name", span.name},
                      {"cat", to_string(span.kind)},
                      {"ph", "X"},
                      {"ts", span.begin * kMicroseconds},
                      {"dur", (span.end - span.begin) * kMicroseconds},
                      {"pid", process_of[static_cast<std::size_t>(span.track)]},
                      {"tid", span.track},
                      {"args", args}});
  }
  ordered_json const document = {
      {"displayTimeUnit", "ns"},
      {"otherData",
       {{"kernel", trace.kernel},
        {"unit", "a nanosecond of the viewer is a clock cycle of the model"}}},
      {"traceEvents", events}};
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tegula::sim
