#include "isa/tcgen05.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "isa/perform.hpp"
#include "isa/shared_operand.hpp"
#include "isa/tensor_containers.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/sim/arithmetic.hpp"
#include "values/place.hpp"

/// tcgen05.mma and tcgen05.commit. A product is in flight from its issue until somebody has waited
/// for the mbarrier at which a commit after it arrives. Those of one thread land in their order:
/// PTX ISA, "Pipelined tcgen05 Instructions".
namespace tegula::sim {

namespace {

constexpr Instruction kMma = Instruction::tcgen05_mma;

/// Where the rows of D, or of A, lie, counted from the address's lane: PTX ISA, "Data path layout
/// organization" (of one CTA layouts D and F, weight-stationary E and G; of a pair A and B).
struct RowPlaces {
  explicit RowPlaces(MmaSpec const& op)
      : ctas(op.ctas),
        m(op.m),
        n(op.n),
        parts(column_parts(op)),
        spread(op.ctas == 1 && op.m == 64 && !op.weight_stationary) {}

  int ctas, m, n;
  int parts;    ///< of the columns, each in lanes of its own
  bool spread;  ///< 16 rows in each quarter of the lanes

  int rows() const { return m / ctas; }  ///< in each CTA
  int columns() const { return n / parts; }
  int lane(int row, int part = 0) const {
    return spread ? row / 16 * 32 + row % 16 : row + part * kTensorLanes / parts;
  }
  /// The groups of 16 lanes that they take from the address on.
  std::uint8_t groups(TensorAddr address) const {
    unsigned const groups = spread ? 0x55u : 0xffu;
    return static_cast<std::uint8_t>(groups << tensor_lane(address) / kTensorLaneGroup);
  }
  /// The lane at which they begin.
  bool begin_at(int lane) const { return lane == 0 || (spread && lane == kTensorLaneGroup); }
};

/// Lanes of the CTAs of an instruction that it leaves as they are, as bits.
class LanesLeft {
 public:
  LanesLeft(std::uint32_t const* words, int ctas) {
    if (words != nullptr) std::copy_n(words, 4 * ctas, words_.begin());
  }
  bool has(int cta, int lane) const {
    return (words_[static_cast<std::size_t>(4 * cta + lane / 32)] >> lane % 32 & 1) != 0;
  }
  /// The groups of 16 lanes of a CTA all of which it leaves.
  std::uint8_t groups(int cta) const {
    unsigned groups = 0;
    for (int i = 0; i < kTensorLanes / kTensorLaneGroup; ++i) {
      std::uint32_t const half = words_[static_cast<std::size_t>(4 * cta + i / 2)] >> 16 * (i % 2);
      if ((half & 0xffff) == 0xffff) groups |= 1u << i;
    }
    return static_cast<std::uint8_t>(groups);
  }

 private:
  std::array<std::uint32_t, 8> words_{};
};

class TensorMma final : public InFlight {
 public:
  TensorMma(Cta& cta, SourceLocation where, MmaSpec const& op, TensorAddr d, std::uint64_t a,
            SharedOperand const& b, bool accumulate, Tcgen05Form const& form)
      : InFlight(kMma, cta, where),
        op_(op),
        places_(op),
        d_(d),
        b_(b),
        accumulate_(accumulate),
        scale_input_d_(form.scale_input_d),
        zero_columns_(form.zero_columns),
        collector_(form.collector),
        buffer_(op.weight_stationary ? 1 + form.collector_buffer : 0),
        left_(form.disabled_lanes, op.ctas) {
    bool const a_shared = op.operands == MmaOperands::ss;
    shape = static_cast<std::uint32_t>(op.weight_stationary ? 1 << 25 : 0) |
            static_cast<std::uint32_t>(op.m << 16 | op.n << 7 | op.k);
    // Of a pair each tensor core does half, at the same time.
    cost = {.engine = Cost::Engine::tensor,
            .bytes = 1.0 * kWgmmaRowBytes * (op.n + (a_shared ? op.m : 0)) / op.ctas,
            .multiply_adds = 1.0 * op.m * op.n * 16 / op.ctas,  // as of 16-bit types: K of 32 bytes
            .accumulates = accumulate};
    if (a_shared) {
      a_ = {a, op.a_major == Major::mn, op.m / op.ctas, element_bits(op) / 8};
    } else {
      a_address_ = static_cast<TensorAddr>(a);
    }
    for (int i = 0; i < op.ctas; ++i) {
      int const rank = first_cta() + i;
      if (cta.checking()) append_ranges(b_, rank, reads);
      if (cta.checking() && a_shared) append_ranges(a_, rank, reads);
      auto const groups = static_cast<std::uint8_t>(places_.groups(d) & ~left_.groups(i));
      TensorRange const result{rank, groups, tensor_column(d), places_.columns()};
      tensor_writes.push_back(result);
      if (accumulate) tensor_reads.push_back(result);
      if (!a_shared)
        tensor_reads.push_back(
            {rank, places_.groups(a_address_), tensor_column(a_address_), kColumnsOfA});
    }
  }

  void land(Cluster& cluster) override {
    static thread_local Rows a;
    static thread_local Rows b;
    for (int i = 0; i < op_.ctas; ++i)
      gather(b_, cluster.cta(first_cta() + i).shared(), b.row + i * op_.n / op_.ctas);
    if (op_.weight_stationary)
      use_collector(cluster.cta(cta), *this, collector_, buffer_, b.row, op_.n);
    for (int column = 0; zero_columns_ != 0 && column < op_.n; ++column)
      if (is_zero_column(zero_columns_, column / places_.columns(), column % places_.columns()))
        std::memset(b.row[column], 0, kWgmmaRowBytes);
    for (int i = 0; i < op_.ctas; ++i) {
      Cta& of = cluster.cta(first_cta() + i);
      if (op_.operands == MmaOperands::ss) gather(a_, of.shared(), a.row);
      if (op_.operands == MmaOperands::ts && op_.ctas == 2 && places_.parts > 1)
        check_copies_of_a(of, *this, a_address_);
      for (int part = 0; part < places_.parts; ++part) {
        for (int row = 0; op_.operands == MmaOperands::ts && row < places_.rows(); ++row)
          gather_a(bits(op_.a),
                   of.tensor_memory().at(tensor_lane(a_address_) + places_.lane(row, part),
                                         tensor_column(a_address_)),
                   a.row[row]);
        if (!op_.weight_stationary && part == 0)
          use_collector(of, *this, collector_, buffer_, a.row, places_.rows());
        for (int first = 0; first < places_.rows(); first += kWgmmaM)
          multiply(of.tensor_memory(), i, part, first, a.row + first,
                   b.row + part * places_.columns());
      }
    }
  }

 private:
  struct Rows {
    alignas(64) std::uint8_t row[256][kWgmmaRowBytes];
  };
  /// The rank of the even CTA, or of the only one.
  int first_cta() const { return op_.ctas == 2 ? cta & ~1 : cta; }

  /// At most 64 rows of D, from `first` on of those in a CTA's tensor memory, and the columns of a
  /// part.
  void multiply(TensorMemory& memory, int of_pair, int part, int first,
                std::uint8_t const (*a)[kWgmmaRowBytes],
                std::uint8_t const (*b)[kWgmmaRowBytes]) const {
    static thread_local std::vector<std::uint32_t> tile;  // (64, columns)
    MmaSpec op = op_;
    op.n = places_.columns();
    tile.resize(static_cast<std::size_t>(kWgmmaM * op.n));
    // Calls f(row of the tile, in tensor memory) for each row that is not left as it is.
    auto const for_each_row = [&](auto const& f) {
      for (int row = 0; row < std::min(kWgmmaM, places_.rows() - first); ++row) {
        int const lane = tensor_lane(d_) + places_.lane(first + row, part);
        if (!left_.has(of_pair, lane))
          f(tile.data() + row * op.n, memory.at(lane, tensor_column(d_)));
      }
    };
    std::size_t const bytes = 4 * static_cast<std::size_t>(op.n);
    if (accumulate_)
      for_each_row([&](void* here, void const* there) { std::memcpy(here, there, bytes); });
    wgmma_tile(op, a, b, accumulate_, tile.data(), scale_input_d_);
    for_each_row([&](void const* here, void* there) { std::memcpy(there, here, bytes); });
  }

  MmaSpec op_;
  RowPlaces places_;
  TensorAddr d_;
  SharedOperand a_;
  TensorAddr a_address_ = 0;
  SharedOperand b_;
  bool accumulate_;
  int scale_input_d_;
  std::uint64_t zero_columns_;
  Collector collector_;
  int buffer_;  ///< of TensorMemory::collectors
  LanesLeft left_;
};

/// The instruction that a descriptor means; ends the cluster where it means none.
MmaSpec decode(Cta& cta, Tcgen05Kind kind, Tcgen05Form const& form, std::uint32_t bits,
               SourceLocation where) {
  auto const invalid = [&](std::string const& why) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("the instruction descriptor {:#010x}: {}", bits, why));
  };
  Tcgen05Instruction const instruction = decode_tcgen05_instruction(kind, form, bits);
  if (instruction.unknown != 0)
    invalid(fmt::format("bits {:#010x} are none that the simulated machine has for this kind{}",
                        instruction.unknown, sparsity_text(instruction.unknown)));
  try {
    check(instruction.spec);
  } catch (layout_error const& error) {
    invalid(error.what());
  }
  return instruction.spec;
}

/// Whether the rows may begin at the address.
bool check_lanes(Cta& cta, char const* name, RowPlaces const& places, TensorAddr address,
                 SourceLocation where) {
  int const lane = tensor_lane(address);
  if (places.begin_at(lane)) return true;
  cta.report(
      FindingKind::invalid_operand, where, cta.here(), "", "",
      fmt::format("tcgen05.mma with {} from lane {} of tensor memory on: {} rows begin at lane "
                  "{}",
                  name, lane, places.m, places.begin_at(kTensorLaneGroup) ? "0 or 16" : "0"));
  return false;
}

/// Whether a mask of zero columns is one: of which nobody says what it means is refused.
bool check_zero_columns(Cta& cta, MmaSpec const& op, std::uint64_t bits, SourceLocation where) {
  constexpr std::uint64_t reserved = std::uint64_t{7} << 36 | std::uint64_t{3} << 62,
                          shift = std::uint64_t{63} << 56;
  auto const invalid = [&](std::string const& why) {
    cta.report(FindingKind::invalid_operand, where, cta.here(), "", "",
               fmt::format("the zero-column mask {:#018x}: {}", bits, why));
    return false;
  };
  if ((bits & reserved) != 0) return invalid("bits 36 to 38, 62 and 63 must be 0");
  if ((bits & shift) != 0) return invalid("the simulated machine shifts no columns: bits 56 to 61");
  for (int part = 0; part < column_parts(op); ++part) {
    int const first = static_cast<int>(bits >> ((bits >> (32 + part) & 1) != 0 ? 40 : 48) & 255);
    if (static_cast<int>(bits >> 8 * part & 255) > first)
      return invalid(fmt::format("part {} leaves out {} of a run of {}", part,
                                 io::counted(bits >> 8 * part & 255, "column"), first + 1));
  }
  return true;
}

void start(Cta& cta, MmaSpec const& op, TensorAddr d, std::uint64_t a, std::uint64_t b_descriptor,
           bool accumulate, Tcgen05Form const& form, SourceLocation where) {
  SharedOperand b{b_descriptor, op.b_major == Major::mn, op.n / op.ctas, element_bits(op) / 8};
  RowPlaces const places(op);
  if (!check_pair(cta, kMma, op.ctas, where)) return;
  if (form.zero_columns != 0 && !check_zero_columns(cta, op, form.zero_columns, where)) return;
  if (!check_matrix(cta, kMma, "B", b_descriptor, b, where, op.ctas)) return;
  if (op.operands == MmaOperands::ss) {
    SharedOperand operand{a, op.a_major == Major::mn, places.rows(), element_bits(op) / 8};
    if (!check_matrix(cta, kMma, "A", a, operand, where, op.ctas)) return;
    a = operand.bits;
  } else {
    auto const address = static_cast<TensorAddr>(a);
    if (!check_lanes(cta, "A", places, address, where) ||
        !check_tensor_columns(cta, kMma, op.ctas, address, kColumnsOfA, where))
      return;
  }
  if (!check_lanes(cta, "D", places, d, where) ||
      !check_tensor_columns(cta, kMma, op.ctas, d, places.columns(), where))
    return;
  if (cta.counting()) {
    cta.observers().worked(
        kMma, where,
        {.fused_multiply_adds = std::int64_t{op.m} * op.n * op.k,
         .shared_bytes = kWgmmaRowBytes * (op.n + (op.operands == MmaOperands::ss ? op.m : 0))});
  }
  cta.in_flight().add(std::make_unique<TensorMma>(cta, where, op, d, a, b, accumulate, form),
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

void commit(Cta& cta, std::uint32_t address, int ctas, std::uint16_t cta_mask,
            SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_commit;
  check_tcgen05(cta, instruction, ctas, where);
  cta.note(instruction, where);
  if (cta_mask >> cta.cluster().ctas() != 0)
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("tcgen05.commit to the CTAs of mask {:#x} in a cluster of {}: each bit "
                         "names one of its CTAs",
                         cta_mask, cta.cluster().ctas()));
  cta.own_address(instruction, address, where);
  cta.cluster().wait_for_clock();  // meanwhile products that it would cover may be over
  unsigned const at = cta_mask != 0 ? cta_mask : 1u << cta.rank();
  for (int rank = 0; rank < cta.cluster().ctas(); ++rank) {
    if ((at >> rank & 1) == 0) continue;
    std::uint32_t there = static_cast<std::uint32_t>(rank + 1) << kRankShift | address;
    Cta* const signalled = cta.target(instruction, there, where);
    if (signalled == nullptr) continue;
    MbarrierState const* const mbarrier = signalled->live_mbarrier(instruction, there, where);
    if (mbarrier == nullptr) continue;
    auto arrival = std::make_unique<TensorCommit>(cta, where);
    arrival->arrives_at(rank, mbarrier->address);
    cta.in_flight().add(std::move(arrival));
  }
}

}  // namespace

void use_collector(Cta& of, InFlight const& product, Collector collector, int buffer,
                   std::uint8_t const (*rows)[kWgmmaRowBytes], int count) {
  std::vector<std::uint8_t>& held = of.tensor_memory().collectors[static_cast<std::size_t>(buffer)];
  if (collector == Collector::discard) return held.clear();
  std::uint8_t const* const first = rows[0];
  std::vector<std::uint8_t> operand(first, first + count * kWgmmaRowBytes);
  bool const uses = collector == Collector::use || collector == Collector::last_use;
  if (uses && held != operand)
    of.report(
        FindingKind::invalid_operand, product.where,
        {product.cta, product.thread / 32, product.thread % 32}, "", "",
        fmt::format("tcgen05.mma that uses a collector buffer of {}, {}", buffer == 0 ? "A" : "B",
                    held.empty() ? "which no product before it has filled, or one has had discarded"
                                 : "which holds another operand than memory has there"));
  if (collector == Collector::fill) held = std::move(operand);
  if (collector == Collector::last_use) held.clear();
}

void check_copies_of_a(Cta& of, InFlight const& product, TensorAddr a) {
  int const first = tensor_lane(a), column = tensor_column(a);
  for (int row = 0; row < kTensorLanes / 2; ++row) {
    int const copy = first + kTensorLanes / 2 + row;
    if (std::memcmp(of.tensor_memory().at(first + row, column), of.tensor_memory().at(copy, column),
                    kWgmmaRowBytes) == 0)
      continue;
    std::string const place = of.tensor_place(copy, column);
    of.report(FindingKind::invalid_operand, product.where,
              {product.cta, product.thread / 32, product.thread % 32}, "", place,
              fmt::format("tcgen05.mma of a pair with A in tensor memory, of which {} does not "
                          "have what lane {} has: of m 128 lanes 64 to 127 must have a copy of "
                          "lanes 0 to 63",
                          place, first + row));
    return;
  }
}

char const* sparsity_text(std::uint32_t unknown) {
  return (unknown & kSparsityBits) != 0
             ? ": bits 0 to 2 ask for sparsity (tcgen05.mma.sp), which it does not have"
             : "";
}

std::vector<Cta*> computing(Cta& cta, int ctas) {
  if (ctas == 1) return {&cta};
  return {&cta, cta.pair_peer()};
}

bool check_pair(Cta& cta, Instruction instruction, int ctas, SourceLocation where) {
  for (Cta const* const of : computing(cta, ctas)) {
    if (!of->exited()) continue;
    cta.report(
        FindingKind::exited_cta, where, cta.here(), "", "",
        fmt::format("{} of a pair of CTAs, of which that of rank {} has exited: its tensor "
                    "core, its shared memory and its tensor memory take part",
                    ptx_name(instruction), of->rank()),
        {{},
         {of->rank(), -1, -1},
         "a wait of that CTA for a tcgen05_commit of the product before it frees its columns and "
         "exits would order them"});
    return false;
  }
  return true;
}

bool check_tensor_columns(Cta& cta, Instruction instruction, int ctas, TensorAddr address,
                          int columns, SourceLocation where) {
  for (Cta* const of : computing(cta, ctas)) {
    if (!check_tensor_columns(*of, instruction, address, columns, where)) return false;
  }
  return true;
}

bool check_matrix(Cta& cta, Instruction instruction, char const* name, std::uint64_t bits,
                  SharedOperand& operand, SourceLocation where, int ctas) {
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
  for (Cta* const of : computing(cta, ctas)) {
    if (of->checking() && !of->exited()) check_swizzle(*of, instruction, operand, where);
  }
  return true;
}

void tcgen05_mma(Tcgen05Kind kind, Tcgen05Form const& form, std::uint32_t d, std::uint64_t a,
                 std::uint64_t b_descriptor, std::uint32_t instruction_descriptor, bool accumulate,
                 SourceLocation where) {
  Cta& cta = current_cta();
  check_tcgen05(cta, kMma, form.ctas, where);
  cta.note(kMma, where);
  MmaSpec const op = decode(cta, kind, form, instruction_descriptor, where);
  start(cta, op, d, a, b_descriptor, accumulate, form, where);
}

void tcgen05_commit(std::uint32_t mbarrier, int ctas, std::uint16_t cta_mask,
                    SourceLocation where) {
  perform(Instruction::tcgen05_commit, where,
          std::popcount(cta_mask) > 1 ? Mutation::none : Mutation::less,
          [=](Cta& cta, Mutation mutation) {
            bool const less = mutation == Mutation::less;  // without the lowest rank
            auto const mask =
                static_cast<std::uint16_t>(less ? cta_mask & (cta_mask - 1) : cta_mask);
            commit(cta, mbarrier, ctas, mask, where);
          });
}

}  // namespace tegula::sim
