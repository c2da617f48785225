#include "explore/processes.hpp"

namespace tegula::sim {

namespace {

// How Choices name a process: what it is, then its number, or its issuer's and its own.
constexpr int kNameShift = 60;
constexpr std::uint64_t kThreadName = 0, kWarpName = 1, kGroupName = 2, kOperationName = 3,
                        kPlaceName = 4;

}  // namespace

ProcessId Processes::operation(ProcessId issuer, std::uint32_t n) {
  std::uint64_t const key = static_cast<std::uint64_t>(issuer) << 32 | n;
  auto const next = static_cast<ProcessId>(shape_.processes() + issue_.size());
  auto const [found, added] = by_issue_.emplace(key, next);
  if (added) issue_.push_back(key);
  return found->second;
}

std::uint64_t Processes::name(ProcessId process) const {
  auto const threads = static_cast<ProcessId>(shape_.ctas * shape_.threads);
  if (process >= shape_.processes())
    return kOperationName << kNameShift | issue_[process - shape_.processes()];
  if (process < threads) return kThreadName << kNameShift | process;
  if (process < threads + threads / 32) return kWarpName << kNameShift | (process - threads);
  if (process >= shape_.place(0)) return kPlaceName << kNameShift | (process - shape_.place(0));
  return kGroupName << kNameShift | (process - threads - threads / 32);
}

std::optional<ProcessId> Processes::process(std::uint64_t name) {
  auto const threads = static_cast<ProcessId>(shape_.ctas * shape_.threads);
  auto const number = static_cast<ProcessId>(name & 0xffffffffu);
  auto const of = [&](ProcessId first, ProcessId end) {
    return number < end - first ? std::optional(first + number) : std::nullopt;
  };
  switch (name >> kNameShift) {
    case kThreadName:
      return of(0, threads);
    case kWarpName:
      return of(threads, threads + threads / 32);
    case kGroupName:
      return of(threads + threads / 32, shape_.place(0));
    case kPlaceName:
      return of(shape_.place(0), shape_.processes());
    default:
      return operation(static_cast<ProcessId>(name >> 32 & 0xfffffff), number);
  }
}

}  // namespace tegula::sim
