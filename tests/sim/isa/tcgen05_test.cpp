// Tensor memory and tcgen05.mma on the simulated machine: moves of every shape, operands of every
// kind, at every schedule.
#include "tegula/arch/tcgen05.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/hooks.hpp"
#include "tegula/sim/launch.hpp"
#include "tensor_memory_runs.hpp"
#include "tensor_product_kernel.hpp"

namespace tegula {
namespace {

/// Each warp stores registers by one shape, loads its 32 lanes back row by row (of halves the low
/// 16 bits of each column), and then the registers as it stored them.
template <TensorMove M> struct Moves {
  using Params = Words;
  static constexpr int threads = 128;
  static constexpr int halves = 32 / lanes_of(M.shape);
  static constexpr int registers = registers_of(M);
  static constexpr int columns = columns_of(M) + M.split;
  static constexpr std::uint32_t kept = M.packing == TensorPacking::halves ? 0xffff : 0xffffffff;
  static constexpr int results = columns + halves * registers;
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };

  static constexpr std::uint32_t value(int thread, int half, int r) {
    return static_cast<std::uint32_t>(thread * 1000 + half * 500 + r) * 0x10003u;
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const warp = warp_id();
    if (warp == 0) tcgen05_alloc<512>(shared_address(&smem.tmem));
    cta::sync();
    TensorAddr const own =
        ld_shared<std::uint32_t>(shared_address(&smem.tmem)) + tensor_address(32 * warp, 0);
    for (int half = 0; half < halves; ++half) {
      std::uint32_t r[registers];
      for (int i = 0; i < registers; ++i) r[i] = value(thread_idx(), half, i);
      tcgen05_st<M.shape, M.repeat, M.packing, M.split>(r, own + tensor_address(16 * half, 0));
    }
    tcgen05_wait_st();
    std::uint32_t* const out = p.out + thread_idx() * results;
    for (int column = 0; column < columns; ++column) {
      std::uint32_t cell[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(cell, own + tensor_address(0, column));
      tcgen05_wait_ld();
      st_global(out + column, cell[0] & kept);
    }
    for (int half = 0; half < halves; ++half) {
      std::uint32_t r[registers];
      tcgen05_ld<M.shape, M.repeat, M.packing, M.split>(r, own + tensor_address(16 * half, 0));
      tcgen05_wait_ld();
      for (int i = 0; i < registers; ++i) st_global(out + columns + half * registers + i, r[i]);
    }
    cta::sync();
    if (warp == 0) tcgen05_dealloc<512>(ld_shared<std::uint32_t>(shared_address(&smem.tmem)));
  }
};

template <TensorMove M> void expect_moved() {
  using Kernel = Moves<M>;
  constexpr int results = Kernel::results;
  std::vector<std::uint32_t> expected(128 * results);
  std::vector<int> holders(static_cast<std::size_t>(128 * Kernel::columns));
  for (int thread = 0; thread < 128; ++thread) {
    for (int half = 0; half < Kernel::halves; ++half) {
      for (int r = 0; r < Kernel::registers; ++r) {
        TensorPlace const at = tensor_place(M, thread % 32, r);
        int const lane = thread / 32 * 32 + lanes_of(M.shape) * half + at.lane;
        std::uint32_t const value = Kernel::value(thread, half, r);
        auto const holds = [&](int column, std::uint32_t what) {
          expected[static_cast<std::size_t>(lane * results + column)] = what;
          ++holders[static_cast<std::size_t>(lane * Kernel::columns + column)];
        };
        holds(at.column, value & Kernel::kept);
        if (M.packing == TensorPacking::halves) holds(at.column + 1, value >> 16);
        expected[static_cast<std::size_t>(thread * results + Kernel::columns +
                                          half * Kernel::registers + r)] = value;
      }
    }
  }
  EXPECT_EQ(holders, std::vector<int>(holders.size(), 1)) << "each cell has one register";
  for_each_schedule(
      [&](sim::Options const& options) {
        EXPECT_EQ(run<Kernel>({0}, expected.size(), options), expected);
      },
      blackwell());
}

TEST(TensorMemory, MovesEveryShape) {
  using enum TensorShape;
  expect_moved<TensorMove{lanes32_bits32, 1}>();
  expect_moved<TensorMove{lanes32_bits32, 8}>();
  expect_moved<TensorMove{lanes16_bits64, 2}>();
  expect_moved<TensorMove{lanes16_bits128, 4}>();
  expect_moved<TensorMove{lanes16_bits256, 2}>();
  expect_moved<TensorMove{lanes16_bits256, 8}>();
  // each half of the threads has columns of its own
  expect_moved<TensorMove{.shape = lanes16_bits32_x2, .repeat = 4, .split = 4}>();
}

TEST(TensorMemory, PacksHalves) {
  using enum TensorShape;
  constexpr TensorPacking halves = TensorPacking::halves;
  expect_moved<TensorMove{lanes32_bits32, 4, halves}>();
  expect_moved<TensorMove{lanes16_bits64, 2, halves}>();
  expect_moved<TensorMove{lanes16_bits128, 1, halves}>();
  expect_moved<TensorMove{lanes16_bits256, 2, halves}>();
  expect_moved<TensorMove{lanes16_bits32_x2, 2, halves, 4}>();
}

/// Both halves of a warp's threads load; the upper ones from columns that nobody has allocated.
struct SplitTooFar {
  using Params = Words;
  static constexpr int threads = 32;
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    tcgen05_alloc<32>(shared_address(&smem.tmem));
    warp::sync();
    TensorAddr const own = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    std::uint32_t const zero[1] = {0};
    tcgen05_st<TensorShape::lanes32_bits32, 1>(zero, own);
    tcgen05_wait_st();
    std::uint32_t r[1];
    tcgen05_ld<TensorShape::lanes16_bits32_x2, 1, TensorPacking::none, 32>(r, own);
    tcgen05_wait_ld();
    st_global(p.out + thread_idx(), r[0]);
    tcgen05_dealloc<32>(own);
  }
};

TEST(TensorMemory, BothColumnsOfASplitMoveAreChecked) {
  sim::Options options = blackwell();
  options.throw_on_finding = false;
  sim::Machine machine(options);
  void* const out = machine.allocate(4 * 32, "out");
  sim::Report const report = sim::launch<SplitTooFar>(
      machine, Dim3{1, 1, 1}, Words{.out = static_cast<std::uint32_t*>(out)});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, sim::FindingKind::out_of_bounds);
  EXPECT_NE(report.findings[0].message.find("columns 32 to 32"), std::string::npos)
      << report.findings[0].message;
}

// Literal places, from the figures of the PTX ISA.
TEST(TensorMemory, PlacesOfRegisters) {
  auto const place = [](TensorShape shape, int thread, int r) {
    TensorPlace const at = tensor_place(shape, thread, r);
    return std::array<int, 2>{at.lane, at.column};
  };
  EXPECT_EQ(place(TensorShape::lanes32_bits32, 17, 3), (std::array<int, 2>{17, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits32_x2, 17, 3), (std::array<int, 2>{1, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits64, 1, 0), (std::array<int, 2>{8, 0}));
  EXPECT_EQ(place(TensorShape::lanes16_bits64, 2, 1), (std::array<int, 2>{0, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits128, 5, 1), (std::array<int, 2>{9, 1}));
  EXPECT_EQ(place(TensorShape::lanes16_bits256, 5, 1), (std::array<int, 2>{1, 3}));
  EXPECT_EQ(place(TensorShape::lanes16_bits256, 5, 6), (std::array<int, 2>{9, 10}));
}

/// A second allocation waits until the first is freed.
struct Blocks {
  using Params = Words;
  static constexpr int threads = 64;
  struct SharedStorage {
    std::uint32_t first, second;
    template <class F> void name_buffers(F&& name) {
      name("first", first);
      name("second", second);
    }
  };
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    if (warp_id() == 0) tcgen05_alloc<512>(shared_address(&smem.first));
    cta::sync();
    if (warp_id() == 1) {
      tcgen05_alloc<256>(shared_address(&smem.second));
      warp::sync();
      tcgen05_dealloc<256>(ld_shared<std::uint32_t>(shared_address(&smem.second)));
      if (lane_id() == 0) st_global(p.out, std::uint32_t{7});
    } else {
      tcgen05_dealloc<512>(ld_shared<std::uint32_t>(shared_address(&smem.first)));
    }
  }
};
TEST(TensorMemory, AllocationsWaitForColumns) {
  for_each_schedule(
      [](sim::Options const& options) { EXPECT_EQ(run<Blocks>({0}, 1, options)[0], 7u); },
      blackwell());
}

TEST(Tcgen05Mma, MultipliesEveryKind) {
  expect_product<TensorProduct{.a = DType::bf16, .b = DType::bf16, .m = 128, .n = 32}>();
  expect_product<TensorProduct{.a = DType::f16, .b = DType::f16, .m = 64, .n = 24}>();
  expect_product<TensorProduct{.a = DType::tf32, .b = DType::tf32, .m = 128, .n = 16}>();
  expect_product<TensorProduct{.a = DType::e4m3, .b = DType::e5m2, .m = 64, .n = 8}>();
  expect_product<TensorProduct{.a = DType::e5m2, .b = DType::e4m3, .m = 128, .n = 48}>();
}

// Elements of 6 and 4 bits, in any mix with those of 8.
TEST(Tcgen05Mma, MultipliesNarrowFloats) {
  expect_product<TensorProduct{.a = DType::e2m1, .b = DType::e3m2, .m = 128, .n = 16}>();
  expect_product<TensorProduct{.a = DType::e2m3, .b = DType::e5m2, .m = 64, .n = 24}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e2m1, .m = 128, .n = 32, .a_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e2m3, .m = 64, .n = 16, .a_tmem = true}>();
}

TEST(Tcgen05Mma, MultipliesIntegers) {
  expect_product<TensorProduct{
      .a = DType::s8, .b = DType::u8, .m = 64, .n = 24, .d = DType::s32}>();
  expect_product<TensorProduct{
      .a = DType::u8, .b = DType::s8, .m = 128, .n = 8, .d = DType::s32, .saturate = true}>();
  expect_product<TensorProduct{.a = DType::s8,
                               .b = DType::s8,
                               .m = 128,
                               .n = 128,
                               .a_mn = true,
                               .b_mn = true,
                               .d = DType::s32}>();
  expect_product<TensorProduct{
      .a = DType::u8, .b = DType::u8, .m = 64, .n = 16, .a_tmem = true, .d = DType::s32}>();
}

// One to a column, in its low half; what the other half held does not count.
TEST(Tcgen05Mma, AccumulatesInF16) {
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 128, .n = 16, .d = DType::f16}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e2m1, .m = 64, .n = 24, .d = DType::f16}>();
}

TEST(Tcgen05Mma, NegatesItsOperands) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 16, .negate_a = true}>();
  expect_product<TensorProduct{
      .a = DType::tf32, .b = DType::tf32, .m = 64, .n = 8, .a_tmem = true, .negate_b = true}>();
  expect_product<TensorProduct{
      .a = DType::e2m3, .b = DType::e5m2, .m = 128, .n = 16, .negate_a = true, .negate_b = true}>();
}

TEST(Tcgen05Mma, ScalesItsAccumulators) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 16, .scale_input_d = 15}>();
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 64, .n = 8, .d = DType::f16, .scale_input_d = 3}>();
  expect_product<TensorProduct{
      .a = DType::tf32, .b = DType::tf32, .m = 64, .n = 8, .a_tmem = true, .scale_input_d = 1}>();
}

// All lanes are used, whatever m is: the columns of D lie in parts.
TEST(Tcgen05Mma, KeepsWeightsStationary) {
  using enum DType;
  expect_product<TensorProduct{.a = bf16, .b = bf16, .m = 32, .n = 64, .stationary = true}>();
  expect_product<TensorProduct{.a = e4m3, .b = e2m1, .m = 64, .n = 128, .stationary = true}>();
  expect_product<TensorProduct{.a = tf32, .b = tf32, .m = 128, .n = 64, .stationary = true}>();
  expect_product<TensorProduct{
      .a = f16, .b = f16, .m = 64, .n = 64, .b_mn = true, .d = f16, .stationary = true}>();
  expect_product<TensorProduct{
      .a = u8, .b = s8, .m = 32, .n = 128, .d = s32, .saturate = true, .stationary = true}>();
  expect_product<TensorProduct{
      .a = bf16, .b = bf16, .m = 32, .n = 64, .a_tmem = true, .stationary = true}>();
  expect_product<TensorProduct{
      .a = e5m2, .b = e4m3, .m = 64, .n = 64, .a_tmem = true, .stationary = true}>();
  // with columns of B that count as zeros
  expect_product<TensorProduct{
      .a = bf16, .b = bf16, .m = 32, .n = 64, .stationary = true, .zeroes = true}>();
  expect_product<TensorProduct{.a = e4m3,
                               .b = e5m2,
                               .m = 64,
                               .n = 64,
                               .a_tmem = true,
                               .stationary = true,
                               .zeroes = true}>();
  expect_product<TensorProduct{
      .a = s8, .b = s8, .m = 128, .n = 64, .d = s32, .stationary = true, .zeroes = true}>();
}

TEST(Tcgen05Mma, LeavesLanesAsTheyAre) {
  using enum DType;
  expect_product<TensorProduct{.a = bf16, .b = bf16, .m = 128, .n = 16, .leaves = true}>();
  expect_product<TensorProduct{.a = e4m3, .b = e5m2, .m = 64, .n = 24, .leaves = true}>();
  expect_product<TensorProduct{
      .a = f16, .b = f16, .m = 128, .n = 16, .a_tmem = true, .d = f16, .leaves = true}>();
  expect_product<TensorProduct{
      .a = tf32, .b = tf32, .m = 64, .n = 8, .scale_input_d = 2, .leaves = true}>();
}

TEST(Tcgen05Mma, ReadsOperandsOfEitherMajor) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 64, .a_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 64, .n = 64, .b_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 128, .n = 128, .a_mn = true, .b_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e4m3, .m = 128, .n = 64, .a_mn = true, .b_mn = true}>();
  expect_product<TensorProduct{
      .a = DType::e5m2, .b = DType::e4m3, .m = 64, .n = 128, .b_mn = true}>();
}

TEST(Tcgen05Mma, ReadsAFromTensorMemory) {
  expect_product<TensorProduct{
      .a = DType::bf16, .b = DType::bf16, .m = 128, .n = 32, .a_tmem = true}>();
  expect_product<TensorProduct{
      .a = DType::f16, .b = DType::f16, .m = 64, .n = 16, .b_mn = true, .a_tmem = true}>();
  expect_product<TensorProduct{
      .a = DType::e4m3, .b = DType::e4m3, .m = 128, .n = 16, .b_mn = true, .a_tmem = true}>();
  expect_product<TensorProduct{
      .a = DType::tf32, .b = DType::tf32, .m = 64, .n = 32, .a_tmem = true}>();
}

void expect_read_back(Tcgen05Kind kind, MmaSpec const& spec) {
  EXPECT_EQ(tcgen05_kind(spec), kind);
  Tcgen05Instruction const read =
      decode_tcgen05_instruction(kind, {}, tcgen05_instruction_descriptor(spec));
  EXPECT_EQ(read.spec, spec);
  EXPECT_EQ(read.unknown, 0u);
}

// Starts a product by a descriptor of the given bits, as PTX alone could.
template <Tcgen05Kind K> struct StartsByBits {
  using Params = Words;
  static constexpr int threads = 32;
  struct SharedStorage {
    alignas(1024) std::uint8_t operand[16 * 1024];
    std::uint32_t tmem;
  };
  void operator()(Words const& p, SharedStorage& smem) const {
    tcgen05_alloc<512>(shared_address(&smem.tmem));
    if (thread_idx() != 0) return;
    std::uint64_t const matrix = std::uint64_t{tcgen05_descriptor_high({0, 256, 128})} << 32 |
                                 WgmmaDescriptor{0, 256, 128}.low() |
                                 shared_address(smem.operand) >> 4;
    sim::tcgen05_mma(K, {}, ld_shared<std::uint32_t>(shared_address(&smem.tmem)), matrix, matrix,
                     ld_global<std::uint32_t>(p.in), false, SourceLocation::current());
  }
};
template <Tcgen05Kind K> std::string refusal_of_bits(std::uint32_t bits) {
  return sentence<sim::CheckError>([&] { run<StartsByBits<K>>({bits}, 1, blackwell()); });
}

TEST(Tcgen05Mma, BitsThatMeanNothingAreRefused) {
  using enum DType;
  auto const expect = [](std::string const& found, char const* part) {
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  std::uint32_t const f8 = tcgen05_instruction_descriptor(
                          tensor_memory_mma(e4m3, e4m3, f32, 64, 16)),
                      i8 = tcgen05_instruction_descriptor(tensor_memory_mma(s8, s8, s32, 64, 16)),
                      h = tcgen05_instruction_descriptor(
                          tensor_memory_mma(bf16, bf16, f32, 64, 16));
  constexpr char const* none = "are none that the simulated machine has";
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 2u << 7), none);  // no type has number 2
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 6u << 10), none);
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 1u << 2), "ask for sparsity (tcgen05.mma.sp)");
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 1u << 3), "the variants are plain");
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 5u << 7 | 1u << 15),
         "operands of 6- and 4-bit elements are contiguous along k");  // e2m1, MN-major
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 ^ 3u << 4), none);    // D of number 2
  expect(refusal_of_bits<Tcgen05Kind::f16>(h ^ 1u << 4), "d must be f32, or f16");
  expect(refusal_of_bits<Tcgen05Kind::i8>(i8 | 2u << 7), none);
  expect(refusal_of_bits<Tcgen05Kind::i8>(i8 ^ 3u << 4), none);  // D of number 1, f32
  expect(refusal_of_bits<Tcgen05Kind::i8>(i8 | 1u << 13), "integers cannot be negated");
  expect(refusal_of_bits<Tcgen05Kind::i8>((i8 & ~(63u << 17)) | 5u << 17),
         "n of integers must be 8, 24");
}

TEST(Tcgen05Mma, SpecsThatAreNoneAreRefused) {
  using enum DType;
  auto const spec = [](DType a, DType b, DType d, int m, int n, int ctas = 1,
                       MmaOperands operands = MmaOperands::ss) {
    return tensor_memory_mma(a, b, d, m, n, Major::k, Major::k, operands, ctas);
  };
  for (int const m : {64, 128}) {
    for (int n = 8; n <= 256; n += 8) {
      if (n == 8 || n == 24 || n % 16 == 0) {
        EXPECT_EQ(spec(s8, u8, s32, m, n).n, n);
      } else {
        EXPECT_THROW(spec(s8, u8, s32, m, n), layout_error) << n;
      }
    }
  }
  EXPECT_THROW(spec(s8, u8, s32, 256, 48, 2), layout_error);
  EXPECT_EQ(spec(s8, u8, s32, 256, 64, 2).ctas, 2);
  EXPECT_THROW(spec(s8, e4m3, s32, 64, 16), layout_error);
  EXPECT_THROW(spec(s8, s8, f32, 64, 16), layout_error);
  EXPECT_THROW(spec(e4m3, e4m3, s32, 64, 16), layout_error);
  EXPECT_THROW(spec(bf16, bf16, f16, 64, 16), layout_error);
  EXPECT_THROW(spec(tf32, tf32, f16, 64, 16), layout_error);
  EXPECT_EQ(spec(e2m1, e4m3, f32, 64, 16, 1, MmaOperands::ts).k, 32);
  EXPECT_THROW(spec(bf16, bf16, f32, 32, 64), layout_error) << "weight-stationary only";
  EXPECT_EQ(weight_stationary_mma(bf16, bf16, f32, 32, 64).m, 32);
  EXPECT_THROW(weight_stationary_mma(bf16, bf16, f32, 16, 64), layout_error);
  EXPECT_THROW(weight_stationary_mma(bf16, bf16, f32, 64, 32), layout_error);
  EXPECT_THROW(weight_stationary_mma(s8, s8, f32, 64, 64), layout_error);
  EXPECT_EQ(spec(e4m3, e2m1, f32, 64, 16, 1, MmaOperands::ts).k, 32);
}

/// A product that leaves the lanes of `Left` as they are, of accumulators that nobody has written.
template <std::uint32_t Left> struct LoadsWhatIsLeft {
  using Params = Words;
  static constexpr int threads = 32;
  static constexpr MmaSpec op = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 16);
  struct SharedStorage {
    SharedTile<std::uint16_t, swizzled_operand(16, 128, 16, 1)> a;
    SharedTile<std::uint16_t, swizzled_operand(16, 16, 16, 1)> b;
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("tmem", tmem);
    }
  };
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int i = thread_idx(); i < 128 * 16; i += 32) sA(i / 16, i % 16) = std::uint16_t{0};
    for (int i = thread_idx(); i < 16 * 16; i += 32) sB(i / 16, i % 16) = std::uint16_t{0};
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    tcgen05_alloc<32>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    warp::sync();
    TensorAddr const d = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    if (thread_idx() == 0) {
      tcgen05_mma<op>(d, matrix_descriptor<DescriptorForm::tcgen05>(sA),
                      matrix_descriptor<DescriptorForm::tcgen05>(sB), false,
                      DisabledLanes<>{{Left, 0, 0, 0}});
      tcgen05_commit(done);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    std::uint32_t r[8];
    tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, d);
    tcgen05_wait_ld();
    for (int i = 0; i < 8; ++i) st_global(p.out + 8 * thread_idx() + i, r[i]);
    tcgen05_dealloc<32>(d);
  }
};
template <std::uint32_t Left> std::vector<sim::Finding> findings_of_left_lanes() {
  sim::Options options = blackwell();
  options.throw_on_finding = false;
  sim::Machine machine(options);
  auto* const out = static_cast<std::uint32_t*>(machine.allocate(4 * 32 * 8, "out"));
  return sim::launch<LoadsWhatIsLeft<Left>>(machine, Dim3{}, Words{.in = out, .out = out}).findings;
}

// The checker knows tensor memory by 16 lanes: those all of which are left are not written.
TEST(Tcgen05Mma, LanesThatItLeavesAreNotWritten) {
  EXPECT_TRUE(findings_of_left_lanes<0>().empty());
  auto const findings = findings_of_left_lanes<0xffff0000u>();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, sim::FindingKind::uninitialized_read);
}

/// A product whose mask of zero columns is none: its second part leaves out more than a run.
struct MasksWrongly {
  using Params = Words;
  static constexpr int threads = 32;
  static constexpr MmaSpec op = weight_stationary_mma(DType::bf16, DType::bf16, DType::f32, 64, 64);
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };
  TEGULA_DEVICE void operator()(Words const&, SharedStorage& smem) const {
    tcgen05_alloc<32>(shared_address(&smem.tmem));
    warp::sync();
    TensorAddr const d = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    if (thread_idx() == 0)
      tcgen05_mma<op>(d, 0, 0, false, ZeroColumns{.used = 4, .zeros = 3, .part = {{0}, {4}}});
    warp::sync();
    tcgen05_dealloc<32>(d);
  }
};
TEST(Tcgen05Mma, MasksOfZeroColumnsThatAreNoneAreRefused) {
  sim::Options options = blackwell();
  options.throw_on_finding = false;
  sim::Machine machine(options);
  auto const report = sim::launch<MasksWrongly>(machine, Dim3{}, Words{});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, sim::FindingKind::invalid_operand);
  EXPECT_NE(report.findings[0].message.find("part 1 leaves out 4 columns of a run of 4"),
            std::string::npos)
      << report.findings[0].message;
}

// Examples 1 to 4 of the PTX ISA's "Zero-Column Mask Descriptor", the lowest column first; but for
// the last one's shift.
TEST(Tcgen05Mma, MasksOfZeroColumns) {
  auto const mask = [](std::uint64_t bits, int part) {
    std::string text;
    for (int column = 0; column < 14; ++column)
      text += is_zero_column(bits, part, column) ? '1' : '0';
    return text;
  };
  ZeroColumns const runs{.used = 4, .zeros = 3};
  EXPECT_EQ(mask(runs.bits() & ~(std::uint64_t{1} << 39), 0), "00000000000000");
  EXPECT_EQ(mask(runs.bits(), 0), "00001110000111");
  ZeroColumns two = runs;
  two.part[0].zeros_first = true;
  EXPECT_EQ(mask(two.bits(), 0), "11100001110000");
  EXPECT_EQ(mask(two.bits(), 1), "00001110000111");
  ZeroColumns const four{.used = 4, .zeros = 3, .part = {{0, true}, {1, true}, {2}, {1}}};
  EXPECT_EQ(mask(four.bits(), 0), "11100001110000");
  EXPECT_EQ(mask(four.bits(), 1), "11000011100001");
  EXPECT_EQ(mask(four.bits(), 2), "00111000011100");
  EXPECT_EQ(mask(four.bits(), 3), "00011100001110");
  EXPECT_EQ(four.bits(), std::uint64_t{1} << 39 | std::uint64_t{2} << 40 | std::uint64_t{3} << 48 |
                             std::uint64_t{3} << 32 | 0x01020100u);
}

TEST(Tcgen05Mma, DescriptorsSayWhatTheyAreMadeFrom) {
  for (DType const type : {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2}) {
    for (int const m : {64, 128}) {
      for (int n = 16; n <= 256; n += 48) {
        for (auto const operands : {MmaOperands::ss, MmaOperands::ts}) {
          MmaSpec const spec =
              tensor_memory_mma(type, type, DType::f32, m, n, Major::k, Major::k, operands);
          Tcgen05Instruction const read = decode_tcgen05_instruction(
              tcgen05_kind(spec), {.operands = operands}, tcgen05_instruction_descriptor(spec));
          EXPECT_EQ(read.spec, spec);
          EXPECT_EQ(read.unknown, 0u);
        }
      }
    }
  }
  // Every bit that says a type, a negation or saturation: there is no other.
  using enum DType;
  for (DType const a : {e4m3, e5m2, e2m3, e3m2, e2m1}) {
    for (DType const b : {e4m3, e5m2, e2m3, e3m2, e2m1}) {
      for (DType const d : {f32, f16}) {
        for (int const negated : {0, 1, 2, 3}) {
          MmaSpec spec = tensor_memory_mma(a, b, d, 128, 64);
          spec.negate_a = (negated & 1) != 0, spec.negate_b = (negated & 2) != 0;
          expect_read_back(Tcgen05Kind::f8f6f4, spec);
        }
      }
    }
  }
  for (DType const a : {s8, u8}) {
    for (DType const b : {s8, u8}) {
      for (auto const variant : {MmaVariant::plain, MmaVariant::saturate})
        expect_read_back(Tcgen05Kind::i8, tensor_memory_mma(a, b, s32, 64, 24, Major::k, Major::k,
                                                            MmaOperands::ss, 1, variant));
    }
  }
  expect_read_back(Tcgen05Kind::f16, tensor_memory_mma(f16, f16, f16, 64, 8));
  // From the PTX ISA's table: s8 beside u8, saturated, 128 x 48; e2m1 beside e3m2, 64 x 16.
  EXPECT_EQ(
      tcgen05_instruction_descriptor(tensor_memory_mma(s8, u8, s32, 128, 48, Major::k, Major::k,
                                                       MmaOperands::ss, 1, MmaVariant::saturate)),
      1u << 3 | 2u << 4 | 1u << 7 | 6u << 17 | 8u << 24);
  EXPECT_EQ(tcgen05_instruction_descriptor(tensor_memory_mma(e2m1, e3m2, f16, 64, 16)),
            5u << 7 | 4u << 10 | 2u << 17 | 4u << 24);
  // CUTLASS's, of bf16, 128 x 256, both K-major.
  EXPECT_EQ(tcgen05_instruction_descriptor(
                tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 256)),
            0x08400490u);
  for (int const swizzle : {0, 32, 64, 128}) {
    WgmmaDescriptor const d{swizzle, swizzle == 0 ? 256 : 0, 1024};
    std::uint64_t const bits = std::uint64_t{tcgen05_descriptor_high(d)} << 32 | d.low() | 0x123u;
    Tcgen05Operand const read = decode_tcgen05_descriptor(bits);
    EXPECT_TRUE(read.valid);
    EXPECT_EQ(decode_wgmma_descriptor(read.as_wgmma), d);
    EXPECT_FALSE(decode_tcgen05_descriptor(bits ^ std::uint64_t{1} << 46).valid);
    EXPECT_FALSE(decode_tcgen05_descriptor(bits | std::uint64_t{1} << 50).valid);
  }
}

}  // namespace
}  // namespace tegula
