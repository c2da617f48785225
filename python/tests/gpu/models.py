"""Transformers with tegula's attention and linear layers in place of PyTorch's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tegula.torch as tt
import torch

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


class Compared:
    """A model's outputs in bf16, by PyTorch and by tegula, against float32."""

    def __init__(self, model: Any, tokens: Any, output: str) -> None:
        def run() -> Any:
            with torch.no_grad():
                return getattr(model(input_ids=tokens), output)

        model.float()
        exact = run().double()
        model.to(BF16)
        self.run: Callable[[], Any] = run
        self.used = {"linear": 0, "attention": 0}
        theirs = run()
        with tegulas_functions(self.used):
            ours = run()
        self.their_error, self.our_error = (((x.double() - exact).norm() / exact.norm()).item() for x in (theirs, ours))

    def hold(self) -> None:
        """tegula's kernels were used, and their errors are at most one and a half times PyTorch's."""
        assert self.used["linear"] and self.used["attention"], self.used
        assert self.our_error <= 1.5 * self.their_error, (self.our_error, self.their_error)


def causal_language_model(transformers: Any, hidden: int, layers: int, heads: int, key_heads: int, words: int) -> Any:
    """Llama's network, with random weights."""
    config = transformers.LlamaConfig(
        vocab_size=words,
        hidden_size=hidden,
        intermediate_size=11 * hidden // 4,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        max_position_embeddings=4096,
        use_cache=False,
        attn_implementation="sdpa",
    )
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(config).eval()


def minilm(transformers: Any, layers: int, words: int) -> Any:
    """all-MiniLM-L6-v2's network, with random weights, for the weights are the demo's to fetch."""
    config = transformers.BertConfig(
        vocab_size=words, hidden_size=384, num_hidden_layers=layers, num_attention_heads=12, intermediate_size=1536, attn_implementation="sdpa"
    )
    torch.manual_seed(1)
    return transformers.BertModel(config, add_pooling_layer=False).eval()
