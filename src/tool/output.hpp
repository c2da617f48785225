#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/layout/layout.hpp"

namespace tegula::tool {

/// Writes `text` to `path` whole or not at all: to a temporary file beside it, which then takes its name.
/// Throws std::runtime_error with the path and the system's reason.
void write_file(std::string const& path, std::string_view text);

/// Writes the report on standard output, and each drawing to its file; a drawing for "-" goes to standard
/// output in place of the report. Throws std::invalid_argument where two things would go to standard output,
/// before anything is written.
struct DrawingFile {
  std::string option;  // that asked for it, for errors
  std::string path;    // empty: not asked for
  std::function<std::string()> draw;
};
void deliver(std::vector<DrawingFile> const& drawings, bool json, std::function<std::string()> const& report);

/// Adds `--name [FILE]`, which sets `path` to the file, or to "-" where none is given.
void add_drawing_option(CLI::App& command, std::string const& name, std::string& path,
                        std::string const& description);

/// The whole of a file, or of standard input for "-". Throws std::runtime_error with the path and the
/// system's reason.
std::string read_file(std::string const& path);

/// One line of JSON. Text that is not UTF-8 is replaced, not refused.
std::string dump(nlohmann::ordered_json const& value);

/// A (thread, value) layout in the form that every command gives it: {"layout", "values", "table"}, table[t +
/// threads * v].
nlohmann::ordered_json thread_value_json(Layout const& tv);

}  // namespace tegula::tool
