#include "profile/counters.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace tegula::sim {

BankUse bank_use(std::uint32_t const* addresses, std::uint32_t lanes, int bytes) {
  int const words = bytes < 4 ? 1 : bytes / 4;
  int const lanes_a_pass = 32 / words;
  BankUse use;
  for (int first = 0; first < 32; first += lanes_a_pass) {
    std::uint32_t const mask =
        lanes_a_pass == 32 ? lanes : lanes >> first & ((1u << lanes_a_pass) - 1);
    if (mask == 0) continue;
    std::uint32_t distinct[32][32];  // the words asked of each bank
    std::uint8_t count[32] = {};
    int most = 1;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      std::uint32_t const word = addresses[first + std::countr_zero(rest)] / 4;
      for (std::uint32_t w = word; w < word + static_cast<std::uint32_t>(words); ++w) {
        std::uint32_t* const bank = distinct[w % 32];
        std::uint8_t& n = count[w % 32];
        if (std::find(bank, bank + n, w) == bank + n) bank[n++] = w;
        most = std::max<int>(most, n);
      }
    }
    use.wavefronts += most;
    use.minimum += 1;
  }
  return use;
}

namespace {
/// How many different values the lanes have, each shifted right by `shift`.
int distinct(std::uint64_t const* addresses, std::uint32_t lanes, int shift) {
  std::uint64_t found[32];
  int count = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    std::uint64_t const value = addresses[std::countr_zero(rest)] >> shift;
    // Neighbouring lanes mostly touch neighbouring sectors: look from the latest back.
    int i = count;
    while (i > 0 && found[i - 1] != value) --i;
    if (i == 0) found[count++] = value;
  }
  return count;
}
}  // namespace

SectorUse sector_use(std::uint64_t const* addresses, std::uint32_t lanes, int bytes) {
  SectorUse use;
  use.touched = distinct(addresses, lanes, 5);
  // Mostly every lane asks for bytes of its own, and all of them fill the sectors.
  int const most = (std::popcount(lanes) * bytes + 31) / 32;
  use.needed = most <= use.touched ? most : (distinct(addresses, lanes, 0) * bytes + 31) / 32;
  return use;
}

namespace {
std::size_t hash(char const* file, int line, Instruction instruction) {
  std::uint64_t const key = reinterpret_cast<std::uintptr_t>(file) * 31 +
                            static_cast<std::uint64_t>(line) * 64 +
                            static_cast<std::uint64_t>(instruction);
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ull) >> 32);
}
}  // namespace

LineCounters& CounterTable::at(SourceLocation where, Instruction instruction) {
  std::size_t const mask = slots_.size() - 1;
  for (std::size_t i = hash(where.file, where.line, instruction);; ++i) {
    Slot& slot = slots_[i & mask];
    if (slot.file == where.file && slot.line == where.line && slot.instruction == instruction)
      return lines_[slot.index];
    if (slot.file != nullptr) continue;
    if (2 * lines_.size() >= slots_.size()) {
      grow();
      return at(where, instruction);
    }
    slot = {where.file, where.line, instruction, static_cast<std::uint32_t>(lines_.size())};
    LineCounters& line = lines_.emplace_back();
    line.where = where;
    line.instruction = ptx_name(instruction);
    return line;
  }
}

void CounterTable::grow() {
  std::vector<Slot> const old = std::move(slots_);
  slots_ = std::vector<Slot>(2 * old.size());
  for (Slot const& slot : old) {
    if (slot.file == nullptr) continue;
    std::size_t i = hash(slot.file, slot.line, slot.instruction);
    while (slots_[i & (slots_.size() - 1)].file != nullptr) ++i;
    slots_[i & (slots_.size() - 1)] = slot;
  }
}

void CounterTable::clear() {
  lines_.clear();
  std::fill(slots_.begin(), slots_.end(), Slot{});
}

void merge(std::vector<LineCounters>& into, std::vector<LineCounters> const& lines) {
  auto const key = [](LineCounters const& l) {
    return std::tuple(std::string_view(l.where.file), l.where.line,
                      std::string_view(l.instruction));
  };
  for (LineCounters const& line : lines) {
    auto const place =
        std::lower_bound(into.begin(), into.end(), line,
                         [&](auto const& a, auto const& b) { return key(a) < key(b); });
    if (place != into.end() && key(*place) == key(line)) {
      place->add(line);
    } else {
      into.insert(place, line);
    }
  }
}

}  // namespace tegula::sim
