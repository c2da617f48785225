#include "draw_tiling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tegula/device/launch.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/draw_svg.hpp"

namespace tegula::tool {
namespace {

// Pixels.
constexpr double kMargin = 14, kTitle = 42, kLegend = 24, kAxis = 34, kRowNumbers = 46;
constexpr double kMap = 480;      // the longer side of D, or of all batches' together
constexpr double kLeastTile = 5;  // of a tile, either way, and of D
constexpr double kLeastMap = 30, kBatchTitle = 16, kBatchGap = 36;
constexpr double kShares = 520;    // the most tiles of a worker, all of the wider kind
constexpr double kBetween = 70;    // from D to the shares
constexpr double kLeastShare = 4;  // the height of a worker's
constexpr double kApart = 40;      // of numbers along an axis, at least
constexpr int kMostShares = 512;   // of more workers the shares are not drawn

constexpr std::uint32_t kLastWave = 0xf5bf7d;
constexpr int kMostNamedWaves = 6;

struct Box {
  double x, y, width, height;
};

std::string rectangle(Box const& b, std::string const& rest) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"{}", b.x,
                     b.y, b.width, b.height, rest);
}

/// Where the kernel computes D^T, it is D^T that is drawn: its rows are columns of D.
class Picture {
 public:
  Picture(GemmArguments const& g, GemmSm90Config const& config, GemmChoice const& choice)
      : g_(config.transposed ? transposed(g) : g),
        config_(config),
        tiling_(choice.tiling),
        widths_(tile_widths(config)),
        height_(config.block_m * config.cluster_m),
        workers_(choice.clusters),
        batches_(choice.tiling.order().batches),
        parts_(choice.parts) {
    for (TileRegion const& region : tiling_.regions) {
      if (region.first >= tiling_.tiles) continue;
      rows_ = std::max(rows_, region.m + region.order.tiles_m);
      across_[region.m] += region.order.tiles_n;
    }
    shares_.resize(static_cast<std::size_t>(workers_));
    for (int i = 0; i < tiling_.tiles; ++i)
      shares_[static_cast<std::size_t>(i % workers_)] += columns_of(i);
    place();
  }

  std::string draw() const {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
        "<style>text{{font:10px 'DejaVu Sans',Verdana,sans-serif;fill:#1c2733}}.t{{font-size:13px;font-weight:bold}}"
        ".n text{{fill:#7a8794}}.c{{stroke:#fff;stroke-width:0.7}}.h{{fill:url(#narrow)}}"
        ".s{{stroke:#fff;stroke-opacity:0.75;stroke-width:0.7;fill:none}}"
        ".l{{text-anchor:middle;stroke:#fff;stroke-opacity:0.7;stroke-width:2.5;paint-order:stroke}}"
        ".o{{fill:none;stroke:#1c2733;stroke-width:1.8}}.b{{fill:none;stroke:#5b6875;stroke-width:1.3}}"
        ".e{{stroke:#b3261e;stroke-width:1.2;stroke-dasharray:4 3}}</style>\n"
        "<defs><pattern id=\"narrow\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><path d=\"M0 0V5\" stroke=\"#1c2733\" stroke-opacity=\"0.45\" "
        "stroke-width=\"1.6\"/></pattern></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width_, height_of_picture_);
    out += fmt::format("<text class=\"t\" x=\"{}\" y=\"{}\">{}</text>\n", kMargin, kMargin + 12,
                       detail::escape_xml(title()));
    out += detail::svg_text(static_cast<int>(kMargin), static_cast<int>(kMargin + 29), subtitle());
    return out + legend() + map() + (shows_shares_ ? shares() : "") + "</svg>\n";
  }

 private:
  static GemmArguments transposed(GemmArguments g) {
    std::swap(g.m, g.n);
    return g;
  }
  char const* name_of_rows() const { return config_.transposed ? "columns" : "rows"; }
  char const* name_of_columns() const { return config_.transposed ? "rows" : "columns"; }

  int columns_of(int tile) const { return tiling_.narrow(tile) ? widths_.narrow : widths_.wide; }
  int wave_of(int tile) const { return tile / workers_; }
  int waves() const { return (tiling_.tiles + workers_ - 1) / workers_; }
  /// "cluster", or "CTA" where a cluster is one.
  char const* worker() const { return cluster_size(config_) > 1 ? "cluster" : "CTA"; }

  std::string title() const {
    return fmt::format(
        "D of {} x {}{}{}: {}", config_.transposed ? g_.n : g_.m, config_.transposed ? g_.m : g_.n,
        g_.batch > 1 ? fmt::format(" x {}", g_.batch) : "",
        config_.transposed ? ", transposed" : "",
        parts_ == 1 ? to_string(tiling_, widths_)
                    : fmt::format("{} for each of {} parts of k",
                                  io::counted(tiling_.tiles / batches_, "tile"), parts_));
  }
  std::string subtitle() const {
    std::string const cta = fmt::format("{} x {}", config_.block_m, config_.block_n);
    std::string const workers = io::counted(workers_, worker());
    if (config_.split_k > 1)
      return fmt::format("{}, each of {} CTAs that share the K of a tile of {}", workers,
                         config_.split_k, cta);
    if (cluster_size(config_) == 1) return fmt::format("{}, tiles of {}", workers, cta);
    return fmt::format("{}, whose tiles of {} x {} are those of {} x {} CTAs, {} each", workers,
                       height_, widths_.wide, config_.cluster_m, config_.cluster_n, cta);
  }

  std::uint32_t colour(int wave) const {
    if (waves() > 1 && wave == waves() - 1) return kLastWave;
    // From a light blue for the first to the darkest for the last but one.
    std::int64_t const steps = std::max(1, waves() - 2);
    return detail::shade(18 * steps + 82 * wave, 100 * steps + 1);
  }

  /// Where everything goes.
  void place() {
    int most_across = 1;
    for (auto const& [row, tiles] : across_) most_across = std::max(most_across, tiles);
    // About as high as wide together.
    auto const m = static_cast<double>(g_.m), n = static_cast<double>(g_.n);
    panels_across_ = static_cast<int>(
        std::clamp(std::ceil(std::sqrt(batches_ * (m / n))), 1.0, static_cast<double>(batches_)));
    int const panels_down = (batches_ + panels_across_ - 1) / panels_across_;
    double const scale = kMap / std::max(panels_down * m, panels_across_ * n);
    map_.width = std::max({scale * n, kLeastTile * most_across, kLeastMap});
    map_.height = std::max({scale * m, kLeastTile * rows_, kLeastMap});
    map_.x = kMargin + kRowNumbers;
    map_.y = kMargin + kTitle + kLegend + kAxis + (batches_ > 1 ? kBatchTitle : 0);
    double const maps_right = map_.x + panels_across_ * (map_.width + kBatchGap) - kBatchGap;
    double const maps_bottom = panel(batches_ - 1).y + map_.height;

    shows_shares_ = waves() > 1 && workers_ <= kMostShares;
    longest_ = *std::max_element(shares_.begin(), shares_.end());
    double const height = std::max(maps_bottom - map_.y, kLeastShare * workers_);
    share_box_ = {maps_right + kBetween, map_.y, kShares, height};
    double const right = shows_shares_ ? share_box_.x + share_box_.width + 20 : maps_right;
    // Room for the text above, too.
    auto const letters = static_cast<double>(std::max(title().size() * 8, subtitle().size() * 6));
    width_ = std::max({right, kMargin + letters, 620.0}) + kMargin;
    height_of_picture_ = (shows_shares_ ? share_box_.y + height + 32 : maps_bottom) + kMargin;
  }
  std::string name_of_panel(int batch) const {
    if (parts_ == 1) return fmt::format("batch {}", batch);
    std::string const part = fmt::format("part {} of k", batch % parts_);
    return g_.batch == 1 ? part : fmt::format("batch {}, {}", batch / parts_, part);
  }

  /// D of a batch.
  Box panel(int batch) const {
    double const down = map_.height + kBatchGap + (batches_ > 1 ? kBatchTitle : 0);
    return {map_.x + batch % panels_across_ * (map_.width + kBatchGap),
            map_.y + batch / panels_across_ * down, map_.width, map_.height};
  }

  std::string legend() const {
    double x = kMargin;
    constexpr double y = kMargin + kTitle;
    std::string out;
    auto const add = [&](std::string const& swatch, std::string const& text) {
      out += rectangle({x, y, 12, 12}, swatch) + "/>" +
             detail::svg_text(static_cast<int>(x) + 17, static_cast<int>(y) + 10, text);
      x += 17 + 6 * static_cast<double>(text.size()) + 12;
    };
    auto const wave = [&](int i, std::string const& text) {
      add(fmt::format(" fill=\"{}\"", detail::colour_code(colour(i))), text);
    };
    int const last = waves() - 1;
    if (waves() <= kMostNamedWaves) {
      for (int i = 0; i < last; ++i) wave(i, fmt::format("wave {}", i));
    } else {
      wave(0, "wave 0");
      wave(last - 1, fmt::format("... wave {}", last - 1));
    }
    wave(last, fmt::format("wave {}: {} of {}", last, tiling_.tiles - last * workers_,
                           io::counted(workers_, worker())));
    if (tiling_.fitted()) add(" class=\"h\"", io::counted(widths_.narrow, "column") + " wide");
    add(" class=\"o\"", fmt::format("of {} 0", worker()));
    return out;
  }

  std::string map() const {
    std::map<std::uint32_t, std::string> tiles;  // by colour
    std::string narrow, ctas, outlined, labels;
    Box smallest = map_;
    double const across = map_.width / static_cast<double>(g_.n),
                 down = map_.height / static_cast<double>(g_.m);
    for (int i = 0; i < tiling_.tiles; ++i) {
      Tile const tile = tiling_.tile(i, widths_.wide, widths_.narrow);
      std::int64_t const row = std::int64_t{1} * tile.m * height_;
      std::int64_t const row_end = std::min<std::int64_t>(g_.m, row + height_),
                         column_end = std::min<std::int64_t>(g_.n, tile.column + columns_of(i));
      Box const d = panel(tile.batch);
      Box const box = {d.x + across * tile.column, d.y + down * static_cast<double>(row),
                       across * static_cast<double>(column_end - tile.column),
                       down * static_cast<double>(row_end - row)};
      std::string const tooltip = fmt::format(
          "><title>tile {}: {} {} to {}, {} {} to {}{}; wave {}, {} {}</title></rect>\n", i,
          name_of_rows(), row, row_end - 1, name_of_columns(), tile.column, column_end - 1,
          batches_ > 1 ? ", " + name_of_panel(tile.batch) : "", wave_of(i), worker(), i % workers_);
      tiles[colour(wave_of(i))] += rectangle(box, tooltip);
      if (tiling_.narrow(i)) narrow += rectangle(box, " pointer-events=\"none\"/>\n");
      if (i % workers_ == 0) outlined += rectangle(inset(box, 0.9), "/>\n");
      for (int cta = 1; cta < config_.cluster_m; ++cta) {
        double const y = box.y + down * cta * config_.block_m;
        if (y < box.y + box.height)
          ctas += fmt::format("M{:.1f} {:.1f}h{:.1f}", box.x, y, box.width);
      }
      for (int cta = 1; cta < config_.cluster_n; ++cta) {
        double const x = box.x + across * cta * columns_of(i) / config_.cluster_n;
        if (x < box.x + box.width)
          ctas += fmt::format("M{:.1f} {:.1f}v{:.1f}", x, box.y, box.height);
      }
      smallest = {0, 0, std::min(smallest.width, box.width), std::min(smallest.height, box.height)};
      labels += at(box.x + box.width / 2, box.y + box.height / 2 + 4, std::to_string(i));
    }
    std::string out;
    for (auto const& [fill, group] : tiles)
      out += fmt::format("<g class=\"c\" fill=\"{}\">\n{}</g>\n", detail::colour_code(fill), group);
    if (!ctas.empty()) out += fmt::format("<path class=\"s\" d=\"{}\"/>\n", ctas);
    out += "<g class=\"h\">\n" + narrow + "</g>\n";
    bool const fits =
        6.5 * static_cast<double>(std::to_string(tiling_.tiles - 1).size()) + 4 < smallest.width;
    if (fits && smallest.height > 12) out += "<g class=\"l\">\n" + labels + "</g>\n";
    out += "<g class=\"o\">\n" + outlined + "</g>\n";
    for (int batch = 0; batch < batches_; ++batch) {
      out += rectangle(panel(batch), " class=\"b\"/>\n");
      if (batches_ > 1)
        out += detail::svg_text(static_cast<int>(panel(batch).x),
                                static_cast<int>(panel(batch).y) - 4, name_of_panel(batch));
    }
    return out + numbers();
  }

  /// Rows of D down the first panels, columns of it along the uppermost ones.
  std::string numbers() const {
    std::string rows, columns;
    for (int batch = 0; batch < batches_; ++batch) {
      Box const d = panel(batch);
      if (batch % panels_across_ == 0) {
        for (std::int64_t const row : marks(g_.m, height_, d.height, 14))
          rows +=
              at(d.x - 5, d.y + d.height * static_cast<double>(row) / static_cast<double>(g_.m) + 4,
                 std::to_string(row));
      }
      if (batch < panels_across_) {
        double const y = d.y - 5 - (batches_ > 1 ? kBatchTitle : 0);
        for (std::int64_t const column : marks(g_.n, widths_.wide, d.width, kApart))
          columns += at(d.x + d.width * static_cast<double>(column) / static_cast<double>(g_.n), y,
                        std::to_string(column));
      }
    }
    double const y = map_.y - 5 - (batches_ > 1 ? kBatchTitle : 0);
    rows += at(map_.x - 9, y, name_of_rows());
    columns += at(map_.x + map_.width / 2, y - 15, std::string(name_of_columns()) + " of D");
    return "<g class=\"n\" text-anchor=\"end\">\n" + rows +
           "</g>\n<g class=\"n\" text-anchor=\"middle\">\n" + columns + "</g>\n";
  }

  /// What each worker computes, one tile after another, from left to right.
  std::string shares() const {
    Box const& box = share_box_;
    double const across = box.width / (waves() * widths_.wide), down = box.height / workers_;
    std::map<std::uint32_t, std::string> tiles;
    std::string narrow;
    std::vector<std::int64_t> done(shares_.size());
    for (int i = 0; i < tiling_.tiles; ++i) {
      std::int64_t& before = done[static_cast<std::size_t>(i % workers_)];
      Box const tile = {box.x + across * static_cast<double>(before), box.y + down * (i % workers_),
                        across * columns_of(i), down};
      before += columns_of(i);
      tiles[colour(wave_of(i))] += rectangle(
          tile, fmt::format("><title>{} {}: tile {}</title></rect>\n", worker(), i % workers_, i));
      if (tiling_.narrow(i)) narrow += rectangle(tile, " pointer-events=\"none\"/>\n");
    }
    std::string out;
    for (auto const& [fill, group] : tiles)
      out += fmt::format("<g class=\"c\" fill=\"{}\">\n{}</g>\n", detail::colour_code(fill), group);
    out += "<g class=\"h\">\n" + narrow + "</g>\n";
    out += rectangle(inset({box.x, box.y, across * static_cast<double>(shares_[0]), down}, 0.4),
                     " class=\"o\"/>\n");
    std::string columns, rows;
    for (std::int64_t const mark :
         marks(std::int64_t{waves()} * widths_.wide, widths_.wide, box.width, kApart))
      columns += at(box.x + across * static_cast<double>(mark), box.y - 5, std::to_string(mark));
    columns +=
        at(box.x + box.width / 2, box.y - 20,
           fmt::format("{} that each {} computes, tile after tile", name_of_columns(), worker()));
    for (std::int64_t const mark : marks(workers_, 1, box.height, 24))
      if (mark < workers_)
        rows += at(box.x - 5, box.y + down * (static_cast<double>(mark) + 0.5) + 4,
                   std::to_string(mark));
    out += "<g class=\"n\" text-anchor=\"middle\">\n" + columns +
           "</g>\n<g class=\"n\" text-anchor=\"end\">\n" + rows + "</g>\n";

    double const even = static_cast<double>(g_.n) * rows_ * batches_ / workers_;
    double const bottom = box.y + box.height;
    auto const line = [&](double share, double length, std::string const& text) {
      double const x = box.x + across * share;
      return fmt::format("<path class=\"e\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", x, box.y,
                         bottom + length) +
             at(x - 4, bottom + length, text);
    };
    return out + "<g text-anchor=\"end\">\n" +
           line(even, 13, fmt::format("an even share: {:.0f} {}", even, name_of_columns())) +
           line(static_cast<double>(longest_), 28,
                fmt::format("the longest: {}, {}", longest_,
                            tiling_.fitted()
                                ? fmt::format("{:.2f} tiles' worth",
                                              static_cast<double>(longest_) / widths_.wide)
                                : io::counted(longest_ / widths_.wide, "tile"))) +
           "</g>\n";
  }

  static Box inset(Box const& b, double by) {
    return {b.x + by, b.y + by, std::max(0.0, b.width - 2 * by), std::max(0.0, b.height - 2 * by)};
  }
  static std::string at(double x, double y, std::string const& text) {
    return detail::svg_text(static_cast<int>(std::lround(x)), static_cast<int>(std::lround(y)),
                            text);
  }
  /// Multiples of `step`, or of some doubling of it, that lie `apart` pixels apart on `pixels`,
  /// and `extent`.
  static std::vector<std::int64_t> marks(std::int64_t extent, std::int64_t step, double pixels,
                                         double apart) {
    double const pixel = static_cast<double>(extent) / pixels;
    while (static_cast<double>(step) < apart * pixel) step *= 2;
    std::vector<std::int64_t> marks;
    for (std::int64_t mark = 0; static_cast<double>(extent - mark) >= apart * pixel || mark == 0;
         mark += step)
      marks.push_back(mark);
    if (marks.back() != extent) marks.push_back(extent);
    return marks;
  }

  GemmArguments const g_;
  GemmSm90Config const& config_;
  TilePartition const& tiling_;
  TileWidths widths_;
  int height_;  ///< rows of D in a worker's tile
  int workers_;
  int batches_;  ///< or parts of K of such: as many panels
  int parts_;
  int rows_ = 0;                      ///< rows of tiles
  std::map<int, int> across_;         ///< tiles in a row, by the first such row
  std::vector<std::int64_t> shares_;  ///< columns that each worker computes
  std::int64_t longest_ = 0;
  int panels_across_ = 1;
  Box map_{}, share_box_{};
  bool shows_shares_ = false;
  double width_ = 0, height_of_picture_ = 0;
};

}  // namespace

std::string draw_tiling(GemmArguments const& arguments, GemmChoice const& choice) {
  if (choice.kernel != gemm_sm90)
    throw argument_error(
        fmt::format("gemm: {} computes this problem; only gemm_sm90's tiles are drawn.",
                    to_string(choice.kernel)));
  if (choice.tiling.tiles > kMostDrawnTiles)
    throw argument_error(fmt::format("gemm: D is cut into {} tiles; at most {} are drawn.",
                                     choice.tiling.tiles, kMostDrawnTiles));
  return Picture(arguments, configuration(gemm_sm90, choice.configuration), choice).draw();
}

}  // namespace tegula::tool
