#pragma once

#include <string>

namespace tegula::museum {

/// docs/museum.md: a table of the bugs and of what finds them, then a section for each. The
/// reports are those that stand in the kernels' files; at how many schedules each bug is found is
/// measured here.
std::string page();

}  // namespace tegula::museum
