#include <fmt/format.h>

#include <bit>
#include <optional>

#include "isa/perform.hpp"
#include "isa/warp.hpp"
#include "tegula/io/text.hpp"

/// The sixteen barriers of a CTA; its coordinates; trap.
namespace tegula::sim {

namespace {

/// The running thread's part in a barrier that reduces; without an operation it does not.
struct Vote {
  std::optional<BarrierReduction> op;
  bool predicate = false;
};

void bar(Cta& cta, Instruction instruction, int id, int threads, SourceLocation where,
         Vote vote = {}) {
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
  Warp& own = cta.current_warp();
  own.value[cta.current_thread().lane] = vote.predicate ? 1 : 0;
  std::uint32_t const reduces = vote.op ? static_cast<std::uint32_t>(*vote.op) + 1 : 0;
  if (!cta.meet(instruction,
                reduces << 24 | static_cast<std::uint32_t>(id) << 16 |
                    static_cast<std::uint32_t>(threads),
                kFullWarp, where))
    return;
  cta.cluster().before({waits ? Visible::Kind::barrier_sync : Visible::Kind::barrier, cta.rank(),
                        static_cast<std::uint64_t>(id), threads});
  BarrierVotes votes = {vote.op};
  for (std::uint32_t rest = ~own.exited; rest != 0; rest &= rest - 1, ++votes.voters)
    votes.votes += static_cast<int>(own.value[std::countr_zero(rest)]);
  bool const complete = cta.arrive_at_barrier(instruction, id, threads, waits, votes, where);
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

namespace {

/// A barrier that reduces. (It is not delayed, as the thread needs the result. Without it the
/// thread has its own vote, and where it is weakened those of its warp.)
int red(Instruction instruction, BarrierReduction op, int id, int threads, bool predicate,
        Mutation without, SourceLocation where) {
  Mutation const mutation = mutation_of(instruction, where, without);
  if (mutation == Mutation::removed) return BarrierVotes{op, 1, predicate ? 1 : 0}.result();
  Cta& cta = current_cta();
  if (mutation == Mutation::weakened) {
    synchronise_warp(cta, kFullWarp, where);
    int const votes = std::popcount(ballot(predicate, kFullWarp, false, where));
    return BarrierVotes{op, 32, votes}.result();
  }
  bar(cta, instruction, id, counted(threads, mutation, 32), where, {op, predicate});
  return static_cast<int>(cta.current_warp().result[cta.current_thread().lane]);
}

}  // namespace

int bar_red_all(BarrierReduction op, bool predicate, SourceLocation where) {
  return red(Instruction::bar_red, op, 0, this_cta().threads(), predicate,
             Mutation::less | Mutation::more, where);
}
int bar_red(BarrierReduction op, int id, int threads, bool predicate, bool aligned,
            SourceLocation where) {
  return red(aligned ? Instruction::bar_red : Instruction::barrier_red, op, id, threads, predicate,
             fewer_warps(threads), where);
}

int thread_index() { return this_cta().thread_index(); }
Dim3 block_index() { return this_cta().block_index(); }
Dim3 grid_extents() { return this_cta().grid(); }

void trap(SourceLocation where) {
  Cta& cta = current_cta();
  cta.fail(FindingKind::trap, where, cta.here(), "the kernel executed trap");
}

}  // namespace tegula::sim
