#include "machine/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace tegula::sim {

namespace {
std::size_t page_bytes() {
  static std::size_t const bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// A stack that was never deeper is kept for another fiber, of another machine perhaps; a deeper
/// one is given back, so that what touched() says stays near what its fiber did.
constexpr std::size_t kKeptDepth = 16 * 1024;

/// No access below a stack is allowed for so many bytes: a frame of a large array may begin there,
/// and its lowest variables be written first.
constexpr std::size_t kGuardBytes = std::size_t{1} << 20;

/// Mappings of stacks, guards included, that no fiber has now. Mapping each anew takes more
/// time than a small kernel. Threads may share it.
class Mappings {
 public:
  /// One of so many bytes; null where there is none.
  void* take(std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    auto const found = kept_.find(bytes);
    if (found == kept_.end() || found->second.empty()) return nullptr;
    void* const mapping = found->second.back();
    found->second.pop_back();
    --count_;
    return mapping;
  }

  /// False where there are enough.
  bool keep(void* mapping, std::size_t bytes) {
    constexpr std::size_t enough = 2048;
    std::lock_guard const lock(mutex_);
    if (count_ == enough) return false;
    kept_[bytes].push_back(mapping);
    ++count_;
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> kept_;
  std::size_t count_ = 0;
};

/// Of the process. It is never destroyed: machines may outlive static objects.
Mappings& mappings() {
  static Mappings* const all = new Mappings;
  return *all;
}
}  // namespace

FiberStack::FiberStack(std::size_t bytes, int colour) {
  std::size_t const page = page_bytes();
  bytes_ = (bytes + page - 1) / page * page;
  shift_ = static_cast<std::size_t>(colour) * 64 % page;
  mapping_bytes_ = bytes_ + kGuardBytes;
  mapping_ = mappings().take(mapping_bytes_);
  bool const kept = mapping_ != nullptr;
  if (!kept) {
    mapping_ = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  }
  bottom_ = static_cast<char*>(mapping_) + kGuardBytes;
  if (!kept && mprotect(bottom_, bytes_, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping_, mapping_bytes_);
    throw std::bad_alloc();
  }
#if TEGULA_SIM_ASAN
  __asan_unpoison_memory_region(bottom_, bytes_);  // what an earlier stack at this address left
#endif
}

FiberStack::~FiberStack() {
  std::size_t const page = page_bytes();
  unsigned char resident = 1;
  if (bytes_ > kKeptDepth)
    mincore(static_cast<char*>(bottom_) + bytes_ - kKeptDepth - page, page, &resident);
  if ((resident & 1) != 0 || !mappings().keep(mapping_, mapping_bytes_))
    munmap(mapping_, mapping_bytes_);
}

std::size_t FiberStack::touched() const {
  std::size_t const page = page_bytes();
  std::vector<unsigned char> resident(bytes_ / page);
  if (mincore(bottom_, bytes_, resident.data()) != 0) return 0;
  std::size_t first = 0;
  while (first < resident.size() && (resident[first] & 1) == 0) ++first;
  return (resident.size() - first) * page;
}

}  // namespace tegula::sim
