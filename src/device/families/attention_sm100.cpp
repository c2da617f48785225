// What attention_sm100 can compute, at what cost, and what it is launched with.

#include "attention_sm100.hpp"

#include <algorithm>

#include "attention_serving.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/tensor_map.hpp"

namespace tegula::device {

std::string FamilyTraits<AttentionSm100Family>::obstacle(AttentionArguments const& arguments,
                                                         DeviceProperties const& device) {
  if (device.compute_capability != 100)
    return fmt::format("the device is sm_{}", device.compute_capability);
  AttentionArguments const a = with_defaults(arguments);
  for (TokenTensor const& x : attention_operands(a))
    if (std::string why = attention_tma_obstacle(x, a.dtype); !why.empty()) return why;
  return attention_tma_obstacle(attention_output(a), *a.out);
}

char const* FamilyTraits<AttentionSm100Family>::check(AttentionArguments const& arguments,
                                                      AttentionSm100Config const& c,
                                                      DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  if (c.dtype != a.dtype) return "another type";
  if (*a.out != c.out) return "another output type";
  if (a.head_dim > c.head_dim) return "less than the head dimension";
  if (*a.head_dim_v > c.head_dim_v) return "less than the head dimension of V";
  if (c.exponential != a.exponential) return "another exponential";
  if (c.serving != needs_serving(a))
    return c.serving ? "sequences of their own lengths" : "sequences of one length in one piece";
  if (asks_for_parts(a)) return kKeysInParts;
  if (a.page_table != nullptr && a.page_size % c.block_n != 0 && c.block_n % a.page_size != 0)
    return "pages of another size";
  if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
    return "more shared memory than the device has";
  return nullptr;
}

double FamilyTraits<AttentionSm100Family>::cost(AttentionArguments const& arguments,
                                                AttentionSm100Config const& c,
                                                DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  constexpr double multiply_adds = 4096, exponentials = 16, fused = 128;  // a cycle
  constexpr double polynomial = 11;                                       // instructions
  double const by_polynomial = c.exponential == Exponential::polynomial ? 1.0 : c.polynomials / 8.0;
  double const cycles = std::max({(c.head_dim + c.head_dim_v) / multiply_adds * bits(c.dtype) / 16,
                                  (1 - by_polynomial) / exponentials,
                                  (3 + polynomial * by_polynomial) / fused});  // of an element of S
  double const block = c.block_n * block_m(c) * cycles;
  if (c.serving) return attention_shares(a, serving_tile(c), device).blocks_in_turn * block;
  AttentionRounds const all =
      attention_rounds(a, c.consumers, PackedHeads(1, consumer_rows(c)), c.block_n, device);
  return all.rounds * all.key_blocks * block;
}

std::string FamilyTraits<AttentionSm100Family>::remark(AttentionArguments const& arguments,
                                                       AttentionSm100Config const& c,
                                                       DeviceProperties const& device) {
  return c.serving ? serving_remark(arguments, serving_tile(c), device) : std::string{};
}

AttentionSm100Params FamilyTraits<AttentionSm100Family>::lower(Machine const& machine,
                                                               AttentionArguments const& arguments,
                                                               AttentionChoice const& choice) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionSm100Config const& c = configuration(attention_sm100, choice.configuration);
  AttentionSm100Params p{attention_params(a), {}};
  lower_operands(machine, a, c.serving, 1, serving_tile(c),
                 {tma_boxes(q_tile(c)), tma_boxes(k_tile(c)), tma_boxes(loaded_v_tile(c))}, p);
  if (!c.serving)
    p.o = encode(machine, tensor_description(attention_output(a), *a.out, tma_boxes(o_tile(c))));
  return p;
}

}  // namespace tegula::device
