#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/cluster.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

/// Accesses of a CTA's threads to its shared memory, and what findings call its places.
namespace tegula::sim {

std::string Cta::own_place(std::uint32_t address) const {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, address);
  return buffer != nullptr ? place_in(*buffer, address)
                           : fmt::format("byte {} of shared memory", address - kSharedBase);
}

std::string Cta::shared_place(std::uint32_t address) const {
  std::string place = own_place(address);
  if (current_thread().cta != this) place += fmt::format(" of CTA {} of the cluster", rank_);
  return place;
}

std::string Cta::short_place(std::uint32_t address) const {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, address);
  if (buffer == nullptr) return fmt::format("{:#x}", address);
  std::size_t const element_bits = static_cast<std::size_t>(buffer->element_bits);
  if (8 * buffer->bytes <= element_bits) return buffer->name;
  // "element 2", "row 0, column 0 of stage 2"
  std::string const place = buffer->locate(
      static_cast<std::int64_t>(8 * (address - kSharedBase - buffer->offset) / element_bits));
  for (char const* const word : {"stage ", "element "}) {
    std::size_t const at = place.find(word);
    if (at == std::string::npos) continue;
    std::size_t const number = at + std::strlen(word);
    return fmt::format("{}[{}]", buffer->name,
                       place.substr(number, place.find_first_of(", ", number) - number));
  }
  return buffer->name;
}

std::string Cta::buffer_name(std::uint32_t address) const {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, address);
  return buffer != nullptr ? buffer->name : std::string();
}

void Cta::out_of_shared(Instruction instruction, std::uint32_t address, std::uint32_t bytes,
                        SourceLocation where, Culprit who) {
  report(
      FindingKind::out_of_bounds, where, who, "", "",
      fmt::format(
          "{} of {} at shared address {:#x} lies outside of the CTA's {} of shared memory, {:#x} to {:#x}",
          ptx_name(instruction), io::counted(bytes, "byte"), address,
          io::counted(shared_.bytes(), "byte"), kSharedBase, kSharedBase + shared_.bytes()));
}

/// Reports an access that is misaligned or out of bounds; false where it must not be performed.
bool Cta::in_bounds(Instruction instruction, std::uint32_t address, int bytes, SourceLocation where,
                    int lane) {
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (!shared_.contains(address, n)) {
    out_of_shared(instruction, address, n, where, here(lane));
    return false;
  }
  if (address % n != 0) {
    report(FindingKind::misaligned, where, here(lane), buffer_name(address), shared_place(address),
           fmt::format("{} of {} at shared address {:#x}, {} past a multiple of {}: {}",
                       ptx_name(instruction), io::counted(bytes, "byte"), address,
                       io::counted(address % n, "byte"), bytes, shared_place(address)));
  }
  return true;
}

bool Cta::shared_access(Instruction instruction, std::uint32_t address, int bytes, bool write,
                        SourceLocation where, int lane, Strength strength) {
  cluster_.before(
      {.kind = is_strong(instruction) ? Visible::Kind::atomic
               : write                ? Visible::Kind::store
                                      : Visible::Kind::load,
       .cta = rank_,
       .address = address,
       .amount = bytes,
       .of_warp = instruction == Instruction::ldmatrix || instruction == Instruction::stmatrix,
       .blind = is_strong(instruction) && !strong_learns(instruction)});
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (address % n != 0 || !shared_.contains(address, n)) [[unlikely]] {
    if (!in_bounds(instruction, address, bytes, where, lane)) return false;
  }
  if (!check_) return true;
  observers().shared_accessed(*this, {instruction, address, bytes, write, where, lane, strength});
  return true;
}

bool Cta::shared_matrix_row(Instruction instruction, std::uint32_t address, bool write,
                            MatrixForm form, int row, SourceLocation where, int lane) {
  if (address % 16 != 0 || !shared_.contains(address, 16)) [[unlikely]]
    return shared_access(instruction, address, 16, write, where, lane);
  if (check_)
    observers().matrix_row_accessed(*this, {instruction, address, 16, write, where, lane}, form,
                                    row);
  return true;
}

}  // namespace tegula::sim
