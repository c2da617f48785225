#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <sstream>
#include <type_traits>
#include <utility>

#include "options.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

/// The names of the commands, for the sentence that answers an unknown one.
std::string command_names(CLI::App const& app) {
  std::string names;
  for (CLI::App const* command : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

usage_error no_command(CLI::App const& app, std::string const& word) {
  return usage_error(fmt::format("there is no command {}; the commands are {}", io::in_quotes(word),
                                 command_names(app)));
}

/// What the option takes, for the sentence that answers a value that is missing or one too many:
/// what its check says that '' is not, or its description.
std::string taken_by(CLI::Option const& option) {
  constexpr std::string_view kIsNot = "'' is not ", kNor = ", nor ";
  try {
    std::string text;
    std::string refused = (*const_cast<CLI::Option&>(option).get_validator(0))(text);
    if (auto const nor = refused.find(kNor); nor != std::string::npos)
      refused.replace(nor, kNor.size(), " or ");
    if (refused.starts_with(kIsNot)) return refused.substr(kIsNot.size());
  } catch (CLI::OptionNotFound const&) {  // it has no check
  }
  return option.get_description();
}

usage_error without_value(std::string const& name, CLI::Option const& option) {
  return usage_error(
      fmt::format("{}: is given without a value; it takes: {}", name, taken_by(option)));
}

/// The option of that name, with the name that the user gave it: the last of its names that is
/// among the arguments.
std::pair<CLI::Option*, std::string> option_as_given(CLI::App& app, std::string const& name,
                                                     std::vector<std::string> const& arguments) {
  CLI::Option* const option = app.get_option_no_throw(name);
  std::string given = name;
  if (option == nullptr) return {option, given};
  for (std::string const& argument : arguments) {
    if (argument == "--") break;
    std::string const word = argument.substr(0, argument.find('='));
    if (word.starts_with("-") && option->check_name(word)) given = word;
  }
  return {option, given};
}

/// What CLI11 found wrong, in one sentence.
usage_error refusal(CLI::ParseError const& error, CLI::App& app,
                    std::vector<std::string> const& arguments) {
  bool const of_command = !app.get_subcommands().empty();
  if (!of_command && !arguments.empty() && arguments[0][0] != '-')
    return no_command(app, arguments[0]);
  CLI::App& command = of_command ? *app.get_subcommands().front() : app;
  std::string const help =
      fmt::format("(see `tegula {}--help`)", of_command ? command.get_name() + " " : "");
  std::vector<std::string> const extras = app.remaining(/*recurse=*/true);
  if (dynamic_cast<CLI::ExtrasError const*>(&error) != nullptr && !extras.empty())
    return usage_error(fmt::format("there is no option or argument {} here {}",
                                   io::in_quotes(extras.front()), help));
  std::string const text = error.what();
  auto const [option, name] =
      option_as_given(command, text.substr(0, text.find_first_of(": ")), arguments);
  auto const refused = [&](std::string const& sentence) {
    return usage_error(fmt::format("{} {}", sentence, help));
  };
  if (option == nullptr) return refused(text);
  if (dynamic_cast<CLI::ExcludesError const*>(&error) != nullptr)
    return refused(fmt::format("{} and {} are both given; they exclude each other", name,
                               text.substr(text.rfind(' ') + 1)));
  if (dynamic_cast<CLI::RequiredError const*>(&error) != nullptr)
    return refused(fmt::format("{} is left out; it is required: {}", name, taken_by(*option)));
  if (text.find(": At Most 1 required but received") != std::string::npos)
    return refused(option->get_items_expected_max() == 0
                       ? fmt::format("{}: is given more than once; once is enough", name)
                       : fmt::format("{}: is given more than once; it takes one value: {}", name,
                                     taken_by(*option)));
  if (text.ends_with(" missing") && text.find(": 1 required ") != std::string::npos)
    return refused(without_value(name, *option).what());
  return refused(text);
}

/// What the parser would take for something else: a value of a flag, which has none (--json=no, and
/// --json=2 for yes), an empty value behind a '=' or where it may be left out, for none, and the
/// next option for the value of one that has none (--tile --n 4).
void refuse_values_that_get_lost(CLI::App const& app, std::vector<std::string> const& arguments) {
  if (arguments.empty()) return;
  CLI::App const* command = nullptr;
  for (CLI::App const* const each : app.get_subcommands({}))
    if (each->get_name() == arguments[0]) command = each;
  // The option of a word that gives it, with a value or without.
  auto const named = [&](std::string const& word) -> CLI::Option const* {
    if (!word.starts_with("-")) return nullptr;
    std::string const name = word.substr(0, word.find('='));
    CLI::Option const* const option = app.get_option_no_throw(name);
    return option != nullptr || command == nullptr ? option : command->get_option_no_throw(name);
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string const& argument = arguments[i];
    if (argument == "--") return;
    auto const equals = argument.find('=');
    std::string const name = argument.substr(0, equals);
    CLI::Option const* const option = named(argument);
    if (option == nullptr) continue;
    bool const behind_equals = equals != std::string::npos;
    if (option->get_items_expected_max() == 0) {
      if (behind_equals)
        throw usage_error(fmt::format("{}: {} is given, and it takes no value", name,
                                      io::in_quotes(argument.substr(equals + 1))));
      continue;
    }
    bool const may_be_left_out = option->get_items_expected_min() == 0;
    if (!behind_equals && !may_be_left_out && i + 1 < arguments.size() &&
        named(arguments[i + 1]) != nullptr)
      throw without_value(name, *option);
    if (behind_equals ? equals + 1 == argument.size()
                      : may_be_left_out && i + 1 < arguments.size() && arguments[i + 1].empty())
      throw usage_error(fmt::format("{}: '' is given; it takes{}: {}", name,
                                    may_be_left_out ? " nothing, or a value" : "",
                                    taken_by(*option)));
  }
}

/// Help of which descriptions are as wide as a terminal at most, beside their options.
class Formatter : public CLI::Formatter {
  static constexpr std::size_t kWidth = 118;

  std::string make_option_desc(CLI::Option const* option) const override {
    std::istringstream words(option->get_description());
    std::string text;
    std::size_t line = 0;  // its width
    for (std::string word; words >> word; line += word.size()) {
      if (line + 1 + word.size() > kWidth - get_column_width()) {
        text += "\n";
        line = 0;
      } else if (line > 0) {
        text += " ";
        ++line;
      }
      text += word;
    }
    return text;
  }
};

template <class T> struct NumberOf { using type = T; };
template <class T> struct NumberOf<std::optional<T>> { using type = T; };

/// An option of a number, which all of its text must spell.
template <class T>
CLI::Option* add_number(CLI::App& app, std::string const& names, T& value,
                        std::string const& description) {
  using Number = typename NumberOf<T>::type;
  CLI::Option* const option = app.add_option(
      names,
      [&value](CLI::results_t const& texts) {
        auto const number = spelled<Number>(texts.front());
        if (number) value = *number;
        return number.has_value();
      },
      description, /*defaulted=*/false,
      [&value] {
        if constexpr (std::is_arithmetic_v<T>)
          return fmt::format("{}", value);
        else
          return value ? fmt::format("{}", *value) : std::string();
      });
  return option->type_name(CLI::detail::type_name<Number>())->type_size(1);
}

}  // namespace

Option Option::check(Accepted accepted) const {
  option_->type_name(accepted.description);
  option_->check(CLI::Validator(
      [refuses = std::move(accepted.refusal)](std::string& text) { return refuses(text); }, ""));
  return *this;
}
Option Option::required() const {
  option_->required();
  return *this;
}
Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}
Option Option::group(std::string const& name) const {
  option_->group(name);
  return *this;
}
Option Option::excludes(std::vector<Option> const& others) const {
  for (Option const& other : others) option_->excludes(other.option_);
  return *this;
}
Option Option::optional_value(std::string const& value, std::string const& text) const {
  option_->expected(0, 1)->default_str(value)->option_text(text);
  return *this;
}
bool Option::given() const { return option_->count() > 0; }

Command Command::add_command(std::string const& name, std::string const& description) const {
  return Command(app_->add_subcommand(name, description));
}
void Command::footer(std::string const& text) const { app_->footer(text); }
void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

template <class T>
Option Command::add_option(std::string const& names, T& value,
                           std::string const& description) const {
  if constexpr (std::is_arithmetic_v<typename NumberOf<T>::type>)
    return Option(add_number(*app_, names, value, description));
  else
    return Option(app_->add_option(names, value, description));
}
template Option Command::add_option(std::string const&, std::string&, std::string const&) const;
template Option Command::add_option(std::string const&, int&, std::string const&) const;
template Option Command::add_option(std::string const&, unsigned&, std::string const&) const;
template Option Command::add_option(std::string const&, float&, std::string const&) const;
template Option Command::add_option(std::string const&, std::uint64_t&, std::string const&) const;
template Option Command::add_option(std::string const&, std::optional<int>&,
                                    std::string const&) const;
template Option Command::add_option(std::string const&, std::int64_t&, std::string const&) const;
template Option Command::add_option(std::string const&, std::optional<float>&,
                                    std::string const&) const;
template Option Command::add_option(std::string const&, std::optional<std::string>&,
                                    std::string const&) const;
template Option Command::add_option(std::string const&, std::vector<std::string>&,
                                    std::string const&) const;

Option Command::add_text(std::string const& names, std::optional<std::string>& text,
                         std::string const& description) const {
  return Option(app_->add_option_function<std::string>(
      names, [&text](std::string const& given) { text = given; }, description));
}
Option Command::add_flag(std::string const& names, bool& value,
                         std::string const& description) const {
  // Given twice it is refused, as every option is.
  return Option(app_->add_flag(names, value, description)
                    ->multi_option_policy(CLI::MultiOptionPolicy::Throw));
}
Option Command::add_drawing(std::string const& name, std::string& path,
                            std::string const& description) const {
  return add_option(name, path, description).optional_value("-", "[FILE]");
}

CommandLine::CommandLine(std::string const& description, std::string const& name)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(description, name)) {
  app_ = owned_.get();
  app_->formatter(std::make_shared<Formatter>());
}
CommandLine::~CommandLine() = default;

void CommandLine::version(std::string const& text) const {
  app_->set_version_flag("--version", text);
}
std::string CommandLine::help() const { return app_->help(); }

std::optional<std::string> CommandLine::run_command(
    std::vector<std::string> const& arguments) const {
  app_->require_subcommand(0, 1);
  refuse_values_that_get_lost(*app_, arguments);
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    if (!app_->get_subcommands().empty()) return std::nullopt;
    if (!arguments.empty()) throw no_command(*app_, arguments[0]);
    return help();
  } catch (CLI::Success const& request) {  // --help, --version
    std::ostringstream text;
    app_->exit(request, text, text);
    return text.str();
  } catch (CLI::ParseError const& error) {
    throw refusal(error, *app_, arguments);
  }
}

std::optional<int> CommandLine::read(int argc, char const* const* argv) const {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    return app_->exit(error);
  }
}

}  // namespace tegula::tool
