#pragma once

/// The members of a kernel's parameters, as the compiler that compiles the kernel has them.

#include <optional>
#include <string>
#include <vector>

#include "host_kernel.hpp"
#include "tegula/device/user_kernel.hpp"

namespace tegula::device {

/// What errors of the text below name as their file.
inline constexpr char const* kMembersFile = "the members of Params";

/// A text that stands behind the one that defines the kernel `type`, and exports what
/// params_members asks for. It does not compile where Params have a union without a name.
std::string params_members_text(std::string const& type);

/// Nothing where they are not known: of a kernel without that text, and of Params that are no
/// aggregate, or have a base, bit-fields, references or more than 64 members.
std::optional<std::vector<ParamsMember>> params_members(HostKernel const& kernel);

}  // namespace tegula::device
