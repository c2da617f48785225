#include <algorithm>
#include <cstdio>
#include <utility>

#include "cluster.hpp"

namespace tegula::sim {

void Cta::report(FindingKind kind, Where where, Culprit who, std::string buffer, std::string coordinate,
                 std::string message, Where other) {
  cluster_.report(kind, where, who, std::move(buffer), std::move(coordinate), std::move(message), other);
}

void Cta::fail(FindingKind kind, Where where, Culprit who, std::string message) {
  report(kind, where, who, "", "", std::move(message));
  cluster_.abort();
}

void Cta::trap(Where where) { fail(FindingKind::trap, where, here(), "the kernel executed trap"); }

void Cluster::abort() {
  aborting_ = true;
  throw LeaveKernel{};
}

void Cluster::report(FindingKind kind, Where where, Cta::Culprit who, std::string buffer,
                     std::string coordinate, std::string message, Where other) {
  for (Finding& finding : findings_) {
    if (finding.kind == kind && same_place(finding.where, where) && finding.buffer == buffer) {
      ++finding.count;
      return;
    }
  }
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.where = where;
  finding.other = other;
  finding.cta = cta(who.cta).block_index();
  finding.warp = who.warp;
  finding.lane = who.lane;
  finding.buffer = std::move(buffer);
  finding.coordinate = std::move(coordinate);
  findings_.push_back(std::move(finding));
}

std::size_t Cluster::describe_overflow(void const* address, char* text, std::size_t capacity) const {
  if (current_ == nullptr || !current_->stack->guards(address)) return 0;
  Dim3 const block = current_->cta->block_index();
  int const length = std::snprintf(
      text, capacity,
      "tegula: kernel %s, CTA (%d, %d, %d), warp %d, lane %d: the simulated thread needs more than its %zu bytes of "
      "stack; raise sim::Options::stack_bytes\n",
      launch_->kernel->name.c_str(), block.x, block.y, block.z, current_->index / 32, current_->lane,
      stack_bytes_);
  return length < 0 ? 0 : std::min(static_cast<std::size_t>(length), capacity - 1);
}

}  // namespace tegula::sim
