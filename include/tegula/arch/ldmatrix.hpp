#pragma once

#include <cstdint>

#include "tegula/arch/shared.hpp"

/// Warp-wide matrix loads from shared memory: PTX ISA, ldmatrix (sm_75). All 32 lanes execute
/// it together.
namespace tegula {

/// Loads Count 8x8 matrices of 16-bit elements. Lane l gives the address (a multiple of 16 bytes)
/// of row l % 8 of matrix l / 8; lanes from 8 * Count on give any valid address. r[i] receives
/// elements 2 * (lane % 4) and the next one of row lane / 4 of matrix i.
template <int Count>
TEGULA_DEVICE void ldmatrix(std::uint32_t (&r)[Count], SharedAddr row,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
#if TEGULA_GPU
  if constexpr (Count == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row));
  } else if constexpr (Count == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row));
  }
#else
  sim::ldmatrix(r, Count, /*transpose=*/false, row, where);
#endif
}

/// As ldmatrix, with each matrix transposed: r[i] receives elements lane / 4 of rows 2 * (lane % 4)
/// and the next one of matrix i.
template <int Count>
TEGULA_DEVICE void ldmatrix_trans(
    std::uint32_t (&r)[Count], SharedAddr row,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
#if TEGULA_GPU
  if constexpr (Count == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[0])
                 : "r"(row));
  } else if constexpr (Count == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row));
  }
#else
  sim::ldmatrix(r, Count, /*transpose=*/true, row, where);
#endif
}

}  // namespace tegula
