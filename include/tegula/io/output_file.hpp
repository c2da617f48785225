#pragma once

/// The one way in which files are written: whole or not at all.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/io/array.hpp"

namespace tegula::io {

/// A file that is being written. Where the target is a regular file, or does not exist, everything
/// goes to a temporary in the same folder, without a name where the file system has such, which
/// commit() puts in the target's place: a process that fails or dies before leaves the target as it
/// was. A file that is replaced keeps its mode, and a symbolic link its place. Devices, pipes and
/// what lies under /proc and /dev are written through. Not synchronised with the disk: a power
/// failure is another matter.
class OutputFile {
 public:
  /// Throws io_error where the target cannot be written: a folder, no permission, no such folder, a
  /// pipe that nobody reads from within five seconds.
  explicit OutputFile(std::string const& path);
  ~OutputFile();
  OutputFile(OutputFile const&) = delete;
  OutputFile& operator=(OutputFile const&) = delete;

  /// Throw io_error, as for a full disk.
  void write(std::span<std::byte const> bytes);
  void write(std::string_view text);
  /// Makes what was written the file. Nothing may follow.
  void commit();

 private:
  void open_temporary();
  void open_through();
  [[noreturn]] void fail(std::string_view what, int error) const;

  std::string path_;       // as the caller wrote it
  std::string target_;     // without symbolic links
  std::string temporary_;  // empty: none, or none with a name
  int descriptor_ = -1;
  bool through_ = false;
};

/// The whole of a file, by OutputFile.
void write_file(std::string const& path, std::string_view text);

/// A path and what asked for it: "--output", "x.npy".
struct NamedPath {
  std::string option, path;
};

/// Refuses, before any work, targets that cannot be written, two that are the same file, and one
/// that is also read. Throws io_error whose sentence begins with the option. Writes nothing.
void check_targets(std::vector<NamedPath> const& targets,
                   std::vector<NamedPath> const& inputs = {});

}  // namespace tegula::io
