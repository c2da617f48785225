#pragma once

#include <fmt/format.h>

#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/append_keys.hpp"

namespace tegula::device {

template <> struct FamilyTraits<AppendKeysFamily> {
  using Arguments = AppendKeysArguments;
  using Choice = AppendKeysChoice;

  static std::string obstacle(AppendKeysArguments const&, DeviceProperties const& device) {
    if (device.compute_capability < 90)
      return fmt::format("the device is sm_{}", device.compute_capability);
    return {};
  }

  static char const* check(AppendKeysArguments const& arguments, AppendKeysConfig const& c,
                           DeviceProperties const&) {
    AttentionArguments const a = with_defaults(arguments.attention);
    if (a.k_new == nullptr) return "no new keys";
    return c.quantises != (*a.new_dtype != a.dtype) ? "another type of new keys" : nullptr;
  }

  static AppendKeysParams lower(Machine const&, AppendKeysArguments const& arguments,
                                AppendKeysChoice const&) {
    AttentionArguments const a = with_defaults(arguments.attention);
    bool const paged = a.page_table != nullptr;
    auto const in_bytes = [](TokenStrides const& s, DType type) {
      int const element = bytes_of(type);
      return TokenStrides{s.batch * element, s.seq * element, s.head * element};
    };
    auto const tensor = [&](void const* from, TokenStrides const& from_stride, void const* to,
                            TokenStrides const& to_stride, std::int64_t dim, float const* descale) {
      return AppendedTensor{from,
                            const_cast<void*>(to),
                            in_bytes(from_stride, *a.new_dtype),
                            in_bytes(to_stride, a.dtype),
                            static_cast<int>(dim * bytes_of(a.dtype) / 16),
                            descale};
    };
    int const kv_heads = static_cast<int>(*a.kv_heads), most = static_cast<int>(a.seq_new);
    return {.k = tensor(a.k_new, *a.k_new_stride, a.k, *a.k_stride, a.head_dim, a.k_descale),
            .v = a.v_new == nullptr ? AppendedTensor{}
                                    : tensor(a.v_new, *a.v_new_stride, a.v, *a.v_stride,
                                             *a.head_dim_v, a.v_descale),
            .new_keys = {a.cu_seqlens_new, most},
            .length = a.seqused_k,
            .seq_k = static_cast<int>(*a.seq_k),
            .page_table = a.page_table,
            .table_stride = *a.page_table_stride,
            .pages = static_cast<int>(a.pages),
            .page_size = paged ? static_cast<int>(a.page_size) : 1,
            .by_page_size = Divisor(paged ? static_cast<int>(a.page_size) : 1),
            .rows = static_cast<int>(a.batch) * most * kv_heads,
            .kv_heads = kv_heads,
            .by_kv_heads = Divisor(kv_heads),
            .by_most = Divisor(most),
            .descale_stride = *a.descale_stride,
            .dtype = a.dtype,
            .new_dtype = *a.new_dtype};
  }

  /// Which rows are read and written the lengths on the device say.
  static std::vector<sim::GlobalTensor> describe(AppendKeysConfig const&,
                                                 AppendKeysParams const& p) {
    if (p.rows < 1) return {};
    std::vector<GlobalTensor> tensors;
    int const element = bytes_of(p.dtype);
    std::int64_t const batches = p.rows / p.kv_heads / p.new_keys.most;
    bool const paged = p.page_table != nullptr;
    for (auto const& [name, x] : {std::pair("K", &p.k), std::pair("V", &p.v)}) {
      if (x->to == nullptr) continue;
      TokenStrides const& s = x->to_stride;
      tensors.push_back(tokens(name, p.dtype, x->to, paged ? p.page_size : p.seq_k,
                               16 * x->pieces / element, p.kv_heads, paged ? p.pages : batches,
                               {s.batch / element, s.seq / element, s.head / element},
                               Coverage::any));
    }
    return tensors;
  }

  static std::string name(AppendKeysConfig const& c) {
    return fmt::format("append_keys {} warps{}", c.warps, c.quantises ? " to e4m3" : "");
  }

  /// The rows themselves.
  static reference::Values reference(AppendKeysArguments const& host,
                                     std::vector<std::int64_t> const& rows);
};

}  // namespace tegula::device
