#pragma once

/// Commands and their options. CLI11, whose headers take a compiler ten seconds, is included by
/// command_line.cpp alone.

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tegula::tool {

/// The command line is not one that the program takes; what() is a sentence for the user.
struct usage_error : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// What an option accepts.
struct Accepted {
  std::function<std::string(std::string const& text)>
      refusal;              ///< a sentence, empty where it accepts the text
  std::string description;  ///< of what it accepts, in --help: "N", "FILE", "{last|first}"
};

/// An option of a command, which lives as long as the command line. Each function returns the
/// option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option check(Accepted accepted) const;
  Option required() const;
  /// --help shows the value that the variable has now.
  Option show_default() const;
  Option group(std::string const& name) const;
  Option excludes(std::vector<Option> const& others) const;
  /// The value may be left out, and is then `value`; --help shows it as `text`.
  Option optional_value(std::string const& value, std::string const& text) const;
  /// Whether the command line that was read has it.
  bool given() const;

 private:
  CLI::Option* option_;
};

/// A command, which lives as long as the command line. Names are "--out-type,--out", or "EXPR" of
/// what is given by its position.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_command(std::string const& name, std::string const& description) const;
  /// What --help ends with.
  void footer(std::string const& text) const;
  /// What the command does.
  void callback(std::function<void()> run) const;

  /// T: std::string, int, unsigned, float, std::int64_t, std::uint64_t, std::optional of int or
  /// float, or std::vector<std::string>. Numbers are read by `spelled`, as what checks them does.
  template <class T>
  Option add_option(std::string const& names, T& value, std::string const& description = "") const;
  /// An option whose text is kept as it was given: present also where it is empty.
  Option add_text(std::string const& names, std::optional<std::string>& text,
                  std::string const& description) const;
  Option add_flag(std::string const& names, bool& value, std::string const& description) const;
  /// `--name [FILE]`, which sets `path` to the file, or to "-" where none is given.
  Option add_drawing(std::string const& name, std::string& path,
                     std::string const& description) const;

 protected:
  CLI::App* app_;
};

/// The command line of a program: its own options, or its commands.
class CommandLine : public Command {
 public:
  explicit CommandLine(std::string const& description, std::string const& name = "");
  ~CommandLine();

  /// What --version prints.
  void version(std::string const& text) const;
  std::string help() const;

  /// Reads the arguments of a program of commands, and runs the one that they name. Gives what
  /// there is to print, of --help and --version. Throws usage_error, and what the command throws.
  std::optional<std::string> run_command(std::vector<std::string> const& arguments) const;
  /// Reads the arguments of a program without commands. Gives the status to exit with where there
  /// is nothing more to do: after --help, and where they are refused, in a printed sentence.
  std::optional<int> read(int argc, char const* const* argv) const;

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace tegula::tool
