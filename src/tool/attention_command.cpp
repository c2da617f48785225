#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "attention_problem.hpp"
#include "attention_sequences.hpp"
#include "commands.hpp"
#include "kernel_run.hpp"
#include "output.hpp"
#include "tegula/device/attention_plan.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/io/text.hpp"
#include "tegula/kernel/attention_mask.hpp"

namespace tegula::tool {
namespace {

constexpr char const* kFooter =
    R"(Q is (batch, seq_q, heads, head_dim), K (batch, seq_k, kv_heads, head_dim), or with --layout bhsd the axes of tokens
and heads the other way round; V and O are the same with head_dim_v. The batch may be left out. The result is checked
against float64, within a bound derived from the arithmetic. A result beyond it, or a finding of the checker, exits
with 1.

The place of query i is key i + seq_k - seq_q. --causal hides the keys behind it, a window those further from it.
Of the three kernels, attention_sm80 has f16 and bf16, head dims of 32, 64, 96, 128 and 256, equal for K and V, with
--causal or without, but no windows, softcap, sinks, lengths or pages. attention_sm90, on an sm_90, has everything; of
--dtype e4m3 head dims are multiples of 16. attention_sm100, on an sm_100, has all that but head dims above 192 (of V
128) and keys in parts. --explain shows which is chosen and why.

Examples:
  tegula attention --seq-q 128 --heads 2 --head-dim 64
  tegula attention --batch 2 --heads 8 --kv-heads 2 --seq-q 100 --seq-k 333 --head-dim 96 --causal --dtype f16 --device sim --json
  tegula attention --seq-q 100 --seq-k 300 --heads 4 --head-dim 72 --head-dim-v 40 --causal --window-left 64 --softcap 30
  tegula attention --q qkv.safetensors:q --k qkv.safetensors:k --v qkv.safetensors:v --layout bhsd --output o.npy --lse lse.npy
  tegula attention --lengths-q 130,1,5 --lengths-k 300,77,20 --heads 8 --kv-heads 2 --causal --device sim
  tegula attention --heads 8 --kv-heads 1 --seq-q 1 --lengths-k 1000,300 --page-size 16 --splits 4 --device sim
  tegula attention --heads 8 --kv-heads 2 --seq-q 1 --lengths-k 100,60 --append 1,1 --page-size 16 --device sim
  tegula attention --heads 64 --kv-heads 1 --seq-q 1 --lengths-k 300,150 --page-size 64 --head-dim 576 --splits 2 --device sim
  tegula attention --seq-q 4096 --heads 16 --head-dim 128 --causal --device sim --explain --lines
  tegula attention --batch 4 --heads 16 --seq-q 4096 --head-dim 128 --causal --device cuda --repeat 20)";

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

/// What is asked for of the choice. As of a GEMM, a number alone is that of the sm_90 kernel.
AttentionConstraints constraints(AttentionOptions const& o) {
  AttentionConstraints wanted{.configuration = o.choice.configuration};
  if (o.choice.kernel == "sm80") wanted.kernel = attention_sm80;
  if (o.choice.kernel == "sm100") wanted.kernel = attention_sm100;
  if (o.choice.kernel == "sm90" || (wanted.configuration && !wanted.kernel))
    wanted.kernel = attention_sm90;
  return wanted;
}

/// choose(constraints of the options), with the options in front of why none answers to them.
template <class Choose> auto chosen_by(AttentionOptions const& o, Choose&& choose) {
  return chosen_as_asked({{"--kernel", o.choice.kernel},
                          {"--config", text_of(o.choice.configuration)},
                          {"--splits", o.splits.value_or(1) > 1 ? text_of(o.splits) : ""}},
                         [&] { return choose(constraints(o)); });
}

/// The problem with operands that are aligned as allocations are, for what touches no
/// memory; checked.
AttentionArguments before_allocation(AttentionProblem const& p, AttentionOptions const& o,
                                     Machine const& machine) {
  AttentionArguments const a = with_addresses(
      p, {somewhere(1), somewhere(2), somewhere(3), somewhere(10), somewhere(11), somewhere(6),
          somewhere(7), somewhere(8), somewhere(9), somewhere(4), somewhere(5)});
  auto const number = [](auto const& value) { return value ? fmt::format("{}", *value) : ""; };
  SequenceOptions const& s = o.sequences;
  std::string const page_size = s.page_size == 0 ? "" : std::to_string(s.page_size);
  std::vector<Said> all = {said("dtype", "--dtype", o.dtype),
                           said("out", "--out-type", o.out_type),
                           said("seq_new", "--append", s.append),
                           said("page_size", "--page-size", page_size),
                           said("page_table", "--page-size", page_size),
                           said("scale", "--scale", number(o.scale)),
                           said("softcap", "--softcap", number(o.softcap)),
                           said("window_left", "--window-left", number(o.window_left)),
                           said("window_right", "--window-right", number(o.window_right)),
                           said("splits", "--splits", number(o.splits)),
                           said("q_descale", "--q-descale", o.q_descale),
                           said("k_descale", "--k-descale", o.k_descale),
                           said("v_descale", "--v-descale", o.v_descale),
                           said("sink", "--sink", o.sink),
                           said("exponential", "--exponential", o.exponential),
                           {"precise", o.fast_sums ? "--fast-sums" : ""},
                           {"causal", o.causal ? "--causal" : ""}};
  if (!o.dtype) {
    for (auto const& [option, file] : {std::pair("--q", &o.q), {"--k", &o.k}, {"--v", &o.v}})
      all.push_back(said("dtype", option, *file));
  }
  all.insert(all.begin() + 2, p.extents.begin(), p.extents.end());
  named_as_said(all, [&] { check(a, machine.compute_capability()); });
  return a;
}

/// Refuses a problem that takes too much memory, before anything is generated.
void require_memory_of(AttentionProblem const& p, AttentionArguments const& a,
                       Machine const& machine) {
  Footprint all;
  for (Operand const* const operand : {&p.q, &p.k, &p.v, &p.k_new, &p.v_new}) all.add(*operand);
  all.add({*a.out, p.shape_of_o, {}});
  // Keys and values of one head in float64.
  all.checking =
      8.0 * static_cast<double>(*a.seq_k) * static_cast<double>(a.head_dim + *a.head_dim_v) +
      bytes_of_checked_rows(a.batch * a.heads * a.seq_q, *a.head_dim_v);
  require_memory_of_run(
      fmt::format("attention: --batch {}, --heads {}, --kv-heads {}, --seq-q {}, --seq-k {}, "
                  "--head-dim {}, --head-dim-v {}{}",
                  a.batch, a.heads, *a.kv_heads, a.seq_q, *a.seq_k, a.head_dim, *a.head_dim_v,
                  a.page_size == 0 ? "" : fmt::format(", --page-size {}", a.page_size)),
      all, machine);
}

/// Refuses files that cannot be written, or are meant for two things, before any work.
void check_files(AttentionOptions const& o) {
  std::vector<io::NamedPath> targets = machine_targets(o.machine),
                             inputs = machine_inputs(o.machine);
  add_array_target(targets, "--output", o.output);
  add_array_target(targets, "--lse", o.lse);
  for (auto const& [option, file] : {std::pair("--q", &o.q),
                                     {"--k", &o.k},
                                     {"--v", &o.v},
                                     {"--sink", &o.sink},
                                     {"--q-descale", &o.q_descale},
                                     {"--k-descale", &o.k_descale},
                                     {"--v-descale", &o.v_descale}})
    add_array_file(inputs, option, *file);
  io::check_targets(targets, inputs);
}

/// Pairs of a query and a key that it sees, over the queries of a head of all sequences.
double pairs_seen(AttentionArguments const& a) {
  auto const keys = [](std::optional<std::int64_t> const& window) {
    return static_cast<int>(std::min<std::int64_t>(window.value_or(AttentionMask::unlimited),
                                                   AttentionMask::unlimited));
  };
  double pairs = 0;
  for (std::int64_t b = 0; b < a.batch; ++b) {
    AttentionMask const mask = {.seq_q = static_cast<int>(Sequences::queries(a, b)),
                                .seq_k = static_cast<int>(Sequences::keys(a, b)),
                                .left = keys(a.window_left),
                                .right = a.causal ? 0 : keys(a.window_right)};
    for (int row = 0; row < mask.seq_q; ++row)
      pairs += std::max(0, mask.end(row) - mask.begin(row));
  }
  return pairs;
}

/// The rows of O that the reference numbers (batch, heads, seq_q), as doubles.
std::vector<double> output_rows(Operand const& o, AttentionArguments const& a,
                                std::vector<std::int64_t> const& rows) {
  std::vector<double> values;
  for (auto const row : rows) {
    std::int64_t const i = row % a.seq_q, head = row / a.seq_q % a.heads,
                       batch = row / a.seq_q / a.heads;
    std::int64_t const first = Sequences::offset(a, batch, i) + head * a.o_stride->head;
    for (std::int64_t d = 0; d < *a.head_dim_v; ++d)
      values.push_back(reference::element(o.data.data(), o.type, first + d));
  }
  return values;
}

/// Where the log-sum-exp of those rows stands.
std::vector<std::int64_t> lse_places(AttentionArguments const& a,
                                     std::vector<std::int64_t> const& rows) {
  std::vector<std::int64_t> places;
  for (auto const row : rows)
    places.push_back(
        Sequences::lse_place(a, row / a.seq_q / a.heads, row / a.seq_q % a.heads, row % a.seq_q));
  return places;
}

nlohmann::ordered_json describe(AttentionArguments const& a, AttentionOptions const& o) {
  nlohmann::ordered_json j = {{"kernel", "attention"},
                              {"batch", a.batch},
                              {"heads", a.heads},
                              {"kv_heads", *a.kv_heads},
                              {"seq_q", a.seq_q},
                              {"seq_k", *a.seq_k},
                              {"head_dim", a.head_dim},
                              {"head_dim_v", *a.head_dim_v},
                              {"dtype", to_string(a.dtype)},
                              {"out_type", to_string(*a.out)},
                              {"layout", o.layout},
                              {"causal", a.causal}};
  if (a.window_left) j["window_left"] = *a.window_left;
  if (a.window_right) j["window_right"] = *a.window_right;
  if (o.sequences.lengths_q) j["lengths_q"] = *o.sequences.lengths_q;
  if (o.sequences.lengths_k) j["lengths_k"] = *o.sequences.lengths_k;
  if (o.sequences.append) j["append"] = *o.sequences.append;
  if (o.sequences.page_size > 0) j["page_size"] = o.sequences.page_size;
  j["softcap"] = a.softcap;
  j["sink"] = a.sink != nullptr;
  j["scale"] = *a.scale;
  j["exponential"] = o.exponential;
  j["seed"] = o.machine.seed;
  return j;
}

/// Bytes of the workspace that the choice asked for takes.
std::int64_t workspace_bytes(AttentionArguments const& a, AttentionOptions const& o,
                             Machine const& machine) {
  return chosen_by(o, [&](AttentionConstraints const& wanted) {
    return attention_workspace_bytes(a, machine.properties(), wanted);
  });
}

/// Prints the plan of a checked problem, with the workspace that it takes.
void explain(AttentionArguments a, AttentionOptions const& o, Machine const& machine) {
  a.workspace_bytes = workspace_bytes(a, o, machine);
  AttentionPlan const plan = chosen_by(o, [&](AttentionConstraints const& wanted) {
    return plan_attention(a, machine.properties(), wanted);
  });
  print_plan(plan, machine, o, describe(a, o), [](AttentionCandidate const& c) {
    return nlohmann::ordered_json{{"cost", c.cost}};
  });
}

void run(AttentionOptions const& options) {
  check_machine_options(options.machine, options.explain);
  check_files(options);
  ProgressBar bar;
  Machine const machine = make_machine(options.machine, bar);
  AttentionProblem p = read_problem(options, machine.compute_capability());
  check_lines(options.lines, options.json, options.explain, machine);
  if (options.explain) {
    refuse_files_of_a_run({{"--output", options.output}, {"--lse", options.lse}});
    return explain(before_allocation(p, options, machine), options, machine);
  }
  require_memory_of(p, before_allocation(p, options, machine), machine);

  generate_missing({&p.q, &p.k, &p.v, &p.k_new, &p.v_new}, options.machine.seed);
  auto const q = upload(machine, p.q, "Q"), k = upload(machine, p.k, "K"),
             v = upload(machine, p.v, "V"), k_new = upload(machine, p.k_new, "k_new"),
             v_new = upload(machine, p.v_new, "v_new"), sink = upload(machine, p.sink, "sink"),
             q_descale = upload(machine, p.q_descale, "q_descale"),
             k_descale = upload(machine, p.k_descale, "k_descale"),
             v_descale = upload(machine, p.v_descale, "v_descale");
  AttentionArguments const host =
      with_addresses(p, {p.q.data.data(), p.k.data.data(), p.v.data.data(), p.k_new.data.data(),
                         p.v_new.data.data(), p.sink.data.data(), p.q_descale.data.data(),
                         p.k_descale.data.data(), p.v_descale.data.data(), nullptr, nullptr});
  TokenExtents const tokens = query_extents(host);
  std::int64_t const rows = host.batch * host.heads * host.seq_q, dim_v = *host.head_dim_v,
                     stored = tokens.batch * tokens.seq * host.heads;
  Buffer<std::byte> const o_buffer(machine, stored * dim_v * (bits(*host.out) / 8), "O"),
      lse_buffer(machine, stored * 4, "lse");
  UploadedSequences const sequences(machine, *p.sequences);
  AttentionArguments arguments = with_addresses(
      p, {q.data(), k.data(), v.data(), k_new.data(), v_new.data(), sink.data(), q_descale.data(),
          k_descale.data(), v_descale.data(), o_buffer.data(), lse_buffer.data()});
  sequences.put(arguments);
  check(arguments, machine.compute_capability());
  Buffer<std::byte> const workspace(machine, workspace_bytes(arguments, options, machine),
                                    "workspace");
  arguments.workspace_bytes = workspace.size();
  if (workspace.size() > 0) arguments.workspace = workspace.data();
  check(arguments, machine.compute_capability());
  AttentionChoice const choice = chosen_by(options, [&](AttentionConstraints const& wanted) {
    return choose_attention(arguments, machine.properties(), wanted);
  });
  double const milliseconds =
      checked_launches(machine, options.machine, bar, options.repeat, options.json,
                       [&] { attention(machine, arguments, choice); });
  Operand const o{*host.out, p.shape_of_o, o_buffer.download()};
  Operand const lse{DType::f32, {tokens.batch, host.heads, tokens.seq}, lse_buffer.download()};
  if (!options.output.empty()) write_operand("--output", options.output, o);
  if (!options.lse.empty()) write_operand("--lse", options.lse, lse);

  double const products = static_cast<double>(host.head_dim + dim_v);  // of a query and a key
  auto checked = rows_to_check(rows, 2 * static_cast<double>(*host.seq_k) * products, dim_v);
  std::erase_if(checked, [&](std::int64_t row) {
    return row % host.seq_q >= Sequences::queries(host, row / host.seq_q / host.heads);
  });
  auto const expected = reference::attention(host, checked);
  auto const of_o = reference::compare(output_rows(o, host, checked), expected.o,
                                       reference::largest_finite(*host.out));
  auto const of_lse = reference::compare(rows_as_doubles(lse, 1, lse_places(host, checked)),
                                         expected.lse, reference::largest_finite(DType::f32));
  auto const place = [&](std::int64_t index) {
    std::int64_t const row = checked[static_cast<std::size_t>(index)];
    return fmt::format("batch {}, head {}, query {}", row / host.seq_q / host.heads,
                       row / host.seq_q % host.heads, row % host.seq_q);
  };

  Verdict verdict;
  verdict.problem = describe(host, options);
  verdict.headline = "attention " + to_string(host);
  verdict.configuration_index = choice.configuration;
  verdict.configuration = configuration_name(choice.kernel, choice.configuration);
  verdict.milliseconds = milliseconds;
  verdict.multiply_adds = static_cast<double>(host.heads) * pairs_seen(host) * products;
  verdict.rows = rows;
  verdict.rows_checked = static_cast<std::int64_t>(checked.size());
  verdict.parts = {
      {"O", of_o, fmt::format("{}, element {}", place(of_o.worst / dim_v), of_o.worst % dim_v)},
      {"lse", of_lse, place(of_lse.worst)}};
  for (auto const& [name, operand] : {std::pair("Q", &p.q),
                                      {"K", &p.k},
                                      {"V", &p.v},
                                      {"sink", &p.sink},
                                      {"q_descale", &p.q_descale},
                                      {"k_descale", &p.k_descale},
                                      {"v_descale", &p.v_descale}})
    verdict.tell_losses(name, operand->type, operand->lost);
  verdict.output = options.output;
  write_timeline(options.machine, machine, verdict.configuration);
  print_verdict(verdict, machine, options.json, options.lines);
}

}  // namespace

void add_attention_command(Command const& app) {
  auto const options = std::make_shared<AttentionOptions>();
  Command const command = app.add_command(
      "attention", "Attention forward: O = softmax(scale Q K^T) V, checked against float64");
  command.footer(kFooter);
  AttentionOptions& o = *options;
  command.add_option("--q", o.q, "Q, from FILE.npy or FILE.safetensors:NAME; generated if left out")
      .check(file_name());
  command.add_option("--k", o.k, "K, likewise").check(file_name());
  command.add_option("--v", o.v, "V, likewise").check(file_name());
  command
      .add_option(
          "--layout", o.layout,
          "order of the axes in files and in memory: (batch, sequence, heads, head_dim), or heads "
          "before sequence")
      .check(one_of({"bshd", "bhsd"}))
      .show_default();
  auto const extent = [&](char const* name, Extent& value, char const* text) {
    command.add_option(name, value.value, text).check(whole_number(1, kMaxExtent));
  };
  extent("--batch", o.batch, "number of sequences (default: as the files have it, else 1)");
  extent("--heads", o.heads,
         "heads of Q and O (default: as the files have it, else as many as --kv-heads, else 1)");
  extent("--kv-heads", o.kv_heads,
         "heads of K and V, of which --heads is a multiple (default: as many)");
  extent("--seq-q", o.seq_q, "queries of a sequence (default: as many as keys, else 256)");
  extent("--seq-k", o.seq_k, "keys of a sequence (default: as many as queries)");
  command
      .add_option("--head-dim", o.head_dim.value,
                  "head dim of Q and K (default: that of V, beside 512 of V 576, else 64)")
      .check(multiple(8, 8, 256, 576));
  command
      .add_option(
          "--head-dim-v", o.head_dim_v.value,
          "head dim of V and O (default: that of Q and K; beside 576 it is 512, and V the first "
          "columns of K)")
      .check(multiple(8, 8, 256, 512));
  command.add_text(
      "--dtype", o.dtype,
      "type of Q, K and V: f16, bf16 or e4m3, to which files of another type are rounded "
      "(default: that of the files, else bf16)");
  command.add_text("--out-type", o.out_type,
                   "type of O: f16 or bf16 (default: --dtype; bf16 where that is e4m3)");
  command.add_option("--scale", o.scale, "factor of Q K^T (default: 1 / sqrt(head_dim))")
      .check(power_of_two_range(kLeastScalePower, kMostScalePower));
  command.add_flag("--causal", o.causal,
                   "query i sees the keys up to i + seq_k - seq_q, which is its place");
  auto const window = [&](char const* name, std::optional<int>& keys, char const* text) {
    command.add_option(name, keys, text).check(whole_number(0, kMostInt));
  };
  window("--window-left", o.window_left,
         "how many keys before its place a query sees (default: all)");
  window("--window-right", o.window_right,
         "how many keys behind its place a query sees (default: all; with --causal none)");
  command.add_flag(
      "--fast-sums", o.fast_sums,
      "of e4m3: leave sums over keys to the tensor core, which keeps 13 bits of them. Faster, "
      "and less exact the more keys there are (default: in f32)");
  command
      .add_option("--softcap", o.softcap,
                  "make a score s softcap tanh(s / softcap) (default: no cap)")
      .check(power_of_two_range(kLeastSoftcapPower, kMostSoftcapPower));
  command
      .add_option(
          "--sink", o.sink,
          "a number for each head, (heads) of f32, which every row of the head has as one more score, "
          "without a value: from such a file")
      .check(file_name());
  auto const factors = [&](char const* name, std::string& file, char const* operand) {
    command
        .add_option(
            name, file,
            fmt::format(
                "factors of {} where it is e4m3: (batch, kv_heads) of f32, from such a file",
                operand))
        .check(file_name());
  };
  factors("--q-descale", o.q_descale, "Q");
  factors("--k-descale", o.k_descale, "K");
  factors("--v-descale", o.v_descale, "V");
  command
      .add_option(
          "--exponential", o.exponential,
          "how exponentials are computed: ex2, by the GPU's instruction; polynomial, with the same bits on "
          "every machine")
      .check(one_of({"ex2", "polynomial"}))
      .show_default();
  command.add_text(
      "--lengths-q", o.sequences.lengths_q,
      "how many queries each sequence has, such as 130,1,5; Q has one sequence behind the other");
  command.add_text(
      "--lengths-k", o.sequences.lengths_k,
      "how many keys each sequence has. K and V are a cache of which a sequence uses its first keys; "
      "with --lengths-q, without --append and --page-size, one sequence lies behind the other");
  command.add_text(
      "--append", o.sequences.append,
      "how many new keys each sequence gets, behind its --lengths-k: another kernel writes them to the "
      "cache first");
  command
      .add_option("--page-size", o.sequences.page_size,
                  "lay K and V in pages of so many tokens, in shuffled order")
      .check(page_size());
  command
      .add_option(
          "--splits", o.splits,
          "into how many parts keys are divided among CTAs, for few queries (default: as is predicted to be "
          "best)")
      .check(whole_number(1, kMostSplits));
  command.add_option("--output", o.output, "write O to FILE.npy or FILE.safetensors:NAME")
      .check(file_name());
  command
      .add_option("--lse", o.lse,
                  "write the log-sum-exp, (batch, heads, seq_q) of f32, to such a file")
      .check(file_name());
  add_repeat(command, o.repeat, o.machine);
  command.add_flag(
      "--explain", o.explain,
      "run nothing: print the configurations that could compute the problem, what each is estimated to "
      "cost, and why one is chosen; with --lines also those that could not, and why");
  command
      .add_option(
          "--kernel", o.choice.kernel,
          "the generation that the kernel is written for (default: the newest of this build that computes the "
          "problem)")
      .check(one_of({"sm100", "sm90", "sm80"}))
      .group("choice");
  command
      .add_option(
          "--config", o.choice.configuration,
          "number of the configuration, as --explain and `tegula info` show it: of attention_sm90 where "
          "--kernel is left out")
      .check(whole_number(0, kMostInt))
      .group("choice");
  add_machine_options(command, o.machine);
  command.add_flag("--lines", o.lines, "print what the simulated GPU counted, by source line");
  command.add_flag("--json", o.json, "print one JSON object");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
