#pragma once

#include <cstdint>
#include <string>

#include "tegula/arch/source_location.hpp"

namespace tegula::sim {

/// Whether two instructions stand on the same line: file names are compared as pointers first,
/// since one kernel is compiled in one file.
bool same_place(SourceLocation const& a, SourceLocation const& b);
/// "kernel/attention_sm80.hpp:88": a source line, by its file's last folder and name.
std::string place_text(SourceLocation const& where);
/// "lane 3", "lanes 0-15, 17".
std::string lanes_text(std::uint32_t lanes);
/// "warp 3", "warps 0-2".
std::string warps_text(std::uint32_t warps);

}  // namespace tegula::sim
