#include "checker/global_races.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "machine/cluster.hpp"
#include "values/place.hpp"

namespace tegula::sim {

void GlobalRaces::start(Cluster& cluster, GlobalOrder* order) {
  on_ = order != nullptr;
  cluster_ = &cluster;
  index_ = cluster.index();
  words_.clear();
  open_choices_ = 0;
  if (!on_) return;
  shadow_.clear();
  strict_ = cluster.launch().options->strict.fences;
  cooperative_ = cluster.launch().kernel->cooperative;
  order_.start(*order, index_, strict_);
}

GlobalActor GlobalRaces::actor() {
  Thread const& self = cluster_->current();
  GlobalActor who;
  who.cta = self.cta->rank();
  who.thread = self.index;
  who.threads = self.cta->threads();
  who.agent = static_cast<std::uint32_t>(self.agent);
  who.causality = &agents_.causality();
  who.knower = self.agent;
  who.time = static_cast<std::uint32_t>(agents_.causality().now());
  who.foreign = order_.foreign(who);
  return who;
}

bool GlobalRaces::access(Instruction instruction, GlobalAccess access, void const* address,
                         std::size_t bytes, SourceLocation where) {
  GlobalActor who = actor();
  who.order = &order_;
  who.seen = order_.seen(who, reinterpret_cast<std::uintptr_t>(address), bytes);
  return note(shadow_.site(where, instruction, access, who), address, bytes, who);
}

bool GlobalRaces::note(std::uint32_t site, void const* address, std::size_t bytes,
                       GlobalActor const& who) {
  auto const conflict = shadow_.note(reinterpret_cast<std::uintptr_t>(address), bytes, site, who);
  if (!conflict) [[likely]]
    return true;
  Cta& cta = cluster_->cta(who.cta);
  Allocation const* const memory = cta.allocation(reinterpret_cast<void const*>(conflict->address));
  if (memory == nullptr) return true;
  GlobalSite const& own = shadow_.site(site);
  GlobalSite const& other = *conflict->earlier;
  std::string const place =
      memory->place(memory->offset_of(reinterpret_cast<void const*>(conflict->address)));
  int const threads = cta.threads();
  bool const settled = conflict->agent != GlobalShadow::kNobody;
  bool const of_thread =
      settled && conflict->agent < static_cast<std::uint32_t>(threads * cluster_->ctas());
  int const thread = of_thread ? static_cast<int>(conflict->agent) % threads : other.thread;
  int const rank = of_thread ? static_cast<int>(conflict->agent) / threads : other.cta;
  std::string message = fmt::format(
      "{} {} {}, which {} of warp {} lane {}{} {}", ptx_name(own.instruction),
      verb(own.access, own.instruction), place, ptx_name(other.instruction), thread / 32,
      thread % 32, rank != who.cta ? fmt::format(" of CTA {} of the cluster", rank) : std::string(),
      verb(other.access, other.instruction));
  if (!same_place(own.where, other.where)) message += fmt::format(" ({})", place_text(other.where));
  FindingKind kind = FindingKind::data_race;
  std::string order =
      rank != who.cta
          ? "a barrier of the cluster between them, or an atomic after a "
            "fence_acq_rel<Scope::gpu> by the first and such a fence after one that sees it by "
            "the second, would order them"
      : thread / 32 != who.thread / 32 ? "a cta::sync between them would order them"
                                       : "a warp::sync between them would order them";
  std::string meeting = meeting_text(as_site(other), as_site(own), "Scope::gpu");
  if (!meeting.empty()) {
    message += ", and the two do not meet as strong accesses";
    order = std::move(meeting);
  } else if (conflict->read_only) {
    message += ": the read-only path need not see what the launch writes";
    order =
        "an ld_global in the place of the ld_global_nc, and a cta::sync between the two, would order them";
  } else if (conflict->needs_fence) {
    kind = FindingKind::proxy_race;
    message += " through the generic proxy";
    order =
        "a fence_proxy_async after the write, by its thread or by this one after a barrier, would order them";
  } else if (!settled) {
    kind = own.access == GlobalAccess::read ? FindingKind::async_read_early
                                            : FindingKind::async_overwrite;
    message += ", which has not been waited for";
    order =
        "a bulk_wait_group<0> by the thread that issued it, and a barrier after that, would order them";
  } else {
    message += ", with nothing between the two that orders them";
  }
  cta.report(kind, own.where, {who.cta, who.thread / 32, who.thread % 32}, memory->name, place,
             std::move(message),
             Opposite(other.where, {rank, thread / 32, thread % 32}, std::move(order)));
  return false;
}

CausalPast GlobalRaces::past(GlobalActor const& who) {
  Published published;
  agents_.causality().release(who.knower, published);
  CausalPast past;
  for (int agent = 0; agent < agents_.causality().agents(); ++agent) {
    past.known.push_back(published.known[agent]);
    past.fenced.push_back(published.fenced[agent]);
  }
  return past;
}

void GlobalRaces::look_for_grids(GlobalActor const& who) {
  int const grids = agents_.grids_before();
  if (grids >= 0 && order_.acquired(who, grids, 1)) agents_.wait_for_grids(who.knower);
}

void GlobalRaces::has_acquired(GlobalActor const& who) {
  look_for_grids(who);
  if (!cooperative_) return;
  CausalPast const own = order_.own_past(who);
  agents_.causality().learn(who.knower, own.known, own.fenced);
}

void GlobalRaces::fence(Scope scope, SourceLocation where) {
  GlobalActor const who = actor();
  order_.fence(who, scope, where, past(who));
  has_acquired(who);
}

/// Whether the access might have come before the word's latest by another thread, to another
/// effect. It is the latest from now on.
bool GlobalRaces::is_open(Word& word, StrongAccess const& access, GlobalActor const& who) const {
  Word::Latest const last = word.latest;
  word.latest = {who.knower, agents_.causality().now(), access.writes};
  return last.agent >= 0 && last.agent != who.knower && (last.writes || access.writes) &&
         !agents_.causality().known(who.knower, last.agent, last.time);
}

void GlobalRaces::learn(Word& word, StrongAccess const& access, GlobalActor const& who) {
  word.told.of_ctas.resize(static_cast<std::size_t>(cluster_->ctas()));
  if (!access.reads || access.bytes != word.bytes) return;
  Causality& causality = agents_.causality();
  auto const take = [&](Published const& from, bool others) {
    if (acquires(access.order)) {
      causality.acquire(who.knower, from);
    } else {
      causality.acquire_relaxed(who.knower, from, others);
    }
  };
  take(word.told.of_ctas[static_cast<std::size_t>(who.cta)], false);
  if (access.scope != Scope::cta && cluster_->ctas() > 1) take(word.told.wide, true);
}

void GlobalRaces::tell(Word& word, StrongAccess const& access, GlobalActor const& who) {
  if (!access.writes) return;
  Causality& causality = agents_.causality();
  auto const ctas = static_cast<std::size_t>(cluster_->ctas());
  auto const cta = static_cast<std::size_t>(who.cta);
  bool const wide = access.scope != Scope::cta && cluster_->ctas() > 1;
  if (!access.modifies || access.bytes != word.bytes) {
    for (Published& told : word.told.of_ctas) told.clear();
    word.told.wide.clear();
  }
  word.bytes = access.bytes;
  auto const add = [&](Told& to) {
    to.of_ctas.resize(ctas);
    auto const release = [&](Published& into, bool others) {
      if (releases(access.order)) return causality.release(who.knower, into);
      causality.release_relaxed(who.knower, into, others);
      int const threads = cluster_->cta(who.cta).threads();
      if (!strict_) causality.release_fenced(who.knower, who.cta * threads, threads, into, others);
    };
    release(to.of_ctas[cta], false);
    if (wide) release(to.wide, true);
  };
  if (releases(access.order)) add(word.released[who.knower]);
  auto const earlier = word.released.find(who.knower);
  if (earlier != word.released.end()) {
    causality.merge(word.told.of_ctas[cta], earlier->second.of_ctas[cta]);
    if (wide) causality.merge(word.told.wide, earlier->second.wide);
  }
  if (!releases(access.order)) add(word.told);
}

void GlobalRaces::strong(StrongAccess const& access) {
  GlobalActor const who = actor();
  auto const address = reinterpret_cast<std::uintptr_t>(access.address);
  if (!access.shared) {
    bool const loads = !strong_writes(access.instruction);
    note(shadow_.site(access.where, access.instruction,
                      loads ? GlobalAccess::read : GlobalAccess::atomic, who,
                      {access.scope, access.bytes}),
         access.address, static_cast<std::size_t>(access.bytes), who);
  }
  Word& word = words_[address];
  open_choices_ += is_open(word, access, who);
  WordAccess const to_others{address,
                             access.bytes,
                             access.reads,
                             access.writes,
                             access.modifies,
                             !reaches_clusters(access.scope),
                             {access.where, access.instruction, {access.scope, access.bytes}}};
  // Of shared memory no other cluster sees anything. What is read comes before what is written: an
  // acq_rel hands on what it has acquired.
  learn(word, access, who);
  if (!access.shared) {
    open_choices_ += order_.launch().comes_after_another(address, index_, access.writes);
    order_.look(who, to_others, acquires(access.order));
    if (acquires(access.order)) has_acquired(who);
  }
  std::optional<CausalPast> released;
  if (!access.shared && access.writes && releases(access.order)) released = past(who);
  tell(word, access, who);
  if (!access.shared) order_.put(who, to_others, std::move(released));
}

GlobalRaces::Pending GlobalRaces::issue(Instruction instruction, GlobalAccess access,
                                        SourceLocation where) {
  GlobalActor who = actor();
  who.async = true;
  // A time of its own: the rows of one store may overlap, those of two may not.
  return {shadow_.site(where, instruction, access, who),
          static_cast<std::uint32_t>(agents_.causality().tick())};
}

void GlobalRaces::touch(Pending const& operation, void const* address, std::size_t bytes,
                        std::uint32_t agent) {
  GlobalActor who = actor();
  who.async = true;
  who.agent = agent;
  who.time = operation.time;
  note(operation.site, address, bytes, who);
}

void GlobalRaces::settle(Pending const& operation, void const* address, std::size_t bytes) {
  shadow_.settle(reinterpret_cast<std::uintptr_t>(address), bytes, operation.site, operation.time,
                 actor());
}

std::string GlobalRaces::last_change(void const* address) const {
  GlobalSite const* const change = last_changed_by(address);
  if (change == nullptr) return ", which nobody of the cluster has changed";
  return fmt::format(", which {} of warp {} lane {} ({}) has changed last",
                     ptx_name(change->instruction), change->thread / 32, change->thread % 32,
                     place_text(change->where));
}

ClusterLog GlobalRaces::finish() {
  ClusterLog log;
  if (!on_) return log;
  log.cluster = index_;
  log.rows = shadow_.rows(
      cluster_->ctas(), cluster_->cta(0).threads(),
      [&](std::uint32_t agent, std::uint32_t time) { return order_.cover(agent, time); },
      [&](void const* address) { return cluster_->cta(0).allocation(address); });
  log.sites = shadow_.sites();
  log.foreigns = order_.foreigns();
  log.seen = order_.seen();
  log.covers = order_.covers();
  log.acquires = order_.acquires();
  log.observed = order_.observed();
  return log;
}

}  // namespace tegula::sim
