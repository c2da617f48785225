#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <sstream>
#include <utility>

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

/// What CLI11 found wrong, in one sentence.
usage_error refusal(CLI::ParseError const& error, CLI::App const& app,
                    std::vector<std::string> const& arguments) {
  bool const of_command = !app.get_subcommands().empty();
  if (!of_command && !arguments.empty() && arguments[0][0] != '-')
    return no_command(app, arguments[0]);
  CLI::App const& command = of_command ? *app.get_subcommands().front() : app;
  std::string const help =
      fmt::format("(see `tegula {}--help`)", of_command ? command.get_name() + " " : "");
  std::vector<std::string> const extras = command.remaining();
  if (dynamic_cast<CLI::ExtrasError const*>(&error) != nullptr && !extras.empty())
    return usage_error(fmt::format("there is no option or argument {} here {}",
                                   io::in_quotes(extras.front()), help));
  return usage_error(fmt::format("{} {}", error.what(), help));
}

}  // namespace

Option Option::check(Accepted accepted) const {
  option_->check(CLI::Validator(
      [refuses = std::move(accepted.refusal)](std::string& text) { return refuses(text); },
      std::move(accepted.description)));
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

Command Command::add_command(std::string const& name, std::string const& description) const {
  return Command(app_->add_subcommand(name, description));
}
void Command::footer(std::string const& text) const { app_->footer(text); }
void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

template <class T>
Option Command::add_option(std::string const& names, T& value,
                           std::string const& description) const {
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
void Command::add_flag(std::string const& names, bool& value,
                       std::string const& description) const {
  app_->add_flag(names, value, description);
}
void Command::add_drawing(std::string const& name, std::string& path,
                          std::string const& description) const {
  add_option(name, path, description).optional_value("-", "[FILE]");
}

CommandLine::CommandLine(std::string const& description, std::string const& name)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(description, name)) {
  app_ = owned_.get();
}
CommandLine::~CommandLine() = default;

void CommandLine::version(std::string const& text) const {
  app_->set_version_flag("--version", text);
}
std::string CommandLine::help() const { return app_->help(); }

std::optional<std::string> CommandLine::run_command(
    std::vector<std::string> const& arguments) const {
  app_->require_subcommand(0, 1);
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
