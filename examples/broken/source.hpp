#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The files of the gallery as text: the rule that a kernel breaks, its lines, and the report that
/// it must produce, which stands beside it in a comment.
namespace tegula::broken {

struct Source {
  std::string rule;                ///< the first paragraph of the comment before the kernel
  std::vector<std::string> about;  ///< that comment's lines
  std::vector<std::string> lines;  ///< the kernel's
  int first_line = 0;              ///< number of lines[0] in the file
  std::string report;              ///< one space between words
  /// as in the file, a finding's further lines indented by two
  std::vector<std::string> report_lines;
};

/// Reads FOLDER/NAME.hpp. Throws std::runtime_error, with the file's name, where there is none or
/// it lacks the kernel.
Source read_source(std::filesystem::path const& folder, std::string const& name);

/// Writes the report into the file in place of the one that is there.
void write_report(std::filesystem::path const& folder, std::string const& name,
                  std::string const& report);

/// A file's text. Throws std::runtime_error, with its name, where it cannot be read, or written.
std::string read_file(std::filesystem::path const& file);
void write_file(std::filesystem::path const& file, std::string const& text);

/// The text with one space between words.
std::string squeezed(std::string_view text);

/// Each line of the text in lines of at most `width` characters where words allow it, of which the
/// first begins with `prefix` and the others with `prefix` and two spaces.
std::string wrapped(std::string_view text, std::size_t width, std::string_view prefix);

}  // namespace tegula::broken
