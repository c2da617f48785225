// attention_sm90 in its forms, and append_keys, among the kernels that are mutated: small
// configurations, each with the smallest problem that executes its statements, those of ragged
// edges, of a ring's second round, of a second tile and of skipped blocks among them.

#include "mutated_attention.hpp"

#include "tegula/kernel/append_keys.hpp"
#include "tegula/kernel/attention_sm90.hpp"

namespace tegula::mutants {
namespace {

using Sm90Case = AttentionCase<AttentionSm90Config>;

// Parts of the keys, in CTAs of their own.
constexpr Sm90Case kParts = {
    .name = "attention_sm90_parts",
    .config = {.head_dim = 64, .head_dim_v = 64, .block_n = 32, .consumers = 1, .serving = true},
    .heads = 6,
    .kv_heads = 2,
    .keys = {140, 40},
    .part_blocks = 2,
    .ctas = 2};
constexpr AttentionSm90Config kLatentConfig = {.head_dim = 320,
                                               .head_dim_v = 256,
                                               .block_n = 32,
                                               .consumers = 1,
                                               .serving = true,
                                               .latent = true};
constexpr Sm90Case kLatent = {.name = "attention_latent_sm90",
                              .config = kLatentConfig,
                              .heads = 12,
                              .kv_heads = 2,
                              .keys = {140, 30},
                              .page_size = 16,
                              .part_blocks = 3,
                              .ctas = 2};
constexpr Sm90Case by_the_letter(Sm90Case c, char const* name) {
  c.name = name, c.strict_fences = true;
  return c;
}

constexpr Sm90Case kAttentionCases[] = {
    // A consumer skips more blocks than a ring has stages.
    {.name = "attention_sm90",
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 16},
     .queries = 150,
     .keys = {150, 150},
     .causal = true},
    {.name = "attention_sm90_unseen",  // one consumer's rows see no key, the other's do
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 16},
     .queries = 128,
     .heads = 2,
     .keys = {60, 60},
     .causal = true},
    {.name = "attention_sm90_lanes",  // the same, the lanes of a warp far apart
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 16},
     .queries = 128,
     .heads = 2,
     .keys = {60, 60},
     .causal = true,
     .lanes_seed = 2},
    {.name = "attention_sm90_other_lanes",
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 16},
     .queries = 128,
     .heads = 2,
     .keys = {60, 60},
     .causal = true,
     .lanes_seed = 8},
    {.name = "attention_sm90_short",  // a block of keys a tile, so that the producer is far ahead
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 32},
     .queries = 130,
     .heads = 2,
     .keys = {30, 30}},
    {.name = "attention_sm90_packed",  // 63 of a consumer's 64 rows are somebody's
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 16},
     .queries = 30,
     .heads = 6,
     .kv_heads = 2,
     .keys = {45, 45},
     .causal = true,
     .packs = true},
    {.name = "attention_sm90_e4m3",
     .config =
         {.dtype = DType::e4m3, .head_dim = 32, .head_dim_v = 32, .block_n = 32, .promoted = 32},
     .queries = 70,
     .keys = {130, 130}},
    {.name = "attention_sm90_e4m3_short",
     .config = {.dtype = DType::e4m3, .head_dim = 32, .head_dim_v = 32, .block_n = 32},
     .queries = 260,  // of which most see no key
     .keys = {30, 30},
     .causal = true},
    {.name = "attention_sm90_e4m3_unseen",  // more tiles in a row see no key than the queue holds
     .config = {.dtype = DType::e4m3, .head_dim = 32, .head_dim_v = 32, .block_n = 32},
     .queries = 516,
     .keys = {4, 4},
     .causal = true},
    kParts,
    by_the_letter(kParts, "attention_sm90_parts_strict"),
    {.name = "attention_sm90_paged",
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 32, .serving = true},
     .queries = 70,
     .heads = 2,
     .keys = {135, 100},
     .causal = true,
     .page_size = 16},
    {.name = "attention_sm90_serving_unseen",  // V's warp reads more tiles without keys in a row
     .config = {.head_dim = 32, .head_dim_v = 32, .block_n = 32, .serving = true},
     .queries = 516,
     .keys = {4, 4},
     .causal = true},
    {.name = "attention_sm90_paged_e4m3",
     .config = {.dtype = DType::e4m3,
                .head_dim = 128,
                .head_dim_v = 32,
                .block_n = 32,
                .consumers = 1,
                .serving = true,
                .promoted = 32},
     .queries = 2,
     .heads = 3,
     .keys = {135, 70},
     .page_size = 16,
     .part_blocks = 3},
    kLatent,
    by_the_letter(kLatent, "attention_latent_sm90_strict"),
    {.name = "attention_latent_sm90_short",  // tiles of one block follow each other
     .config = kLatentConfig,
     .heads = 12,
     .kv_heads = 2,
     .keys = {30, 30}},
};

template <int I> struct AttentionKernelOf : AttentionSm90<kAttentionCases[I].config> {};

/// New rows of bf16, three for each of two sequences, to a cache in pages of 16 tokens.
template <AppendKeysConfig C> struct AppendKeysOf : AppendKeys<C> {};
template <AppendKeysConfig C> MutatedKernel mutated_append_keys() {
  return {
      C.quantises ? "append_keys_e4m3" : "append_keys", "append_keys", [](sim::Options options) {
        options.throw_on_finding = false;
        Bench bench(std::move(options));
        constexpr int dim = 272, pages = 3, page = 16, heads = 1, most = 3, batches = 2;
        DType const cache = C.quantises ? DType::e4m3 : DType::bf16;
        auto const table = [&](char const* name, std::vector<int> const& values) {
          void* const memory = bench.machine().allocate(values.size() * sizeof(int), name);
          bench.machine().upload(memory, values.data(), values.size() * sizeof(int));
          return static_cast<int const*>(memory);
        };
        auto const tensor = [&](char const* name, char const* rows) {
          std::int64_t const row = dim * bits(cache) / 8;
          return AppendedTensor{.from = bench.input(rows, DType::bf16, dim, most * batches, dim),
                                .to = bench.output(name, cache, dim, pages * page, dim),
                                .from_stride = {2 * dim * most, 2 * dim, 2 * dim},
                                .to_stride = {row * page, row, row},
                                .pieces = static_cast<int>(row / 16),
                                .descale = nullptr};
        };
        AppendKeysParams const params = {.k = tensor("K", "k_new"),
                                         .v = tensor("V", "v_new"),
                                         .new_keys = {.begin = nullptr, .most = most},
                                         .length = table("length", {31, 29}),
                                         .seq_k = 32,
                                         .page_table = table("page_table", {2, 0, -1, 1}),
                                         .table_stride = 2,
                                         .pages = pages,
                                         .page_size = page,
                                         .by_page_size = Divisor(page),
                                         .rows = batches * most * heads,
                                         .kv_heads = heads,
                                         .by_kv_heads = Divisor(heads),
                                         .by_most = Divisor(most),
                                         .descale_stride = {},
                                         .dtype = cache,
                                         .new_dtype = DType::bf16};
        using Kernel = AppendKeysOf<C>;
        return bench.outcome(sim::launch<Kernel>(bench.machine(), Kernel::grid(params), params,
                                                 global_tensors(Kernel::config, params)));
      }};
}

}  // namespace

std::vector<MutatedKernel> mutated_attention() {
  std::vector<MutatedKernel> all = mutated_cases<kAttentionCases>([]<int I> {
    static constexpr Sm90Case const& c = kAttentionCases[I];
    return mutated_case<AttentionKernelOf<I>>(
        c.name, "attention_sm90", c.config,
        [](sim::Options& options) {
          if (c.lanes_seed != 0) {
            options.completion = sim::Completion::first;
            options.interleaving = sim::Interleaving::random;
            options.seed = c.lanes_seed;
          }
          options.strict.fences = c.strict_fences;
        },
        [](Bench& bench) { return AttentionBench(bench, c).params(); });
  });
  all.push_back(mutated_append_keys<AppendKeysConfig{}>());
  all.push_back(mutated_append_keys<AppendKeysConfig{.quantises = true}>());
  return all;
}

}  // namespace tegula::mutants
