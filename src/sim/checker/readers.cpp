#include "checker/readers.hpp"

#include <algorithm>
#include <bitset>

namespace tegula::sim {

namespace {

/// Readers of a piece beyond which those that happen before a new one are looked for.
constexpr int kManyReaders = 8;
/// Readers of a piece that are remembered, at most: they hold the shadow below 100 bytes for
/// each byte.
constexpr int kMostReaders = 20;

}  // namespace

void Readers::reset(std::size_t pieces) {
  heads_.assign(pieces, 0);
  readers_.clear();
  readers_.emplace_back();
  free_ = 0;
}

std::size_t Readers::bytes() const {
  return heads_.capacity() * sizeof(std::uint32_t) + readers_.capacity() * sizeof(Reader);
}

void Readers::push(std::uint32_t piece, Reader const& reader) {
  std::uint32_t at = free_;
  if (at != 0) {
    free_ = readers_[at].next;
    readers_[at] = reader;
  } else {
    at = static_cast<std::uint32_t>(readers_.size());
    if (at == readers_.capacity()) readers_.reserve(readers_.size() + readers_.size() / 4 + 256);
    readers_.push_back(reader);
  }
  readers_[at].next = heads_[piece];
  heads_[piece] = at;
}

/// Takes the reader out to which the link leads.
void Readers::unlink(std::uint32_t& link) {
  std::uint32_t const gone = link;
  link = readers_[gone].next;
  readers_[gone].next = free_;
  free_ = gone;
}

void Readers::drop_words(std::uint32_t piece, std::uint32_t words) {
  std::uint32_t* link = &heads_[piece];
  while (*link != 0) {
    Reader& reader = readers_[*link];
    bool empty = words == 0xf;
    if (!empty && reader.kind == Kind::lanes) {
      empty = true;
      for (std::size_t w = 0; w < 4; ++w) {
        if ((words >> w & 1) != 0) reader.lanes[w] = 0;
        empty = empty && reader.lanes[w] == 0;
      }
    }
    if (empty) {
      unlink(*link);
    } else {
      link = &reader.next;
    }
  }
}

/// Forgets the readers of the words that happen before what those that read them now do: whoever
/// comes after these comes after them.
void Readers::prune(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes) {
  std::uint32_t* link = &heads_[piece];
  while (*link != 0) {
    Reader& reader = readers_[*link];
    if (reader.kind == Kind::lanes && forget_known(reader, warp, lanes) == 0) {
      unlink(*link);
    } else {
      link = &reader.next;
    }
  }
}

/// Puts together what each warp has read of a piece at several times, on one line or on any: it
/// counts as read at the first of them. Returns how many readers are left.
int Readers::join_warps(std::uint32_t piece, bool of_one_line) {
  int count = 0;
  for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next, ++count) {
    Reader& reader = readers_[at];
    if (reader.kind != Kind::lanes) continue;
    for (std::uint32_t* link = &reader.next; *link != 0;) {
      Reader& earlier = readers_[*link];
      if (earlier.kind != reader.kind || earlier.warp != reader.warp ||
          earlier.async != reader.async || (of_one_line && earlier.site != reader.site)) {
        link = &earlier.next;
        continue;
      }
      for (std::size_t w = 0; w < 4; ++w) reader.lanes[w] |= earlier.lanes[w];
      reader.time = std::min(reader.time, earlier.time);
      unlink(*link);
    }
  }
  return count;
}

/// Makes room for one reader more: where kMostReaders warps have read the piece, the first that was
/// noted is forgotten.
void Readers::make_room(std::uint32_t piece) {
  std::bitset<512> warps;  // a cluster has no more
  bool again = false;
  for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next) {
    std::size_t const warp = readers_[at].warp / 32 % warps.size();
    again = again || warps[warp];
    warps.set(warp);
  }
  if (again && (join_warps(piece, true) < kMostReaders || join_warps(piece, false) < kMostReaders))
    return;
  std::uint32_t* link = &heads_[piece];
  while (readers_[*link].next != 0) link = &readers_[*link].next;
  unlink(*link);
}

/// Forgets, of a reader, the words that all have been read before what the lanes of a warp read
/// now; returns the lanes that are left.
std::uint32_t Readers::forget_known(Reader& reader, int warp,
                                    std::array<std::uint32_t, 4> const& lanes) const {
  std::uint32_t left = 0;
  for (std::size_t w = 0; w < 4; ++w) {
    // What an mbarrier's agent knows, nobody asks.
    bool known = lanes[w] != 0 && warp < causality_.threads();
    for (std::uint32_t rest = reader.lanes[w]; known && rest != 0; rest &= rest - 1)
      known = causality_.known(warp + std::countr_zero(lanes[w]),
                               static_cast<int>(reader.warp) + std::countr_zero(rest), reader.time);
    if (known) reader.lanes[w] = 0;
    left |= reader.lanes[w];
  }
  return left;
}

void Readers::note_lanes(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes,
                         std::uint16_t site, bool async) {
  Time const now = causality_.now();
  std::uint32_t const own = static_cast<std::uint32_t>(warp);
  std::uint32_t* link = &heads_[piece];
  int count = 0;
  while (*link != 0) {
    Reader& reader = readers_[*link];
    ++count;
    if (reader.warp == own && reader.kind == Kind::lanes && (reader.async || !async)) {
      if (reader.time == now && reader.site == site) {
        for (std::size_t w = 0; w < 4; ++w) reader.lanes[w] |= lanes[w];
        return;
      }
      std::uint32_t left = 0;
      for (std::size_t w = 0; w < 4; ++w) left |= reader.lanes[w] &= ~lanes[w];
      if (left != 0 && reader.time != now) left = forget_known(reader, warp, lanes);
      if (left == 0) {
        unlink(*link);
        continue;
      }
    }
    link = &reader.next;
  }
  if (count >= kManyReaders && std::has_single_bit(static_cast<unsigned>(count)))
    prune(piece, warp, lanes);
  if (count >= kMostReaders) make_room(piece);
  push(piece, {0, now, site, Kind::lanes, async, own, lanes});
}

void Readers::note_bytes(std::uint32_t piece, int thread, std::uint32_t bytes, std::uint16_t site) {
  std::uint32_t const lane = static_cast<std::uint32_t>(thread % 32);
  std::uint32_t const warp = static_cast<std::uint32_t>(thread) - lane;
  int count = 0;
  for (std::uint32_t* link = &heads_[piece]; *link != 0;) {
    Reader& reader = readers_[*link];
    ++count;
    if (reader.warp == warp && reader.kind == Kind::bytes_of_lane && reader.lanes[1] == lane &&
        (reader.lanes[0] & ~bytes) == 0) {
      unlink(*link);
      continue;
    }
    link = &reader.next;
  }
  if (count >= kMostReaders) make_room(piece);
  push(piece, {0, causality_.now(), site, Kind::bytes_of_lane, false, warp, {bytes, lane, 0, 0}});
}

void Readers::note_warpgroup(std::uint32_t piece, int first, std::uint16_t site) {
  Time const now = causality_.now();
  std::uint32_t const own = static_cast<std::uint32_t>(first);
  int count = 0;
  for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next) {
    Reader& reader = readers_[at];
    ++count;
    if (reader.kind != Kind::warpgroup || reader.warp != own) continue;
    reader.time = now;
    reader.site = site;
    return;
  }
  if (count >= kMostReaders) make_room(piece);
  push(piece, {0, now, site, Kind::warpgroup, true, own, {}});
}

}  // namespace tegula::sim
