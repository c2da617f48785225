#pragma once

#include <cstdint>
#include <string>

#include "tegula/arch/where.hpp"

namespace tegula::sim {

/// "kernel/attention_sm80.hpp:88": a source line, by its file's last folder and name.
std::string place_text(Where const& where);
/// "lane 3", "lanes 0-15, 17".
std::string lanes_text(std::uint32_t lanes);
/// "warp 3", "warps 0-2".
std::string warps_text(std::uint32_t warps);

}  // namespace tegula::sim
