#include <fmt/format.h>

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

constexpr tegula_attention_arguments kDefaults = {
    .batch = 1,
    .heads = 1,
    .kv_heads = TEGULA_LEFT_OUT,
    .seq_k = TEGULA_LEFT_OUT,
    .head_dim_v = TEGULA_LEFT_OUT,
    .window_left = TEGULA_LEFT_OUT,
    .window_right = TEGULA_LEFT_OUT,
};

std::optional<TokenStrides> strides_of(tegula_token_strides const* strides) {
  if (strides == nullptr) return {};
  return TokenStrides{strides->batch, strides->seq, strides->head};
}

AttentionArguments arguments_of(tegula_attention_arguments const& a) {
  std::optional<DType> const dtype = dtype_of("attention", "dtype", a.dtype);
  if (!dtype)
    throw argument_error("attention: dtype is left out; it must be the type of q, k, v and o.");
  if (bits(*dtype) == 8)
    throw argument_error(fmt::format(
        "attention: dtype is {}, whose factors and output type this interface cannot say; f16 and "
        "bf16 are computed.",
        to_string(*dtype)));
  return {.dtype = *dtype,
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
          .sink = a.sink};
}

/// Precondition: checked arguments, with nothing left out.
void simulate(tegula_machine& machine, AttentionArguments const& host, tegula_report** report) {
  std::int64_t const bytes = bits(host.dtype) / 8;
  auto const tokens = [&](char const* name, void const* address, std::int64_t seq,
                          std::int64_t heads, std::int64_t head_dim, TokenStrides const& s) {
    return HostArray{name,
                     address,
                     head_dim * bytes,
                     {host.batch, seq, heads},
                     {s.batch * bytes, s.seq * bytes, s.head * bytes}};
  };
  std::int64_t const dim = host.head_dim, dim_v = *host.head_dim_v;
  HostArray const host_q = tokens("Q", host.q, host.seq_q, host.heads, dim, *host.q_stride),
                  host_k = tokens("K", host.k, *host.seq_k, *host.kv_heads, dim, *host.k_stride),
                  host_v = tokens("V", host.v, *host.seq_k, *host.kv_heads, dim_v, *host.v_stride),
                  host_o = tokens("O", host.o, host.seq_q, host.heads, dim_v, *host.o_stride);
  std::int64_t const rows = host.batch * host.heads * host.seq_q;
  HostArray const host_lse = {
      .name = "lse", .address = host.lse, .row = rows * std::int64_t{sizeof(float)}};
  require_memory("attention", {host_q, host_k, host_v, host_o, host_lse});
  OnMachine q(machine.machine, host_q), k(machine.machine, host_k), v(machine.machine, host_v);
  OnMachine const o(machine.machine, host_o), lse(machine.machine, host_lse);
  OnMachine sink(
      machine.machine,
      {.name = "sink", .address = host.sink, .row = host.heads * std::int64_t{sizeof(float)}});
  for (OnMachine* const input : {&q, &k, &v, &sink}) input->upload();
  AttentionArguments a = host;
  a.q = q.data();
  a.k = k.data();
  a.v = v.data();
  a.o = o.data();
  a.lse = static_cast<float*>(lse.data());
  a.sink = static_cast<float const*>(sink.data());
  launch_and_report(
      machine, report, [&] { attention(machine.machine, a); },
      [&] {
        o.download(host.o);
        lse.download(host.lse);
      });
}

}  // namespace
}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

void tegula_attention_arguments_init(tegula_attention_arguments* arguments, size_t struct_size) {
  initialise(arguments, struct_size, kDefaults);
}

tegula_status tegula_attention(tegula_machine* machine, tegula_attention_arguments const* arguments,
                               void* stream, tegula_report** report) {
  return guarded([&] {
    not_null("tegula_attention", "machine", machine);
    not_null("tegula_attention", "arguments", arguments);
    AttentionArguments const a =
        arguments_of(read_structure("tegula_attention", *arguments, kDefaults));
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
    AttentionArguments const a =
        arguments_of(read_structure("tegula_attention_choice", *arguments, kDefaults));
    check(a, machine->machine.compute_capability());
    AttentionChoice const choice = choose_attention(a, machine->machine.properties());
    *text = as_c_text(configuration_name(choice.kernel, choice.configuration));
  });
}

tegula_status tegula_attention_prepare(tegula_machine* machine,
                                       tegula_attention_arguments const* arguments,
                                       tegula_launch** launch) {
  return guarded([&] {
    not_null("tegula_attention_prepare", "machine", machine);
    not_null("tegula_attention_prepare", "arguments", arguments);
    not_null("tegula_attention_prepare", "launch", launch);
    *launch =
        prepared("tegula_attention_prepare", machine->machine,
                 arguments_of(read_structure("tegula_attention_prepare", *arguments, kDefaults)));
  });
}
