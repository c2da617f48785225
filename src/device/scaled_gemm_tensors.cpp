// The tensors of a launch of scaled_gemm_sm100, read off its parameters.

#include "describe.hpp"
#include "families/scaled_gemm_sm100.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/layout/layout.hpp"

namespace tegula::device {
namespace {

/// Scales of `rows` rows, whole pieces of them: (row, block of k).
GlobalTensor block_scales(char const* name, void const* address, int rows, int k, int block,
                          Coverage coverage) {
  int const pieces_m = scale_pieces_rows(rows), pieces_k = scale_pieces_k(k, block);
  return {name,
          address,
          make_layout(layout(shape(32, 4, pieces_m), stride(16, 4, kScalePieceBytes * pieces_k)),
                      layout(shape(kScalePieceScales, pieces_k), stride(1, kScalePieceBytes))),
          8,
          {"row", "block"},
          coverage};
}

}  // namespace

std::vector<sim::GlobalTensor> FamilyTraits<ScaledGemmSm100Family>::describe(
    ScaledGemmSm100Config const& c, ScaledGemmSm100Params const& params) {
  GemmSm90Params in_bytes = params;  // a pair of e2m1 is an element of memory
  in_bytes.problem.k = static_cast<int>(ceil_div(params.problem.k, packed(c.a)));
  std::vector<GlobalTensor> tensors = Base::describe(c, in_bytes);
  if (tensors.empty()) return tensors;
  if (packed(c.a) > 1)
    for (GlobalTensor& tensor : tensors)
      for (std::string& mode : tensor.modes)
        if ((tensor.name == kA.tensor && mode == kA.column) ||
            (tensor.name == kB.tensor && mode == kB.column))
          mode = "pair";
  GemmSm90Problem const& p = params.problem;
  Coverage const of_ab = of_operand(params.epilogue.alpha);
  tensors.push_back(
      block_scales("scales of A", params.block_scale_a, p.m, p.k, c.scale.block, of_ab));
  tensors.push_back(
      block_scales("scales of B", params.block_scale_b, p.n, p.k, c.scale.block, of_ab));
  return tensors;
}

}  // namespace tegula::device
