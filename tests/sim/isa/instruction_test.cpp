#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>

#include "run_kernel.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/atom/mma_atom.hpp"
#include "tegula/sim/arithmetic.hpp"

/// Each instruction on the simulated machine, against a plain statement of what the PTX ISA says
/// it does.
namespace tegula {
namespace {

using namespace instruction_kernels;

template <class Kernel> std::vector<std::uint32_t> run(std::vector<std::uint32_t> const& in) {
  sim::Machine machine;
  return run_kernel<Kernel>(machine, in);
}

TEST(Instruction, SpecialRegistersCountThreadsWarpsLanesAndCtas) {
  auto const out = run<SpecialRegisters>({});
  for (int cta = 0; cta < 12; ++cta) {
    for (int t = 0; t < 64; ++t) {
      std::uint32_t const* const r = out.data() + (cta * 64 + t) * 6;
      EXPECT_EQ(std::vector<int>(r, r + 6),
                (std::vector<int>{t, t / 32, t % 32, cta % 3, cta / 3 % 2, cta / 6}));
    }
  }
}

TEST(Instruction, LoadsAndStoresMoveOneToSixteenBytes) {
  auto const in = words(VectorWidths::in_words);
  auto const out = run<VectorWidths>(in);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(0, std::memcmp(out.data() + 8 * lane, in.data() + 8 * (31 - lane), 32))
        << "lane " << lane;
  }
}

TEST(Instruction, CpAsyncCopiesAndFillsTheRestWithZeros) {
  auto const in = words(CpAsyncSizes::in_words);
  auto const out = run<CpAsyncSizes>(in);
  for (int lane = 0; lane < 32; ++lane) {
    std::vector<unsigned char> expected(48, 0);
    auto const copy = [&](int at, int bytes) {
      std::memcpy(expected.data() + at, reinterpret_cast<char const*>(in.data() + 12 * lane) + at,
                  static_cast<std::size_t>(bytes));
    };
    copy(0, lane % 5);
    copy(4, 4);
    copy(8, lane % 9);
    copy(16, lane % 17);
    copy(32, lane % 2 == 0 ? 16 : 0);
    EXPECT_EQ(0, std::memcmp(out.data() + 12 * lane, expected.data(), 48)) << "lane " << lane;
  }
}

TEST(Instruction, CpAsyncGroupsArriveInOrder) {
  auto const in = words(CpAsyncGroups::in_words);
  auto const out = run<CpAsyncGroups>(in);
  for (int lane = 0; lane < 32; ++lane) {
    std::uint32_t sum = 0;
    for (int step = 0; step < CpAsyncGroups::steps; ++step) {
      sum += in[static_cast<std::size_t>(32 * step + lane)];
      EXPECT_EQ(out[static_cast<std::size_t>(32 * step + lane)], sum)
          << "step " << step << " lane " << lane;
    }
  }
}

template <int Count, bool Transpose> void check_ldmatrix() {
  auto const in = words(Ldmatrix<Count, Transpose>::in_words);
  auto const out = run<Ldmatrix<Count, Transpose>>(in);
  auto const element = [&](int matrix, int row, int column) {
    std::uint16_t value;
    std::memcpy(&value,
                reinterpret_cast<char const*>(in.data()) + 16 * (8 * matrix + row) + 2 * column, 2);
    return std::uint32_t{value};
  };
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < Count; ++i) {
      int const along = lane % 4 * 2;
      std::uint32_t const expected =
          Transpose ? element(i, along, lane / 4) | element(i, along + 1, lane / 4) << 16
                    : element(i, lane / 4, along) | element(i, lane / 4, along + 1) << 16;
      EXPECT_EQ(out[static_cast<std::size_t>(Count * lane + i)], expected)
          << "lane " << lane << " matrix " << i;
    }
  }
}

TEST(Instruction, LdmatrixGivesEachLaneTwoElementsOfARow) {
  check_ldmatrix<1, false>();
  check_ldmatrix<2, false>();
  check_ldmatrix<4, false>();
}

TEST(Instruction, LdmatrixTransGivesEachLaneTwoElementsOfAColumn) {
  check_ldmatrix<1, true>();
  check_ldmatrix<2, true>();
  check_ldmatrix<4, true>();
}

/// ldmatrix of bytes, of matrices that every lane writes in part: the elements of lane l + shift,
/// which with 0 are its own, so that nothing need order them. out: Count words a lane.
template <int Count> struct LdmatrixBytes : instruction_kernels::OneWarp {
  struct Params {
    std::uint32_t* out;
    int shift;
  };
  struct SharedStorage {
    alignas(16) std::uint8_t rows[8 * Count][16];
    template <class F> void name_buffers(F&& name) { name("rows", rows); }
  };

  void operator()(Params const& p, SharedStorage& smem) const {
    int const lane = lane_id(), other = (lane + p.shift) % 32;
    for (int i = 0; i < 2 * Count; ++i) {
      for (int half = 0; half < 2; ++half) {
        int const row = 16 * (i / 4) + 4 * (other % 4) + i % 4, column = other / 4 + 8 * half;
        st_shared(shared_address(&smem.rows[row][column]),
                  static_cast<std::uint8_t>(16 * row + column + 1));
      }
    }
    std::uint32_t r[Count];
    ldmatrix_trans_b8(r, shared_address(smem.rows[lane % (8 * Count)]));
    for (int i = 0; i < Count; ++i) st_global(p.out + Count * lane + i, r[i]);
  }
};

constexpr std::uint32_t stored_bytes(int lane, int i) {
  return 0x03020100u + 0x01010101u * static_cast<std::uint32_t>(4 * lane + 16 * i);
}

/// stmatrix of bytes, and each lane's reads of what lane l + shift stored. out: Count words a lane.
template <int Count> struct StmatrixBytes : instruction_kernels::OneWarp {
  using Params = typename LdmatrixBytes<Count>::Params;
  using SharedStorage = typename LdmatrixBytes<Count>::SharedStorage;

  void operator()(Params const& p, SharedStorage& smem) const {
    int const lane = lane_id(), other = (lane + p.shift) % 32;
    std::uint32_t r[Count];
    for (int i = 0; i < Count; ++i) r[i] = stored_bytes(lane, i);
    stmatrix_trans_b8(shared_address(smem.rows[lane % (8 * Count)]), r);
    for (int i = 0; i < Count; ++i) {
      std::uint32_t word = 0;
      for (int byte = 0; byte < 4; ++byte) {
        int const row = 8 * i + other % 4 * 2 + byte % 2, column = other / 4 + byte / 2 * 8;
        word |= std::uint32_t{ld_shared<std::uint8_t>(shared_address(&smem.rows[row][column]))}
                << 8 * byte;
      }
      st_global(p.out + Count * lane + i, word);
    }
  }
};

/// What a kernel of bytes wrote on an sm_100, and its report.
template <class Kernel, int Count>
std::vector<std::uint32_t> run_bytes(int shift, sim::Report& report) {
  sim::Machine machine({.generation = sim::Generation::sm100});
  std::vector<std::uint32_t> out(32 * Count);
  auto* const device = static_cast<std::uint32_t*>(machine.allocate(4 * out.size(), "out"));
  report = sim::launch<Kernel>(machine, {1, 1, 1}, {device, shift});
  machine.download(out.data(), device, 4 * out.size());
  return out;
}

/// Each lane's own elements are right; those of the next lane race.
template <class Kernel, int Count, class Expected> void check_bytes(Expected expected) {
  sim::Report report;
  auto const out = run_bytes<Kernel, Count>(0, report);
  EXPECT_TRUE(report.findings.empty()) << report.text();
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < Count; ++r) {
      EXPECT_EQ(out[static_cast<std::size_t>(Count * lane + r)], expected(lane, r))
          << "lane " << lane << ", register " << r;
    }
  }
  try {
    run_bytes<Kernel, Count>(1, report);
    ADD_FAILURE() << "no race was found";
  } catch (std::exception const& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("data_race"));
  }
}

TEST(Instruction, LdmatrixOfBytesGivesEachLaneFourElementsOfAColumn) {
  auto const expected = [](int lane, int r) {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      int const row = 16 * (r / 2) + 4 * (lane % 4) + i, column = lane / 4 + 8 * (r % 2);
      word |= static_cast<std::uint32_t>((16 * row + column + 1) % 256) << 8 * i;
    }
    return word;
  };
  check_bytes<LdmatrixBytes<2>, 2>(expected);
  check_bytes<LdmatrixBytes<4>, 4>(expected);
}

// Two matrices along k are A of an m16n8k32 that is contiguous along m.
TEST(Instruction, LdmatrixOfBytesLoadsAnOperandOfMmaSync) {
  sim::Report report;
  auto const out = run_bytes<LdmatrixBytes<4>, 4>(0, report);
  MmaAtom const atom = mma_atom(warp_mma(DType::e4m3, DType::f32, 32));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 16; ++i) {
      std::int64_t const at = atom.a(coord(lane, i)), m = at % 16, k = at / 16;
      std::uint32_t const word = out[static_cast<std::size_t>(4 * lane + i / 4)];
      EXPECT_EQ(word >> 8 * (i % 4) & 0xff, (16 * k + m + 1) % 256);
    }
  }
}

TEST(Instruction, StmatrixOfBytesStoresAccumulatorsByColumns) {
  check_bytes<StmatrixBytes<1>, 1>(stored_bytes);
  check_bytes<StmatrixBytes<2>, 2>(stored_bytes);
  check_bytes<StmatrixBytes<4>, 4>(stored_bytes);
}

TEST(Instruction, MatricesOfBytesAreRefusedBeforeSm100) {
  sim::Machine machine({.generation = sim::Generation::sm90});
  auto* const out = static_cast<std::uint32_t*>(machine.allocate(4 * 64, "out"));
  try {
    sim::launch<LdmatrixBytes<2>>(machine, {1, 1, 1}, {out, 0});
    ADD_FAILURE() << "not refused";
  } catch (std::exception const& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("ldmatrix of bytes is an instruction of sm_100, and "
                                             "the machine an sm_90"));
  }
}

TEST(Instruction, MovmatrixTransposes) {
  auto const in = words(Movmatrix::in_words);
  auto const out = run<Movmatrix>(in);
  std::uint16_t elements[8][8];
  static_assert(sizeof elements == 4 * Movmatrix::in_words);
  std::memcpy(elements, in.data(), sizeof elements);  // a row lies in four lanes
  for (std::size_t lane = 0; lane < 32; ++lane) {
    std::size_t const column = lane / 4, row = lane % 4 * 2;
    EXPECT_EQ(out[2 * lane],
              elements[row][column] | std::uint32_t{elements[row + 1][column]} << 16);
    EXPECT_EQ(out[2 * lane + 1], in[lane]);
  }
}

/// Of 32 lanes, as mma_sync_warp takes them.
template <class T, int N> struct WarpRegisters { T of[32][N]; };

template <int Op> void check_mma_against_arithmetic() {
  using Kernel = MmaSync<Op>;
  using Registers = typename Kernel::Registers;
  using T = typename Registers::Operand;
  constexpr bool kWide = std::is_same_v<T, double>;
  auto const in = words(Kernel::in_words, Op + 1);
  for (auto const generation :
       {sim::Generation::sm80, sim::Generation::sm90, sim::Generation::sm100}) {
    if (sim::spec_of(generation).compute_capability < Kernel::op.sm) continue;
    sim::Machine machine({.generation = generation});
    auto const out = run_kernel<Kernel>(machine, in);
    WarpRegisters<T, kWide ? 8 : 4> a{};
    WarpRegisters<T, kWide ? 4 : 2> b{};
    WarpRegisters<T, 4> c{}, d{};
    for (int lane = 0; lane < 32; ++lane) {
      typename Registers::A own_a;
      typename Registers::B own_b;
      typename Registers::C own_c;
      Kernel::fill_all(own_a, own_b, own_c, lane,
                       [&](int word) { return in[static_cast<std::size_t>(word)]; });
      std::memcpy(a.of[lane], own_a, sizeof own_a);
      std::memcpy(b.of[lane], own_b, sizeof own_b);
      std::memcpy(c.of[lane], own_c, sizeof own_c);
    }
    if constexpr (kWide) {
      sim::mma_sync_warp(Kernel::op, a.of, b.of, c.of, d.of);
      for (auto& lane : d.of) {
        for (double& x : lane) x = x == x ? x : std::bit_cast<double>(~std::uint64_t{0});
      }
    } else {
      sim::mma_sync_warp(Kernel::op, generation, a.of, b.of, c.of, d.of);
    }
    for (int lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(0,
                std::memcmp(out.data() + Kernel::c_words * lane, d.of[lane], 4 * Kernel::c_words))
          << mma_name(Kernel::op).text << " lane " << lane;
    }
  }
}

/// What is said of an mma.sync on a GPU that lacks it.
template <int Op> std::string refusal_of(sim::Generation generation) {
  sim::Machine machine({.generation = generation});
  try {
    run_kernel<MmaSync<Op>>(machine, words(MmaSync<Op>::in_words));
  } catch (std::exception const& e) {
    return e.what();
  }
  return "";
}
constexpr int index_of(MmaSpec const& spec) {
  int i = 0;
  while (kMmas[i] != spec) ++i;
  return i;
}

TEST(Instruction, MmaSyncThatTheGpuLacksIsRefused) {
  using enum DType;
  EXPECT_THAT(
      refusal_of<index_of(warp_mma(e4m3, e5m2, f32, 32))>(sim::Generation::sm80),
      testing::HasSubstr(
          "mma.sync.m16n8k32 of e4m3 and e5m2 is an instruction of sm_89, and the machine an "
          "sm_80"));
  EXPECT_THAT(
      refusal_of<index_of(warp_mma(f64, f64, 8))>(sim::Generation::sm80),
      testing::HasSubstr(
          "mma.sync.m16n8k8 of f64 and f64 is an instruction of sm_90, and the machine an sm_80"));
}

TEST(Instruction, MmaSyncOfEveryTypeIsTheArithmeticModelOnTheRightLanes) {
  []<int... Op>(std::integer_sequence<int, Op...>) { (check_mma_against_arithmetic<Op>(), ...); }
  (std::make_integer_sequence<int, kMmaCount>{});
}

// Small whole numbers make every sum exact, whatever the rounding; the fragments are those of the
// PTX ISA, "Matrix fragments for mma.m16n8k32".
TEST(Instruction, MmaSyncMultipliesMatrices) {
  constexpr int op = index_of(warp_mma(DType::s8, DType::s32, 32));
  using Kernel = MmaSync<op>;
  auto const in = words(Kernel::in_words);
  auto const out = run<Kernel>(in);
  auto const* const bytes = reinterpret_cast<std::int8_t const*>(in.data());
  constexpr int lane_words = Kernel::a_words + Kernel::b_words + Kernel::c_words;
  int a[16][32], b[32][8], c[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 16; ++i) {
      int const row = lane / 4 + (i / 4 % 2) * 8;
      int const column = lane % 4 * 4 + i % 4 + i / 8 * 16;
      a[row][column] = bytes[4 * lane_words * lane + i];
    }
    for (int i = 0; i < 8; ++i)
      b[lane % 4 * 4 + i % 4 + i / 4 * 16][lane / 4] = bytes[4 * lane_words * lane + 16 + i];
    for (int i = 0; i < 4; ++i)
      c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] =
          static_cast<int>(in[static_cast<std::size_t>(lane_words * lane + 6 + i)]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      int const m = lane / 4 + i / 2 * 8;
      int const n = lane % 4 * 2 + i % 2;
      auto sum = static_cast<std::uint32_t>(c[m][n]);
      for (int k = 0; k < 32; ++k) sum += static_cast<std::uint32_t>(a[m][k] * b[k][n]);
      EXPECT_EQ(out[static_cast<std::size_t>(4 * lane + i)], sum) << "row " << m << " column " << n;
    }
  }
}

TEST(Instruction, Shuffles) {
  auto const in = words(32);
  auto const out = run<Shuffles>(in);
  for (int lane = 0; lane < 32; ++lane) {
    auto const at = [&](int l) { return in[static_cast<std::size_t>(l)]; };
    std::uint32_t const* const r = out.data() + 5 * lane;
    EXPECT_EQ(r[0], at((lane * 7 + 3) % 32));
    EXPECT_EQ(r[1], at(lane ^ 5));
    EXPECT_EQ(r[2], at(lane >= 3 ? lane - 3 : lane));
    EXPECT_EQ(r[3], at(lane + 6 < 32 ? lane + 6 : lane));
    EXPECT_EQ(r[4], at(8));
  }
}

TEST(Instruction, LanesOfTwoMasksMeetApartAndThenTogether) {
  auto const in = words(32);
  auto const out = run<PartialMasks>(in);
  std::uint32_t sum = 0;
  for (std::size_t lane = 16; lane < 32; ++lane) sum += in[lane];
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[2 * lane], lane < 16 ? in[lane ^ 1] : sum);
    EXPECT_EQ(out[2 * lane + 1], lane < 16 ? sum : in[(lane ^ 16) ^ 1]);
  }
}

TEST(Instruction, VotesAndReductionsSeeEveryLane) {
  auto const in = words(32);
  auto const out = run<VotesAndReductions>(in);
  std::uint32_t ballot = 0, sum = 0, least = ~0u, most = 0;
  std::int32_t least_signed = std::numeric_limits<std::int32_t>::max(),
               most_signed = std::numeric_limits<std::int32_t>::min();
  for (std::size_t lane = 0; lane < 32; ++lane) {
    ballot |= (in[lane] & 1) << lane;
    sum += in[lane];
    least = std::min(least, in[lane]);
    most = std::max(most, in[lane]);
    least_signed = std::min(least_signed, static_cast<std::int32_t>(in[lane]));
    most_signed = std::max(most_signed, static_cast<std::int32_t>(in[lane]));
  }
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(std::vector<std::uint32_t>(out.begin() + 8 * lane, out.begin() + 8 * lane + 8),
              (std::vector<std::uint32_t>{ballot, 1, 1, sum, least, most,
                                          static_cast<std::uint32_t>(least_signed),
                                          static_cast<std::uint32_t>(most_signed)}));
  }
}

TEST(Instruction, CtaSyncMakesStoresVisibleToOtherWarps) {
  auto const in = words(CtaSync::in_words);
  auto const out = run<CtaSync>(in);
  for (std::size_t t = 0; t < 128; ++t) EXPECT_EQ(out[t], in[(t + 37) % 128]);
}

TEST(Instruction, NamedBarriersHandValuesFromOneWarpToAnother) {
  auto const in = words(NamedBarriers::in_words);
  auto const out = run<NamedBarriers>(in);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], in[i / 32 * 32 + 31 - i % 32]);
}

TEST(Instruction, AtomicsAddUpOverTheGrid) {
  auto const out = run<Atomics>({});
  std::uint32_t const n = 320;
  EXPECT_EQ(out[0], n * (n - 1) / 2);
  EXPECT_EQ(std::bit_cast<float>(out[1]), 0.5f * static_cast<float>(n));
  EXPECT_EQ(static_cast<std::int32_t>(out[2]), -static_cast<std::int32_t>(n * (n - 1) / 2));
  EXPECT_EQ(out[3], 319u);
  EXPECT_EQ(out[4], 99u);
  EXPECT_EQ(out[5], 99u);
  EXPECT_EQ(out[6], 7u);
}

TEST(Instruction, ExactMathIsExact) {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  float const inf = std::numeric_limits<float>::infinity();
  std::vector<float> const pairs = {1.5f,
                                    2.5f,
                                    0.0f,
                                    -0.0f,
                                    -0.0f,
                                    0.0f,
                                    nan,
                                    1.0f,
                                    1.0f,
                                    nan,
                                    nan,
                                    nan,
                                    inf,
                                    -inf,
                                    65504.0f,
                                    65520.0f,
                                    1e-8f,
                                    5.9604645e-8f,
                                    1.00048828125f,
                                    1.0f + 1.0f / 256,
                                    3e38f,
                                    -3.4e38f,
                                    1e-40f,
                                    2.0f};
  std::vector<std::uint32_t> in(ExactMath::in_words, 0x3f800001u);
  for (std::size_t i = 0; i < pairs.size(); ++i) in[i] = std::bit_cast<std::uint32_t>(pairs[i]);
  auto const out = run<ExactMath>(in);
  auto const at = [&](std::size_t lane, std::size_t i) {
    return std::bit_cast<float>(out[5 * lane + i]);
  };
  EXPECT_EQ(at(0, 0), 5.25f);
  EXPECT_EQ(out[5 * 12],
            std::bit_cast<std::uint32_t>(std::fma(1.00000012f, 1.00000012f, 1.00000012f)));
  EXPECT_EQ(out[5 * 1 + 1], 0u) << "max(+0, -0) is +0";
  EXPECT_EQ(out[5 * 2 + 1], 0u) << "max(-0, +0) is +0";
  EXPECT_EQ(out[5 * 1 + 2], 0x80000000u) << "min(+0, -0) is -0";
  EXPECT_EQ(out[5 * 2 + 2], 0x80000000u) << "min(-0, +0) is -0";
  EXPECT_EQ(at(3, 1), 1.0f) << "a number wins over a NaN";
  EXPECT_EQ(at(4, 2), 1.0f);
  EXPECT_EQ(out[5 * 5 + 1], 0x7fffffffu) << "of two NaNs the canonical one";
  EXPECT_EQ(out[5 * 5 + 2], 0x7fffffffu);
  EXPECT_EQ(at(6, 1), inf);
  EXPECT_EQ(at(6, 2), -inf);
  EXPECT_EQ(out[5 * 0 + 3], 0x3e004100u) << "f16: the first operand is the high half";
  EXPECT_EQ(out[5 * 0 + 4], 0x3fc04020u);
  EXPECT_EQ(out[5 * 5 + 3], 0x7fff7fffu) << "f16 NaN";
  EXPECT_EQ(out[5 * 5 + 4], 0x7fff7fffu) << "bf16 NaN";
  EXPECT_EQ(out[5 * 7 + 3], 0x7bff7c00u) << "65520 rounds to infinity, a tie to even";
  EXPECT_EQ(out[5 * 8 + 3], 0x00000001u) << "1e-8 rounds to 0, 2^-24 is the least subnormal";
  EXPECT_EQ(out[5 * 9 + 4], 0x3f803f80u) << "ties to even";
  EXPECT_EQ(out[5 * 10 + 4], 0x7f62ff80u) << "-3.4e38 is beyond the greatest bf16";
}

}  // namespace
}  // namespace tegula
