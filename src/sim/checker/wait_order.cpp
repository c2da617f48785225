#include "checker/wait_order.hpp"

#include <algorithm>
#include <bit>

#include "machine/cta.hpp"

namespace tegula::sim {

namespace {

Warp const& warp_of(Thread const& thread) { return thread.cta->warp(thread.index / 32); }
std::uint32_t meetings_of_group(Thread const& thread) {
  return thread.cta->warpgroup_of(thread).met;
}

}  // namespace

void WaitOrder::start(int ctas, int threads) {
  warps_of_cta_ = threads / 32;
  groups_ = (threads + 127) / 128;
  warps_ = ctas * warps_of_cta_;
  threads_ = ctas * threads;
  order_.start(warps_, threads_ + warps_ + ctas * groups_);
  learned_.assign(static_cast<std::size_t>(warps_), false);
  issued_.clear();
  strong_.clear();
}

void WaitOrder::release(Thread const& thread, Published& into) {
  int const warp = thread.agent / 32;
  Time const now = order_.now();
  order_.release(warp, into);
  order_.tell_generic(into, of_thread(thread.agent), now);
  order_.tell_generic(into, of_meetings(warp), static_cast<Time>(warp_of(thread).met));
  order_.tell_generic(into, of_groups_meetings(warp), static_cast<Time>(meetings_of_group(thread)));
}

void WaitOrder::acquire(Thread const& thread, Published const& from) {
  int const warp = thread.agent / 32;
  order_.acquire(warp, from);
  learned_[static_cast<std::size_t>(warp)] = true;
}

void WaitOrder::warpgroup_met(Thread const& thread) {
  int const first = thread.agent / 32 - thread.index / 32 % 4;
  auto const begin = learned_.begin() + first;
  if (std::find(begin, begin + 4, true) == begin + 4) return;
  Published all;
  for (int warp = first; warp < first + 4; ++warp) order_.release(warp, all);
  for (int warp = first; warp < first + 4; ++warp) order_.acquire(warp, all);
  std::fill(begin, begin + 4, false);
}

void WaitOrder::told(OfMbarrier& mbarrier, InFlight const& operation) {
  auto const issuer = issued_.extract(&operation);
  if (!issuer.empty()) order_.merge(mbarrier.arriving, issuer.mapped());
}

/// Of a warp that waits again and again the latest wait is enough: those before come before it.
void WaitOrder::waited(OfMbarrier& mbarrier, Thread const& thread, SourceLocation where) {
  int const warp = thread.agent / 32;
  std::uint32_t const lane = 1u << thread.lane, met = warp_of(thread).met;
  auto own = std::find_if(mbarrier.waited.begin(), mbarrier.waited.end(),
                          [&](Waited const& waited) { return waited.warp == warp; });
  if (own != mbarrier.waited.end() && own->met == met) {
    own->lanes |= lane;
    return;
  }
  Waited const latest{warp, lane, order_.now(), met, meetings_of_group(thread), where};
  if (own == mbarrier.waited.end()) {
    mbarrier.waited.push_back(latest);
    acquire(thread, mbarrier.complete);
  } else {
    *own = latest;
  }
}

std::optional<WaitOrder::Late> WaitOrder::completed(OfMbarrier& mbarrier) {
  std::optional<Late> late;
  Times const& known = mbarrier.arriving.known;
  for (Waited const& waited : mbarrier.waited) {
    if (known[of_meetings(waited.warp)] > static_cast<Time>(waited.met) ||
        known[of_groups_meetings(waited.warp)] > static_cast<Time>(waited.group_met))
      continue;
    int missing = -1, other = -1;
    for (std::uint32_t rest = waited.lanes; rest != 0; rest &= rest - 1) {
      int const lane = std::countr_zero(rest);
      bool const comes_first = known[of_thread(32 * waited.warp + lane)] >= waited.time;
      int& found = comes_first ? other : missing;
      if (found < 0) found = lane;
    }
    if (missing < 0) continue;
    late = {32 * waited.warp + missing, waited.where, other};
    break;
  }
  order_.merge(mbarrier.complete, mbarrier.arriving);
  mbarrier.arriving.clear();
  mbarrier.waited.clear();
  return late;
}

void WaitOrder::strong_access(Thread const& thread, bool reads, bool writes) {
  if (reads) acquire(thread, strong_);
  if (writes) release(thread, strong_);
}

}  // namespace tegula::sim
