#pragma once

namespace tegula {

/// Extents of a grid, or the coordinate of a CTA in it.
struct Dim3 {
  int x = 1;
  int y = 1;
  int z = 1;

  friend constexpr bool operator==(Dim3 const&, Dim3 const&) = default;
};

}  // namespace tegula
