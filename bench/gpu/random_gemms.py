"""Shapes of GEMMs as models have them, drawn by a seed: what a choice is tried with that was not tuned to them."""

import random

# (n, k) of linear layers: Llama 3 8B and 70B, Qwen 2.5 7B and 14B, Gemma 2 9B, Mixtral, DeepSeek V3, BERT and GPT-2, experts, vocabularies.
LAYERS = [
    (6144, 4096), (4096, 4096), (28672, 4096), (14336, 4096), (4096, 14336),
    (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672),
    (4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944),
    (7168, 5120), (5120, 5120), (27648, 5120), (5120, 13824),
    (8192, 3584), (3584, 4096), (28672, 3584), (3584, 14336),
    (2112, 7168), (576, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048),
    (768, 768), (3072, 768), (768, 3072), (1024, 1024), (4096, 1024), (1024, 4096), (1600, 1600), (6400, 1600),
    (2816, 2048), (1408, 2048), (2048, 1408), (32000, 4096), (128256, 4096),
]  # fmt: skip
MOST_MULTIPLY_ADDS = 4e11
LARGEST_M = 16384


def log_uniform(draw, least, most):
    return round(least * (most / least) ** draw.random())


def is_prime(number):
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def rows(draw):
    """From 1 to LARGEST_M, log-uniform: as it is, the next prime, or rounded to a multiple of 64."""
    m, kind = log_uniform(draw, 1, LARGEST_M), draw.randrange(4)
    if kind == 0:
        while not is_prime(m):
            m += 1
    if kind == 1 and m > 64:
        m = m // 64 * 64
    return m


def random_gemms(count, seed, multiple=8):
    """`count` shapes (m, n, k): half of them layers of models; in the others n and k are any multiples of `multiple`."""
    draw, shapes = random.Random(seed), []
    while len(shapes) < count:
        m = rows(draw)
        if draw.random() < 0.5:
            n, k = draw.choice(LAYERS)
        else:
            n, k = (log_uniform(draw, 64, 16384) // multiple * multiple for _ in range(2))
        if m * n * k <= MOST_MULTIPLY_ADDS:
            shapes.append((m, n, k))
    return shapes
