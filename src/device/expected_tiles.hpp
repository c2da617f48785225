#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

/// How many tiles the rows of groups come to, whose sizes nobody knows before the kernel runs.
namespace tegula::device {

/// Rows of tiles of all groups: about normally distributed.
struct RowsOfTiles {
  double mean = 0;
  double deviation = 0;

  /// How often all of their tiles, `tiles_n` for each row of tiles, fill a machine that computes
  /// `resident` at a time: at the least, on average, and what a part of one is rounded up to.
  double turns(std::int64_t tiles_n, int resident) const {
    double const across = static_cast<double>(tiles_n), of_row = across / resident;
    // Where they may be many more or fewer, any part of a turn is about as likely to be left over.
    if (deviation * of_row > 16) return mean * of_row + 0.5;
    double full = std::floor((mean - 5 * deviation - 1) * of_row);
    full = std::max(0.0, full);  // of which there is no doubt
    double turns = full;
    for (;; ++full) {  // turns that are full before the next one
      double const more = probability_of_more_than(std::floor(full * resident / across));
      if (more < 0.001) return std::max(1.0, turns);
      turns += more;
    }
  }

 private:
  double probability_of_more_than(double rows) const {
    double const distance = rows + 0.5 - mean;  // there are whole ones
    if (deviation == 0) return distance < 0 ? 1 : 0;
    return 0.5 * std::erfc(distance / (deviation * std::sqrt(2.0)));
  }
};

/// The rows of tiles, of block_m rows each, of `groups` groups that have `rows` in the mean and at
/// the most `most`. Each has 0.7 to 1.3 of the mean, any as likely as any other, as in DeepGEMM's
/// tests; but where `total_is_known`, all have groups * rows together, and only what is left of
/// each one's last tile differs.
inline RowsOfTiles rows_of_tiles(std::int64_t groups, std::int64_t rows, std::int64_t most,
                                 int block_m, bool total_is_known) {
  constexpr double spread = 0.3;
  constexpr int samples = 64;
  double const size = static_cast<double>(std::max<std::int64_t>(rows, 1)),
               count = static_cast<double>(groups);
  double mean = 0, square = 0;
  for (int i = 0; i < samples; ++i) {
    double const drawn = size * (1 + spread * ((2 * i + 1.0) / samples - 1));
    double const of_group = std::min(drawn, static_cast<double>(most)) / block_m;
    double const tiles = std::ceil(of_group) - (total_is_known ? of_group : 0);
    mean += tiles / samples;
    square += tiles * tiles / samples;
  }
  double const variance = std::max(0.0, square - mean * mean);
  return {count * (mean + (total_is_known ? size / block_m : 0)), std::sqrt(count * variance)};
}

}  // namespace tegula::device
