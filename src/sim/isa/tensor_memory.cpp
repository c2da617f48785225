#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "isa/perform.hpp"
#include "isa/tcgen05.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

/// Tensor memory: allocation, and loads and stores by warps, which are in flight until the warp
/// waits for them. PTX ISA, tcgen05.alloc to tcgen05.wait.
namespace tegula::sim {

void check_tcgen05(Cta& cta, Instruction instruction, SourceLocation where) {
  ArchSpec const& spec = spec_of(cta.generation());
  if (spec.tensor_memory) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} is an instruction of sm_100a, and the machine an sm_{}",
                       ptx_name(instruction), spec.compute_capability));
}

void check_tcgen05(Cta& cta, Instruction instruction, int ctas, SourceLocation where) {
  check_tcgen05(cta, instruction, where);
  Cta* const peer = cta.pair_peer();
  if (ctas == 2 && peer == nullptr)
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} with .cta_group::2 by CTA {} of a cluster of {}: the CTAs of a pair "
                         "have ranks that differ in the last bit",
                         ptx_name(instruction), cta.rank(), cta.cluster().ctas()));
  TensorMemory& own = cta.tensor_memory();
  if (own.cta_group == 0) {
    own.cta_group = ctas;
    own.cta_group_where = where;
  }
  for (Cta* const other : {&cta, peer}) {
    if (other == nullptr || other->tensor_memory().cta_group == 0 ||
        other->tensor_memory().cta_group == ctas)
      continue;
    cta.fail(FindingKind::tensor_memory_misuse, where, cta.here(),
             fmt::format("{} with .cta_group::{}, where the kernel's others have .cta_group::{} "
                         "({}): all of a kernel have the same",
                         ptx_name(instruction), ctas, other->tensor_memory().cta_group,
                         place_text(other->tensor_memory().cta_group_where)));
  }
}

namespace {

/// Of a load's registers until it has landed, and of the bits of a column that a store of halves
/// leaves open.
constexpr std::uint32_t kPoison = kRegisterPoison;

bool is_size(int columns) {
  return columns >= kLeastTensorColumns && columns <= kTensorColumns &&
         std::has_single_bit(static_cast<unsigned>(columns));
}

void fail_size(Cta& cta, Instruction instruction, int columns, SourceLocation where) {
  cta.fail(
      FindingKind::invalid_operand, where, cta.here(-1),
      fmt::format("{} of {}: their number is a power of two from {} to {}", ptx_name(instruction),
                  io::counted(columns, "column"), kLeastTensorColumns, kTensorColumns));
}

/// A tcgen05.ld or st: 32 threads' registers, and where they lie in tensor memory.
class TensorAccess final : public InFlight {
 public:
  TensorAccess(Cta const& cta, Instruction instruction, SourceLocation where,
               TensorMove const& move, TensorAddr address, void* const (&registers)[32])
      : InFlight(instruction, cta, where), move_(move), address_(address) {
    for (int lane = 0; lane < 32; ++lane)
      registers_[static_cast<std::size_t>(lane)] = static_cast<std::uint32_t*>(registers[lane]);
    cost = {.engine = Cost::Engine::tensor_memory, .bytes = 4.0 * 32 * count()};
    if (loads()) {
      for (std::uint32_t* const own : registers_) std::fill_n(own, count(), kPoison);
      values_.assign(static_cast<std::size_t>(32 * count()), kPoison);
      registers_held.fetch_add(1, std::memory_order_relaxed);
    } else {
      values_.reserve(static_cast<std::size_t>(32 * count()));
      for (std::uint32_t const* const own : registers_)
        values_.insert(values_.end(), own, own + count());
    }
  }
  ~TensorAccess() override {
    if (loads()) registers_held.fetch_sub(1, std::memory_order_relaxed);
  }

  void land(Cluster& cluster) override {
    Cta& own = cluster.cta(cta);
    int const first = thread / 32 * 32;
    for (int lane = 0; lane < 32; ++lane) {
      if (loads() && own.thread(first + lane).finished) continue;
      for (int r = 0; r < count(); ++r) {
        TensorPlace const at = place(lane, r);
        std::uint32_t* const cell = own.tensor_memory().at(at.lane, at.column);
        std::uint32_t* const upper = move_.packing == TensorPacking::halves
                                         ? own.tensor_memory().at(at.lane, at.column + 1)
                                         : nullptr;
        if (loads()) {
          std::uint32_t const value = upper == nullptr ? *cell : (*cell & 0xffff) | *upper << 16;
          registers_[static_cast<std::size_t>(lane)][r] = value;
          values_[static_cast<std::size_t>(lane * count() + r)] = value;
        } else {
          std::uint32_t const value = values_[static_cast<std::size_t>(lane * count() + r)];
          *cell = upper == nullptr ? value : (kPoison & 0xffff0000) | (value & 0xffff);
          if (upper != nullptr) *upper = (kPoison & 0xffff0000) | value >> 16;
        }
      }
    }
  }

  /// Whether the register of a lane is one that it has not loaded yet.
  bool holds(int lane, void const* at) const {
    auto const first = reinterpret_cast<std::uintptr_t>(registers_[static_cast<std::size_t>(lane)]);
    return loads() &&
           reinterpret_cast<std::uintptr_t>(at) - first < 4 * static_cast<std::uintptr_t>(count());
  }

  /// The registers of a lane from an address on are another's from now on, and may change.
  void leave(int lane, void const* first, int bytes) {
    auto const at = reinterpret_cast<std::uintptr_t>(first),
               own = reinterpret_cast<std::uintptr_t>(registers_[static_cast<std::size_t>(lane)]);
    if (at < own + 4 * static_cast<std::uintptr_t>(count()) &&
        own < at + static_cast<std::uintptr_t>(bytes))
      left_ |= 1u << lane;
  }
  /// Reports the first register that a thread has written since the load was issued. It is about to
  /// be waited for.
  void check_registers(Cta& cta) const {
    for (int lane = 0; lane < 32; ++lane) {
      if (!loads() || (left_ >> lane & 1) != 0 || cta.thread(thread / 32 * 32 + lane).finished)
        continue;
      std::uint32_t const* const own = registers_[static_cast<std::size_t>(lane)];
      auto const changed =
          std::mismatch(own, own + count(), values_.begin() + lane * count()).first;
      if (changed == own + count()) continue;
      cta.report(FindingKind::register_race, where, {cta.rank(), thread / 32, lane}, "", "",
                 fmt::format("register {} of those that this tcgen05.ld loads was written while it "
                             "was in flight",
                             changed - own),
                 {{}, {-1, -1, -1}, "a tcgen05_wait_ld before the write would order them"});
      return;
    }
  }

  int count() const { return registers_of(move_); }
  std::uint32_t const* registers(int lane) const {
    return registers_[static_cast<std::size_t>(lane)];
  }

 private:
  bool loads() const { return instruction == Instruction::tcgen05_ld; }
  TensorPlace place(int lane, int r) const {
    TensorPlace const own = tensor_place(move_, lane, r);
    return {tensor_lane(address_) + own.lane, tensor_column(address_) + own.column};
  }

  TensorMove move_;
  TensorAddr address_;
  std::array<std::uint32_t*, 32> registers_;
  /// What is stored; of a load, what its registers hold as long as nobody else writes them.
  std::vector<std::uint32_t> values_;
  std::uint32_t left_ = 0;  ///< lanes whose registers are another's
};

/// From the columns of the lower 16 threads to those of the upper ones, as a part of an address.
TensorAddr upper_threads(TensorMove const& move) { return static_cast<TensorAddr>(move.split); }

/// Reports what a warp must not access; false where it is not to be performed.
bool check_access(Cta& cta, Instruction instruction, TensorMove const& move, TensorAddr address,
                  SourceLocation where) {
  TensorShape const shape = move.shape;
  int const lane = tensor_lane(address);
  int const warp = cta.current_warp().index;
  int const first = warp % 4 * 32;
  bool const upper = lanes_of(shape) == 16 && lane == first + 16;
  if (lane != first && !upper) {
    cta.report(
        FindingKind::tensor_memory_misuse, where, cta.here(-1), "", "",
        fmt::format("{} of lanes {} to {} of tensor memory by warp {}, which reaches lanes {} "
                    "to {} only: add them, 32 times the warp's index in its warpgroup, to "
                    "bits 16 and up of the address",
                    ptx_name(instruction), lane, lane + lanes_of(shape) - 1, warp, first,
                    first + 31));
    return false;
  }
  return check_tensor_columns(cta, instruction, address, columns_of(move), where) &&
         (move.split == 0 || check_tensor_columns(cta, instruction, address + upper_threads(move),
                                                  columns_of(move), where));
}

/// The 32 lanes have left their registers and addresses in the warp.
void access(Cta& cta, Instruction instruction, TensorMove const& move, SourceLocation where) {
  Warp& own = cta.current_warp();
  TensorAddr const address = own.operand[0];
  for (int lane = 1; lane < 32; ++lane) {
    if (own.operand[lane] == address) continue;
    cta.fail(FindingKind::invalid_operand, where, cta.here(lane),
             fmt::format("{} at {:#x}, where lane 0 gives {:#x}: all lanes give one address",
                         ptx_name(instruction), own.operand[lane], address));
  }
  if (!check_access(cta, instruction, move, address, where)) return;
  bool const loads = instruction == Instruction::tcgen05_ld;
  int const columns = columns_of(move), lanes = lanes_of(move.shape),
            group = tensor_lane(address) / kTensorLaneGroup;
  std::uint8_t const groups = static_cast<std::uint8_t>((lanes == 32 ? 3u : 1u) << group);
  auto operation =
      std::make_unique<TensorAccess>(cta, instruction, where, move, address, own.pointer);
  auto const touch = [&](int first) {
    for (int g = group; g < group + lanes / kTensorLaneGroup; ++g)
      cta.cluster().before({.kind = loads ? Visible::Kind::load : Visible::Kind::store,
                            .cta = cta.rank(),
                            .address = tensor_cell_address(g, first),
                            .amount = 4 * columns,
                            .of_warp = true});
    (loads ? operation->tensor_reads : operation->tensor_writes)
        .push_back({cta.rank(), groups, first, columns});
  };
  touch(tensor_column(address));
  if (move.split != 0) touch(tensor_column(address) + move.split);
  TensorAccess& issued = *operation;
  // What it loads to registers that another in flight loads, too, is not that one's.
  if (loads) {
    for (int lane = 0; lane < 32; ++lane)
      leave_registers(own, lane, issued.registers(lane), 4 * issued.count());
  }
  InFlightGroups& waited_for = loads ? own.tensor_loads : own.tensor_stores;
  cta.in_flight().add(std::move(operation), waited_for);
  waited_for.commit();
  // Where every order is tried, these are accesses of the warp.
  if (cta.cluster().stepped()) cta.in_flight().land(issued);
}

void wait(Cta& cta, Instruction instruction, SourceLocation where) {
  check_tcgen05(cta, instruction, where);
  if (!cta.meet(instruction, 0, kFullWarp, where)) return;
  Warp& own = cta.current_warp();
  bool const loads = instruction == Instruction::tcgen05_wait_ld;
  if (loads && cta.checking()) {
    for (InFlight const* const load : own.tensor_loads.operations())
      static_cast<TensorAccess const*>(load)->check_registers(cta);
  }
  double const done = cta.in_flight().wait(loads ? own.tensor_loads : own.tensor_stores, 0);
  if (cta.cluster().timed())
    cta.observers().waited(cta, 32 * own.index, 32, done,
                           loads ? "wait tcgen05.ld" : "wait tcgen05.st", where);
  cta.release(kFullWarp, where, instruction);
}

void fence(Cta& cta, Instruction instruction, SourceLocation where) {
  check_tcgen05(cta, instruction, where);
  cta.note(instruction, where);
  if (cta.finding_races())
    cta.observers().tensor_fenced(cta,
                                  instruction == Instruction::tcgen05_fence_before_thread_sync);
}

}  // namespace

bool check_tensor_columns(Cta& cta, Instruction instruction, TensorAddr address, int columns,
                          SourceLocation where) {
  int const column = tensor_column(address);
  if (cta.tensor_memory().holding(column, columns) != nullptr) return true;
  std::string why = "which nobody has allocated";
  if (column + columns > kTensorColumns) {
    why = fmt::format("and there are {}", kTensorColumns);
  } else if (TensorAllocation const* const one = cta.tensor_memory().holding(column, 1)) {
    why = fmt::format("which lie beyond the {} columns from {} on that tcgen05.alloc gave ({})",
                      one->columns, one->column, place_text(one->where));
  } else {
    for (TensorAllocation const& freed : cta.tensor_memory().freed) {
      if (column >= freed.column && column < freed.column + freed.columns)
        why = fmt::format("which were allocated ({}) and have been freed", place_text(freed.where));
    }
  }
  cta.report(FindingKind::out_of_bounds, where, cta.here(-1), "", "",
             fmt::format("{} touches columns {} to {} of tensor memory, {}", ptx_name(instruction),
                         column, column + columns - 1, why));
  return false;
}

InFlight* being_loaded(Warp const& warp, int lane, void const* place) {
  auto const& loads = warp.tensor_loads.operations();
  auto const found = std::find_if(loads.rbegin(), loads.rend(), [&](InFlight const* load) {
    return static_cast<TensorAccess const*>(load)->holds(lane, place);
  });
  return found == loads.rend() ? nullptr : *found;
}

void leave_registers(Warp& warp, int lane, void const* first, int bytes) {
  for (InFlight* const load : warp.tensor_loads.operations())
    static_cast<TensorAccess*>(load)->leave(lane, first, bytes);
}

void tcgen05_alloc(std::uint32_t destination, int columns, int ctas, SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_alloc;
  Cta& cta = current_cta();
  check_tcgen05(cta, instruction, ctas, where);
  cta.current_warp().operand[cta.current_thread().lane] = destination;
  if (!cta.meet(instruction, static_cast<std::uint32_t>(columns), kFullWarp, where)) return;
  if (!is_size(columns)) fail_size(cta, instruction, columns, where);
  TensorMemory& memory = cta.tensor_memory();
  if (memory.relinquished) {
    cta.fail(FindingKind::tensor_memory_misuse, where, cta.here(-1),
             fmt::format("tcgen05.alloc after the CTA's tcgen05.relinquish_alloc_permit ({})",
                         place_text(memory.relinquished_where)));
  }
  int const column = cta.take_tensor_columns({.column = 0,
                                              .columns = columns,
                                              .where = where,
                                              .warp = cta.current_warp().index,
                                              .holder = cta.buffer_name(destination),
                                              .ctas = ctas});
  TensorAddr const address = tensor_address(0, column);
  if (cta.shared_access(instruction, destination, 4, true, where, 0))
    std::memcpy(cta.shared().at(destination), &address, 4);
  cta.release(kFullWarp, where, instruction);
}

void tcgen05_dealloc(std::uint32_t address, int columns, int ctas, SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_dealloc;
  Cta& cta = current_cta();
  check_tcgen05(cta, instruction, ctas, where);
  if (!cta.meet(instruction, static_cast<std::uint32_t>(columns), kFullWarp, where)) return;
  if (!is_size(columns)) fail_size(cta, instruction, columns, where);
  TensorMemory& memory = cta.tensor_memory();
  int const column = tensor_column(address);
  TensorAllocation const* const own = memory.holding(column, 1);
  if (own != nullptr && own->column == column && own->columns == columns) {
    if (cta.checking()) cta.observers().tensor_freed(cta, column, columns, where);
    cta.give_back_tensor_columns(column);
  } else {
    std::string why = "which tcgen05.alloc has not given";
    for (TensorAllocation const& freed : memory.freed) {
      if (own == nullptr && freed.column == column)
        why =
            fmt::format("which have been freed already (allocated at {})", place_text(freed.where));
    }
    if (own != nullptr)
      why = fmt::format("where tcgen05.alloc ({}) gave {} from {} on: free the whole of it",
                        place_text(own->where), own->columns, own->column);
    cta.report(FindingKind::tensor_memory_misuse, where, cta.here(-1), "", "",
               fmt::format("tcgen05.dealloc of {} of tensor memory from {} on, {}",
                           io::counted(columns, "column"), column, why));
  }
  cta.release(kFullWarp, where, instruction);
}

void tcgen05_relinquish_alloc_permit(int ctas, SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_relinquish_alloc_permit;
  Cta& cta = current_cta();
  check_tcgen05(cta, instruction, ctas, where);
  if (!cta.meet(instruction, 0, kFullWarp, where)) return;
  cta.tensor_memory().relinquished = true;
  cta.tensor_memory().relinquished_where = where;
  cta.release(kFullWarp, where, instruction);
}

namespace {

void start(Instruction instruction, TensorMove const& move, void* registers, TensorAddr address,
           SourceLocation where) {
  Cta& cta = current_cta();
  check_tcgen05(cta, instruction, where);
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.operand[lane] = address;
  own.pointer[lane] = registers;
  // All lanes execute one instruction.
  std::uint32_t const variant = static_cast<std::uint32_t>(move.split) << 16 |
                                static_cast<std::uint32_t>(move.packing) << 12 |
                                static_cast<std::uint32_t>(move.shape) << 8 |
                                static_cast<std::uint32_t>(move.repeat);
  if (!cta.meet(instruction, variant, kFullWarp, where)) return;
  access(cta, instruction, move, where);
  cta.release(kFullWarp, where, instruction);
}

}  // namespace

void tcgen05_ld(TensorMove const& move, void* registers, std::uint32_t address,
                SourceLocation where) {
  start(Instruction::tcgen05_ld, move, registers, address, where);
}

void tcgen05_st(TensorMove const& move, void const* registers, std::uint32_t address,
                SourceLocation where) {
  start(Instruction::tcgen05_st, move, const_cast<void*>(registers), address, where);
}

void tcgen05_wait_ld(SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_wait_ld;
  perform(instruction, where, [=](Cta& cta) { wait(cta, instruction, where); });
}
void tcgen05_wait_st(SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_wait_st;
  perform(instruction, where, [=](Cta& cta) { wait(cta, instruction, where); });
}

void tcgen05_fence_before_thread_sync(SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_fence_before_thread_sync;
  perform(instruction, where, [=](Cta& cta) { fence(cta, instruction, where); });
}
void tcgen05_fence_after_thread_sync(SourceLocation where) {
  constexpr Instruction instruction = Instruction::tcgen05_fence_after_thread_sync;
  perform(instruction, where, [=](Cta& cta) { fence(cta, instruction, where); });
}

}  // namespace tegula::sim
