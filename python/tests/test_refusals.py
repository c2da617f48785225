"""Bad calls: each is the right exception, with one sentence that names the argument, its value and what is accepted."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tegula
from tegula import ArgumentError, Kernel, Layout, LayoutError, Machine
from tegula import deep_gemm as dg

H, F, I, E4M3 = np.float16, np.float32, np.int32, ml_dtypes.float8_e4m3fn
A = np.ones((32, 32), H)
ROUNDED = np.ones((32, 32), ml_dtypes.bfloat16)
TWICE = np.ones((64, 64), ml_dtypes.bfloat16)
T = np.ones((8, 2, 64), H)  # tokens
B = T[None]
PAGES = np.ones((4, 16, 2, 64), H)
E = np.ones((1, 8, 2, 64), E4M3)
X = np.ones((32, 128), F)
NEW: dict[str, Any] = {"k_new": B.copy(), "v_new": B.copy(), "seqused_k": np.zeros(1, I)}
ODD = np.frombuffer(bytes(2 * T.size + 1), np.uint8)[1:].view(H)  # at an odd address


class SaysItIsAnArray:
    shape, dtype = (32, 32), H

    def __array__(self) -> np.ndarray:
        return A


def strided(*shape: int) -> np.ndarray:
    """Of one element's memory, and far larger than any memory."""
    return np.lib.stride_tricks.as_strided(T, shape, (0, 0, 128, 2)[-len(shape) :])


def gemm(*operands: Any, **options: Any) -> Callable[[], Any]:
    """tegula.gemm of these, or with these options."""
    return lambda: tegula.gemm(*(operands or (A, A)), **options)


def attention(*operands: Any, **options: Any) -> Callable[[], Any]:
    return lambda: tegula.attention(*(operands or (B, B, B)), **options)


def lengths(*bounds: int, keys: Any = B, **options: Any) -> Callable[[], Any]:
    """Packed queries of these bounds."""
    return lambda: tegula.attention(T, keys, keys, **{"cu_seqlens_q": np.array(bounds, I), **options})


def used(*counts: int) -> Callable[[], Any]:
    return attention(seqused_k=np.array(counts, I))


def packed_and_used(*counts: int) -> Callable[[], Any]:
    """Two packed sequences, of 5 and of 15 tokens, of which so many are used."""
    tokens, bounds = np.ones((20, 2, 64), ROUNDED.dtype), np.array([0, 5, 20], I)
    return lambda: tegula.attention(tokens, tokens, tokens, cu_seqlens_q=bounds, cu_seqlens_k=bounds, seqused_k=np.array(counts, I))


def pages(table: Any, keys: int = 8, of: Any = PAGES) -> Callable[[], Any]:
    return lambda: tegula.attention(B, of, of, page_table=table, seqused_k=np.array([keys], I))


def launch(*arguments: Any, grid: Any = 1) -> Callable[[], Any]:
    """Of a kernel whose source is never compiled."""
    return lambda: Kernel("struct k;\n", "k")(grid, *arguments)


def groups_of_k(a: Any, **options: Any) -> Callable[[], Any]:
    """Two groups of 16 columns of a."""
    return lambda: tegula.grouped_gemm(a, np.ones((32, 32), H).T, np.array([16, 32], I), by="k", **options)


def of_groups(function: Any, d: Any, *rest: Any) -> Callable[[], Any]:
    rows = d.shape[:-1]
    a = np.ones((*rows, 128), E4M3), np.ones((*rows, 1), F)
    b = np.ones((2, 32, 128), E4M3), np.ones((2, 1, 1), F)
    return lambda: function(a, b, d, *rest)


def scaled(d: Any, **options: Any) -> Callable[[], Any]:
    return lambda: dg.fp8_gemm_nt(dg.per_token_cast_to_fp8(X), dg.per_block_cast_to_fp8(X), d, **options)


TYPES = "float16, float32, and ml_dtypes' bfloat16, float8_e4m3fn and float8_e5m2 are computed"

CALLS: list[tuple[Callable[[], Any], str]] = [
    # what is no array, or none of a type that is computed
    (gemm(None, A), "gemm: a is NoneType; a NumPy array is needed."),
    (gemm(A, 3.0), "gemm: b is float; a NumPy array is needed."),
    (gemm("a", A), "gemm: a is str; a NumPy array is needed."),
    (gemm(H(1), A), "gemm: a is float16; a NumPy array is needed."),
    (gemm(SaysItIsAnArray(), A), "gemm: a is SaysItIsAnArray; a NumPy array is needed."),
    (gemm(A.astype(complex), A), f"gemm: a has elements of type complex128; {TYPES}."),
    (gemm(A.astype(bool), A), f"gemm: a has elements of type bool; {TYPES}."),
    (gemm(A.astype(object), A), f"gemm: a has elements of type object; {TYPES}."),
    (gemm(A.astype(np.int8), A), f"gemm: a has elements of type int8; {TYPES}."),
    (gemm(np.zeros((4, 4), [("x", "f2")]), A), f"gemm: a has elements of type [('x', '<f2')]; {TYPES}."),
    (gemm(np.zeros((4, 4), "M8[s]"), A), f"gemm: a has elements of type datetime64[s]; {TYPES}."),
    (gemm(bias=[1.0] * 32), "gemm: bias is list; a NumPy array is needed."),
    (gemm(c=[[1.0]]), "gemm: c is list; a NumPy array is needed."),
    (gemm(out=[[1.0]]), "gemm: out is list; a NumPy array is needed."),
    (attention(B, [1.0], B), "attention: k is list; a NumPy array is needed."),
    (attention(B, B, None), "attention: v is NoneType; a NumPy array is needed."),
    (attention(sink=[1.0, 1.0]), "attention: sink is list; a NumPy array is needed."),
    (attention(cu_seqlens_q=[0, 8]), "attention: cu_seqlens_q is of list; a NumPy array of int32 is needed."),
    (attention(cu_seqlens_q=np.array([0, 8])), "attention: cu_seqlens_q is of int64; a NumPy array of int32 is needed."),
    (attention(seqused_k=[8]), "attention: seqused_k is of list; a NumPy array of int32 is needed."),
    (attention(seqused_k=np.ma.array([3], I)), "attention: seqused_k is a masked array, and masks are not looked at: use .filled()."),
    (pages([[0]]), "attention: page_table is of list; a NumPy array of int32 is needed."),
    (pages(np.zeros((1, 1), np.int64)), "attention: page_table is of int64; a NumPy array of int32 is needed."),
    (launch([1.0]), "k: argument 0 is list; an array, a bool, an int (int), a float (float)"),
    (launch(None), "k: argument 0 is NoneType; an array, a bool, an int (int), a float (float)"),
    (lambda: dg.per_token_cast_to_fp8([1.0]), "per_token_cast_to_fp8: x is list; a NumPy array or a torch.Tensor is needed."),
    (lambda: dg.per_token_cast_to_fp8(A), "per_token_cast_to_fp8: x has elements of type float16; bfloat16 or float32 is needed."),
    (lambda: dg.fp8_gemm_nt(X, X, X), "fp8_gemm_nt: a is ndarray; a pair of elements and scales is needed."),  # type: ignore[arg-type]
    (scaled([1.0]), "fp8_gemm_nt: d is list; a NumPy array is needed."),
    (lambda: dg.calc_diff(3, X), "calc_diff: x is int; a NumPy array or a torch.Tensor of numbers is needed."),
    (lambda: tegula.prepare_gemm(None, None), "gemm: a is None; an array in a GPU's memory is needed."),
    (lambda: tegula.prepare_attention(B, B, B), "attention: q is in the host's memory; all operands must be on one GPU."),
    (attention(B.astype(float), B, B), "attention: q has elements of type float64; float16, bfloat16 or float8_e4m3fn is needed."),
    (attention(B.astype(F), B, B), "attention: q has elements of type float32; float16, bfloat16 or float8_e4m3fn is needed."),
    (attention(B, B, B.astype(float)), "attention: v has elements of type float64; float16, bfloat16 or float8_e4m3fn is needed."),
    (attention(B.view(np.uint16), B, B), "attention: q has elements of type uint16; float16, bfloat16 or float8_e4m3fn is needed (raw bits need dtype=)."),
    (attention(dtype="nope"), "attention: dtype is 'nope'; it must be one of f16, bf16, e4m3."),
    (attention(dtype="tf32"), "attention: dtype is 'tf32'; it must be one of f16, bf16, e4m3."),
    (attention(sink=np.ones(2)), "attention: sink has elements of type float64; float32 is needed."),
    (attention(E, E, E, q_descale=np.ones((1, 2))), "attention: q_descale has elements of type float64; float32 is needed."),
    (attention(k_new=B.astype(float), v_new=B, seqused_k=np.zeros(1, I)), "attention: k_new has elements of type float64; float16, bfloat16 or float8_e4m3fn is needed."),
    (attention(out=B.astype(float)), "attention: out has elements of type float64; float16 is needed."),
    (gemm(out=A.astype(float)), "gemm: out has elements of type float64; float16 is needed."),
    (gemm(c=A.astype(float)), "gemm: c has elements of type float64; float16 is needed."),
    (gemm(bias=np.ones(32), out_dtype="f32"), "gemm: bias has elements of type float64; float32 is needed."),
    # shapes
    (gemm(np.ones((1, 1, 2, 2), H), A), "gemm: a has the shape (1, 1, 2, 2); (rows, columns) or (batch, rows, columns) is needed."),
    (gemm(c=np.ones((31, 32), H)), "gemm: c has the shape (31, 32), and the result's is (32, 32)."),
    (gemm(bias=A), "gemm: bias has the shape (32, 32) and strides of (32, 1) elements; 32 contiguous values are needed."),
    (attention(B[..., :63], B[..., :63], B), "attention: head_dim is 63; multiples of 8 from 8 to 256 are computed"),
    (attention(*[np.ones((1, 8, 2, 520), H)] * 3), "attention: head_dim is 520; multiples of 8 from 8 to 256 are computed"),
    (attention(*[B[..., :0]] * 3), "attention: q has the shape (1, 8, 2, 0); an empty problem has no result."),
    (attention(*[B[:, :, :0]] * 3), "attention: q has the shape (1, 8, 0, 64); an empty problem has no result."),
    (attention(*[B[None]] * 3), "attention: q has the shape (1, 1, 8, 2, 64); (batch, seq, heads, head_dim) or"),
    (attention(np.ones((1, 8, 3, 64), H), B, B), "attention: heads is 3 and kv_heads is 2; heads must be a multiple of kv_heads."),
    (attention(B, B[..., :32], B), "attention: q has the shape (1, 8, 2, 64), and k (1, 8, 2, 32); batch and head_dim must be the same."),
    (attention(B, *[np.ones((2, 8, 2, 64), H)] * 2), "attention: q has the shape (1, 8, 2, 64), and k (2, 8, 2, 64); batch"),
    (attention(out=B[..., :32].copy()), "attention: out has the shape (1, 8, 2, 32), and the result's is (1, 8, 2, 64)."),
    (attention(E, E, E, k_descale=np.ones((2, 2), F)), "attention: k_descale is of f32 and has the shape (2, 2); one f32, or an f32 for each"),
    (lengths(), "attention: cu_seqlens_q has the shape (0,); (sequences + 1,) is needed."),
    (lengths(0), "attention: cu_seqlens_q has the shape (1,); (sequences + 1,) is needed."),
    (lengths(cu_seqlens_q=np.array([[0, 8]], I)), "attention: cu_seqlens_q has the shape (1, 2); (sequences + 1,) is needed."),
    (used(8, 8), "attention: seqused_k is of i32 and has the shape (2,); contiguous int32 of the shape (1,) is needed."),
    (pages(np.zeros(1, I)), "attention: page_table has the shape (1,); (batch, pages of a sequence) is needed."),
    (pages(np.zeros((2, 1), I)), "attention: page_table is of i32 and has the shape (2, 1); contiguous int32 of the shape (1, 1) is needed."),
    (pages(np.zeros((1, 0), I), 0), "attention: page_table has the shape (1, 0); a sequence has at least one page."),
    (pages(np.zeros((1, 1), I), of=PAGES[:, :15]), "attention: page_size is 15; it must be 16, 32, 64 or a multiple of 128"),
    (lambda: dg.per_token_cast_to_fp8(X[0]), "per_token_cast_to_fp8: x has the shape (128,); (rows, columns) is needed."),
    (scaled(np.empty((3, 3), F)), "fp8_gemm_nt: d has the shape (3, 3), and the result's is (32, 32)."),
    # strides and addresses
    (gemm(c=A.T), "gemm: c has columns that are contiguous, and rows must be: use np.ascontiguousarray(c)."),
    (gemm(bias=np.ones(64, H)[::2]), "gemm: bias has the shape (32,) and strides of (2,) elements; 32 contiguous values are needed."),
    (gemm(np.broadcast_to(A[0], (2**31, 32)), A), "gemm: a has strides of 0 and 1 elements, and neither its rows nor its columns"),
    (gemm(out=np.ones((64, 64), H)[::2, ::2]), "gemm: out has strides of 128 and 2 elements, and neither its rows nor its columns"),
    (gemm(ODD[: A.size].reshape(32, 32), A), "1 byte past a multiple of 2; it must be aligned to 2 bytes."),
    (attention(*[ODD.reshape(B.shape)] * 3), "1 byte past a multiple of 16; it must be aligned to 16 bytes."),
    (attention(*[np.ones((1, 8, 2, 128), H)[..., ::2]] * 3), "attention: q has a stride of 2 elements along the head dimension, which must be contiguous"),
    (attention(sink=np.ones(4, F)[::2]), "attention: sink is of f32 and has the shape (2,) and strides of (2,) elements; 2 contiguous values"),
    (launch(A[::2, ::2]), "k: argument 0 is an array with gaps; a contiguous one is needed: use np.ascontiguousarray."),
    # results, of which a copy would not be written to
    (attention(out=B.copy()[:, ::-1]), "attention: out has a stride of -256 bytes, and elements of 2; strides must be whole elements and not negative: allocate out so."),
    (attention(out=np.ones((1, 8, 2, 128), H)[..., ::2]), "attention: out has a stride of 2 elements along the head dimension, which must be contiguous: allocate out so."),
    (attention(out=B.astype(">f2")), "attention: out has bytes in the other order than this machine; this machine's is needed."),
    (attention(out=np.ma.array(B)), "attention: out is a masked array, and masks are not looked at: a plain array is needed."),
    (attention(B, B.copy()[:, ::-1], B.copy(), **NEW), "attention: k has a stride of -256 bytes, and elements of 2; strides must be whole elements and not negative: allocate k so."),
    (attention(B, B.copy(), np.ones((1, 8, 2, 128), H)[..., ::2], **NEW), "which must be contiguous: allocate v so."),
    (attention(B, np.broadcast_to(B, B.shape), B, **NEW), "attention: k cannot be written to; an array whose flags.writeable is True is needed."),
    # numbers
    (gemm(alpha=None), "gemm: alpha is None; it must be a number."),
    (gemm(alpha=np.ones(3)), "gemm: alpha is array([1., 1., 1.]); it must be a number."),
    (gemm(alpha=1j), "gemm: alpha is 1j; it must be a number."),
    (gemm(alpha=10**400), "gemm: alpha is inf; it must be a finite number of f32."),
    (gemm(alpha=1e-46), "gemm: alpha is 1e-46, which f32 rounds to 0; it must be 0, or at least 1.4"),
    (gemm(scale_b=-1e-300), "gemm: scale_b is -1e-300, which f32 rounds to 0; it must be 0, or at least 1.4"),
    (attention(softcap=1e-46), "attention: softcap is 1e-46, which f32 rounds to 0; it must be 0, for none, or between 2^-60 and 2^12."),
    (attention(softcap=1e-44), "attention: softcap is 1e-44; it must be 0, for none, or between 2^-60 and 2^12."),
    (attention(scale=1e-46), "attention: scale is 1e-46, which f32 rounds to 0; it must be between 2^-126 and 2^126."),
    (attention(scale=0.0), "attention: scale is 0; it must be between 2^-126 and 2^126."),
    (gemm(beta=2), "gemm: beta is 2, and c is left out; it must be an array where beta is not 0."),
    (gemm(A, A.astype(F)), "gemm: a has elements of f16, and b of f32; both must be the same type, or each e4m3 or e5m2."),
    (gemm(c=A, beta=float("nan")), "gemm: beta is nan; it must be a finite number of f32."),
    (gemm(scale_a=float("nan")), "gemm: scale_a is nan; it must be a finite number of f32."),
    (attention(scale=float("nan")), "attention: scale is nan; it must be between 2^-126 and 2^126."),
    (attention(scale=-1.0), "attention: scale is -1; it must be between 2^-126 and 2^126."),
    (attention(softcap=float("nan")), "attention: softcap is nan; it must be 0, for none, or between 2^-60 and 2^12."),
    (attention(E, E, E, q_descale=float("nan")), "attention: q_descale is nan; it must be a finite number of f32."),
    (attention(E, E, E, k_descale=float("inf")), "attention: k_descale is inf; it must be a finite number of f32."),
    (attention(E, E, E, q_descale=0.0), "attention: q_descale is array(0., dtype=float32); every factor must be finite and above 0."),
    (attention(E, E, E, k_descale=np.array([[1, -1]], F)), "attention: k_descale is array([[ 1., -1.]], dtype=float32); every factor must"),
    (attention(E, E, E, k_descale=np.array([[1, np.nan]], F)), "attention: k_descale is array([[ 1., nan]], dtype=float32); every factor must"),
    (attention(E, E, E, v_descale=np.array([[1, np.nan]], F)), "attention: v_descale is array([[ 1., nan]], dtype=float32); every factor must be finite."),
    (attention(E, E, E, v_descale=np.array([np.inf], F)), "attention: v_descale is array([inf], dtype=float32); every factor must be finite."),
    (
        attention(E, E.copy(), E.copy(), v_descale=0.0, k_new=B, v_new=B, seqused_k=np.zeros(1, I)),
        "attention: v_descale is array(0., dtype=float32); every factor must be finite and not 0, for v_new is divided by it.",
    ),
    (attention(sink=np.array([0, np.nan], F)), "attention: sink is array([ 0., nan], dtype=float32); every score must be finite, or -inf for none."),
    (attention(sink=np.array([np.inf, 0], F)), "attention: sink is array([inf, 0.], dtype=float32); every score must be finite, or -inf for none."),
    (attention(E, E, E, k_descale=[[1.0, 1.0]]), "attention: k_descale is [[1.0, 1.0]]; it must be a number."),
    (attention(q_descale=1.0), "attention: q_descale is set and dtype is f16; only of e4m3 there are factors."),
    (attention(splits=0), "attention: splits is 0; it must be from 1 to 1024."),
    (attention(splits=1.5), "attention: splits is 1.5; it must be an integer."),
    (attention(splits=2**31 - 1), "attention: splits is 2147483647; it must be from 1 to 1024."),
    (attention(window=(1, 2, 3)), "attention: window is (1, 2, 3); it must be a pair of integers or None."),
    (attention(window=(1.5, 0)), "attention: window is (1.5, 0); it must be a pair of integers or None."),
    (attention(window=(2**62, 0)), "attention: window is (4611686018427387904, 0); its limits must be from 0 to 2^62 - 1, or None."),
    (attention(causal=1), "attention: causal is 1; it must be True or False."),
    (gemm(stream=1), "gemm: stream is 1, and NumPy arrays are computed when the call returns; leave it out."),
    (attention(stream="x"), "attention: stream is 'x', and NumPy arrays are computed when the call returns; leave it out."),
    (launch(2**40), "k: argument 0 is 1099511627776, which no int holds; say np.int64 for a member of 64 bits."),
    (launch(1e300), "k: argument 0 is 1e+300, which no float holds; say np.float64 for a double."),
    (launch(np.array(["x"])), "k: argument 0 has elements of type <U1; numbers in this machine's order of bytes are needed."),
    (launch(np.ma.masked_array(A)), "k: argument 0 is a masked array, and masks are not looked at: use .filled()."),
    (launch(grid=0), "k: grid is 0; it must be one to three integers from 1 to 2^31 - 1."),
    (launch(grid=2**31), "k: grid is 2147483648; it must be one to three integers from 1 to 2^31 - 1."),
    (launch(grid=(1, 1, 1, 1)), "k: grid is (1, 1, 1, 1); it must be one to three integers from 1 to 2^31 - 1."),
    (launch(grid="x"), "k: grid is 'x'; it must be one to three integers."),
    (lambda: Machine(arch="sm70"), "Machine: arch is 'sm70'; it must be 'sm80', 'sm90' or 'sm100'."),
    (lambda: Machine(workers=-1), "Machine: workers is -1; it must be from 0 to 1024."),
    (lambda: Machine(bank_conflicts=0, check=False), "Machine: bank_conflicts is 0, and check is off; it is about what the checker finds: leave it out."),
    (lambda: Machine(excess_sectors=3, check=False), "Machine: excess_sectors is 3, and check is off; it is about what the checker finds: leave it out."),
    (lambda: Machine(seed=2**64), "Machine: seed is 18446744073709551616; it must be an integer from 0 to 2^64 - 1."),
    (lambda: dg.get_tma_aligned_size(4, 0), "get_tma_aligned_size: element_size is 0; it must be 1, 2, 4, 8 or 16 bytes."),
    # lengths, pages, groups
    (lengths(0, -8), "attention: cu_seqlens_q is [0, -8]; it must rise from 0 to at most the 8 tokens."),
    (lengths(0, 8, 4, keys=np.ones((2, 8, 2, 64), H)), "attention: cu_seqlens_q is [0, 8, 4]; it must rise from 0 to at most the 8 tokens."),
    (lengths(1, 8), "attention: cu_seqlens_q is [1, 8]; it must rise from 0 to at most the 8 tokens."),
    (lengths(0, 9), "attention: cu_seqlens_q is [0, 9]; it must rise from 0 to at most the 8 tokens."),
    (lengths(0, 8, max_seqlen_q=3), "attention: max_seqlen_q is 3, and a sequence of cu_seqlens_q has 8 tokens; it must be as many."),
    (lengths(0, 8, max_seqlen_q=0), "attention: max_seqlen_q is 0; it must be from 1 to 2^31 - 1."),
    (lengths(0, 8, max_seqlen_q="x"), "attention: max_seqlen_q is 'x'; it must be an integer."),
    (attention(max_seqlen_k=4), "attention: max_seqlen_k is 4, and k has 8 keys; it is for cu_seqlens_k or seqused_k."),
    (packed_and_used(9, 2), "attention: seqused_k[0] is 9; it must be from 0 to 5, the keys that cu_seqlens_k gives the sequence."),
    (packed_and_used(5, 16), "attention: seqused_k[1] is 16; it must be from 0 to 15, the keys that cu_seqlens_k gives the sequence."),
    (used(-1), "attention: seqused_k is [-1]; its lengths must be from 0 to 8."),
    (used(9), "attention: seqused_k is [9]; its lengths must be from 0 to 8."),
    (pages(np.array([[-1]], I)), "attention: page_table[0, 0] is -1; it must be from 0 to 3, a page of k."),
    (pages(np.array([[0, 4]], I), 17), "attention: page_table[0, 1] is 4; it must be from 0 to 3, a page of k."),
    (of_groups(dg.m_grouped_fp8_gemm_nt_contiguous, np.empty((32, 32), F), [0] * 32), "m_indices is of list; a NumPy array of int32 is needed."),
    (of_groups(dg.m_grouped_fp8_gemm_nt_contiguous, np.empty((32, 32), F), np.full(32, 7, I)), "has the groups [7] one after the other; each must be -1 or below 2"),
    (of_groups(dg.m_grouped_fp8_gemm_nt_masked, np.empty((2, 32, 32), F), np.array([33, -1], I), 16), "masked_m[0] is 33; it must be from 0 to m = 32."),
    (of_groups(dg.m_grouped_fp8_gemm_nt_masked, np.empty((2, 32, 32), F), np.array([3, 1], I), -5), "expected_m is -5; it must be at least 0."),
    (scaled(np.empty((32, 32), F), recipe=(1, 2, 3)), "fp8_gemm_nt: recipe is (1, 2, 3); (1, 128, 128) and (1, 1, 128) are computed."),
    # names
    (gemm(activation=None), "gemm: activation is None; it must be one of none, relu, gelu, silu."),
    (gemm(out_dtype=5), "gemm: out_dtype is 5; it must be 'f16', 'bf16' or 'f32'."),
    (attention(machine=3), "attention: machine is int; a tegula.Machine is needed."),
    (lambda: Machine("cuda:x"), "Machine: device is 'cuda:x'; it must be sim, cuda, cuda:NUMBER or auto."),
    (lambda: Machine(arch=None), "Machine: arch is None; it must be text."),  # type: ignore[arg-type]
    (lambda: Kernel("struct k;\n", "1k"), "Kernel: name is '1k'; it must be a struct's name."),
    (lambda: Kernel("/dev/zero", "k"), "Kernel: source is '/dev/zero', which cannot be read (it has more than 16 MiB); text of more than one line,"),
    (lambda: Kernel("struct k {};", "k"), "text of more than one line, or the path of a file, is needed."),
    (attention(window={1, 2}), "attention: window is {1, 2}; it must be a pair of integers or None."),
    (lambda: tegula.gemm(TWICE[:32, :32], ROUNDED, out=TWICE[16:48, 16:48]), "gemm: out is written to, and shares memory with a; they must lie apart: copy a."),
    (lambda: Kernel("/nowhere/k.cpp", "k"), "Kernel: source is '/nowhere/k.cpp', which cannot be read"),
    (lambda: Kernel("struct k;\n// \udc80\n", "k"), "Kernel: source holds '\\udc80'; it must be text that UTF-8 can hold."),
    (lambda: Kernel("struct k;\n", "k", include=("\ud800",)), "Kernel: include is ('\\ud800',); it must be a tuple of folders."),
    (lambda: Kernel("struct k;\n", "k", include=3), "Kernel: include is 3; it must be a tuple of folders."),  # type: ignore[arg-type]
    (lambda: tegula.kernels.compile(""), "no kernel is named '', or begins so; 'tegula info' lists them."),
    (lambda: tegula.kernels.compile("append_keys", "sm_1"), "arch is 'sm_1'; it must be an architecture that NVRTC knows"),
    # sizes beyond any memory or the kernels' arithmetic
    (attention(B, strided(1, 2**33, 2, 64), strided(1, 2**33, 2, 64)), "attention: k has the shape (1, 8589934592, 2, 64); an axis has at most 1073740800 elements."),
]

LAYOUTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Layout(None), "None is NoneType; a layout, text, an integer, a tuple or a list of these is needed"),  # type: ignore[arg-type]
    (lambda: Layout(1.5), "1.5 is float; a layout, text, an integer, a tuple or a list of these is needed"),  # type: ignore[arg-type]
    (lambda: Layout((-4,)), "layout(-4): an extent is less than 1"),
    (lambda: Layout((2**70,)), "an integer exceeds 2^62"),
    (lambda: Layout(""), "at character 1 of '': found the end, expected a layout"),
    (lambda: Layout("4\0"), "the expression '4\\x00' holds a character 0; it must be text"),
    (lambda: Layout("(" * 10000), "parentheses nest more than 15 deep"),
    (lambda: Layout("(4,8)")(1, 2, 3), "the coordinate is not a coarsening of the layout's shape"),
    (lambda: Layout("4").draw("png"), "form is 'png'; it must be 'svg', 'text' or 'latex'"),
    (lambda: tegula.evaluate(3), "3 is int; an expression is text"),  # type: ignore[arg-type]
    (lambda: tegula.slice("4:1", "x"), "at character 1 of 'x': found 'x', expected a layout"),
]


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[sentence[:50] for _, sentence in CALLS])
def test_a_bad_call_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("call", "sentence"), LAYOUTS, ids=[sentence[:50] for _, sentence in LAYOUTS])
def test_a_bad_layout_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(LayoutError) as refused:
        call()
    assert sentence in str(refused.value)


def test_problems_beyond_any_memory() -> None:
    for shape in ((2**33, 32, 32), (2**40, 32)):
        huge = np.lib.stride_tricks.as_strided(A, shape, (2048, 64, 2)[-len(shape) :])
        with pytest.raises((MemoryError, ArgumentError)):
            tegula.gemm(huge, A)
    with pytest.raises(MemoryError):
        Layout((2**20, 2**20)).table()


def test_what_owns_a_handle_is_not_copied() -> None:
    _, report = tegula.gemm(ROUNDED, ROUNDED, report=True)
    for owner in (Machine(), report, Kernel("struct k;\n", "k")):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"a tegula.{type(owner).__name__} cannot be copied or pickled"):
                make(owner)


def test_what_has_been_freed_is_not_used_again() -> None:
    machine = Machine()
    machine.__del__()
    machine.__del__()
    with pytest.raises(AttributeError):
        tegula.gemm(ROUNDED, ROUNDED, machine=machine)


BUFFER = np.ones((1, 16, 6, 64), H)  # Q, K, V and O beside each other in each token
CACHE = np.ones((2, 32, 5, 64), ml_dtypes.bfloat16)  # K in the first heads
MATRICES = np.ones((3, 32, 64), H)
OF_GROUPS = np.ones((2, 16, 64), H)
Q, ONE, LENGTHS = CACHE[:, :1, :2].copy(), CACHE[:, :3, :2].copy(), np.array([3, 4], I)


@pytest.mark.parametrize(
    ("call", "written", "other", "copied"),
    [
        (attention(BUFFER[:, :, :2], *[np.ones((1, 16, 2, 64), H)] * 2, out=BUFFER[:, :, 1:3]), "out", "q", True),
        (attention(np.ones((1, 16, 2, 64), H), BUFFER[:, :, :2], np.ones((1, 16, 2, 64), H), out=BUFFER[:, :, 1:3]), "out", "k", True),
        (attention(*[np.ones((1, 16, 2, 64), H)] * 2, BUFFER[:, :, 3:5], out=BUFFER[:, :, 2:4]), "out", "v", True),
        (attention(Q, CACHE[:, :, :2], CACHE[:, :, 2:4], k_new=Q, v_new=Q, seqused_k=LENGTHS, out=CACHE[:, 2:3, :2]), "out", "k", False),
        (attention(Q, CACHE[:, :, :2], CACHE[:, :, 2:4], k_new=Q, v_new=Q, seqused_k=LENGTHS, out=CACHE[:, 2:3, 3:]), "out", "v", False),
        (attention(Q, CACHE[:, :, :2], CACHE[:, :, 2:4], k_new=CACHE[:, 3:6, :2], v_new=ONE, seqused_k=LENGTHS), "k", "k_new", True),
        (attention(Q, CACHE[:, :, :2], CACHE[:, :, 2:4], k_new=ONE, v_new=CACHE[:, 3:6, 3:], seqused_k=LENGTHS), "v", "v_new", True),
        (attention(CACHE[:, :1, :2], CACHE[:, :, :2], CACHE[:, :, 2:4], k_new=Q, v_new=Q, seqused_k=LENGTHS), "k", "q", True),
        (attention(Q, CACHE[:, :, :2], CACHE[:, :, 1:3], k_new=Q, v_new=Q, seqused_k=LENGTHS), "k", "v", False),
        (gemm(MATRICES[:, :, :32], A, out=MATRICES[:, :, 16:48]), "out", "a", True),
        (gemm(A, MATRICES[:, :, 32:], out=MATRICES[:, :, 16:48]), "out", "b", True),
        (gemm(np.ones((3, 32, 32), H), A, c=MATRICES[:, :, :32], out=MATRICES[:, :, 16:48]), "out", "c", True),
        (gemm(np.ones((3, 32, 32), H), A, c=MATRICES[1, :, :32], out=MATRICES[:, :, :32]), "out", "c", True),
        (groups_of_k(OF_GROUPS[0, :, 16:48], out=OF_GROUPS[:, :, :32]), "out", "a", True),
    ],
)
def test_what_is_written_lies_apart(call: Callable[[], Any], written: str, other: str, copied: bool) -> None:
    """Also where a row has two axes around it."""
    with pytest.raises(ArgumentError) as refused:
        call()
    remedy = f": copy {other}" if copied else ""
    assert f"{written} is written to, and shares memory with {other}; they must lie apart{remedy}." in str(refused.value)


def test_what_lies_in_gaps_lies_apart() -> None:
    """Q, K, V and O in one buffer, and K and V in one cache, by heads."""
    buffer = np.random.default_rng(3).standard_normal((1, 16, 8, 64)).astype(ml_dtypes.bfloat16)
    q, k, v = (buffer[:, :, i : i + 2] for i in (0, 2, 4))
    apart = tegula.attention(*(x.copy() for x in (q, k, v)))
    np.testing.assert_array_equal(tegula.attention(q, k, v, out=buffer[:, :, 6:]), apart)
    tegula.attention(q[:, :1], k, v, k_new=q[:, :1], v_new=q[:, :1], seqused_k=np.array([3], I))
    np.testing.assert_array_equal(k[:, 3], q[:, 0])
    np.testing.assert_array_equal(v[:, 3], q[:, 0])
