#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace tegula::device {

/// What was decided for problems that may come again, by a key that tells them apart. Thread-safe.
template <class Key, class Choice> class Memo {
 public:
  /// decide() makes the choice where there is none yet.
  template <class Decide> Choice of(Key const& key, Decide&& decide) {
    {
      std::scoped_lock const lock(mutex_);
      if (auto const found = choices_.find(key); found != choices_.end()) return found->second;
    }
    Choice const choice = decide();
    std::scoped_lock const lock(mutex_);
    if (choices_.size() >= most) choices_.clear();
    choices_.emplace(key, choice);
    return choice;
  }

 private:
  static constexpr std::size_t most = 4096;
  std::mutex mutex_;
  std::map<Key, Choice> choices_;
};

}  // namespace tegula::device
