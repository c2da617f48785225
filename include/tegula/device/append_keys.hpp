#pragma once

/// What attention does first where new keys are given: they are appended to the cache.

#include <string>

#include "tegula/device/arguments.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/stream.hpp"

namespace tegula {

/// Of these, what says where K and V and their new rows lie; O and queries do not count.
struct AppendKeysArguments {
  AttentionArguments attention;
};

std::string to_string(AppendKeysArguments const& arguments);

struct AppendKeysChoice {
  FamilyId kernel = append_keys;
  int configuration = 0;
};

}  // namespace tegula
