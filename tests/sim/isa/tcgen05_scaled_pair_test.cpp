// tcgen05.mma with block scales by a pair of CTAs, of m 256 and of m 128, whose scales of B lie in
// halves; and what is found where they lie otherwise.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run_schedules.hpp"
#include "scaled_problem.hpp"
#include "scaled_storage.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tensor_memory_ctas.hpp"

namespace tegula {
namespace {

enum class PairSlip : std::uint8_t {
  none,
  scales_in_every_quarter,  // all of B's, though m is 128
  one_copy_of_a,            // in tensor memory
  one_copy_of_scales,       // of B's, in each half of the lanes
};

/// D = A B with scales, of 128 bytes of k: four instructions. in: of each CTA A (m / 2 rows of 32
/// words) and B (n / 2 rows), and pieces of the scales of its rows of A, and of all of B, a block
/// after another.
template <ScaledMmaSpec S, PairSlip Slip> struct ScaledPair : TensorMemoryCtas<2, 512> {
  using Base = TensorMemoryCtas<2, 512>;
  static constexpr int own_m = S.m / 2, own_n = S.n / 2;
  static constexpr int parts = column_parts(S), columns = S.n / parts;
  /// Pieces of 128 rows that bring B's scales; where m is 128, of one copy.
  static constexpr int pieces = parts == 2 ? 1 : (S.n + 127) / 128;
  using SharedStorage = ScaledStorage<S, own_m, own_n, 128 * (parts == 2 ? 2 : pieces)>;
  static constexpr int steps = SharedStorage::steps, per_step = SharedStorage::per_step,
                       blocks = SharedStorage::blocks;
  // Columns; A's scales begin at 0.
  static constexpr int scales_b = 4 * blocks, columns_d = scales_b + 4 * blocks * pieces,
                       columns_a = columns_d + columns;

  TEGULA_DEVICE static void copy_scales_of_b(SharedStorage& smem, TensorAddr to, int block) {
    using enum TensorCopyShape;
    SharedAddr const from = shared_address(smem.scale_b[block]);
    if constexpr (parts == 2 && Slip == PairSlip::scales_in_every_quarter) {
      tcgen05_cp<rows32_bits128_warpx4, 2>(to, rows16_descriptor(from));
    } else if constexpr (parts == 2 && Slip == PairSlip::one_copy_of_scales) {
      tcgen05_cp<rows64_bits128_02_13, 2>(to, rows16_descriptor(from));
    } else if constexpr (parts == 2) {
      tcgen05_cp<rows64_bits128_01_23, 2>(to, rows16_descriptor(from));
    } else {
      for (int piece = 0; piece < pieces; ++piece)
        tcgen05_cp<rows32_bits128_warpx4, 2>(
            to + tensor_address(0, 4 * piece),
            rows16_descriptor(from + static_cast<SharedAddr>(512 * piece)));
    }
  }

  TEGULA_DEVICE static void multiply(SharedStorage& smem, TensorAddr base) {
    for (int block = 0; block < blocks; ++block) {
      tcgen05_cp<TensorCopyShape::rows32_bits128_warpx4, 2>(
          base + tensor_address(0, 4 * block),
          rows16_descriptor(shared_address(smem.scale_a[block])));
      copy_scales_of_b(smem, base + tensor_address(0, scales_b + 4 * pieces * block), block);
    }
    for (int step = 0; step < steps; ++step) {
      int const first = step * per_step, block = first / 4;
      ScaleIds const ids{first % 4, first % 4};
      smem.multiply(step, base + columns_d, base + columns_a, base + tensor_address(0, 4 * block),
                    base + tensor_address(0, scales_b + 4 * pieces * block), ids);
    }
    Base::commit(smem);
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    std::uint32_t const* const in = p.in + Base::rank() * SharedStorage::words;
    smem.stage(in, threads);
    TensorAddr const base = Base::begin(smem), own = Base::own_lanes(base);
    int const row = thread_idx() % own_m, part = thread_idx() / own_m;
    if constexpr (S.a_in_tensor_memory) {
      std::uint32_t words[32];
      for (int i = 0; i < 32; ++i)
        words[i] = Slip == PairSlip::one_copy_of_a && part > 0
                       ? 0
                       : ld_global<std::uint32_t>(in + 32 * row + i);
      tcgen05_st<TensorShape::lanes32_bits32, 32>(words, own + columns_a);
      Base::meet_after_stores();
    }
    if (thread_idx() == 0 && Base::rank() == 0) multiply(smem, base);
    Base::wait(smem);
    std::uint32_t* const out =
        p.out + (Base::rank() * own_m + row) * S.n + part * columns;  // this thread's part of D
    for (int column = 0; column < columns; column += 8) {
      std::uint32_t r[8];
      tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, own + tensor_address(0, columns_d + column));
      tcgen05_wait_ld();
      for (int i = 0; i < 8; ++i) st_global(out + column + i, r[i]);
    }
    Base::end(base);
  }
};

template <ScaledMmaSpec S> std::vector<std::uint32_t> words_of(ScaledProblem<S> const& problem) {
  constexpr int own_m = S.m / 2, own_n = S.n / 2, parts = column_parts(S), blocks = problem.blocks;
  std::vector<std::uint32_t> in;
  for (int rank = 0; rank < 2; ++rank) {
    auto const append_rows = [&](std::vector<std::uint32_t> const& words, int rows) {
      auto const first = words.begin() + 32 * rows * rank;
      in.insert(in.end(), first, first + 32 * rows);
    };
    append_rows(problem.a, own_m);
    append_rows(problem.b, own_n);
    for (int block = 0; block < blocks; ++block)
      append_scale_pieces(in, problem.scale_a, blocks, block, rank * own_m, own_m);
    for (int block = 0; block < blocks; ++block) {
      for (int part = 0; part < parts; ++part)
        append_scale_pieces(in, problem.scale_b, blocks, block, part * S.n / parts, S.n / parts);
    }
  }
  return in;
}

template <ScaledMmaSpec S, PairSlip Slip = PairSlip::none>
Outcome multiply(ScaledProblem<S> const& problem, sim::Options const& options = blackwell()) {
  return observe<ScaledPair<S, Slip>>(words_of(problem), problem.expected.size(), options,
                                      {2, 1, 1});
}

template <ScaledMmaSpec S> void expect_pair_product() {
  ScaledProblem<S> const problem;
  for (auto const completion : {sim::Completion::last, sim::Completion::first}) {
    sim::Options options = blackwell();
    options.completion = completion;
    expect_exact(problem, multiply<S>(problem, options));
  }
}

/// By a pair, of m 128 or 256.
constexpr ScaledMmaSpec pair(int m, DType a, DType b, int n, DType scale = DType::ue8m0,
                             int block = 32, bool a_in_tensor_memory = false) {
  ScaledMmaSpec spec = scaled_mma(a, b, scale, block, n, 2, a_in_tensor_memory);
  spec.m = m;
  check(spec);
  return spec;
}
constexpr ScaledMmaSpec with_majors(ScaledMmaSpec spec, Major a, Major b) {
  spec.a_major = a, spec.b_major = b;
  check(spec);
  return spec;
}
constexpr ScaledMmaSpec with_signs(ScaledMmaSpec spec, bool a, bool b) {
  spec.negate_a = a, spec.negate_b = b;
  return spec;
}

TEST(Tcgen05ScaledPair, MultipliesOfEitherHeight) {
  using enum DType;
  expect_pair_product<pair(256, e4m3, e5m2, 48)>();
  expect_pair_product<pair(256, e2m1, e2m1, 160, ue4m3, 16)>();
  expect_pair_product<pair(128, e4m3, e5m2, 48)>();
  expect_pair_product<pair(128, e2m3, e4m3, 16)>();
  expect_pair_product<pair(128, e2m1, e3m2, 256)>();
  expect_pair_product<pair(128, e2m1, e2m1, 96)>();
  expect_pair_product<pair(128, e2m1, e2m1, 80, ue8m0, 16)>();
  expect_pair_product<pair(128, e2m1, e2m1, 128, ue4m3, 16)>();
}

TEST(Tcgen05ScaledPair, ReadsTwoCopiesOfAFromTensorMemory) {
  using enum DType;
  expect_pair_product<pair(256, e5m2, e2m1, 32, ue8m0, 32, true)>();
  expect_pair_product<pair(128, e4m3, e4m3, 64, ue8m0, 32, true)>();
  expect_pair_product<pair(128, e3m2, e4m3, 32, ue8m0, 32, true)>();
  expect_pair_product<pair(128, e2m1, e2m1, 32, ue4m3, 16, true)>();
}

TEST(Tcgen05ScaledPair, ReadsOperandsOfEitherMajorAndNegatesThem) {
  using enum DType;
  constexpr ScaledMmaSpec spec = pair(128, e4m3, e5m2, 64);
  expect_pair_product<with_majors(spec, Major::mn, Major::k)>();
  expect_pair_product<with_signs(with_majors(spec, Major::k, Major::mn), true, false)>();
  expect_pair_product<with_signs(with_majors(pair(256, e5m2, e4m3, 32), Major::mn, Major::mn), true,
                                 true)>();
  expect_pair_product<with_signs(pair(128, e2m1, e2m1, 32, ue4m3, 16), false, true)>();
}

TEST(Tcgen05ScaledPair, IsTheSameAtEverySchedule) {
  constexpr ScaledMmaSpec spec = pair(128, DType::e4m3, DType::e4m3, 32);
  ScaledProblem<spec> const problem;
  auto const expected = multiply<spec>(problem).out;
  for_each_schedule(
      [&](sim::Options const& options) {
        Outcome const result = multiply<spec>(problem, options);
        EXPECT_EQ(result.first_finding(), "");
        EXPECT_EQ(result.out, expected);
      },
      blackwell());
}

TEST(Tcgen05ScaledPair, CopiesThatDifferAreFound) {
  constexpr ScaledMmaSpec spec = pair(128, DType::e4m3, DType::e4m3, 128);
  constexpr ScaledMmaSpec of_tensor =
      pair(128, DType::e4m3, DType::e4m3, 64, DType::ue8m0, 32, true);
  auto const expect = [](Outcome const& result, char const* says) {
    EXPECT_NE(result.first_finding().find(says), std::string::npos) << result.first_finding();
  };
  ScaledProblem<spec> const problem;
  // Of n 128 the upper half of the columns would be scaled as the lower one.
  Outcome const everywhere = multiply<spec, PairSlip::scales_in_every_quarter>(problem);
  EXPECT_EQ(everywhere.first_finding(), "");
  EXPECT_NE(everywhere.out, multiply<spec>(problem).out);
  expect(multiply<spec, PairSlip::one_copy_of_scales>(problem),
         "lanes 0 to 63 must have those of the lower half of B's rows twice");
  expect(multiply<of_tensor, PairSlip::one_copy_of_a>(ScaledProblem<of_tensor>()),
         "must have a copy of lanes 0 to 63");
}

}  // namespace
}  // namespace tegula
