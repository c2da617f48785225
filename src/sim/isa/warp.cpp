#include "isa/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "isa/perform.hpp"
#include "tegula/sim/generation.hpp"

/// Instructions of a warp on values: shuffles, votes, reductions, election; and bar.warp.sync.
namespace tegula::sim {

namespace {

/// Where a lane reads from: PTX ISA, shfl.sync, semantics.
struct Source {
  int lane;
  bool in_range;
};
Source source_of(ShuffleMode mode, int lane, std::uint32_t lane_operand, std::uint32_t clamp) {
  int const by = static_cast<int>(lane_operand & 31);
  int const segment = static_cast<int>(clamp >> 8 & 31);  // the bits that name it
  int const last = (lane & segment) | (static_cast<int>(clamp & 31) & ~segment);
  int source = 0;
  switch (mode) {
    case ShuffleMode::idx:
      source = (lane & segment) | (by & ~segment);
      break;
    case ShuffleMode::bfly:
      source = lane ^ by;
      break;
    case ShuffleMode::up:
      source = lane - by;
      break;
    case ShuffleMode::down:
      source = lane + by;
      break;
  }
  bool const in_range = mode == ShuffleMode::up ? source >= last : source <= last;
  return {in_range ? source : lane, in_range};
}

}  // namespace

std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t clamp,
                   std::uint32_t mask, bool* in_range, SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  // A lane's own affair, unlike the mode and the mask: what it reads need not be where others read.
  Source const source = source_of(mode, lane, static_cast<std::uint32_t>(lane_operand), clamp);
  own.value[lane] = value;
  own.operand[lane] = static_cast<std::uint32_t>(source.lane);
  if (cta.meet(Instruction::shfl_sync, static_cast<std::uint32_t>(mode), mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) {
      int const l = std::countr_zero(rest);
      std::uint32_t const from = own.operand[l];
      if ((live >> from & 1) == 0) {
        cta.report(
            FindingKind::invalid_operand, where, cta.here(l), "", "",
            fmt::format("shfl.sync reads lane {}, which {}", from,
                        (mask >> from & 1) == 0 ? fmt::format("its mask {:#010x} leaves out", mask)
                                                : "has exited"));
      }
      own.result[l] = own.value[from];
    }
    cta.release(mask, where, Instruction::shfl_sync);
  }
  if (in_range != nullptr) *in_range = source.in_range;
  return own.result[lane];
}

std::uint32_t match(MatchMode mode, std::uint64_t value, int bytes, std::uint32_t mask,
                    SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.value[lane] = static_cast<std::uint32_t>(value);
  own.operand[lane] = static_cast<std::uint32_t>(value >> 32);
  auto const variant = static_cast<std::uint32_t>(mode) << 8 | static_cast<std::uint32_t>(bytes);
  if (cta.meet(Instruction::match_sync, variant, mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) {
      int const l = std::countr_zero(rest);
      std::uint32_t same = 0;
      for (std::uint32_t others = live; others != 0; others &= others - 1) {
        int const o = std::countr_zero(others);
        if (own.value[o] == own.value[l] && own.operand[o] == own.operand[l]) same |= 1u << o;
      }
      own.result[l] = mode == MatchMode::any || same == live ? same : 0;
    }
    cta.release(mask, where, Instruction::match_sync);
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

namespace {

/// One step of a reduction: PTX ISA, redux.sync.
std::uint32_t reduced(ReduxOp op, std::uint32_t a, std::uint32_t b) {
  auto const as_signed = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
  switch (op) {
    case ReduxOp::add:
      break;
    case ReduxOp::min_s32:
      return as_signed(b) < as_signed(a) ? b : a;
    case ReduxOp::min_u32:
      return std::min(a, b);
    case ReduxOp::max_s32:
      return as_signed(b) > as_signed(a) ? b : a;
    case ReduxOp::max_u32:
      return std::max(a, b);
    case ReduxOp::bit_and:
      return a & b;
    case ReduxOp::bit_or:
      return a | b;
    case ReduxOp::bit_xor:
      return a ^ b;
  }
  return a + b;
}

/// Likewise of floats: +0 is greater than -0.
float reduced(FloatRedux op, float a, float b) {
  if (a != a) return op.nan ? a : b;
  if (b != b) return op.nan ? b : a;
  bool const first = a == b ? std::signbit(a) == op.greatest : (a < b) == op.greatest;
  return first ? b : a;
}

/// Meets, reduces what the lanes of the mask have left by `combine`, and hands the result to each.
template <class Combine>
std::uint32_t reduce(Cta& cta, std::uint32_t variant, std::uint32_t value, std::uint32_t mask,
                     SourceLocation where, Combine combine) {
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.value[lane] = value;
  if (cta.meet(Instruction::redux_sync, variant, mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    std::uint32_t total = own.value[std::countr_zero(live)];
    for (std::uint32_t rest = live & (live - 1); rest != 0; rest &= rest - 1)
      total = combine(total, own.value[std::countr_zero(rest)]);
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1)
      own.result[std::countr_zero(rest)] = total;
    cta.release(mask, where, Instruction::redux_sync);
  }
  return own.result[lane];
}

}  // namespace

std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, SourceLocation where) {
  return reduce(current_cta(), static_cast<std::uint32_t>(op), value, mask, where,
                [op](std::uint32_t a, std::uint32_t b) { return reduced(op, a, b); });
}

float redux_f32(FloatRedux op, float value, std::uint32_t mask, SourceLocation where) {
  Cta& cta = current_cta();
  ArchSpec const& spec = spec_of(cta.generation());
  if (spec.compute_capability < 100) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format("redux.sync of f32 is an instruction of sm_100a, and this machine is an sm_{}: "
                    "shuffles with max_f32 or min_f32 compute the same",
                    spec.compute_capability));
  }
  if (op.abs) value = std::fabs(value);
  std::uint32_t const variant =
      0x100u + (op.greatest ? 1 : 0) + (op.abs ? 2 : 0) + (op.nan ? 4 : 0);
  float const result =
      std::bit_cast<float>(reduce(cta, variant, std::bit_cast<std::uint32_t>(value), mask, where,
                                  [op](std::uint32_t a, std::uint32_t b) {
                                    return std::bit_cast<std::uint32_t>(reduced(
                                        op, std::bit_cast<float>(a), std::bit_cast<float>(b)));
                                  }));
  return result == result ? result : std::bit_cast<float>(0x7fffffffu);
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
