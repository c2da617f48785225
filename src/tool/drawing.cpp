#include "drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tegula/layout/draw_svg.hpp"
#include "tegula/layout/draw_text.hpp"

namespace tegula::tool {
namespace {

Drawing holders(std::string const& title, Layout const& tv, int rows, int columns) {
  Drawing drawing = draw_threads(tv, shape(rows, columns));
  drawing.title = title + "  " + to_string(tv);
  return drawing;
}

/// The bits of a copy as elements of `element_bits`, `columns` to a row, bit order going along
/// the rows.
Drawing holders_of_bits(std::string const& title, Layout const& bits, int element_bits,
                        int columns) {
  Layout const elements = upcast(bits, element_bits);
  int const rows = static_cast<int>(elements.cosize()) / columns;
  Layout const row_by_row = layout(shape(columns, rows), stride(rows, 1));
  Drawing drawing = draw_threads(composition(row_by_row, elements), shape(rows, columns));
  drawing.title = fmt::format("{}  {}  in {}-bit elements", title, to_string(bits), element_bits);
  return drawing;
}

}  // namespace

Drawing picture(Value const& value, int element_bits) {
  SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what);
  Layout const* const plain = std::get_if<Layout>(&value.what);
  if (swizzled == nullptr && plain == nullptr) {
    throw std::invalid_argument(
        fmt::format("{} is not a layout, so there is nothing to draw", to_text(value)));
  }
  if (element_bits != 0) {
    if (plain != nullptr && plain->has_axes())
      throw std::invalid_argument(
          fmt::format("{}: its values are coordinates, which lie in no banks", to_text(value)));
    return draw_banks(swizzled != nullptr ? *swizzled : SwizzledLayout(*plain), element_bits);
  }
  return swizzled != nullptr ? draw(*swizzled) : draw(*plain);
}

std::vector<Drawing> pictures(MmaAtom const& atom) {
  std::vector<Drawing> drawings;
  if (atom.a_in_registers())
    drawings.push_back(holders("A (M x K)", atom.a, atom.spec.m, atom.spec.k));
  if (atom.b_in_registers())
    drawings.push_back(holders("B (N x K)", atom.b, atom.spec.n, atom.spec.k));
  drawings.push_back(holders("C (M x N)", atom.c, atom.spec.m, atom.spec.n));
  return drawings;
}

std::vector<Drawing> pictures(CopyAtom const& atom) {
  bool const matrices = moves_matrices(atom.spec.op);
  bool const bits_known =
      atom.ref.size() > 1;  // an auto-vectorizing copy is one value of no particular width
  int const element_bits = matrices ? 16 : bits_known ? 8 : 1;
  int const columns = matrices ? 8 : static_cast<int>(atom.ref.cosize()) / element_bits;
  return {holders_of_bits("source", atom.src, element_bits, columns),
          holders_of_bits("destination", atom.dst, element_bits, columns)};
}

std::vector<Drawing> pictures(MmaTiling const& mma) {
  return {holders("A (M x K)", mma.a(), mma.extent(0), mma.extent(2)),
          holders("B (N x K)", mma.b(), mma.extent(1), mma.extent(2)),
          holders("C (M x N)", mma.c(), mma.extent(0), mma.extent(1))};
}

std::vector<Drawing> pictures(CopyTiling const& copy) {
  return {holders("source", copy.src(), copy.extents[0], copy.extents[1]),
          holders("destination", copy.dst(), copy.extents[0], copy.extents[1])};
}

std::string stacked_text(std::vector<Drawing> const& drawings) {
  std::string text;
  for (Drawing const& drawing : drawings) {
    text += (text.empty() ? "" : "\n") + tegula::to_text(drawing);
  }
  return text;
}

std::string stacked_svg(std::vector<Drawing> const& drawings) {
  int width = 0;
  int height = 0;
  std::string body;
  for (Drawing const& drawing : drawings) {
    detail::SvgMeasures const at = detail::svg_measures(drawing);
    body += fmt::format("<g transform=\"translate(0,{})\">\n{}</g>\n", height, to_svg(drawing));
    width = std::max(width, at.width);
    height += at.height;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n{2}</svg>\n",
      width, height, body);
}

}  // namespace tegula::tool
