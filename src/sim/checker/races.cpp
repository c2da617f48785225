#include "checker/races.hpp"

#include <algorithm>
#include <bitset>

namespace tegula::sim {

namespace {

/// Readers of a piece beyond which those that happen before a new one are looked for.
constexpr int kManyReaders = 8;
/// Readers of a piece that are remembered, at most: they hold the shadow below 100 bytes for
/// each byte.
constexpr int kMostReaders = 20;

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

Issuers::Issuers(Causality const& causality, int first, int count)
    : causality_(causality), first_(first), count_(count) {
  for (int thread = first; thread < first + count; ++thread) {
    auto const same = std::find_if(kinds_.rbegin(), kinds_.rend(), [&](Kind const& kind) {
      return causality.same_knowledge(kind.thread, thread);
    });
    if (same != kinds_.rend()) {
      same->alone = false;
    } else {
      kinds_.push_back({thread, true});
    }
  }
}

bool Issuers::known(int agent, Time time) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](Kind const& kind) {
    return kind.alone ? causality_.known(kind.thread, agent, time)
                      : causality_.known_to_others(kind.thread, agent, time);
  });
}

bool Issuers::seen(int agent, Time time) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](Kind const& kind) {
    return kind.alone ? causality_.seen(kind.thread, agent, time)
                      : causality_.seen_by_others(kind.thread, agent, time);
  });
}

bool Issuers::fenced(int agent, Time time) const {
  if (among(agent) && !causality_.fenced(agent, agent, time)) return false;
  return std::all_of(kinds_.begin(), kinds_.end(), [&](Kind const& kind) {
    return kind.alone ? causality_.fenced(kind.thread, agent, time)
                      : causality_.fenced_for_others(kind.thread, agent, time);
  });
}

void RaceShadow::reset(std::size_t bytes) {
  std::size_t const pieces = bytes / kPiece + 1;
  writers_.assign(pieces * kPiece / 4, Stamp{});
  heads_.assign(pieces, 0);
  readers_.clear();
  readers_.emplace_back();
  free_reader_ = 0;
  splits_.clear();
  free_splits_.clear();
  under_.clear();
}

std::size_t RaceShadow::bytes() const {
  return writers_.capacity() * sizeof(Stamp) + heads_.capacity() * sizeof(std::uint32_t) +
         readers_.capacity() * sizeof(Reader) + splits_.capacity() * sizeof(Split) +
         under_.size() * (sizeof(Split) + sizeof(std::uint64_t));
}

void RaceShadow::push(std::uint32_t piece, Reader const& reader) {
  std::uint32_t at = free_reader_;
  if (at != 0) {
    free_reader_ = readers_[at].next;
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
void RaceShadow::drop(std::uint32_t& link) {
  std::uint32_t const gone = link;
  link = readers_[gone].next;
  readers_[gone].next = free_reader_;
  free_reader_ = gone;
}

void RaceShadow::drop_readers(std::uint32_t piece, std::uint32_t words) {
  std::uint32_t* link = &heads_[piece];
  while (*link != 0) {
    Reader& reader = readers_[*link];
    bool empty = words == 0xf;
    if (!empty && reader.kind == ReaderKind::lanes) {
      empty = true;
      for (std::size_t w = 0; w < 4; ++w) {
        if ((words >> w & 1) != 0) reader.lanes[w] = 0;
        empty = empty && reader.lanes[w] == 0;
      }
    }
    if (empty) {
      drop(*link);
    } else {
      link = &reader.next;
    }
  }
}

/// Forgets the readers of the words that happen before what those that read them now do: whoever
/// comes after these comes after them.
void RaceShadow::prune(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes) {
  std::uint32_t* link = &heads_[piece];
  while (*link != 0) {
    Reader& reader = readers_[*link];
    if (reader.kind == ReaderKind::lanes && forget_known(reader, warp, lanes) == 0) {
      drop(*link);
    } else {
      link = &reader.next;
    }
  }
}

/// Puts together what each warp has read of a piece at several times, on one line or on any: it
/// counts as read at the first of them. Returns how many readers are left.
int RaceShadow::join_warps(std::uint32_t piece, bool of_one_line) {
  int count = 0;
  for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next, ++count) {
    Reader& reader = readers_[at];
    if (reader.kind != ReaderKind::lanes) continue;
    for (std::uint32_t* link = &reader.next; *link != 0;) {
      Reader& earlier = readers_[*link];
      if (earlier.kind != reader.kind || earlier.warp != reader.warp ||
          earlier.async != reader.async || (of_one_line && earlier.site != reader.site)) {
        link = &earlier.next;
        continue;
      }
      for (std::size_t w = 0; w < 4; ++w) reader.lanes[w] |= earlier.lanes[w];
      reader.time = std::min(reader.time, earlier.time);
      drop(*link);
    }
  }
  return count;
}

/// Makes room for one reader more: where kMostReaders warps have read the piece, the first that was
/// noted is forgotten.
void RaceShadow::make_room(std::uint32_t piece) {
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
  drop(*link);
}

/// Forgets, of a reader, the words that all have been read before what the lanes of a warp read
/// now; returns the lanes that are left.
std::uint32_t RaceShadow::forget_known(Reader& reader, int warp,
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

/// Lanes of a warp have read words of a piece. What they read of those before is forgotten.
void RaceShadow::note_lanes(std::uint32_t piece, int warp,
                            std::array<std::uint32_t, 4> const& lanes, std::uint16_t site,
                            bool async) {
  Time const now = causality_.now();
  std::uint32_t const own = static_cast<std::uint32_t>(warp);
  std::uint32_t* link = &heads_[piece];
  int count = 0;
  while (*link != 0) {
    Reader& reader = readers_[*link];
    ++count;
    if (reader.warp == own && reader.kind == ReaderKind::lanes && (reader.async || !async)) {
      if (reader.time == now && reader.site == site) {
        for (std::size_t w = 0; w < 4; ++w) reader.lanes[w] |= lanes[w];
        return;
      }
      std::uint32_t left = 0;
      for (std::size_t w = 0; w < 4; ++w) left |= reader.lanes[w] &= ~lanes[w];
      if (left != 0 && reader.time != now) left = forget_known(reader, warp, lanes);
      if (left == 0) {
        drop(*link);
        continue;
      }
    }
    link = &reader.next;
  }
  if (count >= kManyReaders && std::has_single_bit(static_cast<unsigned>(count)))
    prune(piece, warp, lanes);
  if (count >= kMostReaders) make_room(piece);
  push(piece, {0, now, site, ReaderKind::lanes, async, own, lanes});
}

/// A thread has read bytes of a piece that are no whole words.
void RaceShadow::note_bytes(std::uint32_t piece, int thread, std::uint32_t bytes,
                            std::uint16_t site) {
  std::uint32_t const lane = static_cast<std::uint32_t>(thread % 32);
  std::uint32_t const warp = static_cast<std::uint32_t>(thread) - lane;
  int count = 0;
  for (std::uint32_t* link = &heads_[piece]; *link != 0;) {
    Reader& reader = readers_[*link];
    ++count;
    if (reader.warp == warp && reader.kind == ReaderKind::bytes_of_lane &&
        reader.lanes[1] == lane && (reader.lanes[0] & ~bytes) == 0) {
      drop(*link);
      continue;
    }
    link = &reader.next;
  }
  if (count >= kMostReaders) make_room(piece);
  push(piece,
       {0, causality_.now(), site, ReaderKind::bytes_of_lane, false, warp, {bytes, lane, 0, 0}});
}

/// Whether the readers of the given bytes of a piece, but for thread `self`, are known.
template <class Known>
bool RaceShadow::readers_known(std::uint32_t piece, std::uint32_t bytes, int self, Known&& known,
                               Conflict& conflict) const {
  for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next) {
    Reader const& reader = readers_[at];
    int const warp = static_cast<int>(reader.warp);
    auto const found = [&](int agent, std::uint32_t byte, bool warpgroup) {
      conflict = {piece * kPiece + byte, agent, warpgroup, false, false, reader.site, reader.time};
      return false;
    };
    switch (reader.kind) {
      case ReaderKind::lanes:
        for (std::uint32_t w = 0; w < 4; ++w) {
          std::uint32_t const of_word = bytes >> 4 * w & 0xf;
          if (of_word == 0) continue;
          for (std::uint32_t rest = reader.lanes[w]; rest != 0; rest &= rest - 1) {
            int const agent = warp + std::countr_zero(rest);
            if (agent != self && !known(agent, reader.time, reader))
              return found(agent, 4 * w + static_cast<std::uint32_t>(std::countr_zero(of_word)),
                           false);
          }
        }
        break;
      case ReaderKind::bytes_of_lane: {
        std::uint32_t const common = bytes & reader.lanes[0];
        int const agent = warp + static_cast<int>(reader.lanes[1]);
        if (common != 0 && agent != self && !known(agent, reader.time, reader))
          return found(agent, static_cast<std::uint32_t>(std::countr_zero(common)), false);
        break;
      }
      case ReaderKind::warpgroup:
        // The reads of a wgmma are over for each of its warps when that warp has waited for its
        // group: any of its lanes carries that on.
        for (int w = 0; w < 4; ++w) {
          bool any = false;
          for (int lane = 0; lane < 32 && !any; ++lane) {
            int const agent = warp + 32 * w + lane;
            any = agent == self || known(agent, reader.time, reader);
          }
          if (!any)
            return found(warp + 32 * w, static_cast<std::uint32_t>(std::countr_zero(bytes)), true);
        }
        break;
    }
  }
  return true;
}

/// Whether a write is ordered before what the thread does: of a thread, known; of a copy, over.
bool RaceShadow::ordered(int thread, Stamp const& stamp) const {
  return causality_.known(thread, stamp.agent, stamp.time) ||
         (!causality_.is_generic(stamp.agent) && causality_.seen(thread, stamp.agent, stamp.time));
}

/// Whether the last writers of some bytes of a word are known to the thread.
bool RaceShadow::writer_known(int thread, std::uint32_t word, std::uint32_t bytes,
                              Conflict& conflict) const {
  Stamp const& stamp = writers_[word];
  if (stamp.time == 0) return true;
  if (stamp.agent != kSplit) {
    if (ordered(thread, stamp)) [[likely]]
      return true;
    conflict = {4 * word + static_cast<std::uint32_t>(std::countr_zero(bytes)),
                stamp.agent,
                false,
                true,
                false,
                stamp.site,
                stamp.time};
    return false;
  }
  Split const& each = splits_[static_cast<std::size_t>(stamp.time)];
  for (std::uint32_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) == 0 || each[b].time == 0 || ordered(thread, each[b])) continue;
    conflict = {4 * word + b, each[b].agent, false, true, false, each[b].site, each[b].time};
    return false;
  }
  return true;
}

void RaceShadow::set_writer(std::uint32_t word, Stamp stamp) {
  Stamp& writer = writers_[word];
  if (writer.agent == kSplit && writer.time != 0)
    free_splits_.push_back(static_cast<std::uint32_t>(writer.time));
  writer = stamp;
}

/// Some bytes of a word have another writer than the rest.
void RaceShadow::split(std::uint32_t word, std::uint32_t bytes, Stamp stamp) {
  Stamp& writer = writers_[word];
  if (writer.agent == stamp.agent && writer.time == stamp.time && writer.agent != kSplit) return;
  if (writer.agent != kSplit || writer.time == 0) {
    if (splits_.empty()) splits_.emplace_back();  // 0 is nobody's time
    std::size_t at = splits_.size();
    if (free_splits_.empty()) {
      splits_.emplace_back();
    } else {
      at = free_splits_.back();
      free_splits_.pop_back();
    }
    splits_[at].fill(writer);
    writer = {static_cast<Time>(at), kSplit, 0};
  }
  for (std::size_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) != 0) splits_[static_cast<std::size_t>(writer.time)][b] = stamp;
  }
}

namespace {

/// Calls f(word, bytes of it) for each word of a range, until it returns false; whether it
/// never did.
template <class F> bool each_word(std::uint32_t offset, std::uint32_t n, F&& f) {
  std::uint32_t const end = offset + n;
  for (std::uint32_t word = offset / 4; 4 * word < end; ++word) {
    std::uint32_t bytes = 0xf;
    if (4 * word < offset) bytes &= 0xfu << (offset - 4 * word);
    if (4 * word + 4 > end) bytes &= 0xfu >> (4 * word + 4 - end);
    if (!f(word, bytes & 0xf)) return false;
  }
  return true;
}

/// Likewise f(piece, bytes of it).
template <class F> bool each_piece(std::uint32_t offset, std::uint32_t n, F&& f) {
  std::uint32_t const end = offset + n;
  for (std::uint32_t piece = offset / 16; 16 * piece < end; ++piece) {
    std::uint32_t bytes = 0xffff;
    if (16 * piece < offset) bytes &= 0xffffu << (offset - 16 * piece);
    if (16 * piece + 16 > end) bytes &= 0xffffu >> (16 * piece + 16 - end);
    if (!f(piece, bytes & 0xffff)) return false;
  }
  return true;
}

/// The words of a piece all of whose bytes are among those given, as bits.
std::uint32_t whole_words(std::uint32_t bytes) {
  std::uint32_t words = 0;
  for (std::uint32_t w = 0; w < 4; ++w) {
    if ((bytes >> 4 * w & 0xf) == 0xf) words |= 1u << w;
  }
  return words;
}

}  // namespace

bool RaceShadow::read(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
                      Conflict& conflict) {
  bool const known = each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    return writer_known(thread, word, bytes, conflict);
  });
  note_use(thread, offset, n, site);
  return known;
}

void RaceShadow::note_use(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site) {
  std::uint32_t const lane = 1u << thread % 32;
  each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    std::uint32_t const words = whole_words(bytes);
    if (words != 0) {
      std::array<std::uint32_t, 4> lanes{};
      for (std::size_t w = 0; w < 4; ++w) lanes[w] = (words >> w & 1) != 0 ? lane : 0;
      note_lanes(piece, thread / 32 * 32, lanes, site);
    }
    for (std::uint32_t w = 0; w < 4; ++w) {
      if ((words >> w & 1) != 0) bytes &= ~(0xfu << 4 * w);
    }
    if (bytes != 0) note_bytes(piece, thread, bytes, site);
    return true;
  });
}

bool RaceShadow::may_write(int thread, std::uint32_t offset, std::uint32_t n,
                           Conflict& conflict) const {
  auto const known = [&](int agent, Time time, Reader const&) {
    return causality_.seen(thread, agent, time);
  };
  return each_word(offset, n,
                   [&](std::uint32_t word, std::uint32_t bytes) {
                     return writer_known(thread, word, bytes, conflict);
                   }) &&
         each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
           return heads_[piece] == 0 || readers_known(piece, bytes, thread, known, conflict);
         });
}

void RaceShadow::set_writers(std::uint32_t offset, std::uint32_t n, Stamp stamp) {
  each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    if (bytes == 0xf) {
      set_writer(word, stamp);
    } else {
      split(word, bytes, stamp);
    }
    return true;
  });
}

RaceShadow::Split RaceShadow::stamps_of(std::uint32_t word) const {
  Stamp const& writer = writers_[word];
  if (writer.agent == kSplit && writer.time != 0)
    return splits_[static_cast<std::size_t>(writer.time)];
  Split all;
  all.fill(writer);
  return all;
}

/// Those who have met are all kept as readers: a write must come after each of them.
bool RaceShadow::strong(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
                        bool write, SiteTable const& sites, Conflict& conflict) {
  auto const meets = [&](std::uint16_t other) { return is_strong(sites[other].instruction); };
  auto const known = [&](int agent, Time time, Reader const& reader) {
    return meets(reader.site) || causality_.seen(thread, agent, time);
  };
  // A byte's last writer that is not strong, below those that are.
  auto const plain = [&](std::uint32_t word, std::size_t byte, Stamp const& last) {
    if (!meets(last.site)) return last;
    auto const under = under_.find(word);
    return under != under_.end() ? under->second[byte] : Stamp{};
  };
  bool ordered = each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    if (under_.empty() && (writer_known(thread, word, bytes, conflict) || meets(conflict.site)))
      return true;
    Split const last = stamps_of(word);
    for (std::uint32_t b = 0; b < 4; ++b) {
      Stamp const stamp = plain(word, b, last[b]);
      if ((bytes >> b & 1) == 0 || stamp.time == 0 || this->ordered(thread, stamp)) continue;
      conflict = {4 * word + b, stamp.agent, false, true, false, stamp.site, stamp.time};
      return false;
    }
    return true;
  });
  if (write) {
    each_word(offset, n, [&](std::uint32_t word, std::uint32_t) {
      Split last = stamps_of(word);
      for (std::size_t b = 0; b < 4; ++b) last[b] = plain(word, b, last[b]);
      if (std::any_of(last.begin(), last.end(), [](Stamp const& s) { return s.time != 0; }))
        under_[word] = last;
      return true;
    });
    ordered = ordered && each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
                return heads_[piece] == 0 || readers_known(piece, bytes, thread, known, conflict);
              });
    set_writers(offset, n, {causality_.now(), static_cast<std::uint16_t>(thread), site});
  }
  note_use(thread, offset, n, site);
  return ordered;
}

void RaceShadow::written(std::uint32_t offset, std::uint32_t n, Stamp stamp) {
  set_writers(offset, n, stamp);
  if (!under_.empty()) [[unlikely]]
    each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
      if (bytes == 0xf) under_.erase(word);
      return true;
    });
  each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    if (heads_[piece] != 0) drop_readers(piece, whole_words(bytes));
    return true;
  });
}

bool RaceShadow::write(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
                       Conflict& conflict) {
  bool const known = may_write(thread, offset, n, conflict);
  written(offset, n, {causality_.now(), static_cast<std::uint16_t>(thread), site});
  return known;
}

bool RaceShadow::read_row(int warp, std::uint32_t offset, std::uint32_t const (&lanes)[4],
                          std::uint16_t site, Conflict& conflict) {
  bool all = true;
  for (std::uint32_t w = 0; w < 4 && all; ++w) {
    for (std::uint32_t rest = lanes[w]; rest != 0 && all; rest &= rest - 1)
      all = writer_known(warp + std::countr_zero(rest), offset / 4 + w, 0xf, conflict);
  }
  note_lanes(offset / kPiece, warp, {lanes[0], lanes[1], lanes[2], lanes[3]}, site);
  return all;
}

bool RaceShadow::write_row(int warp, std::uint32_t offset, int const (&lane)[4], std::uint16_t site,
                           Conflict& conflict) {
  bool all = true;
  for (std::uint32_t w = 0; w < 4; ++w) {
    Conflict other;
    if (write(warp + lane[w], offset + 4 * w, 4, site, other)) continue;
    if (all) conflict = other;
    all = false;
  }
  return all;
}

bool RaceShadow::may_access(Issuers const& issuers, std::uint32_t offset, std::uint32_t n,
                            bool write, bool strict, Conflict& conflict) const {
  Stamp& last = issuers.writer_;
  auto const writer = [&](Stamp const& stamp, std::uint32_t at) {
    if (stamp.time == 0 || (stamp.time == last.time && stamp.agent == last.agent)) return true;
    bool const generic = causality_.is_generic(stamp.agent);
    bool const known =
        generic ? issuers.known(stamp.agent, stamp.time) : issuers.seen(stamp.agent, stamp.time);
    if (known && (!generic || issuers.fenced(stamp.agent, stamp.time))) {
      last = stamp;
      return true;
    }
    conflict = {at, stamp.agent, false, true, known, stamp.site, stamp.time};
    return false;
  };
  bool const written = each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    Stamp const& stamp = writers_[word];
    if (stamp.agent != kSplit || stamp.time == 0) return writer(stamp, 4 * word);
    Split const& each = splits_[static_cast<std::size_t>(stamp.time)];
    for (std::uint32_t b = 0; b < 4; ++b) {
      if ((bytes >> b & 1) != 0 && !writer(each[b], 4 * word + b)) return false;
    }
    return true;
  });
  if (!written) return false;
  if (!write) return true;
  int last_agent = -1;
  Time last_time = 0;
  bool unfenced = false;
  auto const known = [&](int agent, Time time, Reader const& reader) {
    if (agent == last_agent && time <= last_time) return true;
    if (!issuers.seen(agent, time)) return false;
    unfenced = strict && !reader.async && !issuers.fenced(agent, time);
    if (unfenced) return false;
    if (strict && reader.async) return true;  // which says nothing of its generic reads
    last_agent = agent;
    last_time = time;
    return true;
  };
  bool const read = each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    return heads_[piece] == 0 || readers_known(piece, bytes, -1, known, conflict);
  });
  conflict.unfenced = !read && unfenced;
  return read;
}

void RaceShadow::has_read(int thread, bool warpgroup, std::uint32_t offset, std::uint32_t n,
                          std::uint16_t site) {
  std::uint32_t const lane = 1u << thread % 32;
  Time const now = causality_.now();
  each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    if (!warpgroup) {
      std::array<std::uint32_t, 4> lanes{};
      for (std::size_t w = 0; w < 4; ++w) lanes[w] = (bytes >> 4 * w & 0xf) != 0 ? lane : 0;
      note_lanes(piece, thread / 32 * 32, lanes, site, true);
      return true;
    }
    std::uint32_t const own = static_cast<std::uint32_t>(thread);
    int count = 0;
    for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next) {
      Reader& reader = readers_[at];
      ++count;
      if (reader.kind != ReaderKind::warpgroup || reader.warp != own) continue;
      reader.time = now;
      reader.site = site;
      return true;
    }
    if (count >= kMostReaders) make_room(piece);
    push(piece, {0, now, site, ReaderKind::warpgroup, true, own, {}});
    return true;
  });
}

}  // namespace tegula::sim
