#include "checker/global_shadow.hpp"

#include <algorithm>
#include <bit>

#include "checker/global_order.hpp"
#include "values/place.hpp"

namespace tegula::sim {

bool may_meet(GlobalSite const& one, GlobalSite const& other, Apart apart) {
  if (one.access == GlobalAccess::read && other.access == GlobalAccess::read) return true;
  if (!is_strong(one.instruction) || !is_strong(other.instruction))
    return one.access == GlobalAccess::atomic && other.access == GlobalAccess::atomic;
  return morally_strong(one.strength, other.strength, apart);
}

void GlobalShadow::Plane::clear() {
  if (first != nullptr) std::fill_n(first.get(), kWords, Record{0});
  if (second != nullptr) std::fill_n(second.get(), kWords, Record{0});
  rest.clear();
}

void GlobalShadow::Plane::reserve() {
  if (first == nullptr) first = std::make_unique<Record[]>(kWords);
}

void GlobalShadow::Plane::set(std::size_t word, std::vector<Record> const& records) {
  if (first == nullptr && records.empty()) return;
  reserve();
  if ((first[word] & kMore) != 0) {
    if (second != nullptr) second[word] = 0;
    rest.erase(word);
  }
  first[word] = records.empty() ? 0 : records[0];
  if (records.size() < 2) return;
  first[word] |= kMore;
  if (second == nullptr) second = std::make_unique<Record[]>(kWords);
  second[word] = records[1];
  if (records.size() > 2) rest[word].assign(records.begin() + 2, records.end());
}

void GlobalShadow::clear() {
  for (std::size_t i = 0; i < used_; ++i) {
    for (Plane Page::*const plane : kPlanes) (pool_[i].get()->*plane).clear();
  }
  used_ = 0;
  table_.clear();
  recent_pages_.fill(nullptr);
  sites_.clear();
  numbers_.clear();
  recent_sites_.fill(0);
  free_sites_.clear();
  full_ = false;
}

std::size_t GlobalShadow::memory() const {
  std::size_t bytes = 0;
  for (auto const& page : pool_) {
    for (Plane Page::*const of_page : kPlanes) {
      Plane const& plane = page.get()->*of_page;
      bytes += sizeof(Record) * kWords * ((plane.first != nullptr) + (plane.second != nullptr));
      for (auto const& [word, records] : plane.rest)
        bytes += 64 + sizeof(Record) * records.capacity();
    }
  }
  return bytes;
}

std::uint32_t GlobalShadow::site(SourceLocation where, Instruction instruction, GlobalAccess access,
                                 GlobalActor const& actor, Strength strength) {
  bool const of_cta = is_strong(instruction) && strength.scope == Scope::cta;
  auto const is_it = [&](GlobalSite const& s) {
    return s.where.line == where.line && s.where.file == where.file &&
           s.instruction == instruction && s.access == access && s.async == actor.async &&
           s.foreign == actor.foreign && s.seen == actor.seen && s.strength == strength &&
           (!of_cta || s.cta == actor.cta);
  };
  std::uint64_t hash = static_cast<std::uint64_t>(where.line) * 8 + static_cast<unsigned>(access);
  for (std::uint64_t const part : {static_cast<std::uint64_t>(instruction),
                                   std::uint64_t{actor.foreign}, std::uint64_t{actor.seen},
                                   static_cast<std::uint64_t>(strength.bytes) * 4 +
                                       static_cast<std::uint64_t>(strength.scope)})
    hash = hash * 1000003 + part;
  std::uint32_t& recent = recent_sites_[static_cast<std::size_t>((hash ^ hash >> 20) & 255)];
  if (recent != 0 && is_it(sites_[recent - 1])) return recent - 1;
  auto const [first, last] = numbers_.equal_range(hash);
  auto const known =
      std::find_if(first, last, [&](auto const& s) { return is_it(sites_[s.second]); });
  if (known != last) {
    recent = known->second + 1;
    return known->second;
  }
  if (sites_.size() == kMostSites && free_sites_.empty()) collect_sites();
  std::uint32_t number = static_cast<std::uint32_t>(sites_.size());
  if (!free_sites_.empty()) {
    number = free_sites_.back();
    free_sites_.pop_back();
  } else if (number == kMostSites) {
    return kNoSite;
  } else {
    sites_.emplace_back();
  }
  sites_[number] = {where,     instruction,  access,   actor.async, actor.foreign,
                    actor.cta, actor.thread, strength, actor.seen};
  numbers_.emplace(hash, number);
  recent_sites_[static_cast<std::size_t>((hash ^ hash >> 20) & 255)] = number + 1;
  return number;
}

void GlobalShadow::collect_sites() {
  if (full_) return;
  std::vector<bool> used(kMostSites, false);
  for (Page const* const page : pages_in_order()) {
    for (Plane Page::*const of_page : kPlanes) {
      for (std::size_t word = 0; (page->*of_page).first != nullptr && word < kWords; ++word)
        (page->*of_page).for_each(word, [&](Record r) { used[site_of(r)] = true; });
    }
  }
  std::erase_if(numbers_, [&](auto const& number) {
    if (used[number.second]) return false;
    free_sites_.push_back(number.second);
    return true;
  });
  recent_sites_.fill(0);
  full_ = free_sites_.size() < kMostSites / 8;
}

GlobalShadow::Record GlobalShadow::record(std::uint32_t site, std::uint32_t agent,
                                          std::uint32_t time) const {
  bool const atomic = sites_[site].access == GlobalAccess::atomic;
  return Record{std::min(time, kLastTime)} << 36 | Record{agent} << 22 | Record{atomic} << 21 |
         Record{site} << 5;
}

GlobalShadow::Page& GlobalShadow::page(std::uintptr_t number) {
  Page*& recent = recent_pages_[static_cast<std::size_t>(number * 0x9e3779b97f4a7c15ull >> 54)];
  if (recent != nullptr && recent->number == number) return *recent;
  Page*& known = table_[number];
  if (known == nullptr) {
    if (used_ == pool_.size()) pool_.push_back(std::make_unique<Page>());
    known = pool_[used_++].get();
    known->number = number;
  }
  return *(recent = known);
}

struct GlobalShadow::Pass {
  GlobalActor const& actor;
  GlobalAccess access;
  Record mine;  ///< without bytes
  std::vector<GlobalSite> const& sites;
  /// without bytes; the latest record that was found to be ordered before
  Record last_ordered = 0;
  Record last_replaced = 0;  ///< likewise: that this access takes the place of
  std::optional<GlobalConflict> conflict;

  bool ordered(Record r) {
    Record const key = without_bytes(r);
    if (key == last_ordered || key == mine) return true;
    std::uint32_t const agent = agent_of(r);
    if (agent == kNobody || !actor.causality->known(actor.knower, static_cast<int>(agent),
                                                    static_cast<Time>(time_of(r))))
      return false;
    last_ordered = key;
    return true;
  }
  /// Whether this access, which disturbs whatever the earlier one does, races with another
  /// cluster's wherever that one does. It comes after the earlier one, so that what releases it
  /// releases both. Both have acquired and seen the same. And other clusters' accesses need no more
  /// to come before the earlier one, or to meet it: a read by the asynchronous proxy needs a fence
  /// of the proxies, too, no order suits one through the read-only path, and a strong one of the
  /// same bytes and scope meets the same.
  bool replaces(Record r) {
    Record const key = without_bytes(r);
    if (key == last_replaced || key == mine) return true;
    if (!ordered(r)) return false;
    GlobalSite const& earlier = sites[site_of(r)];
    GlobalSite const& own = sites[site_of(mine)];
    auto const needs_fence = [](GlobalSite const& site) {
      return site.async && site.access == GlobalAccess::read && site.foreign != 0;
    };
    auto const meets_no_less = [&] {
      return is_strong(earlier.instruction) && own.strength.bytes == earlier.strength.bytes &&
             own.strength.scope <= earlier.strength.scope;
    };
    bool const replaced = earlier.foreign == own.foreign && earlier.seen == own.seen &&
                          (!needs_fence(earlier) || needs_fence(own)) &&
                          (!through_read_only_path(earlier) || through_read_only_path(own)) &&
                          (!is_strong(own.instruction) || meets_no_less());
    if (replaced) last_replaced = key;
    return replaced;
  }
  /// PTX ISA, "Causality Order": what a strong read has observed comes before what that read comes
  /// before, whatever else nobody releases. Whoever draws the last ticket may put the counter back
  /// by a plain store (CUDA's threadFenceReduction sample).
  bool seen(GlobalSite const& earlier, std::uintptr_t word_address, std::uint32_t bytes) const {
    if (actor.seen == 0 || !is_strong(earlier.instruction) || !strong_writes(earlier.instruction))
      return false;
    auto const first = static_cast<unsigned>(std::countr_zero(bytes));
    return actor.order->has_seen(actor, earlier, word_address + first,
                                 word_address + static_cast<unsigned>(std::bit_width(bytes)));
  }
  void check(Record r, std::uintptr_t word_address, std::uint32_t bytes) {
    std::uint32_t const both = bytes_of(r) & bytes;
    if (both == 0 || conflict) return;
    GlobalSite const& earlier = sites[site_of(r)];
    GlobalSite const& own = sites[site_of(mine)];
    bool const in_cta =
        is_strong(own.instruction) && static_cast<int>(agent_of(r)) / actor.threads == actor.cta;
    if (may_meet(earlier, own, in_cta ? Apart::in_cta : Apart::in_cluster)) return;
    std::uintptr_t const address = word_address + static_cast<unsigned>(std::countr_zero(both));
    if (through_read_only_path(earlier) || through_read_only_path(own)) {
      conflict = GlobalConflict{&earlier, agent_of(r), address, false, true};
      return;
    }
    bool const is_ordered = ordered(r) || seen(earlier, word_address, both);
    bool const through_fence = !actor.async || access != GlobalAccess::read || earlier.async ||
                               actor.causality->fenced(actor.knower, static_cast<int>(agent_of(r)),
                                                       static_cast<Time>(time_of(r)));
    if (is_ordered && through_fence) return;
    conflict = GlobalConflict{&earlier, agent_of(r), address, is_ordered, false};
  }
};

void GlobalShadow::keep_replaced(Page& page, std::size_t word) {
  if (replaced_.empty()) return;
  scratch_.clear();
  page.replaced.for_each(word, [&](Record r) {
    auto const again = std::find_if(replaced_.begin(), replaced_.end(), [&](Record other) {
      return without_bytes(other) == without_bytes(r);
    });
    if (again == replaced_.end()) {
      scratch_.push_back(r);
    } else {
      *again |= r & 15;
    }
  });
  scratch_.insert(scratch_.end(), replaced_.begin(), replaced_.end());
  if (scratch_.size() > kMostReplaced)
    scratch_.erase(scratch_.begin(), scratch_.end() - kMostReplaced);
  page.replaced.set(word, scratch_);
  replaced_.clear();
}

/// Within the cluster, a write takes the place of all that was done to its bytes before: what races
/// with that races with the write. Between clusters only where it replaces that, or races with it
/// itself, which was found.
void GlobalShadow::write_word(Page& page, std::size_t word, std::uint32_t bytes, Pass& pass) {
  std::uintptr_t const address = page.number * kPageBytes + 4 * word;
  for (Plane* const plane : {&page.writes, &page.shared}) {
    scratch_.clear();
    bool const writes = plane == &page.writes;
    bool merged = false;
    plane->for_each(word, [&](Record r) {
      pass.check(r, address, bytes);
      Record const left = r & ~Record{bytes};
      if ((bytes_of(r) & bytes) != 0 && pass.ordered(r) && !pass.replaces(r))
        replaced_.push_back(without_bytes(r) | (bytes_of(r) & bytes));
      if (bytes_of(left) == 0) return;
      if (writes && without_bytes(left) == pass.mine) {
        scratch_.push_back(left | bytes);
        merged = true;
      } else {
        scratch_.push_back(left);
      }
    });
    if (writes && !merged) scratch_.insert(scratch_.begin(), pass.mine | bytes);
    plane->set(word, scratch_);
  }
  keep_replaced(page, word);
}

/// A read, or an atomic, stands beside those of its kind that it is not ordered after.
void GlobalShadow::share_word(Page& page, std::size_t word, std::uint32_t bytes, Pass& pass) {
  std::uintptr_t const address = page.number * kPageBytes + 4 * word;
  page.writes.for_each(word, [&](Record r) { pass.check(r, address, bytes); });
  bool const atomic = pass.access == GlobalAccess::atomic;
  Plane& plane = page.shared;
  if (plane.first != nullptr && (plane.first[word] & kMore) != 0) {
    // Where many threads read a word each after the other, those that are superseded are looked for
    // when their number has doubled, not each time.
    auto const rest = plane.rest.find(word);
    if (rest != plane.rest.end() && rest->second.size() >= 16 &&
        !std::has_single_bit(rest->second.size())) {
      plane.for_each(word, [&](Record r) { pass.check(r, address, bytes); });
      rest->second.push_back(pass.mine | bytes);
      return;
    }
  }
  scratch_.clear();
  Record mine = pass.mine | bytes;
  plane.for_each(word, [&](Record r) {
    pass.check(r, address, bytes);
    if (is_atomic(r) != atomic) {
      scratch_.push_back(r);
    } else if (without_bytes(r) == pass.mine) {
      mine |= r & 15;
    } else if ((bytes_of(r) & ~bytes) != 0 || !pass.replaces(r)) {
      scratch_.push_back(r);
    }
  });
  scratch_.insert(scratch_.begin(), mine);
  plane.set(word, scratch_);
}

void GlobalShadow::note_word(Page& page, std::size_t word, std::uint32_t bytes, Pass& pass) {
  if (pass.access == GlobalAccess::write) {
    write_word(page, word, bytes, pass);
  } else {
    share_word(page, word, bytes, pass);
  }
}

std::optional<GlobalConflict> GlobalShadow::note(std::uintptr_t begin, std::size_t bytes,
                                                 std::uint32_t site, GlobalActor const& actor) {
  if (site == kNoSite) return {};
  GlobalAccess const access = sites_[site].access;
  Record const mine = record(site, actor.agent, actor.time);
  Pass pass{actor, access, mine, sites_, 0, 0, {}};
  for (std::uintptr_t const end = begin + bytes; begin != end;) {
    Page& page = this->page(begin / kPageBytes);
    std::uintptr_t const stop = std::min(end, (begin / kPageBytes + 1) * kPageBytes);
    std::size_t word = begin % kPageBytes / 4;
    if (begin % 4 != 0 || stop - begin < 4) {
      std::uintptr_t const next = std::min(stop, (begin / 4 + 1) * 4);
      note_word(page, word, ((1u << (next - begin)) - 1) << begin % 4, pass);
      begin = next;
      continue;
    }
    // Whole words, of which most were not touched before, or by somebody ordered before.
    Plane& own = access == GlobalAccess::write ? page.writes : page.shared;
    Plane const& other = access == GlobalAccess::write ? page.shared : page.writes;
    own.reserve();
    for (; stop - begin >= 4; begin += 4, ++word) {
      Record const old = own.first[word];
      if ((other.first == nullptr || other.first[word] == 0) &&
          (old == 0 ||
           ((old & (kMore | 15)) == 15 && is_atomic(old) == (access == GlobalAccess::atomic) &&
            pass.replaces(old)))) {
        own.first[word] = mine | 15;
      } else {
        note_word(page, word, 15, pass);
      }
    }
  }
  return pass.conflict;
}

void GlobalShadow::settle(std::uintptr_t begin, std::size_t bytes, std::uint32_t site,
                          std::uint32_t issued, GlobalActor const& actor) {
  if (site == kNoSite) return;
  Record const pending = record(site, kNobody, issued);
  Record const done = record(site, actor.agent, actor.time);
  auto const settled = [&](Record& r) {
    if (without_bytes(r) == pending && bytes_of(r) != 0) r = done | (r & (kMore | 15));
  };
  for (std::uintptr_t at = begin / 4 * 4; at < begin + bytes; at += 4) {
    Page& page = this->page(at / kPageBytes);
    Plane& plane = sites_[site].access == GlobalAccess::write ? page.writes : page.shared;
    std::size_t const word = at % kPageBytes / 4;
    if (plane.first == nullptr || plane.first[word] == 0) continue;
    settled(plane.first[word]);
    if ((plane.first[word] & kMore) == 0) continue;
    if (plane.second != nullptr) settled(plane.second[word]);
    auto const rest = plane.rest.find(word);
    if (rest == plane.rest.end()) continue;
    for (Record& r : rest->second) settled(r);
  }
}

GlobalSite const* GlobalShadow::last_change(std::uintptr_t address) const {
  auto const page = table_.find(address / kPageBytes);
  if (page == table_.end()) return nullptr;
  GlobalSite const* site = nullptr;
  for (Plane const* const plane : {&page->second->writes, &page->second->shared}) {
    plane->for_each(address % kPageBytes / 4, [&](Record r) {
      if ((bytes_of(r) >> address % 4 & 1) != 0 && sites_[site_of(r)].access != GlobalAccess::read)
        site = &sites_[site_of(r)];
    });
  }
  return site;
}

std::vector<GlobalShadow::Page const*> GlobalShadow::pages_in_order() const {
  std::vector<Page const*> pages;
  for (std::size_t i = 0; i < used_; ++i) pages.push_back(pool_[i].get());
  std::sort(pages.begin(), pages.end(),
            [](Page const* a, Page const* b) { return a->number < b->number; });
  return pages;
}

namespace {

/// Whether two rows differ in no more than where they lie, and in their lanes.
bool alike(GlobalRows const& a, GlobalRows const& b) {
  return a.site == b.site && a.cover == b.cover && a.warp == b.warp && a.cta == b.cta &&
         a.settled == b.settled;
}

void join_lanes(GlobalRows& rows, GlobalRows const& other) {
  if (rows.lane != other.lane) rows.lane = -1;
}

}  // namespace

void GlobalShadow::RowList::add(GlobalRows const& bytes) {
  if (run_.bytes != 0 && run_.begin + run_.bytes == bytes.begin && alike(run_, bytes)) {
    run_.bytes += bytes.bytes;
    join_lanes(run_, bytes);
    return;
  }
  // The last bytes once more, by another lane.
  if (bytes.begin >= run_.begin && bytes.begin + bytes.bytes == run_.begin + run_.bytes &&
      alike(run_, bytes)) {
    join_lanes(run_, bytes);
    return;
  }
  end_run();
  run_ = bytes;
}

void GlobalShadow::RowList::end_run() {
  if (run_.bytes == 0) return;
  GlobalRows const run = run_;
  run_.bytes = 0;
  std::size_t& latest =
      latest_[(run.site * 64 + static_cast<std::uint32_t>(run.cta * 16 + run.warp)) %
              latest_.size()];
  if (latest != kNone) {
    GlobalRows& rows = rows_[latest];
    bool const fits = rows.bytes == run.bytes && alike(rows, run);
    if (fits && rows.count == 1 && run.begin > rows.begin) rows.pitch = run.begin - rows.begin;
    if (fits && rows.pitch != 0 && run.begin == rows.begin + rows.pitch * rows.count) {
      ++rows.count;
      join_lanes(rows, run);
      return;
    }
  }
  latest = rows_.size();
  rows_.push_back(run);
}

void GlobalShadow::RowList::end_allocation() {
  end_run();
  latest_.fill(kNone);
}

std::vector<GlobalRows> GlobalShadow::RowList::take() {
  end_run();
  return std::move(rows_);
}

}  // namespace tegula::sim
