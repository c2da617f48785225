#include "isa/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "isa/perform.hpp"
#include "isa/shared_operand.hpp"
#include "isa/wgmma_operation.hpp"
#include "machine/cluster.hpp"
#include "machine/cta.hpp"
#include "tegula/arch/wgmma_descriptor.hpp"
#include "tegula/sim/arithmetic.hpp"
#include "tegula/sim/hooks.hpp"
#include "values/place.hpp"

/// wgmma: what a warpgroup issues, fences, commits and waits for, and the findings about its
/// registers.
namespace tegula::sim {

namespace {

/// What the warpgroup's threads must agree on besides the descriptors.
std::uint32_t variant_of(MmaSpec const& op, bool scale_d) {
  std::uint32_t variant = static_cast<std::uint32_t>(op.n / 8);
  for (DType const type : {op.a, op.b, op.d})
    variant = variant * 32 + static_cast<std::uint32_t>(type);
  static_assert(kDTypes <= 32);
  for (bool const flag :
       {op.a_major == Major::mn, op.b_major == Major::mn, op.negate_a, op.negate_b,
        op.variant == MmaVariant::saturate, op.operands == MmaOperands::rs, scale_d})
    variant = 2 * variant + (flag ? 1 : 0);
  return variant;
}

/// A thread of the current thread's warpgroup.
Culprit of_warpgroup(Cta const& cta, int thread) {
  return {cta.rank(), cta.thread_index() / kWarpgroupSize * 4 + thread / 32, thread % 32};
}

/// Reports a descriptor that the hardware does not take; false where the operand must not be read.
bool check_descriptor(Cta& cta, char const* name, SharedOperand const& operand,
                      SourceLocation where) {
  if ((operand.bits & kWgmmaDescriptorZeros) != 0) {
    report_descriptor(
        cta, FindingKind::invalid_operand, name, operand.bits,
        "bits 14, 15, 30, 31 and 46 to 61 must be 0 (a base offset, bits 49 to 51, is not simulated)",
        where);
    return false;
  }
  return check_operand(cta, name, operand, operand.bits, where);
}

/// Reports accumulators all of whose operations have landed, none of which the warpgroup has waited
/// for, and which do not hold what these left there.
void check_held(Cta& cta, WgmmaAccumulators const& accumulators, SourceLocation operation) {
  int thread = 0;
  int number = 0;
  if (accumulators.in_flight != 0 || !find_changed(accumulators, thread, number)) return;
  cta.report(FindingKind::register_race, operation, of_warpgroup(cta, thread), "", "",
             fmt::format("{} was written while a wgmma.mma_async that owns it was in flight",
                         register_text(accumulators.op, thread, number)),
             {{}, kNobody, kWaitsFirst});
}

/// The accumulators of an operation that starts: those of the operations in flight that it
/// continues, or new ones with what the registers hold.
std::shared_ptr<WgmmaAccumulators> take_accumulators(Cta& cta, Warpgroup& group, MmaSpec const& op,
                                                     SourceLocation where) {
  auto const first = [](auto const& registers) {
    return reinterpret_cast<std::uintptr_t>(registers[0]);
  };
  std::uintptr_t const bytes = 4 * static_cast<std::uintptr_t>(d_registers(op));
  for (InFlight const* const operation : group.wgmma.operations()) {
    auto const& other = accumulators_of(operation);
    bool const same_shape = other->op.n == op.n && other->op.d == op.d;
    if (same_shape && std::equal(group.d.begin(), group.d.end(), other->registers.begin())) {
      int thread = 0;
      int number = 0;
      if (other->in_flight == 0 && cta.checking() && find_changed(*other, thread, number)) {
        cta.report(
            FindingKind::register_race, where, of_warpgroup(cta, thread), "", "",
            fmt::format(
                "{} was written while the wgmma.mma_async of {}, which owns it, was in flight",
                register_text(op, thread, number), place_text(operation->where)),
            {operation->where, kNobody, kWaitsFirst});
      }
      return other;
    }
    std::uintptr_t const other_bytes = 4 * static_cast<std::uintptr_t>(d_registers(other->op));
    if (first(group.d) < first(other->registers) + other_bytes &&
        first(other->registers) < first(group.d) + bytes) {
      cta.fail(
          FindingKind::invalid_operand, where, cta.here(-1),
          fmt::format(
              "its accumulators are some of those of the wgmma.mma_async in flight from {}, which has "
              "another shape: wait for its group first",
              place_text(operation->where)));
    }
  }
  auto const made = std::make_shared<WgmmaAccumulators>();
  made->op = op;
  std::transform(group.d.begin(), group.d.end(), made->registers.begin(),
                 [](void* d) { return static_cast<std::uint32_t*>(d); });
  made->tile.resize(static_cast<std::size_t>(kWgmmaM * op.n));
  collect(*made);
  return made;
}

/// Copies registers. A thread's array may be out of scope, and its place used otherwise.
[[gnu::no_sanitize_address]] void copy_registers(std::uint32_t const volatile* from, int count,
                                                 std::uint32_t* to) {
  for (int i = 0; i < count; ++i) to[i] = from[i];
}

WgmmaThreadsRegisters registers_of(WgmmaAccumulators const& d) {
  WgmmaThreadsRegisters registers;
  std::copy(d.registers.begin(), d.registers.end(), registers.begin());
  return registers;
}

/// Keeps registers in mind, so many of each thread, for the fence that comes now.
void keep(std::vector<WgmmaRegistersAtFence>& kept, WgmmaThreadsRegisters const& registers,
          int count) {
  if (std::find(registers.begin(), registers.end(), nullptr) != registers.end()) return;
  std::erase_if(kept, [&](auto const& other) { return other.registers == registers; });
  if (kept.size() == WgmmaHistory::kMostAtFence) kept.erase(kept.begin());
  kept.push_back({registers, count, {}});
}

/// A wgmma uses registers: what they held at the fence says nothing any more.
void forget(std::vector<WgmmaRegistersAtFence>& kept, WgmmaThreadsRegisters const& registers,
            int count) {
  if (registers[0] == nullptr) return;  // the fragment is gone
  std::less<> const before;
  std::erase_if(kept, [&](auto const& other) {
    return before(other.registers[0], registers[0] + count) &&
           before(registers[0], other.registers[0] + other.count);
  });
}

/// A wgmma.fence: what the registers hold that a wgmma has used before. Those of operations in
/// flight are the tensor cores'.
void note_fence(Warpgroup& group, bool checking, SourceLocation where) {
  WgmmaHistory& history = group.wgmma_history;
  if (checking) {
    for (auto const& d : history.waited_for)
      keep(history.d_at_fence, registers_of(*d), d_registers(d->op));
    for (WgmmaRegistersOfA const& a : history.read) keep(history.a_at_fence, a.registers, 4);
    for (InFlight const* const operation : group.wgmma.operations()) {
      WgmmaAccumulators const& d = *accumulators_of(operation);
      for (auto* const kept : {&history.d_at_fence, &history.a_at_fence})
        forget(*kept, registers_of(d), d_registers(d.op));
    }
    for (auto* const kept : {&history.d_at_fence, &history.a_at_fence}) {
      for (WgmmaRegistersAtFence& held : *kept) {
        held.values.resize(held.registers.size() * static_cast<std::size_t>(held.count));
        std::uint32_t* to = held.values.data();
        for (std::uint32_t const* const from : held.registers) {
          copy_registers(from, held.count, to);
          to += held.count;
        }
      }
    }
  }
  history.fenced = history.fenced_since_wait = true;
  history.fence = where;
  history.waited_for.clear();
  history.read.clear();
}

/// Of registers that a wgmma is to read: which one of which thread was written since the last
/// wgmma.fence, before which a wgmma had used them, and since which none has.
std::optional<std::pair<int, int>> changed_since_fence(
    std::vector<WgmmaRegistersAtFence> const& kept, WgmmaThreadsRegisters const& registers,
    int count) {
  auto const held = std::find_if(kept.begin(), kept.end(), [&](auto const& other) {
    return other.registers == registers && other.count == count;
  });
  if (held == kept.end()) return {};
  std::uint32_t const* before = held->values.data();
  for (std::size_t t = 0; t < registers.size(); ++t, before += count) {
    std::uint32_t const* const now = registers[t];
    auto const changed = std::mismatch(now, now + count, before).first;
    if (changed != now + count)
      return std::pair(static_cast<int>(t), static_cast<int>(changed - now));
  }
  return {};
}

void report_since_fence(Cta& cta, Warpgroup const& group, int thread, std::string const& which,
                        SourceLocation where) {
  SourceLocation const fence = group.wgmma_history.fence;
  cta.report(FindingKind::register_race, where, of_warpgroup(cta, thread), "", "",
             fmt::format("{} written since the last wgmma.fence ({}), and this wgmma.mma_async "
                         "reads that",
                         which, place_text(fence)),
             {fence, kNobody, "a wgmma_fence between the write and this would order them"});
}

/// Registers that were written since the wgmma that last used them need a wgmma.fence.
void check_fence(Cta& cta, Warpgroup& group, WgmmaAccumulators const& accumulators, bool reads,
                 SourceLocation where) {
  WgmmaHistory& history = group.wgmma_history;
  if (!history.fenced) {
    cta.report(
        FindingKind::register_race, where, cta.here(-1), "", "",
        "the warpgroup's first wgmma.mma_async comes after no wgmma.fence",
        {{}, kNobody, "a wgmma_fence before it would order it after the writes to its registers"});
    return;
  }
  WgmmaThreadsRegisters const registers = registers_of(accumulators);
  int const count = d_registers(accumulators.op);
  auto const changed =
      reads ? changed_since_fence(history.d_at_fence, registers, count) : std::nullopt;
  forget(history.d_at_fence, registers, count);
  forget(history.a_at_fence, registers, count);
  if (changed)
    return report_since_fence(
        cta, group, changed->first,
        fmt::format("{} was", register_text(accumulators.op, changed->first, changed->second)),
        where);
  if (history.fenced_since_wait) return;
  for (auto const& last : history.waited_for) {
    int thread = 0;
    int number = 0;
    if (last->op.n != accumulators.op.n || last->registers != accumulators.registers) continue;
    if (find_changed(*last, thread, number)) {
      cta.report(
          FindingKind::register_race, where, of_warpgroup(cta, thread), "", "",
          fmt::format(
              "{} was written since the wgmma.mma_async before ({}), without a wgmma.fence after that",
              register_text(last->op, thread, number), place_text(last->where)),
          {last->where, kNobody, "a wgmma_fence between the two would order them"});
    }
    return;
  }
}

/// So do registers of A, accumulators or not. Those of operations in flight are check_a's.
void check_fence_of_a(Cta& cta, Warpgroup& group, WgmmaThreadsRegisters const& registers,
                      SourceLocation where) {
  std::vector<WgmmaRegistersOfA>& read = group.wgmma_history.read;
  WgmmaRegistersOfA now{registers, {}, where};
  for (std::size_t t = 0; t < registers.size(); ++t)
    std::copy_n(registers[t], now.values[t].size(), now.values[t].begin());
  auto const before = std::find_if(read.begin(), read.end(), [&](WgmmaRegistersOfA const& other) {
    return other.registers == registers;
  });
  auto const& in_flight = group.wgmma.operations();
  bool const owned = std::any_of(in_flight.begin(), in_flight.end(), [&](InFlight const* other) {
    return static_cast<WgmmaOperation const*>(other)->first_a() == registers[0];
  });
  if (before == read.end()) {
    std::vector<WgmmaRegistersAtFence>& kept = group.wgmma_history.a_at_fence;
    auto const since_fence = owned ? std::nullopt : changed_since_fence(kept, registers, 4);
    if (since_fence)
      report_since_fence(cta, group, since_fence->first, "registers of A were", where);
    std::erase_if(kept, [&](auto const& other) { return other.registers == registers; });
    read.push_back(now);
    return;
  }
  auto const changed =
      std::mismatch(now.values.begin(), now.values.end(), before->values.begin()).first;
  if (!owned && changed != now.values.end())
    cta.report(
        FindingKind::register_race, where,
        of_warpgroup(cta, static_cast<int>(changed - now.values.begin())), "", "",
        fmt::format("registers of A were written since the wgmma.mma_async before that reads them "
                    "({}), without a wgmma.fence after that",
                    place_text(before->where)),
        {before->where, kNobody, "a wgmma_fence between the two would order them"});
  *before = now;
}

/// Reports operations in flight that hold more registers than the warpgroup has.
void check_registers(Cta& cta, Warpgroup const& group, SourceLocation where) {
  int const held = registers_in_flight(group);
  if (held <= group.registers) return;
  std::string const has =
      group.registers_where.line == 0
          ? fmt::format("was launched with {}", group.registers)
          : fmt::format("has {} since its setmaxnreg.{} ({})", group.registers,
                        group.registers_raised ? "inc" : "dec", place_text(group.registers_where));
  cta.report(
      FindingKind::too_few_registers, where, cta.here(-1), "", "",
      fmt::format(
          "with this wgmma.mma_async, those in flight hold {} registers of a thread, accumulators "
          "and A, and the warpgroup {}",
          held, has),
      group.registers_where);
}

/// The 128 threads have left their operands in the warpgroup.
void start(Cta& cta, Warpgroup& group, MmaSpec const& op, bool scale_d, SourceLocation where) {
  bool const a_in_registers = op.operands == MmaOperands::rs;
  auto const uniform = [](auto const& values) {
    return std::all_of(values.begin(), values.end(), [&](auto const& v) { return v == values[0]; });
  };
  if ((!a_in_registers && !uniform(group.a_descriptor)) || !uniform(group.b_descriptor)) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(-1),
             "the threads of the warpgroup pass different matrix descriptors to wgmma.mma_async");
  }
  int const element_bytes = element_bits(op) / 8;
  SharedOperand const a{a_in_registers ? 0 : group.a_descriptor[0], op.a_major == Major::mn,
                        kWgmmaM, element_bytes};
  SharedOperand const b{group.b_descriptor[0], op.b_major == Major::mn, op.n, element_bytes};
  if (cta.counting()) {
    cta.observers().worked(
        Instruction::wgmma_mma_async, where,
        {.fused_multiply_adds = std::int64_t{kWgmmaM} * op.n * op.k,
         .shared_bytes = kWgmmaRowBytes * (op.n + (a_in_registers ? 0 : kWgmmaM))});
  }
  bool const a_fits = a_in_registers || check_descriptor(cta, "A", a, where);
  if (!check_descriptor(cta, "B", b, where) || !a_fits) return;
  if (cta.checking()) {
    if (!a_in_registers) check_swizzle(cta, Instruction::wgmma_mma_async, a, where);
    check_swizzle(cta, Instruction::wgmma_mma_async, b, where);
  }

  auto const accumulators = take_accumulators(cta, group, op, where);
  if (cta.checking() && accumulators.use_count() == 1)
    check_fence(cta, group, *accumulators, scale_d, where);
  auto operation = std::make_unique<WgmmaOperation>(cta, where, op, accumulators, b, scale_d);
  if (a_in_registers) {
    WgmmaThreadsRegisters registers;
    std::transform(group.a_descriptor.begin(), group.a_descriptor.end(), registers.begin(),
                   [](std::uint64_t p) {
                     return reinterpret_cast<std::uint32_t const*>(static_cast<std::uintptr_t>(p));
                   });
    if (cta.checking()) check_fence_of_a(cta, group, registers, where);
    operation->take_a(registers);
  } else {
    operation->take_a(cta, a);
  }
  cta.in_flight().add(std::move(operation), group.wgmma);
  if (cta.checking()) check_registers(cta, group, where);
  if (accumulators->in_flight > 0 && !accumulators->poisoned) poison(*accumulators);
}

void issue(MmaSpec const& op, void* d, std::uint64_t a, std::uint64_t b_descriptor, bool scale_d,
           SourceLocation where) {
  Cta& cta = current_cta();
  if (!spec_of(cta.generation()).wgmma) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("wgmma.mma_async is an instruction of sm_90a, and the machine an sm_{}",
                         spec_of(cta.generation()).compute_capability));
  }
  Warpgroup& group = cta.warpgroup();
  std::size_t const thread = static_cast<std::size_t>(cta.thread_index() % kWarpgroupSize);
  group.d[thread] = d;
  group.a_descriptor[thread] = a;
  group.b_descriptor[thread] = b_descriptor;
  if (!cta.meet_warpgroup(Instruction::wgmma_mma_async, variant_of(op, scale_d), where)) return;
  start(cta, group, op, scale_d, where);
  cta.release_warpgroup(where, Instruction::wgmma_mma_async);
}

}  // namespace

int registers_in_flight(Warpgroup const& group) {
  struct Run {
    std::uint32_t const* begin;
    std::uint32_t const* end;
  };
  static thread_local std::vector<Run> runs;  // of the first thread
  runs.clear();
  auto const add = [](std::uint32_t const* registers, int count) {
    if (registers == nullptr) return;
    if (runs.empty() || runs.back().begin != registers)
      runs.push_back({registers, registers + count});
  };
  for (InFlight const* const operation : group.wgmma.operations()) {
    auto const& own = *static_cast<WgmmaOperation const*>(operation);
    add(own.accumulators()->registers[0], d_registers(own.accumulators()->op));
    add(own.first_a(), 4);
  }
  std::sort(runs.begin(), runs.end(),
            [](Run const& a, Run const& b) { return std::less<>()(a.begin, b.begin); });
  std::ptrdiff_t held = 0;
  std::uint32_t const* end = nullptr;
  for (Run const& run : runs) {
    std::uint32_t const* const begin =
        end != nullptr && std::less<>()(run.begin, end) ? end : run.begin;
    if (std::less<>()(begin, run.end)) held += run.end - begin;
    if (end == nullptr || std::less<>()(end, run.end)) end = run.end;
  }
  return static_cast<int>(held);
}

void wgmma(MmaSpec const& op, void* d, std::uint64_t a_descriptor, std::uint64_t b_descriptor,
           bool scale_d, SourceLocation where) {
  issue(op, d, a_descriptor, b_descriptor, scale_d, where);
}

void wgmma(MmaSpec const& op, void* d, std::uint32_t const (&a)[4], std::uint64_t b_descriptor,
           bool scale_d, SourceLocation where) {
  issue(op, d, reinterpret_cast<std::uintptr_t>(&a[0]), b_descriptor, scale_d, where);
}

void check_wgmma_register(Cta& cta, void const* place, SourceLocation where) {
  if (cta.thread_index() / kWarpgroupSize * kWarpgroupSize + kWarpgroupSize > cta.threads()) return;
  int const thread = cta.thread_index() % kWarpgroupSize;
  for (InFlight const* const operation : cta.warpgroup().wgmma.operations()) {
    std::string const role = static_cast<WgmmaOperation const*>(operation)->role_of(place, thread);
    if (role.empty()) continue;
    cta.report(
        FindingKind::register_race, where, cta.here(), "", "",
        fmt::format("{} is accessed while the wgmma.mma_async of {}, which owns it, is in flight",
                    role, place_text(operation->where)),
        {operation->where, kNobody,
         "a wgmma_wait_group that covers it before the access would order them"});
    return;
  }
}

void use_wgmma_fragment(Cta& cta, void const* first, int bytes, FragmentUse use, bool report) {
  if (cta.thread_index() / kWarpgroupSize * kWarpgroupSize + kWarpgroupSize > cta.threads()) return;
  int const thread = cta.thread_index() % kWarpgroupSize;
  Warpgroup const& group = cta.warpgroup();
  for (InFlight* const operation : group.wgmma.operations()) {
    auto& own = *static_cast<WgmmaOperation*>(operation);
    bool const d = own.has_accumulators(thread, first, bytes), a = own.has_a(thread, first, bytes);
    if (!d && !a) continue;
    if (report)
      cta.report(FindingKind::register_race, own.where, cta.here(), "", "",
                 fmt::format("the fragment of its {} {} while this wgmma.mma_async is in flight{}",
                             d ? "accumulators" : "A", text_of(use).verb,
                             same_place(group.where, own.where)
                                 ? ""
                                 : fmt::format(", after the {} of {}", ptx_name(group.instruction),
                                               place_text(group.where))),
                 {{},
                  kNobody,
                  fmt::format("a wgmma_wait_group that covers it before {} would order them",
                              text_of(use).noun)});
    if (use != FragmentUse::destroyed) continue;
    if (d) own.leave_accumulators(thread);
    if (a) own.leave_a(thread);
  }
}

void wgmma_fence(SourceLocation where) {
  perform(Instruction::wgmma_fence, where, [=](Cta& cta) {
    if (!cta.meet_warpgroup(Instruction::wgmma_fence, 0, where)) return;
    note_fence(cta.warpgroup(), cta.checking(), where);
    cta.release_warpgroup(where, Instruction::wgmma_fence);
  });
}

void wgmma_commit_group(SourceLocation where) {
  perform(Instruction::wgmma_commit_group, where, [=](Cta& cta) {
    if (!cta.meet_warpgroup(Instruction::wgmma_commit_group, 0, where)) return;
    cta.warpgroup().wgmma.commit();
    cta.release_warpgroup(where, Instruction::wgmma_commit_group);
  });
}

namespace {

void wait_for_groups(Cta& cta, int groups_left, SourceLocation where) {
  if (!cta.meet_warpgroup(Instruction::wgmma_wait_group, static_cast<std::uint32_t>(groups_left),
                          where))
    return;
  Warpgroup& group = cta.warpgroup();
  cta.cluster().before({Visible::Kind::wait_group, cta.rank(), 0, groups_left, &group.wgmma,
                        cta.thread_index() / kWarpgroupSize});
  WgmmaHistory& history = group.wgmma_history;
  std::vector<std::shared_ptr<WgmmaAccumulators>> before;
  if (cta.checking()) {
    for (InFlight const* const operation : group.wgmma.operations()) {
      auto const& accumulators = accumulators_of(operation);
      // What has landed before it was waited for is not the threads' yet.
      if (operation->landed()) static_cast<WgmmaOperation const*>(operation)->check_a(cta);
      if (!before.empty() && before.back() == accumulators) continue;
      check_held(cta, *accumulators, operation->where);
      before.push_back(accumulators);
    }
  }
  double const done = cta.in_flight().wait(group.wgmma, static_cast<std::size_t>(groups_left));
  if (cta.cluster().timed())
    cta.observers().waited(cta, cta.thread_index() / kWarpgroupSize * kWarpgroupSize,
                           kWarpgroupSize, done, "wait wgmma", where);
  history.fenced_since_wait = false;
  for (auto& accumulators : before) {
    if (accumulators->in_flight != 0) continue;
    std::erase_if(history.waited_for,
                  [&](auto const& other) { return other->registers == accumulators->registers; });
    history.waited_for.push_back(std::move(accumulators));
  }
  cta.release_warpgroup(where, Instruction::wgmma_wait_group);
}

}  // namespace

void wgmma_wait_group(int groups_left, SourceLocation where) {
  perform(Instruction::wgmma_wait_group, where, fewer_than(groups_left),
          [=](Cta& cta, Mutation m) { wait_for_groups(cta, counted(groups_left, m), where); });
}

}  // namespace tegula::sim
