#pragma once

#include <cstdint>

#include "tegula/arch/shared.hpp"

/// Warp-wide matrix stores to shared memory: PTX ISA, stmatrix (sm_90). All 32 lanes execute
/// it together.
namespace tegula {

/// Stores Count 8x8 matrices of 16-bit elements; the inverse of ldmatrix (Transpose: of
/// ldmatrix_trans). Lane l gives the address (a multiple of 16 bytes) of row l % 8 of matrix l / 8;
/// the addresses of lanes from 8 * Count on are ignored. r[i] holds elements 2 * (lane % 4) and the
/// next one of row lane / 4 of matrix i; with Transpose, elements lane / 4 of rows 2 * (lane % 4)
/// and the next one.
template <int Count, bool Transpose = false>
TEGULA_DEVICE void stmatrix(SharedAddr row, std::uint32_t const (&r)[Count],
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
#if TEGULA_GPU
  if constexpr (Count == 1 && !Transpose) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(row), "r"(r[0]));
  } else if constexpr (Count == 1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row),
                 "r"(r[0]));
  } else if constexpr (Count == 2 && !Transpose) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(r[0]),
                 "r"(r[1]));
  } else if constexpr (Count == 2) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row),
                 "r"(r[0]), "r"(r[1]));
  } else if constexpr (!Transpose) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  }
#else
  sim::stmatrix(row, r, Count, Transpose ? sim::MatrixForm::transposed : sim::MatrixForm::plain,
                where);
#endif
}

/// As stmatrix, of Count matrices of 16x8 bytes, each transposed (sm_100a): their eight rows in
/// shared memory have 16 bytes. r[i] holds elements lane / 4 of rows 2 * (lane % 4) and the next
/// one, and then elements lane / 4 + 8 of these: accumulators of an mma.sync, rounded to bytes.
template <int Count>
TEGULA_DEVICE void stmatrix_trans_b8(
    SharedAddr row, std::uint32_t const (&r)[Count],
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4,
                "stmatrix_trans_b8 stores 1, 2 or 4 matrices");
#if TEGULA_GPU
  if constexpr (Count == 1) {
    asm volatile("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%0], {%1};" ::"r"(row),
                 "r"(r[0]));
  } else if constexpr (Count == 2) {
    asm volatile("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%0], {%1, %2};" ::"r"(row),
                 "r"(r[0]), "r"(r[1]));
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  }
#else
  sim::stmatrix(row, r, Count, sim::MatrixForm::bytes_transposed, where);
#endif
}

}  // namespace tegula
