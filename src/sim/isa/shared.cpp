#include <fmt/format.h>

#include <cstring>
#include <string>

#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "tegula/io/text.hpp"
#include "tegula/sim/generation.hpp"
#include "tegula/sim/hooks.hpp"
#include "values/place.hpp"

/// Loads and stores of shared memory, and the addresses that accessors compute for them.
namespace tegula::sim {

namespace {

/// "byte 144 of A", also where it lies before or behind A.
std::string byte_text(SharedBuffer const* buffer, std::uint32_t address) {
  if (buffer == nullptr) return fmt::format("byte {} of shared memory", address - kSharedBase);
  return fmt::format(
      "byte {} of {}",
      static_cast<std::int64_t>(address) - kSharedBase - static_cast<std::int64_t>(buffer->offset),
      buffer->name);
}

}  // namespace

std::uint32_t shared_address(void const* object, SourceLocation where) {
  Cta& cta = this_cta();
  std::uintptr_t const offset = reinterpret_cast<std::uintptr_t>(object) -
                                reinterpret_cast<std::uintptr_t>(cta.shared().data());
  if (offset > cta.shared().bytes()) {
    cta.report(
        FindingKind::out_of_bounds, where, cta.here(), "", "",
        "the address of an object outside of SharedStorage is taken as one in shared memory");
    return 0;
  }
  return kSharedBase + static_cast<std::uint32_t>(offset);
}

bool holds_layouts() { return this_cta().checking(); }

void wrong_address(std::uint32_t right, std::uint32_t computed, std::string const& layout,
                   SourceLocation made, SourceLocation where) {
  Cta& cta = this_cta();
  SharedBuffer const* const buffer = buffer_at(cta.launch().kernel->buffers, right);
  cta.report(FindingKind::wrong_layout, where, cta.here(), cta.buffer_name(right),
             cta.own_place(right),
             fmt::format("{} is {} by its layout, {}, but the accessor made at {} computes {}",
                         cta.own_place(right), byte_text(buffer, right), layout, place_text(made),
                         byte_text(buffer, computed)),
             made);
}

// An ordinary write, a piece of the widest vector at a time.
void st_bulk_zero(std::uint32_t address, int bytes, SourceLocation where) {
  constexpr int unit = 8;
  constexpr Instruction instruction = Instruction::st_bulk;
  Cta& cta = current_cta();
  ArchSpec const& spec = spec_of(cta.generation());
  auto const refuse = [&](FindingKind kind, std::string const& why) {
    cta.fail(kind, where, cta.here(),
             fmt::format("{} of {}{}", ptx_name(instruction), io::counted(bytes, "byte"), why));
  };
  if (!spec.tensor_memory)
    refuse(FindingKind::invalid_operand,
           fmt::format(" on an sm_{}: it is for sm_100", spec.compute_capability));
  if (bytes < 0 || bytes % unit != 0)
    refuse(FindingKind::invalid_operand, ": it writes a multiple of 8");
  if (address % unit != 0)
    refuse(FindingKind::misaligned,
           fmt::format(" at shared address {:#x}, {} past a multiple of {}: {}", address,
                       io::counted(address % unit, "byte"), unit, cta.shared_place(address)));
  if (cta.counting())
    cta.observers().worked(instruction, where, {.instructions = 1, .shared_bytes = bytes});
  for (int at = 0; at < bytes; at += unit) {
    std::uint32_t const piece = address + static_cast<std::uint32_t>(at);
    if (!cta.shared_access(instruction, piece, unit, true, where, cta.current_thread().lane))
      return;
    std::memset(cta.shared().at(piece), 0, unit);
  }
  cta.cluster().progressed();
}

void ld_shared(void* value, std::uint32_t address, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::ld_shared, where, {bytes, address});
  if (cta.shared_access(Instruction::ld_shared, address, bytes, false, where,
                        cta.current_thread().lane)) {
    cta.cluster().watch_read(cta.shared().at(address), true, where);
    std::memcpy(value, cta.shared().at(address), static_cast<std::size_t>(bytes));
  } else {
    std::memset(value, 0xff, static_cast<std::size_t>(bytes));
  }
}

void st_shared(std::uint32_t address, void const* value, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::st_shared, where, {bytes, address});
  if (cta.shared_access(Instruction::st_shared, address, bytes, true, where,
                        cta.current_thread().lane)) {
    cta.cluster().progressed();
    std::memcpy(cta.shared().at(address), value, static_cast<std::size_t>(bytes));
  }
}

namespace {
/// Has bytes hold 0xff; false, with a finding, where they are not the CTA's.
bool fill_shared(Cta& cta, char const* function, std::uint32_t address, int bytes,
                 SourceLocation where) {
  if (bytes < 0 || !cta.shared().contains(address, static_cast<std::uint32_t>(bytes))) {
    cta.report(FindingKind::out_of_bounds, where, cta.here(), "", "",
               fmt::format("{} of {} bytes at shared address {:#x} lies outside of the CTA's "
                           "shared memory",
                           function, bytes, address));
    return false;
  }
  std::memset(cta.shared().at(address), 0xff, static_cast<std::size_t>(bytes));
  return true;
}
}  // namespace

void unpoison_shared(std::uint32_t address, int bytes, SourceLocation where) {
  Cta& cta = this_cta();
  if (fill_shared(cta, "unpoison_shared", address, bytes, where) && cta.checking())
    cta.observers().shared_unpoisoned(cta, address, static_cast<std::uint32_t>(bytes));
}

void discard_shared(std::uint32_t address, int bytes, SourceLocation where) {
  Cta& cta = this_cta();
  if (fill_shared(cta, "discard_shared", address, bytes, where) && cta.checking())
    cta.observers().shared_discarded(cta, address, static_cast<std::uint32_t>(bytes), where);
}

}  // namespace tegula::sim
