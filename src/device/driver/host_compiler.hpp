#pragma once

/// The C++ compiler of this machine, which compiles kernels for the simulated GPU when they are
/// first used.

#include <string>
#include <vector>

namespace tegula::device {

class HostCompiler {
 public:
  /// TEGULA_CXX's, as the environment has it now, else the first of c++, g++ and clang++ that there
  /// is. Throws device_error, with what to install, where there is none.
  static HostCompiler get();

  /// The first line that it says of itself.
  std::string const& version() const { return version_; }

  /// The bytes of a shared library made of a source, which may include the library's headers and
  /// what lies in `include`. Throws device_error with the first error where it does not compile.
  std::string compile(std::string const& source, std::vector<std::string> const& options,
                      std::vector<std::string> const& include) const;

 private:
  HostCompiler(std::string command, std::string version)
      : command_(std::move(command)), version_(std::move(version)) {}
  std::string command_, version_;
};

}  // namespace tegula::device
