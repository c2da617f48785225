#include "machine/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <vector>

namespace tegula::sim {

namespace {
std::size_t page_bytes() {
  static std::size_t const bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
}  // namespace

FiberStack::FiberStack(std::size_t bytes, int colour) {
  std::size_t const page = page_bytes();
  bytes_ = (bytes + page - 1) / page * page;
  shift_ = static_cast<std::size_t>(colour) * 64 % page;
  mapping_bytes_ = bytes_ + page;
  mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping_, page, PROT_NONE);
  bottom_ = static_cast<char*>(mapping_) + page;
#if TEGULA_SIM_ASAN
  __asan_unpoison_memory_region(bottom_, bytes_);  // what an earlier stack at this address left
#endif
}

FiberStack::~FiberStack() { munmap(mapping_, mapping_bytes_); }

std::size_t FiberStack::touched() const {
  std::size_t const page = page_bytes();
  std::vector<unsigned char> resident(bytes_ / page);
  if (mincore(bottom_, bytes_, resident.data()) != 0) return 0;
  std::size_t first = 0;
  while (first < resident.size() && (resident[first] & 1) == 0) ++first;
  return (resident.size() - first) * page;
}

}  // namespace tegula::sim
