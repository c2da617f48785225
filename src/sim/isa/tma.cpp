#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "isa/perform.hpp"
#include "isa/tma_reduction.hpp"
#include "machine/cluster.hpp"
#include "machine/cta.hpp"
#include "machine/in_flight.hpp"
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

std::string text_of(TmaRow const& row, int first_element, int rank) {
  auto coordinate = row.coordinate;
  coordinate[0] += first_element;
  return fmt::format("({})",
                     fmt::join(std::span(coordinate).first(static_cast<std::size_t>(rank)), ", "));
}

unsigned char* first_byte(BoxWalk const& box, TmaRow const& row) {
  return const_cast<unsigned char*>(static_cast<unsigned char const*>(box.map().address)) +
         row.offset;
}

/// A box of global memory as an instruction is to move it: where its rows lie and who asked.
struct GlobalBox {
  BoxWalk box;
  Allocation* memory;  ///< holds all of it; null where no element lies in the tensor
};

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
    std::string const place = found == nullptr
                                  ? "in no allocation"
                                  : fmt::format("at byte {} of {}, which has {} bytes",
                                                found->offset_of(first), found->name, found->bytes);
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
           fmt::format("{} at shared address {:#x}, {} bytes past a multiple of {}: {}",
                       ptx_name(instruction), address, address % alignment, alignment,
                       cta.shared_place(address)));
}

/// What the hardware fills with, whatever the type: zeros, or words of 16 bits that are NaNs in
/// every type.
std::array<unsigned char, 2> fill_pattern(TensorMapDescription const& map) {
  if (map.fill == TmaFill::zeros) return {0, 0};
  return {0xf7, 0x7f};
}

/// Copies a row between a buffer in the order of its elements and shared memory, whose 16-byte
/// pieces lie where the swizzle puts them: `shared` is where the row would begin without one.
template <class To, class From, class F>
void for_each_piece(std::uint32_t exclusive_or, int bytes, To* shared, From* row, F&& copy) {
  if (exclusive_or == 0) {
    copy(shared, row, static_cast<std::size_t>(bytes));
  } else {
    for (std::uint32_t at = 0; at < static_cast<std::uint32_t>(bytes); at += 16)
      copy(shared + (at ^ exclusive_or), row + at, std::size_t{16});
  }
}

/// One box on its way into the shared memory of one CTA.
class Load final : public InFlight {
 public:
  /// `again`: the box was fetched for another CTA of the same multicast.
  Load(Instruction instruction, Cta const& issuer, GlobalBox const& from, SharedRange to,
       bool again, SourceLocation where)
      : InFlight(instruction, issuer, where), box_(from.box), memory_(from.memory) {
    writes = {to};
    cost = {.engine = Cost::Engine::load,
            .bytes = static_cast<double>(box_.bytes()),
            .place = to,
            .again = again};
    brings = Brought{.fetches = from.memory != nullptr};
    if (instruction == Instruction::cp_async_bulk_tensor) brings->swizzle = from.box.map().swizzle;
    if (!again) global = GlobalAccess::read;
  }

  /// For what the launch covers: it reads the box, whenever it lands.
  void note_read() const {
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin == row.end) return;
      memory_->note_read(memory_->offset_of(first_byte(box_, row)),
                         static_cast<std::size_t>(row.end - row.begin));
    });
  }

  void for_each_global(VisitGlobal visit, void* context) const override {
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin != row.end)
        visit(context, first_byte(box_, row), static_cast<std::size_t>(row.end - row.begin));
    });
  }

  void land(Cluster& cluster) override {
    SharedRange const& to = writes[0];
    SharedMemory& shared = cluster.cta(to.cta).shared();
    bool const check = cluster.cta(this->cta).checking();
    std::array<unsigned char, 2> const pattern = fill_pattern(box_.map());
    auto const bytes = static_cast<std::size_t>(box_.row_bytes());
    filled_.resize(bytes);
    auto const put = [](unsigned char* into, unsigned char const* from, std::size_t n) {
      std::memcpy(into, from, n);
    };
    box_.for_each_row([&](TmaRow const& row) {
      unsigned char const* source = first_byte(box_, row);
      if (check && row.begin < row.end) check_written(cluster, row, source);
      if (row.end - row.begin < box_.row_bytes()) {
        for (std::size_t i = 0; i < bytes; ++i) filled_[i] = pattern[i % pattern.size()];
        std::memcpy(filled_.data() + row.begin, source,
                    static_cast<std::size_t>(row.end - row.begin));
        source = filled_.data();
      }
      if (box_.unpacks()) source = unpacked(source);
      std::uint32_t const address =
          to.address + static_cast<std::uint32_t>(row.index * box_.row_pitch());
      for_each_piece(swizzle_of_line(box_.map().swizzle, address), box_.shared_row_bytes(),
                     shared.at(address), source, put);
    });
  }

 private:
  /// A row as shared memory has it: 16 elements at the beginning of each 16 bytes. What follows
  /// them there nobody is to read: ones, of which no element is that.
  unsigned char const* unpacked(unsigned char const* row) {
    constexpr std::size_t unit = 16;
    auto const own = static_cast<std::size_t>(2 * bits(box_.map().dtype));
    unpacked_.assign(static_cast<std::size_t>(box_.shared_row_bytes()), 0xff);
    for (std::size_t i = 0; i * unit < unpacked_.size(); ++i)
      std::memcpy(unpacked_.data() + i * unit, row + i * own, own);
    return unpacked_.data();
  }

  void check_written(Cluster& cluster, TmaRow const& row, unsigned char const* source) const {
    std::size_t const offset = memory_->offset_of(source);
    std::uint8_t const* const shadow = memory_->shadow + offset;
    auto const* const unwritten = static_cast<std::uint8_t const*>(
        std::memchr(shadow, 0, static_cast<std::size_t>(row.end - row.begin)));
    if (unwritten == nullptr) return;
    std::size_t const at = offset + static_cast<std::size_t>(unwritten - shadow);
    int const element = box_.element_of(row.begin + static_cast<int>(unwritten - shadow));
    std::string const place = memory_->place(at);
    cluster.cta(cta).report(
        FindingKind::uninitialized_read, where, {cta, thread / 32, thread % 32}, memory_->name,
        place,
        fmt::format("{} reads {}, element {} of the tensor, which nobody has written",
                    ptx_name(instruction), place, text_of(row, element, box_.map().rank)));
  }

  BoxWalk box_;
  Allocation* memory_;
  std::vector<unsigned char> filled_, unpacked_;
};

/// One box on its way from shared to global memory.
class Store final : public InFlight {
 public:
  Store(Instruction instruction, Cta const& issuer, SharedRange from, GlobalBox const& to,
        std::optional<TmaReduce> reduction, SourceLocation where)
      : InFlight(instruction, issuer, where),
        box_(to.box),
        memory_(to.memory),
        from_(from),
        reduction_(reduction) {
    cost = {
        .engine = Cost::Engine::store, .bytes = static_cast<double>(box_.bytes()), .place = from};
    auto const add = [&](std::uint32_t address, int bytes) {
      auto const n = static_cast<std::uint32_t>(bytes);
      if (!reads.empty() && reads.back().address + reads.back().bytes == address) {
        reads.back().bytes += n;
      } else {
        reads.push_back({from.cta, address, n});
      }
    };
    // Rows outside of the tensor are not read, nor what lies beside a row narrower than
    // its swizzle.
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin == row.end) return;
      std::uint32_t const address = address_of(row);
      if (box_.row_bytes() == box_.row_pitch()) {
        add(address, box_.row_bytes());
        return;
      }
      for (int byte = 0; byte < box_.row_bytes(); byte += 16)
        add(swizzled(box_.map().swizzle, address + static_cast<std::uint32_t>(byte)),
            std::min(16, box_.row_bytes() - byte));
    });
    this->global = reduction ? GlobalAccess::atomic : GlobalAccess::write;
  }

  void for_each_global(VisitGlobal visit, void* context) const override {
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin != row.end) visit(context, first_byte(box_, row), written_bytes(row));
    });
  }

  void read(Cluster& cluster) override {
    SharedMemory& shared = cluster.cta(from_.cta).shared();
    data_.resize(static_cast<std::size_t>(box_.bytes()));
    auto const take = [](unsigned char const* from, unsigned char* into, std::size_t n) {
      std::memcpy(into, from, n);
    };
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin == row.end) return;
      std::uint32_t const address = address_of(row);
      for_each_piece(swizzle_of_line(box_.map().swizzle, address), box_.row_bytes(),
                     static_cast<unsigned char const*>(shared.at(address)),
                     data_.data() + row.index * box_.row_bytes(), take);
    });
  }

  void land(Cluster& cluster) override {
    // sums of floating-point values depend on their order
    if (reduction_) cluster.take_turn(nullptr);
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin == row.end) return;
      unsigned char* const into = first_byte(box_, row);
      unsigned char const* const from = data_.data() + row.index * box_.row_bytes() + row.begin;
      auto const bytes = static_cast<std::size_t>(row.end - row.begin);
      std::size_t const offset = memory_->offset_of(into);
      std::size_t const written = written_bytes(row);
      std::uint8_t* const shadow = memory_->shadow + offset;
      bool const check = cluster.cta(cta).checking();
      if (check && stored_end(row) != row.end) check_beyond(cluster, row, offset);
      if (reduction_) {
        if (check && std::memchr(shadow, 0, bytes) != nullptr) unwritten(cluster, row);
        reduce(*reduction_, box_.map().dtype, into, from,
               written / static_cast<std::size_t>(box_.element_bytes()));
      } else {
        std::memcpy(into, from, written);
        std::memset(shadow, 1, bytes);
      }
      memory_->note_written(offset, bytes);
      if (reduction_) memory_->note_read(offset, bytes);
    });
    cluster.progressed();
  }

 private:
  /// Bytes of global memory from the row's first on that it writes.
  std::size_t written_bytes(TmaRow const& row) const {
    return std::min(static_cast<std::size_t>(stored_end(row) - row.begin),
                    memory_->bytes - memory_->offset_of(first_byte(box_, row)));
  }

  std::uint32_t address_of(TmaRow const& row) const {
    return from_.address + static_cast<std::uint32_t>(row.index * box_.row_pitch());
  }

  /// Fails where what is written beyond the row's last element lies outside of the allocation, or
  /// where somebody has written. `offset`: of the row's first element in the allocation.
  void check_beyond(Cluster& cluster, TmaRow const& row, std::size_t offset) const {
    std::size_t const first = offset + static_cast<std::size_t>(row.end - row.begin);
    std::size_t const end = offset + static_cast<std::size_t>(stored_end(row) - row.begin);
    std::uint8_t const* const shadow = memory_->shadow;
    bool const outside = end > memory_->bytes;
    bool const others = std::any_of(shadow + first, shadow + std::min(end, memory_->bytes),
                                    [](std::uint8_t written) { return written != 0; });
    if (!outside && !others) return;
    std::string const place = memory_->place(first);
    cluster.cta(cta).report(
        FindingKind::out_of_bounds, where, {cta, thread / 32, thread % 32}, memory_->name, place,
        fmt::format(
            "{} writes {} bytes beyond {}, the tensor's last along axis 0, at {}, {}: it clips axis 0 at "
            "multiples of 16 bytes, not at elements",
            ptx_name(instruction), end - first,
            text_of(row, box_.element_of(row.end - 1), box_.map().rank), place,
            outside ? fmt::format("which has {} bytes", memory_->bytes)
                    : "over what was written there before"));
  }

  void unwritten(Cluster& cluster, TmaRow const& row) const {
    cluster.cta(cta).report(
        FindingKind::uninitialized_read, where, {cta, thread / 32, thread % 32}, memory_->name, "",
        fmt::format("{} combines with the row at {} of the tensor in {}, where nobody has written",
                    ptx_name(instruction),
                    text_of(row, box_.element_of(row.begin), box_.map().rank), memory_->name));
  }

  BoxWalk box_;
  Allocation* memory_;
  SharedRange from_;
  std::optional<TmaReduce> reduction_;
  std::vector<unsigned char> data_;
};

/// The box that a tensor instruction names; fails where the map is none of this machine's.
BoxWalk box_of(Cta& cta, Instruction instruction, TensorMap const& map, int rank,
               int const* coordinate, SourceLocation where) {
  std::optional<TensorMapDescription> const description = sim::decode(map);
  if (!description) {
    bool const blank = std::all_of(std::begin(map.bytes), std::end(map.bytes),
                                   [&](unsigned char byte) { return byte == map.bytes[0]; });
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} is given a tensor map that was {}", ptx_name(instruction),
                         blank ? "never encoded" : "not encoded for the simulated machine"));
  }
  if (rank != description->rank) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} is given {} coordinates for a tensor of rank {}",
                         ptx_name(instruction), rank, description->rank));
  }
  std::int64_t const first = std::int64_t{coordinate[0]} * bits(description->dtype) / 8;
  if (first % kRowAlignment != 0) {
    cta.fail(
        FindingKind::misaligned, where, cta.here(),
        fmt::format(
            "{} of a box that begins at coordinate {} of axis 0, which is byte {} of its row: that "
            "must be a multiple of {}",
            ptx_name(instruction), coordinate[0], first, kRowAlignment));
  }
  return {*description, coordinate};
}

/// The same for an instruction that writes the tensor.
BoxWalk box_to_write(Cta& cta, Instruction instruction, TensorMap const& map, int rank,
                     int const* coordinate, SourceLocation where) {
  BoxWalk const box = box_of(cta, instruction, map, rank, coordinate, where);
  if (box.unpacks())
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} to a tensor of {}: the simulated machine loads these, and does not "
                         "store them",
                         ptx_name(instruction), to_string(box.map().dtype)));
  int const* const negative =
      std::find_if(coordinate, coordinate + rank, [](int x) { return x < 0; });
  if (negative != coordinate + rank) {
    cta.fail(
        FindingKind::out_of_bounds, where, cta.here(),
        fmt::format(
            "{} to a box that begins at coordinate {} of axis {}: only loads may begin before the "
            "tensor",
            ptx_name(instruction), *negative, negative - coordinate));
  }
  return box;
}

/// A bulk copy's bytes as a box of one row.
BoxWalk one_row(Cta& cta, Instruction instruction, void const* address, int bytes,
                SourceLocation where) {
  auto const misfit = reinterpret_cast<std::uintptr_t>(address) % kBulkAlignment;
  if (bytes < 0 || bytes % static_cast<int>(kBulkAlignment) != 0) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} of {} bytes: it copies a multiple of {}", ptx_name(instruction), bytes,
                         kBulkAlignment));
  }
  if (misfit != 0) {
    cta.fail(FindingKind::misaligned, where, cta.here(),
             fmt::format("{} at global address {}, {} bytes past a multiple of {}",
                         ptx_name(instruction), address, misfit, kBulkAlignment));
  }
  TensorMapDescription row;
  row.dtype = DType::u8;
  row.rank = 1;
  row.address = address;
  row.extents[0] = bytes;
  row.box[0] = bytes;
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
  auto operation = std::make_unique<Load>(instruction, cta, from, range, again, where);
  operation->completes_on(signalled->rank(), mbarrier,
                          static_cast<std::uint32_t>(from.box.bytes()));
  if (!again && from.memory != nullptr && from.memory->read != nullptr) operation->note_read();
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

void store(Cta& cta, Instruction instruction, BoxWalk const& box, std::uint32_t source,
           std::uint32_t alignment, std::optional<TmaReduce> reduction, SourceLocation where) {
  Cta* const from = cta.target(instruction, source, where);
  if (from == nullptr) return;
  if (from != &cta) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format("{} from the shared memory of CTA {} of the cluster: it stores from its own",
                    ptx_name(instruction), from->rank()));
  }
  check_aligned(cta, instruction, source, alignment, where);
  if (instruction != Instruction::cp_async_bulk)
    check_swizzle(cta, instruction, box, source, where);
  GlobalBox const to = in_global_memory(cta, instruction, box, where);
  count(cta, instruction, where, box, box.bytes());
  check_launches(cta, instruction, reduction ? GlobalAccess::atomic : GlobalAccess::write, to,
                 where);
  SharedRange const range{cta.rank(), source, static_cast<std::uint32_t>(box.shared_bytes())};
  cta.in_flight().add(std::make_unique<Store>(instruction, cta, range, to, reduction, where),
                      cta.current_thread().bulk);
}

}  // namespace

void tma_load(std::uint32_t dst, TensorMap const& map, int rank, int const* coordinate,
              std::uint32_t mbarrier, int ctas, L2Hint, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_tensor;
  if (ctas == 2) check_pair(cta, instruction, where);
  GlobalBox const from = in_global_memory(
      cta, instruction, box_of(cta, instruction, map, rank, coordinate, where), where);
  count(cta, instruction, where, from.box, from.box.bytes());
  load(cta, instruction, from, dst, mbarrier, ctas, kBoxAlignment, where);
}

void tma_load_multicast(std::uint32_t dst, TensorMap const& map, int rank, int const* coordinate,
                        std::uint32_t mbarrier, std::uint16_t cta_mask, int ctas_of_group, L2Hint,
                        SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_tensor;
  if (ctas_of_group == 2) check_pair(cta, instruction, where);
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
  GlobalBox const from = in_global_memory(
      cta, instruction, box_of(cta, instruction, map, rank, coordinate, where), where);
  count(cta, instruction, where, from.box, from.box.bytes() * std::popcount(cta_mask));
  Cta const* const signalled = cta.target(instruction, mbarrier, where);
  if (cta.target(instruction, dst, where) == nullptr || signalled == nullptr) return;
  bool again = false;
  for (int peer = 0; peer < ctas; ++peer) {
    if ((cta_mask >> peer & 1) == 0) continue;
    // Of pairs, in all the even CTA is told, or the odd one.
    int const told = ctas_of_group == 2 ? (peer & ~1) + signalled->rank() % 2 : peer;
    std::uint32_t const tag = static_cast<std::uint32_t>(peer + 1) << kRankShift;
    std::uint32_t const tag_of_told = static_cast<std::uint32_t>(told + 1) << kRankShift;
    load(cta, instruction, from, tag | dst, tag_of_told | mbarrier, ctas_of_group, kBoxAlignment,
         where, again);
    again = true;
  }
}

void tma_store(TensorMap const& map, int rank, int const* coordinate, std::uint32_t src, L2Hint,
               SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_tensor;
  store(cta, instruction, box_to_write(cta, instruction, map, rank, coordinate, where), src,
        kBoxAlignment, std::nullopt, where);
}

void tma_reduce(TensorMap const& map, int rank, int const* coordinate, std::uint32_t src,
                TmaReduce op, L2Hint, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_reduce_async_bulk_tensor;
  BoxWalk const box = box_to_write(cta, instruction, map, rank, coordinate, where);
  DType const type = box.map().dtype;
  if (!can_reduce(op, type)) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format(
            "{}.{} of {}: {}", ptx_name(instruction), to_string(op), to_string(type),
            type == DType::s64
                ? "encode the tensor map for u64, whose sums have the same bits"
                : "it adds f16, bf16, f32, f64, s32, u32 and u64, and takes the least or greatest "
                  "of f16, bf16 and integers of 32 and 64 bits"));
  }
  store(cta, instruction, box, src, kBoxAlignment, op, where);
}

// Caches are not modelled: a prefetch is checked and counted.
void tma_prefetch(TensorMap const& map, int rank, int const* coordinate, L2Hint,
                  SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_prefetch_tensor;
  GlobalBox const box = in_global_memory(
      cta, instruction, box_of(cta, instruction, map, rank, coordinate, where), where);
  count(cta, instruction, where, box.box, 0);
}

void prefetch_tensor_map(TensorMap const& map, SourceLocation where) {
  Cta& cta = current_cta();
  std::optional<TensorMapDescription> const description = sim::decode(map);
  int const origin[5] = {};
  static_cast<void>(box_of(cta, Instruction::prefetch_tensormap, map,
                           description ? description->rank : 0, origin, where));
  cta.note(Instruction::prefetch_tensormap, where);
}

void bulk_load(std::uint32_t dst, void const* src, int bytes, std::uint32_t mbarrier, L2Hint,
               SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk;
  GlobalBox const from =
      in_global_memory(cta, instruction, one_row(cta, instruction, src, bytes, where), where);
  count(cta, instruction, where, from.box, bytes);
  load(cta, instruction, from, dst, mbarrier, 1, kBulkAlignment, where);
}

void bulk_prefetch(void const* src, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk_prefetch;
  GlobalBox const box =
      in_global_memory(cta, instruction, one_row(cta, instruction, src, bytes, where), where);
  count(cta, instruction, where, box.box, 0);
}

void bulk_store(void* dst, std::uint32_t src, int bytes, L2Hint, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::cp_async_bulk;
  store(cta, instruction, one_row(cta, instruction, dst, bytes, where), src, kBulkAlignment,
        std::nullopt, where);
}

}  // namespace tegula::sim
