#include "isa/tma_in_flight.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "isa/tma_reduction.hpp"
#include "machine/cluster.hpp"
#include "machine/cta.hpp"
#include "tegula/io/text.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

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

namespace {

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
        fmt::format("{} reads {}, {}which nobody has written", ptx_name(instruction), place,
                    instruction == Instruction::cp_async_bulk
                        ? ""
                        : fmt::format("element {} of the tensor, ",
                                      text_of(row, element, box_.map().rank))));
  }

  BoxWalk box_;
  Allocation* memory_;
  std::vector<unsigned char> filled_, unpacked_;
};

/// One box on its way from shared to global memory.
class Store final : public InFlight {
 public:
  Store(Instruction instruction, Cta const& issuer, SharedRange from, GlobalBox const& to,
        Written const& does, SourceLocation where)
      : InFlight(instruction, issuer, where),
        box_(to.box),
        memory_(to.memory),
        from_(from),
        reduction_(does.reduction),
        byte_mask_(does.byte_mask) {
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
    this->global = reduction_ ? GlobalAccess::atomic : GlobalAccess::write;
  }

  void for_each_global(VisitGlobal visit, void* context) const override {
    box_.for_each_row([&](TmaRow const& row) {
      if (row.begin == row.end) return;
      unsigned char* const first = first_byte(box_, row);
      for_each_written(row, [&](std::size_t at, std::size_t n) { visit(context, first + at, n); });
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
        if (check) {
          auto const* const none = static_cast<std::uint8_t*>(std::memchr(shadow, 0, bytes));
          if (none != nullptr)
            unwritten(cluster, memory_->offset_of(into) + static_cast<std::size_t>(none - shadow));
        }
        reduce(*reduction_, box_.map().dtype, into, from,
               written / static_cast<std::size_t>(box_.element_bytes()));
      } else {
        for_each_written(row, [&](std::size_t at, std::size_t n) {
          std::memcpy(into + at, from + at, n);
          if (at < bytes) std::memset(shadow + at, 1, std::min(n, bytes - at));
        });
      }
      for_each_written(row, [&](std::size_t at, std::size_t n) {
        if (at < bytes) memory_->note_written(offset + at, std::min(n, bytes - at));
      });
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

  /// Calls f(bytes from the row's first on, bytes) for each run of what it writes of a row.
  template <class F> void for_each_written(TmaRow const& row, F&& f) const {
    std::size_t const end = written_bytes(row);
    if (byte_mask_ == kAllBytes) return f(std::size_t{0}, end);
    auto const writes = [&](std::size_t at) { return (byte_mask_ >> at % 16 & 1) != 0; };
    for (std::size_t at = 0; at < end;) {
      std::size_t run = at;
      while (run < end && writes(run)) ++run;
      if (run != at) f(at, run - at);
      at = run + 1;
    }
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
            "{} writes {} beyond {}, the tensor's last along axis 0, at {}, {}: it clips axis 0 at "
            "multiples of 16 bytes, not at elements",
            ptx_name(instruction), io::counted(end - first, "byte"),
            text_of(row, box_.element_of(row.end - 1), box_.map().rank), place,
            outside ? "which has " + io::counted(memory_->bytes, "byte")
                    : "over what was written there before"));
  }

  void unwritten(Cluster& cluster, std::size_t offset) const {
    std::string const place = memory_->place(offset);
    cluster.cta(cta).report(
        FindingKind::uninitialized_read, where, {cta, thread / 32, thread % 32}, memory_->name,
        place,
        fmt::format("{} combines with {}, where nobody has written: it must hold a value",
                    ptx_name(instruction), place));
  }

  BoxWalk box_;
  Allocation* memory_;
  SharedRange from_;
  std::optional<TmaReduce> reduction_;
  std::uint16_t byte_mask_;
  std::vector<unsigned char> data_;
};

}  // namespace

std::unique_ptr<InFlight> load_in_flight(Instruction instruction, Cta const& issuer,
                                         GlobalBox const& from, SharedRange to, bool again,
                                         SourceLocation where) {
  auto load = std::make_unique<Load>(instruction, issuer, from, to, again, where);
  if (!again && from.memory != nullptr && from.memory->read != nullptr) load->note_read();
  return load;
}

std::unique_ptr<InFlight> store_in_flight(Instruction instruction, Cta const& issuer,
                                          SharedRange from, GlobalBox const& to,
                                          Written const& does, SourceLocation where) {
  return std::make_unique<Store>(instruction, issuer, from, to, does, where);
}

}  // namespace tegula::sim
