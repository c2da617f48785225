#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "tegula/layout/draw.hpp"

namespace tegula {

namespace detail {

inline std::string colour_code(std::uint32_t colour) {
  char code[8];
  std::snprintf(code, sizeof(code), "#%06x", colour & 0xffffff);
  return code;
}

inline std::string escape_xml(std::string const& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// The measures of a drawing on paper, in pixels.
struct SvgMeasures {
  int cell_width;
  int cell_height;
  int left;  // of the first column: room for the row numbers
  int panel_height;
  int width;
  int height;

  static constexpr int kMargin = 10;
  static constexpr int kTitle = 24;
  static constexpr int kNumbers = 16;  // the line of column numbers
  static constexpr int kPanelTitle = 18;
};

inline SvgMeasures svg_measures(Drawing const& drawing) {
  constexpr int kCharacter = 7;
  std::size_t longest = std::to_string((drawing.columns - 1) * drawing.column_step).size();
  bool two_lines = false;
  bool named = false;
  for (Drawing::Panel const& panel : drawing.panels) {
    named = named || !panel.title.empty();
    for (Drawing::Cell const& cell : panel.cells) {
      longest = std::max({longest, cell.text.size(), cell.below.size()});
      two_lines = two_lines || !cell.below.empty();
    }
  }
  SvgMeasures at{};
  at.cell_width = std::max(24, kCharacter * static_cast<int>(longest) + 10);
  at.cell_height = two_lines ? 32 : 22;
  at.left =
      SvgMeasures::kMargin +
      kCharacter * static_cast<int>(std::to_string((drawing.rows - 1) * drawing.row_step).size()) +
      8;
  at.panel_height = (named ? SvgMeasures::kPanelTitle : 0) + SvgMeasures::kNumbers +
                    drawing.rows * at.cell_height + SvgMeasures::kMargin;
  int const title = 2 * SvgMeasures::kMargin + kCharacter * static_cast<int>(drawing.title.size());
  at.width = std::max(at.left + drawing.columns * at.cell_width + SvgMeasures::kMargin, title);
  at.height = SvgMeasures::kMargin + SvgMeasures::kTitle +
              static_cast<int>(drawing.panels.size()) * at.panel_height;
  return at;
}

inline std::string svg_text(int x, int y, std::string const& text) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\">" +
         escape_xml(text) + "</text>\n";
}

/// One panel with its top at y.
inline std::string svg_panel(Drawing const& drawing, Drawing::Panel const& panel,
                             SvgMeasures const& at, int y) {
  std::string out;
  if (!panel.title.empty()) {
    out += "<g class=\"n\" text-anchor=\"start\">\n" + svg_text(at.left, y + 12, panel.title) +
           "</g>\n";
    y += SvgMeasures::kPanelTitle;
  }
  out += "<g class=\"n\">\n";
  for (int column = 0; column < drawing.columns; ++column) {
    out += svg_text(at.left + column * at.cell_width + at.cell_width / 2, y + 11,
                    std::to_string(column * drawing.column_step));
  }
  y += SvgMeasures::kNumbers;
  out += "</g>\n<g class=\"n\" text-anchor=\"end\">\n";
  for (int row = 0; row < drawing.rows; ++row) {
    out += svg_text(at.left - 6, y + row * at.cell_height + at.cell_height / 2 + 4,
                    std::to_string(row * drawing.row_step));
  }
  out += "</g>\n";

  // Cells of one colour together, so that each colour is said once.
  std::map<std::uint32_t, std::string> rectangles;
  std::string labels;
  for (int row = 0; row < drawing.rows; ++row) {
    for (int column = 0; column < drawing.columns; ++column) {
      Drawing::Cell const& cell =
          panel.cells[static_cast<std::size_t>(row * drawing.columns + column)];
      int const x = at.left + column * at.cell_width;
      int const top = y + row * at.cell_height;
      int const middle = x + at.cell_width / 2;
      rectangles[cell.colour] += "<rect x=\"" + std::to_string(x) + "\" y=\"" +
                                 std::to_string(top) + "\" width=\"" +
                                 std::to_string(at.cell_width) + "\" height=\"" +
                                 std::to_string(at.cell_height) + "\"/>\n";
      if (cell.below.empty()) {
        if (!cell.text.empty()) labels += svg_text(middle, top + at.cell_height / 2 + 4, cell.text);
      } else {
        labels += svg_text(middle, top + 13, cell.text) + svg_text(middle, top + 26, cell.below);
      }
    }
  }
  for (auto const& [colour, group] : rectangles) {
    out += "<g class=\"c\" fill=\"" + colour_code(colour) + "\">\n" + group + "</g>\n";
  }
  out += "<g class=\"l\">\n" + labels + "</g>\n";

  int const right = at.left + drawing.columns * at.cell_width;
  int const bottom = y + drawing.rows * at.cell_height;
  std::string path;
  for (int row = drawing.row_break; drawing.row_break > 0 && row < drawing.rows;
       row += drawing.row_break) {
    path += "M" + std::to_string(at.left) + " " + std::to_string(y + row * at.cell_height) + "H" +
            std::to_string(right);
  }
  for (int column = drawing.column_break; drawing.column_break > 0 && column < drawing.columns;
       column += drawing.column_break) {
    path += "M" + std::to_string(at.left + column * at.cell_width) + " " + std::to_string(y) + "V" +
            std::to_string(bottom);
  }
  path += "M" + std::to_string(at.left) + " " + std::to_string(y) + "H" + std::to_string(right) +
          "V" + std::to_string(bottom) + "H" + std::to_string(at.left) + "Z";
  return out + "<path class=\"b\" d=\"" + path + "\"/>\n";
}

}  // namespace detail

/// The drawing as a self-contained SVG document: one rectangle a cell.
inline std::string to_svg(Drawing const& drawing) {
  detail::SvgMeasures const at = detail::svg_measures(drawing);
  std::string const width = std::to_string(at.width);
  std::string const height = std::to_string(at.height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                    height + "\" viewBox=\"0 0 " + width + " " + height + "\">\n";
  out +=
      "<style>text{font:11px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1c2733}.t{font-size:12px;font-weight:bold}"
      ".n text{font-size:10px;fill:#7a8794}.c{stroke:#fff;stroke-width:1}.b{fill:none;stroke:#5b6875;stroke-width:1.3}</style>\n";
  out += "<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  out += "<text class=\"t\" x=\"" + std::to_string(detail::SvgMeasures::kMargin) + "\" y=\"24\">" +
         detail::escape_xml(drawing.title) + "</text>\n";
  out += "<g text-anchor=\"middle\">\n";
  int y = detail::SvgMeasures::kMargin + detail::SvgMeasures::kTitle;
  for (Drawing::Panel const& panel : drawing.panels) {
    out += detail::svg_panel(drawing, panel, at, y);
    y += at.panel_height;
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace tegula
