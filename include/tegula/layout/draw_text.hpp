#pragma once

#include <algorithm>
#include <string>

#include "tegula/layout/draw.hpp"

namespace tegula {

/// The drawing as a table of characters: the title, then for each panel its name, the column
/// numbers, and the rows with their numbers. Heavier lines become a bar or a line of dashes. Lines
/// have no blanks at the end.
inline std::string to_text(Drawing const& drawing) {
  std::size_t width = std::to_string((drawing.columns - 1) * drawing.column_step).size();
  for (Drawing::Panel const& panel : drawing.panels) {
    for (Drawing::Cell const& cell : panel.cells)
      width = std::max(width, cell.text.size() + cell.below.size());
  }
  std::size_t const margin = std::to_string((drawing.rows - 1) * drawing.row_step).size();
  auto const right = [](std::string const& text, std::size_t wide) {
    return std::string(wide - text.size(), ' ') + text;
  };
  auto const breaks = [](int at, int every) { return every > 0 && at > 0 && at % every == 0; };
  auto const line = [](std::string& out, std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };

  std::string out = drawing.title + "\n";
  for (Drawing::Panel const& panel : drawing.panels) {
    if (!panel.title.empty()) out += panel.title + "\n";
    std::string header(margin + 2, ' ');
    std::string dashes = std::string(margin, ' ') + " +";
    for (int column = 0; column < drawing.columns; ++column) {
      if (breaks(column, drawing.column_break)) {
        header += "  ";
        dashes += "-+";
      }
      header += " " + right(std::to_string(column * drawing.column_step), width);
      dashes += std::string(width + 1, '-');
    }
    line(out, header);
    line(out, dashes);
    for (int row = 0; row < drawing.rows; ++row) {
      if (breaks(row, drawing.row_break)) line(out, dashes);
      std::string text = right(std::to_string(row * drawing.row_step), margin) + " |";
      for (int column = 0; column < drawing.columns; ++column) {
        if (breaks(column, drawing.column_break)) text += " |";
        Drawing::Cell const& cell =
            panel.cells[static_cast<std::size_t>(row * drawing.columns + column)];
        text += " " + right(cell.text + cell.below, width);
      }
      line(out, text);
    }
  }
  return out;
}

}  // namespace tegula
