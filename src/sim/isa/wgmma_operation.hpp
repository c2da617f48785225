#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "isa/shared_operand.hpp"
#include "machine/cta.hpp"
#include "machine/in_flight.hpp"
#include "machine/wgmma.hpp"
#include "tegula/arch/source_location.hpp"

/// A wgmma in flight. It reads its operands from shared memory by the bits of its matrix
/// descriptors, and writes its accumulators, when it lands: at the last legal moment that is in the
/// wgmma_wait_group that covers it. Until then the threads' accumulators hold NaNs.
namespace tegula::sim {

// Of findings about registers. Who wrote them, and where, is not seen.
inline constexpr Culprit kNobody = {-1, -1, -1};
inline constexpr char kWaitsFirst[] =
    "a wgmma_wait_group that covers it before the write would order them";

/// Takes what the registers hold into the tile.
void collect(WgmmaAccumulators& accumulators);

/// Fills the registers with NaNs.
void poison(WgmmaAccumulators& accumulators);

/// The first thread and register that do not hold what they should: poison, or else the tile.
bool find_changed(WgmmaAccumulators const& accumulators, int& thread, int& number);

/// "d[5], row 3, column 9 of D".
std::string register_text(MmaSpec const& op, int thread, int number);

class WgmmaOperation final : public InFlight {
 public:
  WgmmaOperation(Cta& cta, SourceLocation where, MmaSpec const& op,
                 std::shared_ptr<WgmmaAccumulators> accumulators, SharedOperand const& b,
                 bool scale_d);

  ~WgmmaOperation() override { registers_held.fetch_sub(1, std::memory_order_relaxed); }

  void take_a(Cta& cta, SharedOperand const& a);
  void take_a(std::array<std::uint32_t const*, kWarpgroupSize> const& registers);

  void land(Cluster& cluster) override;

  std::shared_ptr<WgmmaAccumulators> const& accumulators() const { return accumulators_; }

  /// A's registers of the warpgroup's first thread; null where A is in shared memory.
  std::uint32_t const* first_a() const { return a_registers_[0]; }

  /// What `place`, a register of the warpgroup's thread `t`, is to this operation; empty: nothing.
  std::string role_of(void const* place, int t) const;

  /// Whether accumulators, or registers of A, of the warpgroup's thread `t` are among these bytes.
  bool has_accumulators(int t, void const* first, int bytes) const {
    return overlap(accumulators_->registers[static_cast<std::size_t>(t)], d_registers(op_), first,
                   bytes);
  }
  bool has_a(int t, void const* first, int bytes) const {
    return overlap(a_registers_[static_cast<std::size_t>(t)], 4, first, bytes);
  }
  /// They are the thread's no more.
  void leave_accumulators(int t) {
    accumulators_->registers[static_cast<std::size_t>(t)] = nullptr;
  }
  void leave_a(int t) { a_registers_[static_cast<std::size_t>(t)] = nullptr; }

  /// A's registers are still what they were.
  void check_a(Cta& cta) const;

 private:
  struct Rows {
    alignas(64) std::uint8_t row[256][kWgmmaRowBytes];
  };

  static bool overlap(std::uint32_t const* registers, int count, void const* first, int bytes) {
    auto const own = reinterpret_cast<std::uintptr_t>(registers),
               other = reinterpret_cast<std::uintptr_t>(first);
    return registers != nullptr && own < other + static_cast<std::uintptr_t>(bytes) &&
           other < own + 4 * static_cast<std::uintptr_t>(count);
  }

  /// The results go to the threads that still run, and to the registers that are still the
  /// operation's: where something else has been written since, an array may be no more.
  void deposit(Cta& cta);

  MmaSpec op_;
  std::shared_ptr<WgmmaAccumulators> accumulators_;
  SharedOperand a_;
  SharedOperand b_;
  std::array<std::uint32_t const*, kWarpgroupSize> a_registers_ = {};
  std::unique_ptr<Rows> a_in_registers_;
  bool scale_d_;
};

/// Of an operation of a warpgroup's groups: those hold nothing else.
inline std::shared_ptr<WgmmaAccumulators> const& accumulators_of(InFlight const* operation) {
  return static_cast<WgmmaOperation const*>(operation)->accumulators();
}

}  // namespace tegula::sim
