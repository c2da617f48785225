#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tegula/kernel/attention_sm90.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {

/// The timeline of one CTA that computes `rows` rows of attention in bf16 over `key_blocks` blocks
/// of keys, in one configuration of attention_sm90. A consumer has 64 rows of a tile: where there
/// are fewer rows than the tile has, the last consumers have none. Throws sim::CheckError where the
/// checker finds anything.
template <AttentionSm90Config C>
sim::Trace attention_timeline(int rows, int key_blocks, std::string const& title) {
  static_assert(C.dtype == DType::bf16 && !C.serving);
  using Kernel = AttentionSm90<C>;
  sim::Machine machine(
      {.generation = sim::Generation::sm90,
       .trace = sim::TraceOptions{.timing = sim::timing_of(sim::Generation::sm90)}});
  int const seq_q = rows, seq_k = key_blocks * C.block_n;

  std::uint8_t const any = 0x3f;  // 0x3f3f is 0.75 in bf16
  auto const tokens = [&](int seq, int dim, TmaBoxes const& boxes, char const* name) {
    std::size_t const bytes = std::size_t{2} * static_cast<std::size_t>(seq * dim);
    void* const data = machine.allocate(bytes, name);
    machine.fill(data, any, bytes);
    std::int64_t const row = 2 * dim, all = row * seq;
    return TensorMapDescription{.dtype = DType::bf16,
                                .rank = 4,
                                .address = data,
                                .extents = {dim, seq, 1, 1},
                                .strides = {row, all, all},
                                .box = {boxes.box(0), boxes.box(1), 1, 1},
                                .swizzle = boxes.swizzle};
  };
  AttentionSm90Params params;
  params.packed = PackedHeads(1, kAttentionConsumerRows);
  TensorMapDescription q = tokens(seq_q, C.head_dim, tma_boxes(q_tile(C)), "Q");
  q.rank = 5;  // with an axis for the heads of a group, of which there is one
  q.extents = {C.head_dim, 1, seq_q, 1, 1};
  q.strides = {q.strides[0], q.strides[0], q.strides[1], q.strides[2]};
  q.box = {q.box[0], 1, params.packed.positions, 1, 1};
  params.q = sim::encode(q);
  params.k = sim::encode(tokens(seq_k, C.head_dim, tma_boxes(k_tile(C)), "K"));
  params.v = sim::encode(tokens(seq_k, C.head_dim_v, tma_boxes(loaded_v_tile(C)), "V"));
  params.mask = {.seq_q = seq_q, .seq_k = seq_k};
  params.order = {.blocks = (rows + block_m(C) - 1) / block_m(C)};
  params.scale = 0.125f;
  params.out = {.o = machine.allocate(static_cast<std::size_t>(2 * seq_q * C.head_dim_v), "O"),
                .stride = {std::int64_t{1} * seq_q * C.head_dim_v, C.head_dim_v,
                           std::int64_t{1} * seq_q * C.head_dim_v},
                .heads = 1,
                .head_dim_v = C.head_dim_v};

  sim::Report report = sim::launch<Kernel>(machine, Kernel::grid(params), params);
  report.trace->kernel = title;
  return *std::move(report.trace);
}

}  // namespace tegula
