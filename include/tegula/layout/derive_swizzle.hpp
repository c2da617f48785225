#pragma once

#include <cstdint>

#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/linear_layout.hpp"

namespace tegula {

namespace detail {

/// Accesses to one tile, for the search below.
struct AccessList {
  SharedAccess const* accesses;
  int count;
};

/// The offsets that the lanes of one access's first instruction have before any swizzle.
struct FirstInstruction {
  int lanes = 0;
  std::int64_t offsets[32] = {};
};

constexpr FirstInstruction first_instruction(SharedAccess const& access, Layout const& tile) {
  FirstInstruction first{.lanes = access_shape(access).lanes};
  for (int lane = 0; lane < first.lanes; ++lane)
    first.offsets[lane] = tile(access.threads_values(lane));
  return first;
}

/// Whether the first instruction alone is free of conflicts under a swizzle: a cheap test that most
/// candidates fail.
constexpr bool conflict_free(SharedAccess const& access, FirstInstruction const& first,
                             Swizzle const& swizzle) {
  std::int64_t addresses[32] = {};
  for (int lane = 0; lane < first.lanes; ++lane)
    addresses[lane] = multiply(swizzle(first.offsets[lane]), access.element_bits) / 8;
  int const phase = lanes_per_phase(access.bytes);
  return wavefronts(addresses, first.lanes, access.bytes) == (first.lanes + phase - 1) / phase;
}

constexpr bool conflict_free(AccessList list, SwizzledLayout const& memory) {
  for (int i = 0; i < list.count; ++i) {
    if (bank_conflicts(list.accesses[i], memory) != 0) return false;
  }
  return true;
}

/// The bits of an offset that a swizzle may change for these accesses: from the widest vector up.
constexpr int lowest_base(AccessList list) {
  int base = 0;
  for (int i = 0; i < list.count; ++i) {
    while (1 << base < list.accesses[i].vector()) ++base;
  }
  return base;
}

/// The first swizzle, in the order that derive_swizzle states, that makes the list conflict-free,
/// if there is one.
struct FoundSwizzle {
  bool found = false;
  Swizzle swizzle;
};

constexpr FoundSwizzle find_swizzle(AccessList list, Layout const& tile) {
  if (conflict_free(list, tile)) return {true, Swizzle()};
  constexpr int kMost = 16;
  if (list.count > kMost) refuse("derive_swizzle", "at most 16 accesses at once", list.count);
  FirstInstruction first[kMost];
  for (int i = 0; i < list.count; ++i) first[i] = first_instruction(list.accesses[i], tile);
  int const lowest = lowest_base(list);
  std::int64_t const room = tile.cosize();
  int const bits_of_room = bit_count_to_hold(static_cast<std::uint64_t>(room - 1));
  int const top = bits_of_room < 62 ? bits_of_room : 62;  // what a Swizzle can reach
  for (int bits = 1; bits <= 5; ++bits) {
    for (int base = lowest; base + 2 * bits <= top; ++base) {
      for (int distance = bits; base + bits + distance <= top; ++distance) {
        for (int shift = distance; shift >= -distance; shift -= 2 * distance) {
          Swizzle const swizzle(bits, base, shift);
          bool possible = room % swizzle.block() == 0;
          for (int i = 0; i < list.count && possible; ++i)
            possible = conflict_free(list.accesses[i], first[i], swizzle);
          if (possible && conflict_free(list, SwizzledLayout(swizzle, tile)))
            return {true, swizzle};
        }
      }
    }
  }
  return {};
}

}  // namespace detail

/// The smallest swizzle under which every one of the accesses to the tile is free of bank
/// conflicts: fewest bits first, then lowest base, then least |shift|, a positive shift before a
/// negative one. The identity where none is needed. It keeps every lane's vector contiguous (base
/// at least the widest vector's) and every offset inside the tile's cosize.
///
/// Refused where there is none: names the access (by its place, from 0) that no swizzle can serve
/// even alone, or says that each could be served but not all at once.
constexpr Swizzle derive_swizzle(SharedAccess const* accesses, int count, Layout const& tile) {
  detail::FoundSwizzle const all = detail::find_swizzle({accesses, count}, tile);
  if (all.found) return all.swizzle;
  for (int i = 0; i < count; ++i) {
    if (!detail::find_swizzle({accesses + i, 1}, tile).found) {
      refuse("derive_swizzle", "no swizzle makes this access conflict-free", i,
             accesses[i].threads_values, tile);
    }
  }
  refuse("derive_swizzle", "each access has a swizzle of its own, but no single one serves all",
         tile);
}

template <int N>
constexpr Swizzle derive_swizzle(SharedAccess const (&accesses)[N], Layout const& tile) {
  return derive_swizzle(accesses, N, tile);
}
constexpr Swizzle derive_swizzle(SharedAccess const& access, Layout const& tile) {
  return derive_swizzle(&access, 1, tile);
}

}  // namespace tegula
