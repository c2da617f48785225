"""The GEMM and attention kernels on NumPy arrays."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_void_p
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from . import _arrays
from ._library import LEFT_OUT, AttentionArguments, GemmArguments, TokenStrides, check, library
from .errors import ArgumentError
from .machine import Machine, Report, default_machine

Array = npt.NDArray[Any]
_MAJOR_K, _MAJOR_MN = 0, 1


class GemmOptions(TypedDict, total=False):
    """What gemm takes by name."""

    c: Array | None
    bias: Array | None
    alpha: float
    beta: float | None
    activation: str
    scale_a: float | None
    scale_b: float | None
    dtype: str | None
    dtype_b: str | None
    out_dtype: str | None
    out: Array | None
    machine: Machine | None


class AttentionOptions(TypedDict, total=False):
    """What attention takes by name."""

    causal: bool
    scale: float | None
    dtype: str | None
    out: Array | None
    machine: Machine | None


_ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "silu": 3}


def _on(operation: str, machine: Machine | None) -> Machine:
    machine = default_machine() if machine is None else machine
    if not isinstance(machine, Machine):
        raise ArgumentError(f"{operation}: machine is {type(machine).__name__}; a tegula.Machine is needed.")
    if not machine.is_simulated:
        raise ArgumentError(f"{operation}: NumPy arrays lie in the host's memory, and {machine.name} has its own.")
    return machine


def _launch(function: Any, machine: Machine, arguments: ctypes.Structure, report: bool) -> Report | None:
    if not report:
        check(function(machine._handle, byref(arguments), None, None))
        return None
    handle = c_void_p()
    check(function(machine._handle, byref(arguments), None, byref(handle)))
    return Report(handle)


@dataclass(frozen=True)
class _Matrix:
    """A matrix or a batch of them: rows of `ld` elements, of which one index is contiguous."""

    address: int
    rows: int
    columns: int
    ld: int
    batch_stride: int
    columns_contiguous: bool


def _matrix(name: str, array: Array, batch: int) -> _Matrix:
    if array.ndim not in (2, 3):
        raise ArgumentError(f"gemm: {name} has the shape {array.shape}; (rows, columns) or (batch, rows, columns) is needed.")
    if 0 in array.shape:
        raise ArgumentError(f"gemm: {name} has the shape {array.shape}; an empty problem has no result.")
    *_, rows, columns = array.shape
    strides = _arrays.strides_of("gemm", name, array)
    across, along = strides[-2:]
    by_columns = along == 1 and (across >= columns or rows == 1)
    if not by_columns and not (across == 1 and along >= rows):
        raise ArgumentError(
            f"gemm: {name} has strides of {across} and {along} elements, and neither its rows nor its columns are "
            f"contiguous and apart: use np.ascontiguousarray({name})."
        )
    ld = max(across, columns) if by_columns else along
    batch_stride = strides[0] if array.ndim == 3 and array.shape[0] == batch and batch > 1 else 0
    return _Matrix(array.ctypes.data, rows, columns, ld, batch_stride, by_columns)


def _batch_of(arrays: dict[str, Array]) -> int:
    """The batch that the arrays of three dimensions agree on; those of one matrix serve all of it."""
    batch, said_by = 1, ""
    for name, array in arrays.items():
        extent = array.shape[0] if array.ndim == 3 else 1
        if extent == 1:
            continue
        if said_by and extent != batch:
            raise ArgumentError(f"gemm: {said_by} is a batch of {batch}, and {name} of {extent}.")
        batch, said_by = extent, name
    return batch


def _row_major(name: str, array: Array, batch: int, shape: tuple[int, ...]) -> _Matrix:
    """C or D: of rows that are contiguous."""
    matrix = _matrix(name, array, batch)
    if not matrix.columns_contiguous:
        raise ArgumentError(f"gemm: {name} has columns that are contiguous, and rows must be: use np.ascontiguousarray({name}).")
    if (matrix.rows, matrix.columns) != shape[-2:]:
        raise ArgumentError(f"gemm: {name} has the shape {array.shape}, and the result's is {shape}.")
    return matrix


def _vector(name: str, array: Array, extent: int) -> int:
    if array.shape != (extent,) or not array.flags.c_contiguous:
        raise ArgumentError(f"gemm: {name} has the shape {array.shape}; {extent} contiguous values are needed.")
    return array.ctypes.data


@overload
def gemm(a: Array, b: Array, *, report: Literal[False] = False, **options: Unpack[GemmOptions]) -> Array: ...
@overload
def gemm(a: Array, b: Array, *, report: Literal[True], **options: Unpack[GemmOptions]) -> tuple[Array, Report]: ...
def gemm(
    a: Array,
    b: Array,
    *,
    c: Array | None = None,
    bias: Array | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    activation: str = "none",
    scale_a: float | None = None,
    scale_b: float | None = None,
    dtype: str | None = None,
    dtype_b: str | None = None,
    out_dtype: str | None = None,
    out: Array | None = None,
    machine: Machine | None = None,
    report: bool = False,
) -> Array | tuple[Array, Report]:
    """D = activation(alpha scale_a scale_b A B + beta C + bias), as np.matmul takes A and B.

    a: (m, k) or (batch, m, k), b: (k, n) or (batch, k, n); one matrix serves a whole batch. Rows or columns are
    contiguous, so that a.T is as good as a. c: as the result, (m, n) or (batch, m, n), added `beta` times (1 where c
    is given). bias: (n,), added to every row. activation: "none", "relu", "gelu" (by tanh) or "silu".

    Types: float16, ml_dtypes' bfloat16, float8_e4m3fn and float8_e5m2; float32 is computed as tf32. uint16 and uint8
    hold raw bits of the type that `dtype` names ("f16", "bf16", "e4m3", "e5m2"), `dtype_b` of b where it is another.
    tf32 and fp8 need an sm_90, a's rows contiguous and b's columns (a linear layer's weight: w.T). out_dtype: "f16",
    "bf16" or "f32"; left out f32 of tf32, bf16 of fp8, else a's. Results of bf16 are ml_dtypes' where it is installed
    and a is not raw bits, else uint16.

    Returns D, new or `out`, and with `report` also the checker's Report; without it findings are a FindingError.
    Raises ArgumentError for what is not computed, with a sentence.
    """
    _arrays.as_array("gemm", "a", a)
    _arrays.as_array("gemm", "b", b)
    type_a = _arrays.dtype_of("gemm", "a", a, dtype)
    type_b = _arrays.dtype_of("gemm", "b", b, dtype_b if dtype_b is not None else dtype if _arrays.is_raw(b) else None)
    type_a, type_b = (("tf32" if t == "f32" else t) for t in (type_a, type_b))
    if out_dtype is not None and out_dtype not in ("f16", "bf16", "f32"):
        raise ArgumentError(f"gemm: out_dtype is {out_dtype!r}; it must be 'f16', 'bf16' or 'f32'.")
    type_out = out_dtype or {"tf32": "f32", "e4m3": "bf16", "e5m2": "bf16"}.get(type_a, type_a)
    if activation not in _ACTIVATIONS:
        raise ArgumentError(f"gemm: activation is {activation!r}; it must be one of {', '.join(_ACTIVATIONS)}.")

    batch = _batch_of({"a": a, "b": b} if c is None else {"a": a, "b": b, "c": _arrays.as_array("gemm", "c", c)})
    left, right = _matrix("a", a, batch), _matrix("b", b, batch)
    if left.columns != right.rows:
        raise ArgumentError(f"gemm: a has {left.columns} columns, and b {right.rows} rows; they must be as many.")
    m, n, k = left.rows, right.columns, left.columns
    batched = any(array.ndim == 3 for array in (a, b))
    shape = (batch, m, n) if batched else (m, n)
    result_type = _arrays.numpy_type(type_out, raw=_arrays.is_raw(a))
    if out is None:
        out = np.empty(shape, dtype=result_type)
    else:
        _arrays.writable("gemm", "out", out, shape, result_type)
    result = _row_major("out", out, batch, shape)

    g = GemmArguments()
    library.tegula_gemm_arguments_init(byref(g), ctypes.sizeof(g))
    g.in_a, g.in_b, g.out = (_arrays.CODES[t] for t in (type_a, type_b, type_out))
    g.activation = _ACTIVATIONS[activation]
    g.m, g.n, g.k, g.batch = m, n, k, batch
    g.a, g.a_major, g.lda, g.a_batch_stride = left.address, _MAJOR_K, left.ld, left.batch_stride
    if not left.columns_contiguous:
        g.a_major = _MAJOR_MN
    g.b, g.b_major, g.ldb, g.b_batch_stride = right.address, _MAJOR_MN, right.ld, right.batch_stride
    if not right.columns_contiguous:
        g.b_major = _MAJOR_K
    g.d, g.ldd, g.d_batch_stride = result.address, result.ld, result.batch_stride if batch > 1 else LEFT_OUT
    g.alpha, g.beta = alpha, (1.0 if c is not None else 0.0) if beta is None else beta
    if c is not None:
        if c.dtype != np.dtype(result_type):
            raise ArgumentError(f"gemm: c has elements of type {c.dtype}, and the result's are {np.dtype(result_type)}.")
        added = _row_major("c", c, batch, shape)
        g.c, g.ldc, g.c_batch_stride = added.address, added.ld, added.batch_stride
    if bias is not None:
        _arrays.as_array("gemm", "bias", bias)
        if bias.dtype != np.dtype(result_type):
            raise ArgumentError(
                f"gemm: bias has elements of type {bias.dtype}, and the result's are {np.dtype(result_type)}."
            )
        g.bias = _vector("bias", bias, n)
    factors = [None if scale is None else c_float(scale) for scale in (scale_a, scale_b)]
    g.scale_a, g.scale_b = (None if factor is None else ctypes.addressof(factor) for factor in factors)

    found = _launch(library.tegula_gemm, _on("gemm", machine), g, report)
    return out if found is None else (out, found)


def _tokens(name: str, array: Array) -> tuple[tuple[int, int, int, int], TokenStrides]:
    """(batch, seq, heads, head_dim) and the strides of the first three."""
    if array.ndim not in (3, 4):
        raise ArgumentError(
            f"attention: {name} has the shape {array.shape}; (batch, seq, heads, head_dim) or (seq, heads, head_dim) is "
            "needed."
        )
    if 0 in array.shape:
        raise ArgumentError(f"attention: {name} has the shape {array.shape}; an empty problem has no result.")
    whole = array if array.ndim == 4 else array[None]
    batch, seq, heads, last = _arrays.strides_of("attention", name, whole)
    if last != 1:
        raise ArgumentError(
            f"attention: {name} has a stride of {last} elements along the head dimension, which must be contiguous: use "
            f"np.ascontiguousarray({name})."
        )
    return cast("tuple[int, int, int, int]", whole.shape), TokenStrides(batch, seq, heads)


@overload
def attention(
    q: Array, k: Array, v: Array, *, return_lse: Literal[False] = False, report: Literal[False] = False, **options: Unpack[AttentionOptions]
) -> Array: ...
@overload
def attention(
    q: Array, k: Array, v: Array, *, return_lse: Literal[True], report: Literal[False] = False, **options: Unpack[AttentionOptions]
) -> tuple[Array, Array]: ...
@overload
def attention(
    q: Array, k: Array, v: Array, *, return_lse: Literal[False] = False, report: Literal[True], **options: Unpack[AttentionOptions]
) -> tuple[Array, Report]: ...
@overload
def attention(
    q: Array, k: Array, v: Array, *, return_lse: Literal[True], report: Literal[True], **options: Unpack[AttentionOptions]
) -> tuple[Array, Array, Report]: ...
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    scale: float | None = None,
    dtype: str | None = None,
    out: Array | None = None,
    return_lse: bool = False,
    machine: Machine | None = None,
    report: bool = False,
) -> Any:
    """O = softmax(scale Q K^T) V for each batch and head.

    q: (batch, seq_q, heads, head_dim), k and v: (batch, seq_k, kv_heads, head_dim), or all three without the batch;
    head_dim is 32, 64, 96, 128 or 256 and contiguous, kv_heads a divisor of heads. float16 or ml_dtypes' bfloat16, or
    uint16 with `dtype` "f16" or "bf16". scale: 1 / sqrt(head_dim) where left out. With `causal` query i sees keys
    j <= i + seq_k - seq_q; a query that sees none gives zeros.

    Returns O, new or `out`, of q's shape and type; with `return_lse` also the log-sum-exp of the scores, float32,
    (batch, heads, seq_q); with `report` also the checker's Report, without which findings are a FindingError. Raises
    ArgumentError for what is not computed, with a sentence.
    """
    given = {"q": q, "k": k, "v": v}
    types = {name: _arrays.dtype_of("attention", name, _arrays.as_array("attention", name, x), dtype) for name, x in given.items()}
    if len({x.dtype for x in given.values()}) != 1:
        raise ArgumentError(f"attention: q, k and v are {q.dtype}, {k.dtype} and {v.dtype}; they must have one type.")
    if len({x.ndim for x in given.values()}) != 1:
        raise ArgumentError(
            f"attention: q, k and v have the shapes {q.shape}, {k.shape} and {v.shape}; all or none must have a batch."
        )
    (batch, seq_q, heads, head_dim), q_stride = _tokens("q", q)
    k_shape, k_stride = _tokens("k", k)
    v_shape, v_stride = _tokens("v", v)
    _, seq_k, kv_heads, _ = k_shape
    if k_shape != v_shape:
        raise ArgumentError(f"attention: k has the shape {k.shape}, and v {v.shape}; they must be the same.")
    if (k_shape[0], k_shape[3]) != (batch, head_dim):
        raise ArgumentError(f"attention: q has the shape {q.shape}, and k {k.shape}; batch and head_dim must be the same.")
    if out is None:
        out = np.empty(q.shape, dtype=q.dtype)
    else:
        _arrays.writable("attention", "out", out, q.shape, q.dtype)
    _, o_stride = _tokens("out", out)
    lse = np.empty((batch, heads, seq_q), dtype=np.float32) if return_lse else None

    a = AttentionArguments()
    library.tegula_attention_arguments_init(byref(a), ctypes.sizeof(a))
    a.dtype, a.causal = _arrays.CODES[types["q"]], int(causal)
    a.batch, a.heads, a.kv_heads, a.seq_q, a.seq_k, a.head_dim = batch, heads, kv_heads, seq_q, seq_k, head_dim
    a.q, a.k, a.v, a.o = (x.ctypes.data for x in (q, k, v, out))
    a.lse = None if lse is None else lse.ctypes.data
    a.q_stride, a.k_stride, a.v_stride, a.o_stride = (
        ctypes.pointer(s) for s in (q_stride, k_stride, v_stride, o_stride)
    )
    if scale is not None:
        a.scale = ctypes.pointer(c_float(scale))
    found = _launch(library.tegula_attention, _on("attention", machine), a, report)

    if lse is not None and q.ndim == 3:
        lse = lse[0]
    results = [out] + [extra for extra in (lse, found) if extra is not None]
    return results[0] if len(results) == 1 else tuple(results)
