#pragma once

#include <cstdint>
#include <utility>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/mma_sync.hpp"
#include "tegula/arch/movmatrix.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/atom/catalogue.hpp"

/// One tiny kernel for each instruction, as a user would write it, for any machine. Each reads
/// `in_words` words, writes `out_words` words, and runs as a grid of `grid()` CTAs, so that one
/// test can run them all on two machines and compare.
namespace tegula::instruction_kernels {

/// What every kernel here is launched with.
struct Words {
  std::uint32_t const* in;
  std::uint32_t* out;
};

struct Nothing {};

/// Base of the kernels of one warp and one CTA.
struct OneWarp {
  using Params = Words;
  using SharedStorage = Nothing;
  static constexpr int threads = 32;
  static constexpr int min_ctas_per_sm = 1;
  static constexpr int architecture = 80;  ///< the first that has the instruction
  static constexpr Dim3 grid() { return {1, 1, 1}; }
};

/// Who am I, for every thread of a three-dimensional grid.
struct SpecialRegisters : OneWarp {
  static constexpr int threads = 64;
  static constexpr Dim3 grid() { return {3, 2, 2}; }
  static constexpr int in_words = 0;
  static constexpr int out_words = 12 * 64 * 6;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    Dim3 const block = block_idx();
    Dim3 const extent = grid_dim();
    int const cta = block.x + extent.x * (block.y + extent.y * block.z);
    std::uint32_t* const out = p.out + (cta * threads + thread_idx()) * 6;
    st_global(out, static_cast<std::uint32_t>(thread_idx()));
    st_global(out + 1, static_cast<std::uint32_t>(warp_id()));
    st_global(out + 2, static_cast<std::uint32_t>(lane_id()));
    st_global(out + 3, static_cast<std::uint32_t>(block.x));
    st_global(out + 4, static_cast<std::uint32_t>(block.y));
    st_global(out + 5, static_cast<std::uint32_t>(block.z));
  }
};

struct Pair {
  std::uint32_t word[2];
};
struct Quad {
  std::uint32_t word[4];
};

/// Loads and stores of 1 to 16 bytes through shared memory, each lane reading what the lane
/// opposite wrote.
struct VectorWidths : OneWarp {
  struct SharedStorage {
    alignas(16) std::uint8_t bytes[32 * 32];
    template <class F> void name_buffers(F&& name) { name("bytes", bytes); }
  };
  static constexpr int in_words = 32 * 8;
  static constexpr int out_words = 32 * 8;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    // A lane's 32 bytes: 16 as one vector, 8 as one, 4 as one, 2 as one, 2 as two single bytes.
    int const lane = lane_id();
    auto const* const in = reinterpret_cast<std::uint8_t const*>(p.in) + 32 * lane;
    SharedAddr const mine = shared_address(smem.bytes) + 32u * static_cast<SharedAddr>(lane);
    st_shared(mine, ld_global<Quad>(in));
    st_shared(mine + 16, ld_global<Pair>(in + 16));
    st_shared(mine + 24, ld_global_nc<std::uint32_t>(in + 24));
    st_shared(mine + 28, ld_global<std::uint16_t>(in + 28));
    st_shared(mine + 30, ld_global<std::uint8_t>(in + 30));
    st_shared(mine + 31, ld_global_nc<std::uint8_t>(in + 31));
    warp::sync();
    SharedAddr const other = shared_address(smem.bytes) + 32u * static_cast<SharedAddr>(31 - lane);
    auto* const out = reinterpret_cast<std::uint8_t*>(p.out) + 32 * lane;
    st_global(out, ld_shared<Quad>(other));
    st_global(out + 16, ld_shared<Pair>(other + 16));
    st_global(out + 24, ld_shared<std::uint32_t>(other + 24));
    st_global(out + 28, ld_shared<std::uint16_t>(other + 28));
    st_global(out + 30, ld_shared<std::uint8_t>(other + 30));
    st_global(out + 31, ld_shared<std::uint8_t>(other + 31));
  }
};

/// cp.async of 4, 8 and 16 bytes, whole, partial and empty: the rest is zeros.
struct CpAsyncSizes : OneWarp {
  struct SharedStorage {
    alignas(16) std::uint32_t words[32 * 12];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = 32 * 12;
  static constexpr int out_words = 32 * 12;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    std::uint32_t const* const in = p.in + 12 * lane;
    SharedAddr const mine = shared_address(smem.words) + 48u * static_cast<SharedAddr>(lane);
    cp_async_ca<4>(mine, in, lane % 5);
    cp_async_ca<4>(mine + 4, in + 1);
    cp_async_ca<8>(mine + 8, in + 2, lane % 9);
    cp_async_ca<16>(mine + 16, in + 4, lane % 17);
    cp_async_cg(mine + 32, in + 8, lane % 2 == 0 ? 16 : 0);
    cp_async_wait_all();
    for (int i = 0; i < 12; ++i) {
      st_global(p.out + 12 * lane + i,
                ld_shared<std::uint32_t>(mine + 4u * static_cast<SharedAddr>(i)));
    }
  }
};

/// A ring of three stages, two copies ahead: what each group brings is summed up after its wait.
struct CpAsyncGroups : OneWarp {
  static constexpr int stages = 3;
  static constexpr int steps = 8;
  struct SharedStorage {
    alignas(16) std::uint32_t ring[stages][32];
    template <class F> void name_buffers(F&& name) { name("ring", ring); }
  };
  static constexpr int in_words = 32 * steps;
  static constexpr int out_words = 32 * steps;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    auto const slot = [&](int step) {
      return shared_address(smem.ring) + static_cast<SharedAddr>(4 * (32 * (step % stages) + lane));
    };
    for (int step = 0; step < stages - 1; ++step) {
      cp_async_ca<4>(slot(step), p.in + 32 * step + lane);
      cp_async_commit_group();
    }
    std::uint32_t sum = 0;
    for (int step = 0; step < steps; ++step) {
      cp_async_wait_group<stages - 2>();
      sum += ld_shared<std::uint32_t>(slot(step));
      st_global(p.out + 32 * step + lane, sum);
      int const next = step + stages - 1;
      if (next < steps) cp_async_ca<4>(slot(next), p.in + 32 * next + lane);
      cp_async_commit_group();  // an empty group keeps the count
    }
  }
};

/// ldmatrix of Count matrices, plain or transposed. in: the matrices' rows, 4 words each. out:
/// Count words a lane.
template <int Count, bool Transpose> struct Ldmatrix : OneWarp {
  struct SharedStorage {
    alignas(16) std::uint16_t rows[8 * Count][8];
    template <class F> void name_buffers(F&& name) { name("rows", rows); }
  };
  static constexpr int in_words = 8 * Count * 4;
  static constexpr int out_words = 32 * Count;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    if (lane < 8 * Count)
      st_shared(shared_address(smem.rows[lane]), ld_global<Quad>(p.in + 4 * lane));
    warp::sync();
    std::uint32_t r[Count];
    SharedAddr const row = shared_address(smem.rows[lane % (8 * Count)]);
    if constexpr (Transpose) {
      ldmatrix_trans(r, row);
    } else {
      ldmatrix(r, row);
    }
    for (int i = 0; i < Count; ++i) st_global(p.out + Count * lane + i, r[i]);
  }
};

/// movmatrix: a matrix transposed between registers, and once more.
struct Movmatrix : OneWarp {
  static constexpr int in_words = 32;
  static constexpr int out_words = 64;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    std::uint32_t const once = movmatrix_trans(ld_global<std::uint32_t>(p.in + lane));
    st_global(p.out + 2 * lane, once);
    st_global(p.out + 2 * lane + 1, movmatrix_trans(once));
  }
};

/// Every mma.sync of arch/, out of the catalogue.
inline constexpr int kMmaCount = 82;
struct MmaList {
  MmaSpec specs[kMmaCount];
  constexpr MmaSpec operator[](int i) const { return specs[i]; }
};
inline constexpr MmaList kMmas = [] {
  MmaList list{};
  int count = 0;
  any_warp_mma([&](MmaSpec const& spec) {
    if (spec.sm != 75 && check(spec)) list.specs[count++] = spec;
    return false;
  });
  return count == kMmaCount ? list : throw "kMmaCount is not how many there are";
}();

/// Random bits as a register of an mma.sync, or two of f64. Doubles, and the operands of 8 bits and
/// their sums, mostly lie near each other: of random ones one product decides, or a NaN.
template <DType Type, bool OfNarrow, class T>
TEGULA_DEVICE T mma_register(std::uint64_t bits, int lane) {
  if constexpr (Type == DType::f64) {
    if ((bits & 0x3ff) != 0x155)
      bits = (bits & 0x800fffffffffffffu) | (1019 + (bits >> 52 & 7)) << 52;
    return __builtin_bit_cast(double, bits);
  } else {
    auto word = static_cast<std::uint32_t>(bits);
    if (OfNarrow && Type == DType::f32 && lane % 4 != 0)
      word = (word & 0x807fffffu) | (115 + (word >> 23 & 15)) << 23;
    if (OfNarrow && Type != DType::f32 && Type != DType::f16 && lane / 4 % 4 != 0)
      word &= 0xbfbfbfbfu;
    return __builtin_bit_cast(T, word);
  }
}

/// One mma.sync: a lane's registers of A, B and C in, D out. (Which NaN a sum of doubles is, is not
/// asked.)
template <int Op> struct MmaSync : OneWarp {
  static constexpr MmaSpec op = kMmas[Op];
  static constexpr int architecture = op.sm;
  using Registers = MmaRegisters<op>;
  static constexpr bool narrow = op.a == DType::e4m3 || op.a == DType::e5m2;
  static constexpr int a_words = a_registers(op);
  static constexpr int b_words = b_registers(op);
  static constexpr int c_words = d_registers(op);
  static constexpr int in_words = 32 * (a_words + b_words + c_words);
  static constexpr int out_words = 32 * c_words;

  /// The registers of an operand, from the lane's words on; `load(word)` reads one.
  template <DType Type, class T, int N, class Load>
  TEGULA_DEVICE static void fill(T (&registers)[N], int first, int lane, Load load) {
    int const at = (a_words + b_words + c_words) * lane + first;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      std::uint64_t bits = load(at + each_of<T> * i);
      if constexpr (each_of<T> == 2) bits |= std::uint64_t{load(at + 2 * i + 1)} << 32;
      registers[i] = mma_register<Type, narrow, T>(bits, lane);
    }
  }
  template <class T> static constexpr int each_of = static_cast<int>(sizeof(T)) / 4;
  template <class Load>
  TEGULA_DEVICE static void fill_all(typename Registers::A& a, typename Registers::B& b,
                                     typename Registers::C& c, int lane, Load load) {
    fill<op.a>(a, 0, lane, load);
    fill<op.b>(b, a_words, lane, load);
    fill<op.c>(c, a_words + b_words, lane, load);
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    typename Registers::A a;
    typename Registers::B b;
    typename Registers::C c;
    fill_all(a, b, c, lane, [&](int word) { return ld_global<std::uint32_t>(p.in + word); });
    mma_sync<op>(c, a, b, c);
#pragma unroll
    for (int i = 0; i < Registers::d_count; ++i) {
      if constexpr (op.d == DType::f64) {
        auto const bits =
            c[i] == c[i] ? __builtin_bit_cast(std::uint64_t, c[i]) : ~std::uint64_t{0};
        st_global(p.out + c_words * lane + 2 * i, static_cast<std::uint32_t>(bits));
        st_global(p.out + c_words * lane + 2 * i + 1, static_cast<std::uint32_t>(bits >> 32));
      } else {
        st_global(p.out + c_words * lane + i, c[i]);
      }
    }
  }
};

/// The four shuffles.
struct Shuffles : OneWarp {
  static constexpr int in_words = 32;
  static constexpr int out_words = 32 * 5;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    std::uint32_t const v = ld_global<std::uint32_t>(p.in + lane);
    std::uint32_t* const out = p.out + 5 * lane;
    st_global(out, warp::shfl(v, (lane * 7 + 3) % 32));
    st_global(out + 1, warp::shfl_xor(v, 5));
    st_global(out + 2, warp::shfl_up(v, 3));
    st_global(out + 3, warp::shfl_down(v, 6));
    st_global(out + 4, warp::shfl(v, 40));  // modulo 32: lane 8
  }
};

/// Two halves of a warp, each with its own mask, on different paths.
struct PartialMasks : OneWarp {
  static constexpr int in_words = 32;
  static constexpr int out_words = 32 * 2;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    std::uint32_t const v = ld_global<std::uint32_t>(p.in + lane);
    std::uint32_t r = 0;
    if (lane < 16) {
      r = warp::shfl_xor(v, 1, 0x0000ffffu);
      st_global(p.out + 2 * lane, r);
    } else {
      r = warp::reduce_add(v, 0xffff0000u);
      st_global(p.out + 2 * lane, r);
    }
    warp::sync();
    st_global(p.out + 2 * lane + 1, warp::shfl_xor(r, 16));
  }
};

/// Votes and reductions.
struct VotesAndReductions : OneWarp {
  static constexpr int in_words = 32;
  static constexpr int out_words = 32 * 8;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    std::uint32_t const v = ld_global<std::uint32_t>(p.in + lane);
    auto const s = static_cast<std::int32_t>(v);
    std::uint32_t* const out = p.out + 8 * lane;
    st_global(out, warp::ballot((v & 1) != 0));
    st_global(out + 1, static_cast<std::uint32_t>(warp::any(lane == 31)) +
                           2u * static_cast<std::uint32_t>(warp::any(lane == 32)));
    st_global(out + 2, static_cast<std::uint32_t>(warp::all(lane < 32)) +
                           2u * static_cast<std::uint32_t>(warp::all(lane < 31)));
    st_global(out + 3, warp::reduce_add(v));
    st_global(out + 4, warp::reduce_min(v));
    st_global(out + 5, warp::reduce_max(v));
    st_global(out + 6, warp::reduce_min(s));
    st_global(out + 7, warp::reduce_max(s));
  }
};

/// cta::sync between a store by one warp and a load by another.
struct CtaSync : OneWarp {
  static constexpr int threads = 128;
  struct SharedStorage {
    std::uint32_t words[threads];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = threads;
  static constexpr int out_words = threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    st_shared(shared_address(smem.words + t), ld_global<std::uint32_t>(p.in + t));
    cta::sync();
    st_global(p.out + t, ld_shared<std::uint32_t>(shared_address(smem.words + (t + 37) % threads)));
  }
};

/// Warp 0 hands ten values to warp 1 through one buffer, with a "full" and an "empty" barrier;
/// warps 2 and 3 keep out of it.
struct NamedBarriers : OneWarp {
  static constexpr int threads = 128;
  static constexpr int steps = 10;
  struct SharedStorage {
    std::uint32_t words[32];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = 32 * steps;
  static constexpr int out_words = 32 * steps;
  enum Barrier : int { kFull = 1, kEmpty = 2 };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    if (warp_id() == 0) {
      for (int step = 0; step < steps; ++step) {
        if (step > 0) cta::bar_sync(kEmpty, 64);  // warp 1 has read the previous value
        SharedAddr const slot = shared_address(smem.words + lane);
        st_shared(slot, ld_global<std::uint32_t>(p.in + 32 * step + lane));
        cta::bar_arrive(kFull, 64);  // to warp 1: the value is there
      }
    } else if (warp_id() == 1) {
      for (int step = 0; step < steps; ++step) {
        cta::bar_sync(kFull, 64);
        st_global(p.out + 32 * step + lane,
                  ld_shared<std::uint32_t>(shared_address(smem.words + (31 - lane))));
        if (step + 1 < steps) cta::bar_arrive(kEmpty, 64);
      }
    }
    cta::sync();
  }
};

/// Atomics that do not depend on order. out: zeroed by the caller (`zeroed`).
struct Atomics : OneWarp {
  static constexpr int threads = 64;
  static constexpr Dim3 grid() { return {5, 1, 1}; }
  static constexpr int in_words = 0;
  static constexpr int out_words = 8;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const id = block_idx().x * threads + thread_idx();
    atom_add(p.out, static_cast<std::uint32_t>(id));
    red_add(reinterpret_cast<float*>(p.out + 1), 0.5f);
    red_add(reinterpret_cast<std::int32_t*>(p.out + 2), -id);
    atom_max(p.out + 3, static_cast<std::uint32_t>(id * 7 % 320));
    atom_max(reinterpret_cast<std::int32_t*>(p.out + 4), id - 1000 > 0 ? id : id % 100);
    if (id == 17) atom_exch(p.out + 5, 99u);
    atom_cas(p.out + 6, static_cast<std::uint32_t>(id == 0 ? 0 : 12345), 7u);
    fence_acq_rel<Scope::gpu>();
  }
};

/// Exactly specified arithmetic: fused multiply-add, extremes, conversions. in: pairs of floats.
struct ExactMath : OneWarp {
  static constexpr int in_words = 64;
  static constexpr int out_words = 32 * 5;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const lane = lane_id();
    auto const a = ld_global<float>(p.in + 2 * lane);
    auto const b = ld_global<float>(p.in + 2 * lane + 1);
    std::uint32_t* const out = p.out + 5 * lane;
    st_global(out, tegula::fma(a, b, a));
    st_global(out + 1, max_f32(a, b));
    st_global(out + 2, min_f32(a, b));
    st_global(out + 3, cvt_rn_f16x2(a, b));
    st_global(out + 4, cvt_rn_bf16x2(a, b));
  }
};

/// A list of kernels.
template <class... Kernel> struct Kernels { static constexpr int size = sizeof...(Kernel); };

template <int... Op> constexpr auto all_kernels(std::integer_sequence<int, Op...>) {
  return Kernels<SpecialRegisters, VectorWidths, CpAsyncSizes, CpAsyncGroups, Ldmatrix<1, false>,
                 Ldmatrix<2, false>, Ldmatrix<4, false>, Ldmatrix<1, true>, Ldmatrix<2, true>,
                 Ldmatrix<4, true>, Movmatrix, Shuffles, PartialMasks, VotesAndReductions, CtaSync,
                 NamedBarriers, Atomics, ExactMath, MmaSync<Op>...>{};
}

/// All kernels of this file.
using AllKernels = decltype(all_kernels(std::make_integer_sequence<int, kMmaCount>{}));

}  // namespace tegula::instruction_kernels
