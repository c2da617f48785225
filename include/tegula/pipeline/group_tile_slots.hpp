#pragma once

#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/group_tiles.hpp"

namespace tegula {

/// The tiles of a CTA, told by its producer to its consumers with the stage of a ring that begins
/// a tile: one warp finds them, while the others compute. The stage's barriers order a slot: it is
/// written between the wait for the stage to be empty and the arrival that lets it become full,
/// and read between the wait for that and the stage's release.
///
/// Behind the last tile there is one slot more, which says that it is the end.
template <int Stages> class GroupTileSlots {
  static constexpr int words = 7;  // of a tile

 public:
  struct Storage {
    int word[Stages][8];
  };

  TEGULA_DEVICE explicit GroupTileSlots(Storage const& storage)
      : words_(shared_address(storage.word)) {}

  /// The producer, one thread.
  TEGULA_DEVICE void write(int stage, GroupTile const& t,
                           SourceLocation where = SourceLocation::current()) const {
    int const values[words] = {t.group, t.m, t.m_end, t.n, t.k, t.k_end, t.k_block};
#pragma unroll
    for (int i = 0; i < words; ++i) st_shared(slot(stage) + 4 * i, values[i], where);
  }
  TEGULA_DEVICE void write_end(int stage, SourceLocation where = SourceLocation::current()) const {
    write(stage, {.group = -1}, where);
  }

  /// A consumer, all lanes of a warp: reads the tile, or says that there is none. One of the lanes
  /// may then release the stage for all.
  TEGULA_DEVICE bool read(int stage, GroupTile& tile,
                          SourceLocation where = SourceLocation::current()) const {
    int const lane = lane_id();
    int const word = lane < words ? ld_shared<int>(slot(stage) + 4 * lane, where) : 0;
    warp::sync(warp::kAllLanes, where);  // all have read
    auto const of = [&](int i) { return warp::shfl(word, i, warp::kAllLanes, where); };
    tile = {.group = of(0),
            .m = of(1),
            .m_end = of(2),
            .n = of(3),
            .k = of(4),
            .k_end = of(5),
            .k_block = of(6)};
    // A vote: so the compiler knows that all lanes agree, and what follows from that.
    return !warp::any(tile.group < 0, warp::kAllLanes, where);
  }

 private:
  TEGULA_DEVICE SharedAddr slot(int stage) const {
    return words_ + static_cast<SharedAddr>(sizeof(Storage::word[0]) * stage);
  }

  SharedAddr words_;
};

}  // namespace tegula
