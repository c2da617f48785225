#include "tegula/arch/tcgen05_scaled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "isa/perform.hpp"
#include "isa/tcgen05.hpp"
#include "isa/tensor_containers.hpp"
#include "tegula/arch/tcgen05_scaled_descriptor.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/sim/arithmetic.hpp"

/// tcgen05.mma with block scales, which lie in tensor memory.
namespace tegula::sim {

namespace {

constexpr Instruction kScaledMma = Instruction::tcgen05_mma;
constexpr std::uint8_t kAllLanes = 0xff;

/// The scales of an operand, those of `rows` rows from the address on; in `parts` parts, each of
/// which has lanes of its own and is counted from its first row.
struct Scales {
  TensorAddr address;
  int rows;
  int id;  ///< their first byte
  int parts = 1;

  TensorRange range(int rank) const {
    return {rank, kAllLanes, tensor_column(address), scale_columns(rows)};
  }
};

/// A: in shared memory, or from an address of tensor memory on.
struct OperandA {
  SharedOperand shared;
  TensorAddr address = 0;
};

class TensorScaledMma final : public InFlight {
 public:
  TensorScaledMma(Cta& cta, SourceLocation where, ScaledMmaSpec const& op, TensorAddr d,
                  OperandA const& a, SharedOperand const& b, Scales const& scale_a,
                  Scales const& scale_b, bool accumulate, Collector collector)
      : InFlight(kScaledMma, cta, where),
        op_(op),
        d_(d),
        a_(a),
        b_(b),
        scale_a_(scale_a),
        scale_b_(scale_b),
        accumulate_(accumulate),
        collector_(collector) {
    shape = static_cast<std::uint32_t>(op.m << 16 | op.n << 7 | extent_k(op));
    cost = {.engine = Cost::Engine::tensor,
            // Of a pair each tensor core does half, at the same time.
            .bytes = 1.0 * kWgmmaRowBytes * (op.n + (op.a_in_tensor_memory ? 0 : op.m)) / op.ctas,
            .multiply_adds = 1.0 * op.m * op.n * 16 / op.ctas,  // as of 16-bit types: K of 32 bytes
            .accumulates = accumulate};
    for (Cta const* const of : computing(cta, op.ctas)) ranks_.push_back(of->rank());
    std::sort(ranks_.begin(), ranks_.end());
    for (int const rank : ranks_) {
      if (cta.checking()) append_ranges(b_, rank, reads);
      if (op.a_in_tensor_memory)
        tensor_reads.push_back({rank, kAllLanes, tensor_column(a_.address), kColumnsOfA});
      else if (cta.checking())
        append_ranges(a_.shared, rank, reads);
      TensorRange const result{rank, kAllLanes, tensor_column(d), op.n / column_parts(op)};
      tensor_writes.push_back(result);
      if (accumulate) tensor_reads.push_back(result);
      tensor_reads.push_back(scale_a_.range(rank));
      tensor_reads.push_back(scale_b_.range(rank));
    }
  }

  void land(Cluster& cluster) override {
    static thread_local Rows b;
    std::uint8_t(*to)[kWgmmaRowBytes] = b.row;
    for (int const rank : ranks_) {
      gather(b_, cluster.cta(rank).shared(), to);
      to += b_.extent;
    }
    for (int const rank : ranks_) multiply(cluster.cta(rank), b);
  }

 private:
  struct Rows {
    alignas(64) std::uint8_t row[256][kWgmmaRowBytes];
    std::uint32_t scales[256];
  };

  /// One CTA's rows of D. Where its columns lie in parts, lanes 64 to 127 have the second: PTX ISA,
  /// "Data path layout organization", layout B.
  void multiply(Cta& own, Rows& b) const {
    TensorMemory& memory = own.tensor_memory();
    static thread_local Rows a;
    static thread_local std::vector<std::uint32_t> tile;  // (rows, columns of a part)
    int const parts = column_parts(op_);
    ScaledMmaSpec op = op_;
    op.m /= op.ctas, op.n /= parts, op.ctas = 1;
    if (op.a_in_tensor_memory) {
      if (parts > 1) check_copies_of_a(own, *this, a_.address);
      for (int row = 0; row < op.m; ++row)
        gather_a(op.kind == ScaledMmaKind::mxf8f6f4 ? bits(op.a) : 8,
                 memory.at(row, tensor_column(a_.address)), a.row[row]);
    } else {
      gather(a_.shared, own.shared(), a.row);
    }
    use_collector(own, *this, collector_, 0, a.row, op.m);
    read_scales(own, "A", scale_a_, a);
    read_scales(own, "B", scale_b_, b);
    tile.resize(static_cast<std::size_t>(op.m * op.n));
    std::size_t const row_bytes = 4 * static_cast<std::size_t>(op.n);
    for (int part = 0; part < parts; ++part) {
      auto const of_row = [&](int row) {
        return memory.at(part * kTensorLanes / parts + row, tensor_column(d_));
      };
      for (int row = 0; accumulate_ && row < op.m; ++row)
        std::memcpy(tile.data() + row * op.n, of_row(row), row_bytes);
      scaled_mma_tile(op, a.row, a.scales, b.row + part * op.n, b.scales + part * op.n, accumulate_,
                      tile.data());
      for (int row = 0; row < op.m; ++row)
        std::memcpy(of_row(row), tile.data() + row * op.n, row_bytes);
    }
  }

  /// A quarter of the tensor core reads its own copy of the scales; which results come of which is
  /// not published, so the copies of a part must agree.
  void read_scales(Cta& own, char const* name, Scales const& of, Rows& into) const {
    std::uint32_t const mask = 0xffffffffu >> (32 - 8 * scales(op_));
    int const quarters = 4 / of.parts;
    for (int i = 0; i < of.parts * of.rows; ++i) {
      int const first = i / of.rows * quarters, row = i % of.rows;
      int const column = tensor_column(of.address) + scale_column(row);
      auto const copy = [&](int quarter) {
        return *own.tensor_memory().at(scale_lane(quarter, row), column) >> 8 * of.id & mask;
      };
      into.scales[i] = copy(first);
      for (int quarter = first + 1; quarter < first + quarters; ++quarter) {
        if (copy(quarter) == copy(first)) continue;
        std::string const place = own.tensor_place(scale_lane(quarter, row), column);
        own.report(
            FindingKind::invalid_operand, where, {cta, thread / 32, thread % 32}, "", place,
            fmt::format("tcgen05.mma with scales of {} of which {} has {:#x} for row {}, and "
                        "lane {} {:#x}: {}",
                        name, place, copy(quarter), i, scale_lane(first, row), copy(first),
                        of.parts == 1
                            ? "the four quarters of the lanes must have the same, as a "
                              "tcgen05.cp.32x128b.warpx4 writes them"
                            : "lanes 0 to 63 must have those of the lower half of B's rows "
                              "twice, and lanes 64 to 127 those of the upper half, as a "
                              "tcgen05.cp.64x128b.warpx2::01_23 writes them"));
        return;
      }
    }
  }

  ScaledMmaSpec op_;
  TensorAddr d_;
  OperandA a_;
  SharedOperand b_;
  Scales scale_a_;
  Scales scale_b_;
  bool accumulate_;
  Collector collector_;
  std::vector<int> ranks_;  ///< of the CTAs that compute, the even one first
};

/// The instruction that a descriptor means; ends the cluster where it means none.
Tcgen05ScaledInstruction decode(Cta& cta, ScaledMmaKind kind, MmaOperands operands, int block,
                                int ctas, std::uint32_t bits, SourceLocation where) {
  auto const invalid = [&](std::string const& why) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("the instruction descriptor {:#010x}: {}", bits, why));
  };
  Tcgen05ScaledInstruction const instruction =
      decode_tcgen05_scaled(kind, block, bits, ctas, operands == MmaOperands::ts);
  if (instruction.unknown != 0)
    invalid(fmt::format("bits {:#010x} are none that the simulated machine has for kind {}{}",
                        instruction.unknown, to_string(kind), sparsity_text(instruction.unknown)));
  try {
    check(instruction.spec);
  } catch (layout_error const& error) {
    invalid(error.what());
  }
  for (int const id : {instruction.ids.a, instruction.ids.b}) {
    if (id % scales(instruction.spec) != 0)
      invalid(fmt::format("a row's {} scales cannot begin at byte {} of a column",
                          scales(instruction.spec), id));
  }
  return instruction;
}

/// Reports what lies at another lane than 0, or beyond the columns that are allocated.
bool check_place(Cta& cta, char const* name, int ctas, TensorAddr address, int columns,
                 SourceLocation where) {
  if (tensor_lane(address) == 0)
    return check_tensor_columns(cta, kScaledMma, ctas, address, columns, where);
  cta.report(
      FindingKind::invalid_operand, where, cta.here(), "", "",
      fmt::format("tcgen05.mma with {} from lane {} of tensor memory on: it begins at lane 0", name,
                  tensor_lane(address)));
  return false;
}

}  // namespace

void tcgen05_mma_scaled(ScaledMmaKind kind, MmaOperands operands, int block, int ctas,
                        Collector collector, std::uint32_t d, std::uint64_t a_operand,
                        std::uint64_t b_descriptor, std::uint32_t instruction_descriptor,
                        std::uint32_t scale_a, std::uint32_t scale_b, bool accumulate,
                        SourceLocation where) {
  Cta& cta = current_cta();
  check_tcgen05(cta, kScaledMma, ctas, where);
  cta.note(kScaledMma, where);
  auto const [op, ids, unknown] =
      decode(cta, kind, operands, block, ctas, instruction_descriptor, where);
  int const rows = op.m / ctas;
  int const parts = column_parts(op), columns = op.n / parts;
  OperandA a{{.mn_major = op.a_major == Major::mn, .extent = rows, .element_bytes = 1},
             static_cast<TensorAddr>(a_operand)};
  SharedOperand b{.mn_major = op.b_major == Major::mn, .extent = op.n / ctas, .element_bytes = 1};
  Scales const of_a{scale_a, rows, ids.a}, of_b{scale_b, columns, ids.b, parts};
  if (!check_pair(cta, kScaledMma, ctas, where)) return;
  bool const a_fits = op.a_in_tensor_memory
                          ? check_place(cta, "A", ctas, a.address, kColumnsOfA, where)
                          : check_matrix(cta, kScaledMma, "A", a_operand, a.shared, where, ctas);
  if (!a_fits || !check_matrix(cta, kScaledMma, "B", b_descriptor, b, where, ctas) ||
      !check_place(cta, "scales of A", ctas, scale_a, scale_columns(rows), where) ||
      !check_place(cta, "scales of B", ctas, scale_b, scale_columns(columns), where) ||
      !check_place(cta, "D", ctas, d, columns, where))
    return;
  if (cta.counting()) {
    cta.observers().worked(
        kScaledMma, where,
        {.fused_multiply_adds = std::int64_t{op.m} * op.n * extent_k(op),
         .shared_bytes = kWgmmaRowBytes * (op.n + (op.a_in_tensor_memory ? 0 : op.m))});
  }
  cta.in_flight().add(
      std::make_unique<TensorScaledMma>(cta, where, op, d, a, b, of_a, of_b, accumulate, collector),
      cta.current_thread().tensor);
}

}  // namespace tegula::sim
