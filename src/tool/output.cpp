#include "output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(char const* doing, std::string const& path) {
  throw std::runtime_error(fmt::format("cannot {} '{}': {}", doing, path, std::strerror(errno)));
}

}  // namespace

void write_file(std::string const& path, std::string_view text) {
  std::string const temporary = fmt::format("{}.{}.tmp", path, getpid());
  File file(std::fopen(temporary.c_str(), "wb"));
  if (!file) {
    fail("write", path);
  }
  bool const written =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0;
  int const error = errno;
  file.reset();
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) {
    errno = written ? errno : error;
    int const reason = errno;
    std::remove(temporary.c_str());
    errno = reason;
    fail("write", path);
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
      throw std::invalid_argument(fmt::format("{}: a file is needed, for {} writes to standard output",
                                              drawing.option, json ? "--json" : to_output));
    }
    to_output = drawing.option;
  }
  std::string text = to_output.empty() ? report() : std::string();
  std::vector<std::string> pictures;
  for (DrawingFile const& drawing : drawings) {
    pictures.push_back(drawing.path.empty() ? std::string() : drawing.draw());
  }
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    if (drawings[i].path == "-") {
      text = std::move(pictures[i]);
    } else if (!drawings[i].path.empty()) {
      write_file(drawings[i].path, pictures[i]);
    }
  }
  fmt::print("{}", text);
}

void add_drawing_option(CLI::App& command, std::string const& name, std::string& path,
                        std::string const& description) {
  command.add_option(name, path, description)->expected(0, 1)->default_str("-")->option_text("[FILE]");
}

std::string read_file(std::string const& path) {
  bool const standard_input = path == "-";
  File file(standard_input ? nullptr : std::fopen(path.c_str(), "rb"));
  if (!standard_input && !file) {
    fail("read", path);
  }
  std::FILE* const from = standard_input ? stdin : file.get();
  std::string text;
  char block[1 << 16];
  while (std::size_t const n = std::fread(block, 1, sizeof(block), from)) {
    text.append(block, n);
  }
  if (std::ferror(from) != 0) {
    fail("read", path);
  }
  return text;
}

std::string dump(nlohmann::ordered_json const& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json thread_value_json(Layout const& tv) {
  std::vector<std::int64_t> table(static_cast<std::size_t>(tv.size()));
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = tv(
        static_cast<std::int64_t>(i));  // flat index = thread + threads * value: threads are the first mode
  }
  return {{"layout", to_string(tv)}, {"values", tv[1].size()}, {"table", std::move(table)}};
}

}  // namespace tegula::tool
