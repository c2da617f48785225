"""tegula.deep_gemm on the simulated machine, against NumPy in float64 from the quantised operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from tegula import ArgumentError
from tegula import deep_gemm as dg

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * np.exp(rng.uniform(-2, 2, (*shape[:-1], 1)))).astype(np.float32)


def wide(pair: Any, of_blocks: bool = False) -> np.ndarray:
    """What the elements stand for: (rows, k) times scales of (rows, blocks), or (blocks of rows, blocks)."""
    x, scales = (np.asarray(v).astype(np.float64) for v in pair)
    scales = np.repeat(scales, 128, axis=1)[:, : x.shape[1]]
    return x * (np.repeat(scales, 128, axis=0)[: len(x)] if of_blocks else scales)


def hold(d: np.ndarray, a: np.ndarray, b: np.ndarray, c: Any = 0.0) -> None:
    """Each block of 128 in the tensor core's 14 bits, 4 steps of 32 and so 8 truncations at most of what the block's
    products add up to; sums of blocks in f32; the result rounded."""
    exact, magnitude = a @ b.T + c, np.abs(a) @ np.abs(b).T
    rounding = {"bfloat16": 2.0**-8, "float32": 2.0**-23}[d.dtype.name]
    assert np.all(np.abs(d.astype(np.float64) - exact) <= magnitude * 8 * 2.0**-12 + np.abs(exact) * rounding + 2.0**-60)
    assert dg.calc_diff(d.astype(np.float64), exact) < 1e-3


@pytest.mark.parametrize("dtype", [np.float32, BF16])
@pytest.mark.parametrize("ue8m0", [False, True])
def test_casts(rng: np.random.Generator, dtype: Any, ue8m0: bool) -> None:
    x = values(rng, 130, 272).astype(dtype)
    x[3] = 0
    exact = x.astype(np.float64)
    for cast, of_blocks, shape in ((dg.per_token_cast_to_fp8, False, (130, 3)), (dg.per_block_cast_to_fp8, True, (2, 3))):
        q, scales = cast(x, ue8m0)
        assert q.dtype == E4M3 and q.shape == x.shape and scales.dtype == np.float32 and scales.shape == shape
        # Three bits of mantissa, or the least subnormal, times the scale.
        least = wide((np.full(x.shape, 2.0**-10), scales), of_blocks)
        assert np.all(np.abs(wide((q, scales), of_blocks) - exact) <= np.maximum(np.abs(exact) * 2.0**-4, least) * 1.001)
        if ue8m0:
            assert np.all(np.frexp(scales)[0] == 0.5)
        else:
            blocks = np.abs(np.pad(exact, ((0, 126), (0, 112)))).reshape(-1, 128 if of_blocks else 1, 3, 128)
            largest = blocks.max(axis=(1, 3))[: len(scales)]
            np.testing.assert_allclose(scales, np.maximum(largest / 448, 2.0**-126), rtol=2.0**-22)
    q, scales = dg.per_channel_cast_to_fp8(x.T, ue8m0)
    by_row = dg.per_token_cast_to_fp8(x, ue8m0)
    np.testing.assert_array_equal(q.T.view(np.uint8), by_row[0].view(np.uint8))
    np.testing.assert_array_equal(scales, by_row[1].T)


@pytest.mark.parametrize("dtype", [BF16, np.float32])
def test_fp8_gemm(rng: np.random.Generator, dtype: Any) -> None:
    m, n, k = 70, 136, 272
    a, b = dg.per_token_cast_to_fp8(values(rng, m, k)), dg.per_block_cast_to_fp8(values(rng, n, k))
    of_a, of_b = wide(a), wide(b, True)
    d = np.zeros((m, n), dtype)
    dg.fp8_gemm_nt(a, b, d)
    hold(d, of_a, of_b)
    # Scales that are row-major, as others make them, are the same numbers.
    again = np.zeros_like(d)
    dg.fp8_gemm_nt((a[0], np.ascontiguousarray(a[1])), b, again, recipe=(1, 128, 128))
    np.testing.assert_array_equal(again, d)
    c = values(rng, m, n).astype(dtype)
    into = c.copy()
    dg.fp8_gemm_nt(a, b, into, c=into)
    hold(into, of_a, of_b, c.astype(np.float64))
    for form in (dg.fp8_gemm_nn, dg.fp8_gemm_tn, dg.fp8_gemm_tt):
        x = tuple(v.T for v in a) if form in (dg.fp8_gemm_tn, dg.fp8_gemm_tt) else a
        y = b if form is dg.fp8_gemm_tt else tuple(v.T for v in b)
        form(x, y, again)
        np.testing.assert_array_equal(again, d)
    raw = np.zeros_like(d)
    dg.fp8_gemm_nt((a[0].view(np.uint8), a[1]), (b[0].view(np.uint8), b[1]), raw)
    np.testing.assert_array_equal(raw, d)


def test_scales_of_rows_of_both(rng: np.random.Generator) -> None:
    a, b = dg.per_token_cast_to_fp8(values(rng, 30, 144)), dg.per_token_cast_to_fp8(values(rng, 50, 144))
    d = np.zeros((30, 50), np.float32)
    dg.fp8_gemm_nt(a, b, d, recipe=(1, 1, 128))
    hold(d, wide(a), wide(b))


def weights(rng: np.random.Generator, groups: int, n: int, k: int) -> tuple[tuple[np.ndarray, np.ndarray], list[np.ndarray]]:
    each = [dg.per_block_cast_to_fp8(values(rng, n, k)) for _ in range(groups)]
    return (np.stack([w[0] for w in each]), np.stack([w[1] for w in each])), [wide(w, True) for w in each]


def test_groups_of_rows(rng: np.random.Generator) -> None:
    groups = np.repeat(np.array([-1, 2, 0, -1], np.int32), [3, 70, 1, 2])  # group 1 is empty
    a = dg.per_token_cast_to_fp8(values(rng, len(groups), 256))
    b, of_b = weights(rng, 3, 136, 256)
    d = np.full((len(groups), 136), 7, BF16)
    dg.m_grouped_fp8_gemm_nt_contiguous(a, b, d, groups)
    for g in (0, 2):
        hold(d[groups == g], wide(a)[groups == g], of_b[g])
    assert np.all(d[groups == -1] == 7)
    x, y, e = values(rng, len(groups), 64).astype(BF16), values(rng, 3, 40, 64).astype(BF16), np.full((len(groups), 40), 7, BF16)
    dg.m_grouped_bf16_gemm_nt_contiguous(x, y, e, groups)
    for g in (0, 2):
        hold(e[groups == g], x[groups == g].astype(np.float64), y[g].astype(np.float64))


def test_masked_groups(rng: np.random.Generator) -> None:
    rows = np.array([5, 0, 70], np.int32)
    each = [dg.per_token_cast_to_fp8(values(rng, 70, 144)) for _ in rows]
    a = np.stack([x[0] for x in each]), np.stack([x[1] for x in each])
    b, of_b = weights(rng, 3, 72, 144)
    d = np.full((3, 70, 72), 7, BF16)
    dg.m_grouped_fp8_gemm_nt_masked(a, b, d, rows, expected_m=25)
    for g, count in enumerate(rows):
        hold(d[g, :count], wide(each[g])[:count], of_b[g])
        assert np.all(d[g, count:] == 7)
    x, y = values(rng, 3, 70, 64).astype(BF16), values(rng, 3, 40, 64).astype(BF16)
    e = np.zeros((3, 70, 40), BF16)
    dg.m_grouped_bf16_gemm_nt_masked(x, y, e, rows)
    for g, count in enumerate(rows):
        hold(e[g, :count], x[g, :count].astype(np.float64), y[g].astype(np.float64))


@pytest.mark.parametrize("adds", [False, True])
def test_groups_of_k(rng: np.random.Generator, adds: bool) -> None:
    ks, m, n = [144, 0, 256], 32, 48
    ks_tensor = np.array(ks, np.int32)
    each = [(dg.per_channel_cast_to_fp8(values(rng, k, m)), dg.per_channel_cast_to_fp8(values(rng, k, n))) for k in ks if k]
    c = values(rng, 3, m, n) if adds else None
    exact = [wide((a[0].T, a[1].T)) @ wide((b[0].T, b[1].T)).T for a, b in each]
    exact.insert(1, np.zeros((m, n)))
    a, b = ((np.concatenate([pair[i][0] for pair in each]), np.concatenate([pair[i][1] for pair in each])) for i in (0, 1))
    by_k = [np.asfortranarray(x[0]) for x in (a, b)]
    flat = [np.concatenate([pair[i][0].T.reshape(-1) for pair in each]) for i in (0, 1)]
    calls: list[Callable[[Any], None]] = [
        lambda d: dg.k_grouped_fp8_gemm_tn_contiguous((by_k[0], a[1]), (by_k[1], b[1]), d, ks, ks_tensor, c),
        lambda d: dg.k_grouped_fp8_gemm_nt_contiguous((by_k[0].T, a[1]), (by_k[1].T, b[1]), d, ks, ks_tensor, c),
        lambda d: dg.k_grouped_fp8_gemm_nt_contiguous((flat[0], a[1]), (flat[1], b[1]), d, ks, ks_tensor, c),
    ]
    for call in calls:
        d = np.full((3, m, n), 7, np.float32)
        call(d)
        for g in range(3):
            added = 0 if c is None else c[g].astype(np.float64)
            assert np.all(np.abs(d[g] - exact[g] - added) <= 2.0**-6 * (np.abs(exact[g]).max() + 2.0**-20))
            assert ks[g] == 0 or dg.calc_diff(d[g] - added, exact[g]) < 1e-3


def test_bf16(rng: np.random.Generator) -> None:
    a, b, d = values(rng, 33, 72).astype(BF16), values(rng, 40, 72).astype(BF16), np.zeros((33, 40), BF16)
    calls: list[Callable[[], None]] = [
        lambda: dg.bf16_gemm_nt(a, b, d),
        lambda: dg.bf16_gemm_nn(a, b.T, d),
        lambda: dg.bf16_gemm_tn(a.T, b.T, d),
        lambda: dg.bf16_gemm_tt(a.T, b, d),
    ]
    for call in calls:
        d[:] = 0
        call()
        hold(d, a.astype(np.float64), b.astype(np.float64))
    weight_gradient = np.zeros((2, 40, 24), np.float32)
    x, y = values(rng, 40, 48).astype(BF16), values(rng, 24, 48).astype(BF16)
    dg.k_grouped_bf16_gemm_tn_contiguous(x.T, y.T, weight_gradient, [16, 32], np.array([16, 32], np.int32))
    for g, part in enumerate((slice(0, 16), slice(16, 48))):
        hold(weight_gradient[g], x[:, part].astype(np.float64), y[:, part].astype(np.float64))


def test_scales_as_tma_reads_them(rng: np.random.Generator) -> None:
    scales = values(rng, 30, 3)
    for given in (scales, np.asfortranarray(scales)):
        result = dg.get_mn_major_tma_aligned_tensor(given)
        np.testing.assert_array_equal(result, scales)
        assert result.strides == (4, 4 * dg.get_tma_aligned_size(30, 4))
    assert dg.calc_diff(scales, scales) == 0 and dg.get_mk_alignment_for_contiguous_layout() == 128


A = (np.zeros((8, 128), np.uint8), np.ones((8, 1), np.float32))
B = (np.zeros((16, 128), np.uint8), np.ones((1, 1), np.float32))
G = (np.zeros((2, 16, 128), np.uint8), np.ones((2, 1, 1), np.float32))
D = np.zeros((8, 16), np.float32)
I = np.zeros(8, np.int32)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dg.fp8_gemm_nt(cast(Any, A[0]), B, D), "a is ndarray; a pair of elements and scales is needed"),
        (lambda: dg.fp8_gemm_nt(A, B, D[:, :8]), "d has the shape (8, 8), and the result's is (8, 16)"),
        (lambda: dg.fp8_gemm_nt(A, B, D, recipe=(1, 1, 1)), "recipe is (1, 1, 1); (1, 128, 128) and"),
        (lambda: dg.fp8_gemm_nt(A, (B[0], A[1]), D), "b[1] has the shape (8, 1); (1, 1) is needed, b's scales"),
        (lambda: dg.fp8_gemm_nt((A[0], A[1].astype(np.float16)), B, D), "a[1] has elements of type float16; float32 is needed"),
        (lambda: dg.fp8_gemm_nt(A, (B[0][:, :64], B[1]), D), "k must be the same"),
        (lambda: dg.fp8_gemm_nn(A, (np.zeros((128, 16), np.uint8), B[1]), D), "k must be contiguous"),
        (lambda: dg.m_grouped_fp8_gemm_nt_contiguous(A, G, D, I.astype(np.int64)), "m_indices is of int64"),
        (lambda: dg.m_grouped_fp8_gemm_nt_contiguous(A, G, D, I[:4]), "m_indices has the shape (4,); 8 contiguous"),
        (lambda: dg.m_grouped_fp8_gemm_nt_contiguous(A, G, D, I + 2), "each must be -1 or below 2"),
        (lambda: dg.m_grouped_fp8_gemm_nt_contiguous(A, G, D, np.arange(8, dtype=np.int32) % 2), "must be neighbours"),
        (lambda: dg.bf16_gemm_nt(A[0], B[0], D), "a has elements of type uint8; bfloat16 or float16 is needed"),
        (lambda: dg.k_grouped_fp8_gemm_nt_contiguous(A, B, D, [8], I), "(groups, m, n) is needed"),
        (lambda: dg.k_grouped_fp8_gemm_nt_contiguous(A, B, D[None], [64], I[:1]), "ks sums to 64, and a and b have 128"),
        (lambda: dg.per_token_cast_to_fp8(np.zeros((2, 2))), "x has elements of type float64"),
        (lambda: dg.per_token_cast_to_fp8(np.zeros((2, 2), np.float16)), "x has elements of type float16; bfloat16 or float32 is needed"),
        (lambda: dg.fp8_gemm_nt((1, 2), B, D), "a[0] is int; a NumPy array or a torch.Tensor is needed"),
    ],
)
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value)
