#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "isa/wgmma.hpp"
#include "machine/cluster.hpp"
#include "machine/cta.hpp"
#include "values/place.hpp"

/// The small instructions of sm_90: stmatrix, elect.sync and setmaxnreg.
namespace tegula::sim {

void Cta::stmatrix(std::uint32_t row, std::uint32_t const* registers, int count, bool transpose,
                   Where where) {
  Warp& own = current_warp();
  int const lane = current_thread().lane;
  own.operand[lane] = row;
  std::memcpy(own.a[lane], registers, sizeof(std::uint32_t) * static_cast<std::size_t>(count));
  if (!meet(Instruction::stmatrix, static_cast<std::uint32_t>(2 * count + (transpose ? 1 : 0)), kFullWarp,
            where))
    return;
  if (count_) cluster_.observers().matrices_moved(*this, own, Instruction::stmatrix, count, where);
  for (int matrix = 0; matrix < count; ++matrix) {
    for (int r = 0; r < 8; ++r) {
      std::uint16_t elements[8];
      for (int c = 0; c < 8; ++c) {
        int const holder = transpose ? 4 * c + r / 2 : 4 * r + c / 2;
        int const half = transpose ? r % 2 : c % 2;
        elements[c] = static_cast<std::uint16_t>(own.a[holder][matrix] >> 16 * half);
      }
      int const giver = 8 * matrix + r;
      std::uint32_t const address = own.operand[giver];
      if (shared_matrix_row(Instruction::stmatrix, address, true, transpose, r, where, giver))
        std::memcpy(shared_.at(address), elements, 16);
    }
  }
  release(kFullWarp, where, Instruction::stmatrix);
}

bool Cta::elect_one(Where where) {
  Warp& own = current_warp();
  if (meet(Instruction::elect_sync, 0, kFullWarp, where)) {
    auto const leader = static_cast<std::uint32_t>(std::countr_zero(~own.exited));
    std::fill_n(own.result, 32, leader);
    release(kFullWarp, where, Instruction::elect_sync);
  }
  return current_thread().lane == static_cast<int>(own.result[current_thread().lane]);
}

void Cta::setmaxnreg(int registers, bool increase, Where where) {
  if (!meet_warpgroup(Instruction::setmaxnreg, static_cast<std::uint32_t>(2 * registers + (increase ? 1 : 0)),
                      where))
    return;
  Warpgroup& own = warpgroup();
  int const number = static_cast<int>(&own - warpgroups_.data());
  if (check_) {
    observers().changing_registers(*this, number, increase, where);
    int const held = registers_in_flight(own);
    if (!increase && registers < held) {
      report(
          FindingKind::too_few_registers, where, here(-1), "", "",
          fmt::format("setmaxnreg.dec to {} registers a thread while the wgmma.mma_async in flight hold {}, "
                      "accumulators and A: wait for their groups first",
                      registers, held));
    }
  }
  if (increase ? registers < own.registers : registers > own.registers) {
    report(FindingKind::invalid_operand, where, here(-1), "", "",
           fmt::format("setmaxnreg.{} to {} registers a thread, {} the {} that the warpgroup has",
                       increase ? "inc" : "dec", registers, increase ? "below" : "above", own.registers));
  } else {
    int const more = 128 * (registers - own.registers);
    own.wanted_registers = more;
    own.wants_registers_where = where;
    cluster_.before({Visible::Kind::registers, rank_, 0, more, nullptr, number});
    while (more > free_registers_) {
      own.waits_for_registers = &current_thread();
      cluster_.block();
    }
    own.waits_for_registers = nullptr;
    free_registers_ -= more;
    own.registers = registers;
    own.registers_where = where;
    own.registers_raised = increase;
    if (check_) observers().registers_changed(*this, number);
    for (Warpgroup& other : warpgroups_) {
      if (other.waits_for_registers != nullptr && other.wanted_registers <= free_registers_)
        set_ready(*other.waits_for_registers);
    }
  }
  release_warpgroup(where, Instruction::setmaxnreg);
}

}  // namespace tegula::sim
