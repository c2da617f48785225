#include <cstring>

#include "isa/combine.hpp"
#include "isa/perform.hpp"

/// Atomics, and strong loads and stores, of global and of shared memory: PTX ISA, atom, red, and ld
/// and st with .relaxed, .acquire and .release.
namespace tegula::sim {

namespace {

/// The instruction of a strong load, or store.
Instruction load_of(MemoryOrder order) {
  return order == MemoryOrder::acquire ? Instruction::ld_acquire : Instruction::ld_relaxed;
}
Instruction store_of(MemoryOrder order) {
  return order == MemoryOrder::release ? Instruction::st_release : Instruction::st_relaxed;
}

/// Performs an atomic on the word, and returns what was there.
std::uint64_t change(Cta& cta, AtomicOp op, AtomicType type, void* word, StrongAccess access,
                     std::uint64_t value, std::uint64_t expected) {
  if (word == nullptr) return ~std::uint64_t{0};
  access.instruction = access.shared ? Instruction::atom_shared : Instruction::atom;
  access.address = word;
  access.bytes = bytes_of(type);
  access.reads = true;
  std::uint64_t const old = load_word(word, type);
  std::uint64_t const result = combined(op, type, old, value, expected);
  access.writes = op != AtomicOp::compare_and_swap || old == expected;
  if (cta.checking()) cta.observers().strong_access_performed(cta, access);
  if (result == old) {
    cta.cluster().watch_read(access.address, access.shared, access.where);
  } else {
    store_word(word, type, result);
    cta.cluster().progressed();
  }
  return old;
}

/// Shared memory that a strong access reaches, its own or a peer's; null, after a finding, where it
/// must not be performed.
void* reached(Cta& cta, Instruction instruction, std::uint32_t address, int bytes, Scope scope,
              bool writes, SourceLocation where) {
  cta.note(instruction, where, {bytes, address & kLocalMask});
  if (scope == Scope::cta) cta.own_address(instruction, address, where);
  Cta* const peer = cta.target(instruction, address, where);
  if (peer == nullptr) return nullptr;
  int const lane = cta.current_thread().lane;
  return peer->shared_access(instruction, address, bytes, writes, where, lane)
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

/// What is stored, kept for later.
struct Word {
  explicit Word(void const* value, int bytes) {
    std::memcpy(bits, value, static_cast<std::size_t>(bytes));
  }
  unsigned char bits[8];
};

}  // namespace

std::uint64_t atomic(AtomicOp op, AtomicType type, void* address, std::uint64_t value,
                     std::uint64_t expected, SourceLocation where) {
  Cta& cta = current_cta();
  int const bytes = bytes_of(type);
  void* const word = reached(cta, Instruction::atom, address, bytes, GlobalAccess::atomic, where);
  return change(cta, op, type, word, {.scope = Scope::gpu, .where = where}, value, expected);
}

std::uint64_t atomic_shared(AtomicOp op, AtomicType type, std::uint32_t address,
                            std::uint64_t value, std::uint64_t expected, Scope scope,
                            SourceLocation where) {
  Cta& cta = current_cta();
  int const bytes = bytes_of(type);
  void* const word = reached(cta, Instruction::atom_shared, address, bytes, scope, true, where);
  return change(cta, op, type, word, {.shared = true, .scope = scope, .where = where}, value,
                expected);
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
  void* const word = reached(cta, load_of(order), address, bytes, scope, false, where);
  load(cta, value, word,
       {.bytes = bytes, .shared = true, .order = order, .scope = scope, .where = where});
}

void st_global_ordered(void* address, void const* value, int bytes, MemoryOrder order, Scope scope,
                       SourceLocation where) {
  perform(store_of(order), where, [=, kept = Word(value, bytes)](Cta& cta, Mutation m) {
    MemoryOrder const as = m == Mutation::weakened ? MemoryOrder::relaxed : order;
    void* const word = reached(cta, store_of(as), address, bytes, GlobalAccess::atomic, where);
    store(cta, word, kept.bits, {.bytes = bytes, .order = as, .scope = scope, .where = where});
  });
}

void st_shared_ordered(std::uint32_t address, void const* value, int bytes, MemoryOrder order,
                       Scope scope, SourceLocation where) {
  perform(store_of(order), where, [=, kept = Word(value, bytes)](Cta& cta, Mutation m) {
    MemoryOrder const as = m == Mutation::weakened ? MemoryOrder::relaxed : order;
    void* const word = reached(cta, store_of(as), address, bytes, scope, true, where);
    store(cta, word, kept.bits,
          {.bytes = bytes, .shared = true, .order = as, .scope = scope, .where = where});
  });
}

}  // namespace tegula::sim
