#include "layout_result.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "drawing.hpp"
#include "output.hpp"
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

template <class Append> void append_table(std::string& text, std::int64_t size, Append const& append) {
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
  std::string text =
      fmt::format(R"("result":"{}","size":{},"cosize":{})", to_text(value), layout.size(), layout.cosize());
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

std::string answer_line(std::string_view text, int number) {
  Json const line = Json::parse(text, nullptr, false);
  bool const has_id = line.is_object() && line.contains("id");
  std::string const label = has_id ? "{\"id\":" + dump(line["id"]) : fmt::format("{{\"line\":{}", number);
  try {
    if (line.is_discarded()) {
      throw std::invalid_argument(fmt::format("line {} is not JSON", number));
    }
    return label + "," + answer(line) + "}\n";
  } catch (std::exception const& error) {
    return label + ",\"error\":" + dump(error.what()) + "}\n";
  }
}

}  // namespace

Value as_result(Value const& value) {
  Tuple const* const tuple = std::get_if<Tuple>(&value.what);
  return tuple != nullptr && value.bare ? Value{layout(*tuple), false} : value;
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
    append_integer(text, memory(i) * element_bits / (8 * kBankBytes) % kBanks);
  });
  return text + "}";
}

void evaluate_batch(std::string_view lines, std::FILE* out) {
  int number = 0;
  while (!lines.empty()) {
    std::size_t const end = std::min(lines.find('\n'), lines.size());
    std::string_view const line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      std::string const text = answer_line(line, number);
      std::fwrite(text.data(), 1, text.size(), out);
    }
  }
  if (std::fflush(out) != 0 || std::ferror(out) != 0) {
    throw std::runtime_error("cannot write the answers to standard output");
  }
}

}  // namespace tegula::tool
