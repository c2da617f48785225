#pragma once

#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/vector.hpp"

/// Promotion: the tensor core's sum over 128 of K, times the scales of its rows and columns, is
/// added to f32 accumulators (docs/low_precision.md).
namespace tegula {

/// One value for each step of a walk along K, in order in global memory. The lanes of a warp hold
/// 32 steps' values, and have begun to load the next 32: so a step costs a shuffle, and waits for
/// memory at the most once, at the beginning.
class StepValues {
 public:
  StepValues() = default;
  /// Steps [first, last), of which step s has values[s]. By all lanes of a warp.
  TEGULA_DEVICE StepValues(float const* values, int first, int last)
      : values_(values), first_(first), last_(last) {
    coming_ = load(first);
  }

  /// The value of `step`; the steps come one after the other. By all lanes.
  TEGULA_DEVICE float next(int step, SourceLocation where = SourceLocation::current()) {
    int const lane = (step - first_) % kWarpSize;
    if (lane == 0) {
      held_ = coming_;
      coming_ = load(step + kWarpSize);
    }
    return warp::shfl(held_, lane, warp::kAllLanes, where);
  }

 private:
  TEGULA_DEVICE float load(int step) const {
    int const own = step + lane_id();
    return own < last_ ? ld_global<float>(values_ + own) : 0.0f;
  }

  float const* values_ = nullptr;
  int first_ = 0, last_ = 0;
  float held_ = 0.0f, coming_ = 0.0f;
};

/// The scales of the columns of a tile, which are of one block of 128, or of two.
struct ScalePair {
  float first = 0.0f, second = 0.0f;
};

/// tCrC += tCrP, times the scales of row and column. The first Split columns are of one block.
template <int Split, int Rows, class M>
TEGULA_DEVICE void promote(float const (&of_a)[Rows], ScalePair const& of_b,
                           Fragment<float, M> const& tCrP, Fragment<float, M>& tCrC) {
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    float const first = of_a[r] * of_b.first, second = of_a[r] * of_b.second;
#pragma unroll
    for (int i = 0; i < count_along<M, 1>; ++i) {
      float const scale = step_along<1>(M{}, i) < Split ? first : second;
      row_column(tCrC, r, i) = fma(row_column(tCrP, r, i), scale, row_column(tCrC, r, i));
    }
  }
}

/// The same with a scale for each column, in shared memory from the lane's first one on. A lane has
/// two neighbours of each eight.
template <int Rows, class M>
TEGULA_DEVICE void promote_by_columns(float const (&of_a)[Rows], SharedAddr of_b,
                                      Fragment<float, M> const& tCrP, Fragment<float, M>& tCrC) {
#pragma unroll
  for (int i = 0; i < count_along<M, 1>; i += 2) {
    auto const pair = ld_shared<Vector<float, 2>>(of_b + 4 * step_along<1>(M{}, i));
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
#pragma unroll
      for (int j = 0; j < 2; ++j)
        row_column(tCrC, r, i + j) =
            fma(row_column(tCrP, r, i + j), of_a[r] * pair.data[j], row_column(tCrC, r, i + j));
    }
  }
}

}  // namespace tegula
