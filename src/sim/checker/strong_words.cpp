#include "checker/strong_words.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace tegula::sim {

bool StrongWords::observed(Word const& word, int thread, Access const& access) const {
  return access.write != 0 &&
         std::any_of(word.by.begin(), word.by.end(), [&](Access const& reader) {
           return reader.read != 0 && (reader.bytes & access.bytes) != 0 &&
                  reader.first <= access.write && access.write <= reader.last &&
                  causality_.known(thread, reader.agent, reader.read);
         });
}

/// Forgets those who did nothing but what happens before what the thread does now: whoever comes
/// after this comes after that.
void StrongWords::forget_known(Word& word, int thread) const {
  std::erase_if(word.by, [&](Access const& access) {
    return access.agent != thread &&
           causality_.known(thread, access.agent, std::max(access.wrote, access.read));
  });
}

void StrongWords::note(std::uint32_t at, std::uint32_t bytes, Stamp const& stamp, Effect effect,
                       Stamps const& under) {
  auto const [time, agent, site] = stamp;
  bool const may_write = strong_writes(sites_[site].instruction);
  auto const found = words_.find(at);
  if (found == words_.end() && !may_write) return;  // there is nothing to observe
  Word& word = found == words_.end() ? words_[at] : found->second;
  std::uint32_t const number = ++word.accesses;
  bool goes_on = effect.reads || effect.modifies;
  std::uint32_t store = number;
  for (std::size_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) == 0) continue;
    goes_on = goes_on && word.last[b].site != 0 && meet(site, word.last[b].site);
    store = std::min(store, word.last[b].store);
  }
  // Looked for when their number has doubled, not each time.
  if (may_write && agent < causality_.threads() && word.by.size() >= 64 &&
      std::has_single_bit(word.by.size()))
    forget_known(word, agent);
  Access const mine{.agent = agent, .site = site, .bytes = static_cast<std::uint16_t>(bytes)};
  auto const key = [](Access const& access) {
    return std::tuple(access.agent, access.site, access.bytes);
  };
  auto own = std::lower_bound(word.by.begin(), word.by.end(), mine,
                              [&](Access const& a, Access const& b) { return key(a) < key(b); });
  if (own == word.by.end() || key(*own) != key(mine)) own = word.by.insert(own, mine);
  if (goes_on && effect.reads) {
    own->read = time;
    own->first = store;
    own->last = number;
  }
  if (!may_write) return;
  word.under = under;
  own->wrote = time;
  own->write = effect.writes ? number : 0;
  if (!effect.writes) return;
  for (std::size_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) == 0) continue;
    word.last[b].site = site;
    if (!goes_on) word.last[b].store = number;
  }
}

std::size_t StrongWords::bytes() const {
  std::size_t all = 0;
  for (auto const& [at, word] : words_)
    all += sizeof(Word) + 2 * sizeof(void*) + word.by.capacity() * sizeof(Access);
  return all;
}

}  // namespace tegula::sim
