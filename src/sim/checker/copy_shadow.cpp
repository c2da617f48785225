#include "checker/copy_shadow.hpp"

#include <algorithm>

namespace tegula::sim {

namespace {

/// Copies by cp.async of a CTA that are told apart, at most; of others nothing is found.
constexpr std::size_t kMostGroups = 1 << 16;

}  // namespace

void CopyShadow::reset(std::size_t bytes) {
  words_ = bytes / 4 + 1;
  of_word_.clear();
  entries_.clear();
  free_.clear();
  last_part_ = 0;
  last_group_ = -1;
  groups_.clear();
  groups_by_line_.clear();
}

CopyShadow::Id CopyShadow::add(Copy const& copy) {
  if (of_word_.empty()) {
    of_word_.resize(words_);
    entries_.emplace_back();
  }
  Id id = static_cast<Id>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  entries_[id] = {.copy = copy};
  return id;
}

/// The parts of a line and a group's number; -1 where there are too many to tell apart.
std::int32_t CopyShadow::group_of(Copy const& part, std::uint32_t number) {
  if (last_group_ >= 0) {
    Group const& last = groups_[static_cast<std::size_t>(last_group_)];
    if (last.number == number && last.copy.where.line == part.where.line &&
        last.copy.where.file == part.where.file)
      return last_group_;
  }
  auto const found = groups_by_line_.find({number, part.where.line, part.where.file});
  if (found != groups_by_line_.end()) return last_group_ = found->second;
  if (groups_.size() >= kMostGroups) return -1;
  last_group_ = static_cast<std::int32_t>(groups_.size());
  groups_.push_back({.copy = part, .number = number, .by = {}});
  groups_by_line_.emplace(std::tuple(number, part.where.line, part.where.file), last_group_);
  return last_group_;
}

CopyShadow::Id CopyShadow::add_part(Copy const& part, std::uint32_t group) {
  std::int32_t const of = group_of(part, group);
  if (of < 0) {
    Id const alone = add(part);
    entries_[alone].read = true;
    return alone;
  }
  Copy& whole = groups_[static_cast<std::size_t>(of)].copy;
  whole.fetches |= part.fetches;
  if (part.offset < whole.offset) {
    whole.offset = part.offset;
    whole.thread = part.thread;
  }
  auto const same = [&](Entry const& entry) { return entry.words != 0 && entry.group == of; };
  if (last_part_ != 0 && same(entries_[last_part_])) return last_part_;
  auto const live = std::find_if(entries_.begin(), entries_.end(), same);
  if (live != entries_.end()) return last_part_ = static_cast<Id>(live - entries_.begin());
  last_part_ = add(part);
  entries_[last_part_].group = of;
  return last_part_;
}

/// Nothing is left of a copy: whether it was lost, and is told of now.
bool CopyShadow::is_lost(Entry const& entry, Overwrite const& by) {
  if (entry.read || by.instruction == Instruction::none) return false;
  if (entry.group < 0) return entry.copy.fetches;
  Group& group = groups_[static_cast<std::size_t>(entry.group)];
  if (group.by.instruction == Instruction::none) group.by = by;
  return false;
}

void CopyShadow::release(Id id) {
  Entry const& entry = entries_[id];
  if (entry.group >= 0 && entry.read) groups_[static_cast<std::size_t>(entry.group)].read = true;
  free_.push_back(id);
}

void CopyShadow::write(std::uint32_t offset, std::uint32_t n) {
  if (of_word_.empty()) return;
  std::uint32_t const end = offset + n;
  for (std::uint32_t word = offset / 4; 4 * word < end; ++word) {
    Id const before = of_word_[word];
    if (before == 0) continue;
    Entry& entry = entries_[before];
    if (4 * word < offset || 4 * word + 4 > end) entry.read = true;
    of_word_[word] = 0;
    if (--entry.words == 0) release(before);
  }
}

}  // namespace tegula::sim
