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
  sim::ldmatrix(r, Count, sim::MatrixForm::plain, row, where);
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
  sim::ldmatrix(r, Count, sim::MatrixForm::transposed, row, where);
#endif
}

/// As ldmatrix, of Count / 2 matrices of 16x16 bytes, each transposed (sm_100a). Lane l gives the
/// address of row l % 16 of matrix l / 16; with one matrix lanes from 16 on give any valid address.
/// r[2 i] receives elements lane / 4 of rows 4 * (lane % 4) to the third after it of matrix i, the
/// first lowest; r[2 i + 1] elements lane / 4 + 8. So two matrices along k are A of an m16n8k32
/// that is contiguous along m.
template <int Count>
TEGULA_DEVICE void ldmatrix_trans_b8(
    std::uint32_t (&r)[Count], SharedAddr row,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Count == 2 || Count == 4,
                "ldmatrix_trans_b8 loads 1 or 2 matrices, of 2 registers each");
#if TEGULA_GPU
  if constexpr (Count == 2) {
    asm volatile("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row));
  } else {
    asm volatile("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row));
  }
#else
  sim::ldmatrix(r, Count, sim::MatrixForm::bytes_transposed, row, where);
#endif
}

}  // namespace tegula
