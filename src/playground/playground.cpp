// The layout playground's half in C++: a question and its answer are JSON, with drawings as SVG.
// Compiled to WebAssembly by `./run playground`; docs/playground has the page.

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "atom_lookup.hpp"
#include "calls.hpp"
#include "drawing.hpp"
#include "expression.hpp"
#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/derive_swizzle.hpp"
#include "tegula/layout/draw_svg.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::playground {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(Json const& question, char const* name) {
  if (!question.contains(name) || !question[name].is_string())
    throw std::invalid_argument(std::string(name) + " is missing; it must be text");
  return question[name].get<std::string>();
}

int number_of(Json const& question, char const* name, int least, int most) {
  if (question.contains(name) && question[name].is_number_integer()) {
    auto const number = question[name].get<std::int64_t>();
    if (number >= least && number <= most) return static_cast<int>(number);
  }
  throw std::invalid_argument(std::string(name) + " must be an integer from " +
                              std::to_string(least) + " to " + std::to_string(most));
}

/// What draw() draws, or why it cannot be drawn.
template <class Draw> Json drawing(std::string const& title, Draw const& draw) {
  try {
    return {{"title", title}, {"svg", draw()}};
  } catch (layout_error const& error) {
    return {{"title", title}, {"refused", error.what()}};
  }
}

/// An expression: its value, its table, and its banks.
Json about_layout(Json const& question) {
  tool::Value value = tool::evaluate(text_of(question, "expr"));
  if (Tuple const* const shape = std::get_if<Tuple>(&value.what); shape != nullptr && value.bare)
    value = {layout(*shape), false};
  Json answer = {{"text", to_text(value)}, {"drawings", Json::array()}};
  Layout const* const plain = std::get_if<Layout>(&value.what);
  SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what);
  if (plain == nullptr && swizzled == nullptr) return answer;  // an integer, a tuple, a tiler
  answer["size"] = plain != nullptr ? plain->size() : swizzled->size();
  bool const has_offsets = plain == nullptr || !plain->has_axes();
  if (has_offsets) answer["cosize"] = plain != nullptr ? plain->cosize() : swizzled->cosize();
  answer["drawings"].push_back(drawing("values", [&] { return to_svg(tool::picture(value)); }));
  if (has_offsets) {
    int const bits = number_of(question, "bits", 1, 128);
    answer["drawings"].push_back(drawing("banks of " + std::to_string(bits) + "-bit elements",
                                         [&] { return to_svg(tool::picture(value, bits)); }));
  }
  return answer;
}

/// A (thread, value) layout over a tile: who holds what.
Json about_threads(Json const& question) {
  Layout const tv = tool::evaluate_layout("the layout", text_of(question, "expr"));
  Tuple const tile =
      shape(number_of(question, "rows", 1, 1024), number_of(question, "columns", 1, 1024));
  return {{"text", to_string(tv)}, {"drawings", Json::array({drawing("who holds what", [&] {
                                      return to_svg(draw_threads(tv, tile));
                                    })})}};
}

/// An instruction of the catalogue.
Json about_atom(Json const& question) {
  std::string const name = text_of(question, "atom");
  tool::Atom const atom = tool::find_atom("atom", name);
  std::vector<Drawing> const drawings =
      atom.mma ? tool::pictures(*atom.mma) : tool::pictures(*atom.copy);
  return {{"text", name},
          {"drawings",
           Json::array({drawing("who holds what", [&] { return tool::stacked_svg(drawings); })})}};
}

/// An access to shared memory: the banks it goes through, and the swizzle that makes it free
/// of conflicts.
Json about_access(Json const& question) {
  tool::Value const value = tool::evaluate(text_of(question, "memory"));
  SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what);
  SwizzledLayout const memory =
      swizzled != nullptr
          ? *swizzled
          : SwizzledLayout(tool::evaluate_layout("memory", text_of(question, "memory")));
  Layout const threads = tool::evaluate_layout("threads", text_of(question, "threads"));
  SharedAccess const access = vector_access(threads, number_of(question, "bits", 1, 128),
                                            number_of(question, "bytes", 1, 16));
  Json answer = {{"text", to_string(memory)},
                 {"conflicts", bank_conflicts(access, memory)},
                 {"drawings", Json::array()}};
  answer["drawings"].push_back(
      drawing("as given", [&] { return to_svg(draw_wavefronts(access, memory)); }));
  if (answer["conflicts"] == 0 || swizzled != nullptr) return answer;
  try {
    SwizzledLayout const better(derive_swizzle(access, memory.layout), memory.layout);
    answer["swizzled"] = to_string(better);
    answer["drawings"].push_back(drawing("with the derived swizzle, " + to_string(better),
                                         [&] { return to_svg(draw_wavefronts(access, better)); }));
    answer["drawings"].push_back(drawing("the tile's banks with it", [&] {
      return to_svg(draw_banks(better, access.element_bits));
    }));
  } catch (layout_error const& error) {
    answer["swizzled"] = error.what();
  }
  return answer;
}

Json answer_to(Json const& question) {
  std::string const about = text_of(question, "about");
  if (about == "layout") return about_layout(question);
  if (about == "threads") return about_threads(question);
  if (about == "atom") return about_atom(question);
  if (about == "access") return about_access(question);
  throw std::invalid_argument("about is '" + about +
                              "'; it must be layout, threads, atom or access");
}

}  // namespace
}  // namespace tegula::playground

/// The answer to a question, {"error": sentence} where it is refused; valid until the next one.
extern "C" char const* tegula_playground(char const* question) {
  using tegula::playground::Json;
  static std::string answer;
  try {
    Json const read = Json::parse(question, nullptr, false);
    if (!read.is_object()) throw std::invalid_argument("the question is no JSON object");
    answer =
        tegula::playground::answer_to(read).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (std::exception const& error) {
    answer = Json{{"error", error.what()}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return answer.c_str();
}
