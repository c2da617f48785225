#pragma once

#include <atomic>
#include <mutex>

namespace tegula::device {

/// Has something done once, while others wait for it; where it throws, the next one does it again.
/// std::call_once would pass the exception through a frame of the C library, and a library with a
/// C++ runtime of its own, as libtegula_c.so, is aborted there.
class Once {
 public:
  template <class F> void operator()(F&& f) {
    if (done_.load(std::memory_order_acquire)) return;
    std::scoped_lock const lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    f();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_ = false;
  std::mutex mutex_;
};

}  // namespace tegula::device
