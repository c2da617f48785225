#pragma once

#include <algorithm>
#include <array>

#include "mutated_kernel.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"

/// What the cases of attention_sm90 and attention_sm100 have in common.
namespace tegula::mutants {

template <class C> struct AttentionCase {
  char const* name;
  C config;
  int queries = 1, heads = 1, kv_heads = 1;
  std::array<int, 2> keys = {};  ///< of each sequence; of one length: both
  bool causal = false;
  bool packs = false;  ///< heads that share keys; a serving configuration does so always
  int page_size = 0;   ///< 0: not in pages
  int part_blocks = AttentionMask::unlimited;
  int ctas = 1;
  float scale = 0.25f;           ///< of the scores: of large ones the maxima grow
  std::uint64_t lanes_seed = 0;  ///< where not 0: lanes run one by one, in random order
  /// By default the CTAs' next tiles, counted by an atomic, order what a fence should order.
  bool strict_fences = false;
};

/// A problem's tensors, contiguous, and its tables.
template <class C> class AttentionBench {
 public:
  AttentionBench(Bench& bench, AttentionCase<C> const& c) : bench_(bench), case_(c) {
    int const most = std::max(c.keys[0], c.keys[1]);
    seq_k_ = most;
    if (c.page_size > 0) batches_k_ = 2 * pages_of(most), seq_k_ = c.page_size;
  }

  AttentionSm90Params params() {
    C const& config = case_.config;
    int const most = std::max(case_.keys[0], case_.keys[1]), sharing = case_.heads / case_.kv_heads;
    std::int64_t const q_row = std::int64_t{case_.heads} * config.head_dim,
                       o_row = std::int64_t{case_.heads} * config.head_dim_v;
    AttentionSm90Params p;
    p.mask = {.seq_q = case_.queries,
              .seq_k = most,
              .left = AttentionMask::unlimited,
              .right = case_.causal ? 0 : AttentionMask::unlimited};
    p.scale = case_.scale;
    p.ctas = case_.ctas;
    p.counter = static_cast<TileCounter*>(zeros("counter", sizeof(TileCounter)));
    p.out = {
        .o = bench_.output("O", out(), o_row, case_.queries * kBatch, o_row),
        .lse = static_cast<float*>(bench_.output("lse", DType::f32, case_.queries * case_.heads,
                                                 kBatch, case_.queries * case_.heads)),
        .stride = {o_row * case_.queries, o_row, config.head_dim_v},
        .lse_batch = std::int64_t{case_.heads} * case_.queries,
        .lse_head = case_.queries,
        .heads = case_.heads,
        .head_dim_v = config.head_dim_v,
        .type = out()};
    int const group = config.serving || case_.packs ? sharing : 1;
    p.packed = PackedHeads(group, consumer_rows(config));
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
    void const* const v = latent() ? k : keys("V", config.head_dim_v);
    p.k = map_keys(k, config.head_dim, config.head_dim, k_boxes);
    p.v = map_keys(v, config.head_dim_v, latent() ? config.head_dim : config.head_dim_v, v_boxes);
    if (bits(config.dtype) == 8)
      p.descales.v = static_cast<float const*>(
          bench_.input("v_descale", DType::f32, case_.kv_heads, kBatch, case_.kv_heads));
    p.descales.stride = {case_.kv_heads, 1};
    return p;
  }

  /// Of O in boxes of a tile.
  TensorMap map_output(AttentionSm90Params const& p, TmaBoxes const& boxes) const {
    return map(out(), p.out.o, boxes, case_.config.head_dim_v, case_.config.head_dim_v,
               case_.queries, case_.heads, kBatch, boxes.box(1));
  }

 private:
  static constexpr int kBatch = 2;

  /// Of O: a configuration says so, or it follows from the operands'.
  DType out() const {
    if constexpr (requires(C c) { c.out; })
      return case_.config.out;
    else
      return bits(case_.config.dtype) == 8 ? DType::bf16 : case_.config.dtype;
  }
  bool latent() const {
    if constexpr (requires(C c) { c.latent; })
      return case_.config.latent;
    else
      return false;
  }
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
  TensorMap map(DType type, void const* address, TmaBoxes const& boxes, std::int64_t dim,
                std::int64_t width, std::int64_t tokens, std::int64_t heads, std::int64_t batches,
                int box_tokens) const {
    std::int64_t const row = width * bits(type) / 8;
    return sim::encode({.dtype = type,
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
    return map(case_.config.dtype, memory, boxes, dim, width, seq_k_, case_.kv_heads, batches_k_,
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
    C const& config = case_.config;
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
    if constexpr (requires { attention_partial_row(config); }) serve_parts(p);
  }
  /// Keys in parts, in CTAs of their own.
  void serve_parts(AttentionSm90Params& p) {
    C const& config = case_.config;
    AttentionServing& s = p.serving;
    s.part_blocks = case_.part_blocks;
    s.partial_rows = p.packed.group * std::min(p.packed.positions, case_.queries);
    int const parts = 1 + (p.mask.seq_k - 1) / config.block_n;  // at most
    std::size_t const tiles =
        static_cast<std::size_t>(kBatch * s.heads * parts * warpgroups(config));
    s.partial = static_cast<float*>(bench_.machine().allocate(
        tiles * static_cast<std::size_t>(s.partial_rows * attention_partial_row(config)) *
            sizeof(float),
        "partial"));
    s.arrivals = static_cast<std::uint32_t*>(zeros("arrivals", tiles * sizeof(std::uint32_t)));
  }

  Bench& bench_;
  AttentionCase<C> const& case_;
  int seq_k_ = 0, batches_k_ = kBatch;
};

}  // namespace tegula::mutants
