#pragma once

#include <cstdint>
#include <optional>

namespace tegula::sim {

/// The clusters of a launch that wait for room. Each is started when a cluster that runs has ended,
/// or is cancelled by one that takes its work over (cluster launch control). Who takes one has the
/// baton.
class PendingClusters {
 public:
  PendingClusters(std::int64_t first, std::int64_t end) : next_(first), end_(end) {}

  bool empty() const { return next_ == end_; }
  /// The next one, which waits no longer.
  std::optional<std::int64_t> take() {
    if (next_ == end_) return std::nullopt;
    return next_++;
  }

 private:
  std::int64_t next_;
  std::int64_t end_;
};

}  // namespace tegula::sim
