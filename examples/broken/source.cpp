#include "source.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tegula::broken {

namespace {

constexpr std::string_view kReport = "// Report:";

std::filesystem::path file_of(std::filesystem::path const& folder, std::string const& name) {
  return folder / (name + ".hpp");
}

std::vector<std::string> lines_of(std::filesystem::path const& file) {
  std::istringstream in(read_file(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What stands between // or /// and the end of a line that is a comment.
std::string_view comment(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('/'), line.size()));
  return line.starts_with(' ') ? line.substr(1) : line;
}

}  // namespace

Source read_source(std::filesystem::path const& folder, std::string const& name) {
  auto const lines = lines_of(file_of(folder, name));
  auto const missing = [&](char const* what) {
    return std::runtime_error(file_of(folder, name).string() + " has no " + what);
  };
  auto const begin = std::find_if(lines.begin(), lines.end(), [&](std::string const& line) {
    return line.starts_with("struct " + name + " ");
  });
  auto const end = std::find(begin, lines.end(), "};");
  if (end == lines.end()) throw missing(("struct " + name).c_str());

  Source source;
  source.lines.assign(begin, end + 1);
  source.first_line = static_cast<int>(begin - lines.begin()) + 1;
  auto about = begin;
  while (about != lines.begin() && about[-1].starts_with("///")) --about;
  std::string rule;
  for (; about != begin; ++about) {
    source.about.emplace_back(comment(*about));
    if (source.about.back().empty() && source.rule.empty()) source.rule = squeezed(rule);
    rule += source.about.back() + " ";
  }
  if (source.rule.empty()) throw missing("rule in the comment before its kernel");

  auto report = std::find(end, lines.end(), kReport);
  if (report == lines.end()) return source;
  for (++report; report != lines.end() && report->starts_with("//"); ++report) {
    std::string const line(comment(*report));
    source.report_lines.push_back(line.substr(std::min<std::size_t>(line.size(), 2)));
    source.report += line + " ";
  }
  source.report = squeezed(source.report);
  return source;
}

void write_report(std::filesystem::path const& folder, std::string const& name,
                  std::string const& report) {
  auto lines = lines_of(file_of(folder, name));
  auto begin = std::find(lines.begin(), lines.end(), kReport);
  if (begin == lines.end()) {
    auto const kernel = std::find_if(lines.begin(), lines.end(), [&](std::string const& line) {
      return line.starts_with("struct " + name + " ");
    });
    begin = lines.insert(std::find(kernel, lines.end(), "};") + 1, {"", std::string(kReport)}) + 1;
  }
  auto const end = std::find_if(begin, lines.end(),
                                [](std::string const& line) { return !line.starts_with("//"); });
  std::ostringstream out;
  for (auto line = lines.begin(); line != begin; ++line) out << *line << "\n";
  out << kReport << "\n" << wrapped(report, 100, "//   ");
  for (auto line = end; line != lines.end(); ++line) out << *line << "\n";
  write_file(file_of(folder, name), out.str());
}

std::string read_file(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text) throw std::runtime_error(file.string() + " cannot be read");
  return text.str();
}

void write_file(std::filesystem::path const& file, std::string const& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(file.string() + " cannot be written");
}

std::string squeezed(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view prefix) {
  std::istringstream lines{std::string(text)};
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string current(prefix);
    bool empty = true;
    for (std::string word; words >> word;) {
      if (!empty && current.size() + 1 + word.size() > width) {
        result += current + "\n";
        current = std::string(prefix) + "  ";
        empty = true;
      }
      current += (empty ? "" : " ") + word;
      empty = false;
    }
    result += current + "\n";
  }
  return result;
}

}  // namespace tegula::broken
