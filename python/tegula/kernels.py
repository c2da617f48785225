"""The GEMM and attention kernels, and the cache of those that were compiled when they were first used."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, Protocol, Unpack, overload

import numpy as np
import numpy.typing as npt

from . import _arrays, _attention, _problems, prepared
from ._block_scales import block_scales
from ._gpu_arrays import is_on_gpu
from ._library import flag, library, text_of
from ._options import AttentionOptions, GemmOptions
from .errors import ArgumentError, shown
from .machine import Machine, Report, simulated

Array = npt.NDArray[Any]


class GpuArray(Protocol):
    """An array in a GPU's memory, which tells so by DLPack: a tensor of PyTorch, an array of CuPy or JAX."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


def _no_stream(operation: str, stream: int | None) -> None:
    if stream is not None:
        raise ArgumentError(f"{operation}: stream is {shown(stream)}, and NumPy arrays are computed when the call returns; leave it out.")


def _no_report(operation: str, report: bool) -> None:
    if flag(f"{operation}: report", report):
        raise ArgumentError(f"{operation}: report is True, and a GPU makes none; the simulated machine does, of NumPy arrays.")


@overload
def gemm(a: Array, b: Array, *, report: Literal[False] = False, **options: Unpack[GemmOptions]) -> Array: ...
@overload
def gemm(a: Array, b: Array, *, report: Literal[True], **options: Unpack[GemmOptions]) -> tuple[Array, Report]: ...
@overload
def gemm(a: GpuArray, b: GpuArray, **options: Unpack[GemmOptions]) -> Any: ...
def gemm(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    activation: str = "none",
    scale_a: Any = None,
    scale_b: Any = None,
    block_scale: str | None = None,
    block_scale_a: Any = None,
    block_scale_b: Any = None,
    dtype: str | None = None,
    dtype_b: str | None = None,
    out_dtype: str | None = None,
    out: Any = None,
    machine: Machine | None = None,
    stream: int | None = None,
    report: bool = False,
) -> Any:
    """D = activation(alpha scale_a scale_b A B + beta C + bias), as np.matmul takes A and B.

    a: (m, k) or (batch, m, k), b: (k, n) or (batch, k, n); one matrix serves a whole batch. Rows or columns are
    contiguous, so that a.T is as good as a. c: as the result, (m, n) or (batch, m, n), added `beta` times (1 where c
    is given). bias: (n,), added to every row. activation: "none", "relu", "gelu" (by tanh) or "silu".

    Types: float16, ml_dtypes' bfloat16, float8_e4m3fn and float8_e5m2; float32 is computed as tf32. uint16 and uint8
    hold raw bits of the type that `dtype` names ("f16", "bf16", "e4m3", "e5m2"), `dtype_b` of b where it is another.
    tf32 and fp8 need an sm_90, a's rows contiguous and b's columns (a linear layer's weight: w.T). out_dtype: "f16",
    "bf16" or "f32"; left out f32 of tf32, bf16 of fp8, else a's. Results of bf16 are ml_dtypes' where it is installed
    and a is not raw bits, else uint16.

    Scales of blocks, on a simulated sm_100 (`machine=Machine(arch="sm100")`), of NumPy arrays whose k is contiguous: with
    block_scale "mx" each 32 elements along k have a scale of float8_e8m0fnu (mxf8, mxf6, mxf4), with "nv" each
    16 one of float8_e4m3fn (nvf4, of e2m1), or of uint8 with their bits. block_scale_a is (m, blocks), block_scale_b
    (blocks, n), with the batch as a and b. e2m1 is uint8 with `dtype` "e2m1": two elements along k in a byte, the first
    in its low half, so that a is (m, k / 2) and b (k / 2, n). "e2m3" and "e3m2" are four in three bytes, bit after bit;
    with "mx" a and b may differ. Where they do, and of 6 bits, k is a multiple of 128.

    Arrays of a GPU (PyTorch's, CuPy's, and others by DLPack or __cuda_array_interface__) are computed there, queued on
    `stream`, the address of a cudaStream_t, else on the current stream of PyTorch or CuPy; scale_a and scale_b are then
    arrays of one float32 there.

    Returns D, new or `out`, and with `report` also the checker's Report; without it findings are a FindingError.
    Raises ArgumentError for what is not computed, with a sentence.
    """
    if is_on_gpu(a):
        _no_report("gemm", report)
        for name, given in (("block_scale", block_scale), ("block_scale_a", block_scale_a), ("block_scale_b", block_scale_b)):
            if given is not None:
                raise ArgumentError(f"gemm: {name} is {shown(given)}, and a is on a GPU; scales of blocks are of NumPy arrays on a simulated sm_100.")
        options: dict[str, Any] = dict(c=c, bias=bias, alpha=alpha, beta=beta, activation=activation)
        options |= dict(scale_a=scale_a, scale_b=scale_b, dtype=dtype, dtype_b=dtype_b, out_dtype=out_dtype, out=out)
        return prepared.gemm(a, b, machine=machine, stream=stream, **options)
    _no_stream("gemm", stream)
    flag("gemm: report", report)
    raw = _arrays.is_raw(a)
    said_of_b = dtype_b if dtype_b is not None else dtype if _arrays.is_raw(b) else None
    factors = {
        name: np.array(_problems.real("gemm", name, factor), dtype=np.float32)
        for name, factor in (("scale_a", scale_a), ("scale_b", scale_b))
        if factor is not None
    }
    of_a = _arrays.operand("gemm", "a", a, dtype)
    of_b = _arrays.operand("gemm", "b", b, said_of_b, "dtype" if dtype_b is None else "dtype_b")
    # TMA unpacks 4 and 6 bits from multiples of 32 bytes.
    if of_a.type in _problems.PACKED:
        a = _arrays.aligned(a, 32)
        of_a = _arrays.operand("gemm", "a", a, dtype)
    if of_b.type in _problems.PACKED:
        b = _arrays.aligned(b, 32)
        of_b = _arrays.operand("gemm", "b", b, said_of_b)
    out_type = _problems.result_type(of_a.type, out_dtype)
    added = {
        name: _arrays.operand("gemm", name, x, out_type if raw and _arrays.is_raw(x) else None, types=(out_type,))
        for name, x in (("c", c), ("bias", bias))
        if x is not None
    }
    scales = block_scales("gemm", block_scale, of_a, block_scale_a, of_b, block_scale_b)
    if scales is not None:
        addresses = dict(block_scale=scales.code, block_scale_a=scales.a.ctypes.data, block_scale_b=scales.b.ctypes.data)
    problem = _problems.Gemm(
        of_a,
        of_b,
        c=added.get("c"),
        bias=added.get("bias"),
        alpha=alpha,
        beta=beta,
        activation=activation,
        out_dtype=out_dtype,
        **{name: factor.ctypes.data for name, factor in factors.items()},
        **(addresses if scales is not None else {}),
    )
    if out is None:
        out = np.empty(problem.shape, dtype=_arrays.numpy_type(problem.out_type, raw))
    of_out = _arrays.result("gemm", "out", out, out_type, (out_type,))
    arguments = problem.into(of_out)
    # C may be D, in place.
    in_place = "c" in added and (added["c"].address, added["c"].shape, added["c"].strides) == (of_out.address, of_out.shape, of_out.strides)
    _problems.check_apart("gemm", of_out, (of_a, of_b, *(x for name, x in added.items() if name != "c" or not in_place)))
    on = simulated("gemm", machine)
    _workspace = _with_workspace(problem, on)
    found = _problems.launch(library.tegula_gemm, on, arguments, None, report)
    return out if found is None else (out, found)


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
@overload
def attention(q: GpuArray, k: GpuArray, v: GpuArray, *, return_lse: bool = False, **options: Unpack[AttentionOptions]) -> Any: ...
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] = (None, None),
    softcap: float = 0.0,
    sink: Any = None,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    seqused_k: Any = None,
    page_table: Any = None,
    k_new: Any = None,
    v_new: Any = None,
    cu_seqlens_new: Any = None,
    max_seqlen_new: int | None = None,
    splits: int | None = None,
    precise: bool | None = None,
    dtype: str | None = None,
    out_dtype: str | None = None,
    out: Any = None,
    return_lse: bool = False,
    machine: Machine | None = None,
    stream: int | None = None,
    report: bool = False,
) -> Any:
    """O = softmax(scale Q K^T) V for each batch and head.

    q: (batch, seq_q, heads, head_dim), k: (batch, seq_k, kv_heads, head_dim), v: the same with head_dim_v, or all three
    without the batch; kv_heads is a divisor of heads, the head dimension contiguous. float16, ml_dtypes' bfloat16 or
    float8_e4m3fn, or uint16 and uint8 with `dtype` "f16", "bf16" or "e4m3". scale: 1 / sqrt(head_dim) where left out, else
    from 2^-126 to 2^126.

    Query i stands at key i + seq_k - seq_q. With `causal` it sees no key behind that place; with `window` (left, right)
    only that many keys before it and behind it, where they are not None. A query that sees none gives zeros. With a
    softcap c, from 2^-60 to 2^12, a score s becomes c tanh(s / c). sink: float32, (heads,), one more score of every row of its
    head, finite or -inf, which has no value.

    On an sm_90 head dims are multiples of 8 up to 256, of e4m3 of 16, and head_dim_v may be another one than head_dim; on an
    sm_100 up to 192, of v 128, or 256 for both, not of e4m3. An sm_80 computes 32, 64, 96, 128 and 256, equal for both, in 16
    bits, and neither windows, softcap, sinks, nor lengths and pages.

    Latent attention, of DeepSeek-V2's decoding, on an sm_90: head_dim 576 in bf16, one head of keys, and v is k[..., :512].

    e4m3: an element stands for itself times q_descale, k_descale or v_descale, float32, one for all or one for each
    batch and key head, (batch, kv_heads); in a GPU's memory all three have one form. They are finite, q_descale and
    k_descale above 0. O is then bf16, or what out_dtype says, "f16" or "bf16". precise: sums over keys
    in f32, which is left out for; False is faster, and keeps the tensor core's 13 bits.

    Sequences of their own lengths. With cu_seqlens_q, int32, (batch + 1), ascending from 0, q and O are
    packed, (tokens, heads, head_dim): sequence b has the queries from cu_seqlens_q[b] up to cu_seqlens_q[b + 1], at
    most max_seqlen_q (left out: all tokens; a bound that is near the largest is faster). cu_seqlens_k and max_seqlen_k
    are the same of k and v. With seqused_k, int32, (batch), sequence b has only the first seqused_k[b] keys. With
    page_table, int32, (batch, pages of a sequence), k and v are (pages, page_size, kv_heads, head_dim), and key j of
    sequence b is token j % page_size of page page_table[b, j // page_size]; page_size is 16, 32, 64 or a multiple of
    128. Lengths, pages and factors of NumPy arrays are checked; on a GPU a longer sequence is cut.

    With k_new and v_new, (batch, seq_new, kv_heads, head_dim), k and v are a cache that is written to: sequence b has
    seqused_k[b] keys there, the new ones are copied behind them, and all are seen. seqused_k stays as it is. With
    cu_seqlens_new, int32, (batch + 1), new keys are packed, at most max_seqlen_new of a sequence. They have the cache's
    type; of e4m3 float16 or bfloat16 too, which are divided by k_descale and v_descale. Latent keys have no v_new.

    Few queries on many keys are computed by more CTAs on an sm_90, each on a part of the keys, as many as is best; `splits` says
    how many, from 1 to 1024, and 1 gives bits that do not depend on the batch.

    Arrays of a GPU are computed there, as gemm says.

    Returns O, new or `out`, (batch, seq_q, heads, head_dim_v) as q has its tokens; with `return_lse` also the log-sum-exp of the scores, float32,
    (batch, heads, seq_q), or of packed queries (heads, tokens); with `report` also the checker's Report, without which findings are a FindingError. Raises
    ArgumentError for what is not computed, with a sentence.
    """
    flag("attention: return_lse", return_lse)
    _attention.check_dtype(dtype)
    arrays = dict(sink=sink, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
    arrays |= dict(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqused_k=seqused_k, page_table=page_table)
    arrays |= dict(k_new=k_new, v_new=v_new, cu_seqlens_new=cu_seqlens_new)
    options: dict[str, Any] = dict(causal=causal, scale=scale, window=window, softcap=softcap, out_dtype=out_dtype)
    options |= dict(max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k, max_seqlen_new=max_seqlen_new)
    options |= dict(splits=splits, precise=precise)
    if is_on_gpu(q):
        _no_report("attention", report)
        options |= dict(dtype=dtype, out=out, return_lse=return_lse, arrays=arrays)
        return prepared.attention(q, k, v, machine=machine, stream=stream, **options)
    _no_stream("attention", stream)
    flag("attention: report", report)
    types = _attention.TYPES
    operands = {"q": _arrays.operand("attention", "q", q, dtype, types=types)}
    for name, x in (("k", k), ("v", v)):
        if k_new is None:
            operands[name] = _arrays.operand("attention", name, x, dtype, types=types)
        else:  # a cache
            operands[name] = _arrays.result("attention", name, x, dtype, types)
    kept: dict[str, Any] = {}
    for name, x in arrays.items():
        if x is not None and name in _attention.INTEGERS:
            operands[name] = _arrays.integers("attention", name, x)
        elif x is not None:
            factor = name in _attention.DESCALES and not isinstance(x, np.ndarray)
            kept[name] = np.array(_problems.real("attention", name, x), dtype=np.float32) if factor else x
            is_new = name in _attention.NEW
            raw_new = dtype if is_new and _arrays.is_raw(x) else None
            operands[name] = _arrays.operand("attention", name, kept[name], raw_new, types=types if is_new else ("f32",))

    def for_each(name: str, shape: tuple[int, int]) -> _problems.Operand:
        kept[name] = np.ascontiguousarray(np.broadcast_to(kept[name], shape))
        return _arrays.operand("attention", name, kept[name])

    problem = _attention.Attention(operands, _attention.Options(**options), on_host=True, for_each=for_each)
    if out is None:
        out = np.empty(problem.shape, dtype=_arrays.numpy_type(problem.out_type, _arrays.is_raw(q)))
        if cu_seqlens_q is not None:
            out[cu_seqlens_q[-1] :] = 0
    lse = np.empty(problem.lse_shape, dtype=np.float32) if return_lse else None
    if lse is not None and cu_seqlens_q is not None:
        lse[:, cu_seqlens_q[-1] :] = -np.inf
    of_out = _arrays.result("attention", "out", out, problem.out_type, (problem.out_type,))
    arguments = problem.into(of_out, None if lse is None else lse.ctypes.data)
    on = simulated("attention", machine)
    _workspace = _with_workspace(problem, on)
    found = _problems.launch(library.tegula_attention, on, arguments, None, report)
    results = [out] + [extra for extra in (lse, found) if extra is not None]
    return results[0] if len(results) == 1 else tuple(results)


def _with_workspace(problem: Any, machine: Machine) -> Array:
    """Memory that the problem is given to work in, where it is of use: to be held until it is computed."""
    workspace = np.empty(problem.workspace_bytes(machine) + 15, dtype=np.uint8)
    if workspace.size > 15:
        problem.work_in((workspace.ctypes.data + 15) // 16 * 16, workspace.size - 15)
    return workspace


# --- kernels compiled when they are first used ------------------------------------------------------------------------


class CachedKernel(NamedTuple):
    """A kernel that was compiled, and is kept on disk."""

    name: str
    arch: str  # "sm_90a"
    compiler: str  # "NVRTC 13.0"
    bytes: int  # of machine code
    path: str


class CompiledKernel(NamedTuple):
    """What compile did for a kernel. Registers and spilled bytes are 0 of one that came from the cache."""

    name: str
    arch: str
    path: str
    from_cache: bool
    seconds: float
    registers: int
    spilled_bytes: int


def _encoded(name: str, text: Any) -> bytes:
    if not isinstance(text, str) or "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise ArgumentError(f"compile: {name} is {shown(text)}; it must be text.")
    return text.encode()


def cached() -> list[CachedKernel]:
    """The kernels in the cache of this user, by name."""
    found = json.loads(text_of(library.tegula_cached_kernels))
    return [CachedKernel(**kernel) for kernel in found["kernels"]]


def compile(kernel: str, arch: str | None = None) -> list[CompiledKernel]:
    """Compiles kernels into the cache, ahead of their first use; needs NVRTC, and no GPU.

    kernel: a name, as `tegula info` prints it, or the words that names begin with. arch: "sm_90a"; left out the first
    GPU's, and "sm_90a" where there is none. Raises ArgumentError for a name or an architecture that there is not,
    DeviceError, which says what to install, without NVRTC.
    """
    encoded = None if arch is None else _encoded("arch", arch)
    made = json.loads(text_of(library.tegula_compile, _encoded("kernel", kernel), encoded))
    return [CompiledKernel(**{field: entry[field] for field in CompiledKernel._fields}) for entry in made]
