#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "checker/causality.hpp"
#include "checker/sites.hpp"

namespace tegula::sim {

/// Who has read a CTA's shared memory since it was written last: by warps, in pieces of 16 bytes,
/// which are given by number. Of a piece that many have read, those are forgotten that happen
/// before others; whoever comes after these comes after them.
class Readers {
 public:
  static constexpr std::uint32_t kPiece = 16;

  enum class Kind : std::uint8_t { lanes, bytes_of_lane, warpgroup };
  /// Lanes of one warp that read a piece at one time.
  struct Reader {
    std::uint32_t next;
    Time time;
    std::uint16_t site;
    Kind kind;
    bool async;  ///< by the asynchronous proxy
    std::uint32_t warp;
    /// of each word; bytes_of_lane: the bytes, the lane; warpgroup: any
    std::array<std::uint32_t, 4> lanes;
  };

  explicit Readers(Causality const& causality) : causality_(causality) {}

  /// Nobody has read any of so many pieces.
  void reset(std::size_t pieces);
  /// Lanes of a warp have read words of a piece. What they read of those before is forgotten.
  void note_lanes(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes,
                  std::uint16_t site, bool async = false);
  /// A thread has read bytes of a piece that are no whole words.
  void note_bytes(std::uint32_t piece, int thread, std::uint32_t bytes, std::uint16_t site);
  /// A warpgroup, given by its first thread, has read of a piece.
  void note_warpgroup(std::uint32_t piece, int first, std::uint16_t site);
  /// Words of a piece have been written, after all who read them.
  void drop(std::uint32_t piece, std::uint32_t words) {
    if (heads_[piece] != 0) drop_words(piece, words);
  }
  /// Whether the readers of the given bytes of a piece, but for thread `self`, are known.
  /// `known(agent, time, reader)` is: else who is not, is in `conflict`.
  template <class Known>
  bool known(std::uint32_t piece, std::uint32_t bytes, int self, Known&& known,
             Conflict& conflict) const {
    return heads_[piece] == 0 || each_known(piece, bytes, self, known, conflict);
  }

  /// Bytes that this takes up.
  std::size_t bytes() const;

 private:
  template <class Known>
  bool each_known(std::uint32_t piece, std::uint32_t bytes, int self, Known& known,
                  Conflict& conflict) const;
  void drop_words(std::uint32_t piece, std::uint32_t words);
  void prune(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes);
  std::uint32_t forget_known(Reader& reader, int warp,
                             std::array<std::uint32_t, 4> const& lanes) const;
  int join_warps(std::uint32_t piece, bool of_one_line);
  void make_room(std::uint32_t piece);
  void push(std::uint32_t piece, Reader const& reader);
  void unlink(std::uint32_t& link);

  Causality const& causality_;
  std::vector<std::uint32_t> heads_;  ///< of each piece: its latest reader, in readers_; 0: none
  std::vector<Reader> readers_;       ///< the first is not used
  std::uint32_t free_ = 0;            ///< the first of those that are not used any more
};

template <class Known>
bool Readers::each_known(std::uint32_t piece, std::uint32_t bytes, int self, Known& known,
                         Conflict& conflict) const {
  for (std::uint32_t at = heads_[piece]; at != 0; at = readers_[at].next) {
    Reader const& reader = readers_[at];
    int const warp = static_cast<int>(reader.warp);
    auto const found = [&](int agent, std::uint32_t byte, bool warpgroup) {
      conflict = {piece * kPiece + byte, agent, warpgroup, false, false, reader.site, reader.time};
      return false;
    };
    switch (reader.kind) {
      case Kind::lanes:
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
      case Kind::bytes_of_lane: {
        std::uint32_t const common = bytes & reader.lanes[0];
        int const agent = warp + static_cast<int>(reader.lanes[1]);
        if (common != 0 && agent != self && !known(agent, reader.time, reader))
          return found(agent, static_cast<std::uint32_t>(std::countr_zero(common)), false);
        break;
      }
      case Kind::warpgroup:
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

}  // namespace tegula::sim
