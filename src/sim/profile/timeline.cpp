#include "profile/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

namespace tegula::sim {

namespace {

constexpr double kTouching = 1e-6;  // cycles: rounding of sums

}  // namespace

Timeline::Timeline(TraceOptions const& options, std::vector<Dim3> const& ctas, std::int64_t sharing,
                   int threads, std::function<std::string(int)> const& role)
    : timing_(options.timing),
      per_cta_(threads),
      threads_(ctas.size() * static_cast<std::size_t>(threads)),
      shows_phases_(options.barriers) {
  double const sharers =
      static_cast<double>(std::min<std::int64_t>(sharing, timing_.multiprocessors));
  l2_share_ = std::min(timing_.port_bytes, timing_.l2_bytes / sharers);
  for (std::size_t rank = 0; rank < ctas.size(); ++rank) {
    int const cta = static_cast<int>(rank);
    std::size_t const first = tracks_.size();
    for (int t = 0; t < threads; ++t) {
      std::string const name = role(t / 32);
      std::size_t track = first;
      while (track < tracks_.size() && tracks_[track].name != name) ++track;
      if (track == tracks_.size()) tracks_.push_back({ctas[rank], cta, name});
      self(cta, t).track = static_cast<int>(track);
    }
    auto const engine = [&](std::string name) {
      tracks_.push_back({ctas[rank], cta, std::move(name)});
      return static_cast<int>(tracks_.size()) - 1;
    };
    Engines& engines = engines_.emplace_back();
    engines.load_track = engine("TMA load");
    engines.copy_track = engine("cp.async");
    engines.tensor_track = engine("tensor core");
    for (int quarter = 0; quarter < 4; ++quarter)
      engines.quarter_track[static_cast<std::size_t>(quarter)] =
          engine(fmt::format("tensor core {}", quarter));
    engines.store_track = engine("TMA store");
  }
  cluster_barrier_.name = "cluster barrier";
}

TimeGate& Timeline::barrier(int cta, int id) {
  TimeGate& gate = barriers_[{cta, id}];
  if (gate.name.empty()) gate.name = fmt::format("barrier {}", id);
  return gate;
}

void Timeline::complete_phase(int cta, std::uint32_t address, TimeGate& gate) {
  double const begin = gate.done.empty() ? 0 : gate.done.back();
  std::int64_t const phase = gate.phase();
  gate.open();
  if (shows_phases_)
    phases_[{cta, address}].push_back({0,
                                       SpanKind::phase,
                                       fmt::format("{} phase {}", gate.name, phase),
                                       begin,
                                       gate.done.back(),
                                       -1,
                                       1,
                                       {}});
}

void Timeline::execute(int cta, int thread, Instruction instruction, SourceLocation where) {
  Charge const charge = row_of(instruction).charge;
  if (charge == Charge::tensor) return;
  Thread& own = self(cta, thread);
  double const begin = own.clock;
  bool const access = charge == Charge::access;
  own.clock += access ? timing_.access : timing_.issue;
  if (access) touch_result(own, begin, where);
}

/// An access to memory by a thread that has computed belongs to its epilogue.
void Timeline::touch_result(Thread& thread, double begin, SourceLocation where) {
  if (!thread.computes) return;
  if (thread.epilogue_end < 0) {
    thread.epilogue_begin = begin;
    thread.epilogue_where = where;
  }
  thread.epilogue_end = thread.clock;
}

/// The thread computes again: what it did with its last result is over.
void Timeline::close_epilogue(Thread& thread) {
  thread.computes = true;
  if (thread.epilogue_end < 0) return;
  record(thread.track, SpanKind::epilogue, fmt::format("epilogue {}", std::max(thread.results, 0)),
         thread.epilogue_begin, thread.epilogue_end, thread.epilogue_where);
  thread.epilogue_end = -1;
}

/// The thread waits or issues: a run of exponentials is over.
void Timeline::close_exponentials(Thread& thread) {
  if (thread.exponentials_end < 0) return;
  record(thread.track, SpanKind::exponentials, "exponentials", thread.exponentials_begin,
         thread.exponentials_end, {});
  thread.exponentials_end = -1;
}

void Timeline::meet(int cta, int first_thread, std::uint32_t lanes) {
  double latest = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    latest = std::max(latest, self(cta, first_thread + std::countr_zero(rest)).clock);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    self(cta, first_thread + std::countr_zero(rest)).clock = latest;
}

void Timeline::meet_all(int cta, int first_thread, int count) {
  double latest = 0;
  for (int t = 0; t < count; ++t) latest = std::max(latest, self(cta, first_thread + t).clock);
  for (int t = 0; t < count; ++t) self(cta, first_thread + t).clock = latest;
}

void Timeline::pass(TimeGate const& gate, std::int64_t phase, int cta, int thread,
                    SourceLocation where) {
  self(cta, thread).waited = true;
  if (phase < 0) return;
  double const done = gate.done[static_cast<std::size_t>(phase)];
  if (done > clock(cta, thread))
    wait_until(done + timing_.wake, cta, thread, "wait " + gate.name, where);
}

void Timeline::wait_until(double time, int cta, int thread, std::string const& name,
                          SourceLocation where) {
  Thread& own = self(cta, thread);
  if (time <= own.clock) return;
  close_exponentials(own);
  record(own.track, SpanKind::wait, name, own.clock, time, where);
  own.clock = time;
}

void Timeline::issue_span(Thread& thread, std::string name, double begin, SourceLocation where) {
  close_exponentials(thread);
  record(thread.track, SpanKind::issue, std::move(name), begin, thread.clock, where);
}

double Timeline::load(int cta, int thread, int to, double bytes, bool again,
                      std::string const& name, SourceLocation where) {
  Thread& own = self(cta, thread);
  Engines& engines = engines_[static_cast<std::size_t>(cta)];
  if (!again) {
    double const issued = own.clock;
    own.clock += timing_.issue;
    issue_span(own, name, issued, where);
    engines.tma = std::max(own.clock, engines.tma) + std::max(timing_.tma_box, bytes / l2_share_);
  }
  // The bytes come at the rate of the slower of L2 and the port, and not before those ahead
  // of them.
  Engines& arrival = engines_[static_cast<std::size_t>(to)];
  double const end = std::max(engines.tma + timing_.tma_latency,
                              arrival.port + std::max(timing_.tma_box, bytes / timing_.port_bytes));
  double const begin = std::max(arrival.port, end - std::max(timing_.tma_box, bytes / l2_share_));
  arrival.port = end;
  record(arrival.load_track, SpanKind::load, name, begin, end, where, own.track);
  return end;
}

TimeOfCopy Timeline::store(int cta, int thread, double bytes, std::string const& name,
                           SourceLocation where) {
  Thread& own = self(cta, thread);
  Engines& engines = engines_[static_cast<std::size_t>(cta)];
  double const issued = own.clock;
  own.clock += timing_.issue;
  touch_result(own, issued, where);
  double const start = std::max(own.clock, engines.store);
  double const read = start + std::max(timing_.tma_box, bytes / l2_share_);
  engines.store = read;
  record(engines.store_track, SpanKind::store, name, start, read, where, own.track);
  return {read, read + timing_.store_latency};
}

double Timeline::copy(int cta, int thread, double bytes, SourceLocation where) {
  Thread& own = self(cta, thread);
  Engines& engines = engines_[static_cast<std::size_t>(cta)];
  double const begin = std::max(own.clock + timing_.global_latency, engines.port);
  double const end = begin + bytes / l2_share_;
  engines.port = end;
  record(engines.copy_track, SpanKind::load, "copies", begin, end, where, own.track);
  return end;
}

double Timeline::tensor_memory(int cta, int thread, double bytes, SourceLocation where) {
  Thread& own = self(cta, thread);
  int const first = thread / 32 * 32;
  for (int lane = 0; lane < 32; ++lane) {
    Thread& other = self(cta, first + lane);
    if (other.waited) {
      close_epilogue(other);
      ++other.results;
      other.waited = false;
    }
    touch_result(other, other.clock, where);
  }
  return own.clock + timing_.tensor_memory_latency + bytes / timing_.tensor_memory_bytes;
}

double Timeline::tensor(int cta, int first_thread, int threads, std::string const& name,
                        double multiply_adds, double operand_bytes, bool accumulates,
                        SourceLocation where) {
  Engines& engines = engines_[static_cast<std::size_t>(cta)];
  for (int t = 0; t < threads; ++t) {
    Thread& thread = self(cta, first_thread + t);
    close_exponentials(thread);
    bool const had_epilogue = thread.epilogue_end >= 0;
    close_epilogue(thread);
    if (!accumulates && (thread.accumulated || had_epilogue || thread.results < 0))
      ++thread.results;
    thread.accumulated = accumulates;
  }
  Thread& own = self(cta, first_thread);
  double const issued = own.clock;
  double const start = std::max(issued, engines.tensor);
  double const end =
      start + std::max(multiply_adds / timing_.tensor_rate, operand_bytes / timing_.shared_bytes);
  engines.tensor = end;
  // Of tcgen05.mma one is taken in while another works; the next must wait until that one has
  // begun. A warpgroup goes on at once: what it has issued queues up.
  double const taken = issued + timing_.issue;
  for (int t = 0; t < threads; ++t)
    self(cta, first_thread + t).clock = threads > 1 ? taken : std::max(taken, start);
  issue_span(own, "issue " + name, issued, where);
  record(engines.tensor_track, SpanKind::tensor, fmt::format("{} {}", name, own.results), start,
         end, where, own.track);
  return end;
}

void Timeline::mma_sync(int cta, int first_thread, double multiply_adds, SourceLocation where) {
  Engines& engines = engines_[static_cast<std::size_t>(cta)];
  std::size_t const quarter = static_cast<std::size_t>(first_thread / 32 % 4);
  Thread& own = self(cta, first_thread);
  double const start = std::max(own.clock, engines.quarter[quarter]);
  double const end = start + multiply_adds / (timing_.tensor_rate / 4 * timing_.mma_sync_share);
  engines.quarter[quarter] = end;
  double const taken = std::max(own.clock + timing_.issue, start);
  for (int lane = 0; lane < 32; ++lane) {
    Thread& thread = self(cta, first_thread + lane);
    close_exponentials(thread);
    close_epilogue(thread);
    thread.clock = taken;
  }
  record(engines.quarter_track[quarter], SpanKind::tensor, "mma.sync", start, end, where,
         own.track);
}

void Timeline::special_function(int cta, int thread, bool exponential) {
  Thread& own = self(cta, thread);
  double& free =
      engines_[static_cast<std::size_t>(cta)].special[static_cast<std::size_t>(thread / 32 % 4)];
  double const start = std::max(own.clock, free);
  own.clock = free = start + 4 / timing_.special_rate;
  if (!exponential) return;
  if (own.exponentials_end < 0) own.exponentials_begin = start;
  own.exponentials_end = own.clock;
}

void Timeline::record(int track, SpanKind kind, std::string name, double begin, double end,
                      SourceLocation where, int issuer) {
  if (end > begin) spans_.push_back({track, kind, std::move(name), begin, end, issuer, 1, where});
}

namespace {

/// By begin; of those that begin together, the outer one first.
struct ByTime {
  bool operator()(TraceSpan const& a, TraceSpan const& b) const {
    return std::tie(a.begin, b.end, a.kind, a.name) < std::tie(b.begin, a.end, b.kind, b.name);
  }
};

/// Whether the span stands for instructions that its threads execute together, or for one thread's:
/// such spans are counted when they are joined. The others are the same wait, or the same work, of
/// many threads.
bool counted(SpanKind kind) {
  return kind != SpanKind::wait && kind != SpanKind::epilogue && kind != SpanKind::exponentials;
}

/// Joins spans of one track that show the same and touch or overlap: the threads of a role that
/// wait together, instructions of one kind one after another.
std::vector<TraceSpan> joined(std::vector<TraceSpan> const& by_time) {
  std::vector<TraceSpan> result;
  std::map<std::tuple<SpanKind, std::string, int>, std::size_t> latest;
  for (TraceSpan const& span : by_time) {
    auto const [known, is_new] =
        latest.try_emplace({span.kind, span.name, span.issuer}, result.size());
    if (!is_new && span.begin <= result[known->second].end + kTouching) {
      TraceSpan& first = result[known->second];
      first.end = std::max(first.end, span.end);
      if (counted(span.kind)) first.count += span.count;
    } else {
      known->second = result.size();
      result.push_back(span);
    }
  }
  return result;
}

/// Moves the begin of a span that would reach out of the one it begins in to that one's end; and of
/// an epilogue that begins among exponentials, which would cover them.
std::vector<TraceSpan> nested(std::vector<TraceSpan> const& spans) {
  std::multiset<TraceSpan, ByTime> rest(spans.begin(), spans.end());
  std::vector<TraceSpan> result;
  std::vector<TraceSpan> open;  // what the next one may lie in, inner ones last
  while (!rest.empty()) {
    auto first = rest.extract(rest.begin());
    TraceSpan& span = first.value();
    while (!open.empty() && open.back().end <= span.begin + kTouching) open.pop_back();
    bool const covers = !open.empty() && span.kind == SpanKind::epilogue &&
                        open.back().kind == SpanKind::exponentials;
    if (!open.empty() && (covers || span.end > open.back().end + kTouching)) {
      span.begin = open.back().end;
      if (span.end > span.begin + kTouching) rest.insert(std::move(first));
      continue;
    }
    open.push_back(span);
    result.push_back(std::move(span));
  }
  return result;
}

}  // namespace

Trace Timeline::finish() {
  for (Thread& thread : threads_) close_exponentials(thread), close_epilogue(thread);
  std::sort(spans_.begin(), spans_.end(), ByTime{});
  std::vector<std::vector<TraceSpan>> by_track(tracks_.size());
  // shown: it has spans, or is what another's span was issued by
  std::vector<bool> named(tracks_.size());
  for (TraceSpan& span : spans_) {
    named[static_cast<std::size_t>(span.track)] = true;
    if (span.issuer >= 0) named[static_cast<std::size_t>(span.issuer)] = true;
    by_track[static_cast<std::size_t>(span.track)].push_back(std::move(span));
  }
  spans_.clear();

  Trace trace;
  std::vector<int> shown(tracks_.size());
  for (std::size_t t = 0; t < tracks_.size(); ++t) {
    shown[t] = static_cast<int>(trace.tracks.size());
    if (named[t]) trace.tracks.push_back(tracks_[t]);
    if (t + 1 == tracks_.size() || tracks_[t + 1].rank != tracks_[t].rank)
      add_phases(tracks_[t], trace);
  }
  for (std::size_t t = 0; t < tracks_.size(); ++t) {
    for (TraceSpan& span : nested(joined(by_track[t]))) {
      span.track = shown[t];
      if (span.issuer >= 0) span.issuer = shown[static_cast<std::size_t>(span.issuer)];
      trace.spans.push_back(std::move(span));
    }
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(),
                   [](TraceSpan const& a, TraceSpan const& b) { return a.track < b.track; });
  return trace;
}

/// A track for each mbarrier of the CTA, in the order of addresses.
void Timeline::add_phases(TraceTrack const& of_cta, Trace& trace) {
  for (auto& [place, spans] : phases_) {
    if (place.first != of_cta.rank) continue;
    std::string const& first = spans.front().name;  // "full[0] phase 0"
    std::string const name = first.substr(0, first.rfind(" phase "));
    for (TraceSpan& span : spans) {
      span.track = static_cast<int>(trace.tracks.size());
      span.name.erase(0, name.size() + 1);
      trace.spans.push_back(std::move(span));
    }
    trace.tracks.push_back({of_cta.cta, of_cta.rank, name});
  }
}

}  // namespace tegula::sim
