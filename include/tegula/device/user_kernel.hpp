#pragma once

/// A kernel of the user's own: a struct written with the library, compiled on the machine that asks
/// for it, for a GPU by NVRTC and for the simulated machine by the host's compiler, and kept on
/// disk.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/stream.hpp"
#include "tegula/sim/report.hpp"

namespace tegula {

/// The text that defines the struct `type`.
struct KernelSource {
  std::string text;
  std::string type;
  std::string file;                       ///< what findings and errors call the text
  std::vector<std::string> include = {};  ///< folders that its own includes are looked for in
};

/// What a member of a kernel's Params is: `other` is a class that is no plain struct, or has one
/// member alone, as the number formats have.
enum class MemberKind { pointer, boolean, integer, floating, other };

/// A member of a kernel's Params. Members of a struct in them, and up to 64 elements of an array,
/// are each one of their own.
struct ParamsMember {
  std::size_t offset, bytes;
  MemberKind kind;
};

class UserKernel {
 public:
  /// Compiles it, or finds it in the cache, and loads it. Throws device_error where there is no
  /// compiler, or with the compiler's first error.
  UserKernel(Machine const& machine, KernelSource const& source);

  int threads() const { return threads_; }                    ///< of a CTA
  std::size_t shared_bytes() const { return shared_bytes_; }  ///< of a CTA
  std::size_t params_bytes() const { return params_bytes_; }
  /// Of its Params, in order. Nothing where they are not known: on a GPU, and of Params that are no
  /// aggregate, or have a base, bit-fields, references, a union without a name, or more than 64
  /// members.
  std::optional<std::vector<ParamsMember>> const& members() const { return members_; }

  /// Launches it. `params` points to its Params. On a simulated machine it is done when this
  /// returns its report; findings are thrown (sim::CheckError). Throws device_error where the
  /// launch fails, std::invalid_argument for a grid that there cannot be.
  std::optional<sim::Report> operator()(Dim3 grid, void const* params, Stream stream = {}) const;

 private:
  friend struct UserKernelLoader;
  int threads_ = 0;
  std::size_t shared_bytes_ = 0, params_bytes_ = 0;
  std::optional<std::vector<ParamsMember>> members_;
  std::function<std::optional<sim::Report>(Dim3, void const*, Stream)> launch_;
};

}  // namespace tegula
