#include "gemm_problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>

#include "tegula/device/quantize_blocks.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

constexpr std::int64_t kDefaultExtent = 256;

/// The types of A and of B.
std::vector<DType> operand_types(std::string const& scales, bool grouped, int compute_capability) {
  if (scales == "nv") return {DType::e2m1};
  if (scales == "mx" && grouped) return {DType::e4m3, DType::e5m2, DType::e2m1};
  if (scales == "mx") return {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
  if (scales.starts_with("1x128")) return {DType::e4m3, DType::e5m2};
  // Without scales sm_90's kernel of groups multiplies no fp8.
  if (compute_capability < 90 || (scales == "none" && compute_capability < 100))
    return {DType::f16, DType::bf16};
  if (grouped || scales == "none") return {DType::f16, DType::bf16, DType::e4m3, DType::e5m2};
  return {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2};
}

/// As NVFP4 has it: the largest value becomes the largest element times the largest scale. No
/// subnormal, which would be too coarse to divide by.
float tensor_factor(Operand const& x) {
  constexpr float kLargest = 6.0f * 448.0f;
  float largest = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double const value = std::abs(reference::element(x.data.data(), x.type, i));
    if (std::isfinite(value)) largest = std::max(largest, static_cast<float>(value));
  }
  return largest == 0 ? 1 : std::max(largest / kLargest, std::numeric_limits<float>::min());
}

/// What was said of the scale of an operand times the factor of its file.
std::optional<float> times(std::optional<float> const& said, float factor, char const* option,
                           char const* file_option, std::string const& file) {
  if (factor == 1) return said;
  float const product = said.value_or(1) * factor;
  if (std::isfinite(product) && (product != 0 || said == 0)) return product;
  throw argument_error(fmt::format(
      "{} is {}, and {} {} is quantised with a factor of {}; their product must be a number that "
      "f32 holds.",
      option, *said, file_option, io::printable(file), factor));
}

/// Refuses types and scales that the machine multiplies in no problem, before extents and majors
/// are looked at: who mends these would be refused all the same.
void check_types(GemmArguments types, std::vector<Said> const& all, Machine const& machine) {
  types.a_major = types.b_major = Major::k;
  types.m = types.n = types.k = 128;
  types.a = somewhere(1), types.b = somewhere(2), types.d = somewhere(3);
  if (types.block_scale.block != 0)
    types.block_scale_a = somewhere(4), types.block_scale_b = somewhere(5);
  named_as_said(all, [&] { check(types, machine.compute_capability()); });
}

}  // namespace

DType parse_operand_type(char const* option, std::string const& name, std::string const& scales,
                         bool grouped, int compute_capability) {
  std::string would_do;  // of --scales, where it is left out
  for (char const* const with : {"mx", "nv"})
    for (DType const type : operand_types(with, grouped, compute_capability))
      if (bits(type) < 8 && name == to_string(type))
        would_do += (would_do.empty() ? "" : " or ") + std::string(with);
  if (scales.empty() && !would_do.empty())
    throw argument_error(
        fmt::format("{} is {} and --scales is left out; of {} it must be {}{}.", option, name, name,
                    would_do, compute_capability == 100 ? "" : ", and the machine an sm_100"));
  // One that another machine multiplies is refused as that, by the library.
  std::vector<DType> const all = operand_types(scales, grouped, /*compute_capability=*/100),
                           here = operand_types(scales, grouped, compute_capability);
  for (DType const type : all)
    if (name == to_string(type)) return type;
  std::string where;
  if (!scales.empty()) where = "with --scales " + scales;
  if (grouped) where += where.empty() ? "with --groups" : " and --groups";
  if (here.size() < all.size())
    where += fmt::format("{}on an sm_{}", where.empty() ? "" : " ", compute_capability);
  return parse_dtype(option, name, here, where.empty() ? "" : where + " ");
}

DType default_scaled_type(std::string const& scales) {
  return scales == "nv" ? DType::e2m1 : DType::e4m3;
}

bool has_block_scales(GemmOptions const& o) { return o.scales == "mx" || o.scales == "nv"; }

Shape batched(std::int64_t batch, Shape shape) {
  if (batch > 1) shape.insert(shape.begin(), batch);
  return shape;
}

std::vector<Said> types_said(GemmOptions const& o, Machine const& machine) {
  std::vector<Said> all = {said("in", "--dtype", o.dtype), said("in_b", "--in-b", o.dtype_b),
                           said("out", "--out-type", o.out_type),
                           said("block_scale", "--scales", o.scales),
                           said("machine", "--arch", machine.is_simulated() ? o.machine.arch : "")};
  if (!o.dtype) all.push_back(said("in", "--a", o.a));
  if (!o.dtype && !o.dtype_b) all.push_back(said("in_b", "--b", o.b));
  return all;
}

GemmProblem read_problem(GemmOptions o, Machine const& machine) {
  std::optional<DType> in, in_b, out;
  bool const scaled = has_block_scales(o);
  std::vector<Said> const said_of_types = types_said(o, machine);
  BlockScale const block_scale = !scaled ? BlockScale{} : o.scales == "nv" ? kNvScale : kMxScale;
  if (scaled)
    check_types({.in = default_scaled_type(o.scales), .block_scale = block_scale}, said_of_types,
                machine);
  if (o.dtype)
    in = parse_operand_type("--dtype", *o.dtype, o.scales, /*grouped=*/false,
                            machine.compute_capability());
  if (o.dtype_b)
    in_b = parse_operand_type("--in-b", *o.dtype_b, o.scales, /*grouped=*/false,
                              machine.compute_capability());
  if (o.out_type)
    out = parse_dtype("--out-type", *o.out_type, {DType::f16, DType::bf16, DType::f32});
  if (scaled && !in) in = default_scaled_type(o.scales);
  if (o.a.empty() && o.b.empty() && !in) in = DType::bf16;
  // Beside e5m2 with scales no kernel has e5m2: as with groups B is e4m3.
  if (!in_b) in_b = scaled && in == DType::e5m2 ? DType::e4m3 : in;
  o.trans_b = o.trans_b || scaled;

  // Reads a file of `rank` axes, or one more, the batches, in front; gives the strides
  // between these.
  auto const matrices = [&](char const* option, std::string const& file, std::optional<DType> type,
                            Extent& rows, Extent& columns) {
    // Beside an fp8 A, which --dtype need not say, B alone has a type to be said.
    std::vector<DType> const types =
        operand_types(o.scales, /*grouped=*/false, machine.compute_capability());
    std::string const remedy =
        in && bits(*in) == 8 ? "--in-b must be e4m3 or e5m2" : "--dtype must be " + list_of(types);
    Operand operand = read_operand(option, file, type, 2, 3, remedy);
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
  std::vector<Said> extents = {said(o.m), said(o.n), said(o.k), said(o.batch)};
  // Arrays are dense: their rows are as far apart as they are long.
  for (auto const& [field, extent] : {std::pair("lda", o.trans_a ? &o.m : &o.k),
                                      {"ldb", o.trans_b ? &o.k : &o.n},
                                      {"ldc", &o.n},
                                      {"ldd", &o.n}})
    extents.push_back({field, said(*extent).text});
  for (auto* const extent : {&o.m, &o.n, &o.k}) extent->otherwise(kDefaultExtent);
  o.batch.otherwise(1);
  std::int64_t const m = o.m.value, n = o.n.value, k = o.k.value, batch = o.batch.value;
  check_types({.in = *in, .in_b = in_b, .out = out, .block_scale = block_scale}, said_of_types,
              machine);
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
    p.arguments.block_scale = block_scale;
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
  if (o.scales == "nv") {
    if (!o.a.empty()) p.tensor_factor_a = tensor_factor(p.a);
    if (!o.b.empty()) p.tensor_factor_b = tensor_factor(p.b);
  }
  p.scale_a = times(o.scale_a, p.tensor_factor_a, "--scale-a", "--a", o.a);
  p.scale_b = times(o.scale_b, p.tensor_factor_b, "--scale-b", "--b", o.b);
  return p;
}

void quantise(GemmProblem& p) {
  GemmArguments const& g = p.arguments;
  if (g.block_scale.block == 0) return;
  p.block_scale_a = quantise(p.a, g.in, g.block_scale, g.m, g.k, *g.lda, p.tensor_factor_a);
  p.block_scale_b = quantise(p.b, *g.in_b, g.block_scale, g.n, g.k, *g.ldb, p.tensor_factor_b);
}

namespace {

/// Of `values` (rows, k). A block's small elements become zero beside its large ones: that is its
/// format, and only blocks of which nothing is left are counted.
Losses losses(QuantizedBlocks const& q, DType type, BlockScale const& how, std::int64_t rows,
              std::int64_t k, std::int64_t ld, float const* values) {
  double const half_step = half_last_step(type);
  int const pieces_k = scale_pieces_k(static_cast<int>(k), how.block);
  Losses all;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t first = 0; first < k; first += how.block) {
      double const scale = reference::element(
          q.scales.data(), how.type,
          static_cast<std::int64_t>(block_scale_offset(row, first / how.block, pieces_k)));
      Losses block;
      bool empty = true;
      for (std::int64_t i = first; i < std::min(first + how.block, k); ++i) {
        double const rounded = scale * reference::element(q.elements.data(), type, row * ld + i);
        block.count(static_cast<double>(values[row * k + i]), rounded, scale * half_step);
        empty = empty && rounded == 0;
      }
      if (!empty) block.zero = 0;
      all += block;
    }
  return all;
}

}  // namespace

std::vector<std::uint8_t> quantise(Operand& x, DType type, BlockScale const& how, std::int64_t rows,
                                   std::int64_t k, std::int64_t ld, float tensor_factor) {
  auto const of_matrix = static_cast<std::size_t>(rows * k);
  std::vector<float> values(x.data.size() / sizeof(float));
  std::memcpy(values.data(), x.data.data(), x.data.size());
  if (tensor_factor != 1)
    for (float& value : values) value /= tensor_factor;
  Losses lost = x.lost;
  std::vector<std::byte> elements;
  std::vector<std::uint8_t> scales;
  for (std::size_t first = 0; first < values.size(); first += of_matrix) {
    QuantizedBlocks const q = quantize_blocks(type, how, rows, k, ld, values.data() + first);
    auto const bytes = std::as_bytes(std::span(q.elements));
    elements.insert(elements.end(), bytes.begin(), bytes.end());
    scales.insert(scales.end(), q.scales.begin(), q.scales.end());
    lost += losses(q, type, how, rows, k, ld, values.data() + first);
  }
  std::int64_t const matrices = static_cast<std::int64_t>(values.size() / of_matrix);
  x = {DType::u8, {matrices * rows, ld * bits(type) / 8}, std::move(elements), lost};
  return scales;
}

GemmArguments with_addresses(GemmProblem const& p, GemmOptions const& o, GemmAddresses const& at) {
  GemmArguments g = p.arguments;
  g.a = at.a, g.b = at.b, g.d = at.d;
  g.c = g.beta != 0 ? at.c : nullptr;
  g.bias = o.bias.empty() ? nullptr : at.bias;
  g.scale_a = p.scale_a ? at.scales : nullptr;
  g.scale_b = p.scale_b ? at.scales + 1 : nullptr;
  if (has_block_scales(o)) g.block_scale_a = at.block_scale_a, g.block_scale_b = at.block_scale_b;
  return g;
}

}  // namespace tegula::tool
