#include "checker/races.hpp"

#include <algorithm>
#include <bit>

namespace tegula::sim {

void RaceShadow::reset(std::size_t bytes) {
  std::size_t const pieces = bytes / Readers::kPiece + 1;
  writers_.assign(pieces * Readers::kPiece / 4, Stamp{});
  readers_.reset(pieces);
  splits_.clear();
  free_splits_.clear();
  strong_.reset();
}

std::size_t RaceShadow::bytes() const {
  return writers_.capacity() * sizeof(Stamp) + readers_.bytes() +
         splits_.capacity() * sizeof(Split) + strong_.bytes();
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
  if (StrongWords::Word const* const strong = strong_.find(word)) [[unlikely]]
    return strong_known(thread, *strong, word, bytes, conflict);
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

/// Likewise of a word that strong accesses have changed: those that have not met each of them.
bool RaceShadow::strong_known(int thread, StrongWords::Word const& strong, std::uint32_t word,
                              std::uint32_t bytes, Conflict& conflict) const {
  auto const found = [&](std::uint32_t byte, Stamp const& stamp) {
    conflict = {4 * word + byte, stamp.agent, false, true, false, stamp.site, stamp.time};
    return false;
  };
  Split const plain = plain_stamps(word);
  for (std::uint32_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) != 0 && plain[b].time != 0 && !ordered(thread, plain[b]))
      return found(b, plain[b]);
  }
  for (StrongWords::Access const& access : strong.by) {
    Stamp const stamp{access.wrote, static_cast<std::uint16_t>(access.agent), access.site};
    if ((access.bytes & bytes) != 0 && access.wrote != 0 && !ordered(thread, stamp) &&
        !strong_.observed(strong, thread, access))
      return found(static_cast<std::uint32_t>(std::countr_zero(access.bytes & bytes)), stamp);
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
      readers_.note_lanes(piece, thread / 32 * 32, lanes, site);
    }
    for (std::uint32_t w = 0; w < 4; ++w) {
      if ((words >> w & 1) != 0) bytes &= ~(0xfu << 4 * w);
    }
    if (bytes != 0) readers_.note_bytes(piece, thread, bytes, site);
    return true;
  });
}

bool RaceShadow::may_write(int thread, std::uint32_t offset, std::uint32_t n,
                           Conflict& conflict) const {
  auto const known = [&](int agent, Time time, Readers::Reader const&) {
    return causality_.seen(thread, agent, time);
  };
  return each_word(offset, n,
                   [&](std::uint32_t word, std::uint32_t bytes) {
                     return writer_known(thread, word, bytes, conflict);
                   }) &&
         each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
           return readers_.known(piece, bytes, thread, known, conflict);
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

/// Of each byte of a word, its last writer that meets no other.
RaceShadow::Split RaceShadow::plain_stamps(std::uint32_t word) const {
  Split last = stamps_of(word);
  StrongWords::Word const* const strong = strong_.find(word);
  if (strong == nullptr) return last;
  for (std::size_t b = 0; b < 4; ++b) {
    if (meets_in_shared(sites_[last[b].site].instruction)) last[b] = strong->under[b];
  }
  return last;
}

bool RaceShadow::strong(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
                        StrongWords::Effect effect, Conflict& conflict) {
  bool const may_write = strong_writes(sites_[site].instruction);
  auto const found = [&](std::uint32_t word, std::uint32_t byte, Stamp const& stamp) {
    conflict = {4 * word + byte, stamp.agent, false, true, false, stamp.site, stamp.time};
    return false;
  };
  bool ordered = each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    Split const plain = plain_stamps(word);
    for (std::uint32_t b = 0; b < 4; ++b) {
      if ((bytes >> b & 1) != 0 && plain[b].time != 0 && !this->ordered(thread, plain[b]))
        return found(word, b, plain[b]);
    }
    StrongWords::Word const* const strong = strong_.find(word);
    if (strong == nullptr) return true;
    for (StrongWords::Access const& access : strong->by) {
      Stamp const stamp{access.wrote, static_cast<std::uint16_t>(access.agent), access.site};
      if ((access.bytes & bytes) == 0 || access.wrote == 0 || strong_.meet(site, access.site) ||
          this->ordered(thread, stamp) || strong_.observed(*strong, thread, access))
        continue;
      return found(word, static_cast<std::uint32_t>(std::countr_zero(access.bytes & bytes)), stamp);
    }
    return true;
  });
  auto const known = [&](int agent, Time time, Readers::Reader const& reader) {
    // What the asynchronous proxy has read is a source: a reduction in bulk combines elsewhere.
    return (!reader.async && strong_.meet(site, reader.site)) ||
           causality_.seen(thread, agent, time);
  };
  if (may_write)
    ordered = ordered && each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
                return readers_.known(piece, bytes, thread, known, conflict);
              });
  Stamp const stamp{causality_.now(), static_cast<std::uint16_t>(thread), site};
  each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    strong_.note(word, bytes, stamp, effect, plain_stamps(word));
    return true;
  });
  if (may_write) {
    set_writers(offset, n, stamp);
  } else {
    note_use(thread, offset, n, site);
  }
  return ordered;
}

void RaceShadow::written(std::uint32_t offset, std::uint32_t n, Stamp stamp) {
  bool const strong = meets_in_shared(sites_[stamp.site].instruction);
  if (strong || !strong_.empty()) [[unlikely]]
    each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
      if (strong) {
        strong_.note(word, bytes, stamp, {.modifies = true, .writes = true}, plain_stamps(word));
      } else if (bytes == 0xf) {
        strong_.erase(word);
      }
      return true;
    });
  set_writers(offset, n, stamp);
  if (strong) return;
  each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    readers_.drop(piece, whole_words(bytes));
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
  readers_.note_lanes(offset / Readers::kPiece, warp, {lanes[0], lanes[1], lanes[2], lanes[3]},
                      site);
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
                            std::uint16_t site, bool write, bool strict, Conflict& conflict) const {
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
    if (StrongWords::Word const* const strong = strong_.find(word)) [[unlikely]] {
      Split const plain = plain_stamps(word);
      for (std::uint32_t b = 0; b < 4; ++b) {
        if ((bytes >> b & 1) != 0 && !writer(plain[b], 4 * word + b)) return false;
      }
      for (StrongWords::Access const& access : strong->by) {
        if ((access.bytes & bytes) == 0 || (write && strong_.meet(site, access.site))) continue;
        if (!writer({access.wrote, static_cast<std::uint16_t>(access.agent), access.site},
                    4 * word + static_cast<std::uint32_t>(std::countr_zero(access.bytes & bytes))))
          return false;
      }
      return true;
    }
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
  auto const known = [&](int agent, Time time, Readers::Reader const& reader) {
    if (agent == last_agent && time <= last_time) return true;
    if (!reader.async && strong_.meet(site, reader.site)) return true;
    if (!issuers.seen(agent, time)) return false;
    unfenced = strict && !reader.async && !issuers.fenced(agent, time);
    if (unfenced) return false;
    if (strict && reader.async) return true;  // which says nothing of its generic reads
    last_agent = agent;
    last_time = time;
    return true;
  };
  bool const read = each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    return readers_.known(piece, bytes, -1, known, conflict);
  });
  conflict.unfenced = !read && unfenced;
  return read;
}

void RaceShadow::discard(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site) {
  auto const over = [&](Stamp const& stamp) {
    return stamp.time == 0 || (causality_.is_generic(stamp.agent) && ordered(thread, stamp) &&
                               causality_.fenced_shared(thread, stamp.agent, stamp.time));
  };
  each_word(offset, n, [&](std::uint32_t word, std::uint32_t bytes) {
    Split const last = plain_stamps(word);
    bool all = bytes == 0xf && std::all_of(last.begin(), last.end(), over);
    StrongWords::Word const* const strong = strong_.find(word);
    if (strong != nullptr) {
      all = all && std::all_of(strong->by.begin(), strong->by.end(), [&](auto const& access) {
              return access.wrote == 0 ||
                     over({access.wrote, static_cast<std::uint16_t>(access.agent), access.site});
            });
      if (all) strong_.erase(word);
    }
    if (all) set_writer(word, {});
    return true;
  });
  has_read(thread, false, offset, n, site);
}

void RaceShadow::has_read(int thread, bool warpgroup, std::uint32_t offset, std::uint32_t n,
                          std::uint16_t site) {
  std::uint32_t const lane = 1u << thread % 32;
  each_piece(offset, n, [&](std::uint32_t piece, std::uint32_t bytes) {
    if (warpgroup) {
      readers_.note_warpgroup(piece, thread, site);
      return true;
    }
    std::array<std::uint32_t, 4> lanes{};
    for (std::size_t w = 0; w < 4; ++w) lanes[w] = (bytes >> 4 * w & 0xf) != 0 ? lane : 0;
    readers_.note_lanes(piece, thread / 32 * 32, lanes, site, true);
    return true;
  });
}

}  // namespace tegula::sim
