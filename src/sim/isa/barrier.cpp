#include <fmt/format.h>

#include "isa/perform.hpp"
#include "isa/warp.hpp"
#include "tegula/io/text.hpp"

/// The sixteen barriers of a CTA; its coordinates; trap.
namespace tegula::sim {

namespace {

void bar(Cta& cta, Instruction instruction, int id, int threads, SourceLocation where) {
  bool const waits = instruction != Instruction::bar_arrive;
  if (id < 0 || id >= kBarriers) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("barrier {} does not exist: there are 16, from 0", id));
  }
  if (threads <= 0 || threads % 32 != 0 || threads > cta.threads()) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format(
            "{} on barrier {} counts {}: the count must be a multiple of 32, at least 32 and at most the CTA's {}",
            ptx_name(instruction), id, io::counted(threads, "thread"), cta.threads()));
  }
  if (!cta.meet(instruction,
                static_cast<std::uint32_t>(id) << 16 | static_cast<std::uint32_t>(threads),
                kFullWarp, where))
    return;
  cta.cluster().before({waits ? Visible::Kind::barrier_sync : Visible::Kind::barrier, cta.rank(),
                        static_cast<std::uint64_t>(id), threads});
  Warp& own = cta.current_warp();
  bool const complete = cta.arrive_at_barrier(id, threads, waits, where);
  if (complete || !waits) {
    cta.release(kFullWarp, where, instruction);
    return;
  }
  own.barrier = id;
  own.barrier_where = where;
  cta.barrier(id).waiting |= 1u << own.index;
  if (cta.counting()) cta.cluster().observers().warp_waits(cta, own, true, instruction, where);
  cta.cluster().block();
}

/// A barrier of one warp cannot count a warp less.
Mutation fewer_warps(int threads) { return threads > 32 ? Mutation::none : Mutation::less; }

}  // namespace

void bar_sync_all(SourceLocation where) {
  perform(Instruction::bar_sync, where, Mutation::less | Mutation::more, [=](Cta& cta, Mutation m) {
    if (m == Mutation::weakened) return synchronise_warp(cta, kFullWarp, where);
    bar(cta, Instruction::bar_sync, 0, cta.threads(), where);
  });
}
namespace {

void sync(Instruction instruction, int id, int threads, SourceLocation where) {
  perform(instruction, where, fewer_warps(threads), [=](Cta& cta, Mutation m) {
    if (m == Mutation::weakened) return synchronise_warp(cta, kFullWarp, where);
    bar(cta, instruction, id, counted(threads, m, 32), where);
  });
}

}  // namespace

void bar_sync(int id, int threads, SourceLocation where) {
  sync(Instruction::bar_sync, id, threads, where);
}
void barrier_sync(int id, int threads, SourceLocation where) {
  sync(Instruction::barrier_sync, id, threads, where);
}
void bar_arrive(int id, int threads, SourceLocation where) {
  perform(Instruction::bar_arrive, where, fewer_warps(threads), [=](Cta& cta, Mutation m) {
    bar(cta, Instruction::bar_arrive, id, counted(threads, m, 32), where);
  });
}

int thread_index() { return this_cta().thread_index(); }
Dim3 block_index() { return this_cta().block_index(); }
Dim3 grid_extents() { return this_cta().grid(); }

void trap(SourceLocation where) {
  Cta& cta = current_cta();
  cta.fail(FindingKind::trap, where, cta.here(), "the kernel executed trap");
}

}  // namespace tegula::sim
