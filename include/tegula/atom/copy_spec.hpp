#pragma once

#include <cstdint>

#include "tegula/layout/refuse.hpp"

/// The one name of a copy instruction: a small value that copies are made from, and that atom/
/// makes (thread, value) layouts of.
namespace tegula {

enum class CopyOp : std::uint8_t {
  ldmatrix,
  ldmatrix_trans,
  stmatrix,
  stmatrix_trans,
  cp_async_ca,
  cp_async_ca_zfill,
  cp_async_cg,
  cp_async_cg_zfill,
  universal,  // a plain load and store
  // as wide as layouts and the stated alignment allow: one value at a time until then
  auto_vectorizing,
  // One thread asks for a whole tile: a tensor map's box, or a run of bytes.
  tma_load,
  tma_multicast,
  tma_store,
  tma_reduce,
  bulk_load,
  bulk_store
};

inline constexpr int kCopyOps = static_cast<int>(CopyOp::bulk_store) + 1;

constexpr char const* to_string(CopyOp op) {
  constexpr char const* kNames[kCopyOps] = {
      "ldmatrix",    "ldmatrix_trans",    "stmatrix",    "stmatrix_trans",
      "cp_async_ca", "cp_async_ca_zfill", "cp_async_cg", "cp_async_cg_zfill",
      "universal",   "auto_vectorizing",  "tma_load",    "tma_multicast",
      "tma_store",   "tma_reduce",        "bulk_load",   "bulk_store"};
  return kNames[static_cast<int>(op)];
}

/// Whether threads move 8x8 matrices of 16-bit elements together: ldmatrix, stmatrix.
constexpr bool moves_matrices(CopyOp op) { return op <= CopyOp::stmatrix_trans; }
/// Whether one thread asks for a whole tile, which the hardware moves on its own: TMA and
/// bulk copies.
constexpr bool moves_tiles(CopyOp op) { return op >= CopyOp::tma_load; }

/// One copy instruction. `amount` is a count of 8x8 matrices of 16-bit elements for the matrix
/// instructions (1, 2, 4), and a number of bits for the others: those that one thread moves, or
/// those of the tile. A value, meant as a template argument.
struct CopySpec {
  CopyOp op{};
  int amount = 0;

  friend constexpr bool operator==(CopySpec const&, CopySpec const&) = default;
};

/// Refuses an amount that the instruction does not move; true for all others.
constexpr bool check(CopySpec const& s) {
  bool const power_of_two = s.amount > 0 && (s.amount & (s.amount - 1)) == 0;
  if (moves_matrices(s.op)) {
    if (!power_of_two || s.amount > 4)
      refuse("copy", "ldmatrix and stmatrix move 1, 2 or 4 matrices", to_string(s.op), s.amount);
  } else if (moves_tiles(s.op)) {
    if (s.amount <= 0 || s.amount % 128 != 0)
      refuse("copy", "one thread asks for a whole tile: the amount is its bits, a multiple of 128",
             to_string(s.op), s.amount);
  } else if (s.op == CopyOp::cp_async_cg || s.op == CopyOp::cp_async_cg_zfill) {
    if (s.amount != 128) refuse("copy", "cp.async.cg moves 128 bits", to_string(s.op), s.amount);
  } else if (s.op == CopyOp::cp_async_ca || s.op == CopyOp::cp_async_ca_zfill) {
    if (s.amount != 32 && s.amount != 64 && s.amount != 128)
      refuse("copy", "cp.async.ca moves 32, 64 or 128 bits", to_string(s.op), s.amount);
  } else if (!power_of_two || s.amount < 8 || s.amount > 128) {
    refuse("copy", "a plain copy moves 8, 16, 32, 64 or 128 bits", to_string(s.op), s.amount);
  }
  return true;
}

}  // namespace tegula
