#include "checker/global_conflicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "values/place.hpp"

namespace tegula::sim {

namespace {

/// "the fence at a.hpp:7"
std::string the(Site const& site) {
  return fmt::format("the {} at {}", ptx_name(site.instruction), place_text(site.where));
}

}  // namespace

char const* verb(GlobalAccess access, Instruction instruction) {
  if (access == GlobalAccess::read) return "reads";
  if (access == GlobalAccess::write) return "writes";
  if (!is_strong(instruction)) return "combines with";
  return strong_reads(instruction) ? "changes" : "writes";
}

namespace {

/// One piece of some cluster's rows.
struct Piece {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::uint32_t log;
  GlobalRows const* rows;
};

/// Two lines whose accesses to one allocation race, and the first pair of clusters that shows it.
struct Race {
  Piece earlier;  ///< of the cluster with the smaller index
  Piece later;
  std::uintptr_t address;
  std::int64_t count = 0;
  enum class Lacks : std::uint8_t { order, proxy_fence, coherence } lacks = Lacks::order;
  /// Of what else was found on the lines, a pair for each that other releases and acquires reach.
  std::vector<std::pair<Piece, Piece>> others = {};
};

/// Pairs that are kept of a race, at most.
constexpr std::size_t kMostOthers = 8;

class Search {
 public:
  Search(std::vector<ClusterLog> const& logs, GlobalOrder const& order)
      : logs_(logs), order_(order) {}

  /// Looks for races in the rows that lie in one allocation; `atomics_meet`: any two atomics do.
  void look(std::vector<std::pair<std::uint32_t, GlobalRows const*>> const& rows,
            bool atomics_meet) {
    std::vector<Piece> pieces;
    for (auto const& [log, r] : rows) {
      for (std::uint64_t i = 0; i < r->count; ++i) {
        std::uintptr_t const begin = r->begin + i * r->pitch;
        pieces.push_back({begin, begin + r->bytes, log, r});
      }
    }
    std::sort(pieces.begin(), pieces.end(), [](Piece const& a, Piece const& b) {
      return std::tuple(a.begin, a.log, a.rows) < std::tuple(b.begin, b.log, b.rows);
    });
    std::vector<Piece> open[3];  // by GlobalAccess: those that begin earlier and have not ended
    for (Piece const& piece : pieces) {
      GlobalAccess const access = site(piece).access;
      for (GlobalAccess const other :
           {GlobalAccess::read, GlobalAccess::write, GlobalAccess::atomic}) {
        std::vector<Piece>& candidates = open[static_cast<int>(other)];
        if (other == access &&
            (access == GlobalAccess::read || (access == GlobalAccess::atomic && atomics_meet)))
          continue;
        std::erase_if(candidates, [&](Piece const& p) { return p.end <= piece.begin; });
        for (Piece const& candidate : candidates) {
          if (candidate.log < piece.log) meet(candidate, piece, piece.begin);
          if (candidate.log > piece.log) meet(piece, candidate, piece.begin);
        }
      }
      std::vector<Piece>& own = open[static_cast<int>(access)];
      if (own.size() % 64 == 63)
        std::erase_if(own, [&](Piece const& p) { return p.end <= piece.begin; });
      own.push_back(piece);
    }
  }

  std::vector<Race> take() {
    std::vector<Race> races;
    for (auto& [key, race] : races_) races.push_back(race);
    races_.clear();
    return races;
  }
  GlobalSite const& site(Piece const& piece) const {
    return logs_[piece.log].sites[piece.rows->site];
  }

 private:
  using Place = std::pair<std::string_view, int>;
  Place place(Piece const& piece) const {
    SourceLocation const& where = site(piece).where;
    return {where.file, where.line};
  }
  std::tuple<std::uint32_t, std::uint32_t, std::uintptr_t> rank(Race const& race) const {
    return {race.earlier.log, race.later.log, race.address};
  }

  bool ordered(Piece const& earlier, Piece const& later, bool fenced) {
    std::uint32_t const cover = earlier.rows->cover, foreign = site(later).foreign;
    if (cover == 0 || foreign == 0) return false;
    std::uint64_t const pair = (std::uint64_t{earlier.log} * logs_.size() + later.log) * 2 + fenced;
    auto const [known, is_new] =
        reaches_[pair].try_emplace(std::uint64_t{cover} << 32 | foreign, false);
    if (is_new)
      known->second = order_.reaches(logs_[later.log].foreigns[foreign],
                                     logs_[earlier.log].covers[cover], fenced);
    return known->second;
  }

  void note_other(Race& race, Piece const& earlier, Piece const& later) const {
    auto const key = [&](Piece const& one, Piece const& other) {
      return std::tuple(one.log, one.rows->cta, one.rows->cover, one.rows->settled, other.log,
                        other.rows->cta, site(other).foreign);
    };
    auto const known = [&](auto const& pair) {
      return key(pair.first, pair.second) == key(earlier, later);
    };
    if (race.others.size() < kMostOthers &&
        std::none_of(race.others.begin(), race.others.end(), known))
      race.others.emplace_back(earlier, later);
  }

  /// Whether the one comes before the other; notes it where the fence between the proxies lacks all
  /// the same.
  bool comes_before(Piece const& earlier, Piece const& later, Race::Lacks& lacks) {
    if (!ordered(earlier, later, false)) return false;
    // The asynchronous proxy reads what was written through the generic one.
    if (!site(earlier).async && site(later).async && site(later).access == GlobalAccess::read &&
        !ordered(earlier, later, true))
      lacks = Race::Lacks::proxy_fence;
    return true;
  }

  /// Whether one that is not strong comes after a strong write that a read before it has seen.
  bool has_seen(Piece const& write, Piece const& other, std::uintptr_t address) const {
    GlobalSite const& one = site(write);
    std::uint32_t const seen = site(other).seen;
    return seen != 0 && is_strong(one.instruction) && strong_writes(one.instruction) &&
           order_.seen(logs_[other.log].seen[seen], logs_[write.log].cluster, one.foreign, address,
                       std::min(write.end, other.end), one.strength.bytes);
  }

  void meet(Piece const& earlier, Piece const& later, std::uintptr_t address) {
    GlobalSite const& one = site(earlier);
    GlobalSite const& other = site(later);
    if (may_meet(one, other, Apart::beyond)) return;
    Race race{earlier, later, address, 1};
    if (through_read_only_path(one) || through_read_only_path(other)) {
      race.lacks = Race::Lacks::coherence;
    } else {
      // Clusters that run together may come after each other both ways.
      bool const in_order = comes_before(earlier, later, race.lacks) ||
                            comes_before(later, earlier, race.lacks) ||
                            has_seen(earlier, later, address) || has_seen(later, earlier, address);
      if (in_order && race.lacks == Race::Lacks::order) return;
    }
    Place const a = place(earlier);
    Place const b = place(later);
    auto const [known, is_new] =
        races_.try_emplace(std::pair(std::min(a, b), std::max(a, b)), race);
    if (is_new) return;
    Race& first = known->second;
    note_other(first, earlier, later);
    std::int64_t const count = first.count + 1;
    if (rank(race) < rank(first)) {
      note_other(first, first.earlier, first.later);
      race.others = std::move(first.others);
      first = race;
    }
    first.count = count;
  }

  std::vector<ClusterLog> const& logs_;
  GlobalOrder const& order_;
  std::map<std::pair<Place, Place>, Race> races_;
  /// By pair of logs, and whether fenced: by cover and foreign.
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, bool>> reaches_;
};

/// The thread that made the access, by its index in the CTA; -1: several lanes of a warp did.
int thread_of(GlobalRows const& rows) { return rows.lane < 0 ? -1 : 32 * rows.warp + rows.lane; }

/// What is missing between the first access and a release of its CTA that does not cover it.
std::string before_release(ClusterLog const& from, GlobalOrder const& order, GlobalRows const& rows,
                           Releases const& of_cta) {
  int const thread = thread_of(rows);
  auto const own = std::find_if(of_cta.all.begin(), of_cta.all.end(), [&](std::uint32_t id) {
    return order.release(id).thread == thread;
  });
  Release const& release = order.release(own != of_cta.all.end() ? *own : of_cta.all.front());
  bool const same = release.thread == thread;
  if (from.sites[rows.site].async)
    return fmt::format(
        "a bulk_wait_group<0> by warp {} lane {}, which issued the first access,{} "
        "before {}",
        rows.warp, rows.lane, same ? "" : " and then a cta::sync,", the(release.by));
  if (!same) return fmt::format("a cta::sync between the first access and {}", the(release.by));
  if (release.by.instruction != Instruction::fence)
    return fmt::format("the first access, which follows {}, before that", the(release.by));
  return fmt::format(
      "a fence_acq_rel<Scope::gpu> between the first access, which follows {}, and "
      "the atomic after it",
      the(release.by));
}

/// What is missing between an acquire of the second access's CTA and that access, which does not
/// come after it. In the acquire's own thread it comes before it.
std::string after_acquire(ClusterLog const& to, GlobalOrder const& order, GlobalRows const& rows,
                          ClusterOrder::Acquire const& acquire) {
  bool const same_warp = acquire.thread / 32 == rows.warp;
  if (!same_warp || (rows.lane >= 0 && thread_of(rows) != acquire.thread))
    return fmt::format("a cta::sync between {} and the second access", the(acquire.by));
  std::string text = fmt::format("the second access behind {}", the(acquire.by));
  if (rows.lane < 0) text += " and a warp::sync";
  if (acquire.by.instruction != Instruction::fence) return text;
  auto const seen = std::find_if(
      to.observed.begin(), to.observed.end(), [&](ClusterOrder::Observed const& observed) {
        return observed.cta == acquire.cta && observed.thread == acquire.thread &&
               order.reaches({acquire.releases, {}}, {{observed.release}, {}});
      });
  if (seen == to.observed.end()) return text;
  return fmt::format("{}, or a fence_acq_rel<Scope::gpu> between {} and it,", text, the(seen->by));
}

/// What would order the two. Where a release and an acquire lead from the one CTA to the other,
/// what lacks is a barrier between them and the accesses; where nobody acquires what was observed,
/// a fence.
std::string order_text(std::vector<ClusterLog> const& logs, GlobalOrder const& order,
                       Race const& race) {
  ClusterLog const& from = logs[race.earlier.log];
  ClusterLog const& to = logs[race.later.log];
  std::string const scope = "fence_acq_rel<Scope::gpu>";
  std::string const waited =
      race.earlier.rows->settled
          ? ""
          : fmt::format(
                "a bulk_wait_group<0>, after the bulk_commit_group, by warp {} lane {}, which issued it",
                race.earlier.rows->warp, race.earlier.rows->lane);
  Releases of_cta;  // by the earlier access's CTA
  for (std::uint32_t id = 0; id < order.releases(); ++id) {
    Release const& release = order.release(id);
    if (release.cluster == from.cluster && release.cta == race.earlier.rows->cta && !release.of_cta)
      of_cta.all.push_back(id);
  }
  for (ClusterOrder::Acquire const& acquire : to.acquires) {
    if (acquire.cta != race.later.rows->cta || !order.reaches({acquire.releases, {}}, of_cta))
      continue;
    std::string const release = the(order.release(of_cta.all.front()).by);
    if (!waited.empty()) return fmt::format("{}, before {} would order them", waited, release);
    bool covered = true, known = true;
    auto const look = [&](Piece const& one, Piece const& other) {
      if (one.log != race.earlier.log || other.log != race.later.log ||
          one.rows->cta != race.earlier.rows->cta || other.rows->cta != race.later.rows->cta)
        return;
      covered &= one.rows->cover != 0 &&
                 order.reaches({acquire.releases, {}}, from.covers[one.rows->cover]);
      known &= order.reaches(to.foreigns[to.sites[other.rows->site].foreign], of_cta);
    };
    look(race.earlier, race.later);
    for (auto const& [one, other] : race.others) look(one, other);
    std::string text;
    if (!covered) text = before_release(from, order, *race.earlier.rows, of_cta);
    if (!known)
      text += (text.empty() ? "" : ", and ") + after_acquire(to, order, *race.later.rows, acquire);
    if (!text.empty()) return text + " would order them";
  }
  for (ClusterOrder::Observed const& seen : to.observed) {
    if (seen.cta != race.later.rows->cta || !order.reaches({{seen.release}, {}}, of_cta)) continue;
    std::string text = waited.empty() ? "" : waited + ", and ";
    if (waited.empty() &&
        (race.earlier.rows->cover == 0 ||
         !order.reaches({{seen.release}, {}}, from.covers[race.earlier.rows->cover])))
      text = before_release(from, order, *race.earlier.rows, of_cta) + ", and ";
    return text + (seen.thread == thread_of(*race.later.rows)
                       ? fmt::format("a {} between {} and the second access would order them",
                                     scope, the(seen.by))
                       : fmt::format("a {} after {}, before the barrier that lets the others go "
                                     "on, would order them",
                                     scope, the(seen.by)));
  }
  return fmt::format(
      "{}a {} and then an atomic by the first, an atomic that sees that one's and then such a fence by the second, "
      "or two launches, would order them",
      waited.empty() ? "" : waited + ", ", scope);
}

std::string other_text(Finding const& f) {
  std::string const lane = f.other_lane < 0 ? "" : fmt::format(", lane {}", f.other_lane);
  return fmt::format("CTA ({}, {}, {}), warp {}{}", f.other_cta->x, f.other_cta->y, f.other_cta->z,
                     f.other_warp, lane);
}

}  // namespace

std::vector<Finding> conflicts_between_clusters(
    std::vector<ClusterLog> const& logs, GlobalOrder const& order,
    AllocationTable const& allocations, std::function<Dim3(std::int64_t, int)> const& cta_of) {
  struct Touched {
    std::vector<std::pair<std::uint32_t, GlobalRows const*>> rows;
    bool by_access[3] = {};
    bool by_several = false;
    std::optional<Strength> strength;  ///< of the strong accesses
    bool all_meet = true;              ///< any two of those
  };
  std::map<std::uintptr_t, Touched> touched;  // by the allocation's address
  for (std::uint32_t log = 0; log < logs.size(); ++log) {
    for (GlobalRows const& rows : logs[log].rows) {
      Allocation const* const memory = find(allocations, reinterpret_cast<void const*>(rows.begin));
      if (memory == nullptr) continue;
      Touched& t = touched[reinterpret_cast<std::uintptr_t>(memory->base)];
      t.by_several |= !t.rows.empty() && t.rows.front().first != log;
      GlobalSite const& site = logs[log].sites[rows.site];
      t.by_access[static_cast<int>(site.access)] = true;
      if (is_strong(site.instruction)) {
        if (!t.strength) t.strength = site.strength;
        t.all_meet &=
            reaches_clusters(site.strength.scope) && site.strength.bytes == t.strength->bytes;
      }
      t.rows.emplace_back(log, &rows);
    }
  }
  // By the pair of clusters, then by name and line: addresses are the host's to choose.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::string, std::string, int, int>;
  std::map<Key, Finding> findings;
  Search search(logs, order);
  for (auto const& [base, t] : touched) {
    auto const [reads, writes, atomics] = t.by_access;
    if (!t.by_several || !(writes || (atomics && (reads || !t.all_meet)))) continue;
    search.look(t.rows, t.all_meet);
    Allocation const& memory = *find(allocations, reinterpret_cast<void const*>(base));
    for (Race const& race : search.take()) {
      GlobalSite const& later = search.site(race.later);
      GlobalSite const& earlier = search.site(race.earlier);
      Finding f;
      f.kind = FindingKind::data_race;
      f.reach = Finding::Reach::grid;
      f.where = later.where;
      f.cta = cta_of(logs[race.later.log].cluster, race.later.rows->cta);
      f.warp = race.later.rows->warp;
      f.lane = race.later.rows->lane;
      f.other = earlier.where;
      f.other_cta = cta_of(logs[race.earlier.log].cluster, race.earlier.rows->cta);
      f.other_warp = race.earlier.rows->warp;
      f.other_lane = race.earlier.rows->lane;
      f.buffer = memory.name;
      f.coordinate = memory.place(race.address - base);
      f.count = race.count;
      f.message = fmt::format("{} {} {}, which {} of {} {}", ptx_name(later.instruction),
                              verb(later.access, later.instruction), f.coordinate,
                              ptx_name(earlier.instruction), other_text(f),
                              verb(earlier.access, earlier.instruction));
      if (!same_place(f.where, f.other)) f.message += fmt::format(" ({})", place_text(f.other));
      std::string const meeting = meeting_text(as_site(earlier), as_site(later), "Scope::gpu");
      if (race.lacks == Race::Lacks::coherence) {
        f.message += ": the read-only path need not see what the launch writes";
        f.order =
            "an ld_global in the place of the ld_global_nc, and fences and atomics between the two, or two launches, "
            "would order them";
      } else if (race.lacks == Race::Lacks::proxy_fence) {
        f.kind = FindingKind::proxy_race;
        f.message += " through the generic proxy, with no fence.proxy.async after that";
        f.order =
            "a fence_proxy_async by the first after the write and before its fence and atomic, or by the second "
            "after its atomic and fence, would order them";
      } else {
        f.message += ", with nothing between the two CTAs that orders them";
        f.order = meeting.empty() ? order_text(logs, order, race) : meeting;
      }
      for (GlobalOrder::TooNarrow const& narrow : order.too_narrow()) {
        if (narrow.released != logs[race.earlier.log].cluster ||
            narrow.acquired != logs[race.later.log].cluster || !meeting.empty())
          continue;
        f.order += fmt::format("; {} orders for its own {} alone", the(narrow.by),
                               narrow.by.strength.scope == Scope::cluster ? "cluster" : "CTA");
        break;
      }
      Key key(race.earlier.log, race.later.log, f.buffer, f.where.file, f.where.line, f.other.line);
      findings.emplace(std::move(key), std::move(f));
    }
  }
  std::vector<Finding> in_order;
  for (auto& [key, finding] : findings) in_order.push_back(std::move(finding));
  return in_order;
}

}  // namespace tegula::sim
