#pragma once

#include <cstdint>
#include <vector>

#include "isa/shared_operand.hpp"
#include "machine/cta.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/sim/arithmetic.hpp"

/// What the families of instructions on tensor memory share.
namespace tegula::sim {

/// Columns of tensor memory that a row of A takes: 32 bytes.
inline constexpr int kColumnsOfA = kWgmmaRowBytes / 4;

/// Ends the cluster where its generation has no tensor memory.
void check_tcgen05(Cta& cta, Instruction instruction, SourceLocation where);
/// Likewise for an instruction that has a .cta_group, where there is no pair of CTAs, or others of
/// the kernel have another group.
void check_tcgen05(Cta& cta, Instruction instruction, int ctas, SourceLocation where);
/// What to say of bits of an instruction descriptor that the machine has not, where they ask for
/// sparsity.
char const* sparsity_text(std::uint32_t unknown);
/// The CTAs that compute an instruction: the one that starts it, or its pair.
std::vector<Cta*> computing(Cta& cta, int ctas);
/// Reports a pair of which a CTA has exited: what the instruction touches is in both.
bool check_pair(Cta& cta, Instruction instruction, int ctas, SourceLocation where);
/// Reports columns that are not allocated as a whole; false where they must not be touched.
bool check_tensor_columns(Cta& cta, Instruction instruction, TensorAddr address, int columns,
                          SourceLocation where);
/// The same in each of the CTAs that compute an instruction.
bool check_tensor_columns(Cta& cta, Instruction instruction, int ctas, TensorAddr address,
                          int columns, SourceLocation where);
/// Reads the matrix descriptor of `name` in tcgen05's form into `operand`; false, after a finding,
/// where the operand must not be read. `ctas`: that read such an operand each, at the same place.
bool check_matrix(Cta& cta, Instruction instruction, char const* name, std::uint64_t bits,
                  SharedOperand& operand, SourceLocation where, int ctas = 1);
/// A product, of a CTA's rows of A (buffer 0), or of B (buffers 1 to 4), keeps its operand in a
/// collector buffer of that CTA, or holds it against what that has: which of the two is multiplied
/// is not said.
void use_collector(Cta& of, InFlight const& product, Collector collector, int buffer,
                   std::uint8_t const (*rows)[kWgmmaRowBytes], int count);
/// Of a pair with m 128 lanes 64 to 127, which have the upper columns of D, read a copy of A of
/// their own: reports one that differs, in a CTA.
void check_copies_of_a(Cta& of, InFlight const& product, TensorAddr a);
/// The latest tcgen05.ld in flight that is to write the register of a lane; null where there is
/// none.
InFlight* being_loaded(Warp const& warp, int lane, void const* place);
/// Registers of a lane, from an address on, may change from now on though a tcgen05.ld in flight
/// loads them: it is known of, or another operation does.
void leave_registers(Warp& warp, int lane, void const* first, int bytes);

}  // namespace tegula::sim
