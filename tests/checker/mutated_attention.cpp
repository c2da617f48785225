// attention_sm90 in its forms, and append_keys, among the kernels that are mutated: small
// configurations, each with the smallest problem that executes its statements, those of ragged
// edges, of a ring's second round, of a second tile and of skipped blocks among them.

#include "mutated_kernel.hpp"
#include "tegula/kernel/append_keys.hpp"
#include "tegula/kernel/attention_sm90.hpp"

namespace tegula::mutants {
namespace {

struct AttentionCase {
  char const* name;
  AttentionSm90Config config;
  int queries = 1, heads = 1, kv_heads = 1;
  std::array<int, 2> keys = {};  ///< of each sequence; of one length: both
  bool causal = false;
  bool packs = false;  ///< heads that share keys; a serving configuration does so always
  int page_size = 0;   ///< 0: not in pages
  int part_blocks = AttentionMask::unlimited;
  int ctas = 1;
  std::uint64_t lanes_seed = 0;  ///< where not 0: lanes run one by one, in random order
  /// By default the CTAs' next tiles, counted by an atomic, order what a fence should order.
  bool strict_fences = false;
};

// Parts of the keys, in CTAs of their own.
constexpr AttentionCase kParts = {
    .name = "attention_sm90_parts",
    .config = {.head_dim = 64, .head_dim_v = 64, .block_n = 32, .consumers = 1, .serving = true},
    .heads = 6,
    .kv_heads = 2,
    .keys = {140, 40},
    .part_blocks = 2,
    .ctas = 2};
constexpr AttentionCase kLatent = {.name = "attention_latent_sm90",
                                   .config = {.head_dim = 320,
                                              .head_dim_v = 256,
                                              .block_n = 32,
                                              .consumers = 1,
                                              .serving = true,
                                              .latent = true},
                                   .heads = 12,
                                   .kv_heads = 2,
                                   .keys = {140, 30},
                                   .page_size = 16,
                                   .part_blocks = 3,
                                   .ctas = 2};
constexpr AttentionCase by_the_letter(AttentionCase c, char const* name) {
  c.name = name, c.strict_fences = true;
  return c;
}

constexpr AttentionCase kAttentionCases[] = {
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
     .config = {.head_dim = 320,
                .head_dim_v = 256,
                .block_n = 32,
                .consumers = 1,
                .serving = true,
                .latent = true},
     .heads = 12,
     .kv_heads = 2,
     .keys = {30, 30}},
};

template <int I> struct AttentionKernelOf : AttentionSm90<kAttentionCases[I].config> {};

/// A problem's tensors, contiguous, and its tables.
class AttentionBench {
 public:
  AttentionBench(Bench& bench, AttentionCase const& c) : bench_(bench), case_(c) {
    int const most = std::max(c.keys[0], c.keys[1]);
    seq_k_ = most;
    if (c.page_size > 0) batches_k_ = 2 * pages_of(most), seq_k_ = c.page_size;
  }

  AttentionSm90Params params() {
    AttentionSm90Config const& config = case_.config;
    int const most = std::max(case_.keys[0], case_.keys[1]), sharing = case_.heads / case_.kv_heads;
    std::int64_t const q_row = std::int64_t{case_.heads} * config.head_dim,
                       o_row = std::int64_t{case_.heads} * config.head_dim_v;
    AttentionSm90Params p;
    p.mask = {.seq_q = case_.queries,
              .seq_k = most,
              .left = AttentionMask::unlimited,
              .right = case_.causal ? 0 : AttentionMask::unlimited};
    p.scale = 0.25f;
    p.ctas = case_.ctas;
    p.counter = static_cast<TileCounter*>(zeros("counter", sizeof(TileCounter)));
    DType const out = bits(config.dtype) == 8 ? DType::bf16 : config.dtype;
    p.out = {
        .o = bench_.output("O", out, o_row, case_.queries * kBatch, o_row),
        .lse = static_cast<float*>(bench_.output("lse", DType::f32, case_.queries * case_.heads,
                                                 kBatch, case_.queries * case_.heads)),
        .stride = {o_row * case_.queries, o_row, config.head_dim_v},
        .lse_batch = std::int64_t{case_.heads} * case_.queries,
        .lse_head = case_.queries,
        .heads = case_.heads,
        .head_dim_v = config.head_dim_v,
        .type = out};
    int const group = config.serving || case_.packs ? sharing : 1;
    p.packed = PackedHeads(group, kAttentionConsumerRows);
    p.heads_per_kv_head = Divisor(sharing / group);
    p.q = map_queries(bench_.input("Q", config.dtype, q_row, case_.queries * kBatch, q_row),
                      p.packed);
    if (config.serving) {
      serve(p);
    } else {
      int const positions = config.consumers * p.packed.positions;
      p.order = {.blocks = (case_.queries + positions - 1) / positions,
                 .heads = case_.heads / group,
                 .batches = kBatch,
                 .group = 1,
                 .last_first = case_.causal};
    }
    TmaBoxes const k_boxes = tma_boxes(k_tile(config)), v_boxes = tma_boxes(loaded_v_tile(config));
    void const* const k = keys("K", config.head_dim);
    void const* const v = config.latent ? k : keys("V", config.head_dim_v);
    p.k = map_keys(k, config.head_dim, config.head_dim, k_boxes);
    p.v = map_keys(v, config.head_dim_v, config.latent ? config.head_dim : config.head_dim_v,
                   v_boxes);
    if (bits(config.dtype) == 8)
      p.descales.v = static_cast<float const*>(
          bench_.input("v_descale", DType::f32, case_.kv_heads, kBatch, case_.kv_heads));
    p.descales.stride = {case_.kv_heads, 1};
    return p;
  }

 private:
  static constexpr int kBatch = 2;

  int pages_of(int keys) const { return (keys + case_.page_size - 1) / case_.page_size; }

  void* zeros(char const* name, std::size_t bytes) {
    void* const memory = bench_.machine().allocate(bytes, name);
    bench_.machine().fill(memory, 0, bytes);
    return memory;
  }
  int const* table(char const* name, std::vector<int> const& values) {
    void* const memory = bench_.machine().allocate(values.size() * sizeof(int), name);
    bench_.machine().upload(memory, values.data(), values.size() * sizeof(int));
    return static_cast<int const*>(memory);
  }

  /// Of (batch, token, head, dim), rows of `width` elements: (dim, token, head, batch).
  TensorMap map(void const* address, TmaBoxes const& boxes, std::int64_t dim, std::int64_t width,
                std::int64_t tokens, std::int64_t heads, std::int64_t batches,
                int box_tokens) const {
    std::int64_t const row = width * bits(case_.config.dtype) / 8;
    return sim::encode({.dtype = case_.config.dtype,
                        .rank = 4,
                        .address = address,
                        .extents = {dim, tokens, heads, batches},
                        .strides = {row * heads, row, row * heads * tokens},
                        .box = {boxes.box(0), box_tokens, 1, 1},
                        .swizzle = boxes.swizzle});
  }
  void const* keys(char const* name, std::int64_t dim) {
    std::int64_t const row = dim * case_.kv_heads;
    return bench_.input(name, case_.config.dtype, row, seq_k_ * batches_k_, row);
  }
  TensorMap map_keys(void const* memory, std::int64_t dim, std::int64_t width,
                     TmaBoxes const& boxes) const {
    return map(memory, boxes, dim, width, seq_k_, case_.kv_heads, batches_k_,
               case_.page_size > 0 ? case_.page_size : case_.config.block_n);
  }

  TensorMap map_queries(void const* memory, PackedHeads const& packed) const {
    TmaBoxes const boxes = tma_boxes(q_tile(case_.config));
    std::int64_t const dim = case_.config.head_dim, row = dim * bits(case_.config.dtype) / 8;
    return sim::encode(
        {.dtype = case_.config.dtype,
         .rank = 5,
         .address = memory,
         .extents = {dim, packed.group, case_.queries, case_.heads / packed.group, kBatch},
         .strides = {row, row * case_.heads, row * packed.group, row * case_.heads * case_.queries},
         .box = {boxes.box(0), packed.group, packed.positions, 1, 1},
         .swizzle = boxes.swizzle});
  }

  void serve(AttentionSm90Params& p) {
    AttentionSm90Config const& config = case_.config;
    int const packed = case_.heads / p.packed.group, most = p.mask.seq_k;
    AttentionServing& s = p.serving;
    s.k_length = table("k_length", {case_.keys[0], case_.keys[1]});
    if (case_.page_size > 0) {
      std::vector<int> pages(static_cast<std::size_t>(batches_k_));
      for (int i = 0; i < batches_k_; ++i) pages[static_cast<std::size_t>(i)] = batches_k_ - 1 - i;
      s.page_table = table("page_table", pages);
      s.table_stride = pages_of(most);
      s.pages = batches_k_;
      s.page_size = case_.page_size, s.by_page_size = Divisor(case_.page_size);
    }
    s.box_keys = case_.page_size > 0 ? case_.page_size : config.block_n;
    s.clears_tail = true;
    s.batches = kBatch;
    s.heads = packed, s.by_heads = Divisor(packed);
    s.part_blocks = case_.part_blocks;
    s.partial_rows = p.packed.group * std::min(p.packed.positions, case_.queries);
    int const parts = 1 + (most - 1) / config.block_n;  // at most
    std::size_t const tiles =
        static_cast<std::size_t>(kBatch * packed * parts * warpgroups(config));
    s.partial = static_cast<float*>(bench_.machine().allocate(
        tiles * static_cast<std::size_t>(s.partial_rows * attention_partial_row(config)) *
            sizeof(float),
        "partial"));
    s.arrivals = static_cast<std::uint32_t*>(zeros("arrivals", tiles * sizeof(std::uint32_t)));
  }

  Bench& bench_;
  AttentionCase const& case_;
  int seq_k_ = 0, batches_k_ = kBatch;
};

template <int I> MutatedKernel mutated_attention_case() {
  return {kAttentionCases[I].name, "attention_sm90", [](sim::Options options) {
            options.throw_on_finding = false;
            if (std::uint64_t const seed = kAttentionCases[I].lanes_seed; seed != 0) {
              options.completion = sim::Completion::first;
              options.interleaving = sim::Interleaving::random;
              options.seed = seed;
            }
            options.strict.fences = kAttentionCases[I].strict_fences;
            Bench bench(std::move(options));
            using Kernel = AttentionKernelOf<I>;
            auto const params = AttentionBench(bench, kAttentionCases[I]).params();
            sim::Report report = sim::launch<Kernel>(bench.machine(), Kernel::grid(params), params,
                                                     global_tensors(Kernel::config, params));
            return bench.outcome(std::move(report));
          }};
}

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

template <int... I> std::vector<MutatedKernel> cases(std::integer_sequence<int, I...>) {
  return {mutated_attention_case<I>()..., mutated_append_keys<AppendKeysConfig{}>(),
          mutated_append_keys<AppendKeysConfig{.quantises = true}>()};
}

}  // namespace

std::vector<MutatedKernel> mutated_attention() {
  return cases(std::make_integer_sequence<int, static_cast<int>(std::size(kAttentionCases))>());
}

}  // namespace tegula::mutants
