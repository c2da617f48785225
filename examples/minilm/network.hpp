#pragma once

// The weights of MiniLM-L6, read from its safetensors file: matrices go to the machine as f16, the
// rest stays with the host.

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/numeric/half.hpp"

namespace minilm {

/// Attention heads of each layer: the one extent that the shapes of the weights do not tell (the
/// model's config.json does).
inline constexpr std::int64_t kHeads = 12;
inline constexpr float kLayerNormEpsilon = 1e-12f;

/// y = x W^T + b. The weight is (out, in) with `in` contiguous; Out is the type of y and of
/// the bias.
template <class Out> struct Linear {
  std::int64_t out;
  std::int64_t in;
  tegula::Buffer<tegula::half> weight;
  tegula::Buffer<Out> bias;
};

struct LayerNorm {
  std::vector<float> gain;
  std::vector<float> shift;
};

struct Embeddings {
  std::vector<float> word;      ///< (vocabulary, hidden)
  std::vector<float> position;  ///< (longest sentence, hidden)
  /// (types, hidden); type 0 is the first text of a pair, here the only one
  std::vector<float> token_type;
  LayerNorm norm;
};

struct Layer {
  /// (3 hidden, hidden): one product gives Q, K and V side by side
  Linear<tegula::half> query_key_value;
  Linear<float> attention_output;  ///< (hidden, hidden)
  LayerNorm attention_norm;
  Linear<float> expand;    ///< (inner, hidden)
  Linear<float> contract;  ///< (hidden, inner)
  LayerNorm output_norm;
};

struct Network {
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t longest = 0;  ///< tokens of the longest sentence that has position embeddings
  Embeddings embeddings;
  std::vector<Layer> layers;  ///< at least one
};

/// Throws tegula::io::io_error for a file that cannot be read or lacks a tensor.
Network load_network(tegula::Machine const& machine, std::string const& safetensors_path);

}  // namespace minilm
