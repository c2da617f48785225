#pragma once

/// Entries of the tables of configurations, by indices that callers give.

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "tegula/device/error.hpp"

namespace tegula::device {

/// The entry of a table; throws argument_error for an index that it does not have.
template <class Config> Config const& entry(char const* table, std::span<Config const> configs, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= configs.size())
    throw argument_error(fmt::format("the configuration of {} is {}; it must be from 0 to {}.", table, index,
                                     configs.size() - 1));
  return configs[static_cast<std::size_t>(index)];
}

}  // namespace tegula::device
