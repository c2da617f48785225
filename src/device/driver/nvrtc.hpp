#pragma once

/// NVRTC, NVIDIA's run-time compiler for CUDA C++, found at run time.

#include <span>
#include <string>
#include <vector>

namespace tegula::device {

/// A header that a source may include by `name`.
struct CarriedHeader {
  char const *name, *text;
};
/// The library's headers, as far as kernels need them, and what NVRTC lacks of the standard
/// library's; all are in this binary. Their hash tells one set from another.
std::span<CarriedHeader const> carried_headers();
char const* carried_headers_hash();

struct NvrtcResult {
  std::string cubin, log;
};

/// The compiler of this process: TEGULA_NVRTC's, else one that is loaded already (PyTorch's), one
/// of a folder of nvrtc_folders(), or one that the dynamic linker or a toolkit has.
class Nvrtc {
 public:
  /// Throws device_error, with what to install, where there is none.
  static Nvrtc const& get();

  /// "NVRTC 13.0"
  std::string const& version() const { return version_; }
  std::string const& path() const { return path_; }

  /// Compiles a source whose includes are found among the carried headers, or by -I options. Throws
  /// device_error with the first error where it does not compile. Thread-safe.
  NvrtcResult compile(std::string const& source, std::string const& name,
                      std::vector<std::string> const& options) const;

 private:
  explicit Nvrtc(std::string path, void* library);
  struct Functions;

  std::string path_, version_;
  Functions const* functions_;
};

/// Nvrtc::get().version(), and throws as it; but NVRTC, which takes a fifth of a second to load, is
/// left alone where a process before this one has noted the version of the same file in the cache
/// of kernels.
std::string nvrtc_version();

/// Adds a folder that NVRTC is looked for in: what looks after the first use has no effect.
void add_nvrtc_folder(std::string folder);

}  // namespace tegula::device
