#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/text.hpp"

/// Pictures of layouts, as values: what is in each cell and how it is coloured. draw_text.hpp,
/// draw_svg.hpp and draw_latex.hpp turn a Drawing into text.
namespace tegula {

/// A grid of cells, or several of equal size, each with row and column numbers.
struct Drawing {
  struct Cell {
    std::string text;                 ///< empty: nothing is here
    std::string below;                ///< a second line, where there is one
    std::uint32_t colour = 0xffffff;  ///< 0xRRGGBB
  };
  struct Panel {
    std::string title;        ///< empty where there is only one panel
    std::vector<Cell> cells;  ///< rows * columns of them, row by row
  };

  std::string title;
  int rows = 0;
  int columns = 0;
  int row_step = 1;     ///< the number at row r is r * row_step
  int column_step = 1;  ///< and at column c, c * column_step
  /// a heavier line after every so many rows: a boundary in a nested mode; 0 for none
  int row_break = 0;
  int column_break = 0;
  std::vector<Panel> panels = {};
};

namespace detail {

/// One of 32 light colours: eight hues, each in four strengths.
inline std::uint32_t palette(int index) {
  constexpr std::uint32_t hues[8] = {0xf29e97, 0xf5bf7d, 0xf0dd78, 0xaedb92,
                                     0x86d5c4, 0x92c9ef, 0xb1abea, 0xe6a3d6};
  constexpr std::uint32_t whitening[4] = {0, 26, 45, 62};  // percent
  std::uint32_t const hue = hues[index / 4 % 8];
  std::uint32_t const white = whitening[index % 4];
  std::uint32_t mixed = 0;
  for (int shift = 0; shift < 24; shift += 8) {
    std::uint32_t const part = hue >> shift & 0xff;
    mixed |= (part + (0xff - part) * white / 100) << shift;
  }
  return mixed;
}

/// From nearly white for the first of `count` offsets to blue for the last.
inline std::uint32_t shade(std::int64_t offset, std::int64_t count) {
  // Percent; of very large counts by steps of a percent.
  std::int64_t const inside = offset < 0 ? 0 : offset < count ? offset : count - 1;
  constexpr std::int64_t kExact = std::int64_t{1} << 56;
  std::int64_t const part = count <= 1        ? 0
                            : count <= kExact ? inside * 100 / (count - 1)
                                              : inside / ((count - 1) / 100);
  std::uint32_t mixed = 0;
  constexpr int from[3] = {0xf7, 0xfa, 0xfd};
  constexpr int to[3] = {0x8f, 0xb8, 0xde};
  for (int i = 0; i < 3; ++i)
    mixed = mixed << 8 | static_cast<std::uint32_t>(from[i] + (to[i] - from[i]) * part / 100);
  return mixed;
}

/// Where a nested mode's innermost run ends, for a heavier line; 0 for a mode of one run.
inline int break_of(Layout const& mode) {
  return mode.leaves() > 1 && mode.extents[0] > 1 && mode.extents[0] < mode.size()
             ? static_cast<int>(mode.extents[0])
             : 0;
}

/// The empty drawing of a layout's domain: mode 0 down, mode 1 across, a panel for each index of
/// the modes after that. A layout of one mode is one row.
inline Drawing canvas(Layout const& layout, std::string title) {
  constexpr std::int64_t kMostCells = 65536;
  if (layout.size() > kMostCells) refuse("draw", "more than 65536 cells would be drawn", layout);
  Drawing drawing{.title = std::move(title), .rows = 1, .columns = 1};
  int const rank = layout.rank();
  if (rank == 1) {
    drawing.columns = static_cast<int>(layout.size());
    drawing.column_break = break_of(layout[0]);
  } else if (rank > 1) {
    drawing.rows = static_cast<int>(layout[0].size());
    drawing.columns = static_cast<int>(layout[1].size());
    drawing.row_break = break_of(layout[0]);
    drawing.column_break = break_of(layout[1]);
  }
  std::int64_t const cells = static_cast<std::int64_t>(drawing.rows) * drawing.columns;
  for (std::int64_t panel = 0; panel < layout.size() / cells; ++panel) {
    std::string name;
    std::int64_t rest = panel;
    for (int mode = 2; mode < rank; ++mode) {
      name += "," + std::to_string(rest % layout[mode].size());
      rest /= layout[mode].size();
    }
    drawing.panels.push_back({rank > 2 ? "(_,_" + name + ")" : std::string(),
                              std::vector<Drawing::Cell>(static_cast<std::size_t>(cells))});
  }
  return drawing;
}

/// The cell of a flat colexicographic index of the drawn domain.
inline Drawing::Cell& cell_at(Drawing& drawing, std::int64_t index) {
  std::int64_t const row = index % drawing.rows;
  std::int64_t const column = index / drawing.rows % drawing.columns;
  std::int64_t const panel = index / drawing.rows / drawing.columns;
  return drawing.panels[static_cast<std::size_t>(panel)]
      .cells[static_cast<std::size_t>(row * drawing.columns + column)];
}

}  // namespace detail

/// A layout or swizzled layout: in each cell the offset there, darker as it grows. Mode 0 runs down
/// and mode 1 across; each index of further modes is a panel. Refused (as are the other drawings)
/// for more than 65536 cells.
inline Drawing draw(SwizzledLayout const& layout) {
  Drawing drawing = detail::canvas(layout.layout, to_string(layout));
  std::int64_t const cosize = layout.cosize();
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    std::int64_t const offset = layout(i);
    detail::cell_at(drawing, i) = {std::to_string(offset), "", detail::shade(offset, cosize)};
  }
  return drawing;
}

/// A layout; where its values are coordinates the cells hold those, in one colour.
inline Drawing draw(Layout const& layout) {
  if (!layout.has_axes()) return draw(SwizzledLayout(layout));
  Drawing drawing = detail::canvas(layout, to_string(layout));
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    detail::cell_at(drawing, i) = {to_string(layout.coordinate(Tuple(i))), "", detail::shade(0, 1)};
  }
  return drawing;
}

/// Who holds what: `threads_values` maps (thread, value) to the flat colexicographic index of an
/// element of a tile of shape `tile` (one or two modes). In each cell the thread over the value,
/// coloured by thread; with several holders the first, and how many more there are. Elements that
/// nobody holds stay empty. Refused where an index falls outside the tile.
inline Drawing draw_threads(Layout const& threads_values, Tuple const& tile) {
  if (threads_values.rank() != 2)
    refuse("draw_threads", "the layout has not the modes (thread, value)", threads_values);
  Drawing drawing =
      detail::canvas(layout(tile), to_string(threads_values) + "  in  " + to_string(tile));
  std::int64_t const threads = threads_values[0].size();
  std::int64_t const values = threads_values[1].size();
  std::vector<int> holders(static_cast<std::size_t>(tile.size()));
  for (std::int64_t v = 0; v < values; ++v) {
    for (std::int64_t t = 0; t < threads; ++t) {
      std::int64_t const index = threads_values(t + v * threads);
      if (index < 0 || index >= tile.size())
        refuse("draw_threads", "an element lies outside the tile", threads_values, tile, index);
      Drawing::Cell& cell = detail::cell_at(drawing, index);
      if (holders[static_cast<std::size_t>(index)]++ == 0)
        cell = {"T" + std::to_string(t), "V" + std::to_string(v),
                detail::palette(static_cast<int>(t % 32))};
    }
  }
  for (std::int64_t i = 0; i < tile.size(); ++i) {
    int const more = holders[static_cast<std::size_t>(i)] - 1;
    if (more > 0) detail::cell_at(drawing, i).text += "+" + std::to_string(more);
  }
  return drawing;
}

namespace detail {

/// The flat index of the `i`th element of cell (row, column) of panel `panel` where a cell holds
/// `vector` elements along mode 1 (across) or mode 0. `domain` is the drawing of single elements.
struct VectorCells {
  Drawing const& domain;
  bool across;
  int vector;

  int rows() const { return across ? domain.rows : domain.rows / vector; }
  int columns() const { return across ? domain.columns / vector : domain.columns; }
  std::int64_t index(int row, int column, std::size_t panel, int i) const {
    std::int64_t const r = across ? row : row * vector + i;
    std::int64_t const c = across ? column * vector + i : column;
    return r + domain.rows * (c + domain.columns * static_cast<std::int64_t>(panel));
  }
  /// Whether each cell's elements follow one another in memory.
  bool contiguous(SwizzledLayout const& memory) const {
    if ((across ? domain.columns : domain.rows) % vector != 0) return false;
    for (std::size_t panel = 0; panel < domain.panels.size(); ++panel) {
      for (int cell = 0; cell < rows() * columns(); ++cell) {
        std::int64_t const first = memory(index(cell / columns(), cell % columns(), panel, 0));
        for (int i = 1; i < vector; ++i) {
          if (memory(index(cell / columns(), cell % columns(), panel, i)) != first + i)
            return false;
        }
      }
    }
    return true;
  }
};

}  // namespace detail

/// Where a tile lies in the 32 banks of shared memory: in each cell the bank, or the first and
/// last, that hold `vector` consecutive elements of `element_bits`, coloured by the first.
/// Consecutive is along mode 1 if memory is so there, else along mode 0. A vector of 0 asks for the
/// widest up to 16 bytes that is contiguous in every cell; one that is not contiguous is refused.
inline Drawing draw_banks(SwizzledLayout const& memory, int element_bits, int vector = 0) {
  constexpr int kWidest = 1 << 16;
  if (element_bits < 1 || element_bits > kWidest || vector < 0 || vector > kWidest)
    refuse("draw_banks", "element bits are 1 to 65536, and a vector is 0 to 65536", element_bits,
           vector);
  Drawing const domain =
      detail::canvas(memory.layout, to_string(memory) + "  in banks, " +
                                        std::to_string(element_bits) + "-bit elements");
  bool const across =
      domain.columns > 1 && (domain.rows == 1 || memory(domain.rows) == memory(0) + 1);
  detail::VectorCells cells{domain, across, vector};
  if (vector == 0) {
    cells.vector = 1;
    for (int wider = 2; wider * element_bits <= 128; wider *= 2) {
      if (detail::VectorCells{domain, across, wider}.contiguous(memory)) cells.vector = wider;
    }
  } else if (!cells.contiguous(memory)) {
    refuse("draw_banks", "the elements of a vector are not contiguous in memory", memory, vector);
  }

  Drawing drawing = domain;
  drawing.rows = cells.rows();
  drawing.columns = cells.columns();
  (across ? drawing.column_step : drawing.row_step) = cells.vector;
  int& heavier = across ? drawing.column_break : drawing.row_break;
  heavier = heavier % cells.vector == 0 ? heavier / cells.vector : 0;
  for (std::size_t panel = 0; panel < drawing.panels.size(); ++panel) {
    drawing.panels[panel].cells.clear();
    for (int cell = 0; cell < drawing.rows * drawing.columns; ++cell) {
      std::int64_t const offset =
          memory(cells.index(cell / drawing.columns, cell % drawing.columns, panel, 0));
      int const first = bank_of_element(offset, element_bits);
      int const last = detail::bank_of_bit(
          (static_cast<std::uint64_t>(offset) + cells.vector) * element_bits - 1);
      std::string const through = last != first ? "-" + std::to_string(last) : std::string();
      drawing.panels[panel].cells.push_back(
          {std::to_string(first) + through, "", detail::palette(first)});
    }
  }
  return drawing;
}

/// How an access goes through the banks: for the first instruction of a warp a panel for each
/// phase, its rows the wavefronts in turn, its columns the 32 banks, in each cell the lane that is
/// served there. One row a panel means free of conflicts.
inline Drawing draw_wavefronts(SharedAccess const& access, SwizzledLayout const& memory) {
  detail::AccessShape const shape = detail::access_shape(access);
  std::int64_t addresses[32] = {};
  detail::lane_addresses(access, shape, memory, 0, 0, addresses);
  int const phase = lanes_per_phase(access.bytes);
  std::vector<std::vector<Drawing::Cell>> phases;
  int rows = 1;
  for (int first = 0; first < shape.lanes; first += phase) {
    // of each bank, in the order of their wavefronts
    std::vector<std::vector<std::int64_t>> words(kBanks);
    std::vector<Drawing::Cell>& cells = phases.emplace_back();
    for (int lane = first; lane < shape.lanes && lane < first + phase; ++lane) {
      for (std::int64_t byte = addresses[lane]; byte < addresses[lane] + access.bytes;
           byte += kBankBytes) {
        std::int64_t const word = word_of(byte);
        std::vector<std::int64_t>& bank = words[static_cast<std::size_t>(bank_of(byte))];
        std::size_t turn = 0;
        while (turn < bank.size() && bank[turn] != word) ++turn;
        bool const shared = turn < bank.size();
        if (!shared) bank.push_back(word);
        if (cells.size() < (turn + 1) * kBanks) cells.resize((turn + 1) * kBanks);
        Drawing::Cell& cell = cells[turn * kBanks + static_cast<std::size_t>(bank_of(byte))];
        if (!shared) cell = {"T" + std::to_string(lane), "", detail::palette(lane)};
      }
    }
    rows = std::max(rows, static_cast<int>(cells.size() / kBanks));
  }
  Drawing drawing{
      .title = to_string(memory) + "  wavefronts by bank", .rows = rows, .columns = kBanks};
  drawing.column_break = access.bytes > kBankBytes ? access.bytes / kBankBytes : 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    phases[i].resize(static_cast<std::size_t>(rows) * kBanks);
    std::string name = "phase " + std::to_string(i);
    drawing.panels.push_back({phases.size() > 1 ? name : std::string(), std::move(phases[i])});
  }
  return drawing;
}

}  // namespace tegula
