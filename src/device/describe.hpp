#pragma once

/// The tensors of a launch as families of kernels describe them (FamilyTraits::describe).

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/modes.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/global_tensor.hpp"

namespace tegula::device {

using sim::Coverage;
using sim::GlobalTensor;

/// A mode of a tensor, its stride in elements.
struct Mode {
  char const* name;
  std::int64_t extent, stride;
};

inline GlobalTensor tensor(char const* name, DType type, void const* address,
                           std::vector<Mode> const& modes, Coverage coverage) {
  // The stride of one element is of no account, and may be beyond what a layout holds.
  auto const leaf = [](Mode const& mode) {
    return layout(Tuple(mode.extent), Tuple(mode.extent == 1 ? 0 : mode.stride));
  };
  GlobalTensor result{name,       address,         make_layout(leaf(modes[0])),
                      bits(type), {modes[0].name}, coverage};
  for (std::size_t i = 1; i < modes.size(); ++i) {
    result.layout = append(result.layout, leaf(modes[i]));
    result.modes.push_back(modes[i].name);
  }
  return result;
}

/// Of a matrix and its coordinates. B's are named by the problem: callers of gemm() see its k x n,
/// the kernels its transpose.
struct Names {
  char const *tensor, *row = "row", *column = "column";
};
inline constexpr Names kA = {"A"}, kB = {"B", "n", "k"}, kC = {"C"}, kD = {"D"};

/// Batches of matrices; where all batches share one, of that one.
struct Matrices {
  DType type;
  void const* address;
  std::int64_t rows, columns, row_stride, column_stride;
  std::int64_t batches = 1, batch_stride = 0;

  GlobalTensor as(Names const& names, Coverage coverage) const {
    std::vector<Mode> modes = {{names.row, rows, row_stride},
                               {names.column, columns, column_stride}};
    if (batches > 1 && batch_stride != 0) modes.push_back({"batch", batches, batch_stride});
    return tensor(names.tensor, type, address, modes, coverage);
  }
};

/// An operand of `mn` rows of `k`, as the GEMMs name its coordinates, which lies in rows `ld` apart
/// of one or the other.
inline Matrices operand(DType type, void const* address, Major major, std::int64_t mn,
                        std::int64_t k, std::int64_t ld, std::int64_t batches,
                        std::int64_t batch_stride) {
  bool const k_major = major == Major::k;
  return {type, address, mn, k, k_major ? ld : 1, k_major ? 1 : ld, batches, batch_stride};
}

/// Block scales, by the tensor map of their pieces (kernel/block_scale.hpp): (row, block of k,
/// matrix), whole pieces of them. Nothing where the simulated machine did not encode it.
void describe_block_scales(std::vector<GlobalTensor>& tensors, char const* name,
                           TensorMap const& map, Coverage coverage);

/// An operand's product is not asked for where alpha is 0.
inline Coverage of_operand(float alpha) { return alpha != 0 ? Coverage::read : Coverage::any; }

inline GlobalTensor bias(DType type, void const* address, std::int64_t n) {
  return tensor("bias", type, address, {{"column", n, 1}}, Coverage::read);
}

/// Tokens' vectors: rows of Q, K, V or O.
inline GlobalTensor tokens(char const* name, DType type, void const* address, std::int64_t seq,
                           std::int64_t head_dim, std::int64_t heads, std::int64_t batches,
                           TokenStrides const& stride, Coverage coverage) {
  std::vector<Mode> modes = {{"row", seq, stride.seq}, {"column", head_dim, 1}};
  if (heads > 1) modes.push_back({"head", heads, stride.head});
  if (batches > 1) modes.push_back({"batch", batches, stride.batch});
  return tensor(name, type, address, modes, coverage);
}

/// A row's log-sum-exp: (batch, heads, seq_q), contiguous.
inline GlobalTensor log_sum_exp(float const* address, std::int64_t seq_q, std::int64_t heads,
                                std::int64_t batches) {
  std::vector<Mode> modes = {{"row", seq_q, 1}};
  if (heads > 1) modes.push_back({"head", heads, seq_q});
  if (batches > 1) modes.push_back({"batch", batches, heads * seq_q});
  return tensor("lse", DType::f32, address, modes, Coverage::written);
}

}  // namespace tegula::device
