#include "atom_lookup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

constexpr std::size_t kLongestName = 100;  // of what is compared: no atom's is as long

/// The least number of insertions, removals and replacements of one character that turn `a` into
/// `b`, letter case aside.
int edit_distance(std::string_view a, std::string_view b) {
  auto const lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = static_cast<int>(j);
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i) + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      int const replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> similar_names(std::string_view name) {
  name = name.substr(0, kLongestName);
  std::vector<std::pair<int, std::string>> all;
  auto const add = [&](std::string_view candidate) {
    all.emplace_back(edit_distance(name, candidate), candidate);
  };
  any_mma([&](MmaSpec const& spec) {
    add(mma_name(spec).view());
    return false;
  });
  any_copy([&](CopySpec const& spec) {
    add(copy_name(spec).view());
    return false;
  });
  constexpr int kShown = 3;
  std::partial_sort(all.begin(), all.begin() + kShown, all.end());
  std::vector<std::string> names;
  for (int i = 0; i < kShown; ++i) {
    names.push_back(all[static_cast<std::size_t>(i)].second);
  }
  return names;
}

}  // namespace

Atom find_atom(std::string const& argument, std::string const& name) {
  if (MmaSpec spec; find_mma(name, spec)) {
    return {.mma = mma_atom(spec), .copy = {}};
  }
  if (CopySpec spec; find_copy(name, spec)) {
    if (moves_tiles(spec.op)) {
      throw std::invalid_argument(fmt::format(
          "{}: '{}' moves a whole tile that one thread asks for: it has no (thread, value) layout",
          argument, name));
    }
    return {.mma = {}, .copy = copy_atom(spec)};
  }
  throw std::invalid_argument(fmt::format(
      "{}: there is no atom {}; the most similar names are {} (`tegula atoms` lists all)", argument,
      io::in_quotes(name), fmt::join(similar_names(name), ", ")));
}

MmaAtom find_mma_atom(std::string const& argument, std::string const& name) {
  Atom const atom = find_atom(argument, name);
  if (!atom.mma) {
    throw std::invalid_argument(fmt::format(
        "{}: {} is a copy; an MMA such as SM80_16x8x16_F32F16F16F32_TN is needed (see `tegula atoms`)",
        argument, io::in_quotes(name)));
  }
  return *atom.mma;
}

CopyAtom find_copy_atom(std::string const& argument, std::string const& name) {
  Atom const atom = find_atom(argument, name);
  if (!atom.copy) {
    throw std::invalid_argument(fmt::format(
        "{}: {} is an MMA; a copy such as SM75_U32x4_LDSM_N is needed (see `tegula atoms`)",
        argument, io::in_quotes(name)));
  }
  return *atom.copy;
}

}  // namespace tegula::tool
