#pragma once

#include <cstdint>
#include <type_traits>

#include "hopper_kernels.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/ordered_access.hpp"
#include "tegula/arch/reduction.hpp"

/// One tiny kernel for each way to use atomics, for any machine, as those of
/// instruction_kernels.hpp: what each leaves does not depend on the order of its threads.
namespace tegula::atomic_kernels {

using namespace hopper_kernels;

/// Base: four CTAs of 64 threads, in clusters of one; what is changed begins as zeros.
struct FourCtas : OneWarp {
  static constexpr int threads = 64;
  static constexpr int ctas = 4;
  static constexpr Dim3 grid() { return {ctas, 1, 1}; }
  static constexpr bool zeroed = true;
  static constexpr int architecture = 90;

  TEGULA_DEVICE static int id() { return block_idx().x * threads + thread_idx(); }
};

/// Every operation on integers of type T, in global memory with and without a result. in: a word
/// for each thread. out: what seven words became by atom, and by red; the exclusive-or of what the
/// sums returned, which are all different.
template <class T> struct IntegerAtomics : FourCtas {
  static constexpr int words = sizeof(T) / 4;
  static constexpr int in_words = ctas * threads;
  static constexpr int out_words = 16 * words;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    auto const operand = ld_global<std::uint32_t>(p.in + id());
    T const value = static_cast<T>(static_cast<T>(operand) << (sizeof(T) == 8 ? 20 : 0));
    T* const by_atom = reinterpret_cast<T*>(p.out);
    T* const by_red = by_atom + 7;
    T const before = atom_add(by_atom, T{3});
    atom_min(by_atom + 1, value);
    atom_max(by_atom + 2, value);
    atom_or(by_atom + 3, value);
    atom_xor(by_atom + 4, value);
    atom_and(by_atom + 5, static_cast<T>(~value));
    atom_cas(by_atom + 6, id() == 11 ? T{0} : T{-1 & 0x7fff}, T{77});
    red_add(by_red, T{3});
    red_min(by_red + 1, value);
    red_max(by_red + 2, value);
    red_or(by_red + 3, value);
    red_xor(by_red + 4, value);
    red_and(by_red + 5, static_cast<T>(~value));
    red_xor(by_red + 8, before);
  }
};

/// Counters that begin again: 256 times up to 9, and down from 9; likewise without a result.
struct Counters : FourCtas {
  static constexpr int in_words = 0;
  static constexpr int out_words = 5;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    red_add(p.out + 4, atom_inc(p.out, 9u));
    atom_dec(p.out + 1, 9u);
    red_inc(p.out + 2, 9u);
    red_dec(p.out + 3, 9u);
  }
};

/// The same operations in shared memory, by the CTA's own threads, or by those of its peer. in: a
/// word for each thread. out: of each CTA what became of ten words.
/// Those of 64 bits in a peer's shared memory are sums only.
template <class T, Scope S> struct SharedIntegers : OfClusters<2> {
  static constexpr int threads = 64;
  static constexpr int words = sizeof(T) / 4;
  struct SharedStorage {
    T word[10];
    template <class F> void name_buffers(F&& name) { name("word", word); }
  };
  static constexpr int in_words = 2 * threads;
  static constexpr int out_words = 2 * 10 * words;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx(), rank = cluster_cta_rank();
    auto const operand = ld_global<std::uint32_t>(p.in + rank * threads + t);
    T const value = static_cast<T>(static_cast<T>(operand) << (sizeof(T) == 8 ? 20 : 0));
    SharedAddr const own = shared_address(smem.word);
    if (t < 10)
      st_shared(own + static_cast<SharedAddr>(sizeof(T)) * static_cast<SharedAddr>(t), T{0});
    cluster::sync();
    SharedAddr const to = S == Scope::cta ? own : mapa(own, rank ^ 1);
    constexpr SharedAddr size = sizeof(T);
    atom_shared_add<S>(to, T{5});
    red_shared_add<S>(to, T{1});
    if constexpr (S == Scope::cta || sizeof(T) == 4) {
      atom_shared_min<S>(to + size, value);
      red_shared_min<S>(to + size, T{7});
      atom_shared_max<S>(to + 2 * size, value);
      red_shared_max<S>(to + 3 * size, value);
      atom_shared_or<S>(to + 4 * size, value);
      red_shared_or<S>(to + 5 * size, value);
      atom_shared_xor<S>(to + 6 * size, value);
      red_shared_xor<S>(to + 7 * size, value);
      if (t == 20) atom_shared_exch<S>(to + 8 * size, T{99});
      atom_shared_cas<S>(to + 9 * size, t == 30 ? T{0} : T{5}, T{42});
      atom_shared_and<S>(to + 4 * size, static_cast<T>(~T{0}));
      red_shared_and<S>(to + 5 * size, static_cast<T>(~T{0}));
    }
    cluster::sync();
    T* const out = reinterpret_cast<T*>(p.out) + 10 * rank;
    if (t < 10) st_global(out + t, ld_shared<T>(own + size * static_cast<SharedAddr>(t)));
  }
};

/// A histogram of shared memory, then one of global memory, of 64 values each of the CTAs.
struct Histogram : FourCtas {
  struct SharedStorage {
    std::uint32_t bin[16];
    template <class F> void name_buffers(F&& name) { name("bin", bin); }
  };
  static constexpr int in_words = ctas * threads;
  static constexpr int out_words = 16;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    auto const bin = [&](std::uint32_t i) { return shared_address(smem.bin + i); };
    auto const t = static_cast<std::uint32_t>(thread_idx());
    if (t < 16) st_shared(bin(t), 0u);
    cta::sync();
    red_shared_inc(bin(ld_global<std::uint32_t>(p.in + id()) % 16), ~0u);
    cta::sync();
    if (t < 16) red_add(p.out + t, ld_shared<std::uint32_t>(bin(t)));
  }
};

/// The greatest of all values and the first place that has it: 64 bits, the value above the place.
struct ArgMax : FourCtas {
  static constexpr int in_words = ctas * threads;
  static constexpr int out_words = 2;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    std::uint64_t const value = ld_global<std::uint32_t>(p.in + id()) % 100;
    red_max(reinterpret_cast<std::uint64_t*>(p.out),
            value << 32 | (0xffffffffu - static_cast<std::uint32_t>(id())));
  }
};

/// Each thread adds its own eight values to its own eight: one rounding each. `Specials`: also to
/// and of infinities and NaNs. in: of each thread the values, then the addends. out: eight halves
/// by vectors of eight, four and two and by single ones, and what these returned.
template <class T, bool Specials> struct ShortSums : OneWarp {
  static constexpr int architecture = 90;
  static constexpr int in_words = 32 * 8;
  static constexpr int out_words = 32 * 20;
  struct SharedStorage {
    T value[32 * 8];
    template <class F> void name_buffers(F&& name) { name("value", value); }
  };

  /// Two elements. That of which no special value is made has an exponent less.
  TEGULA_DEVICE static std::uint32_t pair(std::uint32_t bits) {
    constexpr std::uint32_t kTopOfExponent = 0x40004000u;
    return Specials ? bits : bits & ~kTopOfExponent;
  }
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    RegisterBits<16> initial, addend;
    for (int i = 0; i < 4; ++i) {
      initial.word[i] = pair(ld_global<std::uint32_t>(p.in + 8 * lane + i));
      addend.word[i] = pair(ld_global<std::uint32_t>(p.in + 8 * lane + 4 + i));
    }
    auto* const out = reinterpret_cast<T*>(p.out) + 40 * lane;
    for (int i = 0; i < 4; ++i) st_global(out + 8 * i, initial);
    auto const all = bits_as<Vector<T, 8>>(addend);
    auto const halves = bits_as<Vector<Vector<T, 4>, 2>>(addend);
    auto const pairs = bits_as<Vector<Vector<T, 2>, 4>>(addend);
    auto const old = atom_add(out, all);
    red_add(out + 8, halves.data[0]);
    atom_add(out + 12, halves.data[1]);
    for (int i = 0; i < 4; ++i) red_add(out + 16 + 2 * i, pairs.data[i]);
    for (int i = 0; i < 8; i += 2) {
      atom_add(out + 24 + i, all.data[i]);
      red_add(out + 25 + i, all.data[i + 1]);
    }
    st_global(out + 32, old);
    // And in shared memory, over the first eight: the same sums.
    SharedAddr const own = shared_address(smem.value + 8 * lane);
    st_shared(own, initial);
    for (SharedAddr i = 0; i < 4; i += 2) {
      atom_shared_add(own + 4 * i, pairs.data[i]);
      red_shared_add(own + 4 * i + 4, pairs.data[i + 1]);
    }
    auto const shared = ld_shared<RegisterBits<16>>(own);
    st_shared(own, initial);
    for (SharedAddr i = 0; i < 8; i += 2) {
      atom_shared_add(own + 2 * i, all.data[i]);
      red_shared_add(own + 2 * i + 2, all.data[i + 1]);
    }
    auto const singly = ld_shared<RegisterBits<16>>(own);
    for (int i = 0; i < 4; ++i) {
      red_xor(reinterpret_cast<std::uint32_t*>(out + 32) + i, shared.word[i] ^ singly.word[i]);
    }
  }
};

/// Likewise of float: vectors of four and two, single ones, and in shared memory. in: of each
/// thread four values and four addends. `Specials`: of any bits, and not of magnitudes around one.
template <bool Specials> struct FloatSums : OneWarp {
  static constexpr int architecture = 90;
  static constexpr int in_words = 32 * 8;
  static constexpr int out_words = 32 * 20;
  struct SharedStorage {
    float value[32 * 4];
    template <class F> void name_buffers(F&& name) { name("value", value); }
  };

  TEGULA_DEVICE static std::uint32_t word(std::uint32_t bits) {
    // Sixteen exponents around one.
    return Specials ? bits : (bits & 0x87ffffffu) | 0x38000000u;
  }
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    RegisterBits<16> initial, addend;
    for (int i = 0; i < 4; ++i) {
      initial.word[i] = word(ld_global<std::uint32_t>(p.in + 8 * lane + i));
      addend.word[i] = word(ld_global<std::uint32_t>(p.in + 8 * lane + 4 + i));
    }
    auto* const out = reinterpret_cast<float*>(p.out) + 20 * lane;
    for (int i = 0; i < 4; ++i) st_global(out + 4 * i, initial);
    auto const all = bits_as<Vector<float, 4>>(addend);
    auto const pairs = bits_as<Vector<Vector<float, 2>, 2>>(addend);
    auto const old = atom_add(out, all);
    red_add(out + 4, all);
    red_add(out + 8, pairs.data[0]);
    atom_add(out + 10, pairs.data[1]);
    for (int i = 0; i < 4; i += 2) {
      atom_add(out + 12 + i, all.data[i]);
      red_add(out + 13 + i, all.data[i + 1]);
    }
    SharedAddr const own = shared_address(smem.value + 4 * lane);
    st_shared(own, initial);
    for (SharedAddr i = 0; i < 4; i += 2) {
      atom_shared_add(own + 4 * i, all.data[i]);
      red_shared_add(own + 4 * i + 4, all.data[i + 1]);
    }
    auto const shared = ld_shared<RegisterBits<16>>(own);
    for (int i = 0; i < 4; ++i)
      st_global(out + 16 + i, bits_as<std::uint32_t>(old.data[i]) ^ shared.word[i]);
  }
};

/// Subnormals of float: global memory takes them for zeros, shared memory keeps them. out: both
/// sums, and what the first returned.
struct SubnormalSums : OneWarp {
  struct SharedStorage {
    float value;
    template <class F> void name_buffers(F&& name) { name("value", value); }
  };
  static constexpr int in_words = 0;
  static constexpr int out_words = 4;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    auto* const out = reinterpret_cast<float*>(p.out);
    auto const tiny = bits_as<float>(0x80000003u);
    red_add(out, tiny);
    st_global(out + 1, tiny);
    st_global(out + 2, atom_add(out + 1, 0.0f));
    SharedAddr const own = shared_address(&smem.value);
    st_shared(own, tiny);
    atom_shared_add(own, tiny);
    st_global(out + 3, ld_shared<float>(own));
  }
};

/// Values of 16 and of 128 bits. in: 8 words. out: what two places became, and what was there.
struct BitsOfOtherSizes : OneWarp {
  static constexpr int architecture = 90;
  struct alignas(16) Wide {
    std::uint32_t word[4];
  };
  struct SharedStorage {
    Wide wide;
    std::uint32_t narrow;
    template <class F> void name_buffers(F&& name) {
      name("wide", wide.word);
      name("narrow", narrow);
    }
  };
  static constexpr int in_words = 8;
  static constexpr int out_words = 24;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    auto const a = ld_global<Wide>(p.in), b = ld_global<Wide>(p.in + 4);
    auto* const out = reinterpret_cast<Wide*>(p.out);
    atom_exch(out, a);
    st_global(out + 1, atom_cas(out, a, b));
    st_global(out + 2, atom_cas(out, a, Wide{{1, 2, 3, 4}}));
    SharedAddr const wide = shared_address(&smem.wide), narrow = shared_address(&smem.narrow);
    st_shared(wide, a);
    atom_shared_exch(wide, b);
    st_global(out + 3, atom_shared_cas(wide, b, a));
    st_global(out + 4, ld_shared<Wide>(wide));
    auto* const halves = reinterpret_cast<std::uint16_t*>(p.out + 20);
    atom_cas(halves + 1, std::uint16_t{0}, std::uint16_t{0x1234});
    atom_cas(halves + 1, std::uint16_t{0}, std::uint16_t{0x5678});
    st_shared(narrow, 0xabcd0000u);
    auto const was = atom_shared_cas(narrow + 2, std::uint16_t{0xabcd}, std::uint16_t{0x9999});
    st_global(p.out + 21, ld_shared<std::uint32_t>(narrow));
    st_global(p.out + 22, std::uint32_t{was});
  }
};

/// A lock of a word: who takes it acquires, who gives it back releases. Each warp of each CTA adds
/// to two words as plain ones.
struct Lock : FourCtas {
  static constexpr bool concurrent = true, polls = true;
  static constexpr int in_words = 0;
  static constexpr int out_words = 3;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    while (atom_cas<Scope::gpu, MemoryOrder::acquire>(p.out, 0u, 1u) != 0) {
    }
    for (int i : {1, 2}) st_global(p.out + i, ld_global<std::uint32_t>(p.out + i) + 1);
    atom_exch<Scope::gpu, MemoryOrder::release>(p.out, 0u);
  }
};

/// The last CTA to draw a ticket adds up what all have stored. in: a word for each thread. out: the
/// sum, the ticket, what the CTAs stored.
struct LastBlock : FourCtas {
  struct SharedStorage {
    std::uint32_t part;
    std::uint32_t last;
    template <class F> void name_buffers(F&& name) {
      name("part", part);
      name("last", last);
    }
  };
  static constexpr int in_words = ctas * threads;
  static constexpr int out_words = 2 + ctas;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    SharedAddr const part = shared_address(&smem.part), last = shared_address(&smem.last);
    if (t == 0) st_shared(part, 0u);
    cta::sync();
    red_shared_add(part, ld_global<std::uint32_t>(p.in + id()));
    cta::sync();
    if (t == 0) {
      st_global(p.out + 2 + block_idx().x, ld_shared<std::uint32_t>(part));
      auto const ticket = atom_inc<Scope::gpu, MemoryOrder::acq_rel>(p.out + 1, ctas - 1u);
      st_shared(last, static_cast<std::uint32_t>(ticket == ctas - 1u));
    }
    cta::sync();
    if (t != 32 || ld_shared<std::uint32_t>(last) == 0) return;
    std::uint32_t sum = 0;
    for (int i = 0; i < ctas; ++i) sum += ld_global<std::uint32_t>(p.out + 2 + i);
    st_global(p.out, sum);
  }
};

/// All kernels of this file.
using AllKernels =
    Kernels<IntegerAtomics<std::uint32_t>, IntegerAtomics<std::int32_t>,
            IntegerAtomics<std::uint64_t>, IntegerAtomics<std::int64_t>, Counters,
            SharedIntegers<std::uint32_t, Scope::cta>, SharedIntegers<std::int32_t, Scope::cluster>,
            SharedIntegers<std::uint64_t, Scope::cluster>, SharedIntegers<std::int64_t, Scope::cta>,
            Histogram, ArgMax, ShortSums<half, false>, ShortSums<half, true>,
            ShortSums<bfloat16, false>, ShortSums<bfloat16, true>, FloatSums<false>,
            FloatSums<true>, SubnormalSums, BitsOfOtherSizes, Lock, LastBlock>;

}  // namespace tegula::atomic_kernels
