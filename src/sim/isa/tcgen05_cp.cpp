#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "isa/perform.hpp"
#include "isa/tcgen05.hpp"
#include "tegula/arch/tensor_copy_shape.hpp"

/// tcgen05.cp: from shared to tensor memory. In flight until somebody has waited for the mbarrier
/// at which a tcgen05.commit after it arrives; the issuer's products after it wait for it.
namespace tegula::sim {

namespace {

constexpr Instruction kCopy = Instruction::tcgen05_cp;

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
  TensorCopy(Cta& cta, SourceLocation where, TensorCopyShape shape, int ctas, TensorAddr to,
             SharedOperand const& from)
      : InFlight(kCopy, cta, where), copies_(shape), to_(to), from_(from) {
    double const bytes = 1.0 * from.extent * from.row_bytes;
    cost = {.engine = Cost::Engine::tensor, .bytes = bytes};
    std::uint8_t const groups = groups_of(shape, tensor_lane(to));
    for (Cta const* const of : computing(cta, ctas)) {
      ranks_.push_back(of->rank());
      if (cta.checking()) append_ranges(from_, of->rank(), reads);
      tensor_writes.push_back({of->rank(), groups, tensor_column(to), columns_of(shape)});
    }
  }

  void land(Cluster& cluster) override {
    for (int const rank : ranks_) land_in(cluster.cta(rank));
  }

 private:
  void land_in(Cta& own) const {
    for_each_piece(from_, [&](int row, int piece, std::uint32_t address) {
      for (int lane = 0; lane < kTensorLanes - tensor_lane(to_); ++lane) {
        if (row_of_lane(copies_, lane) != row) continue;
        std::memcpy(own.tensor_memory().at(tensor_lane(to_) + lane, tensor_column(to_) + 4 * piece),
                    own.shared().at(address), 16);
      }
    });
  }

  TensorCopyShape copies_;
  TensorAddr to_;
  SharedOperand from_;
  std::vector<int> ranks_;  ///< of the CTAs that copy
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

void copy(Cta& cta, TensorCopyShape shape, int ctas, TensorAddr to, std::uint64_t descriptor,
          SourceLocation where) {
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
  cta.in_flight().add(std::make_unique<TensorCopy>(cta, where, shape, ctas, to, from),
                      cta.current_thread().tensor);
}

}  // namespace

void tcgen05_cp(TensorCopyShape shape, int ctas, std::uint32_t to, std::uint64_t descriptor,
                SourceLocation where) {
  perform(kCopy, where, [=](Cta& cta) { copy(cta, shape, ctas, to, descriptor, where); });
}

}  // namespace tegula::sim
