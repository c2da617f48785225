#include "layout_result.hpp"

#include <fmt/format.h>

#include <exception>

#include "output.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

using Json = nlohmann::ordered_json;

/// Nested arrays; an integer is a number.
Json tuple_json(Tuple const& tuple) {
  if (tuple.is_integer()) {
    return tuple.is_underscore() ? Json("_") : Json(tuple.value());
  }
  Json array = Json::array();
  for (int i = 0; i < tuple.rank(); ++i) {
    array.push_back(tuple_json(tuple[i]));
  }
  return array;
}

/// What to say to one parsed line. Throws what the expression does.
Json answer(Json const& line) {
  if (!line.is_object() || !line.contains("expr") || !line["expr"].is_string()) {
    throw std::invalid_argument(
        "a line must be an object with a string \"expr\", such as {\"id\":1,\"expr\":\"(4,8):(8,1)\"}");
  }
  return result_json(evaluate(line["expr"].get_ref<Json::string_t const&>()));
}

Json answer_line(std::string_view text, int number) {
  Json line = Json::parse(text, nullptr, false);
  Json result = Json::object();
  if (line.is_object() && line.contains("id")) {
    result["id"] = line["id"];
  } else {
    result["line"] = number;
  }
  try {
    if (line.is_discarded()) {
      throw std::invalid_argument(fmt::format("line {} is not JSON", number));
    }
    result.update(answer(line));
  } catch (std::exception const& error) {
    result["error"] = error.what();
  }
  return result;
}

}  // namespace

Value as_result(Value const& value) {
  Tuple const* const tuple = std::get_if<Tuple>(&value.what);
  return tuple != nullptr && value.bare ? Value{layout(*tuple), false} : value;
}

Json result_json(Value const& given) {
  Value const value = as_result(given);
  if (Tuple const* const tuple = std::get_if<Tuple>(&value.what)) {
    return {{"result", tuple_json(*tuple)}};
  }
  Json json{{"result", to_text(value)}};
  auto const describe = [&](auto const& layout, auto const& value_at) {
    json["size"] = layout.size();
    if (layout.size() <= kLargestTable) {
      Json table = Json::array();
      for (std::int64_t i = 0; i < layout.size(); ++i) {
        table.push_back(value_at(i));
      }
      json["table"] = std::move(table);
    }
  };
  if (Layout const* const plain = std::get_if<Layout>(&value.what)) {
    if (plain->has_axes()) {
      describe(*plain, [&](std::int64_t i) { return tuple_json(plain->coordinate(i)); });
    } else {
      json["size"] = plain->size();
      json["cosize"] = plain->cosize();
      describe(*plain, [&](std::int64_t i) { return (*plain)(i); });
    }
  } else if (SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what)) {
    json["size"] = swizzled->size();
    json["cosize"] = swizzled->cosize();
    describe(*swizzled, [&](std::int64_t i) { return (*swizzled)(i); });
  }
  return json;
}

std::string evaluate_batch(std::string_view lines) {
  std::string output;
  int number = 0;
  while (!lines.empty()) {
    std::size_t const end = std::min(lines.find('\n'), lines.size());
    std::string_view const line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      output += dump(answer_line(line, number));
      output += '\n';
    }
  }
  return output;
}

}  // namespace tegula::tool
