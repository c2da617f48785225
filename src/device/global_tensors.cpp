#include "tegula/device/global_tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "tegula/layout/layout.hpp"
#include "tegula/layout/modes.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

using sim::Coverage;
using sim::GlobalTensor;

/// A mode of a tensor, its stride in elements.
struct Mode {
  char const* name;
  std::int64_t extent, stride;
};

GlobalTensor tensor(char const* name, DType type, void const* address, std::vector<Mode> const& modes,
                    Coverage coverage) {
  // The stride of one element is of no account, and may be beyond what a layout holds.
  auto const leaf = [](Mode const& mode) {
    return layout(Tuple(mode.extent), Tuple(mode.extent == 1 ? 0 : mode.stride));
  };
  GlobalTensor result{name, address, make_layout(leaf(modes[0])), bits(type), {modes[0].name}, coverage};
  for (std::size_t i = 1; i < modes.size(); ++i) {
    result.layout = append(result.layout, leaf(modes[i]));
    result.modes.push_back(modes[i].name);
  }
  return result;
}

/// Of a matrix and its coordinates. B's are named by the problem: callers of gemm() see its k x n, the
/// kernels its transpose.
struct Names {
  char const *tensor, *row = "row", *column = "column";
};
constexpr Names kA = {"A"}, kB = {"B", "n", "k"}, kC = {"C"}, kD = {"D"};

/// Batches of matrices; where all batches share one, of that one.
struct Matrices {
  DType type;
  void const* address;
  std::int64_t rows, columns, row_stride, column_stride;
  std::int64_t batches = 1, batch_stride = 0;

  GlobalTensor as(Names const& names, Coverage coverage) const {
    std::vector<Mode> modes = {{names.row, rows, row_stride}, {names.column, columns, column_stride}};
    if (batches > 1 && batch_stride != 0) modes.push_back({"batch", batches, batch_stride});
    return tensor(names.tensor, type, address, modes, coverage);
  }
};

/// An operand of `mn` rows of `k`, as the GEMMs name its coordinates, which lies in rows `ld` apart of one or
/// the other.
Matrices operand(DType type, void const* address, Major major, std::int64_t mn, std::int64_t k,
                 std::int64_t ld, std::int64_t batches, std::int64_t batch_stride) {
  bool const k_major = major == Major::k;
  return {type, address, mn, k, k_major ? ld : 1, k_major ? 1 : ld, batches, batch_stride};
}

/// An operand's product is not asked for where alpha is 0.
Coverage of_operand(float alpha) { return alpha != 0 ? Coverage::read : Coverage::any; }

GlobalTensor bias(DType type, void const* address, std::int64_t n) {
  return tensor("bias", type, address, {{"column", n, 1}}, Coverage::read);
}

/// Tokens' vectors: rows of Q, K, V or O.
GlobalTensor tokens(char const* name, DType type, void const* address, std::int64_t seq,
                    std::int64_t head_dim, std::int64_t heads, std::int64_t batches,
                    TokenStrides const& stride, Coverage coverage) {
  std::vector<Mode> modes = {{"row", seq, stride.seq}, {"column", head_dim, 1}};
  if (heads > 1) modes.push_back({"head", heads, stride.head});
  if (batches > 1) modes.push_back({"batch", batches, stride.batch});
  return tensor(name, type, address, modes, coverage);
}

}  // namespace

std::vector<GlobalTensor> global_tensors(GemmConfig const& c, GemmParams const& p) {
  if (std::min({p.m, p.n, p.k, p.batch}) < 1) return {};
  Coverage const of_ab = of_operand(p.alpha);
  std::vector<GlobalTensor> tensors = {
      operand(c.in, p.a, c.a_major, p.m, p.k, p.lda, p.batch, p.a_batch).as(kA, of_ab),
      operand(c.in, p.b, c.b_major, p.n, p.k, p.ldb, p.batch, p.b_batch).as(kB, of_ab),
      Matrices{c.out, p.d, p.m, p.n, p.ldd, 1, p.batch, p.d_batch}.as(kD, Coverage::written)};
  if (p.beta != 0)
    tensors.push_back(Matrices{c.out, p.c, p.m, p.n, p.ldc, 1, p.batch, p.c_batch}.as(kC, Coverage::read));
  if (p.bias != nullptr) tensors.push_back(bias(c.out, p.bias, p.n));
  return tensors;
}

std::vector<GlobalTensor> global_tensors(GemmSm90Config const& c, GemmSm90Params const& params) {
  GemmSm90Problem const& p = params.problem;
  EpilogueSm90Params const& e = params.epilogue;
  std::int64_t const batches = params.schedule.tiling.order().batches;
  if (std::min<std::int64_t>({p.m, p.n, p.k, batches}) < 1) return {};
  std::vector<GlobalTensor> tensors;
  // Of a map are only the address and the distances between rows and batches.
  auto const stride = [](TensorMapDescription const& map, std::size_t axis) {
    return map.strides[axis - 1] / (bits(map.dtype) / 8);
  };
  auto const add_operand = [&](Names const& names, TensorMap const& map, Major major, std::int64_t mn,
                               bool batched) {
    auto const x = sim::decode(map);
    if (!x || x->rank != 3) return;
    tensors.push_back(
        operand(x->dtype, x->address, major, mn, p.k, stride(*x, 1), batched ? batches : 1, stride(*x, 2))
            .as(names, of_operand(e.alpha)));
  };
  add_operand(kA, p.a, c.a_major, p.m, p.a_batched);
  add_operand(kB, p.b, c.b_major, p.n, p.b_batched);
  auto const d = sim::decode(e.d.whole);
  if (columns_by_tma(p.n, store_unit(c.out)) < p.n) {
    tensors.push_back(Matrices{c.out, e.d_address, p.m, p.n, e.ldd, 1, batches, e.d_batch_stride}.as(
        kD, Coverage::written));
  } else if (d && d->rank == 3) {
    tensors.push_back(Matrices{c.out, d->address, p.m, p.n, stride(*d, 1), 1, batches, stride(*d, 2)}.as(
        kD, Coverage::written));
  }
  auto const x = sim::decode(e.c.whole);
  if (e.beta != 0 && x && x->rank == 3) {
    tensors.push_back(
        Matrices{c.out, x->address, p.m, p.n, stride(*x, 1), 1, e.c_batched ? batches : 1, stride(*x, 2)}.as(
            kC, Coverage::read));
  }
  if (e.bias != nullptr) tensors.push_back(bias(c.out, e.bias, p.n));
  return tensors;
}

std::vector<GlobalTensor> global_tensors(AttentionConfig const& c, AttentionParams const& p) {
  if (std::min({p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_k}) < 1) return {};
  // The last row of Q sees every key, causal or not; the first rows may see none.
  Coverage const of_q = c.causal && p.seq_q > p.seq_k ? Coverage::any : Coverage::read;
  std::vector<GlobalTensor> tensors = {
      tokens("Q", c.dtype, p.q, p.seq_q, c.head_dim, p.heads, p.batch, p.q_stride, of_q),
      tokens("K", c.dtype, p.k, p.seq_k, c.head_dim, p.kv_heads, p.batch, p.k_stride, Coverage::read),
      tokens("V", c.dtype, p.v, p.seq_k, c.head_dim, p.kv_heads, p.batch, p.v_stride, Coverage::read),
      tokens("O", c.dtype, p.o, p.seq_q, c.head_dim, p.heads, p.batch, p.o_stride, Coverage::written)};
  if (p.lse != nullptr) {
    std::vector<Mode> modes = {{"row", p.seq_q, 1}};
    if (p.heads > 1) modes.push_back({"head", p.heads, p.seq_q});
    if (p.batch > 1) modes.push_back({"batch", p.batch, std::int64_t{p.heads} * p.seq_q});
    tensors.push_back(tensor("lse", DType::f32, p.lse, modes, Coverage::written));
  }
  return tensors;
}

}  // namespace tegula
