// attention_sm100 in its forms among the kernels that are mutated, in small configurations.

#include "mutated_attention.hpp"
#include "tegula/kernel/attention_sm100.hpp"

namespace tegula::mutants {
namespace {

using AttentionSm100Case = AttentionCase<AttentionSm100Config>;

constexpr AttentionSm100Case kAttentionSm100Cases[] = {
    {.name = "attention_sm100",
     .config = {.head_dim = 64, .head_dim_v = 64, .block_n = 64},
     .queries = 300,
     .keys = {300, 300},
     .causal = true,
     .scale = 4},
    {.name = "attention_sm100_short",  // a block of keys a tile, and tiles that see none
     .config = {.head_dim = 64, .head_dim_v = 64, .block_n = 64},
     .queries = 516,
     .keys = {40, 40},
     .causal = true},
    {.name = "attention_sm100_e4m3",
     .config = {.dtype = DType::e4m3, .out = DType::bf16, .head_dim = 64, .head_dim_v = 64},
     .queries = 140,
     .keys = {300, 300}},
    {.name = "attention_sm100_serving",
     .config = {.head_dim = 64, .head_dim_v = 64, .block_n = 64, .serving = true},
     .queries = 140,
     .heads = 2,
     .keys = {200, 70},
     .causal = true,
     .page_size = 32},
};
template <int I> struct AttentionSm100KernelOf : AttentionSm100<kAttentionSm100Cases[I].config> {};

}  // namespace

std::vector<MutatedKernel> mutated_attention_sm100() {
  return mutated_cases<kAttentionSm100Cases>([]<int I> {
    static constexpr AttentionSm100Case const& c = kAttentionSm100Cases[I];
    return mutated_case<AttentionSm100KernelOf<I>>(
        c.name, "attention_sm100", c.config, on_sm100, [](Bench& bench) {
          AttentionBench of(bench, c);
          AttentionSm100Params p{of.params(), {}};
          if (!c.config.serving) p.o = of.map_output(p, tma_boxes(o_tile(c.config)));
          return p;
        });
  });
}

}  // namespace tegula::mutants
