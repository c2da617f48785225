#include "expression.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/reader.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

constexpr int kDeepest = 64;  // of nested values; deeper text is refused rather than recursed into

/// Reads an expression from left to right and evaluates it on the way. Grammar (blanks are free):
///
///   value    := call | swizzled | tiler | layout
///   call     := NAME '(' [value {',' value}] ')'
///   swizzled := 'Sw' '<' INT ',' INT ',' INT '>' 'o' [INT 'o'] value
///   tiler    := '<' entry {',' entry} '>'
///   entry    := '_' | value           (an integer n means n:1)
///   layout   := tree [':' strides]    (without strides: an integer, a tuple, a coordinate, or a
///                                     compact layout)
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), reader_(text) {}

  Value parse() {
    Value result = value();
    if (!reader_.at_end()) {
      fail(reader_.position(), "the end of the expression");
    }
    return result;
  }

 private:
  Value value() {
    if (++nesting_ > kDeepest) {
      fail(reader_.position(), fmt::format("values nested at most {} deep", kDeepest));
    }
    char const next = reader_.peek();
    std::int64_t const start = reader_.position();
    Value result;
    if (next == '<') {
      result.what = tiler();
    } else if (Text const word = reader_.read_word(); word.size > 0) {
      std::string_view const name(word.data, static_cast<std::size_t>(word.size));
      result = name == "Sw" ? swizzled() : call(name, start);
    } else {
      result = layout_or_tuple(start);
    }
    --nesting_;
    return result;
  }

  Value call(std::string_view name, std::int64_t start) {
    if (!is_call(name)) {
      fail(
          start,
          fmt::format(
              "a layout such as (4,8):(1,4), a tuple, a tiler <...>, a swizzled layout Sw<3,4,3> o ..., or a call of {}",
              call_names()));
    }
    expect('(', "before the arguments of a call");
    std::vector<Value> arguments;
    if (!reader_.accept(')')) {
      do {
        arguments.push_back(value());
      } while (reader_.accept(','));
      expect(')', "after an argument");
    }
    try {
      return evaluate_call(name, arguments);
    } catch (ExpressionError const& error) {
      throw ExpressionError(
          fmt::format("at character {} of {}: {}", start + 1, io::in_quotes(text_), error.what()));
    }
  }

  Value swizzled() {
    expect('<', "after Sw");
    std::int64_t parameters[3] = {};
    for (int i = 0; i < 3; ++i) {
      reader_.peek();
      std::int64_t const start = reader_.position();
      parameters[i] = integer("an integer: Sw<bits,base,shift>");
      if (std::abs(parameters[i]) > 62) {
        fail(start, "an integer from -62 to 62: Sw<bits,base,shift>");
      }
      expect(i < 2 ? ',' : '>', "in Sw<bits,base,shift>");
    }
    expect('o', "and a layout after a swizzle, as in Sw<3,4,3> o (8,64):(64,1)");
    reader_.peek();
    std::int64_t start = reader_.position();
    std::int64_t offset = 0;
    Value inner = value();
    if (Tuple const* const number = std::get_if<Tuple>(&inner.what);
        number != nullptr && number->is_integer() && reader_.accept('o')) {
      offset = number->value();
      reader_.peek();
      start = reader_.position();
      inner = value();
    }
    Swizzle const swizzle(static_cast<int>(parameters[0]), static_cast<int>(parameters[1]),
                          static_cast<int>(parameters[2]));
    if (Layout const* const plain = std::get_if<Layout>(&inner.what)) {
      return {SwizzledLayout(swizzle, offset, *plain), false};
    }
    if (Tuple const* const shape = std::get_if<Tuple>(&inner.what)) {
      return {SwizzledLayout(swizzle, offset, layout(*shape)), false};
    }
    fail(start, "a plain layout after 'o'");
  }

  Tiler tiler() {
    expect('<', "");
    Tiler result;
    do {
      reader_.peek();
      std::int64_t const start = reader_.position();
      Value const entry = value();
      if (Layout const* const plain = std::get_if<Layout>(&entry.what)) {
        result.append_tiler(Tiler(*plain));
      } else if (Tiler const* const nested = std::get_if<Tiler>(&entry.what)) {
        result.append_tiler(*nested);
      } else if (Tuple const* const tuple = std::get_if<Tuple>(&entry.what)) {
        result.append_tiler(tuple->is_underscore() ? Tiler(_) : Tiler(layout(*tuple)));
      } else {
        fail(start, "a layout, an integer, '_' or a nested tiler in <...>");
      }
    } while (reader_.accept(','));
    expect('>', "after an entry of a tiler");
    detail::wrap(result.layouts);
    ++result.open[0];
    ++result.close[result.count - 1];
    return result;
  }

  Value layout_or_tuple(std::int64_t start) {
    char const next = reader_.peek();
    if (next != '(' && next != '_' && next != '-' && (next < '0' || next > '9')) {
      fail(start, "a layout such as (4,8):(1,4), a tuple, a tiler, a swizzled layout or a call");
    }
    Tuple const tree = reader_.read_tuple();
    if (reader_.peek() == ':') {
      return {reader_.read_strides(tree), false};
    }
    return {tree, true};
  }

  std::int64_t integer(char const* expected) {
    char const next = reader_.peek();
    if (next != '-' && (next < '0' || next > '9')) {
      fail(reader_.position(), expected);
    }
    return reader_.read_integer();
  }

  void expect(char c, char const* where) {
    if (!reader_.accept(c)) {
      reader_.peek();
      fail(reader_.position(),
           fmt::format("{}'{}' {}", (c == '>' || c == ')') ? "',' or " : "", c, where));
    }
  }

  [[noreturn]] void fail(std::int64_t position, std::string const& expected) const {
    auto const at = static_cast<std::size_t>(position);
    std::string const found =
        at < text_.size() ? io::in_quotes(text_.substr(at, 16)) : std::string("the end");
    throw ExpressionError(fmt::format("at character {} of {}: found {}, expected {}", at + 1,
                                      io::in_quotes(text_), found, expected));
  }

  std::string_view text_;
  Reader reader_;
  int nesting_ = 0;
};

}  // namespace

Value evaluate(std::string_view expression) {
  return named_in_ranges(expression, [&] { return Parser(expression).parse(); });
}

namespace {

/// f(), with the argument and its expression in front of what is wrong with it.
template <class F>
auto of_argument(std::string const& argument, std::string_view expression, F&& f) {
  auto const sentence = [&](char const* why) {
    return fmt::format("{} {}: {}", argument, io::in_quotes(expression), why);
  };
  try {
    return f();
  } catch (layout_error const& error) {
    throw ExpressionError(sentence(error.what()));
  } catch (ExpressionError const& error) {
    throw ExpressionError(sentence(error.what()));
  }
}

}  // namespace

Layout evaluate_layout(std::string const& argument, std::string_view expression) {
  return of_argument(argument, expression, [&] {
    Value const value = evaluate(expression);
    if (Layout const* const plain = std::get_if<Layout>(&value.what)) return *plain;
    if (Tuple const* const shape = std::get_if<Tuple>(&value.what)) return layout(*shape);
    throw ExpressionError("it is not a layout such as (2,2,1) or (16,8):(8,1)");
  });
}

Tiler evaluate_tiler(std::string const& argument, std::string_view expression) {
  return of_argument(argument, expression, [&] {
    Value const value = evaluate(expression);
    if (Tiler const* const tiler = std::get_if<Tiler>(&value.what)) return *tiler;
    if (Tuple const* const shape = std::get_if<Tuple>(&value.what);
        shape != nullptr && !shape->is_integer())
      return Tiler(*shape);
    throw ExpressionError("it is not a tile such as '<32,32,16>' or '<_,(8,2):(1,8),16>'");
  });
}

std::string to_text(Value const& value) {
  if (SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what)) {
    Swizzle const& s = swizzled->swizzle;
    std::string const offset = swizzled->offset == 0 ? "" : fmt::format("{} o ", swizzled->offset);
    return fmt::format("Sw<{},{},{}> o {}{}", s.bits, s.base, s.shift, offset,
                       to_string(swizzled->layout));
  }
  if (Layout const* const plain = std::get_if<Layout>(&value.what)) {
    return to_string(*plain);
  }
  Tiler const* const tiler = std::get_if<Tiler>(&value.what);
  return tiler != nullptr ? to_string(*tiler) : to_string(std::get<Tuple>(value.what));
}

}  // namespace tegula::tool
