#pragma once

#include <cstdint>

#include "tegula/arch/scope.hpp"

namespace tegula::sim {

/// Of a strong access, what it takes for it to meet another one: PTX ISA, "Morally strong
/// operations".
struct Strength {
  Scope scope = Scope::gpu;
  int bytes = 0;  ///< of one element
  bool operator==(Strength const&) const = default;
};

/// How far apart two threads are.
enum class Apart : std::uint8_t { in_cta, in_cluster, beyond };

/// Whether an access of the scope reaches threads so far apart.
constexpr bool reaches(Scope scope, Apart apart) {
  return apart == Apart::in_cta || scope == Scope::gpu || scope == Scope::sys ||
         (apart == Apart::in_cluster && scope == Scope::cluster);
}

/// Whether two strong accesses of threads so far apart do not race whatever their order: the scopes
/// of both include both threads, and they are of the same bytes, as they are where aligned ones of
/// one size overlap.
constexpr bool morally_strong(Strength one, Strength other, Apart apart) {
  return one.bytes == other.bytes && reaches(one.scope, apart) && reaches(other.scope, apart);
}

}  // namespace tegula::sim
