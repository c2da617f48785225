#pragma once

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "tegula/layout/draw.hpp"

namespace tegula {

namespace detail {

inline std::string escape_latex(std::string const& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '_':
      case '#':
      case '%':
      case '&':
      case '$':
      case '{':
      case '}':
        out += std::string("\\") + c;
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      default:
        out += c;
    }
  }
  return out;
}

inline std::string latex_colour(std::uint32_t colour) {
  char name[8];
  std::snprintf(name, sizeof(name), "%06X", colour & 0xffffff);
  return name;
}

}  // namespace detail

/// The drawing as a standalone LaTeX document of one TikZ picture; its unit is a cell, 0.7 cm high.
inline std::string to_latex(Drawing const& drawing) {
  std::size_t longest = 2;
  std::set<std::uint32_t> colours;
  for (Drawing::Panel const& panel : drawing.panels) {
    for (Drawing::Cell const& cell : panel.cells) {
      longest = std::max({longest, cell.text.size(), cell.below.size()});
      colours.insert(cell.colour);
    }
  }
  char unit[64];
  std::snprintf(unit, sizeof(unit), "x=%.2fcm,y=-0.7cm", 0.4 + 0.15 * static_cast<double>(longest));

  std::string out =
      "\\documentclass[border=2mm]{standalone}\n\\usepackage[T1]{fontenc}\n\\usepackage{tikz}\n";
  for (std::uint32_t const colour : colours) {
    std::string const code = detail::latex_colour(colour);
    out += "\\definecolor{c" + code + "}{HTML}{" + code + "}\n";
  }
  out += "\\begin{document}\n\\begin{tikzpicture}[" + std::string(unit) +
         ",every node/.style={font=\\ttfamily\\scriptsize,align=center}]\n";
  out += "\\node[anchor=south west] at (0,-0.9) {" + detail::escape_latex(drawing.title) + "};\n";
  int top = 0;  // of the panel, in cells
  for (Drawing::Panel const& panel : drawing.panels) {
    std::string const y0 = std::to_string(top);
    std::string const y1 = std::to_string(top + drawing.rows);
    if (!panel.title.empty())
      out += "\\node[anchor=east,gray] at (-0.8," + y0 + ".5) {" +
             detail::escape_latex(panel.title) + "};\n";
    for (int column = 0; column < drawing.columns; ++column) {
      out += "\\node[gray] at (" + std::to_string(column) + ".5,{" + std::to_string(top) +
             "-0.4}) {" + std::to_string(column * drawing.column_step) + "};\n";
    }
    for (int row = 0; row < drawing.rows; ++row) {
      std::string const y = std::to_string(top + row);
      out +=
          "\\node[gray] at (-0.4," + y + ".5) {" + std::to_string(row * drawing.row_step) + "};\n";
      for (int column = 0; column < drawing.columns; ++column) {
        Drawing::Cell const& cell =
            panel.cells[static_cast<std::size_t>(row * drawing.columns + column)];
        std::string const x = std::to_string(column);
        out += "\\filldraw[draw=white,fill=c" + detail::latex_colour(cell.colour) + "] (" + x +
               "," + y + ") rectangle ++(1,1);";
        if (!cell.text.empty()) {
          std::string const below =
              cell.below.empty() ? "" : "\\\\[-1mm] " + detail::escape_latex(cell.below);
          out += " \\node at (" + x + ".5," + y + ".5) {" + detail::escape_latex(cell.text) +
                 below + "};";
        }
        out += "\n";
      }
    }
    std::string const right = std::to_string(drawing.columns);
    out += "\\draw (0," + y0 + ") rectangle (" + right + "," + y1 + ");\n";
    for (int row = drawing.row_break; drawing.row_break > 0 && row < drawing.rows;
         row += drawing.row_break) {
      out += "\\draw (0," + std::to_string(top + row) + ") -- ++(" + right + ",0);\n";
    }
    for (int column = drawing.column_break; drawing.column_break > 0 && column < drawing.columns;
         column += drawing.column_break) {
      out += "\\draw (" + std::to_string(column) + "," + y0 + ") -- ++(0," +
             std::to_string(drawing.rows) + ");\n";
    }
    top += drawing.rows + 2;
  }
  return out + "\\end{tikzpicture}\n\\end{document}\n";
}

}  // namespace tegula
