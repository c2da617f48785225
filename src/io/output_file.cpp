#include "tegula/io/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "tegula/io/text.hpp"

namespace tegula::io {
namespace {

/// Where a path leads.
struct Place {
  std::string path;  ///< without symbolic links; of what is written through as it was given
  bool through = false;
  std::optional<struct stat> file;  ///< of a regular file that exists
};

std::string folder_of(std::string const& path) {
  auto const slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
std::string name_of(std::string const& path) { return path.substr(path.rfind('/') + 1); }

std::string cannot(std::string const& path, int error) {
  return fmt::format("{}: cannot be opened for writing: {}.", printable(path),
                     std::strerror(error));
}

bool system_folder(std::string const& path) {
  return path.starts_with("/proc/") || path.starts_with("/dev/");
}

std::string read_link(std::string const& path) {
  char target[PATH_MAX];
  ssize_t const length = readlink(path.c_str(), target, sizeof target);
  if (length < 0) throw io_error(cannot(path, errno));
  return {target, static_cast<std::size_t>(length)};
}

/// Where a folder is sticky, as /tmp, only the owner of a file or of the folder may replace it.
bool replaceable(std::string const& path, struct stat const& file) {
  struct stat folder = {};
  if (stat(folder_of(path).c_str(), &folder) != 0 || (folder.st_mode & S_ISVTX) == 0) return true;
  uid_t const user = geteuid();
  return user == 0 || user == file.st_uid || user == folder.st_uid;
}

/// Follows symbolic links, so that they stay where they are, and checks that the place can
/// be written.
Place find_place(std::string const& given) {
  std::string path = given;
  constexpr int kMostLinks = 40;
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat status = {};
    bool const exists = lstat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) throw io_error(cannot(given, errno));
    if (exists && S_ISLNK(status.st_mode)) {
      std::string const target = read_link(path);
      if (system_folder(path) || system_folder(target)) return {given, true, {}};
      path = target.starts_with('/') ? target : folder_of(path) + "/" + target;
      continue;
    }
    if (exists && S_ISDIR(status.st_mode)) throw io_error(cannot(given, EISDIR));
    if (exists && access(path.c_str(), W_OK) != 0) throw io_error(cannot(given, errno));
    if (exists && !S_ISREG(status.st_mode)) return {given, true, {}};
    if (exists && !replaceable(path, status)) throw io_error(cannot(given, EPERM));
    if (name_of(path).empty() || access(folder_of(path).c_str(), W_OK | X_OK) != 0)
      throw io_error(cannot(given, name_of(path).empty() ? ENOENT : errno));
    if (exists) return {path, false, status};
    return {path, false, {}};
  }
  throw io_error(cannot(given, ELOOP));
}

/// Names the file that a path leads to, whatever the way there; the folder and the name of one that
/// is not there yet. Empty for what is written through.
using Identity = std::tuple<dev_t, ino_t, std::string>;
std::optional<Identity> identity(Place const& place) {
  if (place.through) return std::nullopt;
  if (place.file) return Identity(place.file->st_dev, place.file->st_ino, "");
  struct stat folder = {};
  if (stat(folder_of(place.path).c_str(), &folder) != 0) return std::nullopt;
  return Identity(folder.st_dev, folder.st_ino, name_of(place.path));
}

/// A short name in the folder, which nobody else uses.
std::string temporary_name(std::string const& target) {
  static std::atomic<int> number = 0;
  return fmt::format("{}/.tegula-{}-{}.tmp", folder_of(target), getpid(), number++);
}

}  // namespace

void OutputFile::fail(std::string_view what, int error) const {
  throw io_error(fmt::format("{}: {} failed: {}.", printable(path_), what, std::strerror(error)));
}

OutputFile::OutputFile(std::string const& path) : path_(path) {
  Place const place = find_place(path);
  target_ = place.path;
  through_ = place.through;
  if (through_) {
    open_through();
  } else {
    open_temporary();
  }
  if (place.file) {
    // The owner too, where that is allowed; a failure leaves a file of the caller's own.
    [[maybe_unused]] int const ignored =
        fchown(descriptor_, place.file->st_uid, place.file->st_gid);
    fchmod(descriptor_, place.file->st_mode & 07777);
  }
}

void OutputFile::open_temporary() {
  constexpr mode_t kMode = 0666;
  if (access("/proc/self/fd", X_OK) == 0) {
    descriptor_ = open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
    if (descriptor_ >= 0) return;
  }
  do {
    temporary_ = temporary_name(target_);
    descriptor_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ >= 0) return;
  int const error = errno;
  temporary_.clear();
  throw io_error(cannot(path_, error));
}

void OutputFile::open_through() {
  // A pipe without a reader is waited for a while: it may be about to be opened.
  constexpr std::chrono::seconds kPatience(5);
  auto const until = std::chrono::steady_clock::now() + kPatience;
  do {
    descriptor_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor_ >= 0 || errno != ENXIO) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (std::chrono::steady_clock::now() < until);
  struct stat status = {};
  int const error = errno;
  if (descriptor_ < 0 && error == ENXIO && stat(target_.c_str(), &status) == 0 &&
      S_ISFIFO(status.st_mode))
    throw io_error(fmt::format(
        "{}: cannot be opened for writing: it is a pipe that nobody reads from; a reader must open it within {} "
        "seconds.",
        printable(path_), kPatience.count()));
  if (descriptor_ < 0) throw io_error(cannot(path_, error));
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(std::span<std::byte const> bytes) {
  while (!bytes.empty()) {
    ssize_t const written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("writing", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::commit() {
  if (!through_ && temporary_.empty()) {
    std::string const own = fmt::format("/proc/self/fd/{}", descriptor_);
    std::string name;
    do {
      name = temporary_name(target_);
      if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
        temporary_ = name;
    } while (temporary_.empty() && errno == EEXIST);
    if (temporary_.empty()) fail("writing", errno);
  }
  int const closed = close(std::exchange(descriptor_, -1));
  if (closed != 0) fail("writing", errno);
  if (through_) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("writing", errno);
  temporary_.clear();
}

void write_file(std::string const& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void check_targets(std::vector<NamedPath> const& targets, std::vector<NamedPath> const& inputs) {
  struct Known {
    NamedPath const* path;
    Identity identity;
    bool read;
  };
  std::vector<Known> known;
  for (NamedPath const& input : inputs) {
    struct stat status = {};
    if (stat(input.path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      known.push_back({&input, {status.st_dev, status.st_ino, ""}, true});
  }
  for (NamedPath const& target : targets) {
    std::optional<Identity> file;
    try {
      file = identity(find_place(target.path));
    } catch (io_error const& error) {
      throw io_error(fmt::format("{} {}", target.option, error.what()));
    }
    if (!file) continue;
    for (Known const& other : known) {
      if (other.identity != *file) continue;
      throw io_error(fmt::format("{} {}: is the file that {} {}; each needs a file of its own.",
                                 target.option, printable(target.path), other.path->option,
                                 other.read ? "reads" : "writes"));
    }
    known.push_back({&target, *file, false});
  }
}

}  // namespace tegula::io
