#include <fmt/format.h>

#include <cstring>

#include "isa/combine.hpp"
#include "isa/perform.hpp"
#include "tegula/sim/generation.hpp"

/// Atomics, and strong loads and stores, of global and of shared memory: PTX ISA, atom, red, and ld
/// and st with .relaxed, .acquire and .release.
namespace tegula::sim {

namespace {

/// The instruction of a strong load, or store.
Instruction load_of(MemoryOrder order) {
  return acquires(order) ? Instruction::ld_acquire : Instruction::ld_relaxed;
}
Instruction store_of(MemoryOrder order) {
  return releases(order) ? Instruction::st_release : Instruction::st_relaxed;
}

/// Shared memory that a strong access reaches, its own or a peer's; null, after a finding, where it
/// must not be performed.
void* reached(Cta& cta, Instruction instruction, std::uint32_t address, int bytes,
              Strength strength, bool writes, SourceLocation where) {
  cta.note(instruction, where, {bytes, address & kLocalMask});
  if (strength.scope == Scope::cta) cta.own_address(instruction, address, where);
  Cta* const peer = cta.target(instruction, address, where);
  if (peer == nullptr) return nullptr;
  int const lane = cta.current_thread().lane;
  return peer->shared_access(instruction, address, bytes, writes, where, lane, strength)
             ? peer->shared().at(address)
             : nullptr;
}

/// Global memory, likewise.
void* reached(Cta& cta, Instruction instruction, void const* address, int bytes,
              GlobalAccess access, SourceLocation where) {
  cta.note(instruction, where, {.global_bytes = bytes, .global = address});
  cta.cluster().take_turn(address);
  return cta.global_access(instruction, address, bytes, access, where, bytes)
             ? const_cast<void*>(address)
             : nullptr;
}

void load(Cta& cta, void* value, void* address, StrongAccess access) {
  auto const n = static_cast<std::size_t>(access.bytes);
  if (address == nullptr) {
    std::memset(value, 0xff, n);
    return;
  }
  cta.cluster().watch_read(address, access.shared, access.where);
  access.instruction = load_of(access.order);
  access.address = address;
  access.reads = true;
  if (cta.checking()) cta.observers().strong_access_performed(cta, access);
  std::memcpy(value, address, n);
}

void store(Cta& cta, void* address, void const* value, StrongAccess access) {
  if (address == nullptr) return;
  access.instruction = store_of(access.order);
  access.address = address;
  access.writes = true;
  if (cta.checking()) cta.observers().strong_access_performed(cta, access);
  cta.cluster().progressed();
  std::memcpy(address, value, static_cast<std::size_t>(access.bytes));
}

/// What is stored or combined, kept for later.
struct Kept {
  Kept(void const* value, int n) : bytes(n) {
    std::memcpy(bits, value, static_cast<std::size_t>(bytes));
  }
  int bytes;
  unsigned char bits[16];
};

/// Fails where the machine's generation lacks the atomic.
void check_generation(Cta& cta, Instruction instruction, AtomicSpec const& spec,
                      SourceLocation where) {
  int const has = spec_of(cta.generation()).compute_capability, needs = compute_capability(spec);
  if (has >= needs) return;
  std::string what = to_string(spec.type);
  if (spec.elements > 1) what = fmt::format("{} elements of {}", spec.elements, what);
  cta.fail(
      FindingKind::invalid_operand, where, cta.here(),
      fmt::format("{} of {} at the scope of the {} is an instruction of sm_{}, and the machine "
                  "an sm_{}",
                  ptx_name(instruction), what,
                  spec.scope == Scope::cta       ? "CTA"
                  : spec.scope == Scope::cluster ? "cluster"
                  : spec.scope == Scope::gpu     ? "GPU"
                                                 : "system",
                  needs, has));
}

/// Performs an atomic on its elements, each by itself. PTX leaves open in which order.
void change(Cta& cta, AtomicSpec const& spec, void* place, Kept const& value, void const* expected,
            void* old, StrongAccess access) {
  if (place == nullptr) {
    if (old != nullptr) std::memset(old, 0xff, static_cast<std::size_t>(value.bytes));
    return;
  }
  int const bytes = bytes_of(spec.type);
  access.bytes = bytes;
  access.shared = spec.shared;
  access.scope = spec.scope;
  access.reads = spec.returns;
  access.modifies = true;
  for (int i = 0; i < spec.elements; ++i) {
    int const at = i * bytes;
    auto* const word = static_cast<unsigned char*>(place) + at;
    AtomicBits const there = load_word(word, spec.type);
    AtomicBits const wanted = expected != nullptr ? load_word(expected, spec.type) : AtomicBits{};
    AtomicBits const result = combined(spec.op, spec.type, there,
                                       load_word(value.bits + at, spec.type), wanted, !spec.shared);
    access.address = word;
    access.writes = spec.op != AtomicOp::compare_and_swap || there == wanted;
    if (cta.checking()) cta.observers().strong_access_performed(cta, access);
    // A red learns nothing, and so polls nothing.
    if (result == there && spec.returns) {
      cta.cluster().watch_read(word, spec.shared, access.where);
    } else {
      store_word(word, spec.type, result);
      cta.cluster().progressed();
    }
    if (old != nullptr) store_word(static_cast<unsigned char*>(old) + at, spec.type, there);
  }
}

void* reached(Cta& cta, Instruction instruction, AtomicSpec const& spec, void* address,
              SourceLocation where) {
  return reached(cta, instruction, address, bytes_of(spec), GlobalAccess::atomic, where);
}
void* reached(Cta& cta, Instruction instruction, AtomicSpec const& spec, std::uint32_t address,
              SourceLocation where) {
  return reached(cta, instruction, address, bytes_of(spec), {spec.scope, bytes_of(spec.type)}, true,
                 where);
}

/// An atomic at an address of global or of shared memory.
template <class Address>
void perform_atomic(AtomicSpec const& spec, Address address, void const* value,
                    void const* expected, void* old, SourceLocation where) {
  Instruction const instruction = spec.returns
                                      ? spec.shared ? Instruction::atom_shared : Instruction::atom
                                  : spec.shared ? Instruction::red_shared
                                                : Instruction::red;
  Mutation const without = spec.order == MemoryOrder::relaxed ? Mutation::weakened : Mutation::none;
  auto const body = [=, kept = Kept(value, bytes_of(spec))](Cta& cta, Mutation m) {
    check_generation(cta, instruction, spec, where);
    void* const place = reached(cta, instruction, spec, address, where);
    MemoryOrder const order = m == Mutation::weakened ? MemoryOrder::relaxed : spec.order;
    change(cta, spec, place, kept, expected, old,
           {.instruction = instruction, .order = order, .where = where});
  };
  perform(instruction, where, without, body);
}

}  // namespace

void atomic(AtomicSpec const& spec, void* address, void const* value, void const* expected,
            void* old, SourceLocation where) {
  perform_atomic(spec, address, value, expected, old, where);
}
void atomic(AtomicSpec const& spec, std::uint32_t address, void const* value, void const* expected,
            void* old, SourceLocation where) {
  perform_atomic(spec, address, value, expected, old, where);
}

void ld_global_ordered(void* value, void const* address, int bytes, MemoryOrder order, Scope scope,
                       SourceLocation where) {
  Cta& cta = current_cta();
  if (mutation_of(load_of(order), where) == Mutation::weakened) order = MemoryOrder::relaxed;
  void* const word = reached(cta, load_of(order), address, bytes, GlobalAccess::read, where);
  load(cta, value, word, {.bytes = bytes, .order = order, .scope = scope, .where = where});
}

void ld_shared_ordered(void* value, std::uint32_t address, int bytes, MemoryOrder order,
                       Scope scope, SourceLocation where) {
  Cta& cta = current_cta();
  if (mutation_of(load_of(order), where) == Mutation::weakened) order = MemoryOrder::relaxed;
  void* const word =
      reached(cta, load_of(order), address, bytes, Strength{scope, bytes}, false, where);
  load(cta, value, word,
       {.bytes = bytes, .shared = true, .order = order, .scope = scope, .where = where});
}

void st_global_ordered(void* address, void const* value, int bytes, MemoryOrder order, Scope scope,
                       SourceLocation where) {
  perform(store_of(order), where, [=, kept = Kept(value, bytes)](Cta& cta, Mutation m) {
    MemoryOrder const as = m == Mutation::weakened ? MemoryOrder::relaxed : order;
    void* const word = reached(cta, store_of(as), address, bytes, GlobalAccess::atomic, where);
    store(cta, word, kept.bits, {.bytes = bytes, .order = as, .scope = scope, .where = where});
  });
}

void st_shared_ordered(std::uint32_t address, void const* value, int bytes, MemoryOrder order,
                       Scope scope, SourceLocation where) {
  perform(store_of(order), where, [=, kept = Kept(value, bytes)](Cta& cta, Mutation m) {
    MemoryOrder const as = m == Mutation::weakened ? MemoryOrder::relaxed : order;
    void* const word =
        reached(cta, store_of(as), address, bytes, Strength{scope, bytes}, true, where);
    store(cta, word, kept.bits,
          {.bytes = bytes, .shared = true, .order = as, .scope = scope, .where = where});
  });
}

}  // namespace tegula::sim
