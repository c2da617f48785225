#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/cta.hpp"
#include "tegula/arch/wgmma_descriptor.hpp"
#include "tegula/sim/arithmetic.hpp"

/// Operands of the tensor cores in shared memory, by their matrix descriptors: wgmma's, and
/// tcgen05.mma's in the same terms.
namespace tegula::sim {

/// One operand of 32 bytes along k, as its descriptor, in wgmma's form, says; or what a tcgen05.cp
/// reads, whose rows may be 16 bytes long.
struct SharedOperand {
  std::uint64_t bits = 0;
  bool mn_major = false;
  int extent = 0;  ///< m or n
  int element_bytes = 0;
  int row_bytes = kWgmmaRowBytes;  ///< along k

  int rows() const { return mn_major ? row_bytes / element_bytes : extent; }
  int pieces() const { return (mn_major ? extent * element_bytes : row_bytes) / 16; }
};

/// Where the 16-byte pieces of an operand lie, rows first, from a start address of 0 and before the
/// swizzle.
std::vector<std::uint32_t> const& piece_offsets(SharedOperand const& operand);

/// Calls f(row, piece, address) for each 16 bytes of the operand.
template <class F> void for_each_piece(SharedOperand const& operand, F&& f) {
  WgmmaDescriptor const descriptor = decode_wgmma_descriptor(operand.bits);
  std::uint32_t const start = wgmma_start_address(operand.bits);
  std::uint32_t const* offset = piece_offsets(operand).data();
  int const rows = operand.rows();
  int const pieces = operand.pieces();
  for (int row = 0; row < rows; ++row) {
    for (int piece = 0; piece < pieces; ++piece)
      f(row, piece, wgmma_swizzle(descriptor, start + *offset++));
  }
}

/// Appends the operand's bytes, neighbouring pieces as one range.
void append_ranges(SharedOperand const& operand, int cta, std::vector<SharedRange>& ranges);

/// The operand as rows of 32 bytes along k.
void gather(SharedOperand const& operand, SharedMemory& shared,
            std::uint8_t (*rows)[kWgmmaRowBytes]);

/// "the matrix descriptor of A, 0x...: why".
void report_descriptor(Cta& cta, FindingKind kind, char const* name, std::uint64_t bits,
                       std::string const& why, SourceLocation where);
/// Reports an operand that the hardware does not take, whose descriptor's bits are `shown`; false
/// where it must not be read.
bool check_operand(Cta& cta, char const* name, SharedOperand const& operand, std::uint64_t shown,
                   SourceLocation where);
/// Holds an operand against the tensor loads that brought it: they must have swizzled it as its
/// descriptor says.
void check_swizzle(Cta& cta, Instruction instruction, SharedOperand const& operand,
                   SourceLocation where);

}  // namespace tegula::sim
