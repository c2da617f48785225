#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "calls.hpp"
#include "commands.hpp"
#include "drawing.hpp"
#include "expression.hpp"
#include "layout_result.hpp"
#include "options.hpp"
#include "output.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/draw_latex.hpp"
#include "tegula/layout/draw_svg.hpp"
#include "tegula/layout/draw_text.hpp"

namespace tegula::tool {
namespace {

struct Options {
  std::optional<std::string> expression, batch;
  std::string svg;
  std::string latex;
  std::string banks;  // element width in bits; empty: not asked for
  bool json = false;
};

bool is_layout(Value const& value) {
  return std::holds_alternative<Layout>(value.what) ||
         std::holds_alternative<SwizzledLayout>(value.what);
}

std::string json_report(Value const& value, int bank_bits) {
  return "{" + result_members(value) +
         (bank_bits != 0 ? "," + banks_member(value, bank_bits) : "") + "}\n";
}

std::string text_report(Value const& value, int bank_bits) {
  if (!is_layout(value)) {
    return to_text(value) + "\n";
  }
  Layout const* const plain = std::get_if<Layout>(&value.what);
  SwizzledLayout const* const swizzled = std::get_if<SwizzledLayout>(&value.what);
  std::int64_t const size = plain != nullptr ? plain->size() : swizzled->size();
  std::string text = fmt::format("result  {}\nsize    {}\n", to_text(value), size);
  if (plain == nullptr || !plain->has_axes()) {
    text += fmt::format("cosize  {}\n", plain != nullptr ? plain->cosize() : swizzled->cosize());
  }
  if (size > kLargestTable) {
    return text + fmt::format("\nThe table has more than {} elements, and is not printed.\n",
                              kLargestTable);
  }
  text += "\n" + to_text(picture(value));
  if (bank_bits != 0) {
    text += "\n" + to_text(picture(value, bank_bits));
  }
  return text;
}

int element_width(std::string const& text) {
  for (int const bits : {1, 2, 4, 8, 16, 32, 64, 128}) {
    if (text == std::to_string(bits)) {
      return bits;
    }
  }
  throw std::invalid_argument(fmt::format(
      "--banks: {} is not the width of an element in bits: 1, 2, 4, 8, 16, 32, 64 or 128",
      io::in_quotes(text)));
}

/// f(), with the option in front of what cannot be drawn.
template <class F> auto for_option(char const* option, F&& f) {
  try {
    return f();
  } catch (layout_error const& error) {
    throw std::invalid_argument(fmt::format("{}: {}", option, error.what()));
  } catch (std::invalid_argument const& error) {
    throw std::invalid_argument(fmt::format("{}: {}", option, error.what()));
  }
}

void run(Options const& options) {
  if (options.batch.has_value() == options.expression.has_value()) {
    throw std::invalid_argument(
        "either an expression such as '(4,8):(8,1)' or --batch FILE is needed, and not both");
  }
  if (options.batch) {
    for (auto const& [option, value] : {std::pair("--svg", &options.svg),
                                        {"--latex", &options.latex},
                                        {"--banks", &options.banks}})
      if (!value->empty())
        throw std::invalid_argument(
            fmt::format("{}: is of one expression, and --batch evaluates a file of them", option));
    evaluate_batch(*options.batch);
    return;
  }
  Value const value = as_result(evaluate(*options.expression));
  int const bank_bits = options.banks.empty() ? 0 : element_width(options.banks);
  auto const drawn = [&](char const* option) {
    return for_option(option, [&] { return picture(value, bank_bits); });
  };
  if (bank_bits != 0) drawn("--banks");  // refuses what has no banks
  deliver({{"--svg", options.svg, [&] { return to_svg(drawn("--svg")); }},
           {"--latex", options.latex, [&] { return to_latex(drawn("--latex")); }}},
          options.json, [&] {
            return options.json ? json_report(value, bank_bits) : text_report(value, bank_bits);
          });
}

}  // namespace

void add_layout_command(Command const& app) {
  Command const command = app.add_command("layout", "Evaluate an expression of the layout algebra");
  constexpr char const* kValues = R"(Values:
  8:1  (4,(3,6)):(1,(4,12))   a layout, shape:stride; without a stride it is compact column-major
  (16,8):(1@0,1@1)            a layout of coordinates: stride 1 along axis 0, 1 along axis 1
  Sw<3,4,3> o (8,64):(64,1)   a swizzled layout
  <4:1,_,8>                   a tiler: one layout for each mode, '_' to leave a mode, n for n:1
  (4,(_,3))                   a tuple, as a shape or a coordinate
Calls:
)";
  constexpr char const* kExamples = R"help(
Examples:
  tegula layout '(4,(3,6)):(1,(4,12))'
  tegula layout 'composition((4,4):(4,1), (4,2,2):(2,1,8))'
  tegula layout 'zipped_divide((8,12):(12,1), <4:1,3:1>)' --json
  tegula layout 'slice((4,8):(8,1), (_,3))'
  tegula layout 'tile_to_shape(Sw<3,3,3> o (8,64):(64,1), (64,64))' --svg tile.svg --banks 16
  echo '{"id":7,"expr":"size((4,8))"}' | tegula layout --batch -)help";
  command.footer(kValues + describe_calls() + kExamples);
  auto const options = std::make_shared<Options>();
  command.add_text("EXPR", options->expression, "The expression");
  command
      .add_text(
          "--batch", options->batch,
          "Evaluate each line {\"id\",\"expr\"} of this file of JSON lines ('-': standard input)")
      .check(file_name());
  command.add_flag("--json", options->json, "Write JSON: result, size, cosize and table");
  command.add_drawing(
      "--svg", options->svg,
      "Draw the layout to FILE, or to standard output; with --banks, coloured by bank");
  command.add_drawing("--latex", options->latex, "The same as a LaTeX document (TikZ)");
  command
      .add_option("--banks", options->banks,
                  "Show the shared-memory bank of each element of BITS bits (16 if not given)")
      .optional_value("16", "[BITS]");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
