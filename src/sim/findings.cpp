#include "cta.hpp"

namespace tegula::sim {

void Cta::report(FindingKind kind, Where where, Culprit who, std::string buffer, std::string coordinate,
                 std::string message, Where other) {
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
  finding.cta = block_;
  finding.warp = who.warp;
  finding.lane = who.lane;
  finding.buffer = std::move(buffer);
  finding.coordinate = std::move(coordinate);
  findings_.push_back(std::move(finding));
}

void Cta::fail(FindingKind kind, Where where, Culprit who, std::string message) {
  report(kind, where, who, "", "", std::move(message));
  aborting_ = true;
  throw LeaveKernel{};
}

void Cta::trap(Where where) {
  fail(FindingKind::trap, where, here(current_->lane), "the kernel executed trap");
}

}  // namespace tegula::sim
