// Drawings: what is in the cells, the text tables word for word, and the structure of the SVG and
// LaTeX documents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "tegula/layout/draw_latex.hpp"
#include "tegula/layout/draw_svg.hpp"
#include "tegula/layout/draw_text.hpp"
#include "tegula/layout/parse.hpp"

namespace tegula {
namespace {

int count_of(std::string const& text, std::string const& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// The labels of an SVG, in order: the content of each text element.
std::vector<std::string> labels_of(std::string const& svg) {
  std::vector<std::string> labels;
  for (std::size_t at = svg.find("<text"); at != std::string::npos;
       at = svg.find("<text", at + 1)) {
    std::size_t const start = svg.find('>', at) + 1;
    labels.push_back(svg.substr(start, svg.find('<', start) - start));
  }
  return labels;
}

/// Empty if `xml` is one well-formed element: tags nest and match, attributes are quoted, and no
/// bare < or & stands in text.
std::string xml_fault(std::string const& xml) {
  std::vector<std::string> open;
  int roots = 0;
  std::size_t at = 0;
  while (at < xml.size()) {
    if (xml[at] == '&') {
      std::string const entity = xml.substr(at, xml.find(';', at) - at + 1);
      if (entity != "&lt;" && entity != "&gt;" && entity != "&amp;" && entity != "&quot;")
        return "bare & at " + std::to_string(at);
      ++at;
    } else if (xml[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(xml[at])) == 0)
        return "text outside the root";
      ++at;
    } else {
      std::size_t const end = xml.find('>', at);
      if (end == std::string::npos) return "a tag does not end";
      std::string const tag = xml.substr(at + 1, end - at - 1);
      if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string::npos)
        return "a broken tag: " + tag;
      if (tag[0] == '/') {
        if (open.empty() || open.back() != tag.substr(1))
          return "unexpected </" + tag.substr(1) + ">";
        open.pop_back();
      } else if (tag.back() != '/') {
        roots += open.empty() ? 1 : 0;
        open.push_back(tag.substr(0, tag.find(' ')));
      }
      at = end + 1;
    }
  }
  if (!open.empty()) return "<" + open.back() + "> is not closed";
  return roots == 1 ? "" : "not one root";
}

TEST(DrawText, ALayoutIsATable) {
  EXPECT_EQ(to_text(draw(parse_layout("(4,(2,3)):(2,(1,8))"))), R"((4,(2,3)):(2,(1,8))
     0  1    2  3    4  5
  +-------+-------+------
0 |  0  1 |  8  9 | 16 17
1 |  2  3 | 10 11 | 18 19
2 |  4  5 | 12 13 | 20 21
3 |  6  7 | 14 15 | 22 23
)");
  EXPECT_EQ(to_text(draw(parse_layout("8:2"))), R"(8:2
     0  1  2  3  4  5  6  7
  +------------------------
0 |  0  2  4  6  8 10 12 14
)");
  EXPECT_EQ(to_text(draw(parse_layout("((2,2),3):((1,6),2)"))), R"(((2,2),3):((1,6),2)
     0  1  2
  +---------
0 |  0  2  4
1 |  1  3  5
  +---------
2 |  6  8 10
3 |  7  9 11
)");
}

TEST(DrawText, FurtherModesArePanels) {
  EXPECT_EQ(to_text(draw(parse_layout("(2,4,2):(4,1,8)"))), R"((2,4,2):(4,1,8)
(_,_,0)
     0  1  2  3
  +------------
0 |  0  1  2  3
1 |  4  5  6  7
(_,_,1)
     0  1  2  3
  +------------
0 |  8  9 10 11
1 | 12 13 14 15
)");
  EXPECT_EQ(draw(parse_layout("(2,2,2,3)")).panels.back().title, "(_,_,1,2)");
}

TEST(DrawText, SwizzledAndCoordinateLayouts) {
  EXPECT_EQ(to_text(draw(parse_swizzled_layout("Sw<2,0,2> o (4,4):(4,1)"))),
            R"(Sw<2,0,2> o (4,4):(4,1)
     0  1  2  3
  +------------
0 |  0  1  2  3
1 |  5  4  7  6
2 | 10 11  8  9
3 | 15 14 13 12
)");
  EXPECT_EQ(to_text(draw(parse_layout("(2,3):(1@0,1@1)"))), R"((2,3):(1@0,1@1)
        0     1     2
  +------------------
0 | (0,0) (0,1) (0,2)
1 | (1,0) (1,1) (1,2)
)");
  EXPECT_EQ(to_text(draw(parse_layout("3:-1"))), R"(3:-1
     0  1  2
  +---------
0 |  0 -1 -2
)");
}

TEST(DrawText, WhoHoldsWhat) {
  EXPECT_EQ(to_text(draw_threads(parse_layout("((2,2),2):((4,1),2)"), shape(4, 2))),
            R"(((2,2),2):((4,1),2)  in  (4,2)
       0    1
  +----------
0 | T0V0 T1V0
1 | T2V0 T3V0
2 | T0V1 T1V1
3 | T2V1 T3V1
)");
  // Threads 2 and 3 hold what 0 and 1 do; nobody holds elements 2 and 3.
  EXPECT_EQ(to_text(draw_threads(parse_layout("((2,2),1):((1,0),0)"), shape(2, 2))),
            R"(((2,2),1):((1,0),0)  in  (2,2)
         0      1
  +--------------
0 | T0+1V0
1 | T1+1V0
)");
  EXPECT_EQ(sentence([] { draw_threads(parse_layout("(4,2):(1,4)"), shape(2, 3)); }),
            "draw_threads((4,2):(1,4), (2,3), 6): an element lies outside the tile");
  EXPECT_EQ(sentence([] { draw_threads(parse_layout("8:1"), shape(2, 3)); }),
            "draw_threads(8:1): the layout has not the modes (thread, value)");
}

TEST(DrawText, Banks) {
  EXPECT_EQ(to_text(draw_banks(parse_swizzled_layout("Sw<3,3,3> o (8,64):(64,1)"), 16)),
            R"(Sw<3,3,3> o (8,64):(64,1)  in banks, 16-bit elements
        0     8    16    24    32    40    48    56
  +------------------------------------------------
0 |   0-3   4-7  8-11 12-15 16-19 20-23 24-27 28-31
1 |   4-7   0-3 12-15  8-11 20-23 16-19 28-31 24-27
2 |  8-11 12-15   0-3   4-7 24-27 28-31 16-19 20-23
3 | 12-15  8-11   4-7   0-3 28-31 24-27 20-23 16-19
4 | 16-19 20-23 24-27 28-31   0-3   4-7  8-11 12-15
5 | 20-23 16-19 28-31 24-27   4-7   0-3 12-15  8-11
6 | 24-27 28-31 16-19 20-23  8-11 12-15   0-3   4-7
7 | 28-31 24-27 20-23 16-19 12-15  8-11   4-7   0-3
)");
  EXPECT_EQ(to_text(draw_banks(parse_layout("(2,8):(8,1)"), 16, 1)),
            R"((2,8):(8,1)  in banks, 16-bit elements
    0 1 2 3 4 5 6 7
  +----------------
0 | 0 0 1 1 2 2 3 3
1 | 4 4 5 5 6 6 7 7
)");
  // Contiguous down the columns: a cell is eight rows.
  Drawing const down = draw_banks(parse_layout("(64,2):(1,64)"), 16);
  EXPECT_EQ(down.rows, 8);
  EXPECT_EQ(down.row_step, 8);
  EXPECT_EQ(down.panels[0].cells[2].text, "4-7");
  // A swizzle of single elements leaves vectors of one; negative offsets are in banks too.
  EXPECT_EQ(draw_banks(parse_swizzled_layout("Sw<3,0,3> o (8,8):(8,1)"), 32).columns, 8);
  EXPECT_EQ(draw_banks(parse_layout("3:-1"), 32).panels[0].cells[1].text, "31");
  EXPECT_EQ(sentence([] { draw_banks(parse_layout("(8,8):(9,2)"), 16, 2); }),
            "draw_banks((8,8):(9,2), 2): the elements of a vector are not contiguous in memory");
}

TEST(DrawText, Wavefronts) {
  SharedAccess const rows = matrix_access(parse_layout("(8,8):(1,8)"), 16, 1);
  Drawing const conflicting = draw_wavefronts(rows, parse_swizzled_layout("(8,64):(64,1)"));
  EXPECT_EQ(conflicting.rows, 8);
  EXPECT_EQ(conflicting.panels[0].cells[3 * 32 + 2].text, "T3");
  EXPECT_EQ(conflicting.panels[0].cells[3 * 32 + 4].text, "");
  Drawing const free = draw_wavefronts(rows, parse_swizzled_layout("Sw<3,3,3> o (8,64):(64,1)"));
  EXPECT_EQ(free.rows, 1);
  for (int bank = 0; bank < 32; ++bank)
    EXPECT_EQ(free.panels[0].cells[static_cast<std::size_t>(bank)].text,
              "T" + std::to_string(bank / 4));
  // As many rows as the costliest phase has wavefronts; lanes on one word share a cell.
  SharedAccess const whole = matrix_access(parse_layout("((16,2),8):((1,128),16)"), 16);
  EXPECT_EQ(draw_wavefronts(whole, parse_swizzled_layout("(16,16):(16,1)")).panels.size(), 4U);
  EXPECT_EQ(
      draw_wavefronts(vector_access(parse_layout("(32,1):(0,0)"), 32, 4), parse_layout("32:1"))
          .panels[0]
          .cells[0]
          .text,
      "T0");
}

TEST(Draw, RefusesAPictureTooLargeToRead) {
  EXPECT_EQ(sentence([] { draw(parse_layout("(512,512)")); }),
            "draw((512,512):(1,512)): more than 65536 cells would be drawn");
}

TEST(DrawSvg, IsWellFormedAndHoldsEveryCell) {
  std::vector<Drawing> const drawings = {
      draw(parse_layout("(4,(2,3)):(2,(1,8))")),
      draw(parse_layout("(2,4,2):(4,1,8)")),
      draw(parse_layout("(2,3):(1@0,1@1)")),
      draw(parse_swizzled_layout("Sw<2,0,2> o (4,4):(4,1)")),
      draw_threads(parse_layout("((4,8),(2,2)):((32,1),(16,8))"), shape(16, 8)),
      draw_threads(parse_layout("(2,1):(1,0)"), shape(2, 2)),
      draw_banks(parse_swizzled_layout("Sw<3,3,3> o (8,64):(64,1)"), 16),
      draw_wavefronts(matrix_access(parse_layout("((16,2),8):((1,128),16)"), 16),
                      parse_swizzled_layout("(16,64):(64,1)")),
  };
  for (Drawing const& drawing : drawings) {
    std::string const svg = to_svg(drawing);
    EXPECT_EQ(xml_fault(svg), "") << drawing.title;
    int const cells = drawing.rows * drawing.columns * static_cast<int>(drawing.panels.size());
    EXPECT_EQ(count_of(svg, "<rect x="), cells) << drawing.title;
    std::vector<std::string> expected;
    for (Drawing::Panel const& panel : drawing.panels) {
      for (Drawing::Cell const& cell : panel.cells) {
        if (!cell.text.empty()) expected.push_back(cell.text);
        if (!cell.below.empty()) expected.push_back(cell.below);
      }
    }
    // Besides the cells: the title, the numbers of rows and columns, and names of panels.
    std::vector<std::string> labels = labels_of(svg);
    std::size_t const panels = drawing.panels.size();
    std::size_t const names = drawing.panels[0].title.empty() ? 0 : panels;
    EXPECT_EQ(labels.size(), expected.size() + 1 + names +
                                 panels * static_cast<std::size_t>(drawing.rows + drawing.columns))
        << drawing.title;
    std::sort(labels.begin(), labels.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_TRUE(std::includes(labels.begin(), labels.end(), expected.begin(), expected.end()))
        << drawing.title;
  }
}

TEST(DrawSvg, ColoursFollowThreadsAndBanks) {
  Drawing const threads = draw_threads(parse_layout("((4,8),(2,2)):((32,1),(16,8))"), shape(16, 8));
  auto const& cells = threads.panels[0].cells;
  EXPECT_EQ(cells[0].colour, cells[1].colour);      // T0 V0, T0 V1
  EXPECT_EQ(cells[0].colour, cells[8 * 8].colour);  // T0 V2
  EXPECT_NE(cells[0].colour, cells[2].colour);      // T1
  EXPECT_NE(cells[0].colour, cells[8].colour);      // T4
  Drawing const banks = draw_banks(parse_swizzled_layout("Sw<3,3,3> o (8,64):(64,1)"), 16);
  for (int row = 0; row < 8; ++row)
    EXPECT_EQ(banks.panels[0].cells[static_cast<std::size_t>(row * 8 + row)].colour,
              banks.panels[0].cells[0].colour);
  EXPECT_EQ(count_of(to_svg(banks), "<g class=\"c\""), 8);  // one group a colour
  EXPECT_EQ(count_of(to_svg(banks), detail::colour_code(banks.panels[0].cells[0].colour)), 1);
}

TEST(DrawSvg, EscapesWhatXmlReserves) {
  EXPECT_NE(to_svg(draw(parse_swizzled_layout("Sw<1,0,1> o 4:1"))).find(">Sw&lt;1,0,1&gt; o 4:1<"),
            std::string::npos);
  EXPECT_EQ(detail::escape_xml("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
}

TEST(DrawLatex, HoldsEveryCell) {
  Drawing const drawing = draw_threads(parse_layout("((4,8),(2,2)):((32,1),(16,8))"), shape(16, 8));
  std::string const latex = to_latex(drawing);
  EXPECT_EQ(count_of(latex, "\\filldraw["), 128);
  EXPECT_EQ(count_of(latex, "{T31\\\\[-1mm] V3};"), 1);
  EXPECT_EQ(count_of(latex, "\\begin{"), count_of(latex, "\\end{"));
  EXPECT_EQ(count_of(latex, "\\definecolor"), 32);
  EXPECT_EQ(count_of(latex, "{"), count_of(latex, "}"));
  std::string const swizzled =
      to_latex(draw(parse_swizzled_layout("Sw<2,0,2> o (4,4,2):(4,1,16)")));
  EXPECT_NE(swizzled.find("{Sw\\textless{}2,0,2\\textgreater{} o (4,4,2):(4,1,16)};"),
            std::string::npos);
  EXPECT_NE(swizzled.find("{(\\_,\\_,1)};"), std::string::npos);
  EXPECT_EQ(count_of(swizzled, "\\filldraw["), 32);
}

}  // namespace
}  // namespace tegula
