// What attention asks of its arguments, with a sentence for each that is not so.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "argument_checker.hpp"
#include "problem.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/io/text.hpp"

namespace tegula {
namespace {

using namespace device;

constexpr std::array kHeadDims = {32, 64, 96, 128, 256};

/// Not of NaN.
bool is_between_powers(float x, int least, int most) {
  return x >= std::ldexp(1.0f, least) && x <= std::ldexp(1.0f, most);
}

class AttentionChecker : Checker {
 public:
  explicit AttentionChecker(AttentionArguments const& arguments)
      : Checker("attention"), a_(with_defaults(arguments)) {}

  void run(int compute_capability) const {
    architecture(compute_capability);
    types(compute_capability);
    extent("batch", a_.batch);
    extent("heads", a_.heads);
    extent("kv_heads", *a_.kv_heads);
    extent("seq_q", a_.seq_q);
    extent("seq_k", *a_.seq_k);
    head_dims(compute_capability);
    if (a_.heads % *a_.kv_heads != 0)
      refuse_argument(
          "attention: heads is {} and kv_heads is {}; heads must be a multiple of kv_heads.",
          a_.heads, *a_.kv_heads);
    grid("batch * heads * seq_q / 64", {a_.batch, a_.heads, (a_.seq_q + 63) / 64});
    sequences(compute_capability);
    pointer("q", a_.q, 16);
    pointer("k", a_.k, 16);
    pointer("v", a_.v, 16);
    pointer("o", a_.o, 16);
    optional_pointer("lse", a_.lse, alignof(float));
    optional_pointer("sink", a_.sink, alignof(float));
    descales();
    different("o", a_.o, "q", a_.q);
    different("o", a_.o, "k", a_.k);
    different("o", a_.o, "v", a_.v);
    strides("q", a_.dtype, *a_.q_stride, a_.heads, queries_, a_.head_dim);
    strides("k", a_.dtype, *a_.k_stride, *a_.kv_heads, keys_, a_.head_dim);
    strides("v", a_.dtype, *a_.v_stride, *a_.kv_heads, keys_, *a_.head_dim_v);
    strides("o", *a_.out, *a_.o_stride, a_.heads, queries_, *a_.head_dim_v);
    strides_are_set("q", *a_.q_stride, a_.heads, queries_);
    strides_are_set("k", *a_.k_stride, *a_.kv_heads, keys_);
    strides_are_set("v", *a_.v_stride, *a_.kv_heads, keys_);
    output_rows();
    appended();
    overlaps();
    if (!is_between_powers(*a_.scale, kLeastScalePower, kMostScalePower))
      refuse_argument("attention: scale is {}; it must be between 2^{} and 2^{}.", *a_.scale,
                      kLeastScalePower, kMostScalePower);
    window();
    if (a_.softcap != 0 && !is_between_powers(a_.softcap, kLeastSoftcapPower, kMostSoftcapPower))
      refuse_argument("attention: softcap is {}; it must be 0, for none, or between 2^{} and 2^{}.",
                      a_.softcap, kLeastSoftcapPower, kMostSoftcapPower);
    if (a_.exponential != Exponential::ex2_approx && a_.exponential != Exponential::polynomial)
      refuse_argument(
          "attention: exponential is {}; it must be Exponential::ex2_approx or Exponential::polynomial.",
          static_cast<int>(a_.exponential));
    if (a_.precise && a_.dtype != DType::e4m3)
      refuse_argument(
          "attention: precise is {} and dtype is {}; it must be left out: it is of e4m3 alone.",
          *a_.precise, to_string(a_.dtype));
    if (a_.dtype == DType::e4m3 && a_.exponential != Exponential::ex2_approx)
      refuse_argument(
          "attention: exponential is polynomial and dtype is e4m3, which is computed with "
          "Exponential::ex2_approx.");
  }

 private:
  void types(int compute_capability) const {
    if (a_.dtype == DType::e4m3 && compute_capability != 90 && compute_capability != 100)
      refuse_argument(
          "attention: dtype is e4m3 on an sm_{}; it is computed on an sm_90 and on an sm_100.",
          compute_capability);
    type("dtype", a_.dtype, {DType::f16, DType::bf16, DType::e4m3});
    type("out", *a_.out, {DType::f16, DType::bf16});
    if (a_.dtype != DType::e4m3 && *a_.out != a_.dtype)
      refuse_argument("attention: out is {} and dtype is {}; only of e4m3 may they differ.",
                      to_string(*a_.out), to_string(a_.dtype));
  }

  void descales() const {
    for (auto const& [name, factors] : {std::pair("q_descale", a_.q_descale),
                                        {"k_descale", a_.k_descale},
                                        {"v_descale", a_.v_descale}}) {
      optional_pointer(name, factors, alignof(float));
      if (factors != nullptr && a_.dtype != DType::e4m3)
        refuse_argument("attention: {} is set and dtype is {}; only of e4m3 there are factors.",
                        name, to_string(a_.dtype));
    }
    for (auto const& [axis, stride] :
         {std::pair("batch", a_.descale_stride->batch), {"head", a_.descale_stride->head}}) {
      if (stride < 0)
        refuse_argument(
            "attention: descale_stride.{} is {}, which is negative; it must be at least 0.", axis,
            stride);
    }
    span("descale_stride",
         {{a_.batch, a_.descale_stride->batch}, {*a_.kv_heads, a_.descale_stride->head}}, 1,
         sizeof(float));
  }

  void head_dims(int compute_capability) const {
    if (is_latent(a_)) return latent(compute_capability);
    // Up to here, any that TMA can address, which takes rows of whole 16 bytes; and beyond, those
    // of attention_sm80, equal.
    int most = 0, most_v = 0;
    if (compute_capability == 90) most = most_v = 256;
    if (compute_capability == 100) most = 192, most_v = 128;
    int const unit = bits(a_.dtype) == 8 ? 16 : 8;
    auto const any = [&](std::int64_t dim, int up_to) {
      return dim >= unit && dim <= up_to && dim % unit == 0;
    };
    bool const beyond = most < 256 && bits(a_.dtype) == 16;
    for (auto const& [name, dim, up_to, other] :
         {std::tuple("head_dim", a_.head_dim, most, "head_dim_v"),
          {"head_dim_v", *a_.head_dim_v, most_v, "head_dim"}}) {
      bool const of_sm80 =
          beyond && std::find(kHeadDims.begin(), kHeadDims.end(), dim) != kHeadDims.end();
      if (any(dim, up_to) || of_sm80) continue;
      std::string const computed =
          up_to == 0 ? "32, 64, 96, 128 and 256"
                     : fmt::format("multiples of {0} from {0} to {1}", unit, up_to);
      refuse_argument(
          "attention: {} is {}; {} are computed{}{} (pad with zeros to the next).", name, dim,
          computed, up_to < 256 ? fmt::format(" on an sm_{}", compute_capability) : "",
          beyond && up_to > 0 ? fmt::format(", and 256 where {} is 256, too", other) : "");
    }
    if (*a_.head_dim_v != a_.head_dim && (!any(a_.head_dim, most) || !any(*a_.head_dim_v, most_v)))
      refuse_argument(
          "attention: head_dim_v is {} and head_dim is {}; on an sm_{} they must be equal{}.",
          *a_.head_dim_v, a_.head_dim, compute_capability, most > 0 ? " where one is 256" : "");
  }

  /// V as the first columns of K.
  void latent(int compute_capability) const {
    if (compute_capability != 90 || a_.dtype != DType::bf16)
      refuse_argument(
          "attention: head_dim is 576, dtype is {} and the machine is sm_{}; it is computed in bf16 on sm_90 only.",
          to_string(a_.dtype), compute_capability);
    if (*a_.head_dim_v != 512)
      refuse_argument("attention: head_dim is 576 and head_dim_v is {}; with 576 it must be 512.",
                      *a_.head_dim_v);
    TokenStrides const &k = *a_.k_stride, &v = *a_.v_stride;
    if (a_.v != a_.k || k.batch != v.batch || k.seq != v.seq || k.head != v.head)
      refuse_argument(
          "attention: head_dim is 576, and v is not k or has other strides; they must be the same: the values are "
          "the first 512 columns of the keys.");
    if (a_.exponential != Exponential::ex2_approx)
      refuse_argument(
          "attention: exponential is polynomial and head_dim is 576, which is computed with "
          "Exponential::ex2_approx.");
  }

  void window() const {
    for (auto const& [name, keys] :
         {std::pair("window_left", a_.window_left), {"window_right", a_.window_right}}) {
      if (keys && *keys < 0)
        refuse_argument("attention: {} is {}; it must be at least 0, or left out for all keys.",
                        name, *keys);
    }
    if (a_.causal && a_.window_right && *a_.window_right != 0)
      refuse_argument(
          "attention: window_right is {} and causal is true; it must be 0 or left out, for a causal mask "
          "hides the keys behind a query's place.",
          *a_.window_right);
  }

  /// Lengths, pages and the workspace, where they are given.
  void sequences(int compute_capability) const {
    bool const paged = a_.page_table != nullptr;
    for (auto const& [name, pointer] : {std::pair("cu_seqlens_q", a_.cu_seqlens_q),
                                        {"cu_seqlens_k", a_.cu_seqlens_k},
                                        {"seqused_k", a_.seqused_k},
                                        {"page_table", a_.page_table}}) {
      optional_pointer(name, pointer, alignof(std::int32_t));
      if (pointer != nullptr && compute_capability != 90 && compute_capability != 100)
        refuse_argument(
            "attention: {} is given and the machine is sm_{}; sequences of their own lengths and paged keys are "
            "computed on an sm_90 and on an sm_100.",
            name, compute_capability);
    }
    if (a_.cu_seqlens_q != nullptr) extent("total_q", a_.total_q);
    if (a_.cu_seqlens_k != nullptr) extent("total_k", a_.total_k);
    if (paged && a_.cu_seqlens_k != nullptr)
      refuse_argument(
          "attention: cu_seqlens_k and page_table are both given; of paged keys seqused_k says how many there are.");
    if (paged) pages();
    for (auto const& [name, value, of, pointer] :
         {std::tuple<char const*, std::int64_t, char const*, void const*>(
              "total_q", a_.total_q, "cu_seqlens_q", a_.cu_seqlens_q),
          {"total_k", a_.total_k, "cu_seqlens_k", a_.cu_seqlens_k},
          {"total_new", a_.total_new, "cu_seqlens_new", a_.cu_seqlens_new},
          {"pages", a_.pages, "page_table", a_.page_table},
          {"page_size", a_.page_size, "page_table", a_.page_table}})
      if (value != 0 && pointer == nullptr)
        refuse_argument("attention: {} is {} and {} is a null pointer; it must be 0 without one.",
                        name, value, of);
    without_new_keys();
    workspace(a_.workspace, a_.workspace_bytes);
    if (a_.splits && (*a_.splits < 1 || *a_.splits > kMostSplits))
      refuse_argument("attention: splits is {}; it must be between 1 and {}, or left out.",
                      *a_.splits, kMostSplits);
  }

  /// What is about new keys, without new keys.
  void without_new_keys() const {
    if (appends()) return;
    for (auto const& [name, pointer] : {std::pair<char const*, void const*>("v_new", a_.v_new),
                                        {"cu_seqlens_new", a_.cu_seqlens_new}})
      if (pointer != nullptr)
        refuse_argument(
            "attention: {} is given and k_new is a null pointer; both must be given for keys to be "
            "appended, or neither.",
            name);
    if (a_.seq_new != 0)
      refuse_argument(
          "attention: seq_new is {} and k_new is a null pointer; it must be 0 without one.",
          a_.seq_new);
  }

  void pages() const {
    extent("pages", a_.pages);
    extent("page_size", a_.page_size);
    std::int64_t const size = a_.page_size, columns = (*a_.seq_k + size - 1) / size;
    if (size != 16 && size != 32 && size != 64 && size % 128 != 0)
      refuse_argument(
          "attention: page_size is {}; it must be 16, 32, 64 or a multiple of 128, so that pages and blocks of "
          "keys fit each other.",
          size);
    if (*a_.page_table_stride < columns && a_.batch > 1)
      refuse_argument(
          "attention: page_table_stride is {}; it must be at least {}, the pages of {}.",
          *a_.page_table_stride, columns, io::counted(*a_.seq_k, "key"));
    if (*a_.page_table_stride > kMaxExtent)
      refuse_argument("attention: page_table_stride is {}; it must be at most {}.",
                      *a_.page_table_stride, kMaxExtent);
  }

  void strides(std::string_view name, DType type, TokenStrides const& s, std::int64_t heads,
               TokenExtents const& tokens, std::int64_t head_dim) const {
    std::int64_t const vector = 128 / bits(type);  // elements in 16 bytes
    for (auto const& [axis, stride] :
         {std::pair("batch", s.batch), std::pair("seq", s.seq), std::pair("head", s.head)}) {
      if (stride < 0)
        refuse_argument("attention: {}_stride.{} is {}, which is negative; it must be at least 0.",
                        name, axis, stride);
      if (stride % vector != 0)
        refuse_argument(
            "attention: {}_stride.{} is {}; it must be a multiple of {} elements, so that every row is "
            "aligned to 16 bytes.",
            name, axis, stride, vector);
    }
    span(name, {{tokens.batch, s.batch}, {tokens.seq, s.seq}, {heads, s.head}}, head_dim,
         bits(type) / 8);
  }

  /// Zeros along every axis are taken for a slip: strides that were declared and not set. Along
  /// single axes, 0 shares rows.
  void strides_are_set(std::string_view name, TokenStrides const& s, std::int64_t heads,
                       TokenExtents const& tokens) const {
    auto const [batch, seq] = tokens;
    if (s.batch != 0 || s.seq != 0 || s.head != 0 || (batch == 1 && heads == 1 && seq == 1)) return;
    refuse_argument(
        "attention: {}_stride is 0 along every axis, and the tensor has {} of {} with {}; it must "
        "be set, or left out for a contiguous tensor.",
        name, io::counted(batch, "batch", "batches"), io::counted(seq, "token"),
        io::counted(heads, "head"));
  }

  Region tensor(std::string_view name, DType type, void const* address, TokenStrides const& s,
                std::int64_t heads, TokenExtents const& tokens, std::int64_t head_dim) const {
    return region(name, address, {{tokens.batch, s.batch}, {tokens.seq, s.seq}, {heads, s.head}},
                  head_dim, bits(type) / 8);
  }

  Region descale(std::string_view name, float const* factors) const {
    return region(name, factors,
                  {{a_.batch, a_.descale_stride->batch}, {*a_.kv_heads, a_.descale_stride->head}},
                  1, sizeof(float));
  }

  void overlaps() const {
    Region const inputs[] = {
        tensor("q", a_.dtype, a_.q, *a_.q_stride, a_.heads, queries_, a_.head_dim),
        tensor("k", a_.dtype, a_.k, *a_.k_stride, *a_.kv_heads, keys_, a_.head_dim),
        tensor("v", a_.dtype, a_.v, *a_.v_stride, *a_.kv_heads, keys_, *a_.head_dim_v)};
    cache_overlaps(inputs[0], inputs[1], inputs[2]);
    Region const o = tensor("o", *a_.out, a_.o, *a_.o_stride, a_.heads, queries_, *a_.head_dim_v);
    Region lse = region("lse", a_.lse, {}, queries_.batch * a_.heads * queries_.seq, sizeof(float));
    for (Region other : inputs) {
      apart("attention", o, other);
      if (a_.lse == nullptr) continue;
      other = filled(other);  // lse is no part of a packed buffer
      apart("attention", lse, other);
    }
    Region const whole_o = filled(o);
    if (a_.lse != nullptr) apart("attention", lse, whole_o);
    for (Region const& read :
         {region("sink", a_.sink, {}, a_.heads, sizeof(float)), descale("q_descale", a_.q_descale),
          descale("k_descale", a_.k_descale), descale("v_descale", a_.v_descale)}) {
      apart("attention", whole_o, read);
      if (a_.lse != nullptr) apart("attention", lse, read);
    }
    Region const workspace = region("workspace", a_.workspace, {}, a_.workspace_bytes, 1);
    if (a_.workspace != nullptr) {
      for (Region const& input : inputs) apart("attention", workspace, filled(input));
      apart("attention", workspace, whole_o);
      apart("attention", workspace, lse);
    }
    for (Region const& read : tables_and_new_keys()) {
      apart("attention", o, read);
      if (a_.lse != nullptr) apart("attention", lse, filled(read));
      if (a_.workspace != nullptr) apart("attention", workspace, filled(read));
    }
  }

  std::vector<Region> tables_and_new_keys() const {
    auto const table = [](char const* name, std::int32_t const* address, std::int64_t count) {
      return region(name, address, {}, count, sizeof(std::int32_t));
    };
    std::vector<Region> all = {table("cu_seqlens_q", a_.cu_seqlens_q, a_.batch + 1),
                               table("cu_seqlens_k", a_.cu_seqlens_k, a_.batch + 1),
                               table("seqused_k", a_.seqused_k, a_.batch),
                               table("cu_seqlens_new", a_.cu_seqlens_new, a_.batch + 1)};
    if (a_.page_table != nullptr)
      all.push_back(region("page_table", a_.page_table, {{a_.batch, *a_.page_table_stride}},
                           (*a_.seq_k + a_.page_size - 1) / a_.page_size, sizeof(std::int32_t)));
    if (!appends()) return all;
    all.push_back(tensor("k_new", *a_.new_dtype, a_.k_new, *a_.k_new_stride, *a_.kv_heads,
                         new_keys_, a_.head_dim));
    if (a_.v_new != nullptr)
      all.push_back(tensor("v_new", *a_.new_dtype, a_.v_new, *a_.v_new_stride, *a_.kv_heads,
                           new_keys_, *a_.head_dim_v));
    return all;
  }

  bool appends() const { return a_.k_new != nullptr; }

  /// New keys, where they are given, and the cache that they are appended to.
  void appended() const {
    if (!appends()) return;
    if (a_.seqused_k == nullptr)
      refuse_argument(
          "attention: k_new is given and seqused_k is not; it must say how many keys each sequence has before "
          "the new ones.");
    if (a_.cu_seqlens_k != nullptr)
      refuse_argument(
          "attention: cu_seqlens_k and k_new are both given; keys are appended to a cache or to pages, where "
          "each sequence has room.");
    extent("seq_new", a_.seq_new);
    optional_pointer("cu_seqlens_new", a_.cu_seqlens_new, alignof(std::int32_t));
    if (a_.cu_seqlens_new != nullptr) extent("total_new", a_.total_new);
    grid("batch * seq_new * kv_heads", {a_.batch, a_.seq_new, *a_.kv_heads});
    bool const one_tensor = is_latent(a_);
    pointer("k_new", a_.k_new, 16);
    if (!one_tensor) pointer("v_new", a_.v_new, 16);
    if (one_tensor && a_.v_new != nullptr)
      refuse_argument("attention: head_dim is 576, and v_new is given; it must be left out.");
    new_type();
    strides("k_new", *a_.new_dtype, *a_.k_new_stride, *a_.kv_heads, new_keys_, a_.head_dim);
    strides_are_set("k_new", *a_.k_new_stride, *a_.kv_heads, new_keys_);
    cache_rows("k", *a_.k_stride, a_.head_dim);
    if (one_tensor) return;
    strides("v_new", *a_.new_dtype, *a_.v_new_stride, *a_.kv_heads, new_keys_, *a_.head_dim_v);
    strides_are_set("v_new", *a_.v_new_stride, *a_.kv_heads, new_keys_);
    cache_rows("v", *a_.v_stride, *a_.head_dim_v);
  }

  void new_type() const {
    if (*a_.new_dtype == a_.dtype) return;
    bool const quantised = *a_.new_dtype == DType::f16 || *a_.new_dtype == DType::bf16;
    if (a_.dtype != DType::e4m3 || !quantised)
      refuse_argument(
          "attention: new_dtype is {} and dtype is {}; it must be the same, or f16 or bf16 where dtype is e4m3.",
          to_string(*a_.new_dtype), to_string(a_.dtype));
  }

  /// What is written to may not share rows.
  void cache_rows(std::string const& name, TokenStrides const& s, std::int64_t dim) const {
    std::string const names[] = {name + "_stride.batch", name + "_stride.seq",
                                 name + "_stride.head"};
    rows_apart<3>("attention", name, dim,
                  {{{names[0], keys_.batch, s.batch},
                    {names[1], keys_.seq, s.seq},
                    {names[2], *a_.kv_heads, s.head}}});
  }

  /// K and V, where new rows are written to them, lie apart from all else.
  void cache_overlaps(Region const& q, Region const& k, Region const& v) const {
    if (!appends()) return;
    Region const k_new = tensor("k_new", *a_.new_dtype, a_.k_new, *a_.k_new_stride, *a_.kv_heads,
                                new_keys_, a_.head_dim);
    for (Region const& cache : {k, v}) {
      apart("attention", cache, q);
      apart("attention", cache, k_new);
      if (a_.v_new != nullptr)
        apart("attention", cache,
              tensor("v_new", *a_.new_dtype, a_.v_new, *a_.v_new_stride, *a_.kv_heads, new_keys_,
                     *a_.head_dim_v));
      auto const table = [&](char const* name, std::int32_t const* address, std::int64_t count) {
        apart("attention", cache, region(name, address, {}, count, sizeof(std::int32_t)));
      };
      table("seqused_k", a_.seqused_k, a_.batch);
      table("cu_seqlens_new", a_.cu_seqlens_new, a_.batch + 1);
    }
    if (!is_latent(a_)) apart("attention", k, v);
  }

  void output_rows() const {
    rows_apart<3>("attention", "o", *a_.head_dim_v,
                  {{{"o_stride.batch", queries_.batch, a_.o_stride->batch},
                    {"o_stride.seq", queries_.seq, a_.o_stride->seq},
                    {"o_stride.head", a_.heads, a_.o_stride->head}}});
  }

  AttentionArguments const a_;  // with defaults
  TokenExtents const queries_ = query_extents(a_), keys_ = key_extents(a_),
                     new_keys_ = new_key_extents(a_);
};

}  // namespace

void check(AttentionArguments const& arguments, int compute_capability) {
  AttentionChecker(arguments).run(compute_capability);
}

}  // namespace tegula
