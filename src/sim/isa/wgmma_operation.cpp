#include "isa/wgmma_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "machine/cluster.hpp"
#include "tegula/arch/wgmma_descriptor.hpp"
#include "tegula/sim/arithmetic.hpp"

namespace tegula::sim {
namespace {

/// The place in D of the first of the two neighbours in a row that registers 4 j and 4 j + 1 of a
/// thread hold (f32, s32), or the halves of register 2 j (f16), is (row, 8 j + column); eight rows
/// on are the next two.
struct Fragment {
  int row;
  int column;
};
Fragment fragment(int thread) { return {thread / 32 * 16 + thread % 32 / 4, 2 * (thread % 4)}; }

/// Calls f(first register, words of the tile) for each two neighbours of a row that a thread holds,
/// in two registers or (f16) in one.
template <class F> void for_each_pair(MmaSpec const& op, int thread, F&& f) {
  auto const [row, column] = fragment(thread);
  int const registers = op.d == DType::f16 ? 1 : 2;
  for (int j = 0; j < op.n / 8; ++j) {
    int const at = row * op.n + 8 * j + column;
    f(2 * j * registers, at);
    f((2 * j + 1) * registers, at + 8 * op.n);
  }
}

/// The two words as registers hold them: as they are, or (f16) their low halves together.
std::uint64_t in_registers(MmaSpec const& op, std::uint32_t const* words) {
  if (op.d == DType::f16) return words[0] | words[1] << 16;
  std::uint64_t both = 0;
  std::memcpy(&both, words, 8);
  return both;
}

/// A in registers: register q of a thread is 4 bytes of row (fragment's) + 8 (q % 2), from byte 4
/// (lane % 4) + 16 (q / 2).
void gather(std::array<std::uint32_t const*, kWarpgroupSize> const& registers,
            std::uint8_t (*rows)[kWgmmaRowBytes]) {
  for (int t = 0; t < kWarpgroupSize; ++t) {
    if (registers[static_cast<std::size_t>(t)] == nullptr) continue;
    int const row = fragment(t).row;
    for (int q = 0; q < 4; ++q)
      std::memcpy(rows[row + 8 * (q % 2)] + 4 * (t % 4) + 16 * (q / 2),
                  registers[static_cast<std::size_t>(t)] + q, 4);
  }
}

}  // namespace

void collect(WgmmaAccumulators& accumulators) {
  bool const halves = accumulators.op.d == DType::f16;
  for (int t = 0; t < kWarpgroupSize; ++t) {
    std::uint32_t const* const registers = accumulators.registers[static_cast<std::size_t>(t)];
    for_each_pair(accumulators.op, t, [&](int r, int at) {
      std::uint32_t* const words = accumulators.tile.data() + at;
      if (halves) {
        words[0] = registers[r] & 0xffff;
        words[1] = registers[r] >> 16;
      } else {
        std::memcpy(words, registers + r, 8);
      }
    });
  }
}

void poison(WgmmaAccumulators& accumulators) {
  for (std::uint32_t* const registers : accumulators.registers) {
    if (registers != nullptr)
      std::fill_n(registers, d_registers(accumulators.op), WgmmaAccumulators::kPoison);
  }
  accumulators.poisoned = true;
}

bool find_changed(WgmmaAccumulators const& accumulators, int& thread, int& number) {
  bool const halves = accumulators.op.d == DType::f16;
  std::uint64_t const poison =
      halves ? WgmmaAccumulators::kPoison : WgmmaAccumulators::kPoison * 0x1'0000'0001ull;
  for (int t = 0; t < kWarpgroupSize; ++t) {
    std::uint32_t const* const registers = accumulators.registers[static_cast<std::size_t>(t)];
    if (registers == nullptr) continue;
    int changed = -1;
    for_each_pair(accumulators.op, t, [&](int r, int at) {
      std::uint64_t const expected =
          accumulators.poisoned ? poison
                                : in_registers(accumulators.op, accumulators.tile.data() + at);
      std::uint64_t held = registers[r];
      if (!halves) std::memcpy(&held, registers + r, 8);
      if (held != expected && changed < 0)
        changed = !halves && registers[r] == static_cast<std::uint32_t>(expected) ? r + 1 : r;
    });
    if (changed < 0) continue;
    thread = t;
    number = changed;
    return true;
  }
  return false;
}

std::string register_text(MmaSpec const& op, int thread, int number) {
  std::string text;
  for_each_pair(op, thread, [&](int r, int at) {
    int const second = number - r;
    if (second != 0 && (second != 1 || op.d == DType::f16)) return;
    text = fmt::format("d[{}], row {}, column {} of D", number, at / op.n, at % op.n + second);
  });
  return text;
}

WgmmaOperation::WgmmaOperation(Cta& cta, SourceLocation where, MmaSpec const& op,
                               std::shared_ptr<WgmmaAccumulators> accumulators,
                               SharedOperand const& b, bool scale_d)
    : InFlight(Instruction::wgmma_mma_async, cta, where),
      op_(op),
      accumulators_(std::move(accumulators)),
      b_(b),
      scale_d_(scale_d) {
  cost = {.engine = Cost::Engine::tensor,
          .bytes = 1.0 * kWgmmaRowBytes * op.n,
          .multiply_adds = 1.0 * kWgmmaM * op.n * 16,  // as of 16-bit types: K of 32 bytes
          .accumulates = scale_d};
  ++accumulators_->in_flight;
  accumulators_->where = where;
  registers_held.fetch_add(1, std::memory_order_relaxed);
  if (cta.checking()) append_ranges(b_, cta.rank(), reads);
}

void WgmmaOperation::take_a(Cta& cta, SharedOperand const& a) {
  a_ = a;
  cost.bytes += kWgmmaRowBytes * kWgmmaM;
  if (cta.checking()) append_ranges(a_, cta.rank(), reads);
}
void WgmmaOperation::take_a(std::array<std::uint32_t const*, kWarpgroupSize> const& registers) {
  a_registers_ = registers;
  a_in_registers_ = std::make_unique<Rows>();
  gather(registers, a_in_registers_->row);
}

void WgmmaOperation::land(Cluster& cluster) {
  Cta& cta = cluster.cta(this->cta);
  static thread_local Rows a;
  static thread_local Rows b;
  if (a_in_registers_ != nullptr) {
    check_a(cta);
  } else {
    gather(a_, cta.shared(), a.row);
  }
  gather(b_, cta.shared(), b.row);
  Rows const& rows = a_in_registers_ != nullptr ? *a_in_registers_ : a;
  wgmma_tile(op_, rows.row, b.row, scale_d_, accumulators_->tile.data());
  if (--accumulators_->in_flight == 0) deposit(cta);
}

std::string WgmmaOperation::role_of(void const* place, int t) const {
  auto const number = [&](std::uint32_t const* first, int count) {
    auto const from = reinterpret_cast<std::uintptr_t>(first),
               at = reinterpret_cast<std::uintptr_t>(place);
    return first != nullptr && at >= from && at < from + 4 * static_cast<std::uintptr_t>(count)
               ? static_cast<int>(at - from) / 4
               : -1;
  };
  auto const thread = static_cast<std::size_t>(t);
  int const d = number(accumulators_->registers[thread], d_registers(op_));
  if (d >= 0) return register_text(accumulators_->op, t, d);
  int const a = number(a_registers_[thread], 4);
  return a >= 0 ? fmt::format("register {} of A", a) : std::string();
}

void WgmmaOperation::deposit(Cta& cta) {
  WgmmaAccumulators& own = *accumulators_;
  int const first = thread / kWarpgroupSize * kWarpgroupSize;
  int changed = 0;
  int number = 0;
  if (cta.checking() && own.poisoned && !cta.thread(first).finished &&
      find_changed(own, changed, number)) {
    cta.report(FindingKind::register_race, where,
               {cta.rank(), (first + changed) / 32, changed % 32}, "", "",
               fmt::format("{} was written while a wgmma.mma_async that owns it was in flight",
                           register_text(own.op, changed, number)),
               {{}, kNobody, kWaitsFirst});
  }
  for (int t = 0; t < kWarpgroupSize; ++t) {
    if (cta.thread(first + t).finished) continue;
    std::uint32_t* const registers = own.registers[static_cast<std::size_t>(t)];
    if (registers == nullptr) continue;
    for_each_pair(own.op, t, [&](int r, int at) {
      std::uint64_t const both = in_registers(own.op, own.tile.data() + at);
      for (int i = 0; i < (own.op.d == DType::f16 ? 1 : 2); ++i) {
        if (!own.poisoned || registers[r + i] == WgmmaAccumulators::kPoison)
          registers[r + i] = static_cast<std::uint32_t>(both >> (32 * i));
      }
    });
  }
  own.poisoned = false;
}

void WgmmaOperation::check_a(Cta& cta) const {
  if (a_in_registers_ == nullptr) return;
  int const first = thread / kWarpgroupSize * kWarpgroupSize;
  if (!cta.checking() || cta.thread(first).finished) return;
  static thread_local Rows now;
  gather(a_registers_, now.row);
  for (int row = 0; row < kWgmmaM; ++row) {
    for (int byte = 0; byte < kWgmmaRowBytes; ++byte) {
      if (now.row[row][byte] == a_in_registers_->row[row][byte]) continue;
      int const t = row / 16 * 32 + row % 8 * 4 + byte % 16 / 4;
      if (a_registers_[static_cast<std::size_t>(t)] == nullptr) continue;
      cta.report(
          FindingKind::register_race, where, {cta.rank(), (first + t) / 32, t % 32}, "", "",
          fmt::format(
              "register {} of A was written while a wgmma.mma_async that reads it was in flight",
              row % 16 / 8 + 2 * (byte / 16)),
          {{}, kNobody, kWaitsFirst});
      return;
    }
  }
}

}  // namespace tegula::sim
