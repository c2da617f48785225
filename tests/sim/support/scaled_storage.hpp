#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "scaled_problem.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05_scaled.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tensor_memory_ctas.hpp"

namespace tegula {

/// What a kernel of products with block scales has in shared memory of a CTA: 128 bytes of k, four
/// instructions, of RowsA rows of A and RowsB rows of B; blocks of pieces of their scales, `WordsB`
/// words of B's in each; an mbarrier, and where its columns of tensor memory begin.
template <ScaledMmaSpec S, int RowsA, int RowsB, int WordsB> struct ScaledStorage {
  static constexpr int steps = 4, per_step = scales(S), blocks = steps * per_step / 4;
  /// Words that stage() takes.
  static constexpr int words = 32 * (RowsA + RowsB) + blocks * (128 + WordsB);

  SharedTile<std::uint8_t, swizzled_operand(8, RowsA, 128, S.a_major == Major::mn ? 0 : 1)> a;
  SharedTile<std::uint8_t, swizzled_operand(8, RowsB, 128, S.b_major == Major::mn ? 0 : 1)> b;
  alignas(128) std::uint32_t scale_a[blocks][128];
  alignas(128) std::uint32_t scale_b[blocks][WordsB];
  Mbarrier done;
  std::uint32_t tmem;

  template <class F> void name_buffers(F&& name) {
    name("A", a);
    name("B", b);
    name("scales of A", scale_a);
    name("scales of B", scale_b);
    name("done", done);
    name("tmem", tmem);
  }

  /// By `threads` threads, all of the CTA. in: A, in rows of 32 words, then B, and the blocks of
  /// A's scales and of B's.
  TEGULA_DEVICE void stage(std::uint32_t const* in, int threads) {
    stage_rows(tensor(a), RowsA, in, threads);
    stage_rows(tensor(b), RowsB, in + 32 * RowsA, threads);
    std::uint32_t const* const scales = in + 32 * (RowsA + RowsB);
    stage_words(shared_address(scale_a), blocks * 128, scales, threads);
    stage_words(shared_address(scale_b), blocks * WordsB, scales + blocks * 128, threads);
  }
  /// Starts the product of a step, by one thread: with A in shared memory, or in the columns from
  /// `columns_a` on.
  TEGULA_DEVICE void multiply(int step, TensorAddr d, TensorAddr columns_a, TensorAddr of_a,
                              TensorAddr of_b, ScaleIds ids,
                              SourceLocation where = SourceLocation::current()) {
    std::uint64_t const b_rows =
        matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(tensor(b), 0, 32 * step));
    if constexpr (S.a_in_tensor_memory) {
      tcgen05_mma_scaled_ts<S>(d, columns_a + tensor_address(0, 8 * step), b_rows, of_a, of_b, ids,
                               step > 0, where);
    } else {
      std::uint64_t const a_rows =
          matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(tensor(a), 0, 32 * step));
      tcgen05_mma_scaled<S>(d, a_rows, b_rows, of_a, of_b, ids, step > 0, where);
    }
  }

 private:
  template <class Tile>
  TEGULA_DEVICE static void stage_rows(Tile const& tile, int rows, std::uint32_t const* in,
                                       int threads) {
    for (int i = thread_idx(); i < rows * 128; i += threads)
      tile(i / 128, i % 128) =
          static_cast<std::uint8_t>(ld_global<std::uint32_t>(in + i / 4) >> 8 * (i % 4));
  }
  TEGULA_DEVICE static void stage_words(SharedAddr to, int count, std::uint32_t const* in,
                                        int threads) {
    for (int i = thread_idx(); i < count; i += threads)
      st_shared(to + static_cast<SharedAddr>(4 * i), ld_global<std::uint32_t>(in + i));
  }
};

/// Clean, and the problem's exact result.
template <ScaledMmaSpec S> void expect_exact(ScaledProblem<S> const& problem, Outcome const& run) {
  EXPECT_EQ(run.first_finding(), "");
  for (std::size_t i = 0; i < problem.expected.size(); ++i)
    ASSERT_EQ(__builtin_bit_cast(float, run.out[i]), problem.expected[i])
        << "row " << i / S.n << ", column " << i % S.n;
}

}  // namespace tegula
