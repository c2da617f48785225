"""Transformers with tegula's attention and linear layers in place of PyTorch's: the same outputs, timed beside them."""

from __future__ import annotations

from typing import Any

import torch
from models import Compared, causal_language_model, minilm, tegulas_functions
from support import Skipped, device_milliseconds

try:
    import transformers
except ImportError:
    transformers = None


def compare(name: str, model: Any, tokens: Any, output: str) -> None:
    compared = Compared(model, tokens, output)
    with tegulas_functions(compared.used):
        our_time = device_milliseconds(compared.run, times=3)
    their_time = device_milliseconds(compared.run, times=3)
    errors = f"relative error PyTorch {compared.their_error:.2e}, tegula {compared.our_error:.2e}"
    print(f"{name}: {errors}; PyTorch {their_time:.2f} ms, tegula {our_time:.2f} ms")
    compared.hold()


def test_a_causal_language_model() -> None:
    if transformers is None:
        raise Skipped("there is no transformers")
    model = causal_language_model(transformers, hidden=2048, layers=4, heads=16, key_heads=4, words=8192).cuda()
    tokens = torch.randint(0, 8192, (2, 2048), device="cuda")
    compare("a causal language model of 4 layers, 2 x 2048 tokens", model, tokens, "logits")


def test_minilm() -> None:
    if transformers is None:
        raise Skipped("there is no transformers")
    model = minilm(transformers, layers=6, words=30522).cuda()
    tokens = torch.randint(0, 30000, (64, 128), device="cuda")
    compare("MiniLM's network, 64 x 128 tokens", model, tokens, "last_hidden_state")
