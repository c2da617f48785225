#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/tensor/index.hpp"

/// Which tiles of a grouped GEMM a CTA of a persistent grid computes, where the groups' extents lie
/// in device memory.
namespace tegula {

/// How the rows or the depth of a GEMM are shared by groups, each with a B or a D of its own.
enum class Grouping : std::uint8_t {
  none,        ///< one problem
  contiguous,  ///< group g has rows [begin, end) of A and D, and a B of its own
  masked,      ///< as many rows of A and D for each group, of which the first `end` count
  k,           ///< group g has columns [begin, end) of A and B, and a D of its own
};

/// The tiles of all groups: a value that host and device share. `begins` and `ends` are in device
/// memory, an entry for each group, read when the kernel runs: a launch in a CUDA graph follows
/// them. Whatever they hold, no tile reaches outside of `rows` and `depth`.
///
/// A group's tiles follow the group before's. They are walked in bands of `band` rows of tiles: a
/// band's rows first, so that tiles that are computed at one time share B as well as A.
struct GroupTiles {
  Grouping grouping = Grouping::none;
  int groups = 1;
  int const* begins = nullptr;  ///< null: a group begins where the one before ends
  int const* ends = nullptr;    ///< not read where there are no groups
  int rows = 0;                 ///< of A: of all groups together; of each group where masked
  int depth = 0;                ///< of A and B: of all groups together
  int tiles_n = 1;              ///< tiles of a cluster that cover the columns of D
  int band = 8;
};

/// The rows, or the depth, of a group.
struct GroupRange {
  int begin = 0;
  int end = 0;
};

/// What the entries in device memory, `begin` and `end`, mean for group g: a range within the
/// tensor, empty where they are none.
TEGULA_HOST_DEVICE constexpr GroupRange group_range(GroupTiles const& t, int g, int begin,
                                                    int end) {
  auto const within = [](int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
  };
  switch (t.grouping) {
    case Grouping::none:
      return {0, t.rows};
    case Grouping::masked:
      return {g * t.rows, g * t.rows + within(end, 0, t.rows)};
    default: {
      int const most = t.grouping == Grouping::k ? t.depth : t.rows;
      int const first = within(begin, 0, most);
      return {first, within(end, first, most)};
    }
  }
}

/// The tiles of a group that has this range.
TEGULA_HOST_DEVICE constexpr int tiles_of_group(GroupTiles const& t, GroupRange range,
                                                int block_m) {
  int const rows = t.grouping == Grouping::k ? t.rows : range.end - range.begin;
  return ceil_div(rows, block_m) * t.tiles_n;
}

/// A tile of D.
struct GroupTile {
  int group = 0;
  int m = 0;        ///< its first row, ...
  int m_end = 0;    ///< ... and the row behind the group's last
  int n = 0;        ///< its column of tiles
  int k = 0;        ///< the first column of A and B, ...
  int k_end = 0;    ///< ... and the one behind the last
  int k_block = 0;  ///< the first of the group's blocks of 128 of K, among all groups'

  constexpr bool operator==(GroupTile const&) const = default;
};

/// Tile number `index` of a group whose tiles those are.
TEGULA_HOST_DEVICE constexpr GroupTile tile_of_group(GroupTiles const& t, int g, GroupRange range,
                                                     int k_block, int index, int block_m) {
  bool const by_k = t.grouping == Grouping::k;
  int const first = by_k ? 0 : range.begin, rows = by_k ? t.rows : range.end - range.begin;
  int const tiles_m = ceil_div(rows, block_m);
  int const band = index / (t.band * t.tiles_n), in_band = index - band * t.band * t.tiles_n;
  int const left = tiles_m - band * t.band, height = left < t.band ? left : t.band;
  int const n = in_band / height;
  return {.group = g,
          .m = first + (band * t.band + in_band - n * height) * block_m,
          .m_end = first + rows,
          .n = n,
          .k = by_k ? range.begin : 0,
          .k_end = by_k ? range.end : t.depth,
          .k_block = k_block};
}

/// The tiles of one cluster: `first`, first + step, ... All lanes of a warp walk together; each
/// warp of a CTA that walks has a walk of its own. A lane holds one of 32 groups at a time, so that
/// a group is found by a few instructions of the warp, however many there are. Without groups no
/// lane asks another.
template <int BlockM> class GroupTileIterator {
 public:
  static constexpr int window = 32;  ///< groups that a warp holds
  static constexpr int k_block = 128;

  GroupTile tile;

  TEGULA_DEVICE GroupTileIterator(GroupTiles const& tiles, int first, int step)
      : tiles_(tiles), index_(first), step_(step) {
    load();
    find();
  }
  /// A walk without tiles: of a warp that has no use for them.
  TEGULA_DEVICE static GroupTileIterator none(GroupTiles const& tiles) {
    return GroupTileIterator(tiles);
  }

  TEGULA_DEVICE bool done() const { return index_ >= total_; }
  TEGULA_DEVICE void next() {
    index_ += step_;
    find();
  }

 private:
  TEGULA_DEVICE explicit GroupTileIterator(GroupTiles const& tiles)
      : tiles_(tiles), index_(0), step_(0) {}
  /// Holds the groups from first_ on.
  TEGULA_DEVICE void load() {
    if (tiles_.grouping == Grouping::none) {  // what every lane knows
      range_ = group_range(tiles_, 0, 0, 0);
      total_ = tiles_of_group(tiles_, range_, BlockM);
      return;
    }
    int const lane = lane_id(), g = first_ + lane;
    int tiles = 0, blocks = 0;
    if (g < tiles_.groups) {
      int begin = 0, end = 0;
      end = ld_global<int>(tiles_.ends + g);
      if (tiles_.begins != nullptr)
        begin = ld_global<int>(tiles_.begins + g);
      else if (g > 0 && tiles_.grouping != Grouping::masked)
        begin = ld_global<int>(tiles_.ends + g - 1);
      range_ = group_range(tiles_, g, begin, end);
      tiles = tiles_of_group(tiles_, range_, BlockM);
      if (tiles_.grouping == Grouping::k) blocks = ceil_div(range_.end - range_.begin, k_block);
    }
    warp::sync();
    int all_tiles = tiles, all_blocks = blocks;
#pragma unroll
    for (int distance = 1; distance < window; distance *= 2) {
      int const more_tiles = warp::shfl_up(all_tiles, distance);
      int const more_blocks = warp::shfl_up(all_blocks, distance);
      if (lane >= distance) all_tiles += more_tiles, all_blocks += more_blocks;
    }
    upto_ = total_ + all_tiles;
    from_ = upto_ - tiles;
    block_ = blocks_ + all_blocks - blocks;
    total_ = warp::shfl(upto_, window - 1);
    blocks_ = warp::shfl(block_ + blocks, window - 1);
  }

  TEGULA_DEVICE void find() {
    while (index_ >= total_ && first_ + window < tiles_.groups) {
      first_ += window;
      load();
    }
    if (done()) return;
    if (tiles_.grouping == Grouping::none) {
      tile = tile_of_group(tiles_, 0, range_, 0, index_, BlockM);
      return;
    }
    int const holder = warp::reduce_add(upto_ <= index_ ? 1 : 0);  // the lanes before it
    GroupRange const range = {warp::shfl(range_.begin, holder), warp::shfl(range_.end, holder)};
    tile = tile_of_group(tiles_, first_ + holder, range, warp::shfl(block_, holder),
                         index_ - warp::shfl(from_, holder), BlockM);
  }

  GroupTiles const& tiles_;
  int index_;
  int step_;
  int first_ = 0;   // group of lane 0
  int total_ = 0;   // tiles up to the last group held
  int blocks_ = 0;  // of K, up to the last group held
  // Of this lane's group:
  GroupRange range_;
  int from_ = 0, upto_ = 0;  // its tiles
  int block_ = 0;            // its first block of K
};

}  // namespace tegula
