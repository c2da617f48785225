#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "isa/perform.hpp"
#include "isa/tcgen05.hpp"
#include "isa/tensor_containers.hpp"
#include "tegula/arch/tensor_copy_shape.hpp"

/// tcgen05.cp: from shared to tensor memory, and tcgen05.shift, within it. In flight until somebody
/// has waited for the mbarrier at which a tcgen05.commit after it arrives; the issuer's products
/// after it wait for it.
namespace tegula::sim {

namespace {

constexpr Instruction kCopy = Instruction::tcgen05_cp;
constexpr Instruction kShift = Instruction::tcgen05_shift;
/// A shift moves rows of 32 bytes, within each quarter of the lanes.
constexpr int kShiftedColumns = 8, kQuarter = 32;

/// The groups of 16 lanes that are written from a lane on. Of .4x256b, whose rows are single lanes:
/// those that these are in.
std::uint8_t groups_of(TensorCopyShape shape, int lane) {
  unsigned groups = 0;
  for (int i = 0; i < kTensorLanes - lane; ++i)
    groups |= row_of_lane(shape, i) < 0 ? 0u : 1u << (lane + i) / kTensorLaneGroup;
  return static_cast<std::uint8_t>(groups);
}

class TensorCopy final : public InFlight {
 public:
  TensorCopy(Cta& cta, SourceLocation where, TensorCopyShape copies, TensorCopyFormat format,
             int ctas, TensorAddr to, SharedOperand const& from)
      : InFlight(kCopy, cta, where), copies_(copies), format_(format), to_(to), from_(from) {
    shape = copies == TensorCopyShape::rows4_bits256 ? kCopyOfFourRows : 0;
    double const bytes = 1.0 * from.extent * from.row_bytes;
    cost = {.engine = Cost::Engine::tensor, .bytes = bytes};
    std::uint8_t const groups = groups_of(copies, tensor_lane(to));
    for (Cta const* const of : computing(cta, ctas)) {
      ranks_.push_back(of->rank());
      if (cta.checking()) append_reads(of->rank());
      tensor_writes.push_back({of->rank(), groups, tensor_column(to), columns_of(copies)});
    }
  }

  void land(Cluster& cluster) override {
    for (int const rank : ranks_) land_in(cluster.cta(rank));
  }

 private:
  /// The padding of packed elements is not read.
  void append_reads(int rank) {
    if (format_ == TensorCopyFormat::same) return append_ranges(from_, rank, reads);
    auto const bytes = static_cast<std::uint32_t>(bytes_read_of(format_));
    for_each_piece(from_, [&](int, int, std::uint32_t address) {
      reads.push_back({rank, address, bytes});
    });
  }

  void land_in(Cta& own) const {
    unsigned char bytes[16];
    for_each_piece(from_, [&](int row, int piece, std::uint32_t address) {
      if (format_ == TensorCopyFormat::same)
        std::memcpy(bytes, own.shared().at(address), 16);
      else
        to_containers(bytes_read_of(format_) / 2, own.shared().at(address), bytes);
      for (int lane = 0; lane < kTensorLanes - tensor_lane(to_); ++lane) {
        if (row_of_lane(copies_, lane) != row) continue;
        std::memcpy(own.tensor_memory().at(tensor_lane(to_) + lane, tensor_column(to_) + 4 * piece),
                    bytes, 16);
      }
    });
  }

  TensorCopyShape copies_;
  TensorCopyFormat format_;
  TensorAddr to_;
  SharedOperand from_;
  std::vector<int> ranks_;  ///< of the CTAs that copy
};

class TensorShift final : public InFlight {
 public:
  TensorShift(Cta& cta, SourceLocation where, int ctas, TensorAddr at)
      : InFlight(kShift, cta, where), column_(tensor_column(at)) {
    cost = {.engine = Cost::Engine::tensor, .bytes = 4.0 * kTensorLanes * kShiftedColumns};
    for (Cta const* const of : computing(cta, ctas)) {
      ranks_.push_back(of->rank());
      TensorRange const rows{of->rank(), 0xff, column_, kShiftedColumns};
      tensor_reads.push_back(rows);
      tensor_writes.push_back(rows);
    }
  }

  void land(Cluster& cluster) override {
    for (int const rank : ranks_) {
      TensorMemory& memory = cluster.cta(rank).tensor_memory();
      for (int lane = 0; lane < kTensorLanes; ++lane)
        if (lane % kQuarter + 1 < kQuarter)
          std::memcpy(memory.at(lane, column_), memory.at(lane + 1, column_), 4 * kShiftedColumns);
    }
  }

 private:
  int column_;
  std::vector<int> ranks_;  ///< of the CTAs that shift
};

/// Whether the rows may begin at the lane.
bool check_lane(Cta& cta, TensorCopyShape shape, TensorAddr to, SourceLocation where) {
  bool const single = shape == TensorCopyShape::rows4_bits256;
  int const lane = tensor_lane(to);
  if (lane == 0 || (single && lane < 32)) return true;
  cta.report(FindingKind::invalid_operand, where, cta.here(), "", "",
             fmt::format("tcgen05.cp to lane {} of tensor memory: its rows begin at lane {}", lane,
                         single ? "0 to 31" : "0"));
  return false;
}

void copy(Cta& cta, TensorCopyShape shape, TensorCopyFormat format, int ctas, TensorAddr to,
          std::uint64_t descriptor, SourceLocation where) {
  check_tcgen05(cta, kCopy, ctas, where);
  cta.note(kCopy, where);
  SharedOperand from{
      .extent = rows_of(shape), .element_bytes = 1, .row_bytes = 4 * columns_of(shape)};
  if (!check_pair(cta, kCopy, ctas, where) ||
      !check_matrix(cta, kCopy, "the source", descriptor, from, where, ctas) ||
      !check_lane(cta, shape, to, where) ||
      !check_tensor_columns(cta, kCopy, ctas, to, columns_of(shape), where))
    return;
  if (cta.counting())
    cta.observers().worked(kCopy, where, {.shared_bytes = from.extent * from.row_bytes});
  cta.in_flight().add(std::make_unique<TensorCopy>(cta, where, shape, format, ctas, to, from),
                      cta.current_thread().tensor);
}

void shift(Cta& cta, int ctas, TensorAddr at, SourceLocation where) {
  check_tcgen05(cta, kShift, ctas, where);
  cta.note(kShift, where);
  if (!check_pair(cta, kShift, ctas, where)) return;
  if (tensor_lane(at) != 0) {
    cta.report(FindingKind::invalid_operand, where, cta.here(), "", "",
               fmt::format("tcgen05.shift from lane {} of tensor memory: all four quarters are "
                           "shifted, from lane 0 on",
                           tensor_lane(at)));
    return;
  }
  if (!check_tensor_columns(cta, kShift, ctas, at, kShiftedColumns, where)) return;
  if (cta.counting()) cta.observers().worked(kShift, where, {});
  cta.in_flight().add(std::make_unique<TensorShift>(cta, where, ctas, at),
                      cta.current_thread().tensor);
}

}  // namespace

void tcgen05_cp(TensorCopyShape shape, TensorCopyFormat format, int ctas, std::uint32_t to,
                std::uint64_t descriptor, SourceLocation where) {
  perform(kCopy, where, [=](Cta& cta) { copy(cta, shape, format, ctas, to, descriptor, where); });
}

void tcgen05_shift_down(int ctas, std::uint32_t at, SourceLocation where) {
  perform(kShift, where, [=](Cta& cta) { shift(cta, ctas, at, where); });
}

}  // namespace tegula::sim
