#include "host_compiler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "first_error.hpp"
#include "nvrtc.hpp"
#include "tegula/device/error.hpp"
#include "tegula/io/text.hpp"

extern char** environ;

namespace tegula::device {
namespace {

namespace fs = std::filesystem;

/// A folder of its own, which is removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    fs::path const base = fs::temp_directory_path(error);
    if (error)  // of what TMPDIR says, since /tmp is there
      throw device_error(fmt::format(
          "TMPDIR is {}, in which a kernel is to be compiled; it must be a folder that can be "
          "written.",
          io::in_quotes(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "")));
    std::string name = (base / "tegula-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw device_error(fmt::format(
          "no folder can be made in {} to compile a kernel in; set TMPDIR to one that can be "
          "written.",
          base.string()));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;

  fs::path const& path() const { return path_; }

 private:
  fs::path path_;
};

void write(fs::path const& path, std::string_view text) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  std::ofstream stream(path, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream)
    throw device_error(
        fmt::format("{} cannot be written to compile a kernel; set TMPDIR to a folder with room.",
                    path.string()));
}

std::string read(fs::path const& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Runs a command, what it prints in `log`; its exit status, or nothing where there is no such
/// command.
std::optional<int> run(std::vector<std::string> const& words, fs::path const& log) {
  std::vector<char*> arguments;
  for (std::string const& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int const spawned =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return {};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

HostCompiler HostCompiler::get() {
  char const* const chosen = std::getenv("TEGULA_CXX");
  // What was asked what it is need not be asked again.
  static std::mutex mutex;
  static std::map<std::optional<std::string>, HostCompiler> known;
  std::optional<std::string> const key =
      chosen != nullptr ? std::optional<std::string>(chosen) : std::nullopt;
  {
    std::scoped_lock const lock(mutex);
    if (auto const found = known.find(key); found != known.end()) return found->second;
  }
  TemporaryFolder const folder;
  fs::path const log = folder.path() / "log";
  std::vector<std::string> const commands =
      key ? std::vector<std::string>{*key} : std::vector<std::string>{"c++", "g++", "clang++"};
  for (std::string const& command : commands) {
    if (run({command, "--version"}, log) != 0) continue;
    std::string const said = read(log);
    HostCompiler const compiler(command, said.substr(0, said.find('\n')));
    std::scoped_lock const lock(mutex);
    return known.emplace(key, compiler).first->second;
  }
  throw device_error(
      key ? fmt::format("TEGULA_CXX is {}, which cannot be run; it must be a C++20 compiler.",
                        key->empty() ? "empty" : *key)
          : "There is no C++ compiler, which compiles a kernel of one's own, or one that this "
            "build lacks, for the simulated machine; install g++, or set TEGULA_CXX to the path "
            "of a C++20 compiler.");
}

std::string HostCompiler::compile(std::string const& source,
                                  std::vector<std::string> const& options,
                                  std::vector<std::string> const& include) const {
  TemporaryFolder const folder;
  fs::path const headers = folder.path() / "include", unit = folder.path() / "kernel.cpp",
                 library = folder.path() / "kernel.so", log = folder.path() / "log";
  for (auto const& [name, text] : carried_headers())
    if (std::string_view(name).starts_with("tegula/")) write(headers / name, text);
  write(unit, source);
  std::vector<std::string> words = {command_};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("-I" + headers.string());
  for (std::string const& path : include) words.push_back("-I" + path);
  words.insert(words.end(), {unit.string(), "-o", library.string()});
  if (run(words, log) != 0)
    throw device_error(
        fmt::format("{} did not compile the kernel: {}", version_, first_error(read(log))));
  std::string code = read(library);
  if (!code.starts_with("\177ELF"))
    throw device_error(fmt::format(
        "{} was run to compile a kernel and wrote no shared library; TEGULA_CXX must be a C++20 "
        "compiler.",
        command_));
  return code;
}

}  // namespace tegula::device
