#pragma once

/// Kernels that are compiled when they are first used, for `tegula compile`, `tegula info` and the
/// C interface.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tegula/device/kernel_compiler.hpp"

namespace tegula::tool {

/// A configuration of a family, by its number.
struct NamedKernel {
  FamilyId family;
  int configuration;
};
/// The configurations of this build that a text names: the one of that name, or all whose names
/// begin with these words ("gemm_sm90 bf16->f32"). Throws argument_error where there is none.
std::vector<NamedKernel> kernels_named(std::string const& text);

/// The architecture asked for; else that of the first GPU, or "sm_90a". Throws argument_error for a
/// text that is no architecture, which calls it `name`.
std::string arch_or_default(char const* name, std::optional<std::string> const& arch);

/// {"name", "arch", "entry", "path", "from_cache", "seconds", "registers", "spilled_bytes",
/// "bytes"}
nlohmann::ordered_json to_json(CompiledKernel const& kernel);

/// {"folder", "compiler", "kernels": [{"name", "arch", "compiler", "bytes", "path"}]}; in place of
/// "compiler" "no_compiler", a sentence, where there is none.
nlohmann::ordered_json cache_json();

}  // namespace tegula::tool
