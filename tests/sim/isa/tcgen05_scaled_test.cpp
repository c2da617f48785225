// tcgen05.mma with block scales that tcgen05.cp brought to tensor memory, on the simulated machine;
// and what is found where one of them is used wrongly.
#include "tegula/arch/tcgen05_scaled.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "scaled_problem.hpp"
#include "scaled_storage.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tegula/arch/tcgen05_scaled_descriptor.hpp"
#include "tensor_memory_ctas.hpp"

namespace tegula {
namespace {

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
template <ScaledMmaSpec S> struct ScaledProduct : TensorMemoryCtas<1, 256> {
  using Base = TensorMemoryCtas<1, 256>;
  using Storage = ScaledStorage<S, 128, S.n, 128>;
  static constexpr int n = S.n, steps = Storage::steps, threads = Base::threads;
  static constexpr int per_step = Storage::per_step, blocks = Storage::blocks;
  // Columns; A's scales begin at 0.
  static constexpr int scales_b = 4 * blocks, columns_d = 8 * blocks, columns_a = columns_d + n;
  struct SharedStorage : Storage {
    alignas(128) std::uint32_t nothing[512];
    template <class F> void name_buffers(F&& name) {
      Storage::name_buffers(name);
      name("nothing", nothing);
    }
  };

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
    for (int step = 0; step < steps; ++step) {
      int const first = step * per_step;
      auto const column = static_cast<TensorAddr>(4 * (first / 4));
      ScaleIds const ids{first % 4, is(Mistake::wrong_instruction) && per_step > 1 ? 1 : first % 4};
      TensorAddr const lane = tensor_address(is(Mistake::wrong_scale_lane) ? 32 : 0, 0);
      smem.multiply(step, base + columns_d, base + columns_a, base + column + lane,
                    base + scales_b + column, ids);
    }
    if (is(Mistake::copied_too_late))
      tcgen05_cp<kScales>(base, rows16_descriptor(shared_address(smem.scale_b[0])));
    Base::commit(smem);
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    auto const mistake = static_cast<Mistake>(ld_global<std::uint32_t>(p.in));
    smem.stage(p.in + 1, threads);
    TensorAddr const base = Base::begin(smem, mistake != Mistake::no_proxy_fence),
                     own = Base::own_lanes(base);
    if constexpr (S.a_in_tensor_memory) {
      std::uint32_t row[32];
      for (int i = 0; i < 32; ++i)
        row[i] = ld_global<std::uint32_t>(p.in + 1 + 32 * thread_idx() + i);
      tcgen05_st<TensorShape::lanes32_bits32, 32>(row, own + columns_a);
      Base::meet_after_stores();
    }
    if (thread_idx() == 0) multiply(smem, base, mistake);
    cta::sync();  // all is in flight
    bool const early = mistake == Mistake::read_too_early;
    if (!early) Base::wait(smem);
    for (int column = 0; column < n; column += 8) {
      std::uint32_t r[8];
      tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, own + tensor_address(0, columns_d + column));
      tcgen05_wait_ld();
      for (int i = 0; i < 8; ++i) st_global(p.out + thread_idx() * n + column + i, r[i]);
    }
    if (early) Base::wait(smem);
    Base::end(base);
  }
};

template <ScaledMmaSpec S> struct Problem : ScaledProblem<S> {
  std::vector<std::uint32_t> in;

  explicit Problem(Mistake mistake) : in{static_cast<std::uint32_t>(mistake)} {
    for (auto const* const operand : {&this->a, &this->b})
      in.insert(in.end(), operand->begin(), operand->end());
    append(this->scale_a, 128);
    append(this->scale_b, S.n);
  }
  Outcome observe(sim::Options const& options = blackwell()) const {
    return tegula::observe<ScaledProduct<S>>(in, this->expected.size(), options);
  }

 private:
  void append(std::vector<std::uint32_t> const& scales, int rows) {
    for (int block = 0; block < this->blocks; ++block)
      append_scale_pieces(in, scales, this->blocks, block, 0, rows);
  }
};

template <ScaledMmaSpec S> void expect_product() {
  Problem<S> const problem(Mistake::none);
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    sim::Options options = blackwell();
    options.completion = completion;
    expect_exact(problem, problem.observe(options));
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

constexpr ScaledMmaSpec with(ScaledMmaSpec spec, Major a, Major b, bool negate_a, bool negate_b) {
  spec.a_major = a, spec.b_major = b, spec.negate_a = negate_a, spec.negate_b = negate_b;
  check(spec);
  return spec;
}
constexpr Major kMajorK = Major::k, kMajorMn = Major::mn;

TEST(Tcgen05Scaled, ReadsOperandsOfEitherMajor) {
  expect_product<with(mxf8(64), kMajorMn, kMajorK, false, false)>();
  expect_product<with(mxf8(16), kMajorK, kMajorMn, false, false)>();
  expect_product<with(mxf8(48), kMajorMn, kMajorMn, false, false)>();
  // of 6 and 4 bits beside them, contiguous along k
  constexpr ScaledMmaSpec mixed = scaled_mma(DType::e2m3, DType::e4m3, DType::ue8m0, 32, 32);
  expect_product<with(mixed, kMajorK, kMajorMn, false, false)>();
}

TEST(Tcgen05Scaled, NegatesItsOperands) {
  expect_product<with(mxf8(24), kMajorK, kMajorK, true, false)>();
  expect_product<with(mxf8(16), kMajorMn, kMajorK, true, true)>();
  expect_product<with(nvf4(64), kMajorK, kMajorK, false, true)>();
  expect_product<with(scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 32, 16, 1, true), kMajorK,
                      kMajorK, true, false)>();
}

/// The first finding of a kernel with a mistake.
template <ScaledMmaSpec S> sim::Finding found(Mistake mistake) {
  Outcome const result = Problem<S>(mistake).observe();
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
  Outcome const whole = problem.observe(options);
  int mutants = 0;
  for (sim::MarkedStatement const& statement : whole.report.marked) {
    if (statement.operation != Operation::tcgen05_cp) continue;
    for (auto const mutation : {Mutation::removed, Mutation::delayed}) {
      options = blackwell();
      options.mutant =
          sim::Mutant{statement.where.file, statement.where.line, statement.operation, mutation};
      Outcome const result = problem.observe(options);
      // Delayed past another copy, it still comes before the products.
      bool const found = !result.report.ok() || result.out != whole.out;
      mutants += found ? 1 : 0;
      EXPECT_TRUE(found || mutation == Mutation::delayed) << statement.where.line;
    }
  }
  EXPECT_GE(mutants, 3);
}

TEST(Tcgen05Scaled, DescriptorsSayWhatTheyAreMadeFrom) {
  ScaledMmaSpec of_128 = scaled_mma(DType::e4m3, DType::e4m3, DType::ue8m0, 32, 48, 2);
  of_128.m = 128;
  for (ScaledMmaSpec const& spec :
       {mxf8(8), mxf8(256), nvf4(64), scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 16, 24),
        scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 32, 136),
        scaled_mma(DType::e2m3, DType::e3m2, DType::ue8m0, 32, 64, 2),
        scaled_mma(DType::e2m1, DType::e5m2, DType::ue8m0, 32, 256, 2), of_128,
        with(mxf8(32), kMajorMn, kMajorK, false, true),
        with(mxf8(32), kMajorK, kMajorMn, true, false)}) {
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
  EXPECT_EQ(tcgen05_scaled_descriptor(with(mxf8(128), kMajorMn, kMajorK, false, true), {}),
            1u << 10 | 1u << 14 | 1u << 15 | 16u << 17 | 1u << 23 | 1u << 27);
}

TEST(Tcgen05Scaled, RefusesWhatIsNone) {
  using enum DType;
  auto const expect = [](char const* says, ScaledMmaSpec const& spec) {
    std::string const found = sentence([&] { check(spec); });
    EXPECT_NE(found.find(says), std::string::npos) << found;
  };
  ScaledMmaSpec const of_8{
      .kind = ScaledMmaKind::mxf8f6f4, .m = 128, .n = 64, .a = e4m3, .b = e4m3};
  ScaledMmaSpec const of_4{.kind = ScaledMmaKind::mxf4, .m = 128, .n = 64, .a = e2m1, .b = e2m1};
  EXPECT_TRUE(check(of_8) && check(of_4));
  auto const but = [](ScaledMmaSpec spec, auto const& change) {
    change(spec);
    return spec;
  };
  expect("each 32 elements", but(of_8, [](auto& s) { s.block = 16; }));
  expect("each 32 elements", but(of_4, [](auto& s) { s.scale = ue4m3; }));
  expect("must be e4m3, e5m2, e2m3", but(of_8, [](auto& s) { s.a = bf16; }));
  expect("must be e2m1", but(of_4, [](auto& s) { s.b = e2m3; }));
  expect("multiple of 8 (of a pair 16)", but(of_8, [](auto& s) { s.n = 60; }));
  expect("multiple of 8 (of a pair 16)", but(of_8, [](auto& s) { s.n = 40, s.ctas = 2; }));
  expect("m must be 128, of a pair 128 or 256", but(of_8, [](auto& s) { s.m = 256; }));
  expect("m must be 128, of a pair 128 or 256", but(of_8, [](auto& s) { s.m = 64, s.ctas = 2; }));
  expect("n must be a multiple of 16 (of a pair 32), at most 256",
         but(of_8, [](auto& s) { s.n = 24, s.b_major = kMajorMn; }));
  // e2m1 is contiguous along k, beside others and by itself
  expect("6- and 4-bit elements must be contiguous along k",
         but(of_8, [](auto& s) { s.a = e2m1, s.a_major = kMajorMn; }));
  expect("6- and 4-bit elements must be contiguous along k",
         but(of_4, [](auto& s) { s.b_major = kMajorMn; }));
  expect("has no major-ness",
         but(of_8, [](auto& s) { s.a_in_tensor_memory = true, s.a_major = kMajorMn; }));
  EXPECT_THROW(scaled_mma(e4m3, e4m3, ue8m0, 16, 64), layout_error);
}

}  // namespace
}  // namespace tegula
