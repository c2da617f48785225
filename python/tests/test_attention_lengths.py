"""Attention of e4m3, of sequences of their own lengths and of paged keys, on the simulated machine, against NumPy in
float64, one sequence after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tegula
from tegula import ArgumentError

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn

# P is rounded to bf16, and O, at most 1.
BOUND = 2.5 * 2.0**-7


def values(rng: np.random.Generator, *shape: int, dtype: Any = BF16) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(dtype)


def alone(q: Any, k: Any, v: Any, causal: bool = False, left: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """O, (queries, heads, dim), and the log-sum-exp, (heads, queries), of one sequence in float64."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    if len(k) == 0:
        return np.zeros((*q.shape[:2], v.shape[-1])), np.full(q.shape[1::-1], -np.inf)
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) * q.shape[-1] ** -0.5
    behind = np.arange(len(k)) - (np.arange(len(q))[:, None] + len(k) - len(q))
    hidden = (behind > 0) & causal | (-behind > left if left is not None else False)
    scores = np.where(hidden, -np.inf, scores)
    largest = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + largest)[..., 0]
    return np.einsum("hij,jhd->ihd", weights / np.where(total == 0, 1, total), v), lse


def hold(o: np.ndarray, lse: np.ndarray, exact: tuple[np.ndarray, np.ndarray]) -> None:
    assert np.all(np.abs(o.astype(np.float64) - exact[0]) <= BOUND)
    seen = np.isfinite(exact[1])
    assert np.all(np.abs(lse[seen] - exact[1][seen]) <= 2.0**-14) and np.all(lse[~seen] == -np.inf)


def bounds(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths], dtype=np.int32)


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(rng: np.random.Generator, causal: bool) -> None:
    queries, keys = [5, 0, 70, 1], [7, 3, 70, 0]
    cu_q, cu_k = bounds(queries), bounds(keys)
    # Three tokens are no sequence's.
    q, k, v = values(rng, cu_q[-1] + 3, 4, 64), values(rng, cu_k[-1], 2, 64), values(rng, cu_k[-1], 2, 64)
    options: dict[str, Any] = dict(cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, causal=causal, return_lse=True)
    o, lse, report = tegula.attention(q, k, v, **options, report=True)
    assert report and o.shape == q.shape and lse.shape == (4, len(q))
    for b in range(4):
        of_q, of_k = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        hold(o[of_q], lse[:, of_q], alone(q[of_q], k[of_k], v[of_k], causal))
    assert not o[cu_q[-1] :].any()
    bounded, _ = tegula.attention(q, k, v, **options, max_seqlen_q=70, max_seqlen_k=70)
    np.testing.assert_array_equal(bounded.astype(np.float32)[: cu_q[-1]], o.astype(np.float32)[: cu_q[-1]])
    out = np.full_like(o, 7)
    tegula.attention(q, k, v, **options, out=out)
    assert np.all(out[cu_q[-1] :] == 7)


def test_lengths_of_caches(rng: np.random.Generator) -> None:
    q, k, v = values(rng, 3, 2, 4, 64), values(rng, 3, 40, 2, 64), values(rng, 3, 40, 2, 64)
    used = np.array([40, 0, 9], dtype=np.int32)
    for b, n in enumerate(used):
        k[b, n:], v[b, n:] = np.nan, np.nan
    o, lse = tegula.attention(q, k, v, seqused_k=used, causal=True, window=(20, 0), return_lse=True)
    for b, n in enumerate(used):
        hold(o[b], lse[b], alone(q[b], k[b, :n], v[b, :n], True, 20))


@pytest.mark.parametrize("splits", [None, 1, 3])
@pytest.mark.parametrize("page_size", [16, 128])
def test_pages(rng: np.random.Generator, page_size: int, splits: int | None) -> None:
    used = np.array([300, 5], dtype=np.int32)
    columns = -(-300 // page_size)
    table = rng.permutation(2 * columns + 1)[: 2 * columns].reshape(2, columns).astype(np.int32)
    q = values(rng, 2, 1, 8, 64)
    k, v = (values(rng, 2 * columns + 1, page_size, 2, 64) for _ in "kv")
    o, lse = tegula.attention(q, k, v, page_table=table, seqused_k=used, splits=splits, return_lse=True)
    for b, n in enumerate(used):
        keys, of_values = (x[table[b]].reshape(-1, 2, 64)[:n] for x in (k, v))
        hold(o[b], lse[b], alone(q[b], keys, of_values))


def test_packed_queries_on_pages(rng: np.random.Generator) -> None:
    cu_q, used = bounds([3, 8]), np.array([20, 33], dtype=np.int32)
    table = np.array([[4, 0, 2, 9, 9], [1, 3, 5, 9, 9]], dtype=np.int32)[:, :3]  # rows of a larger table
    q, k, v = values(rng, 11, 2, 64), values(rng, 6, 16, 2, 64), values(rng, 6, 16, 2, 64)
    o, lse = tegula.attention(q, k, v, cu_seqlens_q=cu_q, page_table=table, seqused_k=used, causal=True, return_lse=True)
    for b, n in enumerate(used):
        of_q = slice(cu_q[b], cu_q[b + 1])
        keys, of_values = (x[table[b]].reshape(-1, 2, 64)[:n] for x in (k, v))
        hold(o[of_q], lse[:, of_q], alone(q[of_q], keys, of_values, True))


def test_e4m3_with_factors(rng: np.random.Generator) -> None:
    q, k, v = values(rng, 2, 24, 4, 64, dtype=E4M3), values(rng, 2, 40, 2, 64, dtype=E4M3), values(rng, 2, 40, 2, 64, dtype=E4M3)
    factors: dict[str, Any] = {f"{name}_descale": rng.uniform(0.5, 2, (2, 2)).astype(np.float32) for name in "qkv"}
    o, lse = tegula.attention(q, k, v, **factors, return_lse=True)
    assert o.dtype == BF16
    of_q = np.repeat(factors["q_descale"], 2, axis=1)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    wide[0] *= of_q[:, None, :, None]
    wide[1] *= factors["k_descale"][:, None, :, None]
    wide[2] *= factors["v_descale"][:, None, :, None]
    for b in range(2):
        exact, exact_lse = alone(wide[0][b], wide[1][b], wide[2][b])
        # P in e4m3, to 2^-4 of it, over values that are at most 2; sums of its products keep 14 bits.
        assert np.all(np.abs(o[b].astype(np.float64) - exact) <= 2 * (2.0**-4 + 2.0**-7))
        assert np.all(np.abs(lse[b] - exact_lse) <= 4 * 64 * 2.0**-13)
    one = tegula.attention(q, k, v, q_descale=2.0, k_descale=0.5, v_descale=1.0, out_dtype="f16")
    assert one.dtype == np.float16
    plain = tegula.attention(q.view(np.uint8), k.view(np.uint8), v.view(np.uint8), dtype="e4m3", out_dtype="f16")
    np.testing.assert_array_equal(one, plain)


T = np.zeros((2, 8, 2, 64), BF16)
P = T[0]
CU = np.array([0, 8], dtype=np.int32)
E = np.zeros((1, 8, 2, 64), E4M3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tegula.attention(P, P, P, cu_seqlens_q=CU.astype(np.int64), cu_seqlens_k=CU), "cu_seqlens_q is of int64"),
        (lambda: tegula.attention(P, P, P, cu_seqlens_q=CU + 1, cu_seqlens_k=CU), "must rise from 0 to at most the 8"),
        (lambda: tegula.attention(P, P, P, cu_seqlens_q=CU, cu_seqlens_k=bounds([4, 4])), "of the shape (2,) is needed"),
        (lambda: tegula.attention(P, P, P, cu_seqlens_q=CU, cu_seqlens_k=CU, max_seqlen_q=7), "has 8 tokens; it must be as many"),
        (lambda: tegula.attention(T, T, T, cu_seqlens_q=CU, cu_seqlens_k=CU), "(tokens, heads, head_dim), as cu_seqlens_q packs"),
        (lambda: tegula.attention(T, T, T, seqused_k=np.array([8, 9], np.int32)), "seqused_k is [8, 9]; its lengths"),
        (lambda: tegula.attention(T, T, T, page_table=np.zeros(2, np.int32)), "(batch, pages of a sequence) is needed"),
        (lambda: tegula.attention(T, T, T, page_table=np.zeros((2, 1), np.int32)), "page_size is 8; it must be 16, 32, 64"),
        (lambda: tegula.attention(T, T, T, page_table=np.zeros((2, 1), np.int32), cu_seqlens_k=CU), "are both given"),
        (lambda: tegula.attention(T, T, T, max_seqlen_k=7), "it is for cu_seqlens_k or seqused_k"),
        (lambda: tegula.attention(T, T, T, max_seqlen_q=9), "it is for cu_seqlens_q"),
        (lambda: tegula.attention(T, T, T, splits=0), "splits is 0; it must be from 1"),
        (lambda: tegula.attention(T, T, T, q_descale=1.0), "only of e4m3 there are factors"),
        (lambda: tegula.attention(T, T, T, out_dtype="f32"), "out_dtype is 'f32'; it must be"),
        (lambda: tegula.attention(E, E, E, q_descale=np.ones((2, 2), np.float32)), "an f32 for each batch and head of k, (1, 2)"),
        (lambda: tegula.attention(E, E, E, q_descale=1.0, v_descale=np.ones((1, 2), np.float32)), "must have the same"),
        (lambda: tegula.attention(E, E, E, seqused_k=np.array([8], np.int32)), "are computed in f16 and bf16"),
        (lambda: tegula.attention(T, T, T, seqused_k=np.array([8, 8], np.int32), machine=tegula.Machine(arch="sm80")), "on sm_90 only"),
    ],
)
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value) and str(refused.value).startswith("attention: ")
