// What scaled_gemm_sm100 is launched with.

#include "scaled_gemm_sm100.hpp"

#include "tegula/device/tensor_map.hpp"
#include "tegula/kernel/block_scale.hpp"

namespace tegula::device {
namespace {

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

}  // namespace tegula::device
