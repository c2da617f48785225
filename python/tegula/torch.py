"""tegula's kernels on PyTorch's tensors: functions under the names that users know, and torch.ops.tegula.*

Tensors of a CPU are computed on a simulated machine, those of a GPU on it, on PyTorch's current stream. There is no backward kernel: a backward pass through these is an error.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _problems
from ._gpu_arrays import gpu_machine
from ._library import library
from .errors import ArgumentError
from .machine import default_machine

_TYPES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
}
_TORCH = {name: dtype for dtype, name in _TYPES.items()}


def _operands(operation: str, tensors: dict[str, Tensor | None]) -> tuple[dict[str, _problems.Operand], torch.device]:
    """The tensors that are given, as operands, and the device that they share. Raises ArgumentError."""
    operands: dict[str, _problems.Operand] = {}
    device, of = torch.device("cpu"), ""
    for name, x in tensors.items():
        if x is None:
            continue
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{operation}: {name} is {type(x).__name__}; a torch.Tensor is needed.")
        if x.layout != torch.strided:
            raise ArgumentError(f"{operation}: {name} is {x.layout}; a strided tensor is needed.")
        if x.device.type not in ("cpu", "cuda"):
            raise ArgumentError(f"{operation}: {name} is on {x.device}; tensors of a CPU or of CUDA are computed.")
        if of and x.device != device:
            raise ArgumentError(f"{operation}: {of} is on {device}, and {name} on {x.device}; they must share a device.")
        if x.dtype not in _TYPES:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _TYPES)
            raise ArgumentError(f"{operation}: {name} is of {x.dtype}; {known} are computed.")
        if x.numel() and x.data_ptr() == 0:
            raise ArgumentError(f"{operation}: {name} has no memory: its storage was freed.")
        device, of = x.device, name
        shape = tuple(x.shape)
        strides = _problems.normalised(shape, x.stride())
        operands[name] = _problems.Operand(name, _TYPES[x.dtype], x.data_ptr(), shape, strides, f"{name}.contiguous()")
    return operands, device


def _launch(function: Any, device: torch.device, arguments: Any) -> None:
    """Runs a problem where its tensors are."""
    if device.type == "cpu":
        _problems.launch(function, default_machine(), arguments, None, False)
        return
    index = torch.cuda.current_device() if device.index is None else device.index
    with torch.cuda.device(index):
        _problems.launch(function, gpu_machine(index), arguments, torch.cuda.current_stream(index).cuda_stream, False)


# --- the operators --------------------------------------------------------------------------------------------------


@torch.library.custom_op("tegula::gemm", mutates_args=())
def _gemm_op(
    a: Tensor,
    b: Tensor,
    c: Tensor | None,
    bias: Tensor | None,
    alpha: float,
    beta: float,
    activation: str,
    out_dtype: torch.dtype | None,
) -> Tensor:
    operands, device = _operands("gemm", {"a": a, "b": b, "c": c, "bias": bias})
    problem = _problems.Gemm(
        operands["a"],
        operands["b"],
        c=operands.get("c"),
        bias=operands.get("bias"),
        alpha=alpha,
        beta=beta,
        activation=activation,
        out_dtype=None if out_dtype is None else _TYPES.get(out_dtype, str(out_dtype)),
    )
    out = torch.empty(problem.shape, dtype=_TORCH[problem.out_type], device=device)
    result, _ = _operands("gemm", {"out": out})
    _launch(library.tegula_gemm, device, problem.into(result["out"]))
    return out


def _gemm_shape(a: Tensor, b: Tensor) -> list[int]:
    batches = [x.shape[0] for x in (a, b) if x.dim() == 3]
    return [*([next((n for n in batches if n != 1), 1)] if batches else []), a.shape[-2], b.shape[-1]]


def _gemm_type(a: Tensor, out_dtype: torch.dtype | None) -> torch.dtype:
    eight_bits = a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
    return out_dtype or (torch.bfloat16 if eight_bits else a.dtype)


# What a compiler is told of the results: their shapes and types.
_gemm_op.register_fake(
    lambda a, b, c, bias, alpha, beta, activation, out_dtype: a.new_empty(
        _gemm_shape(a, b), dtype=_gemm_type(a, out_dtype)
    )
)


@torch.library.custom_op("tegula::attention", mutates_args=())
def _attention_op(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sink: Tensor | None,
    causal: bool,
    scale: float | None,
    window_left: int | None,
    window_right: int | None,
    softcap: float,
) -> tuple[Tensor, Tensor]:
    operands, device = _operands("attention", {"q": q, "k": k, "v": v, "sink": sink})
    problem = _problems.Attention(
        operands["q"],
        operands["k"],
        operands["v"],
        causal=causal,
        scale=scale,
        window=(window_left, window_right),
        softcap=softcap,
        sink=operands.get("sink"),
    )
    out = torch.empty(problem.shape, dtype=q.dtype, device=device)
    lse = torch.empty((problem.batch, problem.heads, problem.seq_q), dtype=torch.float32, device=device)
    result, _ = _operands("attention", {"out": out})
    _launch(library.tegula_attention, device, problem.into(result["out"], lse.data_ptr()))
    return out, lse


def _lse_shape(q: Tensor) -> tuple[int, int, int]:
    return (q.shape[0] if q.dim() == 4 else 1, q.shape[-2], q.shape[-3])


_attention_op.register_fake(
    lambda q, k, v, sink, causal, scale, window_left, window_right, softcap: (
        q.new_empty([*q.shape[:-1], v.shape[-1]]),
        q.new_empty(_lse_shape(q), dtype=torch.float32),
    )
)


# --- functions ------------------------------------------------------------------------------------------------------


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


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str = "none") -> Tensor:
    """torch.nn.functional.linear, with an activation: input is (..., in), weight (out, in)."""
    rows = input.reshape(-1, input.shape[-1])
    return gemm(rows, weight.t(), bias=bias, activation=activation).reshape(*input.shape[:-1], weight.shape[0])


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
) -> tuple[Tensor, Tensor]:
    """tegula.attention on tensors of (batch, seq, heads, head_dim): O and the log-sum-exp, (batch, heads, seq)."""
    o, lse = torch.ops.tegula.attention(q, k, v, sink, causal, scale, *window, softcap)
    return o, lse


def _window(window_size: tuple[int, int]) -> tuple[int | None, int | None]:
    """flash_attn's, where -1 is all keys."""
    left, right = window_size
    return (None if left == -1 else left, None if right == -1 else right)


def _unsupported(function: str, **options: tuple[Any, Any]) -> None:
    """Refuses what differs from the only value that is computed."""
    for name, (value, only) in options.items():
        if value != only:
            raise ArgumentError(f"{function}: {name} is {value!r}; only {only!r} is computed yet.")


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
) -> Any:
    """flash_attn's function of this name, forward: (batch, seq, heads, head_dim); with return_attn_probs the result,
    the log-sum-exp, and None. Every launch gives the same bits, so `deterministic` changes nothing."""
    _unsupported(
        "flash_attn_func",
        dropout_p=(dropout_p, 0.0),
        alibi_slopes=(alibi_slopes, None),
    )
    o, lse = attention(q, k, v, causal=causal, scale=softmax_scale, window=_window(window_size), softcap=softcap)
    return (o, lse, None) if return_attn_probs else o


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
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
) -> Tensor:
    """flash_attn's function of this name, forward: (tokens, heads, head_dim), sequence i from cu_seqlens[i] on.

    A launch for each sequence, whose bounds the host reads: not for CUDA graphs, and slow for many short sequences.
    """
    function = "flash_attn_varlen_func"
    _unsupported(
        function,
        dropout_p=(dropout_p, 0.0),
        alibi_slopes=(alibi_slopes, None),
        return_attn_probs=(return_attn_probs, False),
    )
    bounds = [x.tolist() for x in (cu_seqlens_q, cu_seqlens_k)]
    for name, of, tokens in (("cu_seqlens_q", bounds[0], q.shape[0]), ("cu_seqlens_k", bounds[1], k.shape[0])):
        if not of or of[0] != 0 or of[-1] != tokens or of != sorted(of):
            raise ArgumentError(f"{function}: {name} is {of}; it must rise from 0 to the {tokens} tokens.")
    if len(bounds[0]) != len(bounds[1]):
        raise ArgumentError(
            f"{function}: cu_seqlens_q is of {len(bounds[0]) - 1} sequences, and cu_seqlens_k of "
            f"{len(bounds[1]) - 1}."
        )
    out = torch.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype, device=q.device)
    for q_begin, q_end, k_begin, k_end in zip(bounds[0], bounds[0][1:], bounds[1], bounds[1][1:]):
        if q_end > q_begin and k_end > k_begin:
            of_one = q[q_begin:q_end], k[k_begin:k_end], v[k_begin:k_end]
            out[q_begin:q_end], _ = attention(
                *of_one, causal=causal, scale=softmax_scale, window=_window(window_size), softcap=softcap
            )
    return out


def _cache_lengths(function: str, cache_seqlens: Any, batch: int, room: int) -> list[int]:
    """How many keys each sequence of a cache has."""
    lengths = cache_seqlens.tolist() if isinstance(cache_seqlens, Tensor) else cache_seqlens
    lengths = [room] * batch if lengths is None else [lengths] * batch if isinstance(lengths, int) else lengths
    if not isinstance(lengths, list) or len(lengths) != batch or not all(0 <= n <= room for n in lengths):
        raise ArgumentError(
            f"{function}: cache_seqlens is {lengths}; a length from 0 to {room} for each of the {batch} sequences is needed."
        )
    return lengths


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
    page_table: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    num_splits: int = 0,
) -> Tensor:
    """flash_attn's function of this name: q is (batch, seq, heads, head_dim), the caches (batch, room, kv_heads, head_dim).

    New keys and values, where they are given, are first written into the caches behind those that are there. Caches
    are contiguous, not paged. Sequences of one length are one launch, others a launch each; lengths that are a tensor
    are read by the host: not for CUDA graphs. num_splits decides nothing.
    """
    function = "flash_attn_with_kvcache"
    _unsupported(
        function,
        rotary_cos=(rotary_cos, None),
        rotary_sin=(rotary_sin, None),
        cache_batch_idx=(cache_batch_idx, None),
        page_table=(page_table, None),
        alibi_slopes=(alibi_slopes, None),
    )
    new = 0 if k is None else k.shape[1]
    if (k is None) != (v is None):
        raise ArgumentError(f"{function}: k and v must both be given, or neither.")
    if q.dim() != 4 or k_cache.dim() != 4 or q.shape[0] != k_cache.shape[0]:
        raise ArgumentError(
            f"{function}: q has the shape {tuple(q.shape)}, and k_cache {tuple(k_cache.shape)}; (batch, seq, heads, "
            "head_dim) of one batch are needed."
        )
    before = _cache_lengths(function, cache_seqlens, q.shape[0], k_cache.shape[1] - new)
    if k is not None and v is not None:
        for i, n in enumerate(before):
            k_cache[i, n : n + new], v_cache[i, n : n + new] = k[i], v[i]
    lengths = [n + new for n in before]
    out = torch.zeros((*q.shape[:-1], v_cache.shape[-1]), dtype=q.dtype, device=q.device)
    whole = slice(0, q.shape[0])
    parts = [(whole, lengths[0])] if len(set(lengths)) == 1 else [(slice(i, i + 1), n) for i, n in enumerate(lengths)]
    for rows, n in parts:
        if n > 0:
            of_part = q[rows], k_cache[rows, :n], v_cache[rows, :n]
            out[rows], _ = attention(
                *of_part, causal=causal, scale=softmax_scale, window=_window(window_size), softcap=softcap
            )
    return out


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
    _unsupported("scaled_dot_product_attention", attn_mask=(attn_mask, None), dropout_p=(dropout_p, 0.0))
    if query.dim() != 4 or key.dim() != 4:
        raise ArgumentError(
            f"scaled_dot_product_attention: query has the shape {tuple(query.shape)}; (batch, heads, seq, head_dim) is needed."
        )
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
