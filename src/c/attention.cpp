#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "element_types.hpp"
#include "guard.hpp"
#include "host_array.hpp"
#include "machine.hpp"
#include "prepared.hpp"
#include "structures.hpp"
#include "tegula/device/selection.hpp"

namespace tegula::c {
namespace {

constexpr tegula_attention_arguments kAttentionDefaults = {
    .batch = 1,
    .heads = 1,
    .kv_heads = TEGULA_LEFT_OUT,
    .seq_k = TEGULA_LEFT_OUT,
    .head_dim_v = TEGULA_LEFT_OUT,
    .window_left = TEGULA_LEFT_OUT,
    .window_right = TEGULA_LEFT_OUT,
    .descale_batch_stride = TEGULA_LEFT_OUT,
    .descale_head_stride = TEGULA_LEFT_OUT,
    .page_table_stride = TEGULA_LEFT_OUT,
    .splits = TEGULA_LEFT_OUT,
    .precise = TEGULA_LEFT_OUT,
};

// Callers that were compiled before a member keep the padding that was behind the last one.
constexpr bool keeps_padding(std::size_t last, std::size_t next) {
  return next % alignof(void const*) == 0 && next == last + 8;
}
static_assert(keeps_padding(offsetof(tegula_attention_arguments, softcap),
                            offsetof(tegula_attention_arguments, q_descale)) &&
              keeps_padding(offsetof(tegula_attention_arguments, out),
                            offsetof(tegula_attention_arguments, k_new)));

std::optional<TokenStrides> strides_of(tegula_token_strides const* strides) {
  if (strides == nullptr) return {};
  return TokenStrides{strides->batch, strides->seq, strides->head};
}

std::optional<DescaleStrides> descale_strides_of(tegula_attention_arguments const& a) {
  bool const batch = a.descale_batch_stride != TEGULA_LEFT_OUT,
             head = a.descale_head_stride != TEGULA_LEFT_OUT;
  if (batch != head)
    throw argument_error(
        fmt::format("attention: {} is given and {} left out; both must be given, or neither.",
                    batch ? "descale_batch_stride" : "descale_head_stride",
                    batch ? "descale_head_stride" : "descale_batch_stride"));
  if (!batch) return {};
  return DescaleStrides{a.descale_batch_stride, a.descale_head_stride};
}

std::optional<bool> precise_of(tegula_attention_arguments const& a) {
  if (a.precise == TEGULA_LEFT_OUT) return {};
  if (a.precise != 0 && a.precise != 1)
    throw argument_error(
        fmt::format("attention: precise is {}; it must be 0, 1 or left out.", a.precise));
  return a.precise == 1;
}

AttentionArguments arguments_of(tegula_attention_arguments const& a) {
  std::optional<DType> const dtype = dtype_of("attention", "dtype", a.dtype);
  if (!dtype)
    throw argument_error("attention: dtype is left out; it must be the type of q, k and v.");
  std::optional<DType> const new_dtype = dtype_of("attention", "new_dtype", a.new_dtype);
  if (new_dtype && a.k_new == nullptr)
    throw argument_error(fmt::format(
        "attention: new_dtype is {} and k_new is a null pointer; it must be left out without one.",
        to_string(*new_dtype)));
  return {.dtype = *dtype,
          .out = dtype_of("attention", "out", a.out),
          .q = a.q,
          .k = a.k,
          .v = a.v,
          .o = a.o,
          .lse = a.lse,
          .batch = a.batch,
          .heads = a.heads,
          .kv_heads = unless_left_out(a.kv_heads),
          .seq_q = a.seq_q,
          .seq_k = unless_left_out(a.seq_k),
          .head_dim = a.head_dim,
          .head_dim_v = unless_left_out(a.head_dim_v),
          .q_stride = strides_of(a.q_stride),
          .k_stride = strides_of(a.k_stride),
          .v_stride = strides_of(a.v_stride),
          .o_stride = strides_of(a.o_stride),
          .scale = a.scale != nullptr ? std::optional<float>(*a.scale) : std::nullopt,
          .causal = a.causal != 0,
          .window_left = unless_left_out(a.window_left),
          .window_right = unless_left_out(a.window_right),
          .softcap = a.softcap,
          .sink = a.sink,
          .q_descale = a.q_descale,
          .k_descale = a.k_descale,
          .v_descale = a.v_descale,
          .descale_stride = descale_strides_of(a),
          .precise = precise_of(a),
          .cu_seqlens_q = a.cu_seqlens_q,
          .cu_seqlens_k = a.cu_seqlens_k,
          .seqused_k = a.seqused_k,
          .total_q = a.total_q,
          .total_k = a.total_k,
          .page_table = a.page_table,
          .page_table_stride = unless_left_out(a.page_table_stride),
          .pages = a.pages,
          .page_size = a.page_size,
          .k_new = a.k_new,
          .v_new = a.v_new,
          .seq_new = a.seq_new,
          .cu_seqlens_new = a.cu_seqlens_new,
          .total_new = a.total_new,
          .new_dtype = new_dtype,
          .k_new_stride = strides_of(a.k_new_stride),
          .v_new_stride = strides_of(a.v_new_stride),
          .workspace = a.workspace,
          .workspace_bytes = a.workspace_bytes,
          .splits = unless_left_out(a.splits)};
}

/// What attention reads and writes, in the caller's memory. Of arguments with nothing left out.
struct HostArrays {
  HostArray q, k, v, k_new, v_new, o, lse, sink, q_descale, k_descale, v_descale;
  HostArray cu_seqlens_q, cu_seqlens_k, cu_seqlens_new, seqused_k, page_table;

  explicit HostArrays(AttentionArguments const& a) {
    TokenExtents const queries = query_extents(a), keys = key_extents(a),
                       added = new_key_extents(a);
    auto const tokens = [](char const* name, void const* address, DType type,
                           TokenExtents const& extents, std::int64_t heads, std::int64_t head_dim,
                           TokenStrides const& s) {
      std::int64_t const bytes = bits(type) / 8;
      return HostArray{name,
                       address,
                       head_dim * bytes,
                       {extents.batch, extents.seq, heads},
                       {s.batch * bytes, s.seq * bytes, s.head * bytes}};
    };
    q = tokens("Q", a.q, a.dtype, queries, a.heads, a.head_dim, *a.q_stride);
    k = tokens("K", a.k, a.dtype, keys, *a.kv_heads, a.head_dim, *a.k_stride);
    v = tokens("V", a.v, a.dtype, keys, *a.kv_heads, *a.head_dim_v, *a.v_stride);
    k_new = tokens("k_new", a.k_new, *a.new_dtype, added, *a.kv_heads, a.head_dim, *a.k_new_stride);
    v_new =
        tokens("v_new", a.v_new, *a.new_dtype, added, *a.kv_heads, *a.head_dim_v, *a.v_new_stride);
    o = tokens("O", a.o, *a.out, queries, a.heads, *a.head_dim_v, *a.o_stride);
    lse = table("lse", a.lse, queries.batch * a.heads * queries.seq);
    sink = table("sink", a.sink, a.heads);
    auto const factors = [&](char const* name, float const* address) {
      DescaleStrides const& s = *a.descale_stride;
      return HostArray{name,
                       address,
                       4,
                       {1, s.batch == 0 ? 1 : a.batch, s.head == 0 ? 1 : *a.kv_heads},
                       {0, 4 * s.batch, 4 * s.head}};
    };
    q_descale = factors("q_descale", a.q_descale);
    k_descale = factors("k_descale", a.k_descale);
    v_descale = factors("v_descale", a.v_descale);
    cu_seqlens_q = table("cu_seqlens_q", a.cu_seqlens_q, a.batch + 1);
    cu_seqlens_k = table("cu_seqlens_k", a.cu_seqlens_k, a.batch + 1);
    cu_seqlens_new = table("cu_seqlens_new", a.cu_seqlens_new, a.batch + 1);
    seqused_k = table("seqused_k", a.seqused_k, a.batch);
    std::int64_t const columns = a.page_table == nullptr ? 0 : (*a.seq_k - 1) / a.page_size + 1;
    page_table = {.name = "page_table",
                  .address = a.page_table,
                  .row = 4 * columns,
                  .extents = {1, 1, a.batch},
                  .strides = {0, 0, 4 * *a.page_table_stride}};
  }
};

/// Precondition: checked arguments, with nothing left out.
void simulate(tegula_machine& machine, AttentionArguments const& host, tegula_report** report) {
  Machine const& m = machine.machine;
  HostArrays const arrays(host);
  AttentionArguments a = host;
  HostArray const scratch = {
      .name = "workspace", .address = host.workspace, .row = host.workspace_bytes};
  require_memory("attention", {arrays.q, arrays.k, arrays.v, arrays.k_new, arrays.v_new, arrays.o,
                               arrays.lse, arrays.page_table, scratch});
  OperandsOnMachine operands(m);
  operands.input(a.q, arrays.q);
  auto const keys = [&](void const*& pointer, HostArray const& array) {
    if (a.k_new == nullptr) return operands.input(pointer, array);
    auto* cache = const_cast<void*>(pointer);  // with k_new, written to
    operands.output(cache, array, true);
    pointer = cache;
  };
  keys(a.k, arrays.k);
  // What are columns of K in the caller's memory are columns of K there.
  if (arrays.v.address == arrays.k.address && arrays.v.row <= arrays.k.row &&
      arrays.v.strides == arrays.k.strides)
    a.v = a.k;
  else
    keys(a.v, arrays.v);
  operands.input(a.k_new, arrays.k_new), operands.input(a.v_new, arrays.v_new);
  operands.input(a.sink, arrays.sink);
  operands.input(a.q_descale, arrays.q_descale);
  operands.input(a.k_descale, arrays.k_descale);
  operands.input(a.v_descale, arrays.v_descale);
  operands.input(a.cu_seqlens_q, arrays.cu_seqlens_q);
  operands.input(a.cu_seqlens_k, arrays.cu_seqlens_k);
  operands.input(a.cu_seqlens_new, arrays.cu_seqlens_new);
  operands.input(a.seqused_k, arrays.seqused_k);
  operands.input(a.page_table, arrays.page_table);
  // Tokens that are no sequence's keep what the caller has there.
  bool const packed = host.cu_seqlens_q != nullptr;
  operands.output(a.o, arrays.o, packed);
  operands.output(a.lse, arrays.lse, packed);
  OnMachine const workspace(m, scratch);
  a.workspace = workspace.data();
  launch_and_report(
      machine, report, [&] { attention(m, a); }, [&] { operands.download(); });
}

}  // namespace
}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

void tegula_attention_arguments_init(tegula_attention_arguments* arguments, size_t struct_size) {
  initialise(arguments, struct_size, kAttentionDefaults);
}

tegula_status tegula_attention(tegula_machine* machine, tegula_attention_arguments const* arguments,
                               void* stream, tegula_report** report) {
  return guarded([&] {
    not_null("tegula_attention", "machine", machine);
    not_null("tegula_attention", "arguments", arguments);
    Use const use(*machine);
    AttentionArguments const a =
        arguments_of(read_structure("tegula_attention", *arguments, kAttentionDefaults));
    if (machine->machine.is_simulated()) {
      check(a, machine->machine.compute_capability());
      simulate(*machine, with_defaults(a), report);
    } else {
      attention(machine->machine, a, Stream{stream});
      if (report != nullptr) *report = nullptr;
    }
  });
}

tegula_status tegula_attention_choice(tegula_machine* machine,
                                      tegula_attention_arguments const* arguments, char** text) {
  return guarded([&] {
    not_null("tegula_attention_choice", "machine", machine);
    not_null("tegula_attention_choice", "arguments", arguments);
    not_null("tegula_attention_choice", "text", text);
    Use const use(*machine);
    AttentionArguments const a =
        arguments_of(read_structure("tegula_attention_choice", *arguments, kAttentionDefaults));
    check(a, machine->machine.compute_capability());
    AttentionChoice const choice = choose_attention(a, machine->machine.properties());
    *text = as_c_text(configuration_name(choice.kernel, choice.configuration));
  });
}

tegula_status tegula_attention_workspace(tegula_machine* machine,
                                         tegula_attention_arguments const* arguments,
                                         int64_t* bytes) {
  return guarded([&] {
    not_null("tegula_attention_workspace", "machine", machine);
    not_null("tegula_attention_workspace", "arguments", arguments);
    not_null("tegula_attention_workspace", "bytes", bytes);
    Use const use(*machine);
    AttentionArguments const a =
        arguments_of(read_structure("tegula_attention_workspace", *arguments, kAttentionDefaults));
    check(a, machine->machine.compute_capability());
    *bytes = attention_workspace_bytes(a, machine->machine.properties());
  });
}

tegula_status tegula_attention_prepare(tegula_machine* machine,
                                       tegula_attention_arguments const* arguments,
                                       tegula_launch** launch) {
  return guarded([&] {
    not_null("tegula_attention_prepare", "machine", machine);
    not_null("tegula_attention_prepare", "arguments", arguments);
    not_null("tegula_attention_prepare", "launch", launch);
    Use const use(*machine);
    *launch = prepared(
        "tegula_attention_prepare", machine->machine,
        arguments_of(read_structure("tegula_attention_prepare", *arguments, kAttentionDefaults)));
  });
}
