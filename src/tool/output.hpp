#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tegula/layout/layout.hpp"

namespace tegula::tool {

/// Writes `text` to `path` whole or not at all: to a temporary file beside it, which then takes its name.
/// Throws std::runtime_error with the path and the system's reason.
void write_file(std::string const& path, std::string_view text);

/// The whole of a file, or of standard input for "-". Throws std::runtime_error with the path and the
/// system's reason.
std::string read_file(std::string const& path);

/// One line of JSON. Text that is not UTF-8 is replaced, not refused.
std::string dump(nlohmann::ordered_json const& value);

/// A (thread, value) layout in the form that every command gives it: {"layout", "values", "table"}, table[t +
/// threads * v].
nlohmann::ordered_json thread_value_json(Layout const& tv);

}  // namespace tegula::tool
