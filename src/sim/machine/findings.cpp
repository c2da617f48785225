#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "machine/cluster.hpp"
#include "values/place.hpp"

namespace tegula::sim {

namespace {

/// The stage that a coordinate names ("row 3, column 5 of stage 2 of K"); -1 where it names none.
int stage_of(std::string const& coordinate) {
  static constexpr std::string_view word = "stage ";
  std::size_t const at = coordinate.find(word);
  int stage = -1;
  if (at != std::string::npos)
    std::from_chars(coordinate.data() + at + word.size(), coordinate.data() + coordinate.size(),
                    stage);
  return stage;
}

Finding::Reach reach_of(Culprit const& one, Culprit const& other) {
  if (other.cta < 0) return Finding::Reach::thread;
  if (one.cta != other.cta) return Finding::Reach::cluster;
  if (one.warp != other.warp) return Finding::Reach::cta;
  return one.lane != other.lane ? Finding::Reach::warp : Finding::Reach::thread;
}

}  // namespace

void Cta::report(FindingKind kind, SourceLocation where, Culprit who, std::string buffer,
                 std::string coordinate, std::string message, Opposite other) {
  cluster_.report(kind, where, who, std::move(buffer), std::move(coordinate), std::move(message),
                  std::move(other));
}

void Cta::fail(FindingKind kind, SourceLocation where, Culprit who, std::string message) {
  report(kind, where, who, "", "", std::move(message));
  cluster_.abort();
}

void Cluster::abort() {
  aborting_ = true;
  if (last_finding_ < findings_.size()) findings_[last_finding_].ended_cluster = true;
  throw LeaveKernel{};
}

/// Counts such a finding once more; null where there is none.
Finding* Cluster::earlier(FindingKind kind, SourceLocation where, std::string const& buffer) {
  for (last_finding_ = 0; last_finding_ < findings_.size(); ++last_finding_) {
    Finding& finding = findings_[last_finding_];
    if (finding.kind == kind && same_place(finding.where, where) && finding.buffer == buffer) {
      ++finding.count;
      return &finding;
    }
  }
  return nullptr;
}

void Cluster::report(FindingKind kind, SourceLocation where, Culprit who, std::string buffer,
                     std::string coordinate, std::string message, Opposite other) {
  Finding* const known = earlier(kind, where, buffer);
  Finding::Reach const reach = reach_of(who, other.who);
  if (known != nullptr &&
      (known->order.empty() || reach <= known->reach || other.order == known->order))
    return;
  Finding finding;
  finding.reach = reach;
  finding.kind = kind;
  finding.ended_cluster = kind == FindingKind::exception;
  finding.message = std::move(message);
  finding.where = where;
  finding.other = other.where;
  if (other.who.cta >= 0) finding.other_cta = cta(other.who.cta).block_index();
  finding.other_warp = other.who.warp;
  finding.other_lane = other.who.lane;
  finding.order = std::move(other.order);
  finding.cta = cta(who.cta).block_index();
  finding.warp = who.warp;
  finding.lane = who.lane;
  finding.buffer = std::move(buffer);
  finding.stage = stage_of(coordinate);
  finding.coordinate = std::move(coordinate);
  if (known == nullptr) {
    findings_.push_back(std::move(finding));
  } else {
    finding.count = known->count;
    *known = std::move(finding);
  }
}

std::size_t Cluster::describe_overflow(void const* address, char* text,
                                       std::size_t capacity) const {
  if (current_ == nullptr || !current_->stack->guards(address)) return 0;
  Dim3 const block = current_->cta->block_index();
  int const length = std::snprintf(
      text, capacity,
      "tegula: kernel %s, CTA (%d, %d, %d), warp %d, lane %d: the simulated thread needs more than its %zu bytes of "
      "stack; raise sim::Options::stack_bytes\n",
      launch_->kernel->name.c_str(), block.x, block.y, block.z, current_->index / 32,
      current_->lane, stack_bytes_);
  return length < 0 ? 0 : std::min(static_cast<std::size_t>(length), capacity - 1);
}

}  // namespace tegula::sim
