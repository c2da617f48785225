#pragma once

#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/activate_fragment.hpp"
#include "tegula/kernel/epilogue_scale.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/row_store.hpp"

namespace tegula {

/// The end of a Hopper GEMM whose D is contiguous along its rows' index m: the transpose of a
/// row-major D. What EpilogueSm90 does, without C and a bias.
///
/// Each warp stores its 16 rows of D straight from its registers, 32 bytes of each column: for
/// narrow tiles, whose shared memory serves better as stages (transposed_epilogue_sm90.hpp).
template <EpilogueSm90Spec S> class TransposedRowEpilogueSm90 {
 public:
  using Params = EpilogueSm90Params;
  using Out = type_of<S.out>;
  static_assert(S.transposed && S.buffers == 0);
  static_assert(sizeof(Out) == 2, "two elements are stored in a register");
  struct Tile {};
  struct Barriers {};

  TEGULA_DEVICE TransposedRowEpilogueSm90(Params const& params, int m, int n, Tile const&,
                                          Barriers const&)
      : p_(params), m_(m), n_(n) {}

  TEGULA_DEVICE static void init(Barriers const&) {}
  TEGULA_DEVICE static void prefetch_maps(Params const&) {}

  /// Stores a warpgroup's tile of D whose first element is (m0, n0): accumulators (of wgmma, MMA_M,
  /// 1) for 64 rows each. Of a narrow tile, no columns beyond its edge.
  template <class M>
  TEGULA_DEVICE void store(Fragment<float, M>& tCrC, int m0, int n0, int batch, bool narrow) {
    static_assert(2 * mode_size<mode_at<0, M>> == S.n,
                  "epilogue: the accumulators are not of n columns");
    float const scale = epilogue_scale(p_);
#pragma unroll
    for (int i = 0; i < Fragment<float, M>::size; ++i) tCrC(i) *= scale;
    if constexpr (S.activates) activate_all(p_.activation, tCrC);
    int const warp = (thread_idx_here() - S.first_thread) / 32 % 4;
    int const m = m0 + 16 * warp, columns = edge(n_) - n0;
    Out* const d = static_cast<Out*>(p_.d_address) + batch * p_.d_batch_stride;
    store_columns(tCrC, d + n0 * p_.ldd + m, p_.ldd, edge(m_) - m,
                  narrow && S.narrow_n < columns ? S.narrow_n : columns);
  }

  /// Nothing is on its way out of shared memory.
  TEGULA_DEVICE void drain() const {}

 private:
  Params const& p_;
  int m_, n_;  // extents of D
};

}  // namespace tegula
