#pragma once

#include <optional>
#include <string>

#include "tegula/atom/catalogue.hpp"

namespace tegula::tool {

/// An instruction of the catalogue: exactly one of the two.
struct Atom {
  std::optional<MmaAtom> mma;
  std::optional<CopyAtom> copy;
};

/// The instruction called `name`, given by the user as argument `argument`. Throws
/// std::invalid_argument with the most similar names if there is none, and where a copy of whole
/// tiles has no layouts to show.
Atom find_atom(std::string const& argument, std::string const& name);

/// The same, refused where it is not an MMA, or not a copy.
MmaAtom find_mma_atom(std::string const& argument, std::string const& name);
CopyAtom find_copy_atom(std::string const& argument, std::string const& name);

}  // namespace tegula::tool
