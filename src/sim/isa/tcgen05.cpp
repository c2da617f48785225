#include "isa/tcgen05.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>

#include "isa/perform.hpp"
#include "isa/shared_operand.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/sim/arithmetic.hpp"
#include "values/place.hpp"

/// tcgen05.mma and tcgen05.commit. A product is in flight from its issue until somebody has waited
/// for the mbarrier at which a commit after it arrives. Those of one thread land in their order:
/// PTX ISA, "Pipelined tcgen05 Instructions".
namespace tegula::sim {

namespace {

constexpr Instruction kMma = Instruction::tcgen05_mma;
/// Columns of tensor memory that a row of A takes: 32 bytes.
constexpr int kColumnsOfA = kWgmmaRowBytes / 4;

/// The lane of a row of D, or of A, counted from the address's: PTX ISA, "Data path layout
/// organization" (layouts D and F).
int lane_of_row(int m, int row) { return m == 64 ? row / 16 * 32 + row % 16 : row; }

/// The groups of 16 lanes that m rows take from the address on.
std::uint8_t groups_of(int m, TensorAddr address) {
  unsigned const groups = m == 64 ? 0x55u : 0xffu;
  return static_cast<std::uint8_t>(groups << tensor_lane(address) / kTensorLaneGroup);
}

class TensorMma final : public InFlight {
 public:
  TensorMma(Cta& cta, SourceLocation where, MmaSpec const& op, TensorAddr d, std::uint64_t a,
            SharedOperand const& b, bool accumulate)
      : InFlight(kMma, cta, where), op_(op), d_(d), b_(b), accumulate_(accumulate) {
    bool const a_shared = op.operands == MmaOperands::ss;
    shape = static_cast<std::uint32_t>(op.m << 16 | op.n << 7 | op.k);
    cost = {.engine = Cost::Engine::tensor,
            .bytes = 1.0 * kWgmmaRowBytes * (op.n + (a_shared ? op.m : 0)),
            .multiply_adds = 1.0 * op.m * op.n * 16,  // as of 16-bit types: K of 32 bytes
            .accumulates = accumulate};
    if (cta.checking()) append_ranges(b_, cta.rank(), reads);
    TensorRange const result{cta.rank(), groups_of(op.m, d), tensor_column(d), op.n};
    tensor_writes.push_back(result);
    if (accumulate) tensor_reads.push_back(result);
    if (a_shared) {
      a_ = {a, op.a_major == Major::mn, op.m, element_bits(op) / 8};
      if (cta.checking()) append_ranges(a_, cta.rank(), reads);
    } else {
      a_address_ = static_cast<TensorAddr>(a);
      tensor_reads.push_back(
          {cta.rank(), groups_of(op.m, a_address_), tensor_column(a_address_), kColumnsOfA});
    }
  }

  void land(Cluster& cluster) override {
    Cta& own = cluster.cta(cta);
    TensorMemory& memory = own.tensor_memory();
    static thread_local Rows a;
    static thread_local Rows b;
    static thread_local std::vector<std::uint32_t> tile;  // (64, n)
    if (op_.operands == MmaOperands::ss) {
      gather(a_, own.shared(), a.row);
    } else {
      for (int row = 0; row < op_.m; ++row)
        std::memcpy(
            a.row[row],
            memory.at(tensor_lane(a_address_) + lane_of_row(op_.m, row), tensor_column(a_address_)),
            kWgmmaRowBytes);
    }
    gather(b_, own.shared(), b.row);
    tile.resize(static_cast<std::size_t>(kWgmmaM * op_.n));
    std::size_t const row_bytes = 4 * static_cast<std::size_t>(op_.n);
    auto const of_row = [&](int row) {
      return memory.at(tensor_lane(d_) + lane_of_row(op_.m, row), tensor_column(d_));
    };
    for (int first = 0; first < op_.m; first += kWgmmaM) {
      for (int row = 0; accumulate_ && row < kWgmmaM; ++row)
        std::memcpy(tile.data() + row * op_.n, of_row(first + row), row_bytes);
      wgmma_tile(op_, a.row + first, b.row, accumulate_, tile.data());
      for (int row = 0; row < kWgmmaM; ++row)
        std::memcpy(of_row(first + row), tile.data() + row * op_.n, row_bytes);
    }
  }

 private:
  struct Rows {
    alignas(64) std::uint8_t row[256][kWgmmaRowBytes];
  };
  MmaSpec op_;
  TensorAddr d_;
  SharedOperand a_;
  TensorAddr a_address_ = 0;
  SharedOperand b_;
  bool accumulate_;
};

/// The instruction that a descriptor means; ends the cluster where it means none.
MmaSpec decode(Cta& cta, Tcgen05Kind kind, MmaOperands operands, std::uint32_t bits,
               SourceLocation where) {
  auto const invalid = [&](std::string const& why) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("the instruction descriptor {:#010x}: {}", bits, why));
  };
  Tcgen05Instruction const instruction = decode_tcgen05_instruction(kind, operands, bits);
  if (instruction.unknown != 0)
    invalid(fmt::format("bits {:#010x} are none that the simulated machine has for this kind",
                        instruction.unknown));
  try {
    check(instruction.spec);
  } catch (layout_error const& error) {
    invalid(error.what());
  }
  return instruction.spec;
}

/// Whether m rows may begin at the address.
bool check_lanes(Cta& cta, char const* name, int m, TensorAddr address, SourceLocation where) {
  int const lane = tensor_lane(address);
  if (lane == 0 || (m == 64 && lane == kTensorLaneGroup)) return true;
  cta.report(
      FindingKind::invalid_operand, where, cta.here(), "", "",
      fmt::format("tcgen05.mma with {} from lane {} of tensor memory on: {} rows begin at lane "
                  "{}",
                  name, lane, m, m == 64 ? "0 or 16" : "0"));
  return false;
}

void start(Cta& cta, MmaSpec const& op, TensorAddr d, std::uint64_t a, std::uint64_t b_descriptor,
           bool accumulate, SourceLocation where) {
  SharedOperand b{b_descriptor, op.b_major == Major::mn, op.n, element_bits(op) / 8};
  if (!check_matrix(cta, kMma, "B", b_descriptor, b, where)) return;
  if (op.operands == MmaOperands::ss) {
    SharedOperand operand{a, op.a_major == Major::mn, op.m, element_bits(op) / 8};
    if (!check_matrix(cta, kMma, "A", a, operand, where)) return;
    a = operand.bits;
  } else {
    auto const address = static_cast<TensorAddr>(a);
    if (!check_lanes(cta, "A", op.m, address, where) ||
        !check_tensor_columns(cta, kMma, address, kColumnsOfA, where))
      return;
  }
  if (!check_lanes(cta, "D", op.m, d, where) || !check_tensor_columns(cta, kMma, d, op.n, where))
    return;
  if (cta.counting()) {
    cta.observers().worked(
        kMma, where,
        {.fused_multiply_adds = std::int64_t{op.m} * op.n * op.k,
         .shared_bytes = kWgmmaRowBytes * (op.n + (op.operands == MmaOperands::ss ? op.m : 0))});
  }
  cta.in_flight().add(std::make_unique<TensorMma>(cta, where, op, d, a, b, accumulate),
                      cta.current_thread().tensor);
}

/// Arrives at an mbarrier when the thread's products so far have landed.
class TensorCommit final : public InFlight {
 public:
  TensorCommit(Cta const& issuer, SourceLocation where)
      : InFlight(Instruction::tcgen05_commit, issuer, where) {
    covers = issuer.current_thread().tensor.operations();
    cost = {.engine = Cost::Engine::commit};
  }
  void land(Cluster&) override {}
};

void commit(Cta& cta, std::uint32_t address, SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_commit;
  check_tcgen05(cta, instruction, where);
  cta.note(instruction, where);
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  cta.cluster().wait_for_clock();  // meanwhile products that it would cover may be over
  auto arrival = std::make_unique<TensorCommit>(cta, where);
  arrival->arrives_at(cta.rank(), mbarrier->address);
  cta.in_flight().add(std::move(arrival));
}

}  // namespace

bool check_matrix(Cta& cta, Instruction instruction, char const* name, std::uint64_t bits,
                  SharedOperand& operand, SourceLocation where) {
  Tcgen05Operand const decoded = decode_tcgen05_descriptor(bits);
  if (!decoded.valid) {
    report_descriptor(cta, FindingKind::invalid_operand, name, bits,
                      "bits 46 to 48 must be 1, the swizzle (bits 61 to 63) 0, 2, 4 or 6, and what "
                      "is between the fields 0 (a base offset, bits 49 to 51, and swizzles by 32 "
                      "bytes are not simulated)",
                      where);
    return false;
  }
  operand.bits = decoded.as_wgmma;
  if (!check_operand(cta, name, operand, bits, where)) return false;
  if (cta.checking()) check_swizzle(cta, instruction, operand, where);
  return true;
}

void tcgen05_mma(Tcgen05Kind kind, MmaOperands operands, std::uint32_t d, std::uint64_t a,
                 std::uint64_t b_descriptor, std::uint32_t instruction_descriptor, bool accumulate,
                 SourceLocation where) {
  Cta& cta = current_cta();
  check_tcgen05(cta, kMma, where);
  cta.note(kMma, where);
  MmaSpec const op = decode(cta, kind, operands, instruction_descriptor, where);
  start(cta, op, d, a, b_descriptor, accumulate, where);
}

void tcgen05_commit(std::uint32_t mbarrier, SourceLocation where) {
  perform(Instruction::tcgen05_commit, where, [=](Cta& cta) { commit(cta, mbarrier, where); });
}

}  // namespace tegula::sim
