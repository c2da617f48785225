#include "attention_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tegula/device/reference.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

/// The axes of a file's array, whichever their order.
struct Axes {
  std::int64_t batch, seq, heads, head_dim;
};
Axes axes(Operand const& operand, bool heads_first) {
  auto shape = operand.shape;
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  return {shape[0], shape[heads_first ? 2 : 1], shape[heads_first ? 1 : 2], shape[3]};
}

TokenStrides strides(std::int64_t seq, std::int64_t heads, std::int64_t head_dim,
                     bool heads_first) {
  TokenStrides const by_token = contiguous_tokens(seq, heads, head_dim);
  return heads_first ? TokenStrides{by_token.batch, head_dim, seq * head_dim} : by_token;
}

/// The numbers of queries and of keys of the sequences, where they are given; the extents follow
/// from them.
Sequences::Lengths lengths(AttentionOptions& o) {
  if (o.sequences.given() && !(o.q.empty() && o.k.empty() && o.v.empty()))
    throw argument_error(
        "--lengths-q, --lengths-k, --append and --page-size are of generated operands: leave out --q, --k and "
        "--v.");
  Sequences::Lengths lengths;
  if (std::optional<std::string> const& append = o.sequences.append) {
    lengths.new_keys = parse_lengths("--append", *append);
    if (!o.sequences.lengths_k)
      throw argument_error(fmt::format(
          "--append is '{}', and --lengths-k is left out; it must say how many keys there "
          "are before.",
          *append));
    agree(o.batch, static_cast<std::int64_t>(lengths.new_keys.size()), "--append", *append);
  }
  for (auto const& [option, text, values, seq] :
       {std::tuple{"--lengths-q", &o.sequences.lengths_q, &lengths.queries, &o.seq_q},
        std::tuple{"--lengths-k", &o.sequences.lengths_k, &lengths.keys, &o.seq_k}}) {
    if (!*text) continue;
    // New keys may be the first of every sequence.
    bool const may_be_empty = values == &lengths.keys && !lengths.new_keys.empty();
    *values = parse_lengths(option, **text, may_be_empty ? 0 : 1);
    agree(o.batch, static_cast<std::int64_t>(values->size()), option, **text);
    auto all = *values;
    std::string by = fmt::format("{} {}", option, io::printable(**text));
    if (values == &lengths.keys && all.size() == lengths.new_keys.size()) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += lengths.new_keys[i];
      by += fmt::format(" --append {}", io::printable(*o.sequences.append));
    }
    std::int64_t const most = *std::max_element(all.begin(), all.end());
    if (seq->value == 0) *seq = {seq->name, by, most};
    if (seq->value < most)
      throw argument_error(fmt::format("{} has {}, and {} is {}; that must be at least as large.",
                                       option, most, seq->said_by, seq->value));
  }
  return lengths;
}

/// Refuses a file with a number that `accepts` does not; `must_be` says what it does.
void require_each(char const* option, std::string const& file, Operand const& numbers,
                  bool (*accepts)(double), char const* must_be) {
  for (std::int64_t i = 0; i < numbers.size(); ++i) {
    double const number = reference::element(numbers.data.data(), numbers.type, i);
    if (accepts(number)) continue;
    std::string const place =
        numbers.shape.size() == 1
            ? std::to_string(i)
            : fmt::format("{}, {}", i / numbers.shape[1], i % numbers.shape[1]);
    throw argument_error(fmt::format("{} {} holds {} at ({}); {}.", option, io::printable(file),
                                     number, place, must_be));
  }
}

bool is_finite(double number) { return std::isfinite(number); }
bool is_finite_above_zero(double number) { return std::isfinite(number) && number > 0; }
/// A sink of -inf is none.
bool is_score(double number) { return std::isfinite(number) || (std::isinf(number) && number < 0); }

/// Who said an extent: for one that was left out, who said the one that it follows.
void say_what_follows(std::vector<Said>& extents, Extent const& extent, Extent const& other) {
  Said const of_other = said(other);
  if (extent.value == 0 && !of_other.text.empty()) extents.push_back({extent.name, of_other.text});
}

}  // namespace

AttentionProblem read_problem(AttentionOptions o, int compute_capability) {
  std::vector<DType> types = {DType::f16, DType::bf16};
  // Who says e4m3 is told on which machines it is computed.
  if (compute_capability >= 90 || o.dtype == to_string(DType::e4m3)) types.push_back(DType::e4m3);
  std::string const remedy = "--dtype must be " + list_of(types);
  std::optional<DType> type;  // of --dtype, to which files are rounded, else of the first file
  if (o.dtype) type = parse_dtype("--dtype", *o.dtype, types);
  if (o.q.empty() && o.k.empty() && o.v.empty() && !type) type = DType::bf16;
  std::string first;  // option and file that said the type
  auto const read = [&](char const* option, std::string const& file) {
    Operand operand = read_operand(option, file, o.dtype ? type : std::nullopt, 3, 4, remedy);
    std::string const named = fmt::format("{} {}", option, io::printable(file));
    if (type && operand.type != *type)
      throw argument_error(fmt::format(
          "{} holds {} and {} {}; all must hold one type, or --dtype say the one that they are "
          "rounded to.",
          first, to_string(*type), named, to_string(operand.type)));
    if (first.empty()) first = named;
    type = operand.type;
    return operand;
  };
  bool const heads_first = o.layout == "bhsd";

  std::optional<Operand> q, k, v, sink;
  if (!o.q.empty()) {
    q = read("--q", o.q);
    Axes const a = axes(*q, heads_first);
    agree(o.batch, a.batch, "--q", o.q);
    agree(o.seq_q, a.seq, "--q", o.q);
    agree(o.heads, a.heads, "--q", o.q);
    agree(o.head_dim, a.head_dim, "--q", o.q);
  }
  for (auto const& [option, file, operand, dim] :
       {std::tuple{"--k", &o.k, &k, &o.head_dim}, std::tuple{"--v", &o.v, &v, &o.head_dim_v}}) {
    if (file->empty()) continue;
    *operand = read(option, *file);
    Axes const a = axes(**operand, heads_first);
    agree(o.batch, a.batch, option, *file);
    agree(o.seq_k, a.seq, option, *file);
    agree(o.kv_heads, a.heads, option, *file);
    agree(*dim, a.head_dim, option, *file);
  }
  if (!o.sink.empty()) {
    sink = read_operand("--sink", o.sink, DType::f32, 1, 1);
    agree(o.heads, sink->shape[0], "--sink", o.sink);
    require_each("--sink", o.sink, *sink, is_score, "every sink must be finite, or -inf for none");
  }
  std::optional<Operand> factors[3];
  for (auto const& [option, file, operand] : {std::tuple{"--q-descale", &o.q_descale, &factors[0]},
                                              {"--k-descale", &o.k_descale, &factors[1]},
                                              {"--v-descale", &o.v_descale, &factors[2]}}) {
    if (file->empty()) continue;
    *operand = read_operand(option, *file, DType::f32, 2, 2);
    agree(o.batch, (*operand)->shape[0], option, *file);
    agree(o.kv_heads, (*operand)->shape[1], option, *file);
    // Those of Q and K are part of the softmax's scale, which is above 0.
    if (operand == &factors[2])
      require_each(option, *file, **operand, is_finite, "every factor must be finite");
    else
      require_each(option, *file, **operand, is_finite_above_zero,
                   "every factor must be finite and above 0");
  }
  std::optional<DType> out;
  if (o.out_type) out = parse_dtype("--out-type", *o.out_type, {DType::f16, DType::bf16});
  Sequences::Lengths const of_sequences = lengths(o);
  std::vector<Said> extents = {said(o.batch), said(o.heads),    said(o.kv_heads),  said(o.seq_q),
                               said(o.seq_k), said(o.head_dim), said(o.head_dim_v)};
  for (auto const& [one, other] :
       {std::pair(&o.heads, &o.kv_heads), {&o.seq_q, &o.seq_k}, {&o.head_dim, &o.head_dim_v}}) {
    say_what_follows(extents, *one, *other);
    say_what_follows(extents, *other, *one);
  }
  o.batch.otherwise(1);
  o.heads.otherwise(o.kv_heads.value > 0 ? o.kv_heads.value : 1);
  o.kv_heads.otherwise(o.heads.value);
  o.seq_q.otherwise(o.seq_k.value > 0 ? o.seq_k.value : 256);
  o.seq_k.otherwise(o.seq_q.value);
  o.head_dim.otherwise(o.head_dim_v.value == 512 ? 576
                       : o.head_dim_v.value > 0  ? o.head_dim_v.value
                                                 : 64);
  o.head_dim_v.otherwise(o.head_dim.value == 576 ? 512 : o.head_dim.value);
  if ((o.head_dim.value == 576) != (o.head_dim_v.value == 512))
    named_as_said(extents, [&] {
      throw argument_error(fmt::format(
          "head_dim is {} and head_dim_v is {}; 576 and 512 go together, V being the first columns "
          "of K, and the others are multiples of 8 from 8 to 256.",
          o.head_dim.value, o.head_dim_v.value));
    });
  if (o.head_dim.value == 576 && !o.v.empty())
    throw argument_error(
        "--v is given and --head-dim is 576; V is the first columns of K then: leave out --v.");
  std::int64_t const seq_q = o.seq_q.value, seq_k = o.seq_k.value, heads = o.heads.value,
                     kv_heads = o.kv_heads.value, head_dim = o.head_dim.value,
                     head_dim_v = o.head_dim_v.value;

  using Shape = std::vector<std::int64_t>;
  auto const sequences = std::make_shared<Sequences const>(of_sequences, o.batch.value, seq_k,
                                                           o.sequences.page_size, o.machine.seed);
  AttentionArguments arguments = {.dtype = *type,
                                  .out = out,
                                  .batch = o.batch.value,
                                  .heads = heads,
                                  .kv_heads = kv_heads,
                                  .seq_q = seq_q,
                                  .seq_k = seq_k,
                                  .head_dim = head_dim,
                                  .head_dim_v = head_dim_v,
                                  .scale = o.scale,
                                  .causal = o.causal,
                                  .window_left = o.window_left,
                                  .window_right = o.window_right,
                                  .softcap = o.softcap.value_or(0),
                                  .exponential = o.exponential == "polynomial"
                                                     ? Exponential::polynomial
                                                     : Exponential::ex2_approx};
  arguments.splits = o.splits;
  if (o.fast_sums) arguments.precise = false;
  sequences->put(arguments);
  TokenExtents const q_tokens = query_extents(arguments), k_tokens = key_extents(arguments);
  arguments.q_stride = strides(q_tokens.seq, heads, head_dim, heads_first);
  arguments.k_stride = strides(k_tokens.seq, kv_heads, head_dim, heads_first);
  bool const latent = is_latent(arguments);
  arguments.v_stride =
      latent ? *arguments.k_stride : strides(k_tokens.seq, kv_heads, head_dim_v, heads_first);
  arguments.o_stride = strides(q_tokens.seq, heads, head_dim_v, heads_first);
  auto const shape = [&](TokenExtents const& tokens, std::int64_t heads, std::int64_t dim) {
    return heads_first ? Shape{tokens.batch, heads, tokens.seq, dim}
                       : Shape{tokens.batch, tokens.seq, heads, dim};
  };
  auto const or_empty = [](std::optional<Operand>& file, DType type, Shape shape) {
    return file ? std::move(*file) : Operand{type, std::move(shape), {}};
  };
  TokenExtents const new_tokens = new_key_extents(arguments);
  if (arguments.seq_new > 0) {
    arguments.k_new_stride = strides(new_tokens.seq, kv_heads, head_dim, heads_first);
    arguments.v_new_stride = strides(new_tokens.seq, kv_heads, head_dim_v, heads_first);
  }
  auto const new_rows = [&](std::int64_t dim) {
    return Operand{*type, arguments.seq_new > 0 ? shape(new_tokens, kv_heads, dim) : Shape{}, {}};
  };
  Shape const shape_of_o =
      q && head_dim_v == head_dim ? q->shape : shape(q_tokens, heads, head_dim_v);
  return {or_empty(q, *type, shape(q_tokens, heads, head_dim)),
          or_empty(k, *type, shape(k_tokens, kv_heads, head_dim)),
          or_empty(v, *type, latent ? Shape{} : shape(k_tokens, kv_heads, head_dim_v)),
          new_rows(head_dim),
          latent ? Operand{*type, {}, {}} : new_rows(head_dim_v),
          or_empty(sink, DType::f32, {}),
          or_empty(factors[0], DType::f32, {}),
          or_empty(factors[1], DType::f32, {}),
          or_empty(factors[2], DType::f32, {}),
          shape_of_o,
          sequences,
          with_defaults(arguments),
          extents};
}

AttentionArguments with_addresses(AttentionProblem const& p, AttentionAddresses const& at) {
  AttentionArguments a = p.arguments;
  a.q = at.q, a.k = at.k, a.v = is_latent(a) ? at.k : at.v, a.o = at.o;
  a.lse = static_cast<float*>(at.lse);
  if (!p.k_new.shape.empty()) a.k_new = at.k_new;
  if (!p.v_new.shape.empty()) a.v_new = at.v_new;
  auto const floats = [](Operand const& operand, void const* address) {
    return operand.shape.empty() ? nullptr : static_cast<float const*>(address);
  };
  a.sink = floats(p.sink, at.sink);
  a.q_descale = floats(p.q_descale, at.q_descale);
  a.k_descale = floats(p.k_descale, at.k_descale);
  a.v_descale = floats(p.v_descale, at.v_descale);
  return a;
}

}  // namespace tegula::tool
