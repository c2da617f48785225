#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/cluster.hpp"
#include "values/place.hpp"

/// cp.async: copies in flight. A copy is in flight from its issue until the thread that issued it
/// has waited for its group; somewhere in between its bytes land in shared memory, when
/// Options::completion says. Nobody may touch them while it is in flight.
namespace tegula::sim {

/// The bytes arrive in shared memory.
void Cta::land(AsyncCopy& copy) {
  if (copy.landed) return;
  copy.landed = true;
  if (cluster_.stepped() && !current_thread().finished)
    cluster_.observers().before({.kind = Visible::Kind::store,
                                 .cta = rank_,
                                 .address = copy.destination,
                                 .amount = copy.bytes});
  unsigned char* const destination = shared_.at(copy.destination);
  if (copy.source_bytes != 0) std::memcpy(destination, copy.source, copy.source_bytes);
  std::memset(destination + copy.source_bytes, 0,
              static_cast<std::size_t>(copy.bytes - copy.source_bytes));
  if (check_) observers().copy_landed(*this, copy);
}

/// The thread has waited for its copies up to `end`: they have landed and are in flight no longer.
void Cta::retire(AsyncCopies& async, std::size_t end) {
  for (; async.first_copy < end; ++async.first_copy) {
    AsyncCopy& copy = async.copies[async.first_copy];
    land(copy);
    if (check_) observers().copy_retired(*this, copy, current_thread());
  }
  if (async.none() && async.first_group == async.group_ends.size()) {
    async.clear();
  } else if (async.first_copy >= 256) {
    async.forget_retired();
  }
}

void Cta::land_for_arrival(Thread& thread, std::size_t end) {
  AsyncCopies& async = thread.async;
  for (std::size_t i = async.first_copy; i < async.copies.size() && async.forgotten + i < end;
       ++i) {
    AsyncCopy& copy = async.copies[i];
    land(copy);
    if (copy.arrived) continue;
    if (check_) observers().copy_retired(*this, copy, thread);
    copy.arrived = true;
  }
}

void Cta::wait_for_copies(AsyncCopies& async, std::size_t end, SourceLocation where) {
  if (cluster_.timed()) {
    double latest = 0;
    for (std::size_t i = async.first_copy; i < end; ++i)
      latest = std::max(latest, async.copies[i].time);
    cluster_.observers().waited(*this, thread_index(), 1, latest, "wait cp.async", where);
  }
  retire(async, end);
}

/// One copy of some lane of the warp, and one operation of the cluster, land early, now and then.
void Cta::land_at_random(Warp& warp) {
  if (!in_flight().empty()) in_flight().land_at_random();
  if (cluster_.random() % 4 != 0) return;
  AsyncCopies& async = thread(warp, static_cast<int>(cluster_.random() % 32)).async;
  std::size_t const pending = async.copies.size() - async.first_copy;
  if (pending != 0) land(async.copies[async.first_copy + cluster_.random() % pending]);
}

/// The copy in flight that writes the byte, and who issued it; null where there is none.
AsyncCopy const* Cta::copy_into(std::uint32_t address, Thread const** issuer) const {
  for (auto const& thread : threads_) {
    AsyncCopies const& async = thread->async;
    for (std::size_t i = async.first_copy; i < async.copies.size(); ++i) {
      AsyncCopy const& copy = async.copies[i];
      if (address - copy.destination < copy.bytes) {
        *issuer = thread.get();
        return &copy;
      }
    }
  }
  return nullptr;
}

}  // namespace tegula::sim
