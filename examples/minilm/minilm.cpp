// Sentence embeddings by MiniLM-L6, with every GEMM and every attention a tegula kernel, on a GPU
// or on the simulated machine.
//
//     minilm FOLDER [--device auto|sim|cuda]
//
// reads the weights and tokens that prepare.py left in the folder and writes embeddings.npy there:
// float32 (sentences, hidden), each row of length 1. Operands of the kernels are f16, their sums
// and the residual stream f32.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"
#include "host_math.hpp"
#include "network.hpp"
#include "options.hpp"
#include "tally.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/io/npy.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/numeric/half.hpp"

namespace minilm {
namespace {

using tegula::Buffer;
using tegula::DType;
using tegula::half;
using tegula::Machine;

/// The tokens of all sentences, one sentence after the other: no padding, and so no mask.
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> lengths;  ///< of each sentence
};

struct Progress {
  std::size_t layer;  ///< how many are done
  std::size_t layers;
};

/// Runs the network on a fixed set of sentences. The activations of all tokens are the rows of one
/// matrix, so that each linear layer is a single GEMM; attention runs sentence by sentence on the
/// rows that are the sentence's.
class Encoder {
 public:
  Encoder(Machine const& machine, Network const& network, Tokens const& tokens)
      : machine_(machine),
        network_(network),
        sentences_(tokens),
        tokens_(static_cast<std::int64_t>(tokens.ids.size())),
        operand_(machine, tokens_ * network.hidden, "operand"),
        query_key_value_(machine, tokens_ * 3 * network.hidden, "query_key_value"),
        attended_(machine, tokens_ * network.hidden, "attended"),
        residual_(machine, tokens_ * network.hidden, "residual"),
        expanded_(machine, tokens_ * network.layers.front().expand.out, "expanded"),
        activated_(machine, tokens_ * network.layers.front().expand.out, "activated") {}

  /// The embeddings, float32 (sentences, hidden).
  std::vector<float> run(std::function<void(Progress)> const& progress) {
    std::vector<float> x = embedded_tokens();  // (tokens, hidden)
    for (std::size_t number = 0; number < network_.layers.size(); ++number) {
      Layer const& layer = network_.layers[number];
      add_attention(layer, x);
      normalise(x, layer.attention_norm);
      add_feed_forward(layer, x);
      normalise(x, layer.output_norm);
      progress({number + 1, network_.layers.size()});
    }
    return pooled(x);
  }

  Tally const& gemms() const { return gemms_; }
  Tally const& attentions() const { return attentions_; }

 private:
  /// (tokens, hidden): what each token is, where it stands in its sentence, and which text it
  /// belongs to.
  std::vector<float> embedded_tokens() const {
    auto const hidden = static_cast<std::size_t>(network_.hidden);
    Embeddings const& tables = network_.embeddings;
    std::vector<float> x;
    x.reserve(sentences_.ids.size() * hidden);
    std::size_t token = 0;
    for (std::int32_t length : sentences_.lengths) {
      for (std::size_t place = 0; place < static_cast<std::size_t>(length); ++place, ++token) {
        auto const id = static_cast<std::size_t>(sentences_.ids[token]);
        for (std::size_t i = 0; i < hidden; ++i)
          x.push_back(tables.word[id * hidden + i] + tables.position[place * hidden + i] +
                      tables.token_type[i]);
      }
    }
    normalise(x, tables.norm);
    return x;
  }

  /// x += Attention(x W_qkv + b_qkv) W_o + b_o
  void add_attention(Layer const& layer, std::vector<float>& x) {
    residual_.upload(x);
    operand_.upload(halves(x));
    linear(layer.query_key_value, operand_, query_key_value_);
    attend();
    linear(layer.attention_output, attended_, residual_, /*add=*/true);
    x = residual_.download();
  }

  /// x += GELU(x W_1 + b_1) W_2 + b_2
  void add_feed_forward(Layer const& layer, std::vector<float>& x) {
    residual_.upload(x);
    operand_.upload(halves(x));
    linear(layer.expand, operand_, expanded_);
    std::vector<float> inner = expanded_.download();  // (tokens, inner)
    gelu(inner);
    activated_.upload(halves(inner));
    linear(layer.contract, activated_, residual_, /*add=*/true);
    x = residual_.download();
  }

  /// y = x W^T + b, or y += x W^T + b, for all tokens: x (tokens, in), y (tokens, out).
  template <class Out>
  void linear(Linear<Out> const& layer, Buffer<half> const& x, Buffer<Out>& y, bool add = false) {
    tegula::gemm(machine_, {.in = DType::f16,
                            .out = tegula::dtype_of<Out>,
                            .b_major = tegula::Major::k,  // a weight is (out, in)
                            .m = tokens_,
                            .n = layer.out,
                            .k = layer.in,
                            .a = x.data(),
                            .b = layer.weight.data(),
                            .c = y.data(),
                            .bias = layer.bias.data(),
                            .d = y.data(),
                            .beta = add ? 1.0f : 0.0f});
    gemms_.count(machine_);
  }

  /// attended = softmax(Q K^T / sqrt(head_dim)) V of each sentence and head. A row of
  /// query_key_value holds the token's Q, K and V one after the other, each (heads, head_dim);
  /// attention reads them where they are.
  void attend() {
    std::int64_t const hidden = network_.hidden;
    std::int64_t const head_dim = hidden / kHeads;
    tegula::TokenStrides const in{.batch = 0, .seq = 3 * hidden, .head = head_dim};
    std::int64_t first = 0;  // the sentence's first row
    for (std::int32_t length : sentences_.lengths) {
      half const* const q = query_key_value_.data() + first * 3 * hidden;
      tegula::attention(machine_, {.dtype = DType::f16,
                                   .q = q,
                                   .k = q + hidden,
                                   .v = q + 2 * hidden,
                                   .o = attended_.data() + first * hidden,
                                   .heads = kHeads,
                                   .seq_q = length,
                                   .head_dim = head_dim,
                                   .q_stride = in,
                                   .k_stride = in});
      attentions_.count(machine_);
      first += length;
    }
  }

  static void normalise(std::vector<float>& x, LayerNorm const& norm) {
    layer_norm(x, norm.gain, norm.shift, kLayerNormEpsilon);
  }

  static std::vector<half> halves(std::vector<float> const& values) {
    std::vector<half> rounded(values.size());
    std::ranges::transform(values, rounded.begin(), [](float v) { return tegula::to_half(v); });
    return rounded;
  }

  /// The mean of each sentence's rows, scaled to length 1: (sentences, hidden).
  std::vector<float> pooled(std::span<float const> x) const {
    auto const hidden = static_cast<std::size_t>(network_.hidden);
    std::vector<float> embeddings;
    for (std::int32_t length : sentences_.lengths) {
      std::size_t const values = static_cast<std::size_t>(length) * hidden;
      std::vector<float> const mean = unit_mean(x.first(values), hidden);
      embeddings.insert(embeddings.end(), mean.begin(), mean.end());
      x = x.subspan(values);
    }
    return embeddings;
  }

  Machine const& machine_;
  Network const& network_;
  Tokens const& sentences_;
  std::int64_t tokens_;
  Buffer<half> operand_;          // (tokens, hidden): x, as a GEMM reads it
  Buffer<half> query_key_value_;  // (tokens, 3, heads, head_dim)
  Buffer<half> attended_;         // (tokens, heads, head_dim)
  Buffer<float> residual_;        // (tokens, hidden): x, to which a GEMM adds
  Buffer<float> expanded_;        // (tokens, inner)
  Buffer<half> activated_;        // (tokens, inner): GELU(expanded)
  Tally gemms_;
  Tally attentions_;
};

Tokens read_tokens(std::string const& folder, Network const& network) {
  using tegula::io::ElementType;
  auto const read = [&](std::string const& name) {
    tegula::io::Array const array = tegula::io::read_npy(folder + "/" + name);
    if (array.type != ElementType::s32 || array.shape.size() != 1)
      throw tegula::io::io_error(folder + "/" + name + " must be one row of 32-bit integers.");
    return array.as<std::int32_t>();
  };
  Tokens tokens{.ids = read("token_ids.npy"), .lengths = read("lengths.npy")};
  for (std::int32_t id : tokens.ids)
    if (id < 0 || id >= network.vocabulary)
      throw tegula::io::io_error(
          fmt::format("{}/token_ids.npy: token {} is not one of the vocabulary's {}.", folder, id,
                      network.vocabulary));
  for (std::int32_t length : tokens.lengths)
    if (length < 1 || length > network.longest)
      throw tegula::io::io_error(
          fmt::format("{}/lengths.npy: a sentence has 1 to {} tokens, not {}.", folder,
                      network.longest, length));
  std::int64_t const total =
      std::accumulate(tokens.lengths.begin(), tokens.lengths.end(), std::int64_t{0});
  if (total == 0 || total != static_cast<std::int64_t>(tokens.ids.size()))
    throw tegula::io::io_error(
        fmt::format("{}: lengths.npy counts {} tokens, token_ids.npy holds {}.", folder, total,
                    tokens.ids.size()));
  return tokens;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void embed(std::string const& folder, std::string_view device) {
  Machine const machine = Machine::from_name(device);
  Network const network = load_network(machine, folder + "/model.safetensors");
  Tokens const tokens = read_tokens(folder, network);
  auto const sentences = static_cast<std::int64_t>(tokens.lengths.size());
  fmt::print("MiniLM: {} layers, hidden {}, {} heads of {}; {} sentences of {} tokens in all\n",
             network.layers.size(), network.hidden, kHeads, network.hidden / kHeads, sentences,
             tokens.ids.size());
  fmt::print("machine: {}\n", machine.name());
  std::fflush(stdout);

  auto const begin = std::chrono::steady_clock::now();
  double shown = 0;  // when the last line of progress was printed
  Encoder encoder(machine, network, tokens);
  std::vector<float> const embeddings = encoder.run([&](Progress done) {
    double const now = seconds_since(begin);
    if (now - shown < 2) return;
    fmt::print("  layer {} of {}, {:.1f} s\n", done.layer, done.layers, now);
    std::fflush(stdout);
    shown = now;
  });
  double const seconds = seconds_since(begin);

  print_tallies(encoder.gemms(), encoder.attentions(), seconds);
  std::string const path = folder + "/embeddings.npy";
  tegula::io::write_npy(path, tegula::io::array_of(tegula::io::ElementType::f32,
                                                   {sentences, network.hidden}, embeddings));
  fmt::print("{} sentences embedded in {:.2f} s: {}\n", sentences, seconds, path);
}

}  // namespace
}  // namespace minilm

int main(int argc, char** argv) {
  tegula::tool::CommandLine const line(
      "Sentence embeddings by MiniLM-L6, every GEMM and every attention a tegula kernel");
  std::string folder, device = "auto";
  line.add_option("folder", folder, "what prepare.py wrote; embeddings.npy is written there")
      .required()
      .check(tegula::tool::folder_name());
  line.add_option("--device", device, "auto (a GPU if there is one), sim, cuda or cuda:N")
      .show_default();
  if (auto const status = line.read(argc, argv)) return *status;
  try {
    minilm::embed(folder, device);
  } catch (std::exception const& error) {
    fmt::print(stderr, "minilm: {}\n", error.what());
    return 1;
  }
  return 0;
}
