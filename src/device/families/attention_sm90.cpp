// What attention_sm90 can compute, at what cost, and what it is launched with, tensor
// maps included.

#include "attention_sm90.hpp"

#include <limits>

#include "attention_serving.hpp"
#include "attention_tensors.hpp"
#include "tegula/device/tensor_map.hpp"

namespace tegula::device {
namespace {

/// The same for `tokens` tokens of `group` heads: (head_dim, head of the group, token, group,
/// batch).
TensorMapDescription packed_description(TokenTensor const& x, DType type, TmaBoxes const& boxes,
                                        int group, int tokens) {
  TensorMapDescription d = tensor_description(x, type, boxes);
  d.rank = 5;
  d.extents = {x.head_dim, group, x.seq, x.heads / group, x.batches};
  auto const bytes = [&](std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? std::int64_t{16} : stride * bytes_of(type);
  };
  d.strides = {bytes(group, x.stride.head), bytes(x.seq, x.stride.seq),
               bytes(x.heads / group, group * x.stride.head), bytes(x.batches, x.stride.batch)};
  d.box = {boxes.box(0), group, tokens, 1, 1};
  return d;
}

/// The same for boxes of `keys` keys.
TensorMapDescription key_description(TokenTensor const& x, DType type, TmaBoxes const& boxes,
                                     int keys) {
  TensorMapDescription d = tensor_description(x, type, boxes);
  d.box[1] = keys;
  return d;
}

/// Keys of a box of K or V: a block's, or of a page that is smaller.
int box_keys(AttentionArguments const& a, AttentionSm90Config const& c) {
  bool const paged = a.page_table != nullptr && a.page_size < c.block_n;
  return paged ? static_cast<int>(a.page_size) : c.block_n;
}

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
  if (!c.serving) return needs_serving(a) ? "sequences of one length in one piece" : nullptr;
  if (!needs_serving(a) && !c.latent) {
    if (c.consumers > 1) return "sequences of their own lengths";
    if (a.seq_q > kFewRows / (a.heads / *a.kv_heads)) return "few queries";
    AttentionShares const shares = attention_shares(a, c, device);
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
    // A consumer that is alone has no other's products to run its softmax beneath.
    double const alone = c.consumers == 1 ? 1.5 : 1.0;
    return alone * (attention_shares(a, c, device).blocks_in_turn * c.block_n) * block_m(c) *
           (c.head_dim + c.head_dim_v);
  }
  AttentionRounds const all = attention_rounds(a, block_m(c), c.block_n, device);
  // What a block costs besides its products, in keys: with fewer bits these take less time.
  int const block_n = c.block_n + (bits(c.dtype) == 8 ? 32 : 0);
  return all.rounds * (all.key_blocks * block_n + 64) * block_m(c) * (c.head_dim + c.head_dim_v);
}

std::string FamilyTraits<AttentionSm90Family>::remark(AttentionArguments const& arguments,
                                                      AttentionSm90Config const& c,
                                                      DeviceProperties const& device) {
  if (!c.serving) return {};
  AttentionArguments const a = with_defaults(arguments);
  AttentionShares const shares = attention_shares(a, c, device);
  return fmt::format("{}{}; of a workspace it could use {} bytes, and has {}",
                     a.k_new != nullptr ? "append_keys appends the new keys before; " : "",
                     to_string(shares), workspace_bytes(a, c, device), a.workspace_bytes);
}

std::int64_t FamilyTraits<AttentionSm90Family>::workspace_bytes(AttentionArguments const& arguments,
                                                                AttentionSm90Config const& c,
                                                                DeviceProperties const& device) {
  if (!c.serving) return 0;
  AttentionArguments a = with_defaults(arguments);
  a.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  return partial_bytes(a, c, attention_shares(a, c, device));
}

namespace {

AttentionServing serving_of(AttentionArguments const& a, AttentionSm90Config const& c,
                            AttentionShares const& shares) {
  bool const paged = a.page_table != nullptr, packed = a.cu_seqlens_q != nullptr;
  int const heads = static_cast<int>(a.heads / shares.group);
  std::int64_t const queries = query_extents(a).seq;
  return {.q_begin = a.cu_seqlens_q,
          .k_begin = a.cu_seqlens_k,
          .k_length = a.seqused_k,
          .new_keys = {a.cu_seqlens_new, static_cast<int>(a.seq_new)},
          .page_table = a.page_table,
          .table_stride = *a.page_table_stride,
          .pages = static_cast<int>(a.pages),
          .page_size = paged ? static_cast<int>(a.page_size) : 1,
          .by_page_size = Divisor(paged ? static_cast<int>(a.page_size) : 1),
          .box_keys = box_keys(a, c),
          .clears_tail = needs_serving(a),
          .batches = static_cast<int>(a.batch),
          .heads = heads,
          .by_heads = Divisor(heads),
          .group = shares.group,
          .by_group = Divisor(shares.group),
          .positions = shares.positions,
          .part_blocks = shares.part_blocks,
          .most_blocks = shares.key_blocks,
          .partial_rows = partial_rows(a, shares),
          .partial = static_cast<float*>(a.workspace),
          .lse_batch = packed ? 0 : a.heads * queries,
          .lse_head = queries};
}

}  // namespace

AttentionSm90Params FamilyTraits<AttentionSm90Family>::lower(Machine const& machine,
                                                             AttentionArguments const& arguments,
                                                             AttentionChoice const& choice) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionSm90Config const& c = configuration(attention_sm90, choice.configuration);
  DeviceProperties const device = machine.properties();
  auto const [q, k, v] = attention_operands(a);
  TmaBoxes const q_boxes = tma_boxes(q_tile(c)), k_boxes = tma_boxes(k_tile(c)),
                 v_boxes = tma_boxes(loaded_v_tile(c));
  AttentionSm90Params p = attention_params(a);
  std::int64_t sharing = a.heads / *a.kv_heads;
  if (c.serving) {
    AttentionShares const shares = attention_shares(a, c, device);
    p.serving = serving_of(a, c, shares);
    p.ctas = static_cast<int>(std::min<std::int64_t>(shares.items(), device.multiprocessors));
    p.q = encode(machine, packed_description(q, a.dtype, q_boxes, shares.group, shares.positions));
    sharing /= shares.group;
  } else {
    p.order = attention_order(a, block_m(c), device);
    p.ctas = attention_grid(p.order, device);
    p.q = encode(machine, tensor_description(q, a.dtype, q_boxes));
  }
  p.k = encode(machine, key_description(k, a.dtype, k_boxes, box_keys(a, c)));
  p.v = encode(machine, key_description(v, a.dtype, v_boxes, box_keys(a, c)));
  p.heads_per_kv_head = Divisor(static_cast<int>(sharing));
  return p;
}

}  // namespace tegula::device
