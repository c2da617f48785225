#pragma once

#include "tegula/kernel/append_keys_config.hpp"
#include "tegula/kernel/table.hpp"

/// The configurations of append_keys.
namespace tegula {

template <AppendKeysConfig C> struct AppendKeys;

/// kernel/append_keys.hpp
struct AppendKeysFamily {
  static constexpr char const* name = "append_keys";
  using Config = AppendKeysConfig;
  using Params = AppendKeysParams;
  template <Config C> using Kernel = AppendKeys<C>;
  static constexpr detail::Table<AppendKeysConfig, 2> table = {{{}, {.quantises = true}}};

  static constexpr bool is_representative(Config const&) { return true; }
};

}  // namespace tegula
