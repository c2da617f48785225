#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// Tensor memory: what is in flight on it, who has accessed it before, and which fences stand
/// between.
namespace tegula::sim {

namespace {

/// Of two operations of one thread that are not performed in their order.
char const* unordered(Instruction earlier, Instruction later) {
  if (earlier == Instruction::tcgen05_shift || later == Instruction::tcgen05_shift)
    return "; of one thread's shifts and copies, only a copy of .4x256b after a shift waits for it";
  return earlier == Instruction::tcgen05_mma && later == Instruction::tcgen05_mma
             ? "; products of different shapes are not performed in their order"
             : "; of one thread's copies and products, only a product after a copy waits for it";
}
/// Of two operations of the two CTAs of a pair.
constexpr char const* kBothOfPair =
    "; one CTA of a pair starts its products: those of both are not performed in an order";

char const* verb(bool write) { return write ? "writes" : "reads"; }

}  // namespace

void Checker::tensor_fenced(Cta& cta, bool before) {
  Thread const& thread = cta.current_thread();
  Causality& causality = agents_.causality();
  TensorFences& own = history(of(thread)).fences;
  if (before) {
    own.before.push_back(causality.tick());
  } else {
    own.after = causality.knowledge(thread.agent);
  }
}

void Checker::tensor_allocated(Cta& cta, int column, int columns) {
  of(cta).tensor.allocate(column, columns);
}

/// Whoever frees columns comes after all accesses to them.
void Checker::tensor_freed(Cta& cta, int column, int columns, SourceLocation where) {
  OfCta& own = of(cta);
  TensorRange const all{cta.rank(), 0xff, column, columns};
  auto const report = [&](SourceLocation other, Culprit who, std::string what, std::string order) {
    cta.report(FindingKind::data_race, where, cta.here(-1), "", "",
               fmt::format("tcgen05.dealloc of columns {} to {} of tensor memory, {} ({})", column,
                           column + columns - 1, what, place_text(other)),
               {other, who, std::move(order)});
  };
  for (InFlight const* const flying : own.tensor.flying) {
    for (auto const* const ranges : {&flying->tensor_writes, &flying->tensor_reads}) {
      if (std::none_of(ranges->begin(), ranges->end(),
                       [&](TensorRange const& range) { return range.overlaps(all); }))
        continue;
      return report(flying->where, {flying->cta, flying->thread / 32, flying->thread % 32},
                    fmt::format("while a {} of them is in flight", ptx_name(flying->instruction)),
                    cta.in_flight().order_text(*flying, false));
    }
  }
  if (!races_) return;
  Thread const& self = cta.current_thread();
  own.tensor.for_each(all, [&](TensorCell& cell, int, int) {
    std::vector<TensorStamp> accesses = cell.readers;
    if (cell.writer.time != 0) accesses.push_back(cell.writer);
    for (TensorStamp const& stamp : accesses) {
      if (tensor_order(self, true, stamp) != TensorOrder::nothing) continue;
      Site const& other = agents_.sites()[stamp.site];
      report(other.where, culprit(stamp.issuer),
             fmt::format("and nothing orders it after the {} by {}", ptx_name(other.instruction),
                         tensor_issuer_text(cta, stamp)),
             "a barrier between the two would order them");
      return false;
    }
    return true;
  });
  own.tensor.for_each(all, [](TensorCell& cell, int, int) {
    cell = {};
    return true;
  });
}

/// "warp 3" of an access by a warp, "warp 3 lane 7" of a thread's.
std::string Checker::tensor_issuer_text(Cta const& cta, TensorStamp const& stamp) const {
  return is_committed(agents_.sites()[stamp.site].instruction)
             ? agent_text(cta, stamp.issuer)
             : fmt::format("warp {}", culprit(stamp.issuer).warp);
}

/// What the thread, or (`of_warp`) any lane of its warp, knows of an access that is over. A warp's
/// own accesses it has waited for; those of others must have been fenced on both sides, but a
/// tcgen05.commit stands for the fence after its products, and who issued them needs none.
TensorOrder Checker::tensor_order(Thread const& issuer, bool of_warp,
                                  TensorStamp const& stamp) const {
  Causality const& causality = agents_.causality();
  int const warp = issuer.agent - issuer.lane;
  int const first = of_warp ? warp : issuer.agent, count = of_warp ? 32 : 1;
  bool const by_mbarrier = stamp.agent >= causality.threads();
  if (!by_mbarrier && stamp.agent == warp) return TensorOrder::ordered;
  TensorOrder best = TensorOrder::nothing;
  auto const found = [&](TensorOrder order) {
    if (order == TensorOrder::ordered || best == TensorOrder::nothing ||
        (best == TensorOrder::no_fence_before && order == TensorOrder::no_fence_after))
      best = order;
  };
  for (int thread = first; thread < first + count && best != TensorOrder::ordered; ++thread) {
    TensorFences const& own = fences(thread);
    if (by_mbarrier) {
      if (!causality.known(thread, stamp.agent, stamp.time)) continue;
      bool const issued_it = stamp.issuer == thread;
      found(issued_it || own.after[stamp.agent] >= stamp.time ? TensorOrder::ordered
                                                              : TensorOrder::no_fence_after);
      continue;
    }
    for (int lane = stamp.agent; lane < stamp.agent + 32; ++lane) {
      if (!causality.known(thread, lane, stamp.time)) continue;
      auto const& before = fences(lane).before;
      auto const fence = std::lower_bound(before.begin(), before.end(), stamp.time);
      if (fence == before.end() || !causality.known(thread, lane, *fence + 1)) {
        found(TensorOrder::no_fence_before);
      } else {
        found(own.after[lane] > *fence ? TensorOrder::ordered : TensorOrder::no_fence_after);
      }
    }
  }
  return best;
}

/// Whether both are of one thread and performed in their order.
bool Checker::is_pipelined(Thread const& issuer, InFlight const& operation,
                           TensorStamp const& stamp) const {
  Instruction const earlier = agents_.sites()[stamp.site].instruction;
  return stamp.issuer == issuer.agent &&
         sim::is_pipelined(earlier, stamp.shape, operation.instruction, operation.shape);
}

void Checker::tensor_issuing(Cluster& cluster, InFlight const& operation) {
  for (TensorRange const& range : operation.tensor_reads)
    check_tensor_range(cluster.cta(range.cta), operation, range, false);
  for (TensorRange const& range : operation.tensor_writes)
    check_tensor_range(cluster.cta(range.cta), operation, range, true);
}

void Checker::check_tensor_range(Cta& cta, InFlight const& operation, TensorRange const& range,
                                 bool write) {
  TensorShadow& shadow = of(cta).tensor;
  char const* const name = ptx_name(operation.instruction);
  int const lane = operation.by_warp() ? -1 : cta.current_thread().lane;
  for (InFlight const* const other : shadow.flying) {
    if (operation.is_pipelined_with(*other)) continue;
    bool const committed = operation.is_committed() && other->is_committed();
    bool const of_one =
        committed && operation.cta == other->cta && operation.thread == other->thread;
    bool const both_of_pair = committed && operation.cta != other->cta;
    for (bool const other_writes : {true, false}) {
      if (!write && !other_writes) continue;
      for (TensorRange const& of_other :
           other_writes ? other->tensor_writes : other->tensor_reads) {
        if (!of_other.overlaps(range)) continue;
        int const group = std::countr_zero(static_cast<unsigned>(range.groups & of_other.groups));
        int const column = std::max(range.column, of_other.column);
        std::string const place = cta.tensor_place(kTensorLaneGroup * group, column);
        cta.report(
            write ? FindingKind::async_overwrite : FindingKind::async_read_early, operation.where,
            cta.here(lane), "", place,
            fmt::format("{} {} {} while a {} that {} it is in flight{}{}", name, verb(write), place,
                        ptx_name(other->instruction), verb(other_writes), issuer_text(*other),
                        of_one         ? unordered(other->instruction, operation.instruction)
                        : both_of_pair ? kBothOfPair
                                       : ""),
            {other->where,
             {other->cta, other->thread / 32, other->thread % 32},
             cta.in_flight().order_text(*other, !other_writes)});
        return;
      }
    }
  }
  Thread const& self = cta.current_thread();
  TensorStamp const* known = nullptr;  // mostly the next is the same
  shadow.for_each(range, [&](TensorCell& cell, int group, int column) {
    if (!write && !cell.written) {
      std::string const place = cta.tensor_place(kTensorLaneGroup * group, column);
      cta.report(FindingKind::uninitialized_read, operation.where, cta.here(lane), "", place,
                 fmt::format("{} reads {}, which nobody has written", name, place));
      return false;
    }
    if (write) cell.written = true;
    if (!races_) return true;
    auto const check = [&](TensorStamp const& stamp, bool wrote) {
      if (stamp.time == 0) return true;
      if (known != nullptr && known->time == stamp.time && known->agent == stamp.agent &&
          known->shape == stamp.shape)
        return true;
      TensorOrder const order = is_pipelined(self, operation, stamp)
                                    ? TensorOrder::ordered
                                    : tensor_order(self, operation.by_warp(), stamp);
      if (order == TensorOrder::ordered) {
        known = &stamp;
        return true;
      }
      std::string const place = cta.tensor_place(kTensorLaneGroup * group, column);
      Site const& other = agents_.sites()[stamp.site];
      bool const committed = is_committed(other.instruction);
      std::string const whose = tensor_issuer_text(cta, stamp);
      std::string const own_name = operation.by_warp() ? fmt::format("warp {}", self.index / 32)
                                                       : agent_text(cta, self.agent);
      std::string lacks = ", and nothing orders the two";
      std::string advice;
      if (order == TensorOrder::no_fence_after) {
        lacks = ", and no tcgen05.fence::after_thread_sync stands between";
        advice =
            fmt::format("a tcgen05_fence_after_thread_sync by {} before the {} would order them",
                        own_name, name);
      } else if (order == TensorOrder::no_fence_before) {
        lacks = ", and no tcgen05.fence::before_thread_sync followed";
        advice = fmt::format(
            "a tcgen05_fence_before_thread_sync by {} between the {} and its next release would "
            "order them",
            whose, ptx_name(other.instruction));
      } else if (committed) {
        if (stamp.issuer == self.agent && operation.is_committed())
          lacks += unordered(other.instruction, operation.instruction);
        if (operation.is_committed() && culprit(stamp.issuer).cta != operation.cta)
          lacks += kBothOfPair;
        advice =
            "a wait for the mbarrier of the tcgen05_commit after it, and a "
            "tcgen05_fence_after_thread_sync, would order them";
      } else {
        advice =
            "a barrier, or an arrival on an mbarrier and a wait for it, between the two, and the "
            "tcgen05 fences around it would order them";
      }
      cta.report(FindingKind::data_race, operation.where, cta.here(lane), "", place,
                 fmt::format("{} {} {}, which {} {} by {} ({}){}", name, verb(write), place, whose,
                             wrote ? "wrote" : "read", ptx_name(other.instruction),
                             place_text(other.where), lacks),
                 {other.where, culprit(stamp.issuer), std::move(advice)});
      return false;
    };
    if (!check(cell.writer, true)) return false;
    if (!write) return true;
    return std::all_of(cell.readers.begin(), cell.readers.end(),
                       [&](TensorStamp const& reader) { return check(reader, false); });
  });
}

/// The operation is over, as `agent` knows from `time` on.
void Checker::stamp_tensor(Cluster& cluster, InFlight const& operation, int agent, Time time) {
  Cta& cta = cluster.cta(operation.cta);
  int const issuer = cta.thread(operation.thread).agent;
  TensorStamp const stamp{time, agent, issuer, operation.remembered.site, operation.shape};
  for (TensorRange const& range : operation.tensor_writes) {
    of(cluster.cta(range.cta)).tensor.for_each(range, [&](TensorCell& cell, int, int) {
      cell.writer = stamp;
      cell.readers.clear();
      return true;
    });
  }
  for (TensorRange const& range : operation.tensor_reads) {
    // Of what it writes, too, the write tells.
    if (std::any_of(operation.tensor_writes.begin(), operation.tensor_writes.end(),
                    [&](TensorRange const& written) { return written.overlaps(range); }))
      continue;
    of(cluster.cta(range.cta)).tensor.for_each(range, [&](TensorCell& cell, int, int) {
      auto const same = std::find_if(cell.readers.begin(), cell.readers.end(),
                                     [&](TensorStamp const& r) { return r.agent == agent; });
      if (same != cell.readers.end()) {
        *same = stamp;
      } else {
        cell.readers.push_back(stamp);
      }
      return true;
    });
  }
}

/// A tcgen05.commit arrives: all that its thread started before is over for those who wait for the
/// phase, shared memory that it read included. Of several commits that cover a product, the first
/// to arrive stands for it, and the others tell of that one.
void Checker::commit_arrived(Cta& cta, MbarrierState const& mbarrier, InFlight const& operation) {
  Causality& causality = agents_.causality();
  OfMbarrier& own = of(cta, mbarrier);
  OfThread& thread = of(cta.cluster().cta(operation.cta).thread(operation.thread));
  Time const now = causality.now();
  std::vector<InFlight const*>& stamped = of(cta.cluster().cta(operation.cta)).tensor.stamped;
  for (InFlight const* const covered : operation.covers) {
    if (std::find(stamped.begin(), stamped.end(), covered) != stamped.end()) continue;
    stamped.push_back(covered);
    for (SharedRange const& range : covered->reads)
      of(cta.cluster().cta(range.cta))
          .shadow.has_read(own.agent, false, range.address - kSharedBase, range.bytes,
                           covered->remembered.site);
    stamp_tensor(cta.cluster(), *covered, own.agent, now);
    agents_.note_landing(own.agent, covered->remembered.site, *covered);
  }
  causality.tick();
  std::map<int, Time>& committed = history(thread).committed;
  committed[own.agent] = now;
  for (auto const& [agent, time] : committed) causality.tell(own.arriving, agent, time);
  // What the products came after is over, too: the loads of their operands, the grids before this.
  auto const issuer = commits_.extract(&operation);
  if (!issuer.empty()) causality.merge(own.arriving, issuer.mapped());
}

}  // namespace tegula::sim
