#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tegula::sim {

/// Lets clusters that are there together, each on one of the host's threads, run one at a time: who
/// has the baton runs, and hands it on. Under cluster launch control a number stands for the
/// clusters that follow each other in one place.
class Baton {
 public:
  explicit Baton(std::int64_t clusters)
      : turn_(static_cast<std::size_t>(clusters)), done_(turn_.size()), left_(clusters) {}

  /// Waits for the cluster's first turn.
  void begin(std::int64_t cluster) {
    std::unique_lock lock(mutex_);
    wait(lock, cluster);
  }
  /// Hands the baton to another cluster, `further` of them after the next, and waits for it to come
  /// back. `moved`: the cluster has done something since its last turn that others may have waited
  /// for. Returns whether another has meanwhile.
  bool pass(std::int64_t cluster, std::int64_t further, bool moved) {
    std::unique_lock lock(mutex_);
    if (left_ == 1) return false;
    moves_ += moved;
    std::int64_t const before = moves_;
    hand_on(cluster, further % (left_ - 1));
    wait(lock, cluster);
    return moves_ != before;
  }
  /// Hands the baton to that cluster, which has not ended, and waits for it to come back.
  void give(std::int64_t cluster, std::int64_t to) {
    std::unique_lock lock(mutex_);
    holder_ = to;
    turn_[static_cast<std::size_t>(to)].notify_one();
    wait(lock, cluster);
  }
  /// The cluster has ended.
  void done(std::int64_t cluster, bool moved) {
    std::lock_guard const lock(mutex_);
    moves_ += moved;
    done_[static_cast<std::size_t>(cluster)] = true;
    if (--left_ != 0) hand_on(cluster, 0);
  }

 private:
  void wait(std::unique_lock<std::mutex>& lock, std::int64_t cluster) {
    turn_[static_cast<std::size_t>(cluster)].wait(lock, [&] { return holder_ == cluster; });
  }
  void hand_on(std::int64_t from, std::int64_t further) {
    auto const clusters = static_cast<std::int64_t>(done_.size());
    holder_ = from;
    do {
      holder_ = (holder_ + 1) % clusters;
      if (holder_ != from && !done_[static_cast<std::size_t>(holder_)]) --further;
    } while (further >= 0);
    turn_[static_cast<std::size_t>(holder_)].notify_one();
  }

  std::mutex mutex_;
  std::vector<std::condition_variable> turn_;
  std::vector<bool> done_;
  std::int64_t left_;
  std::int64_t holder_ = 0;
  std::int64_t moves_ = 0;
};

}  // namespace tegula::sim
