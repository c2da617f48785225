#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "isa/tma_reduction.hpp"
#include "machine/in_flight.hpp"
#include "values/box_walk.hpp"

/// Boxes on their way between global and shared memory: what the TMA unit does after the
/// instruction. Operands have been checked (tma.cpp).
namespace tegula::sim {

class Cta;
struct Allocation;

/// A box of global memory as an instruction is to move it: where its rows lie and who asked.
struct GlobalBox {
  BoxWalk box;
  Allocation* memory;  ///< holds all of it; null where no element lies in the tensor
};

/// What a store does to the bytes of global memory that it reaches: it writes them, those of each
/// 16 whose bits are set, or combines elements with them.
inline constexpr std::uint16_t kAllBytes = 0xffff;
struct Written {
  std::optional<TmaReduce> reduction = std::nullopt;
  std::uint16_t byte_mask = kAllBytes;
};

/// The row's first byte that lies in the tensor.
unsigned char* first_byte(BoxWalk const& box, TmaRow const& row);
/// "(0, 17)": the coordinate of one of its elements in the tensor.
std::string text_of(TmaRow const& row, int first_element, int rank);

/// One box on its way into the shared memory of one CTA. `again`: it was fetched for another CTA of
/// the same multicast.
std::unique_ptr<InFlight> load_in_flight(Instruction instruction, Cta const& issuer,
                                         GlobalBox const& from, SharedRange to, bool again,
                                         SourceLocation where);
/// One box on its way from shared to global memory.
std::unique_ptr<InFlight> store_in_flight(Instruction instruction, Cta const& issuer,
                                          SharedRange from, GlobalBox const& to,
                                          Written const& does, SourceLocation where);

}  // namespace tegula::sim
