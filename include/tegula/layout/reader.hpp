#pragma once

#include "tegula/layout/tiler.hpp"

namespace tegula {

/// A view of characters, made from a literal or from anything with data() and size() (std::string,
/// std::string_view).
struct Text {
  char const* data = nullptr;
  std::int64_t size = 0;

  constexpr Text(char const* characters, std::int64_t length) : data(characters), size(length) {}
  constexpr Text(char const* terminated) : data(terminated) {
    while (data[size] != '\0') ++size;
  }
  template <class String>
  requires requires(String const& s) {
    s.data();
    s.size();
  }
  constexpr Text(String const& string)
      : data(string.data()), size(static_cast<std::int64_t>(string.size())) {}

  friend constexpr bool operator==(Text const& a, Text const& b) {
    bool same = a.size == b.size;
    for (std::int64_t i = 0; i < a.size && same; ++i) same = a.data[i] == b.data[i];
    return same;
  }
};

/// In sentences a text stands in quotes, its first ninety characters if it is longer.
template <class Sink> constexpr void write_form(Sink& sink, Text const& text) {
  constexpr std::int64_t kLongest = 90;
  sink.write('"');
  for (std::int64_t i = 0; i < text.size && i < kLongest; ++i) sink.write(text.data[i]);
  for (int i = 0; i < 3 && text.size > kLongest; ++i) sink.write('.');
  sink.write('"');
}

/// A position in a text, from 1, as sentences give it.
struct Column {
  std::int64_t number;
};
template <class Sink> constexpr void write_form(Sink& sink, Column column) {
  write_form(sink, "column ");
  write_form(sink, column.number);
}

/// Reads tuples, layouts and tilers off a text from left to right, in constant expressions and at
/// run time. The building block of the parse functions and of larger grammars: a parser for
/// expressions asks peek(), accept() and the read functions in turn. Whatever does not fit is
/// refused with a sentence that names what was expected and the position (column, from 1).
class Reader {
 private:
  static constexpr bool is_digit(char c) { return '0' <= c && c <= '9'; }
  static constexpr bool is_letter(char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
  }

  /// Reads parentheses and commas; calls leaf(parentheses opened before it) at each leaf and
  /// close(1) at each closing parenthesis.
  template <class Leaf, class Close>
  constexpr void read_tree(Leaf const& leaf, Close const& close) {
    int level = 0;
    int opening = 0;
    bool first = true;
    while (true) {
      while (accept('(')) ++opening;
      level += opening;
      if (level > kMaxDepth)
        refuse("parse", "parentheses nest more than 15 deep", text(), column());
      if (first && opening == 1 && accept(')')) return;
      leaf(opening);
      first = false;
      opening = 0;
      while (level > 0 && accept(')')) {
        close(1);
        --level;
      }
      if (level == 0) return;
      if (!accept(',')) refuse("parse", "a comma or ) was expected in a tuple", text(), column());
    }
  }

 public:
  constexpr explicit Reader(Text text) : text_(text) {}

  /// The next character that is not a space; '\0' at the end.
  constexpr char peek() {
    while (position_ < text_.size &&
           (text_.data[position_] == ' ' || text_.data[position_] == '\t'))
      ++position_;
    return position_ < text_.size ? text_.data[position_] : '\0';
  }
  constexpr bool at_end() { return peek() == '\0' && position_ >= text_.size; }
  /// Takes the next character if it is `c`.
  constexpr bool accept(char c) {
    if (at_end() || peek() != c) return false;
    ++position_;
    return true;
  }
  /// How many characters have been read; the column of the next one is one more.
  constexpr std::int64_t position() const { return position_; }
  /// Goes back to an earlier position().
  constexpr void rewind(std::int64_t position) { position_ = position; }

  /// A word of letters, digits and underscores that begins with a letter; empty if there is
  /// none here.
  constexpr Text read_word() {
    peek();
    std::int64_t const first = position_;
    while (position_ < text_.size && (is_letter(text_.data[position_]) ||
                                      (position_ > first && (is_digit(text_.data[position_]) ||
                                                             text_.data[position_] == '_'))))
      ++position_;
    return {text_.data + first, position_ - first};
  }

  constexpr std::int64_t read_integer() {
    bool const negative = accept('-');
    if (!is_digit(peek())) refuse("parse", "an integer was expected", text(), column());
    constexpr std::int64_t limit = std::int64_t{1} << 62;
    std::int64_t value = 0;
    for (; position_ < text_.size && is_digit(text_.data[position_]); ++position_) {
      int const digit = text_.data[position_] - '0';
      if (value > (limit - digit) / 10)
        refuse("parse", "an integer exceeds 2^62", text(), column());
      value = value * 10 + digit;
    }
    return negative ? -value : value;
  }

  /// An integer, `_`, or a tuple of such: 8, (4,(3,6)), (_,2), ().
  constexpr Tuple read_tuple() {
    Tuple result;
    read_tree(
        [&](int opening) {
          result.append_leaf(accept('_') ? Tuple::kUnderscore : read_integer(), opening);
        },
        [&](int depth) {
          result.close[result.count - 1] = result.close[result.count - 1] + depth;
        });
    return result;
  }

  /// A shape, and after a colon its strides: 8:1, (4,(3,6)):(1,(4,12)), (16,8):(1@0,1@1). Without a
  /// colon the compact column-major layout.
  constexpr Layout read_layout() { return read_strides(read_tuple()); }

  /// The strides of a layout whose shape has been read, if there is a colon here; else the compact
  /// column-major layout.
  constexpr Layout read_strides(Tuple const& shape) {
    if (!accept(':')) return layout(shape);
    Layout result;
    read_tree(
        [&](int opening) {
          if (result.count >= shape.count)
            refuse("parse", "more strides than extents", text(), column());
          Stride stride{read_integer()};
          if (accept('@')) {
            std::int64_t const axis = read_integer();
            if (axis < 0 || axis >= kMaxAxes)
              refuse("parse", "an axis is not between 0 and 14", text(), column());
            stride.axis = static_cast<int>(axis);
          }
          result.append_leaf(shape.values[result.count], stride, opening);
        },
        [&](int depth) {
          result.close[result.count - 1] = result.close[result.count - 1] + depth;
        });
    bool congruent = result.count == shape.count;
    for (int i = 0; i < shape.count && congruent; ++i)
      congruent = result.open[i] == shape.open[i] && result.close[i] == shape.close[i];
    if (!congruent) refuse("parse", "the strides are not nested as the shape is", text(), column());
    return detail::bounded(result);
  }

  /// A layout, `_`, n for n:1, or a by-mode tiler of these: <4:1,_,<2:1,8:2>>.
  constexpr Tiler read_tiler(int depth = 0) {
    if (accept('_')) return Tiler(_);
    if (!accept('<')) return read_tiled_layout();
    if (depth == kMaxDepth)
      refuse("parse", "angle brackets nest more than 15 deep", text(), column());
    Tiler result;
    do {
      result.append_tiler(read_tiler(depth + 1));
    } while (accept(','));
    if (!accept('>')) refuse("parse", "a comma or > was expected in a tiler", text(), column());
    detail::wrap(result.layouts);
    ++result.open[0];
    ++result.close[result.count - 1];
    return result;
  }

  /// Refuses anything but spaces from here on.
  constexpr void expect_end() {
    if (!at_end()) refuse("parse", "something follows where the text should end", text(), column());
  }

  /// The text and the column of the next character, as operands for sentences.
  constexpr Text const& text() const { return text_; }
  constexpr Column column() const { return {position_ + 1}; }

 private:
  constexpr Tiler read_tiled_layout() {
    Tuple const shape = read_tuple();
    if (shape.is_integer() && peek() != ':') return Tiler(shape.value());
    return Tiler(read_strides(shape));
  }

  Text text_;
  std::int64_t position_ = 0;
};

}  // namespace tegula
