#pragma once

/// Compiled kernels on disk, by what they were compiled from.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/device/kernel_compiler.hpp"

namespace tegula::device {

/// What a kernel is compiled from. Kernels of equal keys are the same. A key without an
/// architecture is that of a note.
struct KernelKey {
  std::string name = {}, arch = {}, compiler = {}, options = {}, headers = {}, source = {};
};

/// A source with the texts that it includes by quotes from these folders behind it, for a key: it
/// is another kernel where one of them changes.
std::string with_included(std::string source, std::vector<std::string> const& include);

/// The name of the variable, on the device, in which a kernel of the user's own says its form
/// (LoadedUserKernel).
inline constexpr char const* kFormName = "tegula_kernel_form";

/// The cache of the user: a file a kernel in $TEGULA_CACHE, else $XDG_CACHE_HOME/tegula, else
/// ~/.cache/tegula. Any number of processes and threads may use it: a file is written under another
/// name and renamed, holds the whole key and a checksum, and is not read where one of them differs.
class KernelCache {
 public:
  /// Of the environment; `folder` may be empty, where it names no place: nothing is kept then.
  static KernelCache of_user();
  /// The files have at most `capacity` bytes together; those last used longest ago go first.
  KernelCache(std::string folder, std::uint64_t capacity)
      : folder_(std::move(folder)), capacity_(capacity) {}

  std::string const& folder() const { return folder_; }
  std::string path(KernelKey const& key) const;

  /// Nothing where the kernel is not kept, or its file is damaged.
  std::optional<std::string> load(KernelKey const& key) const;
  /// Throws device_error where it cannot be written, with nothing half-written left behind.
  void store(KernelKey const& key, std::string_view cubin) const;
  /// The kernels that are kept and whole, by name.
  std::vector<CachedKernel> list() const;

 private:
  void make_room() const;

  std::string folder_;
  std::uint64_t capacity_;
};

}  // namespace tegula::device
