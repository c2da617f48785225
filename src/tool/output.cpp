#include "output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tegula/io/output_file.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(char const* doing, std::string const& what) {
  throw std::runtime_error(fmt::format("cannot {} {}: {}", doing, what, std::strerror(errno)));
}

/// Refuses a device that gives bytes for ever: any but a terminal, and /dev/null.
void refuse_endless(std::FILE* file, std::string const& what) {
  struct stat status = {}, null = {};
  int const descriptor = fileno(file);
  if (fstat(descriptor, &status) != 0 || !(S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)))
    return;
  bool const is_null = stat("/dev/null", &null) == 0 && status.st_rdev == null.st_rdev;
  if (isatty(descriptor) == 0 && !is_null)
    throw std::runtime_error(
        fmt::format("cannot read {}: it is a device; a file, a pipe or a terminal is read", what));
}

/// What an option, or standard input for "-", reads from; closed with the first.
struct Source {
  File file;
  std::FILE* from;
  std::string what;  ///< for sentences
};
Source open_source(std::string const& option, std::string const& path) {
  bool const standard_input = path == "-";
  std::string const what = standard_input ? "standard input" : option + " " + io::in_quotes(path);
  File file(standard_input ? nullptr : std::fopen(path.c_str(), "rb"));
  if (!standard_input && !file) fail("read", what);
  std::FILE* const from = standard_input ? stdin : file.get();
  refuse_endless(from, what);
  return {std::move(file), from, what};
}

}  // namespace

void put(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    fail("write", "standard output");
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail("write", "standard output");
}

void write_output(std::string const& option, std::string const& path, std::string_view text) {
  try {
    io::write_file(path, text);
  } catch (io::io_error const& error) {
    throw io::io_error(fmt::format("{} {}", option, error.what()));
  }
}

void deliver(std::vector<DrawingFile> const& drawings, bool json,
             std::function<std::string()> const& report) {
  std::string to_output;  // the option whose drawing goes to standard output
  for (DrawingFile const& drawing : drawings) {
    if (drawing.path != "-") {
      continue;
    }
    if (json || !to_output.empty()) {
      throw std::invalid_argument(
          fmt::format("{}: a file is needed, for {} writes to standard output", drawing.option,
                      json ? "--json" : to_output));
    }
    to_output = drawing.option;
  }
  std::vector<io::NamedPath> targets;
  for (DrawingFile const& drawing : drawings) {
    if (!drawing.path.empty() && drawing.path != "-")
      targets.push_back({drawing.option, drawing.path});
  }
  io::check_targets(targets);
  std::string text = to_output.empty() ? report() : std::string();
  std::vector<std::string> pictures;
  for (DrawingFile const& drawing : drawings) {
    pictures.push_back(drawing.path.empty() ? std::string() : drawing.draw());
  }
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    if (drawings[i].path == "-") {
      text = std::move(pictures[i]);
    } else if (!drawings[i].path.empty()) {
      write_output(drawings[i].option, drawings[i].path, pictures[i]);
    }
  }
  put(text);
}

void read_lines(std::string const& option, std::string const& path, std::size_t most,
                std::function<void(std::string_view, int, bool)> const& line) {
  auto const [file, from, what] = open_source(option, path);
  std::string text;
  std::size_t length = 0;  // of the line so far, of which text holds no more than `most`
  int number = 0;
  auto const end_line = [&] {
    bool const too_long = length > most;
    line(too_long ? std::string_view() : std::string_view(text), ++number, too_long);
    text.clear();
    length = 0;
  };
  char block[1 << 16];
  while (std::size_t const n = std::fread(block, 1, sizeof(block), from)) {
    std::string_view rest(block, n);
    while (!rest.empty()) {
      std::size_t const end = std::min(rest.find('\n'), rest.size());
      length += end;
      if (length <= most) text.append(rest.substr(0, end));
      if (end < rest.size()) end_line();
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (std::ferror(from) != 0) fail("read", what);
  if (length > 0) end_line();
}

std::string read_file(std::string const& option, std::string const& path, std::int64_t most) {
  std::error_code error;
  auto const bytes =
      std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  if (bytes > static_cast<std::uintmax_t>(most))
    throw io::io_error(fmt::format("{} {} has {}; at most {} are read", option, io::in_quotes(path),
                                   io::counted(bytes, "byte"), most));
  auto const [file, from, what] = open_source(option, path);
  std::string text;
  char block[1 << 16];
  while (std::size_t const n = std::fread(block, 1, sizeof(block), from)) {
    if (text.size() + n > static_cast<std::size_t>(most))
      throw io::io_error(fmt::format("{} {} is longer than the {} bytes that are read", option,
                                     io::in_quotes(path), most));
    text.append(block, n);
  }
  if (std::ferror(from) != 0) fail("read", what);
  return text;
}

std::string dump(nlohmann::ordered_json const& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json thread_value_json(Layout const& tv) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 22;
  if (tv.size() > kLargest) refuse("table", "at most 4194304 elements are written", tv, tv.size());
  std::vector<std::int64_t> table(static_cast<std::size_t>(tv.size()));
  for (std::size_t i = 0; i < table.size(); ++i) {
    // flat index = thread + threads * value: threads are the first mode
    table[i] = tv(static_cast<std::int64_t>(i));
  }
  return {{"layout", to_string(tv)}, {"values", tv[1].size()}, {"table", std::move(table)}};
}

}  // namespace tegula::tool
