// What attention_sm90 can compute, at what cost, and what it is launched with, tensor
// maps included.

#include "attention_sm90.hpp"

#include <algorithm>

#include "attention_serving.hpp"
#include "attention_tensors.hpp"
#include "tegula/io/text.hpp"

namespace tegula::device {
namespace {

/// Rows of a group of heads that count as few: above, tiles of several consumers are full.
constexpr std::int64_t kFewRows = 128;

/// Packed heads are to take at most this share of the time of one head's rows, as predicted: a
/// smaller gain lies within the prediction's error.
constexpr double kPackingPays = 0.97;

/// What a tile takes besides its products, in keys, and how long products take, beside those of two
/// consumers that take turns.
struct Pace {
  double block;  ///< of each block of keys
  double tile;   ///< once
  double products;
};

/// As measured on an H200. Head dim 64: 12 problems of 64 to 640 keys, with and without a mask, by
/// each of three tiles. The softmax takes as long as the products there, and each block and each
/// tile adds latency, which is the same time at other head dims, and so fewer keys. Elsewhere:
/// three consumers that take no turns took 0.91 to 0.95 of the time of two that do, from 512 to
/// 32768 keys at head dim 128. With 8 bits, products take less time.
Pace pace_of(AttentionSm90Config const& c) {
  double const of_64 = 128.0 / (c.head_dim + c.head_dim_v), tile = (150 + 0.9 * c.block_n) * of_64;
  if (bits(c.dtype) == 8) return {32, tile, 1};
  if (c.head_dim > 96) return {0, tile, c.consumers == 3 && !takes_turns(c) ? 0.935 : 1.0};
  double const block = 38 * of_64;
  return {block, tile, (c.consumers == 2 ? 1.2 : 1.0) * 128 / (128 + block)};
}

/// The products of the CTA that has the most, tiles padded, if these pack `group` heads.
double cost_of_packed(AttentionArguments const& a, AttentionSm90Config const& c, int group,
                      DeviceProperties const& device) {
  AttentionRounds const all =
      attention_rounds(a, c.consumers, PackedHeads(group, consumer_rows(c)), c.block_n, device);
  Pace const pace = pace_of(c);
  return pace.products * all.rounds * (all.key_blocks * (c.block_n + pace.block) + pace.tile) *
         block_m(c) * (c.head_dim + c.head_dim_v);
}

}  // namespace

std::string FamilyTraits<AttentionSm90Family>::obstacle(AttentionArguments const& arguments,
                                                        DeviceProperties const& device) {
  if (device.compute_capability != 90)
    return fmt::format("the device is sm_{}", device.compute_capability);
  AttentionArguments const a = with_defaults(arguments);
  for (TokenTensor const& x : attention_operands(a))
    if (std::string why = attention_tma_obstacle(x, a.dtype); !why.empty()) return why;
  return {};
}

char const* FamilyTraits<AttentionSm90Family>::unfit(AttentionArguments const& a,
                                                     AttentionSm90Config const& c,
                                                     DeviceProperties const& device) {
  if (!c.serving) {
    if (asks_for_parts(a)) return kKeysInParts;
    return needs_serving(a) ? "sequences of one length in one piece" : nullptr;
  }
  if (asks_for_parts(a)) {  // which is heeded, whether or not it is predicted to pay
    if (!attention_shares(a, serving_tile(c), device).as_asked) return kFewerParts;
  } else if (!needs_serving(a) && !c.latent) {
    if (c.consumers > 1) return "sequences of their own lengths";
    if (a.seq_q > kFewRows / (a.heads / *a.kv_heads)) return "few queries";
    AttentionShares const shares = attention_shares(a, serving_tile(c), device);
    if (shares.packed.group == 1 && shares.parts == 1) return "heads to pack, or keys in parts";
  }
  if (a.page_table != nullptr && a.page_size % c.block_n != 0 && c.block_n % a.page_size != 0)
    return "pages of another size";
  return nullptr;
}

int FamilyTraits<AttentionSm90Family>::group(AttentionArguments const& a,
                                             AttentionSm90Config const& c,
                                             DeviceProperties const& device) {
  int const sharing = static_cast<int>(a.heads / *a.kv_heads);
  int chosen = 1;
  double least = kPackingPays * cost_of_packed(a, c, 1, device);
  for (int group = 2; group <= std::min(sharing, consumer_rows(c)); ++group) {
    if (sharing % group != 0 || !can_pack(a, group)) continue;
    double const cost = cost_of_packed(a, c, group, device);
    if (cost < least) chosen = group, least = cost;
  }
  return chosen;
}

double FamilyTraits<AttentionSm90Family>::cost(AttentionArguments const& arguments,
                                               AttentionSm90Config const& c,
                                               DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  if (c.serving) {
    // A consumer that is alone has no other's products to run its softmax beneath.
    double const slower = c.consumers == 1 ? 1.5 : 1.0;
    return slower * (attention_shares(a, serving_tile(c), device).blocks_in_turn * c.block_n) *
           block_m(c) * (c.head_dim + c.head_dim_v);
  }
  return cost_of_packed(a, c, group(a, c, device), device);
}

std::string FamilyTraits<AttentionSm90Family>::remark(AttentionArguments const& arguments,
                                                      AttentionSm90Config const& c,
                                                      DeviceProperties const& device) {
  if (c.serving) return serving_remark(arguments, serving_tile(c), device);
  AttentionArguments const a = with_defaults(arguments);
  PackedHeads const packed(group(a, c, device), consumer_rows(c));
  if (packed.group == 1) return {};
  return fmt::format("{} of {} x {} heads and positions for each consumer",
                     io::counted(attention_order(a, c.consumers, packed, device).count(), "tile"),
                     packed.group, packed.positions);
}

std::int64_t FamilyTraits<AttentionSm90Family>::workspace_bytes(AttentionArguments const& arguments,
                                                                AttentionSm90Config const& c,
                                                                DeviceProperties const& device) {
  return c.serving ? best_workspace_bytes(arguments, serving_tile(c), device) : 0;
}

AttentionSm90Params FamilyTraits<AttentionSm90Family>::lower(Machine const& machine,
                                                             AttentionArguments const& arguments,
                                                             AttentionChoice const& choice) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionSm90Config const& c = configuration(attention_sm90, choice.configuration);
  return lower(machine, a, c, c.serving ? 1 : group(a, c, machine.properties()));
}

AttentionSm90Params FamilyTraits<AttentionSm90Family>::lower(Machine const& machine,
                                                             AttentionArguments const& arguments,
                                                             AttentionSm90Config const& c,
                                                             int dense_group) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionSm90Params p = attention_params(a);
  lower_operands(machine, a, c.serving, dense_group, serving_tile(c),
                 {tma_boxes(q_tile(c)), tma_boxes(k_tile(c)), tma_boxes(loaded_v_tile(c))}, p);
  return p;
}

}  // namespace tegula::device
