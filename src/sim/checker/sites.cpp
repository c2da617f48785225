#include "checker/sites.hpp"

namespace tegula::sim {

namespace {

std::uint64_t key_of(Instruction instruction, SourceLocation where) {
  return static_cast<std::uint64_t>(where.line) << 8 | static_cast<std::uint64_t>(instruction);
}

}  // namespace

SiteTable::SiteTable() { sites_.push_back({}); }

std::uint16_t SiteTable::find(Instruction instruction, SourceLocation where) {
  auto const [first, last] = numbers_.equal_range(key_of(instruction, where));
  for (auto it = first; it != last; ++it) {
    if (sites_[it->second].where.file == where.file) return it->second;
  }
  if (sites_.size() > 0xffff) return 0xffff;
  auto const number = static_cast<std::uint16_t>(sites_.size());
  sites_.push_back({where, instruction});
  numbers_.emplace(key_of(instruction, where), number);
  return number;
}

}  // namespace tegula::sim
