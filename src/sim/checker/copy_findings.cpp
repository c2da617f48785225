#include <fmt/format.h>

#include "checker/checker.hpp"
#include "values/box_walk.hpp"
#include "values/place.hpp"

/// What copies have brought: operands that were laid out by another swizzle than the one they are
/// read by, and copies that nobody reads.
namespace tegula::sim {

namespace {

char const* swizzle_text(TmaSwizzle swizzle) {
  switch (swizzle) {
    case TmaSwizzle::none:
      return "no swizzle";
    case TmaSwizzle::b32:
      return "the swizzle of 32 bytes";
    case TmaSwizzle::b64:
      return "the swizzle of 64 bytes";
    case TmaSwizzle::b128:
      return "the swizzle of 128 bytes";
  }
  return "";
}

}  // namespace

bool Checker::laid_out_by(Cta& cta, TmaSwizzle swizzle, std::uint32_t address,
                          Instruction instruction, SourceLocation where, Culprit who) {
  Copy const* const copy = of(cta).copies.at(address - kSharedBase);
  if (copy == nullptr || !copy->swizzle || *copy->swizzle == swizzle ||
      swizzle_of_line(*copy->swizzle, address) == swizzle_of_line(swizzle, address)) [[likely]]
    return true;
  cta.report(
      FindingKind::wrong_layout, where, who, cta.buffer_name(address), cta.shared_place(address),
      fmt::format("{} reads {} by {}, where a {} that {} issued ({}) has put other elements, by {}",
                  ptx_name(instruction), cta.shared_place(address), swizzle_text(swizzle),
                  ptx_name(copy->instruction),
                  agent_text(cta, cta.cluster().cta(copy->cta).thread(copy->thread).agent),
                  place_text(copy->where), swizzle_text(*copy->swizzle)),
      {copy->where, {copy->cta, copy->thread / 32, copy->thread % 32}});
  return false;
}

/// A copy is to bring bytes; `in_order`: nothing was found that forbids it to.
void Checker::bring(Cta& cta, CopyShadow::Id copy, SharedRange const& range, bool in_order,
                    Overwrite by) {
  if (!in_order) by.instruction = Instruction::none;  // what was found says more
  of(cta).copies.bring(copy, range.address - kSharedBase, range.bytes, by,
                       [&](Copy const& lost) { report_lost(cta, lost, by); });
}

void Checker::report_lost(Cta& cta, Copy const& lost, Overwrite const& by) {
  std::uint32_t const first = kSharedBase + lost.offset;
  auto const whose = [&](auto const& by) {
    return agent_text(cta, cta.cluster().cta(by.cta).thread(by.thread).agent);
  };
  cta.report(
      FindingKind::unread_copy, by.where, {by.cta, by.thread / 32, by.thread % 32},
      cta.buffer_name(first), cta.shared_place(first),
      fmt::format(
          "{} writes over what a {} of {} ({}) has brought, from {} on, and nobody has read any of "
          "it",
          ptx_name(by.instruction), ptx_name(lost.instruction), whose(lost), place_text(lost.where),
          cta.shared_place(first)),
      {lost.where, {lost.cta, lost.thread / 32, lost.thread % 32}});
}

void Checker::copy_issuing(Cta& cta, AsyncCopy const& copy) {
  OfCta& own = of(cta);
  Thread const& thread = cta.current_thread();
  std::uint32_t const offset = copy.destination - kSharedBase;
  std::uint8_t* const state = own.state.at(copy.destination);
  SharedAccess const write{
      Instruction::cp_async, copy.destination, copy.bytes, true, copy.where, thread.lane};
  bool overwrites = false;
  for (int i = 0; i < copy.bytes; ++i) overwrites |= (state[i] & kNoWrite) != 0;
  Conflict conflict;
  bool in_order = !overwrites;
  if (overwrites) {
    shared_findings(cta, write);
  } else if (races_ && !own.shadow.may_write(thread.agent, offset, copy.bytes, conflict)) {
    in_order = false;
    generic_race(cta, write, conflict);
  }
  CopyShadow::Id const part = own.copies.add_part({.instruction = Instruction::cp_async,
                                                   .where = copy.where,
                                                   .cta = cta.rank(),
                                                   .thread = thread.index,
                                                   .offset = offset,
                                                   .fetches = copy.source_bytes > 0},
                                                  thread.async.groups);
  bring(cta, part, {cta.rank(), copy.destination, copy.bytes}, in_order,
        {Instruction::cp_async, copy.where, cta.rank(), thread.index});
  for (int i = 0; i < copy.bytes; ++i) state[i] |= kInFlight;
}

void Checker::copy_landed(Cta& cta, AsyncCopy const& copy) {
  std::uint8_t* const state = of(cta).state.at(copy.destination);
  for (int i = 0; i < copy.bytes; ++i) state[i] |= kWritten;
}

void Checker::copy_retired(Cta& cta, AsyncCopy const& copy, Thread const& issuer) {
  std::uint8_t* const state = of(cta).state.at(copy.destination);
  Causality& causality = agents_.causality();
  if (!copy.arrived) {
    for (int i = 0; i < copy.bytes; ++i) state[i] &= static_cast<std::uint8_t>(~kInFlight);
  }
  if (!races_) return;
  // From now on it is as if the thread had written the bytes itself: PTX ISA, cp.async.wait_group.
  // Where a cp.async.mbarrier.arrive stands for them, others may learn of them without the thread.
  int const agent = copy.arrives ? agents_.copies_agent(issuer.agent) : issuer.agent;
  if (!copy.arrived) {
    of(cta).shadow.written(copy.destination - kSharedBase, copy.bytes,
                           {causality.now(), static_cast<std::uint16_t>(agent),
                            site(Instruction::cp_async, copy.where)});
  }
  if (copy.arrives && &issuer == &cta.current_thread())
    causality.tell_generic(issuer.agent, agent, causality.tick());
}

/// All that the thread's copies before it wrote is known to those who wait for the phase.
void Checker::copies_arrived(Cta& cta, MbarrierState const& mbarrier, InFlight const& operation) {
  if (!races_) return;
  wait_order_.told(of(cta, mbarrier).waits, operation);
  if (operation.instruction == Instruction::tcgen05_commit)
    return commit_arrived(cta, mbarrier, operation);
  Causality& causality = agents_.causality();
  int const issuer = cta.cluster().cta(operation.cta).thread(operation.thread).agent;
  causality.tell_generic(of(cta, mbarrier).arriving, agents_.copies_agent(issuer),
                         causality.tick());
}

}  // namespace tegula::sim
