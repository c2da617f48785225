#include "access_log.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tegula::sim {

void AccessLog::append(Site const& site) {
  if (used_ == records_.size()) records_.resize(records_.size() + 64);
  Record& record = records_[used_++];
  record.site = site;
  record.lanes = 0;
  std::fill(std::begin(record.global_bytes), std::end(record.global_bytes), std::uint8_t{0});
}

void AccessLog::clear() {
  used_ = 0;
  std::fill(std::begin(counts_), std::end(counts_), 0u);
  strays_.clear();
}

std::span<AccessLog::Record const> AccessLog::instructions() {
  // Mostly all lanes do the same, or some end earlier: what they do i-th are then the warp's instructions.
  if (strays_.empty()) return {records_.data(), used_};
  align();
  return aligned_;
}

void AccessLog::align() {
  std::vector<Site> sites;
  std::size_t latest = 0;
  auto const number = [&](Site const& site) {
    // Mostly it is the one that came after the latest, the last time.
    for (std::size_t i = 1; i <= sites.size(); ++i) {
      std::size_t const at = (latest + i) % sites.size();
      if (sites[at] == site) return static_cast<std::uint32_t>(latest = at);
    }
    latest = sites.size();
    sites.push_back(site);
    return static_cast<std::uint32_t>(latest);
  };
  std::vector<std::uint32_t> sequences[32];
  for (std::size_t i = 0; i < used_; ++i) {
    std::uint32_t const site = number(records_[i].site);
    for (std::uint32_t lanes = records_[i].lanes; lanes != 0; lanes &= lanes - 1)
      sequences[std::countr_zero(lanes)].push_back(site);
  }
  for (Stray const& stray : strays_) sequences[stray.lane][stray.i] = number(stray.site);

  // The lanes that do the same, by the first of them; those that do the most first, as the whole of which
  // others leave out a part.
  struct Path {
    int lane;
    std::uint32_t lanes;
    std::vector<std::uint32_t> places;  ///< in `merged`
  };
  std::vector<Path> paths;
  for (int lane = 0; lane < 32; ++lane) {
    auto const same = std::find_if(paths.begin(), paths.end(),
                                   [&](Path const& path) { return sequences[path.lane] == sequences[lane]; });
    if (same != paths.end()) {
      same->lanes |= 1u << lane;
    } else {
      paths.push_back({lane, 1u << lane, {}});
    }
  }
  std::stable_sort(paths.begin(), paths.end(), [&](Path const& a, Path const& b) {
    return sequences[a.lane].size() > sequences[b.lane].size();
  });
  std::vector<std::uint32_t> merged = sequences[paths.front().lane];
  paths.front().places.resize(merged.size());
  std::iota(paths.front().places.begin(), paths.front().places.end(), 0u);
  for (std::size_t p = 1; p < paths.size(); ++p) {
    Alignment alignment = sim::align(merged, sequences[paths[p].lane]);
    for (std::size_t q = 0; q < p; ++q) {
      for (std::uint32_t& place : paths[q].places) place = alignment.moved[place];
    }
    paths[p].places = std::move(alignment.added);
    merged = std::move(alignment.merged);
  }

  aligned_.resize(merged.size());
  for (std::size_t i = 0; i < merged.size(); ++i) {
    aligned_[i].site = sites[merged[i]];
    aligned_[i].lanes = 0;
    std::fill(std::begin(aligned_[i].global_bytes), std::end(aligned_[i].global_bytes), std::uint8_t{0});
  }
  for (Path const& path : paths) {
    for (std::size_t i = 0; i < path.places.size(); ++i) {
      Record& to = aligned_[path.places[i]];
      Record const& from = records_[i];
      to.lanes |= path.lanes;
      for (std::uint32_t lanes = path.lanes; lanes != 0; lanes &= lanes - 1) {
        int const lane = std::countr_zero(lanes);
        to.shared[lane] = from.shared[lane];
        to.global[lane] = from.global[lane];
        to.global_bytes[lane] = from.global_bytes[lane];
      }
    }
  }
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
  use.global_bytes = std::accumulate(std::begin(record.global_bytes), std::end(record.global_bytes), 0);
  if (use.global_bytes != 0) {
    for (int lane = 0; lane < 32; ++lane)
      use.global_lanes |= static_cast<std::uint32_t>(record.global_bytes[lane] != 0) << lane;
    use.sectors = sector_use(record.global, use.global_lanes, use.bytes_of_a_lane());
    line.global_bytes += use.global_bytes;
    line.global_sectors += use.sectors.touched;
  }
  return use;
}

Alignment align(std::vector<std::uint32_t> const& merged, std::vector<std::uint32_t> const& added,
                std::size_t window) {
  Alignment result;
  result.moved.reserve(merged.size());
  result.added.reserve(added.size());
  auto const put = [&](bool of_merged, bool of_added) {
    std::uint32_t const place = static_cast<std::uint32_t>(result.merged.size());
    result.merged.push_back(of_merged ? merged[result.moved.size()] : added[result.added.size()]);
    if (of_merged) result.moved.push_back(place);
    if (of_added) result.added.push_back(place);
  };
  std::vector<std::uint16_t> table;
  while (result.moved.size() < merged.size() && result.added.size() < added.size()) {
    std::uint32_t const* const a = merged.data() + result.moved.size();
    std::uint32_t const* const b = added.data() + result.added.size();
    if (*a == *b) {
      put(true, true);
      continue;
    }
    // table[i][j]: how many fall together of what follows a[i] and b[j] within the window (the longest common
    // subsequence: Wagner and Fischer, "The string-to-string correction problem", 1974).
    std::size_t const left_a = merged.size() - result.moved.size();
    std::size_t const left_b = added.size() - result.added.size();
    std::size_t const height = std::min(left_a, window), width = std::min(left_b, window);
    table.assign((height + 1) * (width + 1), 0);
    auto const at = [&](std::size_t i, std::size_t j) -> std::uint16_t& {
      return table[i * (width + 1) + j];
    };
    for (std::size_t i = height; i-- > 0;) {
      for (std::size_t j = width; j-- > 0;) {
        at(i, j) = a[i] == b[j] ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1)
                                : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    // Where the sequences go on beyond the window, its second half is looked at again with what follows.
    std::size_t const end_a = height < left_a ? (height + 1) / 2 : height;
    std::size_t const end_b = width < left_b ? (width + 1) / 2 : width;
    for (std::size_t i = 0, j = 0; i < end_a && j < end_b;) {
      bool const both = a[i] == b[j];
      bool const of_a = both || at(i + 1, j) >= at(i, j + 1);
      put(of_a, both || !of_a);
      i += of_a;
      j += both || !of_a;
    }
  }
  while (result.moved.size() < merged.size()) put(true, false);
  while (result.added.size() < added.size()) put(false, true);
  return result;
}

}  // namespace tegula::sim
