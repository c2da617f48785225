#include "gemm_problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <tuple>

#include "tegula/device/quantize_blocks.hpp"

namespace tegula::tool {
namespace {

constexpr std::int64_t kDefaultExtent = 256;

}  // namespace

DType parse_operand_type(char const* option, std::string const& name, bool scaled) {
  constexpr DType small[] = {DType::e2m1, DType::e2m3, DType::e3m2};
  auto const* const type = std::find_if(std::begin(small), std::end(small),
                                        [&](DType t) { return name == to_string(t); });
  if (type == std::end(small) && scaled)
    return parse_dtype(option, name,
                       {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1},
                       "with --scales mx or nv ");
  if (type == std::end(small))
    return parse_dtype(option, name,
                       {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2});
  if (scaled) return *type;
  throw argument_error(fmt::format("{} is {} and --scales is left out; of {} it must be mx{}.",
                                   option, name, name, *type == DType::e2m1 ? " or nv" : ""));
}

bool has_block_scales(GemmOptions const& o) { return o.scales == "mx" || o.scales == "nv"; }

Shape batched(std::int64_t batch, Shape shape) {
  if (batch > 1) shape.insert(shape.begin(), batch);
  return shape;
}

GemmProblem read_problem(GemmOptions o) {
  std::optional<DType> in, in_b, out;
  bool const scaled = has_block_scales(o);
  if (o.dtype) in = parse_operand_type("--dtype", *o.dtype, scaled);
  if (o.dtype_b) in_b = parse_operand_type("--in-b", *o.dtype_b, scaled);
  if (o.out_type)
    out = parse_dtype("--out-type", *o.out_type, {DType::f16, DType::bf16, DType::f32});
  if (scaled && !in) in = o.scales == "nv" ? DType::e2m1 : DType::e4m3;
  if (o.a.empty() && o.b.empty() && !in) in = DType::bf16;
  if (!in_b) in_b = in;
  o.trans_b = o.trans_b || scaled;

  // Reads a file of `rank` axes, or one more, the batches, in front; gives the strides
  // between these.
  auto const matrices = [&](char const* option, std::string const& file, std::optional<DType> type,
                            Extent& rows, Extent& columns) {
    Operand operand = read_operand(option, file, type, 2, 3);
    Shape const& shape = operand.shape;
    if (shape.size() == 3) agree(o.batch, shape[0], option, file);
    agree(rows, shape[shape.size() - 2], option, file);
    agree(columns, shape[shape.size() - 1], option, file);
    return operand;
  };
  std::optional<Operand> a, b, c, bias;
  if (!o.a.empty()) {
    auto const type = scaled ? DType::f32 : in;
    a = o.trans_a ? matrices("--a", o.a, type, o.k, o.m) : matrices("--a", o.a, type, o.m, o.k);
    if (!scaled) in = a->type;
    if (!in_b && bits(*in) != 8) in_b = in;  // beside an fp8 A, B stays what its file holds
  }
  if (!o.b.empty()) {
    auto const type = scaled ? DType::f32 : in_b;
    b = o.trans_b ? matrices("--b", o.b, type, o.n, o.k) : matrices("--b", o.b, type, o.k, o.n);
    if (!scaled) in_b = b->type;
    if (!in) in = in_b;
  }
  if (!in_b) in_b = in;
  if (!out) out = default_output(*in);
  if (!o.c.empty()) {
    c = matrices("--c", o.c, out, o.m, o.n);
  }
  float const beta = o.beta.value_or(c ? 1.0f : 0.0f);
  if (!o.bias.empty()) {
    bias = read_operand("--bias", o.bias, out, 1, 1);
    agree(o.n, bias->shape[0], "--bias", o.bias);
  }
  std::vector<Said> const extents = {said(o.m), said(o.n), said(o.k), said(o.batch)};
  for (auto* const extent : {&o.m, &o.n, &o.k}) extent->otherwise(kDefaultExtent);
  o.batch.otherwise(1);
  std::int64_t const m = o.m.value, n = o.n.value, k = o.k.value, batch = o.batch.value;
  for (auto const& [type, transposed, option] :
       {std::tuple(*in, !o.trans_a, "A is stored as (k, m) with --trans-a"),
        std::tuple(*in_b, o.trans_b, "B is stored as (k, n) without --trans-b")})
    if (!transposed && (type == DType::tf32 || bits(type) <= 8))
      throw argument_error(
          fmt::format("gemm: {}, and of {} the tensor cores read only what is contiguous along k.",
                      option, to_string(type)));

  GemmProblem p;
  p.extents = extents;
  auto const shared = [&](std::optional<Operand> const& file) {
    return file && file->shape.size() == 2;
  };
  p.arguments = {.in = *in,
                 .in_b = *in_b,
                 .out = *out,
                 .a_major = o.trans_a ? Major::mn : Major::k,
                 .b_major = o.trans_b ? Major::k : Major::mn,
                 .m = m,
                 .n = n,
                 .k = k,
                 .batch = batch,
                 .alpha = o.alpha,
                 .beta = beta,
                 .activation = named<Activation>(o.activation, {{"none", Activation::none},
                                                                {"relu", Activation::relu},
                                                                {"gelu", Activation::gelu},
                                                                {"silu", Activation::silu}})};
  if (scaled) {
    // Rows are padded to what TMA can address.
    auto const padded = [&](DType type) {
      int const unit = are_pairs(*in, *in_b) || bits(type) == 8 ? 128 / bits(type) : 128;
      return (k + unit - 1) / unit * unit;
    };
    p.arguments.block_scale = o.scales == "nv" ? kNvScale : kMxScale;
    p.arguments.lda = padded(*in), p.arguments.ldb = padded(*in_b);
  }
  if (shared(a)) p.arguments.a_batch_stride = 0;
  if (shared(b)) p.arguments.b_batch_stride = 0;
  if (shared(c)) p.arguments.c_batch_stride = 0;
  auto const or_empty = [](std::optional<Operand>& file, DType type, Shape shape) {
    return file ? std::move(*file) : Operand{type, std::move(shape), {}};
  };
  p.a =
      or_empty(a, scaled ? DType::f32 : *in, batched(batch, o.trans_a ? Shape{k, m} : Shape{m, k}));
  p.b = or_empty(b, scaled ? DType::f32 : *in_b,
                 batched(batch, o.trans_b ? Shape{n, k} : Shape{k, n}));
  p.c = or_empty(c, *out, beta != 0 ? batched(batch, {m, n}) : Shape{});
  p.bias = or_empty(bias, *out, {});
  p.scales = {o.scale_a.value_or(1), o.scale_b.value_or(1)};
  return p;
}

void quantise(GemmProblem& p) {
  GemmArguments const& g = p.arguments;
  if (g.block_scale.block == 0) return;
  p.block_scale_a = quantise(p.a, g.in, g.block_scale, g.m, g.k, *g.lda);
  p.block_scale_b = quantise(p.b, *g.in_b, g.block_scale, g.n, g.k, *g.ldb);
}

std::vector<std::uint8_t> quantise(Operand& x, DType type, BlockScale const& how, std::int64_t rows,
                                   std::int64_t k, std::int64_t ld) {
  auto const of_matrix = static_cast<std::size_t>(rows * k);
  std::vector<float> values(x.data.size() / sizeof(float));
  std::memcpy(values.data(), x.data.data(), x.data.size());
  std::vector<std::byte> elements;
  std::vector<std::uint8_t> scales;
  for (std::size_t first = 0; first < values.size(); first += of_matrix) {
    QuantizedBlocks const q = quantize_blocks(type, how, rows, k, ld, values.data() + first);
    auto const bytes = std::as_bytes(std::span(q.elements));
    elements.insert(elements.end(), bytes.begin(), bytes.end());
    scales.insert(scales.end(), q.scales.begin(), q.scales.end());
  }
  std::int64_t const matrices = static_cast<std::int64_t>(values.size() / of_matrix);
  x = {DType::u8, {matrices * rows, ld * bits(type) / 8}, std::move(elements)};
  return scales;
}

GemmArguments with_addresses(GemmProblem const& p, GemmOptions const& o, GemmAddresses const& at) {
  GemmArguments g = p.arguments;
  g.a = at.a, g.b = at.b, g.d = at.d;
  g.c = g.beta != 0 ? at.c : nullptr;
  g.bias = o.bias.empty() ? nullptr : at.bias;
  g.scale_a = o.scale_a ? at.scales : nullptr;
  g.scale_b = o.scale_b ? at.scales + 1 : nullptr;
  if (has_block_scales(o)) g.block_scale_a = at.block_scale_a, g.block_scale_b = at.block_scale_b;
  return g;
}

}  // namespace tegula::tool
