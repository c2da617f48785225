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
/// `Window` steps' values, at most 32, and have begun to load the next ones: so a step costs a
/// shuffle, and waits for memory at the most once, at the beginning. Each function by all lanes.
template <int Window> class StepValues {
  static_assert(0 < Window && Window <= kWarpSize);

 public:
  StepValues() = default;
  /// `steps` of them, of which step s has values[s]. The first window begins `skipped` steps before
  /// that, 0 to Window - 1: advance(skipped) comes first. (Here it would wait for memory.)
  TEGULA_DEVICE StepValues(float const* values, int steps, int skipped)
      : values_(values + lane_id() - skipped), left_(steps + skipped - lane_id()) {
    held_ = left_ > 0 && lane_id() >= skipped ? ld_global<float>(values_) : 0.0f;
    coming_ = load_next();
  }

  /// The value of a step, counted from the present one. Precondition: it is of the same window.
  TEGULA_DEVICE float of(int step, SourceLocation where = SourceLocation::current()) const {
    return warp::shfl(held_, step, warp::kAllLanes, where);
  }
  /// Goes on by some steps of the window.
  TEGULA_DEVICE void advance(int steps) { held_ = warp::shfl_down(held_, steps); }

  /// Goes on to the next window.
  TEGULA_DEVICE void next() {
    values_ += Window;
    left_ -= Window;
    held_ = coming_;
    coming_ = load_next();
  }

 private:
  /// The lane's value of the window behind this one.
  TEGULA_DEVICE float load_next() const {
    return left_ > Window ? ld_global<float>(values_ + Window) : 0.0f;
  }

  float const* values_ = nullptr;  // the lane's of this window
  int left_ = 0;                   // more than 0: there is one
  float held_ = 0.0f, coming_ = 0.0f;
};

/// The same address, of which the compiler does not know how it was worked out, and so keeps it.
TEGULA_DEVICE SharedAddr hidden(SharedAddr address) {
#if TEGULA_GPU
  asm volatile("" : "+r"(address));
#endif
  return address;
}

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

/// The scales of a lane's columns, which are two neighbours of each eight.
template <class M> using ColumnScales = Vector<float, 2>[count_along<M, 1> / 2];

/// They lie in shared memory, from that of the lane's first column on.
template <class M> TEGULA_DEVICE void load_column_scales(SharedAddr from, ColumnScales<M>& of_b) {
#pragma unroll
  for (int i = 0; i < count_along<M, 1>; i += 2)
    of_b[i / 2] = ld_shared<Vector<float, 2>>(from + 4 * step_along<1>(M{}, i));
}

/// The same with a scale for each column.
template <int Rows, class M>
TEGULA_DEVICE void promote_by_columns(float const (&of_a)[Rows], ColumnScales<M> const& of_b,
                                      Fragment<float, M> const& tCrP, Fragment<float, M>& tCrC) {
#pragma unroll
  for (int i = 0; i < count_along<M, 1>; ++i) {
#pragma unroll
    for (int r = 0; r < Rows; ++r)
      row_column(tCrC, r, i) =
          fma(row_column(tCrP, r, i), of_a[r] * of_b[i / 2].data[i % 2], row_column(tCrC, r, i));
  }
}

}  // namespace tegula
