// The tensors of a launch of scaled_gemm_sm100, read off its parameters.

#include <utility>

#include "describe.hpp"
#include "families/scaled_gemm_sm100.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

void describe_block_scales(std::vector<GlobalTensor>& tensors, char const* name,
                           TensorMap const& map, Coverage coverage) {
  auto const x = sim::decode(map);
  if (!x) return;
  std::int64_t const halves_k = x->extents[1], pieces_m = x->extents[2];
  tensors.push_back(
      {name,
       x->address,
       make_layout(layout(shape(32, 4, pieces_m), stride(16, 4, x->strides[1])),
                   layout(shape(kScalePieceScales, halves_k / 2), stride(1, kScalePieceBytes)),
                   layout(shape(x->extents[3]), stride(x->strides[2]))),
       8,
       {"row", "block", "matrix"},
       coverage});
}

std::vector<sim::GlobalTensor> FamilyTraits<ScaledGemmSm100Family>::describe(
    ScaledGemmSm100Config const& c, ScaledGemmSm100Params const& params) {
  GemmSm90Params in_bytes = params;  // a pair of e2m1 is an element of memory
  bool const pairs = are_pairs(c.a, c.b);
  if (pairs) in_bytes.problem.k = static_cast<int>(ceil_div(params.problem.k, 2));
  std::vector<GlobalTensor> tensors = Base::describe(c, in_bytes);
  if (tensors.empty()) return tensors;
  auto const renamed = [&](Names const& names, DType type) {
    for (GlobalTensor& tensor : tensors)
      for (std::string& mode : tensor.modes)
        if (bits(type) < 8 && tensor.name == names.tensor && mode == names.column)
          mode = pairs ? "pair" : "byte";
  };
  renamed(kA, c.a);
  renamed(kB, c.b);
  for (auto const& [name, map] :
       {std::pair("scales of A", &params.scale_a), {"scales of B", &params.scale_b}})
    describe_block_scales(tensors, name, *map, of_operand(params.epilogue.alpha));
  return tensors;
}

}  // namespace tegula::device
