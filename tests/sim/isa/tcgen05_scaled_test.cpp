// tcgen05.cp of every shape, and tcgen05.mma with block scales that it brought to tensor memory, on
// the simulated machine; and what is found where one of them is used wrongly.
#include "tegula/arch/tcgen05_scaled.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/arch/tcgen05_scaled_descriptor.hpp"
#include "tegula/numeric/rounded_bits.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {
namespace {

struct Outcome {
  std::vector<std::uint32_t> out;
  sim::Report report;
};

template <class Kernel>
Outcome run_scaled(std::vector<std::uint32_t> const& in, std::size_t out_words,
                   sim::Options options) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  auto* const from = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
  auto* const to = static_cast<std::uint32_t*>(machine.allocate(4 * out_words, "out"));
  machine.upload(from, in.data(), 4 * in.size());
  machine.fill(to, 0xee, 4 * out_words);
  Outcome result{std::vector<std::uint32_t>(out_words),
                 sim::launch<Kernel>(machine, {}, Words{from, to})};
  machine.download(result.out.data(), to, 4 * out_words);
  return result;
}

/// Copies rows that lie as `d` says from shared memory, and loads 128 lanes back.
template <TensorCopyShape S, int Swizzle> struct Copies {
  using Params = Words;
  static constexpr int threads = 128, rows = rows_of(S), columns = columns_of(S);
  static constexpr WgmmaDescriptor d{Swizzle, Swizzle == 0 ? 16 * rows : 0,
                                     Swizzle == 0 ? 128 : 8 * Swizzle};
  struct SharedStorage {
    alignas(1024) std::uint32_t source[rows * (Swizzle == 0 ? columns : Swizzle / 4) + 256];
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("source", source);
      name("done", done);
      name("tmem", tmem);
    }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), warp = warp_id();
    SharedAddr const source = shared_address(smem.source), done = shared_address(&smem.done);
    for (int i = thread; i < rows * columns; i += threads) {
      int const row = i / columns, word = i % columns;
      SharedAddr const at = wgmma_swizzle(d, source + wgmma_piece_offset(d, false, row, word / 4));
      st_shared(at + 4 * static_cast<SharedAddr>(word % 4), ld_global<std::uint32_t>(p.in + i));
    }
    if (thread == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) tcgen05_alloc<32>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    std::uint32_t const zeros[columns] = {};  // for not every lane gets a row
    tcgen05_st<TensorShape::lanes32_bits32, columns>(zeros, base + tensor_address(32 * warp, 0));
    tcgen05_wait_st();
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (thread == 0) {
      tcgen05_fence_after_thread_sync();
      std::uint64_t const high = tcgen05_descriptor_high(d);
      tcgen05_cp<S>(base, high << 32 | d.low() | source >> 4);
      tcgen05_commit(done);
    }
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    std::uint32_t r[columns];
    tcgen05_ld<TensorShape::lanes32_bits32, columns>(r, base + tensor_address(32 * warp, 0));
    tcgen05_wait_ld();
    for (int i = 0; i < columns; ++i) st_global(p.out + thread * columns + i, r[i]);
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (warp == 0) tcgen05_dealloc<32>(base);
  }
};

template <TensorCopyShape S, int Swizzle = 0> void expect_copied() {
  using Kernel = Copies<S, Swizzle>;
  std::vector<std::uint32_t> in(static_cast<std::size_t>(Kernel::rows * Kernel::columns));
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(1000 + i);
  for_each_schedule(
      [&](sim::Options const& options) {
        Outcome const result = run_scaled<Kernel>(in, 128 * Kernel::columns, options);
        EXPECT_TRUE(result.report.ok()) << result.report.text();
        for (int lane = 0; lane < 128; ++lane) {
          int const row = row_of_lane(S, lane);
          for (int i = 0; i < Kernel::columns; ++i)
            ASSERT_EQ(result.out[static_cast<std::size_t>(lane * Kernel::columns + i)],
                      row < 0 ? 0 : in[static_cast<std::size_t>(row * Kernel::columns + i)])
                << "lane " << lane << ", column " << i;
        }
      },
      blackwell());
}

TEST(Tcgen05Cp, CopiesEveryShape) {
  expect_copied<TensorCopyShape::rows128_bits256>();
  expect_copied<TensorCopyShape::rows128_bits256, 128>();
  expect_copied<TensorCopyShape::rows4_bits256>();
  expect_copied<TensorCopyShape::rows128_bits128, 64>();
  expect_copied<TensorCopyShape::rows64_bits128_02_13>();
  expect_copied<TensorCopyShape::rows64_bits128_01_23>();
  expect_copied<TensorCopyShape::rows32_bits128_warpx4>();
}

// Literal rows, from the PTX ISA's figures.
TEST(Tcgen05Cp, RowsOfLanes) {
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows128_bits128, 77), 77);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows4_bits256, 96), 3);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows4_bits256, 97), -1);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows64_bits128_02_13, 65), 1);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows64_bits128_01_23, 65), 33);
  EXPECT_EQ(row_of_lane(TensorCopyShape::rows32_bits128_warpx4, 97), 1);
}

/// What a kernel does wrong.
enum class Mistake : std::uint32_t {
  none,
  no_proxy_fence,      // between the stores to shared memory and the copies
  scales_not_copied,   // of B
  copied_too_late,     // over scales that products in flight read
  not_to_all_lanes,    // each quarter gets other rows
  wrong_lane,          // of the copies
  wrong_scale_lane,    // of the products
  beyond_columns,      // of the allocation
  source_not_written,  // in shared memory
  source_out_of_bounds,
  wrong_instruction,  // its descriptor
  read_too_early      // before the commit
};

/// D = A B with scales, of tiles of 128 bytes of k in shared memory: four instructions. in: the
/// mistake, A (128 rows of 32 words), B (n rows), the scales of A and of B (`blocks` blocks of 128
/// words: rows % 32, rows / 32 and four scales).
template <ScaledMmaSpec S> struct ScaledProduct {
  using Params = Words;
  static constexpr int threads = 128, n = S.n, steps = 4;
  static constexpr int per_step = scales(S), blocks = steps * per_step / 4;
  // Columns; A's scales begin at 0.
  static constexpr int scales_b = 4 * blocks, columns_d = 8 * blocks, columns_a = columns_d + n;
  struct SharedStorage {
    SharedTile<std::uint8_t, swizzled_operand(8, 128, 128, 1)> a;
    SharedTile<std::uint8_t, swizzled_operand(8, n, 128, 1)> b;
    alignas(128) std::uint32_t scale_a[blocks][128], scale_b[blocks][128];
    alignas(128) std::uint32_t nothing[512];
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("scales of A", scale_a);
      name("scales of B", scale_b);
      name("nothing", nothing);
      name("done", done);
      name("tmem", tmem);
    }
  };

  TEGULA_DEVICE static void stage(SharedStorage& smem, std::uint32_t const* in) {
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    auto const byte = [&](std::uint32_t const* words, int i) {
      return static_cast<std::uint8_t>(ld_global<std::uint32_t>(words + i / 4) >> 8 * (i % 4));
    };
    for (int i = thread_idx(); i < 128 * 128; i += threads) sA(i / 128, i % 128) = byte(in, i);
    in += 128 * 32;
    for (int i = thread_idx(); i < n * 128; i += threads) sB(i / 128, i % 128) = byte(in, i);
    in += n * 32;
    for (int i = thread_idx(); i < blocks * 128; i += threads) {
      auto const at = static_cast<SharedAddr>(4 * i);
      st_shared(shared_address(smem.scale_a) + at, ld_global<std::uint32_t>(in + i));
      st_shared(shared_address(smem.scale_b) + at, ld_global<std::uint32_t>(in + blocks * 128 + i));
    }
  }

  TEGULA_DEVICE static void multiply(SharedStorage& smem, TensorAddr base, Mistake mistake) {
    constexpr auto kScales = TensorCopyShape::rows32_bits128_warpx4;
    auto const is = [&](Mistake m) { return mistake == m; };
    TensorAddr const to = base + tensor_address(is(Mistake::wrong_lane) ? 16 : 0,
                                                is(Mistake::beyond_columns) ? 254 : 0);
    SharedAddr const nothing = shared_address(smem.nothing);
    for (int block = 0; block < blocks; ++block) {
      auto const offset = static_cast<TensorAddr>(4 * block);
      std::uint64_t of_a = rows16_descriptor(shared_address(smem.scale_a[block]));
      if (is(Mistake::source_not_written)) of_a = rows16_descriptor(nothing);
      if (is(Mistake::source_out_of_bounds)) of_a = rows16_descriptor(0x3ff80);
      if (is(Mistake::not_to_all_lanes)) {
        tcgen05_cp<TensorCopyShape::rows128_bits128>(
            to, rows16_descriptor(shared_address(smem.a.data)));
      } else {
        tcgen05_cp<kScales>(to + offset, of_a);
      }
      if (!is(Mistake::scales_not_copied))
        tcgen05_cp<kScales>(base + scales_b + offset,
                            rows16_descriptor(shared_address(smem.scale_b[block])));
    }
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int step = 0; step < steps; ++step) {
      int const first = step * per_step;
      auto const column = static_cast<TensorAddr>(4 * (first / 4));
      ScaleIds const ids{first % 4, is(Mistake::wrong_instruction) && per_step > 1 ? 1 : first % 4};
      TensorAddr const lane = tensor_address(is(Mistake::wrong_scale_lane) ? 32 : 0, 0);
      std::uint64_t const of_b =
          matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(sB, 0, 32 * step));
      if constexpr (S.a_in_tensor_memory) {
        tcgen05_mma_scaled_ts<S>(base + columns_d, base + columns_a + tensor_address(0, 8 * step),
                                 of_b, base + column + lane, base + scales_b + column, ids,
                                 step > 0);
      } else {
        tcgen05_mma_scaled<S>(
            base + columns_d,
            matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(sA, 0, 32 * step)), of_b,
            base + column + lane, base + scales_b + column, ids, step > 0);
      }
    }
    if (is(Mistake::copied_too_late))
      tcgen05_cp<kScales>(base, rows16_descriptor(shared_address(smem.scale_b[0])));
    tcgen05_commit(shared_address(&smem.done));
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const warp = warp_id();
    auto const mistake = static_cast<Mistake>(ld_global<std::uint32_t>(p.in));
    stage(smem, p.in + 1);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
    }
    if (warp == 0) tcgen05_alloc<256>(shared_address(&smem.tmem));
    if (mistake != Mistake::no_proxy_fence) fence_proxy_async_shared();
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    if constexpr (S.a_in_tensor_memory) {
      std::uint32_t row[32];
      for (int i = 0; i < 32; ++i)
        row[i] = ld_global<std::uint32_t>(p.in + 1 + 32 * thread_idx() + i);
      tcgen05_st<TensorShape::lanes32_bits32, 32>(row,
                                                  base + columns_a + tensor_address(32 * warp, 0));
      tcgen05_wait_st();
      tcgen05_fence_before_thread_sync();
      cta::sync();
      tcgen05_fence_after_thread_sync();
    }
    if (thread_idx() == 0) multiply(smem, base, mistake);
    cta::sync();  // all is in flight
    if (mistake != Mistake::read_too_early) mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    for (int column = 0; column < n; column += 8) {
      std::uint32_t r[8];
      tcgen05_ld<TensorShape::lanes32_bits32, 8>(
          r, base + columns_d + tensor_address(32 * warp, column));
      tcgen05_wait_ld();
      for (int i = 0; i < 8; ++i) st_global(p.out + thread_idx() * n + column + i, r[i]);
    }
    tcgen05_fence_before_thread_sync();
    if (mistake == Mistake::read_too_early) mbarrier_wait_parity(done, 0);
    cta::sync();
    if (warp == 0) tcgen05_dealloc<256>(base);
  }
};

/// Operands and scales of few bits, whose sums are exact.
template <ScaledMmaSpec S> struct Problem {
  using Kernel = ScaledProduct<S>;
  static constexpr int n = S.n, k = 4 * extent_k(S), scales_of_row = k / S.block;
  std::vector<std::uint32_t> in;
  std::vector<float> expected;

  explicit Problem(Mistake mistake) : in{static_cast<std::uint32_t>(mistake)} {
    std::vector<float> const a = operand(128, S.a, S.a_in_tensor_memory), b = operand(n, S.b);
    std::vector<float> const of_a = scales(128), of_b = scales(n);
    for (int row = 0; row < 128; ++row) {
      for (int column = 0; column < n; ++column) {
        double sum = 0;
        for (int i = 0; i < k; ++i)
          sum += double{at(a, row * k + i)} * at(b, column * k + i) *
                 at(of_a, row * scales_of_row + i / S.block) *
                 at(of_b, column * scales_of_row + i / S.block);
        expected.push_back(static_cast<float>(sum));
      }
    }
  }

 private:
  static float at(std::vector<float> const& values, int i) {
    return values[static_cast<std::size_t>(i)];
  }
  int draw(int count) {
    seed_ = seed_ * 1664525u + 1013904223u;
    return static_cast<int>((seed_ >> 16) % static_cast<std::uint32_t>(count));
  }
  std::vector<float> operand(int rows, DType type, bool in_tensor_memory = false) {
    std::vector<float> values(static_cast<std::size_t>(rows * k));
    for (float& x : values) x = static_cast<float>(draw(9) - 4);
    // Of mxf8f6f4 16 elements take 16 bytes: fewer bits each lie at their beginning, and nobody
    // reads what follows.
    bool const of_any = S.kind == ScaledMmaKind::mxf8f6f4;
    int const unit = of_any ? 16 : 128 / bits(type);
    if (of_any && in_tensor_memory && bits(type) < 8) {  // a byte each, whose other bits are ones
      int const first = bits(type) == 4 ? 2 : 0;
      std::uint32_t const beside = ~(((1u << bits(type)) - 1) << first) & 0xff;
      for (int i = 0; i < rows * k; ++i) {
        if (i % 4 == 0) in.push_back(0);
        in.back() |= (rounded_bits(type, at(values, i)) << first | beside) << i % 4 * 8;
      }
      return values;
    }
    for (int first = 0; first < rows * k; first += unit) {
      std::uint32_t words[4] = {};
      for (int bit = unit * bits(type); bit < 128; ++bit) words[bit / 32] |= 1u << bit % 32;
      for (int i = 0; i < unit * bits(type); ++i) {
        std::uint32_t const code = rounded_bits(type, at(values, first + i / bits(type)));
        words[i / 32] |= (code >> i % bits(type) & 1) << i % 32;
      }
      in.insert(in.end(), words, words + 4);
    }
    return values;
  }
  /// Blocks of 32 x 4 words of four scales, from the row's index and the scale's.
  std::vector<float> scales(int rows) {
    std::vector<float> values(static_cast<std::size_t>(rows * scales_of_row));
    std::vector<std::uint32_t> words(static_cast<std::size_t>(Kernel::blocks * 128));
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < scales_of_row; ++i) {
        float const scale = S.scale == DType::ue4m3 ? 0.5f * static_cast<float>(1 + draw(5))
                                                    : std::ldexp(1.0f, draw(5) - 2);
        values[static_cast<std::size_t>(row * scales_of_row + i)] = scale;
        std::uint32_t const code =
            S.scale == DType::ue4m3 ? to_float_ue4m3(scale).bits : to_float_ue8m0(scale).bits;
        words[static_cast<std::size_t>(i / 4 * 128 + row % 32 * 4 + row / 32)] |= code << i % 4 * 8;
      }
    }
    in.insert(in.end(), words.begin(), words.end());
    return values;
  }
  std::uint32_t seed_ = 7;
};

template <ScaledMmaSpec S> void expect_product() {
  Problem<S> const problem(Mistake::none);
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    sim::Options options = blackwell();
    options.completion = completion;
    Outcome const result =
        run_scaled<ScaledProduct<S>>(problem.in, problem.expected.size(), options);
    EXPECT_TRUE(result.report.ok()) << result.report.text();
    for (std::size_t i = 0; i < problem.expected.size(); ++i)
      ASSERT_EQ(__builtin_bit_cast(float, result.out[i]), problem.expected[i])
          << "row " << i / S.n << ", column " << i % S.n;
  }
}

constexpr ScaledMmaSpec mxf8(int n) {
  return scaled_mma(DType::e4m3, DType::e5m2, DType::ue8m0, 32, n);
}
constexpr ScaledMmaSpec nvf4(int n) {
  return scaled_mma(DType::e2m1, DType::e2m1, DType::ue4m3, 16, n);
}

TEST(Tcgen05Scaled, MultipliesEveryKind) {
  expect_product<mxf8(40)>();
  expect_product<scaled_mma(DType::e2m3, DType::e3m2, DType::ue8m0, 32, 16)>();
  expect_product<scaled_mma(DType::e4m3, DType::e2m1, DType::ue8m0, 32, 24)>();
  expect_product<scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 32, 128)>();
  expect_product<scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 16, 16)>();
  // A in tensor memory.
  expect_product<scaled_mma(DType::e4m3, DType::e2m3, DType::ue8m0, 32, 16, 1, true)>();
  expect_product<scaled_mma(DType::e2m3, DType::e4m3, DType::ue8m0, 32, 16, 1, true)>();
  expect_product<scaled_mma(DType::e3m2, DType::e2m1, DType::ue8m0, 32, 24, 1, true)>();
  expect_product<scaled_mma(DType::e2m1, DType::e4m3, DType::ue8m0, 32, 16, 1, true)>();
  expect_product<scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 32, 64, 1, true)>();
  expect_product<scaled_mma(DType::e2m1, DType::e2m1, DType::ue4m3, 16, 8, 1, true)>();
  expect_product<nvf4(64)>();
}

/// The first finding of a kernel with a mistake.
template <ScaledMmaSpec S> sim::Finding found(Mistake mistake) {
  Problem<S> const problem(mistake);
  Outcome const result =
      run_scaled<ScaledProduct<S>>(problem.in, problem.expected.size(), blackwell());
  EXPECT_FALSE(result.report.ok()) << "mistake " << static_cast<int>(mistake);
  return result.report.ok() ? sim::Finding{} : result.report.findings.front();
}

TEST(Tcgen05Scaled, MistakesAreFound) {
  struct Case {
    Mistake mistake;
    sim::FindingKind kind;
    char const* says;
  };
  using Kind = sim::FindingKind;
  for (Case const& c : {
           Case{Mistake::no_proxy_fence, Kind::proxy_race, "fence"},
           Case{Mistake::scales_not_copied, Kind::uninitialized_read,
                "reads lane 0, column 4 of tmem"},
           Case{Mistake::copied_too_late, Kind::async_overwrite,
                "only a product after a copy waits for it"},
           Case{Mistake::not_to_all_lanes, Kind::invalid_operand, "the four quarters"},
           Case{Mistake::wrong_lane, Kind::invalid_operand, "to lane 16"},
           Case{Mistake::wrong_scale_lane, Kind::invalid_operand, "scales of A from lane 32"},
           Case{Mistake::beyond_columns, Kind::out_of_bounds, "columns 254 to 257"},
           Case{Mistake::source_not_written, Kind::uninitialized_read, "nothing"},
           Case{Mistake::source_out_of_bounds, Kind::out_of_bounds, "the source"},
           Case{Mistake::read_too_early, Kind::async_read_early, "tcgen05_commit"},
       }) {
    sim::Finding const finding = found<mxf8(40)>(c.mistake);
    EXPECT_EQ(finding.kind, c.kind) << sim::to_string(finding, "");
    EXPECT_NE(sim::to_string(finding, "").find(c.says), std::string::npos)
        << sim::to_string(finding, "");
  }
  sim::Finding const finding = found<nvf4(64)>(Mistake::wrong_instruction);
  EXPECT_NE(finding.message.find("4 scales cannot begin at byte 1"), std::string::npos)
      << finding.message;
}

// Without a copy, or with one that comes after the product, the checker finds something.
TEST(Tcgen05Scaled, EveryCopyIsNeeded) {
  constexpr ScaledMmaSpec spec = mxf8(40);
  Problem<spec> const problem(Mistake::none);
  sim::Options options = blackwell();
  options.list_marked = true;
  Outcome const whole =
      run_scaled<ScaledProduct<spec>>(problem.in, problem.expected.size(), options);
  int mutants = 0;
  for (sim::MarkedStatement const& statement : whole.report.marked) {
    if (statement.operation != Operation::tcgen05_cp) continue;
    for (auto const mutation : {Mutation::removed, Mutation::delayed}) {
      options = blackwell();
      options.mutant =
          sim::Mutant{statement.where.file, statement.where.line, statement.operation, mutation};
      Outcome const result =
          run_scaled<ScaledProduct<spec>>(problem.in, problem.expected.size(), options);
      // Delayed past another copy, it still comes before the products.
      bool const found = !result.report.ok() || result.out != whole.out;
      mutants += found ? 1 : 0;
      EXPECT_TRUE(found || mutation == Mutation::delayed) << statement.where.line;
    }
  }
  EXPECT_GE(mutants, 3);
}

TEST(Tcgen05Scaled, DescriptorsSayWhatTheyAreMadeFrom) {
  for (ScaledMmaSpec const& spec :
       {mxf8(8), mxf8(256), nvf4(64), scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 16, 24),
        scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 32, 136),
        scaled_mma(DType::e2m3, DType::e3m2, DType::ue8m0, 32, 64, 2),
        scaled_mma(DType::e2m1, DType::e5m2, DType::ue8m0, 32, 256, 2)}) {
    for (int id = 0; id < 4; id += scales(spec)) {
      auto const read = decode_tcgen05_scaled(
          spec.kind, spec.block, tcgen05_scaled_descriptor(spec, {id, 3 - id}), spec.ctas);
      EXPECT_EQ(read.spec, spec);
      EXPECT_EQ(read.ids.a, id);
      EXPECT_EQ(read.ids.b, 3 - id);
      EXPECT_EQ(read.unknown, 0u);
    }
  }
  // Literal bits, from the PTX ISA's tables: n 128 is 16 << 17, m 128 is 1 << 27.
  EXPECT_EQ(tcgen05_scaled_descriptor(scaled_mma(DType::e4m3, DType::e5m2, DType::ue8m0, 32, 128),
                                      {2, 1}),
            1u << 4 | 1u << 10 | 16u << 17 | 1u << 23 | 1u << 27 | 2u << 29);
  EXPECT_EQ(
      tcgen05_scaled_descriptor(scaled_mma(DType::e2m3, DType::e2m1, DType::ue8m0, 32, 256, 2), {}),
      3u << 7 | 5u << 10 | 32u << 17 | 1u << 23 | 2u << 27);
  EXPECT_EQ(tcgen05_scaled_descriptor(nvf4(128), {}), 1u << 7 | 1u << 10 | 16u << 17 | 1u << 27);
}

TEST(Tcgen05Scaled, RefusesWhatIsNone) {
  auto const refused = [](DType a, DType scale, int block, int n) {
    try {
      scaled_mma(a, a, scale, block, n);
    } catch (layout_error const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused(DType::e4m3, DType::ue8m0, 16, 64).find("each 32 elements"), std::string::npos);
  EXPECT_NE(refused(DType::e2m1, DType::ue4m3, 32, 64).find("ue8m0 for each 32"),
            std::string::npos);
  EXPECT_NE(refused(DType::e2m1, DType::ue8m0, 16, 60).find("multiple of 8"), std::string::npos);
  EXPECT_NE(refused(DType::e3m2, DType::ue8m0, 16, 64).find("each 32 elements"), std::string::npos);
  EXPECT_NE(refused(DType::bf16, DType::ue8m0, 32, 64).find("e2m3"), std::string::npos);
  EXPECT_EQ(refused(DType::e4m3, DType::ue8m0, 32, 64), "");
}

}  // namespace
}  // namespace tegula
