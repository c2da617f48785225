"""Operands, results and groups of tegula.deep_gemm and tegula.grouped_gemm: what cannot be computed is refused by a sentence
that names the caller's argument, before anything is written; problems without rows, columns, groups or k are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tegula
from tegula import ArgumentError, Machine
from tegula import _places as places
from tegula import deep_gemm as dg
from tegula._library import library

try:
    import torch
except ImportError:
    torch = None

H, F, I, BF16, E4M3 = np.float16, np.float32, np.int32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
Call = Callable[[], Any]


def ints(*values: int) -> np.ndarray:
    return np.array(values, I)


def strided(x: np.ndarray, *strides: int) -> np.ndarray:
    """The same memory with other strides, in elements."""
    return np.lib.stride_tricks.as_strided(x, strides=[x.itemsize * stride for stride in strides])


def refused(call: Call) -> str:
    with pytest.raises(ArgumentError) as error:
        call()
    return str(error.value)


M, N, K = 40, 64, 256
X, W = np.ones((M, K), F), np.ones((N, K), F)
A, B = dg.per_token_cast_to_fp8(X), dg.per_block_cast_to_fp8(W)
D = np.zeros((M, N), F)
ROWS, WEIGHT = X.astype(BF16), W.astype(BF16)
STACKED = np.stack([B[0]] * 2), np.stack([B[1]] * 2)
MASKED = np.stack([A[0]] * 2), np.stack([A[1]] * 2)
MASKED_D = np.zeros((2, M, N), F)
OF_K = dg.per_channel_cast_to_fp8(np.ones((K, M), F)), dg.per_channel_cast_to_fp8(np.ones((K, N), F))
HALVES = [128, 128], ints(128, 128)
READ_ONLY = np.zeros((M, N), F)
READ_ONLY.setflags(write=False)
a16, b16 = np.ones((M, 64), H), np.ones((2, N, 64), H).swapaxes(1, 2)


def fp8(x: Any = A[0], scales: Any = A[1], y: Any = B[0], of_y: Any = B[1], d: Any = D, **options: Any) -> Call:
    return lambda: dg.fp8_gemm_nt((x, scales), (y, of_y), d, **options)


def of_k(ks: Any = HALVES[0], ks_tensor: Any = HALVES[1], d: Any = MASKED_D) -> Call:
    return lambda: dg.k_grouped_fp8_gemm_tn_contiguous(OF_K[0], OF_K[1], d, ks, ks_tensor)


def groups(ends: Any, a: Any = a16, b: Any = b16, **options: Any) -> Call:
    return lambda: tegula.grouped_gemm(a, b, ends, **options)


def grouped_of_k(ends: Any, **options: Any) -> Call:
    return groups(ends, b=b16[0], by="k", **options)


# --- rows that overlap ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (fp8(d=strided(D, 16, 1)), "fp8_gemm_nt: d has strides of (16, 1) elements, and its rows of 64 must not overlap: allocate d so."),
        (fp8(c=np.broadcast_to(np.zeros((1, N), F), (M, N))), "c has strides of (0, 1) elements, and its rows of 64 must not overlap: use np.ascontiguousarray(c)."),
        (fp8(x=np.broadcast_to(A[0][:1], (M, K))), "a[0] has strides of (0, 1) elements, and its rows of 256 must not overlap: use np.ascontiguousarray(a[0])."),
        (fp8(y=strided(B[0], 16, 1)), "b[0] has strides of (16, 1) elements, and its rows of 256"),
        (fp8(y=B[0][::-1]), "b[0] has a stride of -256 bytes"),
        (fp8(scales=A[1][::-1]), "a[1] has a stride of -4 bytes"),
        (lambda: dg.bf16_gemm_nn(ROWS, strided(WEIGHT.T, 1, 0), D), "b has strides of (1, 0) elements, and its columns of 256 must not overlap: use np.ascontiguousarray(b.T).T."),
        (lambda: dg.m_grouped_fp8_gemm_nt_masked(MASKED, STACKED, strided(MASKED_D, M * N, 0, 1), ints(1, 1)), "d has strides of (2560, 0, 1) elements, and its rows of 64"),
        (lambda: dg.m_grouped_fp8_gemm_nt_masked(MASKED, STACKED, strided(MASKED_D, 0, N, 1), ints(1, 1)), "its groups must follow each other: allocate d so."),
        (of_k(d=strided(MASKED_D, N, N, 1)), "d has strides of (64, 64, 1) elements, and its groups must not overlap: allocate d so."),
        (lambda: dg.per_token_cast_to_fp8(np.broadcast_to(X[:1], (M, K))), "x has strides of (0, 1) elements, and its rows of 256 must not overlap: use np.ascontiguousarray(x)."),
        (lambda: dg.per_block_cast_to_fp8(strided(X, 8, 1)), "x has strides of (8, 1) elements"),
        (groups(ints(3, M), a=np.broadcast_to(a16[:1], a16.shape)), "grouped_gemm: a has strides of (0, 1) elements"),
        (groups(ints(3, M), out=strided(np.zeros((M, N), H), 8, 1)), "out has strides of (8, 1) elements, and its rows of 64 must not overlap: allocate out so."),
        (groups(ints(3, M), c=np.broadcast_to(np.zeros((1, N), H), (M, N))), "c has strides of (0, 1) elements"),
        (lambda: tegula.gemm(strided(a16, 8, 1), b16[0]), "gemm: a has strides of 8 and 1 elements, and neither its rows nor its columns are contiguous and apart"),
    ],
)
def test_rows_that_overlap_are_refused(call: Call, sentence: str) -> None:
    assert sentence in refused(call)


def test_scales_may_overlap(rng: np.random.Generator) -> None:
    scales = np.broadcast_to(rng.uniform(1, 2, (1, K // 128)).astype(F), A[1].shape)
    lies_so = np.broadcast_to(rng.uniform(1, 2, (M, 1)).astype(F), A[1].shape)
    for given in (scales, lies_so):
        of_given, of_copy = np.zeros((M, N), F), np.zeros((M, N), F)
        fp8(scales=given, d=of_given)()
        fp8(scales=given.copy(), d=of_copy)()
        np.testing.assert_array_equal(of_given, of_copy)
        np.testing.assert_array_equal(dg.get_mn_major_tma_aligned_tensor(given), given)


def test_groups_may_share_a_weight() -> None:
    one, many = (np.zeros((M, N), F) for _ in range(2))
    indices = np.repeat(ints(0, 1), M // 2)
    dg.m_grouped_bf16_gemm_nt_contiguous(ROWS, np.broadcast_to(WEIGHT, (2, N, K)), one, indices)
    dg.m_grouped_bf16_gemm_nt_contiguous(ROWS, np.stack([WEIGHT] * 2), many, indices)
    np.testing.assert_array_equal(one, many)


# --- remedies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dg.fp8_gemm_nn(A, (B[0].T.copy(), B[1].T), D), "fp8_gemm_nn: b[0] has strides of (64, 1) elements, and k must be contiguous: use np.ascontiguousarray(b[0].T).T."),
        (lambda: dg.bf16_gemm_tn(ROWS.T.copy(), WEIGHT.T, D), "a has strides of (40, 1) elements, and k must be contiguous: use np.ascontiguousarray(a.T).T."),
        (lambda: dg.bf16_gemm_tt(ROWS.T.copy(), WEIGHT, D), "use np.ascontiguousarray(a.T).T."),
        (lambda: dg.bf16_gemm_nt(np.asfortranarray(ROWS), WEIGHT, D), "a has strides of (1, 40) elements, and k must be contiguous: use np.ascontiguousarray(a)."),
        (lambda: dg.k_grouped_bf16_gemm_tn_contiguous(ROWS.T.copy(), WEIGHT.T, MASKED_D, *HALVES), "use np.ascontiguousarray(a.T).T."),
        (groups(ints(3, M), b=b16.copy()), "b has strides of (4096, 64, 1) elements, and k must be contiguous: use np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)."),
        (groups(ints(16, 64), b=b16[0].copy(), by="k"), "use np.ascontiguousarray(b.T).T."),
        (fp8(d=np.zeros((N, M), F).T), "d has strides of (1, 40) elements, and n must be contiguous: allocate d so."),
        (groups(ints(3, M), out=np.zeros((N, M), H).T), "out has strides of (1, 40) elements, and n must be contiguous: allocate out so."),
        (lambda: tegula.gemm(a16, b16[0], out=np.zeros((N, M), H).T), "out has columns that are contiguous, and rows must be: allocate out so."),
        (lambda: tegula.attention(*[np.ones((1, 8, 2, 64), H)] * 3, out=np.zeros((1, 8, 64, 2), H).swapaxes(2, 3)), "contiguous: allocate out so."),
    ],
)
def test_the_remedy_is_one(call: Call, sentence: str) -> None:
    assert refused(call).endswith(sentence)


def test_remedies_serve() -> None:
    """As the sentences above say them."""
    wide = B[0].T.copy()
    dg.fp8_gemm_nn(A, (np.ascontiguousarray(wide.T).T, B[1].T), D)
    given = b16.copy()
    groups(ints(3, M), b=np.ascontiguousarray(given.swapaxes(1, 2)).swapaxes(1, 2))()


# --- what is written into -----------------------------------------------------------------------------------------------


def read_only(*shape: int) -> np.ndarray:
    x = np.zeros(shape, F)
    x.setflags(write=False)
    return x


FLAT = (np.ones(M * K, E4M3), np.ones((2, M), F)), (np.ones(N * K, E4M3), np.ones((2, N), F))
INTO: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "fp8_gemm_nt": (lambda d: dg.fp8_gemm_nt(A, B, d), (M, N)),
    "bf16_gemm_nt": (lambda d: dg.bf16_gemm_nt(ROWS, WEIGHT, d), (M, N)),
    "m_grouped_fp8_gemm_nt_contiguous": (lambda d: dg.m_grouped_fp8_gemm_nt_contiguous(A, STACKED, d, np.zeros(M, I)), (M, N)),
    "m_grouped_fp8_gemm_nt_masked": (lambda d: dg.m_grouped_fp8_gemm_nt_masked(MASKED, STACKED, d, ints(3, 4)), (2, M, N)),
    "k_grouped_fp8_gemm_tn_contiguous": (lambda d: dg.k_grouped_fp8_gemm_tn_contiguous(*OF_K, d, *HALVES), (2, M, N)),
    "k_grouped_fp8_gemm_nt_contiguous": (lambda d: dg.k_grouped_fp8_gemm_nt_contiguous(*FLAT, d, *HALVES), (2, M, N)),
}


@pytest.mark.parametrize("function", INTO)
def test_what_cannot_be_written_to_is_refused(function: str) -> None:
    call, shape = INTO[function]
    d = read_only(*shape)
    assert refused(lambda: call(d)).startswith(f"{function}: d cannot be written to;")
    assert not d.any()


def test_grouped_gemm_refuses_what_cannot_be_written_to() -> None:
    out = np.broadcast_to(np.zeros(N, H), (M, N))
    assert "grouped_gemm: out cannot be written to" in refused(groups(ints(3, M), out=out))


# --- what groups are told -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (of_k(ks_tensor=ints(144, 112)), "k_grouped_fp8_gemm_tn_contiguous: ks_tensor is [144, 112], and ks is [128, 128]; they must be equal."),
        (lambda: dg.k_grouped_fp8_gemm_nt_contiguous(*FLAT, MASKED_D, [128, 128], ints(144, 112)), "ks_tensor is [144, 112], and ks is [128, 128]"),
        (lambda: dg.k_grouped_fp8_gemm_nt_contiguous(*FLAT, MASKED_D, [128, 128], ints(256)), "ks_tensor has the shape (1,); 2 contiguous int32 are needed."),
        (of_k([120, 136], ints(120, 136)), "the sum of ks[:1] is 120, and group 1 begins there; it must be a multiple of 16, which are 16 bytes of e4m3."),
        (lambda: dg.k_grouped_bf16_gemm_tn_contiguous(ROWS.T, WEIGHT.T, MASKED_D, [100, 156], ints(100, 156)), "the sum of ks[:1] is 100, and group 1 begins there; it must be a multiple of 8,"),
        (
            lambda: dg.k_grouped_fp8_gemm_nt_contiguous(
                (FLAT[0][0], np.ones((3, M), F)), (FLAT[1][0], np.ones((3, N), F)), MASKED_D, [136, 120], ints(136, 120)
            ),
            "ks[0] is 136; in flat operands it must be a multiple of 16",
        ),
        (grouped_of_k(ints(10, 64)), "grouped_gemm: group_ends[0] is 10, and group 1 begins there; it must be a multiple of 8, which are 16 bytes of f16."),
        (grouped_of_k(ints(10, 64), group_begins=ints(0, 12)), "group_begins[1] is 12, and group 1 begins there; it must be a multiple of 8"),
        (grouped_of_k(ints(16, 65)), "group_ends[1] is 65; it must be from 16, where the group begins, to the 64 columns of a."),
        (groups(ints(30, 10)), "group_ends[1] is 10; it must be from 30, where the group begins, to the 40 rows of a."),
        (groups(ints(10, 400)), "group_ends[1] is 400; it must be from 10, where the group begins, to the 40 rows of a."),
        (groups(ints(-1, 40)), "group_ends[0] is -1; it must be from 0,"),
        (groups(ints(30, 40), group_begins=ints(0, -2)), "group_begins[1] is -2; it must be from 0 to the 40 rows of a."),
        (groups(ints(30, 40), group_begins=ints(0, 20)), "group_begins[1] is 20, and group 0 has the rows from 0 to 30; groups must not overlap."),
        (groups(ints(3, M + 1), a=np.ones((2, M, 64), H), by="masked"), "grouped_gemm: group_ends[1] is 41; it must be from 0 to m = 40."),
        (groups(ints(3, -1), a=np.ones((2, M, 64), H), by="masked"), "group_ends[1] is -1; it must be from 0 to m = 40."),
        (groups(ints(3, 1), a=np.ones((2, M, 64), H), by="masked", group_begins=ints(0, 0)), "group_begins is given, and by is 'masked'"),
        (
            groups(
                ints(10, 16), np.ones((16, 64), E4M3), np.ones((2, 8, 64), E4M3).swapaxes(1, 2), machine=Machine(arch="sm100"),
                block_scale="mx", block_scale_a=np.ones((16, 2), np.uint8), block_scale_b=np.ones((2, 2, 8), np.uint8),
            ),
            "group_ends[0] is 10, and group 1 begins there; it must be a multiple of 128, where a piece of scales begins.",
        ),
        (
            groups(
                ints(32, 64), np.ones((16, 64), E4M3), np.ones((8, 64), E4M3).T, machine=Machine(arch="sm100"), by="k",
                block_scale="mx", block_scale_a=np.ones((16, 2), np.uint8), block_scale_b=np.ones((2, 8), np.uint8),
            ),
            "group_ends[0] is 32, and group 1 begins there; it must be a multiple of 128, where a piece of scales begins.",
        ),
        (lambda: dg.m_grouped_bf16_gemm_nt_contiguous(ROWS, np.stack([WEIGHT] * 2), D, np.full(M, 2, I)), "each must be -1 or below 2"),
    ],
)
def test_groups_that_are_none_are_refused(call: Call, sentence: str) -> None:
    assert sentence in refused(call)


def test_groups_that_are_some() -> None:
    """Empty ones may stand anywhere, groups out of order, and the last may end anywhere."""
    out = groups(ints(M, 10), group_begins=ints(10, 0))()
    np.testing.assert_array_equal(out, np.full((M, N), 64, H))
    out = grouped_of_k(ints(16, 61, 61))()
    assert out[:, 0, 0].tolist() == [16, 45, 0]
    d = np.full((3, M, N), 7, F)
    dg.k_grouped_bf16_gemm_tn_contiguous(ROWS.T, WEIGHT.T, d, [48, 0, 208], ints(48, 0, 208))
    assert d[:, 0, 0].tolist() == [48, 0, 208]
    d = np.full((3, M, N), 7, F)
    dg.k_grouped_bf16_gemm_tn_contiguous(ROWS.T[:61], WEIGHT.T[:61], d, [16, 45, 0], ints(16, 45, 0))
    assert d[:, 0, 0].tolist() == [16, 45, 0]


# --- the caller's names ---------------------------------------------------------------------------------------------------

ODD_K = np.ones((M, 200), E4M3), np.ones((M, 2), F)
TWICE = np.zeros((2 * M, 2 * N), F)
MISPLACED = np.ones(M * K + 8, E4M3)[8:].reshape(M, K)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (fp8(*ODD_K, np.ones((N, 200), E4M3)), "fp8_gemm_nt: a[0] has strides of (200, 1) elements of e4m3; those that are not 1 must be multiples of 16, 16 bytes: pad k = 200 with zeros to a multiple of 16."),
        (fp8(x=np.ones((M, K + 8), E4M3)[:, :K]), "a[0] has strides of (264, 1) elements of e4m3; those that are not 1 must be multiples of 16, 16 bytes: use np.ascontiguousarray(a[0])."),
        (fp8(x=MISPLACED), "fp8_gemm_nt: a[0] begins 8 bytes past a multiple of 16; it must begin at one: copy it."),
        (fp8(x=X), "fp8_gemm_nt: a[0] has elements of type float32; float8_e4m3fn or float8_e5m2 is needed."),
        (fp8(scales=A[1].astype(np.float64)), "fp8_gemm_nt: a[1] has elements of type float64; float32 is needed."),
        (fp8(of_y=B[1].astype(I)), "fp8_gemm_nt: b[1] has elements of type int32; float32 is needed."),
        (fp8(d=np.zeros((M, N), I)), "fp8_gemm_nt: d has elements of type int32; bfloat16, float16 or float32 is needed."),
        (lambda: dg.fp8_gemm_nn(A, (B[0].T, B[1]), D), "fp8_gemm_nn: b[1] has the shape (1, 2); (2, 1) is needed, b's scales."),
        (lambda: dg.fp8_gemm_nn(A, (B[0].T[:16], B[1]), D), "a[0] has the shape (40, 256), and b[0] (16, 64); k must be the same."),
        (lambda: dg.fp8_gemm_nn(A, (B[0][0], B[1]), D), "b[0] has the shape (256,); (k, n) is needed."),
        (lambda: dg.bf16_gemm_nt(A[0], B[0], D), "bf16_gemm_nt: a has elements of type float8_e4m3fn; bfloat16 or float16 is needed."),
        (lambda: dg.per_token_cast_to_fp8(X.astype(np.float64)), "x has elements of type float64; bfloat16 or float32 is needed."),
        (lambda: dg.per_block_cast_to_fp8(np.ones((2, M, K), F)), "x has the shape (2, 40, 256); (rows, columns) is needed: cast each matrix, and stack the results."),
        (lambda: dg.per_token_cast_to_fp8(X, gran_k=32), "per_token_cast_to_fp8: gran_k is 32; a scale is of 128 elements along k, and it must be 128."),
        (fp8(compiled_dims="xy"), "fp8_gemm_nt: compiled_dims is 'xy'; it must be letters of 'mnk'."),
        (fp8(disable_ue8m0_cast=1), "fp8_gemm_nt: disable_ue8m0_cast is 1; it must be True or False."),
        (groups(ints(3, M), a=a16.astype(F), b=b16.astype(F)), "grouped_gemm: a has elements of type float32; bfloat16, float16, float8_e4m3fn, float8_e5m2 or e2m1 is needed."),
        (groups(ints(3, M), a=a16.astype(E4M3), b=b16.astype(E4M3)), "grouped_gemm: a is of e4m3, and the machine is sm_90 and"),
        (groups(ints(3, M), block_scale="mx"), "grouped_gemm: a is of f16, and block_scale is 'mx'; there e4m3, e5m2 or e2m1 is needed."),
        (fp8(d=TWICE[:M, :N], c=TWICE[::2, :N]), "c and d begin at one address and have strides of (256, 1) and (128, 1) elements; in place they must be equal."),
        (fp8(x=None), "fp8_gemm_nt: a[0] is NoneType; a NumPy array or a torch.Tensor is needed."),
    ],
)
def test_sentences_name_the_callers_arguments(call: Call, sentence: str) -> None:
    assert sentence in refused(call)


def test_what_the_library_refuses_begins_with_the_callers_function() -> None:
    memory = np.ones(M * K * 2, np.uint8)
    x = memory[: M * K].view(E4M3).reshape(M, K)
    d = memory[: M * N * 2].view(BF16).reshape(M, N)
    assert refused(fp8(x=x, d=d)).startswith("fp8_gemm_nt: ")


def test_what_deepgemm_takes_and_changes_nothing() -> None:
    d, again = np.zeros((M, N), F), np.zeros((M, N), F)
    fp8(d=d)()
    fp8(d=again, compiled_dims="", disable_ue8m0_cast=True)()
    np.testing.assert_array_equal(again, d)
    np.testing.assert_array_equal(dg.per_token_cast_to_fp8(X, False, gran_k=128)[1], A[1])


# --- problems without rows, columns, groups or k ----------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(0, N), (M, 0), (0, 0)])
def test_without_rows_or_columns(m: int, n: int) -> None:
    a, b = dg.per_token_cast_to_fp8(X[:m]), dg.per_block_cast_to_fp8(W[:n])
    assert a[0].shape == (m, K) and a[1].shape == (m, 2) and b[1].shape == (1 if n else 0, 2)
    assert dg.get_mn_major_tma_aligned_tensor(a[1]).shape == (m, 2)
    d, x, y = np.zeros((m, n), F), ROWS[:m], WEIGHT[:n]
    dg.fp8_gemm_nt(a, b, d)
    dg.fp8_gemm_tn((a[0].T, a[1].T), (b[0].T, b[1].T), d, c=d)
    dg.bf16_gemm_nn(x, y.T, d)
    stacked = np.stack([b[0]] * 2), np.stack([b[1]] * 2)
    dg.m_grouped_fp8_gemm_nt_contiguous(a, stacked, d, np.zeros(m, I))
    dg.m_grouped_bf16_gemm_nn_contiguous(x, np.stack([y] * 2).swapaxes(1, 2), d, np.zeros(m, I))
    each = np.zeros((2, m, n), F)
    dg.m_grouped_fp8_gemm_nt_masked((np.stack([a[0]] * 2), np.stack([a[1]] * 2)), stacked, each, ints(0, 0), 3)
    by_k = dg.per_channel_cast_to_fp8(np.ones((K, m), F)), dg.per_channel_cast_to_fp8(np.ones((K, n), F))
    dg.k_grouped_fp8_gemm_tn_contiguous(*by_k, each, *HALVES)
    dg.k_grouped_fp8_gemm_nt_contiguous((by_k[0][0].T, by_k[0][1]), (by_k[1][0].T, by_k[1][1]), each, *HALVES)
    dg.k_grouped_fp8_gemm_nt_contiguous((np.ones(m * K, E4M3), by_k[0][1]), (np.ones(n * K, E4M3), by_k[1][1]), each, *HALVES)
    assert tegula.grouped_gemm(a16[:m], b16[:, :, :n], ints(0, m)).shape == (m, n)
    assert tegula.grouped_gemm(a16[:m], b16[0, :, :n], ints(16, 64), by="k").shape == (2, m, n)
    for call, sentence in (
        (lambda: dg.fp8_gemm_nt(a, (b[0], b[1].astype(I)), d), "b[1] has elements of type int32"),
        (lambda: dg.fp8_gemm_nt(a, b, np.zeros((m, n + 1), F)), "d has the shape"),
        (lambda: dg.m_grouped_fp8_gemm_nt_contiguous(a, stacked, d, np.zeros(m + 1, I)), "m_indices has the shape"),
        (lambda: tegula.grouped_gemm(a16[:m], b16[:, :, :n], ints(0, m + 1)), "group_ends[1] is"),
    ):
        assert sentence in refused(call)


def test_without_groups() -> None:
    none = np.zeros((0, N, K), BF16)
    d = np.full((M, N), 7, F)
    dg.m_grouped_bf16_gemm_nt_contiguous(ROWS, none, d, np.full(M, -1, I))
    dg.m_grouped_bf16_gemm_nt_masked(np.zeros((0, M, K), BF16), none, np.zeros((0, M, N), F), np.zeros(0, I))
    dg.k_grouped_bf16_gemm_tn_contiguous(ROWS.T[:0], WEIGHT.T[:0], np.zeros((0, M, N), F), [], np.zeros(0, I))
    assert np.all(d == 7)
    assert not tegula.grouped_gemm(a16, b16[:0], np.zeros(0, I)).any()


@pytest.mark.parametrize("adds", [False, True])
def test_without_k(adds: bool) -> None:
    a, b = dg.per_token_cast_to_fp8(X[:, :0]), dg.per_block_cast_to_fp8(W[:, :0])
    assert a[0].shape == (M, 0) and a[1].shape == (M, 0)
    c = np.full((M, N), 3, F) if adds else None
    added = 3 if adds else 0
    calls: list[Callable[[Any], None]] = [
        lambda d: dg.fp8_gemm_nt(a, b, d, c),
        lambda d: dg.fp8_gemm_tt((a[0].T, a[1].T), b, d, c),
        lambda d: dg.bf16_gemm_nt(ROWS[:, :0], WEIGHT[:, :0], d, c),
    ]
    for call in calls:
        d = np.full((M, N), 7, F)
        call(d)
        assert np.all(d == added)
    indices = np.repeat(ints(-1, 1), M // 2)
    d = np.full((M, N), 7, F)
    dg.m_grouped_fp8_gemm_nt_contiguous(a, (np.stack([b[0]] * 2), np.stack([b[1]] * 2)), d, indices)
    assert np.all(d[: M // 2] == 7) and not d[M // 2 :].any()
    each = np.full((2, M, N), 7, F)
    dg.m_grouped_bf16_gemm_nt_masked(np.zeros((2, M, 0), BF16), np.zeros((2, N, 0), BF16), each, ints(3, 0))
    assert not each[0, :3].any() and np.all(each[0, 3:] == 7) and np.all(each[1] == 7)
    of_c = None if c is None else np.stack([c] * 2)
    columns = (np.zeros((0, M), E4M3), np.zeros((0, M), F)), (np.zeros((0, N), E4M3), np.zeros((0, N), F))
    dg.k_grouped_fp8_gemm_tn_contiguous(*columns, each, [0, 0], ints(0, 0), of_c)
    assert np.all(each == added)
    of_16 = None if c is None else c.astype(H)
    out = tegula.grouped_gemm(a16[:, :0], b16[:, :0], ints(3, 5), c=of_16, out=np.full((M, N), 7, H))
    assert np.all(out[:5] == added) and np.all(out[5:] == 7)
    assert "report is True" in refused(lambda: tegula.grouped_gemm(a16[:, :0], b16[:, :0], ints(3, 5), report=True))


# --- casts, scales as they lie, transposed weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [8, 200])
def test_a_cast_of_any_k_can_be_multiplied(rng: np.random.Generator, k: int) -> None:
    x, w = rng.standard_normal((M, k)).astype(F), rng.standard_normal((N, k)).astype(F)
    d = np.zeros((M, N), F)
    a, b = dg.per_token_cast_to_fp8(x), dg.per_block_cast_to_fp8(w)
    assert a[0].shape == (M, k) and b[0].shape == (N, k)
    dg.fp8_gemm_nt(a, b, d)
    assert dg.calc_diff(d, x @ w.T) < 2e-3
    columns = dg.per_channel_cast_to_fp8(x.T), dg.per_channel_cast_to_fp8(w.T)
    assert columns[0][0].shape == (k, M)
    dg.k_grouped_fp8_gemm_tn_contiguous(*columns, d[None], [k], ints(k))
    assert dg.calc_diff(d, x @ w.T) < 2e-3


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions of the library that arrays of NumPy's are given to."""
    calls: list[Any] = []
    launch = places._Numpy.launch

    def counted(self: Any, function: Any, arguments: Any) -> None:
        calls.append(function)
        launch(self, function, arguments)

    monkeypatch.setattr(places._Numpy, "launch", counted)
    return calls


def test_scales_of_groups_that_lie_as_tma_reads_them_are_not_copied(rng: np.random.Generator, launched: list[Any]) -> None:
    x = rng.standard_normal((2 * M, K)).astype(F)
    q, scales = dg.per_token_cast_to_fp8(x)
    of_groups = q.reshape(2, M, K), scales.reshape(2, M, 2)
    d, again = np.zeros((2, M, N), F), np.zeros((2, M, N), F)
    made = dg.get_mn_major_tma_aligned_tensor(np.ascontiguousarray(of_groups[1]))
    np.testing.assert_array_equal(made, of_groups[1])
    assert made.strides == of_groups[1].strides == (4 * M, 4, 8 * M)
    del launched[:]
    for given in (of_groups[1], made):
        dg.m_grouped_fp8_gemm_nt_masked((of_groups[0], given), STACKED, d, ints(M, 5))
    assert launched == [library.tegula_grouped_gemm] * 2
    dg.m_grouped_fp8_gemm_nt_masked((of_groups[0], of_groups[1].copy()), STACKED, again, ints(M, 5))
    assert launched[2:] == [library.tegula_gemm_inputs, library.tegula_grouped_gemm]
    np.testing.assert_array_equal(again, d)


def test_transposed_weights_of_groups(rng: np.random.Generator) -> None:
    indices = np.repeat(ints(1, 0), M // 2)
    w = [rng.standard_normal((N, K)).astype(F) for _ in range(2)]
    each = [dg.per_block_cast_to_fp8(x) for x in w]
    b = np.stack([x[0] for x in each]), np.stack([x[1] for x in each])
    nt, nn = np.zeros((M, N), F), np.zeros((M, N), F)
    dg.m_grouped_fp8_gemm_nt_contiguous(A, b, nt, indices)
    dg.m_grouped_fp8_gemm_nn_contiguous(A, (b[0].swapaxes(1, 2), b[1].swapaxes(1, 2)), nn, indices)
    assert nt.any()
    np.testing.assert_array_equal(nn, nt)
    of_16 = np.stack(w).astype(BF16)
    dg.m_grouped_bf16_gemm_nt_contiguous(ROWS, of_16, nt, indices)
    dg.m_grouped_bf16_gemm_nn_contiguous(ROWS, of_16.swapaxes(1, 2), nn, indices)
    np.testing.assert_array_equal(nn, nt)


# --- PyTorch's tensors ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
def test_tensors() -> None:
    x, w = torch.ones(M, K), torch.ones(N, K)
    a, b = dg.per_token_cast_to_fp8(x), dg.per_block_cast_to_fp8(w)
    leaf = torch.zeros(M, N, requires_grad=True)
    assert "fp8_gemm_nt: d requires a gradient" in refused(lambda: dg.fp8_gemm_nt(a, b, leaf))
    assert not leaf.any()
    with torch.no_grad():
        dg.fp8_gemm_nt(a, b, leaf)
    assert torch.allclose(leaf, torch.tensor(float(K)))
    d, rows = torch.zeros(M, N), x.bfloat16()
    for call, sentence in (
        (lambda: dg.fp8_gemm_nt((a[0][:1].expand(M, K), a[1]), b, d), "rows of 256 must not overlap: use a[0].contiguous()."),
        (lambda: dg.fp8_gemm_nt(a, b, d[:1].expand(M, N)), "rows of 64 must not overlap: allocate d so."),
        (lambda: dg.bf16_gemm_nn(rows, w.bfloat16().t().contiguous(), d), "use b.T.contiguous().T."),
        (lambda: dg.fp8_gemm_nt((a[0], a[1].double()), b, d), "a[1] is of torch.float64; f32 is needed."),
        (lambda: dg.fp8_gemm_nt((x, a[1]), b, d), "a[0] is of torch.float32; e4m3 or e5m2 is needed."),
        (
            lambda: dg.m_grouped_bf16_gemm_nt_contiguous(rows, w.bfloat16()[None], d, torch.zeros(M, dtype=torch.int64)),
            "m_indices is of torch.int64; int32 is needed.",
        ),
        (
            lambda: dg.k_grouped_bf16_gemm_tn_contiguous(rows.t(), w.bfloat16().t(), d[None], [K], torch.tensor([8], dtype=torch.int32)),
            "ks_tensor is [8], and ks is [256]; they must be equal.",
        ),
    ):
        assert sentence in refused(call)
    given = w.bfloat16().t().contiguous()
    dg.bf16_gemm_nn(rows, given.T.contiguous().T, d)
    assert (d == K).all()
    for columns in (0, K):  # no rows, and no k
        empty, result = x[: M if columns == 0 else 0, :columns], torch.ones(M if columns == 0 else 0, N)
        dg.fp8_gemm_nt(dg.per_token_cast_to_fp8(empty), dg.per_block_cast_to_fp8(w[:, :columns]), result)
        assert not result.any()
    scales = dg.get_mn_major_tma_aligned_tensor(torch.rand(2, M, 3))
    assert scales.shape == (2, M, 3) and scales.stride() == (M, 1, 2 * M)
