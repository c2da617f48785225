#pragma once

/// The kernels' results in float64, plainly computed, each with a bound on how far a correct kernel
/// may be from it. The arguments are the kernels' own, with pointers to host memory.

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/device/arguments.hpp"

namespace tegula::reference {

/// Exact results and error bounds, element by element.
struct Values {
  std::vector<double> value;
  std::vector<double> bound;
};

/// D for the given rows of the problem, which number (batch, m) in C order: (rows, n).
/// Precondition: the arguments pass `check`; c is not d. Throws argument_error for a row that D has
/// not.
Values gemm(GemmArguments const& host, std::vector<std::int64_t> const& rows);

/// Element `index` of attention's new rows of K or V, whose factors are `descale`, for a batch and
/// a head of keys: as it is in the cache that it is appended to.
double new_element(AttentionArguments const& host, void const* rows, float const* descale,
                   std::int64_t batch, std::int64_t kv_head, std::int64_t index);

struct Attention {
  Values o;    ///< (rows, head_dim)
  Values lse;  ///< (rows)
};
/// O and its log-sum-exp for the given rows, which number (batch, heads, seq_q) in C order. Lengths
/// and the page table lie in host memory, too. Precondition: the arguments pass `check`. Throws
/// argument_error for a row of a query that its sequence does not have.
Attention attention(AttentionArguments const& host, std::vector<std::int64_t> const& rows);

/// 0, 1, ..., total - 1 where that is at most `most`, else `most` of them spread evenly, the first
/// and the last included. Throws argument_error for a negative total.
std::vector<std::int64_t> some_rows(std::int64_t total, std::int64_t most);

/// How a kernel's results compare with the reference.
struct Comparison {
  std::int64_t elements = 0;
  double max_error = 0;  ///< the largest |result - value|
  /// the largest error in units of its bound; at most 1 for a correct kernel. Infinite where a NaN
  /// or an infinity stands that should not, or is missing.
  double max_ratio = 0;
  std::int64_t unbounded = 0;   ///< finite values whose bound is infinite: any result is right
  std::int64_t not_finite = 0;  ///< results that are NaN or infinite where the value is finite
  std::int64_t worst = -1;      ///< the element of max_ratio
  double worst_result = 0;      ///< what stood there
  bool within() const { return max_ratio <= 1; }
  /// Joins the comparison of other elements, numbered from `offset`.
  void add(Comparison const& other, std::int64_t offset);
};

/// Holds results against values and bounds of the same length. `largest` is the largest finite
/// number of the results' type: beyond it, as far as the bound reaches, infinity is right. Where
/// the bound of a finite value is infinite, NaN is right, too.
Comparison compare(std::vector<double> const& results, Values const& reference, double largest);

/// The largest finite f16, bf16 or f32.
double largest_finite(DType type);
/// The element at `index`, of a floating-point type of 8 bits or more, or e2m1, two of which share
/// a byte; of tf32 what a tensor core reads of it.
double element(void const* data, DType type, std::int64_t index);

}  // namespace tegula::reference
