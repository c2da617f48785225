"""Transformers with tegula's attention and linear layers in place of PyTorch's: the same outputs, timed beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tegula.torch as tt
import torch
from support import device_milliseconds

try:
    import transformers
except ImportError:
    transformers = None

BF16 = torch.bfloat16


def is_causal_mask(mask: Any, rows: int, keys: int) -> bool:
    """Whether a mask is the causal one and nothing else."""
    seen = mask if mask.dtype == torch.bool else mask == 0
    return bool((seen == torch.ones(rows, keys, dtype=torch.bool, device=mask.device).tril(keys - rows)).all())


@contextlib.contextmanager
def tegulas_functions(used: dict[str, int]) -> Iterator[None]:
    """torch.nn.functional's linear and attention are tegula's; `used` counts the calls."""
    functional = torch.nn.functional
    linear, attention = functional.linear, functional.scaled_dot_product_attention

    def our_linear(input: Any, weight: Any, bias: Any = None) -> Any:
        used["linear"] += 1
        return tt.linear(input, weight, bias)

    def our_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **options: Any) -> Any:
        used["attention"] += 1
        rows, keys = query.shape[2], key.shape[2]
        if attn_mask is not None:
            if bool((attn_mask if attn_mask.dtype == torch.bool else attn_mask == 0).all()):
                attn_mask = None
            else:
                assert is_causal_mask(attn_mask, rows, keys), "a mask that is neither causal nor empty"
                attn_mask, is_causal = None, True
        return tt.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, **options)

    functional.linear, functional.scaled_dot_product_attention = our_linear, our_attention
    try:
        yield
    finally:
        functional.linear, functional.scaled_dot_product_attention = linear, attention


def compare(name: str, model: Any, tokens: Any, output: str) -> None:
    """Its outputs in bf16, by PyTorch and by tegula, against float32: tegula's errors are at most one and a half times PyTorch's."""
    used = {"linear": 0, "attention": 0}

    def run(what: Any) -> Any:
        with torch.no_grad():
            return getattr(what(input_ids=tokens), output)

    exact = run(model.float()).double()
    model = model.to(BF16)
    theirs = run(model)
    with tegulas_functions(used):
        ours = run(model)
        our_time = device_milliseconds(lambda: run(model), times=3)
    their_time = device_milliseconds(lambda: run(model), times=3)
    assert used["linear"] and used["attention"], used
    errors = [((x.double() - exact).norm() / exact.norm()).item() for x in (theirs, ours)]
    print(f"{name}: relative error PyTorch {errors[0]:.2e}, tegula {errors[1]:.2e}; PyTorch {their_time:.2f} ms, tegula {our_time:.2f} ms")
    assert errors[1] <= 1.5 * errors[0], errors


def test_a_causal_language_model() -> None:
    if transformers is None:
        print("skipped: there is no transformers")
        return
    config = transformers.LlamaConfig(
        vocab_size=8192,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=4,
        num_attention_heads=16,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        use_cache=False,
        attn_implementation="sdpa",
    )
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    tokens = torch.randint(0, 8192, (2, 2048), device="cuda")
    compare("a causal language model of 4 layers, 2 x 2048 tokens", model, tokens, "logits")


def test_minilm() -> None:
    if transformers is None:
        print("skipped: there is no transformers")
        return
    # all-MiniLM-L6-v2's shape; random weights, for the weights are the demo's to fetch.
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, attn_implementation="sdpa"
    )
    torch.manual_seed(1)
    model = transformers.BertModel(config, add_pooling_layer=False).cuda().eval()
    tokens = torch.randint(0, 30000, (64, 128), device="cuda")
    compare("MiniLM's network, 64 x 128 tokens", model, tokens, "last_hidden_state")
