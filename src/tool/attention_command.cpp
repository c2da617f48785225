#include <fmt/format.h>

#include <limits>
#include <memory>

#include "commands.hpp"
#include "kernel_run.hpp"
#include "output.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"

namespace tegula::tool {
namespace {

constexpr char const* kFooter =
    R"(Q and O are (batch, seq_q, heads, head_dim), K and V (batch, seq_k, kv_heads, head_dim), or with --layout bhsd the
axes of tokens and heads the other way round; the batch may be left out. The result is checked against float64,
within a bound derived from the arithmetic; a result beyond it exits with 1.

Examples:
  tegula attention --seq-q 128 --heads 2 --head-dim 64
  tegula attention --batch 2 --heads 8 --kv-heads 2 --seq-q 100 --seq-k 333 --head-dim 96 --causal --dtype f16 --device sim --json
  tegula attention --q qkv.safetensors:q --k qkv.safetensors:k --v qkv.safetensors:v --layout bhsd --output o.npy --lse lse.npy
  tegula attention --batch 4 --heads 16 --seq-q 4096 --head-dim 128 --causal --device cuda --repeat 20)";

struct Options {
  MachineOptions machine;
  std::string q, k, v, output, lse;
  // As the files say, or the default, where the command line does not say it.
  Extent batch{"batch", "--batch"}, heads{"heads", "--heads"}, kv_heads{"kv_heads", "--kv-heads"},
      seq_q{"seq_q", "--seq-q"}, seq_k{"seq_k", "--seq-k"}, head_dim{"head_dim", "--head-dim"};
  std::optional<std::string> dtype;
  std::string layout = "bshd", exponential = "ex2";
  std::optional<float> scale;  // 1 / sqrt(head_dim)
  bool causal = false, json = false, lines = false;
  int repeat = 1;
};

struct Problem {
  Operand q, k, v;
  AttentionArguments arguments;  ///< pointing to the operands; with defaults
};

/// The axes of a file's array, whichever their order.
struct Axes {
  std::int64_t batch, seq, heads, head_dim;
};
Axes axes(Operand const& operand, bool heads_first) {
  auto shape = operand.shape;
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  return {shape[0], shape[heads_first ? 2 : 1], shape[heads_first ? 1 : 2], shape[3]};
}

TokenStrides strides(std::int64_t seq, std::int64_t heads, std::int64_t head_dim, bool heads_first) {
  TokenStrides const by_token = contiguous_tokens(seq, heads, head_dim);
  return heads_first ? TokenStrides{by_token.batch, head_dim, seq * head_dim} : by_token;
}

/// Holds the problem to what a machine of any generation computes, and to the memory of this one, before its
/// data exist.
void check_before_allocation(AttentionArguments arguments) {
  auto const somewhere = [](std::uintptr_t i) { return reinterpret_cast<void*>(i << 58); };
  arguments.q = somewhere(1), arguments.k = somewhere(2), arguments.v = somewhere(3);
  arguments.o = somewhere(4);
  constexpr int kAnyGeneration = 80;
  check(arguments, kAnyGeneration);
  auto const elements = [&](std::int64_t seq, std::int64_t heads) {
    return static_cast<double>(arguments.batch) * static_cast<double>(seq) * static_cast<double>(heads) *
           static_cast<double>(arguments.head_dim);
  };
  require_memory("attention", 2.0 * (bits(arguments.dtype) / 8) *
                                  (2 * elements(arguments.seq_q, arguments.heads) +
                                   2 * elements(*arguments.seq_k, *arguments.kv_heads)));
}

/// Refuses files that cannot be written, or are meant for two things, before any work.
void check_files(Options const& o) {
  std::vector<io::NamedPath> targets = machine_targets(o.machine), inputs = machine_inputs(o.machine);
  add_array_file(targets, "--output", o.output);
  add_array_file(targets, "--lse", o.lse);
  for (auto const& [option, file] : {std::pair("--q", &o.q), {"--k", &o.k}, {"--v", &o.v}})
    add_array_file(inputs, option, *file);
  io::check_targets(targets, inputs);
}

Problem make_problem(Options o) {
  std::optional<DType> type;
  if (o.dtype) type = parse_dtype("--dtype", *o.dtype);
  if (o.q.empty() && o.k.empty() && o.v.empty() && !type) type = DType::bf16;
  bool const heads_first = o.layout == "bhsd";

  std::optional<Operand> q, k, v;
  if (!o.q.empty()) {
    q = read_operand("--q", o.q, type, 3, 4);
    type = q->type;
    Axes const a = axes(*q, heads_first);
    agree(o.batch, a.batch, "--q", o.q);
    agree(o.seq_q, a.seq, "--q", o.q);
    agree(o.heads, a.heads, "--q", o.q);
    agree(o.head_dim, a.head_dim, "--q", o.q);
  }
  for (auto const& [option, file, operand] : {std::tuple{"--k", &o.k, &k}, std::tuple{"--v", &o.v, &v}}) {
    if (file->empty()) continue;
    *operand = read_operand(option, *file, type, 3, 4);
    type = (*operand)->type;
    Axes const a = axes(**operand, heads_first);
    agree(o.batch, a.batch, option, *file);
    agree(o.seq_k, a.seq, option, *file);
    agree(o.kv_heads, a.heads, option, *file);
    agree(o.head_dim, a.head_dim, option, *file);
  }
  o.batch.otherwise(1);
  o.heads.otherwise(o.kv_heads.value > 0 ? o.kv_heads.value : 1);
  o.kv_heads.otherwise(o.heads.value);
  o.seq_q.otherwise(o.seq_k.value > 0 ? o.seq_k.value : 256);
  o.seq_k.otherwise(o.seq_q.value);
  o.head_dim.otherwise(64);
  std::int64_t const seq_q = o.seq_q.value, seq_k = o.seq_k.value, heads = o.heads.value,
                     kv_heads = o.kv_heads.value, head_dim = o.head_dim.value;

  using Shape = std::vector<std::int64_t>;
  auto const shape = [&](std::int64_t seq, std::int64_t heads) {
    return heads_first ? Shape{o.batch.value, heads, seq, head_dim}
                       : Shape{o.batch.value, seq, heads, head_dim};
  };
  AttentionArguments arguments = {
      .dtype = *type,
      .batch = o.batch.value,
      .heads = heads,
      .kv_heads = kv_heads,
      .seq_q = seq_q,
      .seq_k = seq_k,
      .head_dim = head_dim,
      .q_stride = strides(seq_q, heads, head_dim, heads_first),
      .k_stride = strides(seq_k, kv_heads, head_dim, heads_first),
      .o_stride = strides(seq_q, heads, head_dim, heads_first),
      .scale = o.scale,
      .causal = o.causal,
      .exponential = o.exponential == "polynomial" ? Exponential::polynomial : Exponential::ex2_approx};
  check_before_allocation(arguments);
  if (!q) q = generate(shape(seq_q, heads), *type, o.machine.seed, 1);
  if (!k) k = generate(shape(seq_k, kv_heads), *type, o.machine.seed, 2);
  if (!v) v = generate(shape(seq_k, kv_heads), *type, o.machine.seed, 3);

  Problem p{std::move(*q), std::move(*k), std::move(*v), with_defaults(arguments)};
  p.arguments.q = p.q.data.data();
  p.arguments.k = p.k.data.data();
  p.arguments.v = p.v.data.data();
  return p;
}

/// The rows of O that the reference numbers (batch, heads, seq_q), as doubles.
std::vector<double> output_rows(Operand const& o, AttentionArguments const& a,
                                std::vector<std::int64_t> const& rows) {
  std::vector<double> values;
  for (auto const row : rows) {
    std::int64_t const i = row % a.seq_q, head = row / a.seq_q % a.heads, batch = row / a.seq_q / a.heads;
    std::int64_t const first = batch * a.o_stride->batch + i * a.o_stride->seq + head * a.o_stride->head;
    for (std::int64_t d = 0; d < a.head_dim; ++d)
      values.push_back(reference::element(o.data.data(), o.type, first + d));
  }
  return values;
}

void run(Options const& options) {
  check_files(options);
  Problem const p = make_problem(options);
  AttentionArguments const& host = p.arguments;
  ProgressBar bar;
  Machine const machine = make_machine(options.machine, bar);

  auto const q = upload(machine, p.q, "Q"), k = upload(machine, p.k, "K"), v = upload(machine, p.v, "V");
  Buffer<std::byte> const o_buffer(machine, p.q.size() * 2, "O");
  std::int64_t const rows = host.batch * host.heads * host.seq_q;
  Buffer<std::byte> const lse_buffer(machine, rows * 4, "lse");
  AttentionArguments arguments = host;
  arguments.q = q.data(), arguments.k = k.data(), arguments.v = v.data(), arguments.o = o_buffer.data();
  arguments.lse = reinterpret_cast<float*>(lse_buffer.data());
  check(arguments, machine.compute_capability());
  AttentionChoice const choice = choose_attention(arguments, machine.properties());
  double const milliseconds = checked_launches(machine, options.machine, bar, options.repeat, options.json,
                                               [&] { attention(machine, arguments); });
  Operand const o{host.dtype, p.q.shape, o_buffer.download()};
  Operand const lse{DType::f32, {host.batch, host.heads, host.seq_q}, lse_buffer.download()};
  if (!options.output.empty()) write_operand(options.output, o);
  if (!options.lse.empty()) write_operand(options.lse, lse);

  double const pairs = host.causal ? static_cast<double>(*host.seq_k) / 2 : static_cast<double>(*host.seq_k);
  auto const checked = rows_to_check(
      rows, 4 * static_cast<double>(*host.seq_k) * static_cast<double>(host.head_dim), host.head_dim);
  auto const expected = reference::attention(host, checked);
  auto const of_o =
      reference::compare(output_rows(o, host, checked), expected.o, reference::largest_finite(host.dtype));
  auto const of_lse = reference::compare(rows_as_doubles(lse, 1, checked), expected.lse,
                                         reference::largest_finite(DType::f32));
  auto const place = [&](std::int64_t index) {
    std::int64_t const row = checked[static_cast<std::size_t>(index)];
    return fmt::format("batch {}, head {}, query {}", row / host.seq_q / host.heads,
                       row / host.seq_q % host.heads, row % host.seq_q);
  };

  Verdict verdict;
  verdict.problem = {{"kernel", "attention"},       {"batch", host.batch},
                     {"heads", host.heads},         {"kv_heads", *host.kv_heads},
                     {"seq_q", host.seq_q},         {"seq_k", *host.seq_k},
                     {"head_dim", host.head_dim},   {"dtype", to_string(host.dtype)},
                     {"layout", options.layout},    {"causal", host.causal},
                     {"scale", *host.scale},        {"exponential", options.exponential},
                     {"seed", options.machine.seed}};
  verdict.headline =
      fmt::format("attention {}: batch {}, heads {} ({} of keys), {} queries, {} keys, head dim {}{}",
                  to_string(host.dtype), host.batch, host.heads, *host.kv_heads, host.seq_q, *host.seq_k,
                  host.head_dim, host.causal ? ", causal" : "");
  verdict.configuration_index = choice.configuration;
  verdict.configuration = configuration_name(choice.kernel, choice.configuration);
  verdict.milliseconds = milliseconds;
  verdict.multiply_adds = 2 * static_cast<double>(rows) * pairs * static_cast<double>(host.head_dim);
  verdict.rows = rows;
  verdict.rows_checked = static_cast<std::int64_t>(checked.size());
  verdict.parts = {
      {"O", of_o,
       fmt::format("{}, element {}", place(of_o.worst / host.head_dim), of_o.worst % host.head_dim)},
      {"lse", of_lse, place(of_lse.worst)}};
  verdict.output = options.output;
  write_timeline(options.machine, machine, verdict.configuration);
  print_verdict(verdict, machine, options.json, options.lines);
}

}  // namespace

void add_attention_command(Command const& app) {
  auto const options = std::make_shared<Options>();
  Command const command =
      app.add_command("attention", "Attention forward: O = softmax(scale Q K^T) V, checked against float64");
  command.footer(kFooter);
  Options& o = *options;
  command.add_option("--q", o.q, "Q from FILE.npy or FILE.safetensors:NAME; generated if left out")
      .check(file_name());
  command.add_option("--k", o.k, "K, likewise").check(file_name());
  command.add_option("--v", o.v, "V, likewise").check(file_name());
  command
      .add_option("--layout", o.layout,
                  "order of the axes batch, sequence, heads, dim in files and in memory")
      .check(one_of({"bshd", "bhsd"}))
      .show_default();
  auto const extent = [&](char const* name, Extent& value, char const* text) {
    command.add_option(name, value.value, text).check(whole_number(1, kMaxExtent));
  };
  extent("--batch", o.batch, "(1 where no file says it)");
  extent("--heads", o.heads, "heads of Q and O (1)");
  extent("--kv-heads", o.kv_heads, "heads of K and V, a divisor of --heads (as many)");
  extent("--seq-q", o.seq_q, "queries (256)");
  extent("--seq-k", o.seq_k, "keys (as many as queries)");
  command.add_option("--head-dim", o.head_dim.value, "(64)").check(one_of({"32", "64", "96", "128", "256"}));
  command.add_text("--dtype", o.dtype,
                   "f16 or bf16, to which files are rounded (that of the files, or bf16)");
  command.add_option("--scale", o.scale, "of Q K^T (1 / sqrt(head_dim))").check(positive_number());
  command.add_flag("--causal", o.causal, "query i sees keys up to i + seq_k - seq_q");
  command
      .add_option("--exponential", o.exponential,
                  "ex2: the hardware's approximation; polynomial: the same bits on every machine")
      .check(one_of({"ex2", "polynomial"}))
      .show_default();
  command.add_option("--output", o.output, "write O to FILE.npy or FILE.safetensors:NAME").check(file_name());
  command.add_option("--lse", o.lse, "write the log-sum-exp, (batch, heads, seq_q) f32").check(file_name());
  command.add_option("--repeat", o.repeat, "launches to time")
      .check(whole_number(1, std::numeric_limits<int>::max()))
      .show_default();
  add_machine_options(command, o.machine);
  command.add_flag("--lines", o.lines, "what a simulated machine counted, by source line");
  command.add_flag("--json", o.json, "print one JSON object");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
