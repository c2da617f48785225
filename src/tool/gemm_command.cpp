#include <fmt/format.h>

#include <memory>

#include "commands.hpp"
#include "kernel_run.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"

namespace tegula::tool {
namespace {

constexpr char const* kFooter =
    R"(A is (m, k), or (k, m) with --trans-a; B is (k, n), or (n, k) with --trans-b; C and D are (m, n); bias is (n).
Every array is dense and row-major. The result is checked against float64, within a bound derived from the
arithmetic; a result beyond it exits with 1.

Examples:
  tegula gemm --m 512 --n 512 --k 256
  tegula gemm --m 100 --n 70 --k 33 --dtype f16 --out-type f32 --trans-b --device sim --arch sm80 --json
  tegula gemm --a x.npy --b model.safetensors:encoder.weight --trans-b --bias model.safetensors:encoder.bias --dtype f16 --output y.npy
  tegula gemm --m 8192 --n 8192 --k 8192 --device cuda --repeat 20)";

struct Options {
  MachineOptions machine;
  std::string a, b, c, bias, output;
  std::int64_t m = 0, n = 0, k = 0;  // 0: as the files say, or the default
  std::string dtype, out_type;
  bool trans_a = false, trans_b = false, json = false, lines = false;
  float alpha = 1, beta = 0;
  int repeat = 1;
};

constexpr std::int64_t kDefaultExtent = 256;

/// The operands as kernels and reference read them.
struct Problem {
  Operand a, b, c, bias;
  GemmArguments arguments;  ///< pointing to the operands
};

Problem make_problem(Options o) {
  std::optional<DType> in, out;
  if (!o.dtype.empty()) in = parse_dtype(o.dtype);
  if (!o.out_type.empty()) out = parse_dtype(o.out_type);
  if (o.a.empty() && o.b.empty() && !in) in = DType::bf16;

  std::optional<Operand> a, b, c, bias;
  if (!o.a.empty()) {
    a = read_operand("--a", o.a, in, 2, 2);
    in = a->type;
    agree(o.m, a->shape[o.trans_a ? 1 : 0], "m", o.a);
    agree(o.k, a->shape[o.trans_a ? 0 : 1], "k", o.a);
  }
  if (!o.b.empty()) {
    b = read_operand("--b", o.b, in, 2, 2);
    in = b->type;
    agree(o.k, b->shape[o.trans_b ? 1 : 0], "k", o.b);
    agree(o.n, b->shape[o.trans_b ? 0 : 1], "n", o.b);
  }
  if (!out) out = in;
  if (!o.c.empty()) {
    c = read_operand("--c", o.c, out, 2, 2);
    agree(o.m, c->shape[0], "m", o.c);
    agree(o.n, c->shape[1], "n", o.c);
    if (o.beta == 0) o.beta = 1;
  }
  if (!o.bias.empty()) {
    bias = read_operand("--bias", o.bias, out, 1, 1);
    agree(o.n, bias->shape[0], "n", o.bias);
  }
  for (auto* const extent : {&o.m, &o.n, &o.k})
    if (*extent == 0) *extent = kDefaultExtent;

  using Shape = std::vector<std::int64_t>;
  std::uint64_t const seed = o.machine.seed;
  if (!a) a = generate(o.trans_a ? Shape{o.k, o.m} : Shape{o.m, o.k}, *in, seed, 1);
  if (!b) b = generate(o.trans_b ? Shape{o.n, o.k} : Shape{o.k, o.n}, *in, seed, 2);
  if (!c) c = o.beta != 0 ? generate({o.m, o.n}, *out, seed, 3) : Operand{*out, {0}, {}};
  if (!bias) bias = Operand{*out, {0}, {}};

  Problem p{std::move(*a), std::move(*b), std::move(*c), std::move(*bias), {}};
  p.arguments = {.in = *in,
                 .out = *out,
                 .a_major = o.trans_a ? Major::mn : Major::k,
                 .b_major = o.trans_b ? Major::k : Major::mn,
                 .m = o.m,
                 .n = o.n,
                 .k = o.k,
                 .a = p.a.data.data(),
                 .b = p.b.data.data(),
                 .c = p.c.data.empty() ? nullptr : p.c.data.data(),
                 .bias = p.bias.data.empty() ? nullptr : p.bias.data.data(),
                 .alpha = o.alpha,
                 .beta = o.beta};
  return p;
}

void run(Options const& o) {
  Problem const p = make_problem(o);
  GemmArguments const& host = p.arguments;
  ProgressBar bar;
  Machine const machine = make_machine(o.machine, bar);

  auto const a = upload(machine, p.a, "A"), b = upload(machine, p.b, "B"), c = upload(machine, p.c, "C"),
             bias = upload(machine, p.bias, "bias");
  Operand d{host.out, {host.m, host.n}, {}};
  Buffer<std::byte> const d_buffer(machine, host.m * host.n * (bits(host.out) / 8), "D");
  GemmArguments arguments = host;
  arguments.a = a.data(), arguments.b = b.data(), arguments.c = c.data(), arguments.bias = bias.data(),
  arguments.d = d_buffer.data();
  check(arguments, machine.compute_capability());
  int const configuration = select(arguments, gemm_configurations(), machine.properties());
  double const milliseconds = time_launches(machine, o.repeat, [&] { gemm(machine, arguments); });
  bar.clear();
  d.data = d_buffer.download();
  if (!o.output.empty()) write_operand(o.output, d);

  auto const rows = rows_to_check(host.m, static_cast<double>(host.n) * static_cast<double>(host.k));
  auto const comparison = reference::compare(rows_as_doubles(d, host.n, rows), reference::gemm(host, rows),
                                             reference::largest_finite(host.out));
  Verdict verdict;
  verdict.problem = {{"kernel", "gemm"},
                     {"m", host.m},
                     {"n", host.n},
                     {"k", host.k},
                     {"in", to_string(host.in)},
                     {"out", to_string(host.out)},
                     {"trans_a", o.trans_a},
                     {"trans_b", o.trans_b},
                     {"alpha", host.alpha},
                     {"beta", host.beta},
                     {"bias", host.bias != nullptr},
                     {"seed", o.machine.seed}};
  verdict.headline = fmt::format(
      "D ({}, {}) {} = {}A{} ({}, {}) {} x B{} ({}, {}) {}{}{}", host.m, host.n, to_string(host.out),
      host.alpha == 1 ? "" : fmt::format("{} ", host.alpha), o.trans_a ? "^T" : "", p.a.shape[0],
      p.a.shape[1], to_string(host.in), o.trans_b ? "^T" : "", p.b.shape[0], p.b.shape[1], to_string(host.in),
      host.beta == 0 ? "" : fmt::format(" + {} C", host.beta), host.bias == nullptr ? "" : " + bias");
  verdict.configuration_index = configuration;
  verdict.configuration = to_string(gemm_configurations()[static_cast<std::size_t>(configuration)]);
  verdict.milliseconds = milliseconds;
  verdict.multiply_adds =
      static_cast<double>(host.m) * static_cast<double>(host.n) * static_cast<double>(host.k);
  verdict.rows = host.m;
  verdict.rows_checked = static_cast<std::int64_t>(rows.size());
  verdict.parts = {
      {"D", comparison,
       fmt::format("row {}, column {}", rows[static_cast<std::size_t>(comparison.worst / host.n)],
                   comparison.worst % host.n)}};
  verdict.output = o.output;
  print_verdict(verdict, machine, o.json, o.lines);
}

}  // namespace

void add_gemm_command(CLI::App& app) {
  auto const options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand(
      "gemm", "Multiply matrices: D = alpha A B + beta C + bias, checked against float64");
  command.footer(kFooter);
  Options& o = *options;
  command.add_option("--a", o.a, "A from FILE.npy or FILE.safetensors:NAME; generated if left out");
  command.add_option("--b", o.b, "B, likewise");
  command.add_option("--c", o.c, "C, likewise; --beta is then 1 unless given");
  command.add_option("--bias", o.bias, "a row that is added to every row of D");
  command.add_option("--m", o.m, "rows of D (256 where no file says it)")->check(whole_number(1));
  command.add_option("--n", o.n, "columns of D (256)")->check(whole_number(1));
  command.add_option("--k", o.k, "columns of A, rows of B (256)")->check(whole_number(1));
  command.add_option("--dtype", o.dtype,
                     "of A and B, to which files are rounded: f16 or bf16 (that of the files, or bf16)");
  command.add_option("--out-type", o.out_type, "of D, C and bias: f16, bf16 or f32 (that of A)");
  command.add_flag("--trans-a", o.trans_a, "A is stored as (k, m)");
  command.add_flag("--trans-b", o.trans_b, "B is stored as (n, k)");
  command.add_option("--alpha", o.alpha)->capture_default_str();
  command.add_option("--beta", o.beta)->capture_default_str();
  command.add_option("--output", o.output, "write D to FILE.npy or FILE.safetensors:NAME");
  command.add_option("--repeat", o.repeat, "launches to time")->check(whole_number(1))->capture_default_str();
  add_machine_options(command, o.machine);
  command.add_flag("--lines", o.lines, "what a simulated machine counted, by source line");
  command.add_flag("--json", o.json, "print one JSON object");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
