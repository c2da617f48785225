// What scaled_gemm_sm100 is launched with.

#include "scaled_gemm_sm100.hpp"

#include "tegula/device/tensor_map.hpp"

namespace tegula::device {

ScaledGemmSm100Params FamilyTraits<ScaledGemmSm100Family>::lower(Machine const& machine,
                                                                 GemmArguments const& arguments,
                                                                 GemmChoice const& choice) {
  GemmArguments const g = with_defaults(arguments);
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, choice.configuration);
  ScaledGemmSm100Params p{Base::lower(machine, g, c, choice), {}, {}};
  auto const map = [&](void const* scales, std::int64_t rows, bool batched, int times_128_rows) {
    return encode(machine, block_scale_map(scales, rows, g.k, g.block_scale, batched ? g.batch : 1,
                                           scale_pieces(c), times_128_rows));
  };
  p.scale_a = map(g.block_scale_a, g.m, p.problem.a_batched, 1);
  p.scale_b = map(g.block_scale_b, g.n, p.problem.b_batched, scale_rows_b(c));
  return p;
}

}  // namespace tegula::device
