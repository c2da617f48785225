// Values of the layout algebra, by the language of the tool.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "calls.hpp"
#include "drawing.hpp"
#include "expression.hpp"
#include "guard.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/draw_latex.hpp"
#include "tegula/layout/draw_svg.hpp"
#include "tegula/layout/draw_text.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/layout/text.hpp"

struct tegula_value {
  tegula::tool::Value held;
};

namespace tegula::c {
namespace {

using tool::Value;

tegula_value* handle(Value value) { return new tegula_value{std::move(value)}; }

[[noreturn]] void wrong_kind(char const* function, Value const& value, char const* needed) {
  throw argument_error(std::string(function) + ": " + io::printable(to_text(value)) + " is not " +
                       needed + ".");
}

/// The layout that the function is about: a plain one, the one under a swizzle, or that of a shape.
Layout layout_of(char const* function, tegula_value const* value) {
  not_null(function, "value", value);
  if (Layout const* const plain = std::get_if<Layout>(&value->held.what)) return *plain;
  if (Tuple const* const shape = std::get_if<Tuple>(&value->held.what)) return layout(*shape);
  if (SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value->held.what))
    return swizzled->layout;
  wrong_kind(function, value->held, "a layout");
}

/// The same with its swizzle.
Value as_layout(char const* function, tegula_value const* value) {
  not_null(function, "value", value);
  if (std::holds_alternative<SwizzledLayout>(value->held.what)) return value->held;
  return {layout_of(function, value), false};
}

int axes_of(Layout const& layout) { return layout.has_axes() ? layout.coshape().rank() : 0; }

std::string drawn(Drawing const& drawing, tegula_drawing form) {
  switch (form) {
    case TEGULA_SVG:
      return to_svg(drawing);
    case TEGULA_TEXT:
      return to_text(drawing);
    case TEGULA_LATEX:
      return to_latex(drawing);
  }
  throw argument_error("The form of a drawing is " + std::to_string(static_cast<int>(form)) +
                       "; it must be TEGULA_SVG, TEGULA_TEXT or TEGULA_LATEX.");
}

/// Of `count` indices, or of as many from 0 on.
std::vector<std::int64_t> values_at(Value const& value, std::int64_t const* indices,
                                    std::int64_t count) {
  Layout const* const plain = std::get_if<Layout>(&value.what);
  SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what);
  int const axes = plain != nullptr ? axes_of(*plain) : 0;
  std::size_t places = 0;
  if (__builtin_mul_overflow(count, std::max(axes, 1), &places))
    throw std::length_error("values of a layout");
  std::vector<std::int64_t> values;
  values.reserve(places);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t const index = indices != nullptr ? indices[i] : i;
    if (swizzled != nullptr) {
      values.push_back((*swizzled)(index));
    } else if (axes == 0) {
      values.push_back((*plain)(index));
    } else {
      Tuple const coordinate = plain->coordinate(Tuple(index));
      for (int axis = 0; axis < axes; ++axis)
        values.push_back(coordinate.is_integer() ? coordinate.value() : coordinate[axis].value());
    }
  }
  return values;
}

}  // namespace
}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

tegula_status tegula_evaluate(char const* expression, tegula_value** value) {
  return guarded([&] {
    not_null("tegula_evaluate", "expression", expression);
    not_null("tegula_evaluate", "value", value);
    *value = handle(tool::evaluate(expression));
  });
}

tegula_status tegula_integer(int64_t integer, tegula_value** value) {
  return guarded([&] {
    not_null("tegula_integer", "value", value);
    *value = handle({Tuple(integer), true});
  });
}

tegula_status tegula_call(char const* operation, tegula_value const* const* arguments,
                          int32_t count, tegula_value** result) {
  return guarded([&] {
    not_null("tegula_call", "operation", operation);
    not_null("tegula_call", "result", result);
    counted("tegula_call", "arguments", arguments, "count", count);
    if (!tool::is_call(operation))
      throw tool::ExpressionError("there is no operation " + io::in_quotes(operation) +
                                  "; there are " + tool::call_names());
    std::vector<Value> values;
    for (int32_t i = 0; i < count; ++i) {
      not_null("tegula_call", "an argument", arguments[i]);
      values.push_back(arguments[i]->held);
    }
    *result = handle(tool::evaluate_call(operation, values));
  });
}

tegula_status tegula_operations(char** text) {
  return guarded([&] {
    not_null("tegula_operations", "text", text);
    *text = as_c_text(tool::describe_calls());
  });
}

void tegula_value_free(tegula_value* value) { delete value; }

tegula_kind tegula_value_kind(tegula_value const* value) {
  return value == nullptr ? TEGULA_NO_KIND : static_cast<tegula_kind>(value->held.what.index());
}

int32_t tegula_value_equal(tegula_value const* value, tegula_value const* other) {
  if (value == nullptr || other == nullptr) return value == other;
  return value->held.what.index() == other->held.what.index() &&
         to_text(value->held) == to_text(other->held);
}

tegula_status tegula_value_text(tegula_value const* value, char** text) {
  return guarded([&] {
    not_null("tegula_value_text", "text", text);
    not_null("tegula_value_text", "value", value);
    *text = as_c_text(to_text(value->held));
  });
}

tegula_status tegula_value_integer(tegula_value const* value, int64_t* integer) {
  return guarded([&] {
    not_null("tegula_value_integer", "integer", integer);
    not_null("tegula_value_integer", "value", value);
    Tuple const* const tuple = std::get_if<Tuple>(&value->held.what);
    if (tuple == nullptr || !tuple->is_integer() || tuple->is_underscore())
      wrong_kind("tegula_value_integer", value->held, "an integer");
    *integer = tuple->value();
  });
}

tegula_status tegula_as_layout(tegula_value const* value, tegula_value** layout) {
  return guarded([&] {
    not_null("tegula_as_layout", "layout", layout);
    *layout = handle(as_layout("tegula_as_layout", value));
  });
}

tegula_status tegula_layout_shape(tegula_value const* layout, tegula_value** shape) {
  return guarded([&] {
    not_null("tegula_layout_shape", "shape", shape);
    *shape = handle({layout_of("tegula_layout_shape", layout).shape(), true});
  });
}

tegula_status tegula_layout_stride(tegula_value const* layout, tegula_value** stride) {
  return guarded([&] {
    not_null("tegula_layout_stride", "stride", stride);
    *stride = handle({layout_of("tegula_layout_stride", layout).stride(), true});
  });
}

tegula_status tegula_layout_mode(tegula_value const* layout, int32_t mode, tegula_value** result) {
  return guarded([&] {
    not_null("tegula_layout_mode", "result", result);
    not_null("tegula_layout_mode", "layout", layout);
    if (std::holds_alternative<SwizzledLayout>(layout->held.what))
      wrong_kind("tegula_layout_mode", layout->held,
                 "a plain layout; take the mode of the layout under the swizzle");
    *result = handle({layout_of("tegula_layout_mode", layout)[mode], false});
  });
}

tegula_status tegula_swizzle_parts(tegula_value const* swizzled, int32_t* bits, int32_t* base,
                                   int32_t* shift, int64_t* offset, tegula_value** layout) {
  return guarded([&] {
    not_null("tegula_swizzle_parts", "swizzled", swizzled);
    SwizzledLayout const* const parts = std::get_if<SwizzledLayout>(&swizzled->held.what);
    if (parts == nullptr) wrong_kind("tegula_swizzle_parts", swizzled->held, "a swizzled layout");
    if (layout != nullptr) *layout = handle({parts->layout, false});
    if (bits != nullptr) *bits = parts->swizzle.bits;
    if (base != nullptr) *base = parts->swizzle.base;
    if (shift != nullptr) *shift = parts->swizzle.shift;
    if (offset != nullptr) *offset = parts->offset;
  });
}

tegula_status tegula_layout_axes(tegula_value const* layout, int32_t* axes) {
  return guarded([&] {
    not_null("tegula_layout_axes", "axes", axes);
    *axes = axes_of(layout_of("tegula_layout_axes", layout));
  });
}

tegula_status tegula_layout_values(tegula_value const* layout, int64_t const* indices,
                                   int64_t count, int64_t* values) {
  return guarded([&] {
    Value const value = as_layout("tegula_layout_values", layout);
    counted("tegula_layout_values", "values", values, "count", count);
    std::vector<std::int64_t> const at = values_at(value, indices, count);
    std::copy(at.begin(), at.end(), values);
  });
}

tegula_status tegula_layout_draw(tegula_value const* layout, int32_t element_bits,
                                 tegula_drawing form, char** drawing) {
  return guarded([&] {
    not_null("tegula_layout_draw", "drawing", drawing);
    // As `tegula layout --banks` has it, whose 0 is to leave it out.
    if (element_bits != 0 &&
        (element_bits < 0 || element_bits > 128 || (element_bits & (element_bits - 1)) != 0))
      throw argument_error("tegula_layout_draw: element_bits is " + std::to_string(element_bits) +
                           "; it must be 0, for none, or the width of an element in bits: 1, 2, "
                           "4, 8, 16, 32, 64 or 128.");
    *drawing = as_c_text(
        drawn(tool::picture(as_layout("tegula_layout_draw", layout), element_bits), form));
  });
}

tegula_status tegula_layout_draw_threads(tegula_value const* layout, int32_t rows, int32_t columns,
                                         tegula_drawing form, char** drawing) {
  return guarded([&] {
    not_null("tegula_layout_draw_threads", "drawing", drawing);
    Layout const plain = layout_of("tegula_layout_draw_threads", layout);
    *drawing = as_c_text(drawn(draw_threads(plain, shape(rows, columns)), form));
  });
}
