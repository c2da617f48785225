"""A NumPy float32 forward pass of the MiniLM-L6 sentence encoder: what the tegula program is compared with.

Source: BERT (Devlin et al., arXiv 1810.04805), post-norm encoder layers; mean pooling and L2 normalisation as the model's own
configuration says. Written sentence by sentence, without any of the batching of the C++ program, so that the two share no code.
"""

import math

import numpy as np

HEADS = 12
LAYER_NORM_EPSILON = np.float32(1e-12)

erf = np.vectorize(math.erf, otypes=[np.float32])


def linear(x, weights, name):
    """x (tokens, in) -> (tokens, out); PyTorch keeps a weight as (out, in)."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def layer_norm(x, weights, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + LAYER_NORM_EPSILON) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def gelu(x):
    return x * np.float32(0.5) * (1 + erf(x / np.float32(math.sqrt(2))))


def attention(q, k, v):
    """q, k, v (heads, tokens, head_dim) -> (heads, tokens, head_dim)."""
    scores = q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(q.shape[-1]))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ v


def split_heads(x):
    """(tokens, hidden) -> (heads, tokens, head_dim)."""
    return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)


def merge_heads(x):
    """(heads, tokens, head_dim) -> (tokens, hidden)."""
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def embed(token_ids, weights):
    """The embedding of one sentence: token_ids (tokens,) -> a unit vector (hidden,)."""
    x = weights["embeddings.word_embeddings.weight"][token_ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(token_ids)]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, weights, "embeddings.LayerNorm")

    layers = sum(name.endswith("intermediate.dense.bias") for name in weights)
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        q, k, v = (split_heads(linear(x, weights, f"{layer}.attention.self.{role}")) for role in ("query", "key", "value"))
        attended = merge_heads(attention(q, k, v))
        x = layer_norm(x + linear(attended, weights, f"{layer}.attention.output.dense"), weights, f"{layer}.attention.output.LayerNorm")
        expanded = gelu(linear(x, weights, f"{layer}.intermediate.dense"))
        x = layer_norm(x + linear(expanded, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm")

    pooled = x.mean(axis=0)
    return pooled / np.linalg.norm(pooled)
