#pragma once

#include <cstdint>

#include "tegula/kernel/attention_config.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/divisor.hpp"

namespace tegula {

/// A length that was read on the device, as far as the launch has room for it.
TEGULA_HOST_DEVICE constexpr int length_within(int read, int most) {
  return read < 0 ? 0 : read < most ? read : most;
}

/// Keys that are appended to each sequence of a cache: `most`, or where `begin` is not null,
/// begin[batch + 1] - begin[batch], at most as many.
struct NewKeys {
  int const* begin = nullptr;
  int most = 0;
};

/// One configuration of append_keys: threads of a CTA, a warp a row. `quantises`: new rows are f16
/// or bf16, and the cache is e4m3.
struct AppendKeysConfig {
  int warps = 4;
  bool quantises = false;

  constexpr bool operator==(AppendKeysConfig const&) const = default;
};

/// A cache and the rows that are appended to it: of K, or of V. Strides and rows are multiples of
/// 16 bytes. The strides' `batch` is from page to page, or from sequence to sequence.
struct AppendedTensor {
  void const* from = nullptr;
  void* to = nullptr;
  TokenStrides from_stride, to_stride;  ///< in bytes
  int pieces = 0;                       ///< of 16 bytes, of a row of the cache
  float const* descale = nullptr;       ///< where rows are quantised: what an element of the cache
                                        ///< is multiplied with, for each batch and head; or 1
};

/// What append_keys is launched with. New key i of sequence b goes to token length[b] + i of its
/// batch, or paged, as AttentionServing's; not to token seq_k or one behind it. New rows are
/// (batch, new_keys.most, kv_heads), or with new_keys.begin packed, new key i of sequence b at
/// token begin[b] + i.
struct AppendKeysParams {
  AppendedTensor k, v;
  NewKeys new_keys;
  int const* length = nullptr;  ///< of each sequence, before
  int seq_k = 0;
  int const* page_table = nullptr;
  std::int64_t table_stride = 0;
  int pages = 0;
  int page_size = 1;
  Divisor by_page_size{1};
  int rows = 0;  ///< heads of new_keys.most keys of all sequences
  int kv_heads = 1;
  Divisor by_kv_heads{1}, by_most{1};
  DescaleStrides descale_stride;  ///< of the factors of K and V
  DType dtype = DType::bf16;      ///< of an element of the cache, for the checker's coordinates
  DType new_dtype = DType::bf16;  ///< of new rows: where they are quantised, f16 or bf16
};

}  // namespace tegula
