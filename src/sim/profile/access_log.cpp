#include "profile/access_log.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tegula::sim {

void AccessLog::append(Instruction instruction, SourceLocation where, int shared_bytes) {
  if (used_ == records_.size()) records_.resize(records_.size() + 64);
  Record& record = records_[used_++];
  record.site = {where, instruction, static_cast<std::uint8_t>(shared_bytes)};
  record.lanes = 0;
  record.global_lanes = 0;
}

void AccessLog::stray(std::uint32_t i, int lane, Instruction instruction, SourceLocation where,
                      int shared_bytes) {
  strays_.push_back({i, lane, {where, instruction, static_cast<std::uint8_t>(shared_bytes)}});
}

void AccessLog::clear() {
  used_ = 0;
  std::fill(std::begin(counts_), std::end(counts_), 0u);
  strays_.clear();
}

void AccessLog::align() {
  // Sites as numbers.
  sites_.clear();
  std::size_t latest = 0;
  auto const number = [&](Site const& site) {
    // Mostly it is the one that came after the latest, the last time.
    for (std::size_t i = 1; i <= sites_.size(); ++i) {
      std::size_t const at = (latest + i) % sites_.size();
      if (sites_[at] == site) return static_cast<std::uint32_t>(latest = at);
    }
    latest = sites_.size();
    sites_.push_back(site);
    return static_cast<std::uint32_t>(latest);
  };
  sequences_.resize(32 * used_);
  for (std::size_t i = 0; i < used_; ++i) {
    std::uint32_t const site = number(records_[i].site);
    for (std::uint32_t lanes = records_[i].lanes; lanes != 0; lanes &= lanes - 1)
      sequences_[static_cast<std::size_t>(std::countr_zero(lanes)) * used_ + i] = site;
  }
  for (Stray const& stray : strays_)
    sequences_[static_cast<std::size_t>(stray.lane) * used_ + stray.i] = number(stray.site);

  // Those that do the most first, as the whole of which others leave out a part.
  path_count_ = 0;
  for (int lane = 0; lane < 32; ++lane) {
    Path* const end = paths_ + path_count_;
    Path* const same = std::find_if(paths_, end, [&](Path const& path) {
      return std::ranges::equal(sequence(path.lane), sequence(lane));
    });
    if (same == end) paths_[path_count_++] = {lane, 0, 0};
    same->lanes |= 1u << lane;
  }
  std::sort(paths_, paths_ + path_count_, [&](Path const& a, Path const& b) {
    return counts_[a.lane] != counts_[b.lane] ? counts_[a.lane] > counts_[b.lane] : a.lane < b.lane;
  });
  places_.resize(32 * used_);
  std::span<std::uint32_t const> const most = sequence(paths_[0].lane);
  merged_.assign(most.begin(), most.end());
  std::iota(places(paths_[0]).begin(), places(paths_[0]).end(), 0u);
  for (int p = 1; p < path_count_; ++p) {
    sim::align(merged_, sequence(paths_[p].lane), alignment_);
    for (int q = 0; q < p; ++q) {
      for (std::uint32_t& place : places(paths_[q])) place = alignment_.first[place];
    }
    std::ranges::copy(alignment_.second, places(paths_[p]).begin());
    merged_.swap(alignment_.merged);
  }
}

AccessLog::Record const& AccessLog::gather(std::uint32_t i) {
  gathered_.site = sites_[merged_[i]];
  gathered_.lanes = 0;
  gathered_.global_lanes = 0;
  for (Path& path : std::span(paths_, static_cast<std::size_t>(path_count_))) {
    std::span<std::uint32_t const> const at = places(path);
    if (path.gathered == at.size() || at[path.gathered] != i) continue;
    Record const& from = records_[path.gathered++];
    gathered_.lanes |= path.lanes;
    gathered_.global_lanes |= path.lanes & from.global_lanes;
    for (std::uint32_t lanes = path.lanes; lanes != 0; lanes &= lanes - 1) {
      int const lane = std::countr_zero(lanes);
      gathered_.shared[lane] = from.shared[lane];
      gathered_.global[lane] = from.global[lane];
      gathered_.global_bytes[lane] = from.global_bytes[lane];
    }
  }
  return gathered_;
}

AccessUse count_access(CounterTable& counters, AccessLog::Record const& record) {
  AccessUse use;
  LineCounters& line = counters.at(record.site.where, record.site.instruction);
  line.instructions += 1;
  if (record.site.shared_bytes != 0) {
    use.banks = bank_use(record.shared, record.lanes, record.site.shared_bytes);
    line.shared_bytes += std::popcount(record.lanes) * record.site.shared_bytes;
    line.shared_wavefronts += use.banks.wavefronts;
    line.bank_conflicts += use.banks.wavefronts - use.banks.minimum;
  }
  if (record.global_lanes != 0) {
    int bytes = 0;
    for (std::uint32_t lanes = record.global_lanes; lanes != 0; lanes &= lanes - 1)
      bytes += record.global_bytes[std::countr_zero(lanes)];
    int const lanes = std::popcount(record.global_lanes);
    use.global_bytes = (bytes + lanes - 1) / lanes;
    use.sectors = sector_use(record.global, record.global_lanes, use.global_bytes);
    line.global_bytes += bytes;
    line.global_sectors += use.sectors.touched;
  }
  return use;
}

void align(std::span<std::uint32_t const> first, std::span<std::uint32_t const> second,
           Alignment& result, std::size_t window) {
  result.merged.clear();
  result.first.clear();
  result.second.clear();
  auto const put = [&](bool of_first, bool of_second) {
    std::uint32_t const place = static_cast<std::uint32_t>(result.merged.size());
    result.merged.push_back(of_first ? first[result.first.size()] : second[result.second.size()]);
    if (of_first) result.first.push_back(place);
    if (of_second) result.second.push_back(place);
  };
  while (result.first.size() < first.size() && result.second.size() < second.size()) {
    std::span<std::uint32_t const> const a = first.subspan(result.first.size());
    std::span<std::uint32_t const> const b = second.subspan(result.second.size());
    if (a[0] == b[0]) {
      put(true, true);
      continue;
    }
    // table[i][j]: how many fall together of what follows a[i] and b[j] within the window (the
    // longest common subsequence: Wagner and Fischer, "The string-to-string correction
    // problem", 1974).
    std::size_t const height = std::min(a.size(), window), width = std::min(b.size(), window);
    result.table.assign((height + 1) * (width + 1), 0);
    auto const at = [&](std::size_t i, std::size_t j) -> std::uint16_t& {
      return result.table[i * (width + 1) + j];
    };
    for (std::size_t i = height; i-- > 0;) {
      for (std::size_t j = width; j-- > 0;) {
        at(i, j) = a[i] == b[j] ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1)
                                : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    // Where the sequences go on beyond the window, its second half is looked at again with
    // what follows.
    std::size_t const end_a = height < a.size() ? (height + 1) / 2 : height;
    std::size_t const end_b = width < b.size() ? (width + 1) / 2 : width;
    for (std::size_t i = 0, j = 0; i < end_a && j < end_b;) {
      bool const both = a[i] == b[j];
      bool const of_a = both || at(i + 1, j) >= at(i, j + 1);
      put(of_a, both || !of_a);
      i += of_a;
      j += both || !of_a;
    }
  }
  while (result.first.size() < first.size()) put(true, false);
  while (result.second.size() < second.size()) put(false, true);
}

}  // namespace tegula::sim
