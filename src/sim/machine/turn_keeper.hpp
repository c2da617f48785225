#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

namespace tegula::sim {

class TurnKeeper {
 public:
  /// Waits until every CTA before `index` is done. CTAs are started in order, so the first one that
  /// is not done never waits.
  void wait_for_turn(std::int64_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return first_running_ >= index; });
  }

  void done(std::int64_t index) {
    std::lock_guard const lock(mutex_);
    done_early_.insert(index);
    while (!done_early_.empty() && *done_early_.begin() == first_running_) {
      done_early_.erase(done_early_.begin());
      ++first_running_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t first_running_ = 0;
  std::set<std::int64_t> done_early_;
};

}  // namespace tegula::sim
