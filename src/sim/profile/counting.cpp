#include "profile/counting.hpp"

#include "machine/cluster.hpp"

namespace tegula::sim {

void Counting::start(Cluster const& cluster) {
  warps_ = cluster.cta(0).threads() / 32;
  std::size_t const logs = static_cast<std::size_t>(cluster.ctas() * warps_);
  if (logs_.size() < logs) logs_.resize(logs);
  for (AccessLog& log : logs_) log.clear();
}

AccessLog& Counting::log(Cta const& cta, Warp const& warp) {
  return logs_[static_cast<std::size_t>(cta.rank() * warps_ + warp.index)];
}

void Counting::executed(Cta const& cta, Instruction instruction, SourceLocation where,
                        LaneAccess const& access) {
  Thread const& self = cta.current_thread();
  AccessLog& log = logs_[static_cast<std::size_t>(cta.rank() * warps_ + self.index / 32)];
  auto const address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(access.global));
  if (log.note(self.lane, instruction, where, access.shared_bytes, access.shared,
               access.global_bytes, address)) [[likely]]
    return;
  std::uint32_t const lane = 1u << self.lane;
  AccessLog::Site const site{where, instruction, static_cast<std::uint8_t>(access.shared_bytes)};
  AccessLog::Record alone{site, lane, access.global_bytes != 0 ? lane : 0, {}, {}, {}};
  alone.shared[self.lane] = access.shared;
  alone.global[self.lane] = address;
  alone.global_bytes[self.lane] = static_cast<std::uint8_t>(access.global_bytes);
  count_access(counters_, alone);
}

void Counting::worked(Instruction instruction, SourceLocation where, Work const& work) {
  LineCounters& line = counters_.at(where, instruction);
  line.instructions += work.instructions;
  line.fused_multiply_adds += work.fused_multiply_adds;
  line.shared_bytes += work.shared_bytes;
  line.global_bytes += work.global_bytes;
  line.global_sectors += work.global_sectors;
}

BankUse Counting::matrices_moved(Instruction instruction, SourceLocation where, int count,
                                 std::uint32_t const* rows) {
  std::uint32_t const lanes = count == 4 ? kFullWarp : (1u << (8 * count)) - 1;
  BankUse const use = bank_use(rows, lanes, 16);
  LineCounters& line = counters_.at(where, instruction);
  line.shared_bytes += 128 * count;
  line.shared_wavefronts += use.wavefronts;
  line.bank_conflicts += use.wavefronts - use.minimum;
  return use;
}

}  // namespace tegula::sim
