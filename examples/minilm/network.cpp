#include "network.hpp"

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "tegula/io/safetensors.hpp"

namespace minilm {
namespace {

using tegula::Buffer;
using tegula::half;
using tegula::Machine;
using tegula::io::Safetensors;

std::vector<float> floats(Safetensors const& file, std::string const& name) {
  return tegula::io::to_floats(file.read(name));
}

void append(std::vector<float>& to, std::vector<float> const& values) {
  to.insert(to.end(), values.begin(), values.end());
}

template <class To> std::vector<To> rounded(std::vector<float> const& values) {
  if constexpr (std::is_same_v<To, half>) {
    std::vector<half> halves(values.size());
    std::ranges::transform(values, halves.begin(), [](float x) { return tegula::to_half(x); });
    return halves;
  } else {
    return values;
  }
}

/// The layers of these names stacked along `out`: their products with the same x, side by side.
template <class Out>
Linear<Out> stacked(Machine const& machine, Safetensors const& file,
                    std::initializer_list<std::string> names) {
  std::vector<float> weight, bias;
  for (std::string const& name : names) {
    append(weight, floats(file, name + ".weight"));
    append(bias, floats(file, name + ".bias"));
  }
  auto const out = static_cast<std::int64_t>(bias.size());
  std::string const& first = *names.begin();
  return {.out = out,
          .in = static_cast<std::int64_t>(weight.size()) / out,
          .weight = Buffer<half>(machine, rounded<half>(weight), first + ".weight"),
          .bias = Buffer<Out>(machine, rounded<Out>(bias), first + ".bias")};
}

LayerNorm layer_norm(Safetensors const& file, std::string const& name) {
  return {.gain = floats(file, name + ".weight"), .shift = floats(file, name + ".bias")};
}

Layer layer(Machine const& machine, Safetensors const& file, std::string const& name) {
  std::string const self = name + ".attention.self.";
  std::string const attended = name + ".attention.output.";
  return {.query_key_value =
              stacked<half>(machine, file, {self + "query", self + "key", self + "value"}),
          .attention_output = stacked<float>(machine, file, {attended + "dense"}),
          .attention_norm = layer_norm(file, attended + "LayerNorm"),
          .expand = stacked<float>(machine, file, {name + ".intermediate.dense"}),
          .contract = stacked<float>(machine, file, {name + ".output.dense"}),
          .output_norm = layer_norm(file, name + ".output.LayerNorm")};
}

}  // namespace

Network load_network(Machine const& machine, std::string const& safetensors_path) {
  Safetensors const file(safetensors_path);
  Network network;
  network.embeddings = {.word = floats(file, "embeddings.word_embeddings.weight"),
                        .position = floats(file, "embeddings.position_embeddings.weight"),
                        .token_type = floats(file, "embeddings.token_type_embeddings.weight"),
                        .norm = layer_norm(file, "embeddings.LayerNorm")};
  auto const hidden = network.embeddings.norm.gain.size();
  network.hidden = static_cast<std::int64_t>(hidden);
  network.vocabulary = static_cast<std::int64_t>(network.embeddings.word.size() / hidden);
  network.longest = static_cast<std::int64_t>(network.embeddings.position.size() / hidden);
  for (int number = 0;; ++number) {
    std::string const name = "encoder.layer." + std::to_string(number);
    if (!file.tensors().contains(name + ".output.dense.weight")) break;
    network.layers.push_back(layer(machine, file, name));
  }
  if (network.layers.empty())
    throw tegula::io::io_error(safetensors_path + " holds no layer of a BERT encoder.");
  return network;
}

}  // namespace minilm
