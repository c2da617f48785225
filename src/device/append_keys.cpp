// The kernel before attention that appends new keys: what it is told of, and what is exact.

#include "tegula/device/append_keys.hpp"

#include <fmt/format.h>

#include "families.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

std::string to_string(AppendKeysArguments const& arguments) {
  AttentionArguments const& a = arguments.attention;
  return fmt::format("{} of {}", io::counted(a.seq_new, "new key"),
                     io::counted(a.batch, "sequence"));
}

// Row (sequence, new key, head) of K as it stands in k_new, or quantised.
reference::Values device::FamilyTraits<AppendKeysFamily>::reference(
    AppendKeysArguments const& host, std::vector<std::int64_t> const& rows) {
  AttentionArguments const a = with_defaults(host.attention);
  reference::Values values;
  for (std::int64_t const row : rows) {
    std::int64_t const head = row % *a.kv_heads, key = row / *a.kv_heads % a.seq_new,
                       batch = row / *a.kv_heads / a.seq_new;
    TokenStrides const& s = *a.k_new_stride;
    for (std::int64_t d = 0; d < a.head_dim; ++d) {
      values.value.push_back(reference::new_element(
          a, a.k_new, a.k_descale, batch, head, batch * s.batch + key * s.seq + head * s.head + d));
      values.bound.push_back(0);
    }
  }
  return values;
}

}  // namespace tegula
