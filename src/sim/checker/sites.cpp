#include "checker/sites.hpp"

#include <fmt/format.h>

#include "values/place.hpp"

namespace tegula::sim {

namespace {

std::uint64_t key_of(Site const& site) {
  return static_cast<std::uint64_t>(site.where.line) << 8 |
         static_cast<std::uint64_t>(site.instruction);
}

}  // namespace

std::string meeting_text(Site const& one, Site const& other, char const* wide) {
  if (!is_strong(one.instruction) || !is_strong(other.instruction)) return "";
  if (one.strength.bytes != other.strength.bytes)
    return fmt::format("one size in the place of {} and {} bytes would let them meet",
                       one.strength.bytes, other.strength.bytes);
  Site const& narrow = one.strength.scope <= other.strength.scope ? one : other;
  return fmt::format(
      "{} for the {} at {}, whose scope leaves the other CTA out, would let them meet", wide,
      ptx_name(narrow.instruction), place_text(narrow.where));
}

SiteTable::SiteTable() { sites_.push_back({}); }

std::uint16_t SiteTable::find(Site const& site) {
  auto const [first, last] = numbers_.equal_range(key_of(site));
  for (auto it = first; it != last; ++it) {
    Site const& known = sites_[it->second];
    if (known.where.file == site.where.file && known.strength == site.strength &&
        known.cta == site.cta)
      return it->second;
  }
  if (sites_.size() > 0xffff) return 0xffff;
  auto const number = static_cast<std::uint16_t>(sites_.size());
  sites_.push_back(site);
  numbers_.emplace(key_of(site), number);
  return number;
}

}  // namespace tegula::sim
