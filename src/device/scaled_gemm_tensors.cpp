// What scaled_gemm_sm100 is launched with, and the tensors of a launch, read off its parameters.

#include <utility>

#include "describe.hpp"
#include "families/scaled_gemm_sm100.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {
namespace {

/// Scales of `rows` rows of each matrix, whole pieces of them: (row, block of k, matrix).
GlobalTensor block_scales(char const* name, TensorMapDescription const& map, Coverage coverage) {
  std::int64_t const halves_k = map.extents[1], pieces_m = map.extents[2];
  return {name,
          map.address,
          make_layout(layout(shape(32, 4, pieces_m), stride(16, 4, map.strides[1])),
                      layout(shape(kScalePieceScales, halves_k / 2), stride(1, kScalePieceBytes)),
                      layout(shape(map.extents[3]), stride(map.strides[2]))),
          8,
          {"row", "block", "matrix"},
          coverage};
}

/// The tensor map of an operand's scales: those of `rows` rows of each of `batches` matrices.
TensorMapDescription scale_map(void const* scales, std::int64_t rows, GemmArguments const& g,
                               std::int64_t batches, int pieces, int times_128_rows) {
  std::int64_t const pieces_m = scale_pieces_rows(static_cast<int>(rows)),
                     pieces_k = scale_pieces_k(static_cast<int>(g.k), g.block_scale.block),
                     of_rows = kScalePieceBytes * pieces_k;
  return {.dtype = DType::u8,
          .rank = 4,
          .address = scales,
          .extents = {kScaleBoxBytes, 2 * pieces_k, pieces_m, batches},
          .strides = {kScaleBoxBytes, of_rows, of_rows * pieces_m},
          .box = {kScaleBoxBytes, 2 * pieces, times_128_rows, 1}};
}

}  // namespace

ScaledGemmSm100Params FamilyTraits<ScaledGemmSm100Family>::lower(Machine const& machine,
                                                                 GemmArguments const& arguments,
                                                                 GemmChoice const& choice) {
  GemmArguments const g = with_defaults(arguments);
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, choice.configuration);
  ScaledGemmSm100Params p{Base::lower(machine, g, c, choice), {}, {}};
  int const pieces = scale_pieces(c);
  p.scale_a = encode(
      machine, scale_map(g.block_scale_a, g.m, g, p.problem.a_batched ? g.batch : 1, pieces, 1));
  p.scale_b = encode(machine, scale_map(g.block_scale_b, g.n, g, p.problem.b_batched ? g.batch : 1,
                                        pieces, scale_rows_b(c)));
  return p;
}

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
  for (auto const& [name, map] :
       {std::pair("scales of A", &params.scale_a), {"scales of B", &params.scale_b}})
    if (auto const x = sim::decode(*map))
      tensors.push_back(block_scales(name, *x, of_operand(params.epilogue.alpha)));
  return tensors;
}

}  // namespace tegula::device
