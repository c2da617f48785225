// What attention_sm90 can compute, at what cost, and what it is launched with, tensor
// maps included.

#include "attention_sm90.hpp"

#include "attention_serving.hpp"
#include "attention_tensors.hpp"

namespace tegula::device {
namespace {

/// Rows of a group of heads that count as few: above, tiles of one head are full.
constexpr std::int64_t kFewRows = 128;

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
    if (c.consumers > 1) {
      // Tiles that several heads' rows fill better. In e4m3, and with fewer keys in a block, they
      // take longer all the same.
      bool const packs = bits(c.dtype) == 16 && c.block_n >= 64 &&
                         attention_shares(a, serving_tile(c), device).group > 1;
      return packs ? nullptr : "sequences of their own lengths, or heads to pack";
    }
    if (a.seq_q > kFewRows / (a.heads / *a.kv_heads)) return "few queries";
    AttentionShares const shares = attention_shares(a, serving_tile(c), device);
    if (shares.group == 1 && shares.parts == 1) return "heads to pack, or keys in parts";
  }
  if (a.page_table != nullptr && a.page_size % c.block_n != 0 && c.block_n % a.page_size != 0)
    return "pages of another size";
  return nullptr;
}

double FamilyTraits<AttentionSm90Family>::cost(AttentionArguments const& arguments,
                                               AttentionSm90Config const& c,
                                               DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  if (c.serving) {
    // A consumer that is alone has no other's products to run its softmax beneath. Two have fewer
    // keys in a block than those of one head's rows: on an H200, 1.6 times fewer tiles took 0.83
    // of the time, and 1.33 times fewer 1.05.
    double const slower = c.consumers == 1 ? 1.5 : needs_serving(a) ? 1.0 : 1.375;
    return slower * (attention_shares(a, serving_tile(c), device).blocks_in_turn * c.block_n) *
           block_m(c) * (c.head_dim + c.head_dim_v);
  }
  AttentionRounds const all = attention_rounds(a, block_m(c), c.block_n, device);
  // What a block costs besides its products, in keys: with fewer bits these take less time.
  int const block_n = c.block_n + (bits(c.dtype) == 8 ? 32 : 0);
  // Three consumers that take no turns, beside two that do: on an H200 the same products took them
  // 0.91 to 0.95 of the time at head dim 128, from 512 to 32768 keys.
  double const pace = c.consumers == 3 && !takes_turns(c) ? 0.935 : 1.0;
  return pace * all.rounds * (all.key_blocks * block_n + 64) * block_m(c) *
         (c.head_dim + c.head_dim_v);
}

std::string FamilyTraits<AttentionSm90Family>::remark(AttentionArguments const& arguments,
                                                      AttentionSm90Config const& c,
                                                      DeviceProperties const& device) {
  return c.serving ? serving_remark(arguments, serving_tile(c), device) : std::string{};
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
  AttentionSm90Params p = attention_params(a);
  lower_operands(machine, a, c.serving, serving_tile(c),
                 {tma_boxes(q_tile(c)), tma_boxes(k_tile(c)), tma_boxes(loaded_v_tile(c))}, p);
  return p;
}

}  // namespace tegula::device
