#pragma once

#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of attention_sm90.
namespace tegula {

namespace detail {
/// The tile with consumers that take no turns at the tensor cores.
constexpr AttentionSm90Config without_turns(AttentionSm90Config tile) {
  tile.overlap = AttentionOverlap::intra_warpgroup;
  return tile;
}
/// Three consumers keep the tensor cores busy without taking turns: while one computes
/// exponentials, one of the two others multiplies, whatever their order.
constexpr AttentionSm90Config three_consumers(AttentionSm90Config tile) {
  tile.consumers = 3;
  return without_turns(tile);
}

/// The tiles of attention_sm90, apart from their types, tuned for speed on an H200
/// (docs/hopper_attention.md). That of head dim 96 is for bf16 alone: f16 has that of 128. Three
/// stages where there is memory for them: while one consumer finishes its tile, another begins the
/// next.
inline constexpr AttentionSm90Config attention_sm90_tiles[] = {
    {.head_dim = 64, .head_dim_v = 64, .block_n = 128, .consumers = 3, .stages = 3},
    three_consumers({.head_dim = 96, .head_dim_v = 96, .block_n = 96, .stages = 3, .beneath = 2}),
    {.head_dim = 128, .head_dim_v = 128, .block_n = 128, .beneath = 1},
    three_consumers({.head_dim = 128, .head_dim_v = 128, .block_n = 80, .stages = 3, .beneath = 2}),
    three_consumers({.head_dim = 192, .head_dim_v = 128, .block_n = 80, .stages = 3, .beneath = 2}),
    {.head_dim = 192, .head_dim_v = 192, .block_n = 112},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 80},
};

/// The tile with registers to spare for the polynomial's temporaries: fewer scores a thread. The
/// resource check of the CUDA build holds these to no spills, and so does that of NVRTC's kernels
/// (python/tests/gpu/test_overhead.py), which spills where nvcc does not.
constexpr AttentionSm90Config with_polynomial(AttentionSm90Config tile) {
  tile.exponential = Exponential::polynomial;
  tile.block_n = 112, tile.beneath = 4;
  return tile;
}
/// It takes longer than the hardware's exponentials, and is asked for by name: a tile of bf16
/// serves it.
constexpr bool has_polynomial(AttentionSm90Config const& tile) {
  return tile.consumers == 2 && tile.head_dim == 128 && tile.head_dim_v == 128;
}

/// Tiles of head dim 64, of bf16 alone, for few keys: the fewer a block has, the fewer are masked,
/// and two consumers leave fewer rows empty.
inline constexpr AttentionSm90Config attention_sm90_short_tiles[] = {
    without_turns({.head_dim = 64, .head_dim_v = 64, .block_n = 64, .stages = 4}),
    three_consumers({.head_dim = 64, .head_dim_v = 64, .block_n = 64, .stages = 4}),
};

/// Those of e4m3: that add up blocks of keys in the tensor core, and, with as many keys in a block
/// as spill no registers, in f32. None takes turns: softmax takes them longer than the products.
inline constexpr AttentionSm90Config attention_sm90_fp8_tiles[] = {
    three_consumers({.head_dim = 64, .head_dim_v = 64, .block_n = 128, .stages = 3}),
    three_consumers({.head_dim = 128, .head_dim_v = 128, .block_n = 96, .stages = 3}),
    without_turns({.head_dim = 256, .head_dim_v = 256, .block_n = 96}),
    three_consumers({.head_dim = 64, .head_dim_v = 64, .block_n = 96, .stages = 3, .promoted = 32}),
    without_turns({.head_dim = 128, .head_dim_v = 128, .block_n = 160, .promoted = 64}),
    without_turns({.head_dim = 192, .head_dim_v = 192, .block_n = 96, .promoted = 64}),
    without_turns({.head_dim = 256, .head_dim_v = 256, .block_n = 64, .promoted = 64}),
};

/// Those for serving: one consumer where a tile has few rows, for which K and V stream through as
/// many stages as there is memory for, and two where it has many. Two have fewer scores a thread
/// from head dim 128 on, and one at 256: with more, they and what a tile is do not fit in the
/// registers.
inline constexpr AttentionSm90Config attention_sm90_serving_tiles[] = {
    {.head_dim = 64, .head_dim_v = 64, .block_n = 128, .consumers = 1, .stages = 6},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 128, .consumers = 1, .stages = 3},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 32, .consumers = 1, .stages = 4},
    {.head_dim = 64, .head_dim_v = 64, .block_n = 128},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 64, .stages = 3},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 32, .stages = 4},
};

/// The same of e4m3, with blocks of keys added up in f32. Each stage has V twice.
inline constexpr AttentionSm90Config attention_sm90_fp8_serving_tiles[] = {
    {.head_dim = 128,
     .head_dim_v = 128,
     .block_n = 128,
     .consumers = 1,
     .stages = 4,
     .promoted = 64},
    {.head_dim = 256,
     .head_dim_v = 256,
     .block_n = 64,
     .consumers = 1,
     .stages = 4,
     .promoted = 64},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 128, .stages = 3, .promoted = 64},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 64, .stages = 3, .promoted = 64},
};

constexpr AttentionSm90Config serving(AttentionSm90Config tile) {
  tile.serving = true;
  return tile;
}

/// That of multi-head latent attention, for decoding.
inline constexpr AttentionSm90Config attention_sm90_latent = {.dtype = DType::bf16,
                                                              .head_dim = 576,
                                                              .head_dim_v = 512,
                                                              .block_n = 64,
                                                              .consumers = 1,
                                                              .serving = true,
                                                              .latent = true};

/// Calls add(configuration) for each entry of attention_sm90's table.
template <class Add> constexpr void list_attention_sm90(Add add) {
  auto const typed = [&](DType type, AttentionSm90Config tile) { tile.dtype = type, add(tile); };
  constexpr DType types[] = {DType::bf16, DType::f16};
  for (DType type : types)
    for (AttentionSm90Config const& tile : attention_sm90_tiles)
      if (type == DType::bf16 || tile.head_dim != 96) typed(type, tile);
  for (AttentionSm90Config const& tile : attention_sm90_short_tiles) typed(DType::bf16, tile);
  for (AttentionSm90Config const& tile : attention_sm90_tiles)
    if (has_polynomial(tile)) add(with_polynomial(tile));
  for (AttentionSm90Config const& tile : attention_sm90_fp8_tiles) typed(DType::e4m3, tile);
  for (DType type : types)
    for (AttentionSm90Config const& tile : attention_sm90_serving_tiles) typed(type, serving(tile));
  for (AttentionSm90Config const& tile : attention_sm90_fp8_serving_tiles)
    typed(DType::e4m3, serving(tile));
  add(attention_sm90_latent);
}

constexpr auto attention_sm90_table() {
  return table_of<AttentionSm90Config>([](auto add) { list_attention_sm90(add); });
}
}  // namespace detail

template <AttentionSm90Config C> struct AttentionSm90;

/// kernel/attention_sm90.hpp; of latent attention kernel/attention_latent_sm90.hpp
struct AttentionSm90Family {
  static constexpr char const* name = "attention_sm90";
  using Config = AttentionSm90Config;
  using Params = AttentionSm90Params;
  template <Config C> using Kernel = AttentionSm90<C>;
  static constexpr auto table = detail::attention_sm90_table();

  /// bf16 at every tile; the polynomial and f16 where the tile is smallest; e4m3 at each head dim
  /// with sums in f32, and at one with the tensor core's.
  /// For serving, bf16 and e4m3 at the smaller tiles, and latent attention.
  static constexpr bool is_representative(Config const& c) {
    if (c.dtype == DType::e4m3) return (c.promoted > 0 && !c.serving) || c.head_dim == 128;
    if (c.serving)
      return c.dtype == DType::bf16 &&
             (c.head_dim == 64 || c.latent || (c.head_dim == 128 && c.consumers == 1));
    bool const polynomial = c.exponential == Exponential::polynomial;
    if (c.dtype == DType::bf16) return !polynomial || c.head_dim == 128;
    return !polynomial && c.head_dim == 64;
  }
};

}  // namespace tegula
