#pragma once

#include <cstdint>
#include <string_view>

#include "tegula/atom/name.hpp"
#include "tegula/layout/layout.hpp"

/// The copy instructions as values: which thread's which bit goes where. The bit numbering is a copy's own;
/// it only ties source and destination together, so one atom serves every element type (`recast` its layouts
/// to the width of the element).
namespace tegula {

/// One copy instruction as a value. `src`, `dst` and `ref` map (thread, value) to a bit index; a value is one
/// bit. The (thread, value) layout of a tiled copy is stated for `ref`, which is the side that lives in
/// registers (the source, where both or neither do).
struct CopyAtom {
  Name name;
  int threads = 0;
  Layout src;
  Layout dst;
  Layout ref;

  friend constexpr bool operator==(CopyAtom const&, CopyAtom const&) = default;
};

enum class CopyOp : std::uint8_t {
  ldmatrix,
  ldmatrix_trans,
  stmatrix,
  stmatrix_trans,
  cp_async_ca,
  cp_async_ca_zfill,
  cp_async_cg,
  cp_async_cg_zfill,
  universal,         // a plain load and store
  auto_vectorizing,  // as wide as layouts and the stated alignment allow: one value at a time until then
};

/// A copy instruction before its layouts are computed. `amount` is a count of 8x8 matrices of 16-bit elements
/// for the matrix instructions (1, 2, 4), and a number of bits for the others.
struct CopySpec {
  CopyOp op{};
  int amount = 0;
};

namespace detail {

/// (thread, bit) of the rows that threads address in shared memory: thread i gives the address of row i % (8
/// * matrices), of 128 bits. With fewer than 4 matrices the further threads' addresses are not used; they are
/// written here as repeats, as CuTe does.
constexpr Layout matrix_rows(int matrices) {
  if (matrices == 4) {
    return layout(shape(32, 128), stride(128, 1));
  }
  return layout(shape(shape(8 * matrices, 4 / matrices), 128), stride(stride(128, 0), 1));
}

/// (thread, bit) of the registers. PTX ISA, ldmatrix: thread t holds elements 2*(t%4) and 2*(t%4)+1 of row
/// t/4 of each matrix; these are bits 32*t .. 32*t+31 of the matrix.
constexpr Layout matrix_registers(int matrices) {
  if (matrices == 1) {
    return layout(shape(32, 32), stride(32, 1));
  }
  return layout(shape(32, shape(32, matrices)), stride(32, stride(1, 1024)));
}

/// The same with .trans: thread t holds column t/4, rows 2*(t%4) and 2*(t%4)+1; rows are 128 bits apart.
constexpr Layout matrix_registers_trans(int matrices) {
  if (matrices == 1) {
    return layout(shape(shape(4, 8), shape(16, 2)), stride(stride(256, 16), stride(1, 128)));
  }
  return layout(shape(shape(4, 8), shape(16, 2, matrices)), stride(stride(256, 16), stride(1, 128, 1024)));
}

/// What follows `base` in `name`, as a width in bits: UniversalCopy<uint128_t>, UniversalCopy<128>,
/// UniversalCopy_128 -> 128; 0 if the rest is not a width. `name` itself is `base` with nothing after it: the
/// widest, 128.
constexpr int copy_width(std::string_view name, std::string_view base) {
  if (!name.starts_with(base)) {
    return 0;
  }
  name.remove_prefix(base.size());
  if (name.empty()) {
    return 128;
  }
  bool const bracketed = name.front() == '<' && name.back() == '>';
  if (bracketed) {
    name = name.substr(1, name.size() - 2);
  } else if (name.front() == '_') {
    name.remove_prefix(1);
  }
  for (std::string_view const prefix : {std::string_view("cute::"), std::string_view("uint")}) {
    if (bracketed && name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
    }
  }
  int bits = 0;
  std::size_t used = 0;
  for (; used < name.size() && name[used] >= '0' && name[used] <= '9' && bits < 1000; ++used) {
    bits = 10 * bits + (name[used] - '0');
  }
  std::string_view const rest = name.substr(used);
  return used > 0 && (rest.empty() || (bracketed && rest == "_t")) ? bits : 0;
}

/// The name without its width.
constexpr std::string_view copy_base_name(CopyOp op) {
  switch (op) {
    case CopyOp::ldmatrix:
      return "SM75_U32x";
    case CopyOp::ldmatrix_trans:
      return "SM75_U16x";
    case CopyOp::stmatrix:
      return "SM90_U32x";
    case CopyOp::stmatrix_trans:
      return "SM90_U16x";
    case CopyOp::cp_async_ca:
      return "SM80_CP_ASYNC_CACHEALWAYS";
    case CopyOp::cp_async_ca_zfill:
      return "SM80_CP_ASYNC_CACHEALWAYS_ZFILL";
    case CopyOp::cp_async_cg:
      return "SM80_CP_ASYNC_CACHEGLOBAL";
    case CopyOp::cp_async_cg_zfill:
      return "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL";
    case CopyOp::universal:
      return "UniversalCopy";
    case CopyOp::auto_vectorizing:
      return "AutoVectorizingCopyWithAssumedAlignment";
  }
  return "?";
}

}  // namespace detail

/// The name of a copy in the field's spelling: SM75_U32x4_LDSM_N, SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>,
/// UniversalCopy<uint16_t>.
constexpr Name copy_name(CopySpec const& s) {
  Name name;
  name.append(detail::copy_base_name(s.op));
  switch (s.op) {
    case CopyOp::ldmatrix:
      return name.append(s.amount).append("_LDSM_N");
    case CopyOp::ldmatrix_trans:
      return name.append(2 * s.amount).append("_LDSM_T");  // counted in 16-bit elements a thread
    case CopyOp::stmatrix:
      return name.append(s.amount).append("_STSM_N");
    case CopyOp::stmatrix_trans:
      return name.append(2 * s.amount).append("_STSM_T");
    case CopyOp::auto_vectorizing:
      return name.append("<").append(s.amount).append(">");
    default:
      return name.append("<uint").append(s.amount).append("_t>");
  }
}

/// The instruction with its layouts. Sources: PTX ISA, ldmatrix, stmatrix, cp.async; the bit numbering is
/// CuTe's.
constexpr CopyAtom copy_atom(CopySpec const& s) {
  CopyAtom atom{.name = copy_name(s), .threads = 32, .src = {}, .dst = {}, .ref = {}};
  switch (s.op) {
    case CopyOp::ldmatrix:
    case CopyOp::ldmatrix_trans:
      atom.src = detail::matrix_rows(s.amount);
      atom.dst = s.op == CopyOp::ldmatrix ? detail::matrix_registers(s.amount)
                                          : detail::matrix_registers_trans(s.amount);
      atom.ref = atom.dst;
      return atom;
    case CopyOp::stmatrix:
    case CopyOp::stmatrix_trans:
      atom.src = s.op == CopyOp::stmatrix ? detail::matrix_registers(s.amount)
                                          : detail::matrix_registers_trans(s.amount);
      atom.dst = detail::matrix_rows(s.amount);
      atom.ref = atom.src;
      return atom;
    default:
      atom.threads = 1;
      // An auto-vectorizing copy is one value of any type; the others move their bits.
      atom.src = s.op == CopyOp::auto_vectorizing ? layout(shape(1, 1), stride(0, 0))
                                                  : layout(shape(1, s.amount), stride(0, 1));
      atom.dst = atom.src;
      atom.ref = atom.src;
      return atom;
  }
}

/// Calls `visit(CopySpec)` for every copy of the catalogue, until one call returns true; returns whether one
/// did.
template <class Visit> constexpr bool any_copy(Visit&& visit) {
  using enum CopyOp;
  struct Family {
    CopyOp op;
    int first, last;  // the amount doubles from first to last
  };
  constexpr Family families[] = {{ldmatrix, 1, 4},        {ldmatrix_trans, 1, 4},
                                 {stmatrix, 1, 4},        {stmatrix_trans, 1, 4},
                                 {cp_async_ca, 32, 128},  {cp_async_ca_zfill, 32, 128},
                                 {cp_async_cg, 128, 128}, {cp_async_cg_zfill, 128, 128},
                                 {universal, 8, 128},     {auto_vectorizing, 8, 128}};
  for (Family const& f : families) {
    for (int amount = f.first; amount <= f.last; amount *= 2) {
      if (visit(CopySpec{f.op, amount})) {
        return true;
      }
    }
  }
  return false;
}

/// Whether the catalogue holds a copy of this name; if so `found` is set to it. The width of a plain or
/// asynchronous copy may also be given as a number, UniversalCopy<64>, or left out, which means 128 bits.
constexpr bool find_copy(std::string_view name, CopySpec& found) {
  return any_copy([&](CopySpec const& spec) {
    bool const counted_in_bits = spec.op >= CopyOp::cp_async_ca;
    if (copy_name(spec).view() != name &&
        !(counted_in_bits && detail::copy_width(name, detail::copy_base_name(spec.op)) == spec.amount)) {
      return false;
    }
    found = spec;
    return true;
  });
}

/// The copy of this name, e.g. copy_atom("SM75_U32x4_LDSM_N"); refuses a name that the catalogue does not
/// hold.
constexpr CopyAtom copy_atom(std::string_view name) {
  CopySpec spec;
  if (!find_copy(name, spec)) {
    refuse("copy_atom", "no copy instruction of the catalogue has this name; `tegula atoms` lists them all");
  }
  return copy_atom(spec);
}

}  // namespace tegula
