#pragma once

#include <cstdint>

#include "tegula/arch/scope.hpp"

/// The one name of an atomic: PTX's text is pasted from it, and the simulated machine performs it
/// by it. PTX ISA, atom and red.
namespace tegula {

enum class AtomicOp : std::uint8_t {
  add,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  inc,  ///< 0 where the word is the operand or more, else one more than it is
  dec,  ///< the operand where the word is 0 or more than that, else one less than it is
  exchange,
  compare_and_swap
};

/// What an operation takes its operands for; those of b16 to b128 are bits.
enum class AtomicType : std::uint8_t {
  u32,
  s32,
  f32,
  u64,
  s64,
  f64,
  f16,
  bf16,
  b16,
  b32,
  b64,
  b128
};

struct AtomicSpec {
  AtomicOp op;
  AtomicType type;  ///< of one element
  Scope scope;
  MemoryOrder order;
  bool shared;   ///< it is shared memory: at the scope of the CTA its own, else the cluster's
  bool returns;  ///< what was there before (atom), or nothing (red)
  /// neighbours that one instruction changes, each by an atomic of its own: PTX ISA, "Vector
  /// Data-types" and "Packed Data-types"
  std::uint16_t elements;
};

constexpr int bytes_of(AtomicType type) {
  switch (type) {
    case AtomicType::f16:
    case AtomicType::bf16:
    case AtomicType::b16:
      return 2;
    case AtomicType::u32:
    case AtomicType::s32:
    case AtomicType::f32:
    case AtomicType::b32:
      return 4;
    case AtomicType::b128:
      return 16;
    default:
      return 8;
  }
}

/// Of a whole instruction; its address is a multiple of it.
constexpr int bytes_of(AtomicSpec const& spec) { return spec.elements * bytes_of(spec.type); }

constexpr bool is_short_float(AtomicType type) {
  return type == AtomicType::f16 || type == AtomicType::bf16;
}
/// Whether its elements lie in pairs in registers of 32 bits: f16x2, bf16x2.
constexpr bool is_packed(AtomicSpec const& spec) {
  return is_short_float(spec.type) && spec.elements > 1;
}

/// The compute capability that it needs at least. PTX ISA, atom and red, "Target ISA Notes".
constexpr int compute_capability(AtomicSpec const& spec) {
  bool const vector = spec.elements > (is_packed(spec) ? 2 : 1);
  bool const peers = spec.scope == Scope::cluster || (spec.shared && spec.scope != Scope::cta);
  bool const of_90 = spec.type == AtomicType::bf16 || spec.type == AtomicType::b128;
  return vector || peers || of_90 ? 90 : 80;
}

constexpr char const* to_string(AtomicType type) {
  constexpr char const* names[] = {"u32", "s32",  "f32", "u64", "s64", "f64",
                                   "f16", "bf16", "b16", "b32", "b64", "b128"};
  return names[static_cast<int>(type)];
}
/// As PTX calls it.
constexpr char const* to_string(AtomicOp op) {
  constexpr char const* names[] = {"add", "min", "max", "and",  "or",
                                   "xor", "inc", "dec", "exch", "cas"};
  return names[static_cast<int>(op)];
}

}  // namespace tegula
