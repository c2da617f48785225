#include "checker/phases.hpp"

#include <algorithm>

namespace tegula::sim {

namespace {

/// More than a stage has: such an mbarrier guards no stage.
constexpr std::size_t kMostGuarded = 4;

template <class T> T& at(std::vector<T>& of, int agent) {
  auto const i = static_cast<std::size_t>(agent);
  if (i >= of.size()) of.resize(i + 1);
  return of[i];
}

}  // namespace

std::int64_t PhaseHistory::phase_at(Time time) const {
  return std::upper_bound(ends_.begin(), ends_.end(), time) - ends_.begin();
}

void PhaseHistory::waited(int thread, std::int64_t phase, SourceLocation where) {
  Wait& wait = at(waits_, thread);
  wait = {phase, where, wait.waits + 1, brought_};
}

void PhaseHistory::guards(PhaseHistory const& filled) {
  auto const known = [&](Guarded const& guarded) { return guarded.filled == &filled; };
  if (guarded_.size() <= kMostGuarded && std::none_of(guarded_.begin(), guarded_.end(), known))
    guarded_.push_back({&filled, {}});
}

/// What is new since the thread's last arrival makes the arrival right, whatever else it has waited
/// for again (a stage may bring two tiles, each with an mbarrier of its own). Arrivals that count
/// for the same phase give back once.
PhaseHistory::Stale PhaseHistory::gives_back(int thread, std::int64_t phase, SourceLocation where) {
  if (guarded_.empty() || guarded_.size() > kMostGuarded) return {};
  Stale stale;
  bool is_new = false;
  for (Guarded& guarded : guarded_) {
    Wait const wait = guarded.filled->wait_of(thread);
    Given& given = at(guarded.given, thread);
    if (given.where.line != 0 && wait.waits != given.wait.waits) {
      if (wait.phase > given.wait.phase || given.wait.where.line == 0) {
        is_new = true;
      } else if (given.phase < phase) {
        stale = {guarded.filled, wait, given.wait.where, given.where};
      }
    } else {
      is_new |= given.where.line == 0;
    }
    given = {wait, phase, where};
  }
  return is_new ? Stale{} : stale;
}

}  // namespace tegula::sim
