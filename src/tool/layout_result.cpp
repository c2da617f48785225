#include "layout_result.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "drawing.hpp"
#include "output.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

using Json = nlohmann::ordered_json;

/// Nested arrays; an integer is a number.
void append_tuple(std::string& text, Tuple const& tuple) {
  if (tuple.is_integer()) {
    text += tuple.is_underscore() ? std::string("\"_\"") : std::to_string(tuple.value());
    return;
  }
  text += '[';
  for (int i = 0; i < tuple.rank(); ++i) {
    text += i == 0 ? "" : ",";
    append_tuple(text, tuple[i]);
  }
  text += ']';
}

template <class Append>
void append_table(std::string& text, std::int64_t size, Append const& append) {
  text += '[';
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) {
      text += ',';
    }
    append(i);
  }
  text += ']';
}

void append_integer(std::string& text, std::int64_t value) {
  fmt::format_to(std::back_inserter(text), FMT_COMPILE("{}"), value);
}

template <class L> std::string layout_members(Value const& value, L const& layout) {
  // The text form holds no character that JSON escapes.
  std::string text = fmt::format(R"("result":"{}","size":{},"cosize":{})", to_text(value),
                                 layout.size(), layout.cosize());
  if (layout.size() <= kLargestTable) {
    text += R"(,"table":)";
    append_table(text, layout.size(), [&](std::int64_t i) { append_integer(text, layout(i)); });
  }
  return text;
}

std::string coordinate_members(Value const& value, Layout const& layout) {
  std::string text = fmt::format(R"("result":"{}","size":{})", to_text(value), layout.size());
  if (layout.size() <= kLargestTable) {
    text += R"(,"table":)";
    append_table(text, layout.size(),
                 [&](std::int64_t i) { append_tuple(text, layout.coordinate(Tuple(i))); });
  }
  return text;
}

/// What to say to one parsed line. Throws what the expression does.
std::string answer(Json const& line) {
  if (!line.is_object() || !line.contains("expr") || !line["expr"].is_string()) {
    throw std::invalid_argument(
        "a line must be an object with a string \"expr\", such as {\"id\":1,\"expr\":\"(4,8):(8,1)\"}");
  }
  return result_members(evaluate(line["expr"].get_ref<Json::string_t const&>()));
}

std::string error_line(int number, std::string const& sentence) {
  return fmt::format("{{\"line\":{},\"error\":{}}}\n", number, dump(sentence));
}

}  // namespace

std::string answer_line(std::string_view text, int number) {
  // Depth first: a parsed value is copied and written by recursion.
  if (io::json_depth(text) > kDeepestJson)
    return error_line(number, fmt::format("line {} nests arrays and objects more than {} deep",
                                          number, kDeepestJson));
  // A zero byte would end the text for the parser, and of a key given twice the last would count.
  std::set<std::string> keys;
  bool twice = false;
  auto const see = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1)
      twice = !keys.insert(parsed.get<std::string>()).second || twice;
    return true;
  };
  Json const line = text.find('\0') == std::string_view::npos ? Json::parse(text, see, false)
                                                              : Json(Json::value_t::discarded);
  bool const has_id = line.is_object() && line.contains("id") && !twice;
  // Beyond 64 bits a whole number has become a rounded one, which is not to be repeated.
  bool const rounded =
      has_id && line["id"].is_number_float() && std::abs(line["id"].get<double>()) >= 0x1p53;
  std::string const label =
      has_id && !rounded ? "{\"id\":" + dump(line["id"]) : fmt::format("{{\"line\":{}", number);
  try {
    if (line.is_discarded()) {
      throw std::invalid_argument(fmt::format("line {} is not JSON", number));
    }
    if (twice) throw std::invalid_argument(fmt::format("line {} has a key twice", number));
    if (rounded)
      throw std::invalid_argument(fmt::format(
          "line {} has an id of more than 64 bits; a string or a smaller number is needed",
          number));
    return label + "," + answer(line) + "}\n";
  } catch (std::exception const& error) {
    return label + ",\"error\":" + dump(error.what()) + "}\n";
  }
}

Value as_result(Value const& value) {
  Tuple const* const tuple = std::get_if<Tuple>(&value.what);
  if (tuple == nullptr || !value.bare) return value;
  return named_in_ranges(to_text(value), [&] { return Value{layout(*tuple), false}; });
}

std::string result_members(Value const& given) {
  Value const value = as_result(given);
  if (Layout const* const plain = std::get_if<Layout>(&value.what)) {
    return plain->has_axes() ? coordinate_members(value, *plain) : layout_members(value, *plain);
  }
  if (SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what)) {
    return layout_members(value, *swizzled);
  }
  std::string text = "\"result\":";
  if (Tuple const* const tuple = std::get_if<Tuple>(&value.what)) {
    append_tuple(text, *tuple);
    return text;
  }
  return text + '"' + to_text(value) + '"';
}

std::string banks_member(Value const& value, int element_bits) {
  picture(value, element_bits);  // refuses what has no banks
  Layout const* const plain = std::get_if<Layout>(&value.what);
  SwizzledLayout const memory =
      plain != nullptr ? SwizzledLayout(*plain) : std::get<SwizzledLayout>(value.what);
  std::string text = fmt::format(R"("banks":{{"element_bits":{},"table":)", element_bits);
  append_table(text, std::min(memory.size(), kLargestTable), [&](std::int64_t i) {
    append_integer(text, bank_of_element(memory(i), element_bits));
  });
  return text + "}";
}

void evaluate_batch(std::string const& path) {
  read_lines("--batch", path, kLongestLine, [](std::string_view line, int number, bool too_long) {
    if (too_long) {
      put(error_line(number, fmt::format("line {} has more than {} bytes", number, kLongestLine)));
    } else if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      put(answer_line(line, number));
    }
  });
}

}  // namespace tegula::tool
