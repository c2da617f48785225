#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tegula/layout/layout.hpp"

namespace tegula::tool {

/// Writes to standard output. Throws std::runtime_error where it cannot be written; what is still
/// buffered at the end is seen by flush_output().
void put(std::string_view text);
template <class... T> void print(fmt::format_string<T...> format, T&&... values) {
  put(fmt::format(format, std::forward<T>(values)...));
}
/// Throws std::runtime_error where something written to standard output did not arrive.
void flush_output();
/// Writes to standard error; if that is closed, nobody is there to be told.
template <class... T> void say(fmt::format_string<T...> format, T&&... values) {
  std::string const text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// The whole of the file that an option names, by io::OutputFile. Throws io_error that begins with
/// the option.
void write_output(std::string const& option, std::string const& path, std::string_view text);

/// Writes the report on standard output, and each drawing to its file; a drawing for "-" goes to
/// standard output in place of the report. Throws std::invalid_argument where two things would go
/// to standard output or to one file, and io_error where a file cannot be written, before anything
/// is drawn or written.
struct DrawingFile {
  std::string option;  // that asked for it, for errors
  std::string path;    // empty: not asked for
  std::function<std::string()> draw;
};
void deliver(std::vector<DrawingFile> const& drawings, bool json,
             std::function<std::string()> const& report);

/// Calls line(text, number) for each line of a file, or of standard input for "-", without its end;
/// `text` is empty of a line longer than `most` bytes, of which too_long is told. Throws
/// std::runtime_error with the option, the path and the system's reason, and for a device that has
/// no end, as /dev/zero.
void read_lines(std::string const& option, std::string const& path, std::size_t most,
                std::function<void(std::string_view text, int number, bool too_long)> const& line);

/// The whole of a file of at most `most` bytes. Throws io_error, and as read_lines does.
std::string read_file(std::string const& option, std::string const& path, std::int64_t most);

/// One line of JSON. Text that is not UTF-8 is replaced, not refused.
std::string dump(nlohmann::ordered_json const& value);

/// A (thread, value) layout in the form that every command gives it: {"layout", "values", "table"},
/// table[t + threads * v]. Throws std::invalid_argument for a table of more than 2^22 elements.
nlohmann::ordered_json thread_value_json(Layout const& tv);

}  // namespace tegula::tool
