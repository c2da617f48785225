#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tensor_memory.hpp"
#include "tensor_memory_ctas.hpp"

namespace tegula {

/// A product of tcgen05.mma: by one CTA, or by a pair, of which the CTA of rank `issuer` starts it.
struct TensorProduct {
  DType a, b;
  int m, n;
  bool a_mn = false, b_mn = false;
  bool a_tmem = false;  ///< A lies in tensor memory
  int ctas = 1, issuer = 0;
  int copies = 2;  ///< of A in tensor memory, where it lies there twice; 1: the second is zeros
  DType d = DType::f32;
  bool negate_a = false, negate_b = false, saturate = false;
  int scale_input_d = 0;    ///< of the first step
  bool stationary = false;  ///< tcgen05.mma.ws
  bool leaves = false;      ///< some lanes of D as they are
  bool zeroes = false;  ///< takes some columns of B for zeros, and begins at others in each part
};

constexpr MmaSpec spec_of(TensorProduct const& p) {
  MmaOperands const operands = p.a_tmem ? MmaOperands::ts : MmaOperands::ss;
  MmaVariant const variant = p.saturate ? MmaVariant::saturate : MmaVariant::plain;
  MmaSpec spec = p.stationary ? weight_stationary_mma(p.a, p.b, p.d, p.m, p.n, major(p.a_mn),
                                                      major(p.b_mn), operands, variant)
                              : tensor_memory_mma(p.a, p.b, p.d, p.m, p.n, major(p.a_mn),
                                                  major(p.b_mn), operands, p.ctas, variant);
  spec.negate_a = p.negate_a;
  spec.negate_b = p.negate_b;
  return spec;
}

/// D = A B [+ D] of tiles of two steps along k. in: as expect_products says.
template <TensorProduct P> struct Multiplies : TensorMemoryCtas<P.ctas, 512> {
  using Base = TensorMemoryCtas<P.ctas, 512>;
  static constexpr MmaSpec op = spec_of(P);
  static constexpr int m = P.m, n = P.n, k = 2 * op.k;
  static constexpr int own_m = m / P.ctas, own_n = n / P.ctas;  // of each CTA's operands
  static constexpr bool spread = P.ctas == 1 && m == 64 && !P.stationary;
  static constexpr int columns = P.stationary ? n * m / 128 : P.ctas == 2 && m == 128 ? n / 2 : n;
  static constexpr int bits = element_bits(op);
  using Element = ElementBits<bits>;
  using SharedStorage =
      ProductStorage<SharedTile<Element, swizzled_operand(bits, own_m, k, P.a_mn ? 0 : 1)>,
                     SharedTile<Element, swizzled_operand(bits, own_n, k, P.b_mn ? 0 : 1)>>;

  /// What the thread's lane has of D: `columns` columns of a row, from `first` on. Of 64 rows of
  /// one CTA each warp has 16, but for those that are weight-stationary: of these, and of 64 rows
  /// of each CTA of a pair, lane 64 + i has the upper columns of row i. (Of 32 rows lane 32 j + i
  /// has quarter j of the columns of row i.)
  struct Own {
    int row, first;
    bool any;
  };
  TEGULA_DEVICE static Own own(int rank) {
    int const thread = thread_idx();
    if constexpr (spread) return {16 * (thread / 32) + thread % 32, 0, thread % 32 < 16};
    return {rank * own_m + thread % own_m, thread / own_m * columns, true};
  }
  /// Whether the product leaves a lane of a CTA as it is: a group of 16, and some others.
  TEGULA_DEVICE static constexpr bool left(int cta, int lane) {
    return P.leaves && (lane / 16 == 2 + cta || lane % 5 == cta);
  }
  static constexpr bool keeps(int row, int column) {
    int const own_row = row % own_m;
    int const lane = spread ? own_row / 16 * 32 + own_row % 16 : own_row + column / columns * own_m;
    return left(row / own_m, lane);
  }
  TEGULA_DEVICE static constexpr DisabledLanes<P.ctas> left_lanes() {
    DisabledLanes<P.ctas> lanes;
    for (int i = 0; i < 128 * P.ctas; ++i) {
      if (left(i / 128, i % 128)) lanes.words[i / 32] |= 1u << i % 32;
    }
    return lanes;
  }
  static constexpr ZeroColumns zero_columns = {
      .used = 4, .zeros = 3, .part = {{0, true}, {1, true}, {2, false}, {1, false}}};
  /// Counted out, column by column.
  static constexpr bool zeroes(int column) {
    if (!P.zeroes) return false;
    ZeroColumns::Part const& part = zero_columns.part[column / columns];
    bool zero = part.zeros_first;
    int left = (zero ? zero_columns.zeros : zero_columns.used) - part.start;
    for (int i = 0; i < column % columns; ++i) {
      if (--left > 0) continue;
      zero = !zero;
      left = zero ? zero_columns.zeros : zero_columns.used;
    }
    return zero;
  }
  template <class F> TEGULA_DEVICE static void for_each_step(F&& step) {
    step.template operator()<0>();
    step.template operator()<1>();
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), rank = Base::rank();
    bool const accumulate = ld_global<std::uint32_t>(p.in) != 0;
    std::uint32_t const* const d = p.in + 1;
    std::uint32_t const* const a = d + m * n;
    std::uint32_t const* const b = a + m * k + rank * own_n * k;
    auto const sA = tensor(smem.a);
    auto const sB = tensor(smem.b);
    for (int i = thread; i < own_m * k; i += Base::threads)
      sA(i / k, i % k) = static_cast<Element>(ld_global<std::uint32_t>(a + rank * own_m * k + i));
    for (int i = thread; i < own_n * k; i += Base::threads)
      sB(i / k, i % k) = static_cast<Element>(ld_global<std::uint32_t>(b + i));
    TensorAddr const base = Base::begin(smem), lanes = Base::own_lanes(base);
    auto const [row, first, any] = own(rank);
    auto const of_row = [any = any](std::uint32_t const* from) {
      return any ? ld_global<std::uint32_t>(from) : 0;
    };
    for (int column = 0; column < columns; ++column) {
      std::uint32_t r[1] = {of_row(d + row * n + first + column)};
      tcgen05_st<TensorShape::lanes32_bits32, 1>(r, lanes + tensor_address(0, column));
    }
    if constexpr (P.a_tmem) {  // sixteen columns from 256 on
      std::uint32_t packed[16] = {};
      for (int i = 0; i < k; ++i)
        packed[i * bits / 32] |= of_row(a + row * k + i) << (i * bits % 32);
      if (P.copies == 1 && thread >= own_m)
        for (std::uint32_t& word : packed) word = 0;
      tcgen05_st<TensorShape::lanes32_bits32, 16>(packed, lanes + tensor_address(0, 256));
    }
    Base::meet_after_stores();

    if (thread == 0 && rank == P.issuer) {
      for_each_step([&]<int Step>() {
        constexpr int scale = Step == 0 ? P.scale_input_d : 0;
        std::uint64_t const of_b =
            matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(sB, 0, Step * op.k));
        bool const adds = accumulate || Step > 0;
        if constexpr (P.a_tmem) {
          TensorAddr const of_a = base + tensor_address(0, 256 + 8 * Step);
          if constexpr (P.zeroes) {
            tcgen05_mma_ts<op>(base, of_a, of_b, adds, zero_columns);
          } else if constexpr (P.leaves) {
            tcgen05_mma_ts<op, scale>(base, of_a, of_b, adds, left_lanes());
          } else {
            tcgen05_mma_ts<op, scale>(base, of_a, of_b, adds);
          }
        } else {
          std::uint64_t const of_a =
              matrix_descriptor<DescriptorForm::tcgen05>(domain_offset(sA, 0, Step * op.k));
          if constexpr (P.zeroes) {
            tcgen05_mma<op>(base, of_a, of_b, adds, zero_columns);
          } else if constexpr (P.leaves) {
            tcgen05_mma<op, scale>(base, of_a, of_b, adds, left_lanes());
          } else {
            tcgen05_mma<op, scale>(base, of_a, of_b, adds);
          }
        }
      });
      Base::commit(smem);
    }
    Base::wait(smem);
    for (int column = 0; column < columns; column += 8) {
      std::uint32_t r[8];
      tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, lanes + tensor_address(0, column));
      tcgen05_wait_ld();
      for (int i = 0; i < 8; ++i) {
        if (any) st_global(p.out + row * n + first + column + i, r[i]);
      }
    }
    Base::end(base);
  }
};

template <TensorProduct P> void expect_product() {
  expect_products<Multiplies<P>>({P.ctas, 1, 1}, P.scale_input_d);
}

}  // namespace tegula
