// The tensors of a launch of an attention kernel for serving, read off its parameters.

#include <utility>

#include "describe.hpp"
#include "families/attention_serving.hpp"
#include "families/attention_tensors.hpp"
#include "problem.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

std::vector<sim::GlobalTensor> describe_serving(AttentionSm90Params const& p) {
  std::vector<GlobalTensor> tensors;
  for (auto const& [name, map] : {std::pair("K", &p.k), std::pair("V", &p.v)}) {
    auto const x = sim::decode(*map);
    if (!x || x->rank != 4) continue;
    auto const stride = [&](std::size_t axis) { return x->strides[axis - 1] / bytes_of(x->dtype); };
    tensors.push_back(tokens(name, x->dtype, x->address, x->extents[1], x->extents[0],
                             x->extents[2], x->extents[3], {stride(3), stride(1), stride(2)},
                             Coverage::any));
  }
  auto const q = sim::decode(p.q);
  if (!q || q->rank != 5) return tensors;
  describe_queries(tensors, p.q, Coverage::any);
  bool const one_length = p.serving.q_begin == nullptr;
  tensors.push_back(tokens("O", p.out.type, p.out.o, q->extents[2], p.out.head_dim_v, p.out.heads,
                           q->extents[4], p.out.stride,
                           one_length ? Coverage::written : Coverage::any));
  return tensors;
}

}  // namespace tegula::device
