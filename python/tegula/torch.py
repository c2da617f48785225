"""tegula's kernels on PyTorch's tensors: functions under the names that users know, and torch.ops.tegula.*

Tensors of a CPU are computed on a simulated machine, those of a GPU on it, on PyTorch's current stream. There is no backward kernel: a backward pass through these is an error.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from . import _torch_operators  # which registers them, too
from .errors import ArgumentError, TegulaError, shown

_P = ParamSpec("_P")
_R = TypeVar("_R")

_INTEGER = int, torch.SymInt, np.integer
_NUMBER = float, torch.SymFloat, np.floating, *_INTEGER
# Arguments by the functions' annotations: what is taken, and what is said of the rest.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((Tensor,), "a torch.Tensor is needed"),
    "bool": ((bool, np.bool_), "it must be True or False"),
    "int": (_INTEGER, "it must be an integer"),
    "float": (_NUMBER, "it must be a number"),
    "str": ((str,), "it must be text"),
    "torch.dtype": ((torch.dtype,), "a torch.dtype is needed"),
    "tuple[int, int]": ((tuple, list, Tensor), "it must be a pair of integers"),
    "tuple[int | None, int | None]": ((tuple, list), "it must be a pair of integers or None"),
}


def _refuse_wrong_types(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raises ArgumentError for the first argument of another type than the function says."""
    for name, value in given.items():
        annotation = function.__annotations__[name]
        known = [annotation] if annotation in _TYPES else annotation.split(" | ")
        if value is None and "None" in known:
            continue
        of_each = [_TYPES[part] for part in known if part != "None"]
        needed = ", or ".join(sentence for _, sentence in of_each)
        if not any(isinstance(value, types) for types, _ in of_each):
            what = type(value).__name__ if "Tensor" in needed else shown(value)
            raise ArgumentError(f"{function.__name__}: {name} is {what}; {needed}.")
        if isinstance(value, Tensor) and value.layout != torch.strided:
            raise ArgumentError(f"{function.__name__}: {name} is {value.layout}; a strided tensor is needed.")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ArgumentError(f"{function.__name__}: {name} is {value}; it must fit in 64 bits.")


def _says_wrong_types(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, which says a wrong type by a sentence. PyTorch finds it anyway, at no cost, and says it in eight lines."""

    @functools.wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        if torch.compiler.is_compiling():
            return function(*arguments, **options)
        try:
            return function(*arguments, **options)
        except TegulaError:
            raise
        except Exception:
            _refuse_wrong_types(function, inspect.signature(function).bind(*arguments, **options).arguments)
            raise

    return call


def _flags(function: str, **flags: Any) -> None:
    """Refuses what PyTorch would take for true or false."""
    for name, value in flags.items():
        if value is not True and value is not False:
            raise ArgumentError(f"{function}: {name} is {shown(value)}; it must be True or False.")


@_says_wrong_types
def gemm(
    a: Tensor,
    b: Tensor,
    *,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    activation: str = "none",
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """tegula.gemm on tensors: activation(alpha a @ b + beta c + bias), with a and b as torch.matmul takes them.

    float32 is computed as tf32; float8 needs a's rows and b's columns contiguous. beta is 1 where c is given.
    """
    beta = (0.0 if c is None else 1.0) if beta is None else beta
    result: Tensor = torch.ops.tegula.gemm(a, b, c, bias, alpha, beta, activation, out_dtype)
    return result


@_says_wrong_types
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str = "none") -> Tensor:
    """torch.nn.functional.linear, with an activation: input is (..., in), weight (out, in)."""
    if input.dim() == 0 or weight.dim() != 2 or input.layout != torch.strided:
        raise ArgumentError(
            f"linear: input is {input.layout} of the shape {tuple(input.shape)}, and weight of {tuple(weight.shape)}; strided "
            "tensors of (..., in) and (out, in) are needed."
        )
    rows = input.reshape(-1, input.shape[-1])
    return gemm(rows, weight.t(), bias=bias, activation=activation).reshape(*input.shape[:-1], weight.shape[0])


@_says_wrong_types
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] = (None, None),
    softcap: float = 0.0,
    sink: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    seqused_k: Tensor | None = None,
    page_table: Tensor | None = None,
    splits: int | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    precise: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """tegula.attention on tensors of (batch, seq, heads, head_dim): O and the log-sum-exp, (batch, heads, seq).

    Lengths, pages and factors are as tegula.attention has them; of packed queries the log-sum-exp is (heads, tokens),
    and tokens that are no sequence's are zeros.
    """
    _flags("attention", causal=causal)
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise ArgumentError(f"attention: window is {shown(window)}; it must be a pair of integers or None.")
    left, right = window
    lengths = cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_k, page_table, splits
    descales = q_descale, k_descale, v_descale
    o, lse = torch.ops.tegula.attention(q, k, v, sink, causal, scale, left, right, softcap, *lengths, *descales, out_dtype, precise)
    return o, lse


def _window(window_size: tuple[int, int] | Tensor, causal: bool) -> tuple[int | None, int | None]:
    """flash_attn's, where -1 is all keys, and a causal mask takes the place of the right side; also as a tensor."""
    pair = window_size.tolist() if isinstance(window_size, Tensor) and not window_size.is_meta else window_size
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(keys, _INTEGER) for keys in pair):
        raise ArgumentError(f"window_size is {shown(window_size)}; it must be a pair of integers.")
    left, right = pair
    return (None if left == -1 else left, None if right == -1 or causal else right)


def _with_whole_pieces(q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> tuple[Tensor, Tensor, Tensor, float | None]:
    """Head dims that are no whole pieces of 16 bytes are padded with zeros, as flash_attn pads them: the scale is that of
    the given one, and of O the columns that v has count."""
    if 0 in (q.dim(), k.dim(), v.dim()):
        return q, k, v, scale
    piece = 16 // q.element_size()
    if q.shape[-1] % piece == 0 and v.shape[-1] % piece == 0:
        return q, k, v, scale
    if scale is None and q.shape[-1] > 0:
        scale = q.shape[-1] ** -0.5
    padded = (torch.nn.functional.pad(x, (0, -x.shape[-1] % piece)) for x in (q, k, v))
    return *padded, scale


def _unsupported(function: str, **options: tuple[Any, Any]) -> None:
    """Refuses what differs from the only value that is computed."""
    for name, (value, only) in options.items():
        if value is not only and (isinstance(value, Tensor) or value != only):
            said = f"a tensor of {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
            raise ArgumentError(f"{function}: {name} is {said}; only {only!r} is computed yet.")


@_says_wrong_types
def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    num_splits: int = 0,
) -> Any:
    """flash_attn's function of this name, forward: (batch, seq, heads, head_dim); with return_attn_probs the result,
    the log-sum-exp, and None.

    float8_e4m3fn gives bfloat16; its factors are float32, (batch, kv_heads). Every launch gives the same bits, so
    `deterministic` changes nothing. num_splits: parts that the keys are computed in, 0 for as many as are best.
    """
    _flags("flash_attn_func", causal=causal, deterministic=deterministic, return_attn_probs=return_attn_probs)
    _unsupported(
        "flash_attn_func",
        dropout_p=(dropout_p, 0.0),
        alibi_slopes=(alibi_slopes, None),
    )
    head_dim_v = v.shape[-1] if v.dim() > 0 else 0
    q, k, v, softmax_scale = _with_whole_pieces(q, k, v, softmax_scale)
    o, lse = attention(
        q,
        k,
        v,
        causal=causal,
        scale=softmax_scale,
        window=_window(window_size, causal),
        softcap=softcap,
        splits=None if num_splits == 0 else num_splits,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
    )
    o = o if o.shape[-1] == head_dim_v else o[..., :head_dim_v]
    return (o, lse, None) if return_attn_probs else o


def _pages(function: str, block_table: Tensor | None, page_table: Tensor | None) -> Tensor | None:
    """The table under flash_attn's name, or FlashAttention-3's."""
    if block_table is not None and page_table is not None:
        raise ArgumentError(f"{function}: block_table and page_table are both given; they are two names of one table.")
    return page_table if block_table is None else block_table


@_says_wrong_types
def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Tensor | None = None,
    *,
    seqused_k: Tensor | None = None,
    page_table: Tensor | None = None,
    num_splits: int = 0,
) -> Any:
    """flash_attn's function of this name, forward: (tokens, heads, head_dim), sequence i from cu_seqlens[i] on, int32.

    One launch, which reads the lengths on the device. With a block_table k and v are pages, (pages, page_size, heads,
    head_dim), and the number of a sequence's keys is that of cu_seqlens_k, or seqused_k. With return_attn_probs the
    result, the log-sum-exp, (heads, tokens), and None.
    """
    function = "flash_attn_varlen_func"
    _flags(function, causal=causal, deterministic=deterministic, return_attn_probs=return_attn_probs)
    _unsupported(function, dropout_p=(dropout_p, 0.0), alibi_slopes=(alibi_slopes, None))
    table = _pages(function, block_table, page_table)
    if table is not None and cu_seqlens_k is not None:
        seqused_k = cu_seqlens_k.diff() if seqused_k is None else seqused_k
        cu_seqlens_k = None
    head_dim_v = v.shape[-1] if v.dim() > 0 else 0
    q, k, v, softmax_scale = _with_whole_pieces(q, k, v, softmax_scale)
    o, lse = attention(
        q,
        k,
        v,
        causal=causal,
        scale=softmax_scale,
        window=_window(window_size, causal),
        softcap=softcap,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
        max_seqlen_q=max_seqlen_q,
        max_seqlen_k=max_seqlen_k,
        seqused_k=seqused_k,
        page_table=table,
        splits=None if num_splits == 0 else num_splits,
    )
    o = o if o.shape[-1] == head_dim_v else o[..., :head_dim_v]
    return (o, lse, None) if return_attn_probs else o


def _cache_lengths(function: str, cache_seqlens: Any, q: Tensor, room: int) -> Tensor | None:
    """How many keys each sequence of a cache has, int32 where q is. On a CPU they are checked."""
    if cache_seqlens is None:
        return None
    if isinstance(cache_seqlens, int):
        if not 0 <= cache_seqlens <= room:
            raise ArgumentError(f"{function}: cache_seqlens is {cache_seqlens}; it must be from 0 to {room}.")
        cache_seqlens = torch.full((q.shape[0],), cache_seqlens, dtype=torch.int32, device=q.device)
    if not isinstance(cache_seqlens, Tensor) or cache_seqlens.dtype != torch.int32 or cache_seqlens.shape != (q.shape[0],):
        what = f"{cache_seqlens.dtype} of {tuple(cache_seqlens.shape)}" if isinstance(cache_seqlens, Tensor) else shown(cache_seqlens)
        raise ArgumentError(f"{function}: cache_seqlens is {what}; an integer, or int32 of ({q.shape[0]},) is needed.")
    if cache_seqlens.device.type == "cpu" and not ((cache_seqlens >= 0) & (cache_seqlens <= room)).all():
        raise ArgumentError(
            f"{function}: cache_seqlens is {cache_seqlens.tolist()}; a length from 0 to {room} for each of the "
            f"{q.shape[0]} sequences is needed."
        )
    return cache_seqlens


@_says_wrong_types
def flash_attn_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    block_table: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    page_table: Tensor | None = None,
) -> Any:
    """flash_attn's function of this name: q is (batch, seq, heads, head_dim), the caches (batch, room, kv_heads, head_dim),
    or with a block_table, int32 (batch, pages of a sequence), pages: (pages, page_size, kv_heads, head_dim).

    New keys and values, where they are given, are written into the caches behind the cache_seqlens that are there, by a
    small kernel that is queued before attention's. Both read lengths and tables on the device; on a GPU these are not
    checked. num_splits: parts that the keys are computed in, 0 for as many as are best. With return_softmax_lse the
    result and the log-sum-exp. rotary_interleaved counts for nothing without rotary_cos, which is not computed.
    """
    function = "flash_attn_with_kvcache"
    _flags(function, causal=causal, rotary_interleaved=rotary_interleaved, return_softmax_lse=return_softmax_lse)
    _unsupported(
        function,
        rotary_cos=(rotary_cos, None),
        rotary_sin=(rotary_sin, None),
        cache_batch_idx=(cache_batch_idx, None),
        cache_leftpad=(cache_leftpad, None),
        alibi_slopes=(alibi_slopes, None),
    )
    table = _pages(function, block_table, page_table)
    if (k is None) != (v is None):
        raise ArgumentError(f"{function}: k and v must both be given, or neither.")
    if q.dim() != 4 or k_cache.dim() != 4 or (table is None and q.shape[0] != k_cache.shape[0]):
        raise ArgumentError(
            f"{function}: q has the shape {tuple(q.shape)}, and k_cache {tuple(k_cache.shape)}; (batch, seq, heads, "
            "head_dim) of one batch are needed, or pages with a block_table."
        )
    if table is not None and (table.dim() != 2 or table.shape[0] != q.shape[0]):
        raise ArgumentError(f"{function}: block_table has the shape {tuple(table.shape)}; ({q.shape[0]}, pages of a sequence) is needed.")
    new = 0 if k is None else k.shape[1]
    room = k_cache.shape[1] * (1 if table is None else table.shape[1])
    lengths = _cache_lengths(function, cache_seqlens, q, room - new)
    if k is not None and v is not None:
        if lengths is None:
            raise ArgumentError(f"{function}: cache_seqlens is None, and k is given; it must say where k is written.")
        for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
            _torch_operators.check_writeable(function, name, cache)
        at = causal, softmax_scale, *_window(window_size, causal), softcap, table, None if num_splits == 0 else num_splits
        o, lse = torch.ops.tegula.append_and_attend(q, k_cache, v_cache, k, v, lengths, *at)
    else:
        o, lse = attention(
            q,
            k_cache,
            v_cache,
            causal=causal,
            scale=softmax_scale,
            window=_window(window_size, causal),
            softcap=softcap,
            seqused_k=lengths,
            page_table=table,
            splits=None if num_splits == 0 else num_splits,
        )
    return (o, lse) if return_softmax_lse else o


@_says_wrong_types
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional's function of this name: (batch, heads, seq, head_dim).

    With is_causal as many queries as keys: PyTorch aligns the mask at the top left, tegula at the bottom right.
    """
    _flags("scaled_dot_product_attention", is_causal=is_causal, enable_gqa=enable_gqa)
    _unsupported("scaled_dot_product_attention", attn_mask=(attn_mask, None), dropout_p=(dropout_p, 0.0))
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 4:
            raise ArgumentError(f"scaled_dot_product_attention: {name} has the shape {tuple(x.shape)}; (batch, heads, seq, head_dim) is needed.")
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise ArgumentError(
            f"scaled_dot_product_attention: query has {query.shape[1]} heads, and key {key.shape[1]}; set enable_gqa."
        )
    if is_causal and query.shape[2] != key.shape[2]:
        raise ArgumentError(
            f"scaled_dot_product_attention: there are {query.shape[2]} queries and {key.shape[2]} keys; with is_causal "
            "they must be as many."
        )
    o, _ = attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), causal=is_causal, scale=scale)
    return o.transpose(1, 2)
