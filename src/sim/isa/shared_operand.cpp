#include "isa/shared_operand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "machine/cluster.hpp"

namespace tegula::sim {

/// There are few such lists in a kernel, and each is needed thousands of times.
std::vector<std::uint32_t> const& piece_offsets(SharedOperand const& operand) {
  struct List {
    std::uint64_t descriptor;
    SharedOperand of;
    std::vector<std::uint32_t> offsets;
  };
  static thread_local std::vector<std::unique_ptr<List>> lists;
  std::uint64_t const descriptor = operand.bits & ~std::uint64_t{0x3fff};
  for (auto const& list : lists) {
    if (list->descriptor == descriptor && list->of.mn_major == operand.mn_major &&
        list->of.extent == operand.extent && list->of.element_bytes == operand.element_bytes &&
        list->of.row_bytes == operand.row_bytes)
      return list->offsets;
  }
  if (lists.size() >= 64) lists.clear();
  auto list = std::make_unique<List>(List{descriptor, operand, {}});
  WgmmaDescriptor const fields = decode_wgmma_descriptor(descriptor);
  for (int row = 0; row < operand.rows(); ++row) {
    for (int piece = 0; piece < operand.pieces(); ++piece)
      list->offsets.push_back(wgmma_piece_offset(fields, operand.mn_major, row, piece));
  }
  lists.push_back(std::move(list));
  return lists.back()->offsets;
}

void append_ranges(SharedOperand const& operand, int cta, std::vector<SharedRange>& ranges) {
  std::size_t const first = ranges.size();
  for_each_piece(operand, [&](int, int, std::uint32_t address) {
    if (ranges.size() > first) {
      SharedRange& last = ranges.back();
      if (last.address + last.bytes == address || address + 16 == last.address) {
        last.address = std::min(last.address, address);
        last.bytes += 16;
        return;
      }
    }
    ranges.push_back({cta, address, 16});
  });
}

void gather(SharedOperand const& operand, SharedMemory& shared,
            std::uint8_t (*rows)[kWgmmaRowBytes]) {
  for_each_piece(operand, [&](int row, int piece, std::uint32_t address) {
    unsigned char const* const bytes = shared.at(address);
    if (!operand.mn_major) {
      std::memcpy(rows[row] + 16 * piece, bytes, 16);
      return;
    }
    int const width = operand.element_bytes;
    for (int i = 0; i < 16 / width; ++i)
      std::memcpy(rows[16 / width * piece + i] + width * row, bytes + width * i,
                  static_cast<std::size_t>(width));
  });
}

void report_descriptor(Cta& cta, FindingKind kind, char const* name, std::uint64_t bits,
                       std::string const& why, SourceLocation where) {
  cta.report(kind, where, cta.here(-1), "", "",
             fmt::format("the matrix descriptor of {}, {:#018x}: {}", name, bits, why));
}

bool check_operand(Cta& cta, char const* name, SharedOperand const& operand, std::uint64_t shown,
                   SourceLocation where) {
  WgmmaDescriptor const d = decode_wgmma_descriptor(operand.bits);
  std::uint32_t const start = wgmma_start_address(operand.bits);
  auto const invalid = [&](FindingKind kind, std::string const& why) {
    report_descriptor(cta, kind, name, shown, why, where);
    return false;
  };
  std::uint32_t const width = static_cast<std::uint32_t>(d.swizzle_bytes);
  if (width != 0) {
    if (start % (8 * width) >= width)
      return invalid(
          FindingKind::misaligned,
          fmt::format("its start address {:#x} is not in the first of eight rows of {} bytes",
                      start, width));
    std::uint32_t const within = start % width;
    std::uint32_t const row = static_cast<std::uint32_t>(operand.row_bytes);
    if (operand.mn_major ? within != 0 : within + row > width)
      return invalid(FindingKind::misaligned,
                     fmt::format("its start address {:#x} is {} bytes into a row of {}", start,
                                 within, width));
  }
  std::uint32_t least = 0xffffffffu;
  std::uint32_t greatest = 0;
  for_each_piece(operand, [&](int, int, std::uint32_t address) {
    least = std::min(least, address);
    greatest = std::max(greatest, address);
  });
  SharedMemory& shared = cta.shared();
  if (!shared.contains(least, greatest + 16 - least))
    return invalid(
        FindingKind::out_of_bounds,
        fmt::format(
            "the operand, from {:#x} to {:#x}, lies outside of the CTA's {} bytes of shared memory, "
            "{:#x} to {:#x}",
            least, greatest + 16, shared.bytes(), kSharedBase, kSharedBase + shared.bytes()));
  return true;
}

void check_swizzle(Cta& cta, Instruction instruction, SharedOperand const& operand,
                   SourceLocation where) {
  TmaSwizzle const swizzle = swizzle_of_span(decode_wgmma_descriptor(operand.bits).swizzle_bytes);
  bool right = true;
  for_each_piece(operand, [&](int, int, std::uint32_t address) {
    right = right &&
            cta.observers().laid_out_by(cta, swizzle, address, instruction, where, cta.here(-1));
  });
}

}  // namespace tegula::sim
