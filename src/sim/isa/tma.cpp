#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "isa/perform.hpp"
#include "isa/tma_in_flight.hpp"
#include "isa/tma_reduction.hpp"
#include "machine/cluster.hpp"
#include "machine/cta.hpp"
#include "machine/in_flight.hpp"
#include "tegula/io/text.hpp"
#include "tegula/sim/hooks.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "values/box_walk.hpp"

/// The TMA unit: loads, stores, reductions and prefetches of boxes of tensors, and bulk copies,
/// which are boxes of one row. Operands and global memory are checked at the issue; what the bytes
/// of shared memory may be used for meanwhile is the InFlightQueue's.
namespace tegula::sim {

namespace {

/// Shared addresses of a box: PTX ISA, cp.async.bulk.tensor, "dstMem must be 128-byte aligned".
constexpr std::uint32_t kBoxAlignment = 128;
/// Where a box may begin in the tensor's rows, in bytes; elsewhere the hardware ends the kernel
/// with "an illegal instruction was encountered".
constexpr std::int64_t kRowAlignment = 16;
/// Addresses and sizes of a bulk copy.
constexpr std::uint32_t kBulkAlignment = 16;

/// Finds the allocation that holds the box, and fails where none holds all of it.
GlobalBox in_global_memory(Cta& cta, Instruction instruction, BoxWalk const& box,
                           SourceLocation where) {
  Allocation* memory = nullptr;
  box.for_each_row([&](TmaRow const& row) {
    if (row.begin == row.end) return;
    unsigned char* const first = first_byte(box, row);
    auto const bytes = static_cast<std::size_t>(row.end - row.begin);
    if (memory != nullptr && memory->contains(first, bytes)) return;
    Allocation* const found = cta.allocation(first);
    if (memory == nullptr && found != nullptr && found->contains(first, bytes)) {
      memory = found;
      return;
    }
    std::string const place =
        found == nullptr ? "in no allocation"
                         : fmt::format("at byte {} of {}, which has {}", found->offset_of(first),
                                       found->name, io::counted(found->bytes, "byte"));
    cta.fail(
        FindingKind::out_of_bounds, where, cta.here(),
        fmt::format("{} of a box whose row at {} of the tensor lies {}{}", ptx_name(instruction),
                    text_of(row, box.element_of(row.begin), box.map().rank), place,
                    memory != nullptr ? ", and others in " + memory->name : ""));
  });
  return {box, memory};
}

/// Holds the access to the box against other launches.
void check_launches(Cta& cta, Instruction instruction, GlobalAccess access, GlobalBox const& from,
                    SourceLocation where) {
  if (!cta.checking() || from.memory == nullptr) return;
  unsigned char const* first = nullptr;
  from.box.for_each_row([&](TmaRow const& row) {
    if (first == nullptr && row.begin != row.end) first = first_byte(from.box, row);
  });
  std::size_t const offset = first != nullptr ? from.memory->offset_of(first) : 0;
  cta.observers().global_reached(cta, {instruction, access, from.memory, offset, 0, where});
}

void count(Cta& cta, Instruction instruction, SourceLocation where, BoxWalk const& box,
           int shared_bytes) {
  if (!cta.counting()) return;
  Work work{.instructions = 1, .shared_bytes = shared_bytes};
  box.for_each_row([&](TmaRow const& row) {
    if (row.begin == row.end) return;
    auto const first = reinterpret_cast<std::uintptr_t>(first_byte(box, row));
    auto const bytes = static_cast<std::uintptr_t>(row.end - row.begin);
    work.global_bytes += row.end - row.begin;
    work.global_sectors += static_cast<std::int64_t>((first + bytes - 1) / 32 - first / 32 + 1);
  });
  cta.observers().worked(instruction, where, work);
}

void check_aligned(Cta& cta, Instruction instruction, std::uint32_t address,
                   std::uint32_t alignment, SourceLocation where) {
  if (address % alignment == 0) return;
  cta.fail(FindingKind::misaligned, where, cta.here(),
           fmt::format("{} at shared address {:#x}, {} past a multiple of {}: {}",
                       ptx_name(instruction), address, io::counted(address % alignment, "byte"),
                       alignment, cta.shared_place(address)));
}

/// Fails where a map is not one of a matrix and one row of it at a time, or the machine is none
/// that moves rows.
void check_rows(Cta& cta, Instruction instruction, TensorMapDescription const& map,
                SourceLocation where) {
  ArchSpec const& spec = spec_of(cta.generation());
  auto const refuse = [&](std::string const& why) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} of four rows (.tile::gather4, .tile::scatter4) {}",
                         ptx_name(instruction), why));
  };
  if (!spec.tensor_memory)
    refuse(fmt::format("on an sm_{}: it is for sm_100a", spec.compute_capability));
  if (map.rank != 2)
    refuse(fmt::format("is given a map of rank {}: it is for tensors of two axes", map.rank));
  if (map.box[1] != 1)
    refuse(fmt::format("is given a map whose box has {} rows: a box must have one", map.box[1]));
}

/// Whether a tensor map lies in memory that TMA reads maps from.
bool is_in_place(Cta& cta, TensorMap const& map) {
  Allocation const* const memory = cta.allocation(&map);
  return cta.launch().kernel->params.contain(&map, sizeof map) ||
         (memory != nullptr && memory->contains(&map, sizeof map));
}

/// What a tensor map describes; fails where it lies in no memory that TMA reads maps from, or is
/// none of this machine's. PTX ISA, cp.async.bulk.tensor: the map is in .param, .const or .global
/// memory. (One of the thread's own is looked at, too: mostly it was never encoded.)
TensorMapDescription described(Cta& cta, Instruction instruction, TensorMap const& map,
                               SourceLocation where) {
  bool const in_place = is_in_place(cta, map);
  if (!in_place && !cta.current_thread().stack->holds(&map))
    cta.fail(
        FindingKind::out_of_bounds, where, cta.here(),
        fmt::format("{} is given a tensor map{}", ptx_name(instruction), cta.outside_place(&map)));
  std::optional<TensorMapDescription> const description = sim::decode(map);
  if (!description) {
    bool const blank = std::all_of(std::begin(map.bytes), std::end(map.bytes),
                                   [&](unsigned char byte) { return byte == map.bytes[0]; });
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} is given a tensor map that was {}", ptx_name(instruction),
                         blank ? "never encoded" : "not encoded for the simulated machine"));
  }
  if (!in_place)
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} is given a tensor map in the thread's local memory: it takes one of "
                         "the kernel's parameters, or in global memory",
                         ptx_name(instruction)));
  return *description;
}

/// Fails where a map was encoded for another mode than the instruction names.
void check_mode(Cta& cta, Instruction instruction, TmaNaming naming, TmaMode of_map,
                SourceLocation where) {
  bool const image = naming == TmaNaming::im2col;
  if (image == (of_map == TmaMode::im2col)) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} by .{} is given a tensor map of mode {}: it takes one of mode {}",
                       ptx_name(instruction), image ? "im2col" : "tile", image ? "tiled" : "im2col",
                       image ? "im2col" : "tiled"));
}

/// The pixels of an image. They begin in the map's bounding box: what the hardware does with others
/// nobody says.
BoxWalk image_of(Cta& cta, Instruction instruction, TensorMapDescription const& map,
                 TmaPlace const& place, SourceLocation where) {
  BoxWalk const pixels = BoxWalk::image(map, place.coordinate, place.offset);
  for (int axis = 1; axis < map.rank - 1; ++axis) {
    auto const i = static_cast<std::size_t>(axis);
    if (pixels.begins_in_bounding_box(axis)) continue;
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} by .im2col begins at coordinate {} of axis {}: the map's bounding box "
                         "has {} to {} there",
                         ptx_name(instruction), place.coordinate[i], axis, map.lower_corner[i - 1],
                         map.extents[i] + map.upper_corner[i - 1] - 1));
  }
  return pixels;
}

/// The box, rows or pixels that a tensor instruction names.
BoxWalk box_of(Cta& cta, Instruction instruction, TensorMap const& map, TmaPlace const& place,
               SourceLocation where) {
  TensorMapDescription const description = described(cta, instruction, map, where);
  int const* const coordinate = place.coordinate;
  check_mode(cta, instruction, place.naming, description.mode, where);
  if (place.naming == TmaNaming::rows) {
    check_rows(cta, instruction, description, where);
  } else if (place.coordinates != description.rank) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} is given {} for a tensor of rank {}", ptx_name(instruction),
                         io::counted(place.coordinates, "coordinate"), description.rank));
  }
  std::int64_t const first = std::int64_t{coordinate[0]} * bits(description.dtype) / 8;
  if (first % kRowAlignment != 0) {
    cta.fail(
        FindingKind::misaligned, where, cta.here(),
        fmt::format(
            "{} of a box that begins at coordinate {} of axis 0, which is byte {} of its row: that "
            "must be a multiple of {}",
            ptx_name(instruction), coordinate[0], first, kRowAlignment));
  }
  if (place.naming == TmaNaming::rows) return BoxWalk::gathered(description, coordinate);
  if (place.naming == TmaNaming::im2col)
    return image_of(cta, instruction, description, place, where);
  return {description, coordinate};
}

/// The same for an instruction that writes the tensor.
BoxWalk box_to_write(Cta& cta, Instruction instruction, TensorMap const& map, TmaPlace const& place,
                     SourceLocation where) {
  BoxWalk const box = box_of(cta, instruction, map, place, where);
  int const* const coordinate = place.coordinate;
  if (box.unpacks())
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} to a tensor of {}: the simulated machine loads these, and does not "
                         "store them",
                         ptx_name(instruction), to_string(box.map().dtype)));
  int const* const negative =
      std::find_if(coordinate, coordinate + place.coordinates, [](int x) { return x < 0; });
  if (negative != coordinate + place.coordinates) {
    cta.fail(
        FindingKind::out_of_bounds, where, cta.here(),
        fmt::format(
            "{} to a box that begins at coordinate {} of axis {}: only loads may begin before the "
            "tensor",
            ptx_name(instruction), *negative,
            place.naming == TmaNaming::rows ? std::min<std::ptrdiff_t>(negative - coordinate, 1)
                                            : negative - coordinate));
  }
  return box;
}

/// A bulk copy's bytes, which lie in one allocation, as a box of one row of elements.
BoxWalk one_row(Cta& cta, Instruction instruction, void const* address, int bytes,
                SourceLocation where, DType type = DType::u8) {
  auto const misfit = reinterpret_cast<std::uintptr_t>(address) % kBulkAlignment;
  if (bytes < 0 || bytes % static_cast<int>(kBulkAlignment) != 0) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} of {}: it moves a multiple of {}", ptx_name(instruction),
                         io::counted(bytes, "byte"), kBulkAlignment));
  }
  Allocation const* const memory = cta.allocation(address);
  auto const refuse = [&](FindingKind kind, std::string const& place) {
    cta.fail(kind, where, cta.here(),
             fmt::format("{} of {}{}", ptx_name(instruction), io::counted(bytes, "byte"), place));
  };
  if (misfit != 0)
    refuse(FindingKind::misaligned,
           fmt::format("{}, {} past a multiple of {}",
                       memory == nullptr ? cta.outside_place(address)
                                         : fmt::format(" at byte {} of {}",
                                                       memory->offset_of(address), memory->name),
                       io::counted(misfit, "byte"), kBulkAlignment));
  if (bytes != 0 &&
      (memory == nullptr || !memory->contains(address, static_cast<std::size_t>(bytes))))
    refuse(FindingKind::out_of_bounds, cta.outside_place(address));
  TensorMapDescription row;
  row.dtype = type;
  row.rank = 1;
  row.address = address;
  row.box[0] = bytes * 8 / bits(type);
  row.extents[0] = row.box[0];
  int const origin = 0;
  return {row, &origin};
}

/// Issues a load into the CTA of a shared::cluster address that completes on an mbarrier of the
/// same CTA, or (`ctas` 2) of the pair's other.
void load(Cta& cta, Instruction instruction, GlobalBox const& from, std::uint32_t destination,
          std::uint32_t mbarrier, int ctas, std::uint32_t alignment, SourceLocation where,
          bool again = false) {
  Cta* const to = cta.target(instruction, destination, where);
  Cta* const signalled = cta.target(instruction, mbarrier, where);
  if (to == nullptr || signalled == nullptr) return;
  if (to != signalled && (ctas == 1 || to->pair_peer() != signalled)) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} into CTA {} of the cluster with an mbarrier in CTA {}: both must lie "
                         "in the same{}",
                         ptx_name(instruction), to->rank(), signalled->rank(),
                         ctas == 2 ? " pair of CTAs" : ""));
  }
  check_aligned(cta, instruction, destination, alignment, where);
  SharedRange const range{to->rank(), destination,
                          static_cast<std::uint32_t>(from.box.shared_bytes())};
  if (!again) check_launches(cta, instruction, GlobalAccess::read, from, where);
  auto operation = load_in_flight(instruction, cta, from, range, again, where);
  operation->completes_on(signalled->rank(), mbarrier,
                          static_cast<std::uint32_t>(from.box.bytes()));
  cta.in_flight().add(std::move(operation));
}

/// Ends the cluster where a load with .cta_group::2 finds no pair.
void check_pair(Cta& cta, Instruction instruction, SourceLocation where) {
  ArchSpec const& spec = spec_of(cta.generation());
  if (spec.tensor_memory && cta.pair_peer() != nullptr) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} with .cta_group::2 by CTA {} of a cluster of {} on an sm_{}: it is for "
                       "pairs of CTAs of sm_100a",
                       ptx_name(instruction), cta.rank(), cta.cluster().ctas(),
                       spec.compute_capability));
}

/// Holds what a tensor store or a reduction reads against the loads that brought it.
void check_swizzle(Cta& cta, Instruction instruction, BoxWalk const& box, std::uint32_t source,
                   SourceLocation where) {
  TmaSwizzle const swizzle = box.map().swizzle;
  bool right = cta.checking() &&
               cta.shared().contains(source, static_cast<std::uint32_t>(box.shared_bytes()));
  box.for_each_row([&](TmaRow const& row) {
    if (row.begin == row.end) return;
    std::uint32_t const address = source + static_cast<std::uint32_t>(row.index * box.row_pitch());
    for (int byte = 0; right && byte < box.row_bytes(); byte += 16)
      right = cta.observers().laid_out_by(
          cta, swizzle, swizzled(swizzle, address + static_cast<std::uint32_t>(byte)), instruction,
          where, cta.here());
  });
}

/// `does`: what it does to the bytes that it reaches.
void store(Cta& cta, Instruction instruction, BoxWalk const& box, std::uint32_t source,
           std::uint32_t alignment, Written const& does, SourceLocation where) {
  Cta* const from = cta.target(instruction, source, where);
  if (from == nullptr) return;
  if (from != &cta) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format("{} from the shared memory of CTA {} of the cluster: it stores from its own",
                    ptx_name(instruction), from->rank()));
  }
  check_aligned(cta, instruction, source, alignment, where);
  if (alignment == kBoxAlignment) check_swizzle(cta, instruction, box, source, where);
  GlobalBox const to = in_global_memory(cta, instruction, box, where);
  count(cta, instruction, where, box, box.bytes());
  check_launches(cta, instruction, does.reduction ? GlobalAccess::atomic : GlobalAccess::write, to,
                 where);
  SharedRange const range{cta.rank(), source, static_cast<std::uint32_t>(box.shared_bytes())};
  cta.in_flight().add(store_in_flight(instruction, cta, range, to, does, where),
                      cta.current_thread().bulk);
}

/// A load into this CTA.
void load_one(Cta& cta, Instruction instruction, BoxWalk const& box, std::uint32_t dst,
              std::uint32_t mbarrier, int ctas, std::uint32_t alignment, SourceLocation where) {
  GlobalBox const from = in_global_memory(cta, instruction, box, where);
  count(cta, instruction, where, from.box, from.box.bytes());
  load(cta, instruction, from, dst, mbarrier, ctas, alignment, where);
}

/// The CTAs that a multicast goes to.
std::uint16_t receivers(Cta& cta, Instruction instruction, std::uint16_t cta_mask,
                        SourceLocation where) {
  int const ctas = cta.cluster().ctas();
  if (mutation_of(instruction, where,
                  std::popcount(cta_mask) > 1 ? Mutation::none : Mutation::less) != Mutation::none)
    cta_mask &= static_cast<std::uint16_t>(cta_mask - 1);  // without the lowest rank
  if (cta_mask == 0 || cta_mask >> ctas != 0) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format(
            "{} to the CTAs of mask {:#x} in a cluster of {}: each bit names one of its CTAs, and at "
            "least one is set",
            ptx_name(instruction), cta_mask, ctas));
  }
  return cta_mask;
}

/// A load into several CTAs of the cluster, to the same place in each.
void load_multicast(Cta& cta, Instruction instruction, BoxWalk const& box, std::uint32_t dst,
                    std::uint32_t mbarrier, std::uint16_t cta_mask, int ctas_of_group,
                    std::uint32_t alignment, SourceLocation where) {
  cta_mask = receivers(cta, instruction, cta_mask, where);
  GlobalBox const from = in_global_memory(cta, instruction, box, where);
  count(cta, instruction, where, from.box, from.box.bytes() * std::popcount(cta_mask));
  Cta const* const signalled = cta.target(instruction, mbarrier, where);
  if (cta.target(instruction, dst, where) == nullptr || signalled == nullptr) return;
  bool again = false;
  for (int peer = 0; peer < cta.cluster().ctas(); ++peer) {
    if ((cta_mask >> peer & 1) == 0) continue;
    // Of pairs, in all the even CTA is told, or the odd one.
    int const told = ctas_of_group == 2 ? (peer & ~1) + signalled->rank() % 2 : peer;
    std::uint32_t const tag = static_cast<std::uint32_t>(peer + 1) << kRankShift;
    std::uint32_t const tag_of_told = static_cast<std::uint32_t>(told + 1) << kRankShift;
    load(cta, instruction, from, tag | dst, tag_of_told | mbarrier, ctas_of_group, alignment, where,
         again);
    again = true;
  }
}

}  // namespace

void hold_box(TensorMap const& map, BoxOfCopy const& expected, SourceLocation where) {
  Cta& cta = this_cta();
  // Of what is no map, or one of another rank, the instruction speaks.
  if (!is_in_place(cta, map)) return;
  std::optional<TensorMapDescription> const description = sim::decode(map);
  if (!description || description->rank != expected.rank) return;
  TensorMapDescription const& has = *description;
  auto const text = [](int rank, auto const& extent, TmaSwizzle swizzle, int element_bits) {
    std::string box;
    for (int axis = 0; axis < rank; ++axis)
      box += fmt::format("{}{}", axis == 0 ? "" : " x ", extent[axis]);
    return fmt::format("boxes of {} elements of {} bits, swizzle {}", box, element_bits,
                       to_string(swizzle));
  };
  // Elements of less than a byte, several of which lie in a byte of the copy's.
  int const element_bits = bits(has.dtype) < 8 ? expected.bits : bits(has.dtype);
  std::array<int, 5> box{};
  for (int axis = 0; axis < has.rank; ++axis)
    box[static_cast<std::size_t>(axis)] = box_extent(has, axis);
  if (std::equal(box.begin(), box.begin() + has.rank, expected.extent) &&
      has.swizzle == expected.swizzle && element_bits == expected.bits)
    return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("the tensor map has {}, but the copy's are {}: describe(matrices, boxes) "
                       "makes a map of a copy's boxes",
                       text(has.rank, box, has.swizzle, element_bits),
                       text(expected.rank, expected.extent, expected.swizzle, expected.bits)));
}

void tma_load(std::uint32_t dst, TensorMap const& map, TmaPlace const& place,
              std::uint32_t mbarrier, int ctas, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_tensor;
  if (ctas == 2) check_pair(cta, instruction, where);
  load_one(cta, instruction, box_of(cta, instruction, map, place, where), dst, mbarrier, ctas,
           kBoxAlignment, where);
}

void tma_load_multicast(std::uint32_t dst, TensorMap const& map, TmaPlace const& place,
                        std::uint32_t mbarrier, std::uint16_t cta_mask, int ctas,
                        SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_tensor;
  if (ctas == 2) check_pair(cta, instruction, where);
  load_multicast(cta, instruction, box_of(cta, instruction, map, place, where), dst, mbarrier,
                 cta_mask, ctas, kBoxAlignment, where);
}

void tma_store(TensorMap const& map, TmaPlace const& place, std::uint32_t src,
               SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_tensor;
  store(cta, instruction, box_to_write(cta, instruction, map, place, where), src, kBoxAlignment, {},
        where);
}

void tma_reduce(TensorMap const& map, TmaPlace const& place, std::uint32_t src, TmaReduce op,
                SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_reduce_async_bulk_tensor;
  BoxWalk const box = box_to_write(cta, instruction, map, place, where);
  DType const type = box.map().dtype;
  if (!can_reduce(op, type)) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format(
            "{}.{} of {}: {}", ptx_name(instruction), to_string(op), to_string(type),
            can_reduce(op, reduced_as(op, type))
                ? "encode the tensor map for u64, whose results have the same bits"
                : "it adds f16, bf16, f32, f64, s32, u32 and u64, takes the least or greatest of f16, "
                  "bf16 and integers of 32 and 64 bits, and, or and xor of s32, u32 and u64, and "
                  "counts (inc, dec) in u32"));
  }
  store(cta, instruction, box, src, kBoxAlignment, {.reduction = op}, where);
}

// Caches are not modelled: a prefetch is checked and counted.
void tma_prefetch(TensorMap const& map, TmaPlace const& place, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_prefetch_tensor;
  GlobalBox const box =
      in_global_memory(cta, instruction, box_of(cta, instruction, map, place, where), where);
  count(cta, instruction, where, box.box, 0);
}

void prefetch_tensor_map(TensorMap const& map, SourceLocation where) {
  Cta& cta = current_cta();
  static_cast<void>(described(cta, Instruction::prefetch_tensormap, map, where));
  cta.note(Instruction::prefetch_tensormap, where);
}

void bulk_load(std::uint32_t dst, void const* src, int bytes, std::uint32_t mbarrier,
               SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk;
  load_one(cta, instruction, one_row(cta, instruction, src, bytes, where), dst, mbarrier, 1,
           kBulkAlignment, where);
}

void bulk_load_multicast(std::uint32_t dst, void const* src, int bytes, std::uint32_t mbarrier,
                         std::uint16_t cta_mask, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk;
  load_multicast(cta, instruction, one_row(cta, instruction, src, bytes, where), dst, mbarrier,
                 cta_mask, 1, kBulkAlignment, where);
}

void bulk_prefetch(void const* src, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_prefetch;
  GlobalBox const box =
      in_global_memory(cta, instruction, one_row(cta, instruction, src, bytes, where), where);
  count(cta, instruction, where, box.box, 0);
}

void bulk_store(void* dst, std::uint32_t src, int bytes, std::uint16_t byte_mask,
                SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk;
  ArchSpec const& spec = spec_of(cta.generation());
  if (byte_mask != kAllBytes && !spec.tensor_memory)
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} with a mask of bytes (.cp_mask) on an sm_{}: it is for sm_100",
                         ptx_name(instruction), spec.compute_capability));
  store(cta, instruction, one_row(cta, instruction, dst, bytes, where), src, kBulkAlignment,
        {.byte_mask = byte_mask}, where);
}

void bulk_reduce(void* dst, std::uint32_t src, int bytes, TmaReduce op, DType type,
                 SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_reduce_async_bulk;
  store(cta, instruction, one_row(cta, instruction, dst, bytes, where, type), src, kBulkAlignment,
        {.reduction = op}, where);
}

}  // namespace tegula::sim
