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
    # A bound beyond all tokens says no more than they do.
    for most in (2**30, 2**31 - 1):
        loose = tegula.attention(q, k, v, **options, max_seqlen_q=most, max_seqlen_k=most)[0]
        np.testing.assert_array_equal(loose.astype(np.float32)[: cu_q[-1]], o.astype(np.float32)[: cu_q[-1]])
    with pytest.raises(ArgumentError, match=r"max_seqlen_q is 2147483648; it must be from 1 to 2\^31 - 1"):
        tegula.attention(q, k, v, **options, max_seqlen_q=2**31)
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
    # One for all, and one for each of other strides, beside those for each.
    mixed = factors | {"q_descale": 2.0, "v_descale": np.asfortranarray(factors["v_descale"])}
    wide_q = factors | {"q_descale": np.full((2, 2), 2, np.float32)}
    np.testing.assert_array_equal(tegula.attention(q, k, v, **mixed), tegula.attention(q, k, v, **wide_q))
    mixed["q_descale"] = np.array([2], np.float32)
    np.testing.assert_array_equal(tegula.attention(q, k, v, **mixed), tegula.attention(q, k, v, **wide_q))
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
        (lambda: tegula.attention(T, T, T, seqused_k=np.array([8, 8], np.int32), machine=tegula.Machine(arch="sm80")), "on an sm_90 and on an sm_100"),
    ],
)
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value) and str(refused.value).startswith("attention: ")


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_new_keys_are_appended(rng: np.random.Generator, paged: bool, packed: bool) -> None:
    """By the launch that then reads them: as if they had been there."""
    before, new = np.array([7, 29], np.int32), [3, 1] if packed else [2, 2]
    table = np.array([[4, 1], [0, 3]], np.int32) if paged else None
    shape = (5, 16, 2, 64) if paged else (2, 32, 2, 64)
    q, k, v = (values(rng, *size) for size in ((2, 1, 4, 64), shape, shape))
    k_new, v_new = (values(rng, sum(new), 2, 64) for _ in range(2))
    bounds = np.array([0, *np.cumsum(new)], np.int32)
    expected_k, expected_v = k.copy(), v.copy()
    for b in range(2):
        for cache, x in ((expected_k, k_new), (expected_v, v_new)):
            for i in range(new[b]):
                at = int(before[b]) + i
                row = cache[b, at : at + 1] if table is None else cache[table[b, at // 16], at % 16 : at % 16 + 1]
                row[:] = x[bounds[b] + i]
    options: dict[str, Any] = {"page_table": table, "causal": True}
    if packed:
        options |= {"k_new": k_new, "v_new": v_new, "cu_seqlens_new": bounds, "max_seqlen_new": 3}
    else:
        options |= {"k_new": k_new.reshape(2, 2, 2, 64), "v_new": v_new.reshape(2, 2, 2, 64)}
    o, report = tegula.attention(q, k, v, seqused_k=before, report=True, **options)
    assert report.findings == 0
    np.testing.assert_array_equal(k, expected_k)
    np.testing.assert_array_equal(v, expected_v)
    then = tegula.attention(q, k, v, seqused_k=before + np.array(new, np.int32), page_table=table, causal=True)
    np.testing.assert_array_equal(o, then)


def test_latent_attention(rng: np.random.Generator) -> None:
    """DeepSeek-V2's: one head of keys of 576, whose first 512 columns are the values."""
    k = values(rng, 1, 64, 1, 576)
    q, new = values(rng, 1, 2, 16, 576), values(rng, 1, 2, 1, 576)
    used = np.array([40], np.int32)
    o = tegula.attention(q, k, k[..., :512], seqused_k=used, k_new=new, scale=576**-0.5, causal=True)
    assert o.shape == (1, 2, 16, 512)
    np.testing.assert_array_equal(k[0, 40:42], new[0])
    scores = np.einsum("ihd,jd->hij", q[0].astype(np.float64), k[0, :42, 0].astype(np.float64)) * 576**-0.5
    scores[:, 0, 41] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = np.einsum("hij,jd->ihd", weights / weights.sum(-1, keepdims=True), k[0, :42, 0, :512].astype(np.float64))
    assert np.abs(o[0].astype(np.float64) - exact).max() <= 2.5 * 2.0**-7


def test_precise_sums_of_e4m3(rng: np.random.Generator) -> None:
    q, k = values(rng, 1, 8, 2, 64, dtype=E4M3), values(rng, 1, 200, 2, 64, dtype=E4M3)
    left_out, precise, fast = (tegula.attention(q, k, k, precise=choice) for choice in (None, True, False))
    np.testing.assert_array_equal(left_out, precise)
    assert np.abs(fast.astype(np.float32) - precise.astype(np.float32)).max() <= 2.0**-4


def test_lengths_of_f16(rng: np.random.Generator) -> None:
    """For which a representative build has no kernel, but one of attention_sm80, which knows no lengths."""
    q, k, v = values(rng, 20, 2, 64, dtype=np.float16), *(values(rng, 9, 2, 64, dtype=np.float16) for _ in range(2))
    o = tegula.attention(q, k, v, cu_seqlens_q=np.array([0, 13, 20], np.int32), cu_seqlens_k=np.array([0, 2, 9], np.int32))
    for rows, keys in ((slice(0, 13), slice(0, 2)), (slice(13, 20), slice(2, 9))):
        assert np.abs(o[rows] - alone(q[rows], k[keys], v[keys])[0]).max() <= BOUND
