// The tensors of a launch of a GEMM that loads and stores by TMA, read off its parameters.

#include <algorithm>

#include "describe.hpp"
#include "families/tma_gemm.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

std::vector<sim::GlobalTensor> describe_tma_gemm(Major a_major, Major b_major,
                                                 EpilogueSm90Spec const& spec,
                                                 GemmSm90Params const& params) {
  DType const out = spec.out;
  GemmSm90Problem const& p = params.problem;
  EpilogueSm90Params const& e = params.epilogue;
  std::int64_t const batches = params.schedule.tiling.order().batches / params.parts.tile.count;
  if (std::min<std::int64_t>({p.m, p.n, p.k, batches}) < 1) return {};
  std::vector<GlobalTensor> tensors;
  // Of a map are only the address and the distances between rows and batches.
  // Elements of less than 8 bits are described as the bytes that they are packed in.
  auto const stride = [](TensorMapDescription const& map, std::size_t axis) {
    return map.strides[axis - 1] / (bits(map.dtype) < 8 ? 1 : bits(map.dtype) / 8);
  };
  auto const add_operand = [&](Names const& names, TensorMap const& map, Major major,
                               std::int64_t mn, bool batched) {
    auto const x = sim::decode(map);
    if (!x || x->rank != 3) return;
    bool const in_bytes = bits(x->dtype) < 8;
    std::int64_t const k = in_bytes ? std::int64_t{p.k} * bits(x->dtype) / 8 : p.k;
    tensors.push_back(operand(in_bytes ? DType::u8 : x->dtype, x->address, major, mn, k,
                              stride(*x, 1), batched ? batches : 1, stride(*x, 2))
                          .as(names, of_operand(e.alpha)));
  };
  add_operand(spec.transposed ? kB : kA, p.a, a_major, p.m, p.a_batched);
  add_operand(spec.transposed ? kA : kB, p.b, b_major, p.n, p.b_batched);
  auto const d = sim::decode(e.d.whole);
  if (spec.transposed) {
    tensors.push_back(Matrices{out, e.d_address, p.n, p.m, e.ldd, 1, batches, e.d_batch_stride}.as(
        kD, Coverage::written));
  } else if (columns_by_tma(p.n, store_unit(out)) < p.n) {
    tensors.push_back(Matrices{out, e.d_address, p.m, p.n, e.ldd, 1, batches, e.d_batch_stride}.as(
        kD, Coverage::written));
  } else if (d && d->rank == 3) {
    tensors.push_back(
        Matrices{out, d->address, p.m, p.n, stride(*d, 1), 1, batches, stride(*d, 2)}.as(
            kD, Coverage::written));
  }
  auto const x = sim::decode(e.c.whole);
  if (e.beta != 0 && x && x->rank == 3) {
    tensors.push_back(Matrices{out, x->address, p.m, p.n, stride(*x, 1), 1,
                               e.c_batched ? batches : 1, stride(*x, 2)}
                          .as(kC, Coverage::read));
  }
  if (e.bias != nullptr) tensors.push_back(bias(out, e.bias, p.n));
  return tensors;
}

}  // namespace tegula::device
