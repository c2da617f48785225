#pragma once

#include <cstdint>

#include "tegula/layout/refuse.hpp"
#include "tegula/macros.hpp"
#include "tegula/pipeline/divisor.hpp"

namespace tegula {

/// Along which axis of D consecutive tiles follow each other.
enum class Raster : std::uint8_t { along_m, along_n };

/// The axis.
constexpr char const* to_string(Raster raster) { return raster == Raster::along_m ? "m" : "n"; }

/// A tile of D, in units of tiles, and the batch it belongs to.
struct TileCoordinate {
  int m = 0;
  int n = 0;
  int batch = 0;

  constexpr bool operator==(TileCoordinate const&) const = default;
};

/// The order in which the tiles of a problem are computed: a value, and a function from a tile's
/// index to its coordinate. Every index in [0, tiles()) is another tile, and every tile has one.
///
/// A batch's tiles are cut into bands of `group` tiles across the raster axis; a band is walked
/// along the raster axis, its tiles across first. Tiles computed at the same time then form a block
/// about as high as wide, and share the rows of A and of B that they read from L2.
struct TileScheduler {
  int tiles_m = 1;
  int tiles_n = 1;
  int batches = 1;
  Raster raster = Raster::along_n;
  int group = 1;  ///< tiles across the raster axis in a band; at least 1

  /// What tile() computes with. One member, made of those above: they are not assigned to
  /// afterwards. (Of several members with initializers, nvcc makes no constant.)
  struct Bands {
    int along, across;
    int whole;
    int rest;  ///< tiles across in the band after the whole ones; 0: there is none
    Divisor batch_tiles;
    Divisor band_tiles;
    Divisor by_group;
    Divisor by_rest;

    constexpr Bands(int tiles_m, int tiles_n, Raster raster, int group)
        : along(raster == Raster::along_n ? tiles_n : tiles_m),
          across(raster == Raster::along_n ? tiles_m : tiles_n),
          whole(across / at_least_1(group, tiles_m, tiles_n)),
          rest(across % group),
          batch_tiles(tiles_m * tiles_n),
          band_tiles(group * along),
          by_group(group),
          by_rest(rest > 0 ? rest : 1) {}
    constexpr bool operator==(Bands const&) const = default;

   private:
    static constexpr int at_least_1(int group, int tiles_m, int tiles_n) {
      if (group < 1 || tiles_m < 1 || tiles_n < 1)
        refuse("TileScheduler", "tiles_m, tiles_n and group are at least 1", tiles_m, tiles_n,
               group);
      return group;
    }
  };
  Bands bands = Bands(tiles_m, tiles_n, raster, group);

  TEGULA_HOST_DEVICE constexpr int tiles() const { return tiles_m * tiles_n * batches; }

  constexpr bool operator==(TileScheduler const&) const = default;

  /// Precondition: index >= 0. From tiles() on, the coordinate means nothing; it may be asked for
  /// before it is known whether there is such a tile.
  TEGULA_HOST_DEVICE constexpr TileCoordinate tile(int index) const {
    int const batch = batches == 1 ? 0 : index / bands.batch_tiles;
    int const within = index - batch * (tiles_m * tiles_n);
    int const band = within / bands.band_tiles;
    int const in_band = within - band * group * bands.along;
    bool const whole = band < bands.whole;
    int const at_along = whole ? in_band / bands.by_group : in_band / bands.by_rest;
    int const at_across = band * group + in_band - at_along * (whole ? group : bands.rest);
    return raster == Raster::along_n ? TileCoordinate{at_across, at_along, batch}
                                     : TileCoordinate{at_along, at_across, batch};
  }
};

}  // namespace tegula
