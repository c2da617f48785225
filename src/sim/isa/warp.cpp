#include "isa/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "isa/perform.hpp"

/// Instructions of a warp on values: shuffles, votes, reductions, election; and bar.warp.sync.
namespace tegula::sim {

std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask,
                   SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.value[lane] = value;
  own.operand[lane] = static_cast<std::uint32_t>(lane_operand);
  if (cta.meet(Instruction::shfl_sync, static_cast<std::uint32_t>(mode), mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) {
      int const l = std::countr_zero(rest);
      int const operand = static_cast<int>(own.operand[l] & 31);
      int source = operand;
      switch (mode) {
        case ShuffleMode::idx:
          break;
        case ShuffleMode::bfly:
          source = l ^ operand;
          break;
        case ShuffleMode::up:
          source = l >= operand ? l - operand : l;
          break;
        case ShuffleMode::down:
          source = l + operand < 32 ? l + operand : l;
          break;
      }
      if ((live >> source & 1) == 0) {
        cta.report(FindingKind::invalid_operand, where, cta.here(l), "", "",
                   fmt::format("shfl.sync reads lane {}, which {}", source,
                               (mask >> source & 1) == 0
                                   ? fmt::format("its mask {:#010x} leaves out", mask)
                                   : "has exited"));
      }
      own.result[l] = own.value[source];
    }
    cta.release(mask, where, Instruction::shfl_sync);
  }
  return own.result[lane];
}

std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.value[lane] = predicate ? 1 : 0;
  if (cta.meet(Instruction::vote_sync, exited ? 1 : 0, mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    std::uint32_t votes = exited ? mask & own.exited : 0;
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) {
      votes |= own.value[std::countr_zero(rest)] << std::countr_zero(rest);
    }
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1)
      own.result[std::countr_zero(rest)] = votes;
    cta.release(mask, where, Instruction::vote_sync);
  }
  return own.result[lane];
}

std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.value[lane] = value;
  if (cta.meet(Instruction::redux_sync, static_cast<std::uint32_t>(op), mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    std::uint32_t total = own.value[std::countr_zero(live)];
    for (std::uint32_t rest = live & (live - 1); rest != 0; rest &= rest - 1) {
      std::uint32_t const v = own.value[std::countr_zero(rest)];
      auto const as_signed = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
      switch (op) {
        case ReduxOp::add:
          total += v;
          break;
        case ReduxOp::min_s32:
          total = as_signed(v) < as_signed(total) ? v : total;
          break;
        case ReduxOp::min_u32:
          total = std::min(v, total);
          break;
        case ReduxOp::max_s32:
          total = as_signed(v) > as_signed(total) ? v : total;
          break;
        case ReduxOp::max_u32:
          total = std::max(v, total);
          break;
      }
    }
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1)
      own.result[std::countr_zero(rest)] = total;
    cta.release(mask, where, Instruction::redux_sync);
  }
  return own.result[lane];
}

bool elect_one(std::uint32_t mask, SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  if (cta.meet(Instruction::elect_sync, 0, mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    auto const leader = static_cast<std::uint32_t>(std::countr_zero(live));
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1)
      own.result[std::countr_zero(rest)] = leader;
    cta.release(mask, where, Instruction::elect_sync);
  }
  return cta.current_thread().lane == static_cast<int>(own.result[cta.current_thread().lane]);
}

void synchronise_warp(Cta& cta, std::uint32_t mask, SourceLocation where) {
  if (!cta.meet(Instruction::bar_warp_sync, 0, mask, where)) return;
  if (cta.finding_races())
    cta.observers().warp_synchronised(cta, mask & ~cta.current_warp().exited);
  cta.release(mask, where, Instruction::bar_warp_sync);
}

void warp_sync(std::uint32_t mask, SourceLocation where) {
  perform(Instruction::bar_warp_sync, where, [=](Cta& cta) { synchronise_warp(cta, mask, where); });
}

}  // namespace tegula::sim
