"""The kernels on the simulated machine against NumPy in float64."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import pytest

import tegula
from tegula import ArgumentError, Machine, _problems

ml_dtypes = pytest.importorskip("ml_dtypes")

# The spacing of a type's numbers next to 1.
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(dtype)


def hold(result: np.ndarray, exact: np.ndarray, magnitude: np.ndarray, k: int) -> None:
    """|result - exact| is at most half a spacing of the result's type, and the accumulation's error: at most k
    roundings or truncations in f32 of partial sums that are at most `magnitude`, the sum of the products' sizes."""
    rounding = np.abs(exact) * EPSILON[result.dtype.name] / 2 + 2.0**-24
    accumulation = magnitude * (k + 8) * 2.0**-22
    error = np.abs(result.astype(np.float64) - exact)
    assert np.all(error <= rounding + accumulation), (error / (rounding + accumulation)).max()


def exact_gemm(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b, np.abs(a) @ np.abs(b)


@pytest.mark.parametrize("arch", ["sm80", "sm90"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("transposed", ["neither", "a", "b", "both"])
def test_gemm(rng: np.random.Generator, arch: str, dtype: Any, transposed: str) -> None:
    m, n, k = 72, 40, 48
    a = values(rng, (k, m), dtype).T if transposed in ("a", "both") else values(rng, (m, k), dtype)
    b = values(rng, (n, k), dtype).T if transposed in ("b", "both") else values(rng, (k, n), dtype)
    d, report = tegula.gemm(a, b, machine=Machine(arch=arch), report=True)
    assert d.dtype == dtype and d.shape == (m, n)
    assert report and "clean" in str(report)
    hold(d, *exact_gemm(a, b), k)


def test_gemm_without_contiguous_rows(rng: np.random.Generator) -> None:
    a, b = values(rng, (64, 100), np.float16)[::2, 4:36], values(rng, (32, 80), np.float16)[:, :24]
    out = np.full((32, 40), 7, dtype=np.float16)
    d = tegula.gemm(a, b, out=out[:, 8:32])
    hold(d, *exact_gemm(a, b), 32)
    assert np.shares_memory(d, out)
    assert np.all(out[:, :8] == 7) and np.all(out[:, 32:] == 7)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn])
def test_gemm_of_one(rng: np.random.Generator, dtype: Any) -> None:
    """The stride of an axis of one element may be anything: of a row, a column and a matrix of a batch."""
    by_tma_alone = dtype is not ml_dtypes.bfloat16
    of_result = np.float32 if dtype is np.float32 else ml_dtypes.bfloat16
    for m, n, k in itertools.product((1, 5), (1, 40), (1, 100)):
        if by_tma_alone:  # whose rows, where there are several, begin at multiples of 16 bytes
            k, n = (96 if k > 1 and max(m, n) > 1 else k), min(n, 32)
        wide_a, wide_w = (values(rng, (rows, 128), ml_dtypes.bfloat16).astype(dtype) for rows in (m, n))
        exact = exact_gemm(wide_a[:, :k], wide_w[:, :k].T)
        for a, w in ((wide_a[:, :k], wide_w[:, :k]), (odd(wide_a[:, :k]), odd(wide_w[:, :k]))):
            out = np.zeros((m, 64), of_result)[:, :n]
            for result in (out, odd(out)):
                out[:] = 0
                tegula.gemm(a, w.T, out=result)
                hold(out, *exact, k)
            batch = np.zeros((1, m, 64), of_result)[..., :n]
            hold(tegula.gemm(odd(a[None]), odd(w.T[None]), out=batch)[0], *exact, k)
    if not by_tma_alone:  # and of columns that are contiguous
        a, b, c = values(rng, (7, 1), dtype), values(rng, (1, 9), dtype), values(rng, (1, 9), dtype)
        hold(tegula.gemm(a, b), *exact_gemm(a, b), 1)
        hold(tegula.gemm(np.asfortranarray(a), odd(b)), *exact_gemm(a, b), 1)
        product, magnitude = exact_gemm(a[:1], b)
        hold(tegula.gemm(odd(a[:1]), b, c=odd(c)), product + c.astype(np.float64), magnitude + np.abs(c.astype(np.float64)), 1)


def odd(x: np.ndarray) -> np.ndarray:
    """The same memory, with strides of axes of one element that no array has of itself."""
    strides = tuple(stride if extent > 1 else -3 * x.itemsize - 1 for extent, stride in zip(x.shape, x.strides))
    return np.lib.stride_tricks.as_strided(x, x.shape, strides)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 1), (1, 1, 3), (2, 1, 1)])
def test_attention_of_one(rng: np.random.Generator, shape: tuple[int, int, int]) -> None:
    q, k, v = (values(rng, (*shape, 64), np.float16) for _ in range(3))
    o = tegula.attention(q, k, v)
    result = np.zeros_like(o)
    assert np.array_equal(tegula.attention(odd(q), odd(k), odd(v), out=odd(result)), o) and np.array_equal(result, o)


def test_latent_attention_of_one_key(rng: np.random.Generator) -> None:
    q, k = values(rng, (2, 1, 4, 576), ml_dtypes.bfloat16), values(rng, (2, 1, 1, 576), ml_dtypes.bfloat16)
    o = tegula.attention(q, k, k[..., :512])
    assert np.array_equal(o, np.broadcast_to(k[..., :512], o.shape))


def test_gemm_batches(rng: np.random.Generator) -> None:
    a, b = values(rng, (3, 16, 32), np.float16), values(rng, (32, 24), np.float16)
    d = tegula.gemm(a, b, out_dtype="f32")
    assert d.shape == (3, 16, 24) and d.dtype == np.float32
    hold(d, *exact_gemm(a, b), 32)
    swapped = tegula.gemm(b.T, a.transpose(0, 2, 1), out_dtype="f32")
    hold(swapped, *exact_gemm(b.T, a.transpose(0, 2, 1)), 32)


def test_gemm_epilogue(rng: np.random.Generator) -> None:
    a, b = values(rng, (16, 32), np.float16), values(rng, (32, 24), np.float16)
    c, bias = values(rng, (16, 24), np.float32), values(rng, (24,), np.float32)
    exact, magnitude = exact_gemm(a, b)
    d = tegula.gemm(a, b, c=c, bias=bias, alpha=0.5, beta=2.0, out_dtype="f32")
    hold(d, 0.5 * exact + 2.0 * c + bias, magnitude + 4, 32)
    hold(tegula.gemm(a, b, c=c, out_dtype="f32"), exact + c, magnitude + 2, 32)
    hold(tegula.gemm(a, b, c=c, beta=0.0, out_dtype="f32"), exact, magnitude, 32)
    relu = tegula.gemm(a, b, activation="relu", scale_a=2.0, scale_b=0.25)
    hold(relu, np.maximum(0.5 * exact, 0), magnitude, 32)


def test_gemm_in_a_workspace(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of it the choice uses: what is handed over is aligned, large enough, and held until the launch is over."""
    given: list[tuple[int, int]] = []
    work_in = _problems.Gemm.work_in

    def remembered(self: _problems.Gemm, address: int, bytes: int) -> None:
        given.append((address, bytes))
        work_in(self, address, bytes)

    monkeypatch.setattr(_problems.Gemm, "workspace_bytes", lambda self, machine: 1 << 20)
    monkeypatch.setattr(_problems.Gemm, "work_in", remembered)
    a, b = values(rng, (64, 2048), np.float16), values(rng, (96, 2048), np.float16).T
    hold(tegula.gemm(a, b), *exact_gemm(a, b), 2048)
    ((address, size),) = given
    assert address % 16 == 0 and size >= 1 << 20


def test_gemm_tf32_and_fp8(rng: np.random.Generator) -> None:
    a, w = values(rng, (32, 64), np.float32), values(rng, (48, 64), np.float32)
    truncated = [(x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, w)]
    hold(tegula.gemm(a, w.T), *exact_gemm(truncated[0], truncated[1].T), 64)
    for other in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        a8, w8 = a.astype(ml_dtypes.float8_e4m3fn), w.astype(other)
        d = tegula.gemm(a8, w8.T, out_dtype="f32")
        exact, magnitude = exact_gemm(a8, w8.T)
        # The tensor core keeps 14 bits of a sum of fp8 products (docs/arithmetic.md).
        assert np.all(np.abs(d - exact) <= magnitude * 64 * 2.0**-13)
        assert tegula.gemm(a8, w8.T).dtype == ml_dtypes.bfloat16


E8M0 = np.array([124, 126, 127, 128, 130], np.uint8)  # 2^-3, 0.5, 1, 2, 8
E4M3 = np.array([0x30, 0x34, 0x38, 0x3C, 0x40], np.uint8)  # 0.5, 0.75, 1, 1.5, 2
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def block_scaled(rng: np.random.Generator, of: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Elements of (.., rows, k), their scales, (.., rows, blocks), and what they stand for, of numbers whose sums are exact."""
    block = 16 if of == "nvf4" else 32
    codes = E4M3 if of == "nvf4" else E8M0
    scales = rng.choice(codes, (*shape[:-1], -(-shape[-1] // block)))
    factors = scales.view(ml_dtypes.float8_e4m3fn).astype(float) if of == "nvf4" else 2.0 ** (scales.astype(float) - 127)
    if of == "mxf8":
        elements: np.ndarray = rng.integers(-4, 5, shape).astype(ml_dtypes.float8_e4m3fn)
        exact = elements.astype(float)
    else:
        four_bits = rng.integers(0, 16, shape).astype(np.uint8)
        elements = four_bits[..., 0::2] | four_bits[..., 1::2] << 4
        exact = E2M1[four_bits]
    return elements, scales, exact * np.repeat(factors, block, axis=-1)[..., : shape[-1]]


@pytest.mark.parametrize("of", ["mxf8", "mxf4", "nvf4"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_gemm_block_scales(rng: np.random.Generator, of: str, batch: tuple[int, ...]) -> None:
    m, n, k = 140, 24, 160
    a, of_a, exact_a = block_scaled(rng, of, (*batch, m, k))
    w, of_w, exact_w = block_scaled(rng, of, (n, k))
    options: dict[str, Any] = dict(block_scale=of[:2], block_scale_a=of_a, block_scale_b=of_w.T)
    if of != "mxf8":
        options |= dict(dtype="e2m1")
    exact = (exact_a @ exact_w.T).astype(np.float32)  # what a quick build has: mxf4 into f32, the others into bf16
    if of == "mxf4":
        options |= dict(out_dtype="f32")
    d, report = tegula.gemm(a, w.T, **options, machine=Machine(arch="sm100"), report=True)
    assert "clean" in str(report)
    assert d.shape == (*batch, m, n) and d.dtype == {"mxf8": ml_dtypes.bfloat16, "mxf4": np.float32, "nvf4": np.uint16}[of]
    np.testing.assert_array_equal(d.view(ml_dtypes.bfloat16) if of == "nvf4" else d, exact if of == "mxf4" else exact.astype(ml_dtypes.bfloat16))


def test_gemm_elements_of_mixed_types(rng: np.random.Generator) -> None:
    a, of_a, exact_a = block_scaled(rng, "mxf8", (130, 256))
    w, of_w, exact_w = block_scaled(rng, "mxf4", (24, 256))
    d = tegula.gemm(
        a, w.T, dtype_b="e2m1", block_scale="mx", block_scale_a=of_a, block_scale_b=of_w.T, machine=Machine(arch="sm100")
    )
    np.testing.assert_array_equal(d, (exact_a @ exact_w.T).astype(np.float32).astype(ml_dtypes.bfloat16))


def test_gemm_block_scales_refusals(rng: np.random.Generator) -> None:
    a, of_a, _ = block_scaled(rng, "nvf4", (16, 64))
    scales: dict[str, Any] = dict(block_scale="nv", block_scale_a=of_a, block_scale_b=of_a.T, dtype="e2m1")
    on: dict[str, Any] = dict(machine=Machine(arch="sm100"))
    for changed, said in (
        (dict(block_scale="mx4"), "block_scale is 'mx4'; it must be 'mx' or 'nv'"),
        (dict(block_scale=None), "block_scale_a is given and block_scale is not"),
        (dict(block_scale_b=None), "block_scale_b is left out"),
        (dict(block_scale_a=of_a[:8]), "block_scale_a has the shape (8, 4); (16, 4) is needed"),
        (dict(block_scale_a=of_a.astype(np.float32)), "block_scale_a has elements of type float32"),
        (dict(block_scale="mx"), "(16, 2) is needed"),
        (dict(machine=Machine(arch="sm90")), "block scales are computed on sm_100 only"),
    ):
        with pytest.raises(ArgumentError) as raised:
            tegula.gemm(a, a.T, **(scales | on | changed))
        assert said in str(raised.value)
    with pytest.raises(ArgumentError, match="packed along k, and k is not contiguous"):
        tegula.gemm(np.asfortranarray(a), a.T, **(scales | on))


def test_raw_bits(rng: np.random.Generator) -> None:
    a, b = values(rng, (16, 32), ml_dtypes.bfloat16), values(rng, (32, 24), ml_dtypes.bfloat16)
    raw = tegula.gemm(a.view(np.uint16), b.view(np.uint16), dtype="bf16")
    assert raw.dtype == np.uint16
    np.testing.assert_array_equal(raw, tegula.gemm(a, b).view(np.uint16))
    c, bias, out = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((16, 24), (24,), (16, 24)))
    tegula.gemm(a.view(np.uint16), b, dtype="bf16", c=c.view(np.uint16), bias=bias, out=out.view(np.uint16))
    np.testing.assert_array_equal(out, tegula.gemm(a, b, c=c, bias=bias))
    bytes_a, bytes_b = (x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for x in (a, np.ascontiguousarray(b.T)))
    assert tegula.gemm(bytes_a, bytes_b.T, dtype="e4m3").dtype == np.uint16


def softmax_attention(
    q: Any, k: Any, v: Any, scale: float, causal: bool, window: Any = (None, None), softcap: float = 0.0, sink: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """O and the log-sum-exp in float64, of (batch, seq, heads, dim)."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    repeats = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeats, axis=2), np.repeat(v, repeats, axis=2)
    scores = scale * np.einsum("bihd,bjhd->bhij", q, k)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    i, j = np.ogrid[: q.shape[1], : k.shape[1]]
    behind = j - (i + k.shape[1] - q.shape[1])
    left, right = window[0], 0 if causal else window[1]
    hidden = ((-behind > left) if left is not None else False) | ((behind > right) if right is not None else False)
    scores = np.where(hidden, -np.inf, scores)
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(np.float64)[None, :, None, None] - largest)
    o = np.einsum("bhij,bjhd->bihd", weights / total, v)
    return o, (np.log(total) + largest)[..., 0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(rng: np.random.Generator, dtype: Any, causal: bool) -> None:
    q = values(rng, (2, 20, 4, 64), dtype)
    k, v = values(rng, (2, 36, 2, 64), dtype), values(rng, (2, 36, 2, 64), dtype)
    o, lse, report = tegula.attention(q, k, v, causal=causal, return_lse=True, report=True)
    assert o.dtype == dtype and o.shape == q.shape and report
    exact, exact_lse = softmax_attention(q, k, v, 64**-0.5, causal)
    # P is rounded to the operands' type and O, at most 1, to the result's.
    bound = 2.5 * EPSILON[np.dtype(dtype).name]
    assert np.all(np.abs(o.astype(np.float64) - exact) <= bound)
    assert np.all(np.abs(lse - exact_lse) <= 64 * 2.0**-20)


def test_attention_with_windows_softcap_and_sinks(rng: np.random.Generator) -> None:
    bf16 = ml_dtypes.bfloat16
    q, k = values(rng, (1, 40, 2, 64), bf16), values(rng, (1, 48, 2, 64), bf16)
    v = values(rng, (1, 48, 2, 128), bf16)
    sink = values(rng, (2,), np.float32)
    for options in (
        {"window": (7, 3)},
        {"window": (7, None), "causal": True},
        {"softcap": 5.0},
        {"sink": sink},
    ):
        o = tegula.attention(q, k, v, **cast(Any, options))
        assert o.shape == (1, 40, 2, 128)
        exact, _ = softmax_attention(q, k, v, 0.125, **{"causal": False, **cast(Any, options)})
        assert np.all(np.abs(o - exact) <= 2.5 * EPSILON["bfloat16"]), options


def test_attention_strides(rng: np.random.Generator) -> None:
    packed = values(rng, (24, 3, 2, 32), np.float16)  # (seq, q or k or v, heads, head_dim)
    q, k, v = (packed[:, i] for i in range(3))
    o = tegula.attention(q, k, v, scale=0.5)
    exact, _ = softmax_attention(q[None], k[None], v[None], 0.5, False)
    assert o.shape == (24, 2, 32)
    assert np.all(np.abs(o - exact[0]) <= 2.5 * EPSILON["float16"])
    by_head = np.ascontiguousarray(q.transpose(1, 0, 2)).transpose(1, 0, 2)
    np.testing.assert_array_equal(tegula.attention(by_head, k, v, scale=0.5), o)


def test_results_do_not_depend_on_the_order_of_events(rng: np.random.Generator) -> None:
    a, b = values(rng, (64, 64), np.float16), values(rng, (64, 64), np.float16)
    expected = tegula.gemm(a, b)
    for machine in (Machine(scheduler="first"), Machine(scheduler="random", seed=7), Machine(check=False, workers=1)):
        np.testing.assert_array_equal(tegula.gemm(a, b, machine=machine), expected)


def test_report(rng: np.random.Generator) -> None:
    _, report = tegula.gemm(values(rng, (64, 32), np.float16), values(rng, (32, 64), np.float16), report=True)
    assert report.findings == 0
    assert len(report.text()) > len(report.text(counters=False))
    assert report.json()["kernel"].startswith("GemmSm") or "gemm" in report.json()["kernel"].lower()


def test_findings(rng: np.random.Generator) -> None:
    """Rows of 33 elements begin at any sector, so that their copies touch more sectors than they need."""
    a, b = values(rng, (32, 33), np.float16), values(rng, (33, 32), np.float16)
    strict = Machine(arch="sm80", excess_sectors=0)
    d, report = tegula.gemm(a, b, machine=strict, report=True)
    assert not report and report.findings > 0 and "uncoalesced" in str(report)
    np.testing.assert_array_equal(d, tegula.gemm(a, b, machine=Machine(arch="sm80")))
    with pytest.raises(tegula.FindingError, match="uncoalesced"):
        tegula.gemm(a, b, machine=strict)


H = np.float16
ONES = np.ones((32, 32), H)
TOKENS = np.ones((8, 2, 64), H)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tegula.gemm(cast(Any, ONES.tolist()), ONES), "a is list; a NumPy array is needed"),
        (lambda: tegula.gemm(ONES.astype(np.float64), ONES), "a has elements of type float64"),
        (lambda: tegula.gemm(ONES.view(np.uint16), ONES), "raw bits need dtype="),
        (lambda: tegula.gemm(ONES.view(np.uint16), ONES, dtype="e4m3"), "which hold no e4m3; uint8 is needed"),
        (lambda: tegula.gemm(ONES, ONES, dtype="f8"), "dtype is 'f8'"),
        (lambda: tegula.gemm(ONES, ONES.astype(ml_dtypes.bfloat16)), "a has elements of f16, and b of bf16"),
        (lambda: tegula.gemm(ONES, np.ones((31, 32), H)), "a has 32 columns, and b 31 rows"),
        (lambda: tegula.gemm(ONES[0], ONES), "a has the shape (32,)"),
        (lambda: tegula.gemm(ONES[:0], ONES), "an empty problem has no result"),
        (lambda: tegula.gemm(ONES[::2, ::2], ONES[:16]), "neither its rows nor its columns"),
        (lambda: tegula.gemm(ONES[::-1], ONES), "not negative"),
        (lambda: tegula.gemm(np.ones((2, 32, 32), H), np.ones((3, 32, 32), H)), "a is a batch of 2, and b of 3"),
        (lambda: tegula.gemm(ONES, ONES, activation="tanh"), "activation is 'tanh'"),
        (lambda: tegula.gemm(ONES, ONES, out_dtype="f64"), "out_dtype is 'f64'"),
        (lambda: tegula.gemm(ONES, ONES, out=np.ones((32, 31), H)), "out has the shape (32, 31)"),
        (lambda: tegula.gemm(ONES, ONES, out=np.ones((32, 32), np.float32)), "out has elements of type float32; float16 is needed"),
        (lambda: tegula.gemm(ONES, ONES, out=np.broadcast_to(ONES[0], (32, 32))), "out cannot be written to"),
        (lambda: tegula.gemm(ONES, ONES, out=ONES), "out is written to, and shares memory with a; they must lie apart: copy a"),
        (lambda: tegula.gemm(ONES, ONES, c=np.ones((32, 32), np.float32)), "c has elements of type float32; float16 is needed"),
        (lambda: tegula.gemm(ONES, ONES, bias=np.ones(31, H)), "bias has the shape (31,)"),
        (lambda: tegula.gemm(ONES, ONES, alpha=float("nan")), "alpha is nan"),
        (lambda: tegula.gemm(ONES, ONES, alpha=1e300), "alpha is 1e+300"),
        (lambda: tegula.gemm(ONES, ONES, alpha=cast(Any, "x")), "alpha is 'x'"),
        (lambda: tegula.gemm(ONES, ONES, scale_b=float("inf")), "scale_b is inf"),
        (lambda: tegula.gemm(ONES, ONES, activation=cast(Any, [])), "activation is []"),
        (lambda: tegula.gemm(ONES, ONES, dtype=cast(Any, [])), "dtype is []"),
        (lambda: tegula.gemm(np.ma.masked_array(ONES), ONES), "a is a masked array"),
        (lambda: tegula.gemm(ONES.astype(">f2"), ONES), "bytes in the other order"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, causal=cast(Any, "no")), "causal is 'no'"),
        (lambda: tegula.gemm(ONES, ONES, beta=1.0), "beta is 1.0, and c is left out"),
        (lambda: tegula.gemm(ONES, ONES, machine=cast(Any, "sim")), "machine is str"),
        (lambda: tegula.attention(TOKENS, TOKENS[:, :1], TOKENS), "k has the shape (8, 1, 64), and v"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, window=(-1, 0)), "window is (-1, 0)"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, window=cast(Any, 3)), "window is 3"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, softcap=-1.0), "softcap is -1"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, sink=np.ones(3, np.float32)), "one for each head"),
        (lambda: tegula.attention(TOKENS[0], TOKENS[0], TOKENS[0]), "q has the shape (2, 64)"),
        (lambda: tegula.attention(TOKENS[None], TOKENS, TOKENS), "all or none must have a batch"),
        (lambda: tegula.attention(TOKENS, TOKENS.astype(ml_dtypes.bfloat16), TOKENS), "of f16, bf16 and f16"),
        (lambda: tegula.attention(*[TOKENS[:, :, :36]] * 3), "head_dim is 36"),
        (lambda: tegula.attention(*[TOKENS.transpose(0, 2, 1)] * 3), "which must be contiguous"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, scale=0.0), "scale is 0"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, scale=float("inf")), "scale is inf"),
        (lambda: tegula.attention(TOKENS, TOKENS, TOKENS, out=TOKENS), "out is written to, and shares memory with q; they must lie apart: copy q"),
        (lambda: Machine("gpu"), "gpu"),
        (lambda: Machine(arch="sm70"), "arch is 'sm70'"),
        (lambda: Machine(scheduler="best"), "scheduler is 'best'"),
        (lambda: Machine(seed=-1), "seed is -1"),
        (lambda: Machine(seed=cast(Any, 1.5)), "seed is 1.5"),
        (lambda: Machine(workers=-2), "workers is -2"),
        (lambda: Machine(workers=cast(Any, "2")), "workers is '2'"),
        (lambda: Machine(workers=2**33), "must fit in 32 bits"),
        (lambda: Machine(bank_conflicts=-1), "bank_conflicts is -1"),
        (lambda: Machine("sim\0"), "it must be text"),
        (lambda: tegula.Layout("(4,4)").draw(banks=2**40), "banks is 1099511627776"),
    ],
)
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value)


def stacked(rng: np.random.Generator, of: str, groups: int, rows: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    each = [block_scaled(rng, of, (rows, k)) for _ in range(groups)]
    elements, scales, exact = (np.stack([x[i] for x in each]) for i in range(3))
    return elements, scales, exact


@pytest.mark.parametrize("of", ["mxf8", "mxf4", "nvf4"])
def test_groups_with_block_scales(rng: np.random.Generator, of: str) -> None:
    n, k = 24, 160
    options: dict[str, Any] = dict(block_scale=of[:2], machine=Machine(arch="sm100"), out_dtype="f32")
    if of != "mxf8":
        options |= dict(dtype="e2m1")
    w, of_w, exact_w = stacked(rng, of, 3, n, k)
    options |= dict(block_scale_b=of_w.swapaxes(-1, -2))
    # Of rows: the second group is empty.
    a, of_a, exact_a = block_scaled(rng, of, (140, k))
    ends = np.array([128, 128, 137], np.int32)
    d, report = tegula.grouped_gemm(a, w.swapaxes(-1, -2), ends, block_scale_a=of_a, report=True, **options)
    assert "clean" in str(report) and d.shape == (140, n) and d.dtype == np.float32
    np.testing.assert_array_equal(d[:128], exact_a[:128] @ exact_w[0].T)
    np.testing.assert_array_equal(d[128:137], exact_a[128:137] @ exact_w[2].T)
    assert not d[137:].any()
    # Masked, onto C, into what is there.
    a, of_a, exact_a = stacked(rng, of, 3, 20, k)
    rows = np.array([20, 0, 7], np.int32)
    into = np.full((3, 20, n), 3, np.float32)
    tegula.grouped_gemm(a, w.swapaxes(-1, -2), rows, by="masked", c=into, out=into, block_scale_a=of_a, **options)
    for g, count in enumerate(rows):
        np.testing.assert_array_equal(into[g, :count], exact_a[g, :count] @ exact_w[g].T + 3)
        assert np.all(into[g, count:] == 3)


@pytest.mark.parametrize("of", ["mxf8", "mxf4", "nvf4"])
def test_groups_of_k_with_block_scales(rng: np.random.Generator, of: str) -> None:
    m, n, k = 30, 24, 640
    options: dict[str, Any] = dict(block_scale=of[:2], machine=Machine(arch="sm100"), out_dtype="f32", by="k")
    if of != "mxf8":
        options |= dict(dtype="e2m1")
    a, of_a, exact_a = block_scaled(rng, of, (m, k))
    w, of_w, exact_w = block_scaled(rng, of, (n, k))
    begins, ends = np.array([0, 256, 512], np.int32), np.array([166, 256, 622], np.int32)
    options |= dict(block_scale_a=of_a, block_scale_b=of_w.T, group_begins=begins)
    d = tegula.grouped_gemm(a, w.T, ends, **options)
    assert d.shape == (3, m, n)
    for g, (begin, end) in enumerate(zip(begins, ends)):
        np.testing.assert_array_equal(d[g], exact_a[:, begin:end] @ exact_w[:, begin:end].T)


def test_groups_without_scales(rng: np.random.Generator) -> None:
    a, w = values(rng, (9, 64), np.float16), values(rng, (2, 16, 64), np.float16)
    for arch in ("sm90", "sm100"):
        d = tegula.grouped_gemm(a, w.swapaxes(-1, -2), np.array([4, 9], np.int32), machine=Machine(arch=arch))
        assert d.dtype == np.float16
        for rows, g in ((slice(0, 4), 0), (slice(4, 9), 1)):
            exact, magnitude = exact_gemm(a[rows], w[g].T)
            assert np.all(np.abs(d[rows] - exact) <= magnitude * 2.0**-10 + 2.0**-24)


def test_groups_with_block_scales_refusals(rng: np.random.Generator) -> None:
    a, of_a, _ = block_scaled(rng, "mxf8", (16, 64))
    w, of_w, _ = stacked(rng, "mxf8", 2, 8, 64)
    ends = np.array([0, 16], np.int32)
    scales: dict[str, Any] = dict(block_scale="mx", block_scale_a=of_a, block_scale_b=of_w.swapaxes(-1, -2), machine=Machine(arch="sm100"))
    cases: list[tuple[dict[str, Any], str]] = [
        (dict(by="columns"), "by is 'columns'; it must be 'rows', 'masked' or 'k'"),
        (dict(by="masked"), "a has the shape (16, 64); (groups, m, k) is needed"),
        (dict(by="k"), "b has the shape (2, 64, 8); (k, n) is needed"),
        (dict(block_scale=None), "grouped_gemm: block_scale_a is given and block_scale is not"),
        (dict(block_scale_b=of_w), "grouped_gemm: block_scale_b has the shape (2, 8, 2); (2, 2, 8) is needed"),
        (dict(block_scale="nv"), "a is of e4m3, and block_scale is 'nv'; there e2m1 is needed"),
        (dict(machine=Machine(arch="sm90")), "block scales are computed on sm_100 only"),
        (dict(group_begins=ends[:1]), "group_begins has the shape (1,); 2 contiguous int32 are needed"),
        (dict(out=np.zeros((16, 9), np.float32), out_dtype="f32"), "out has the shape (16, 9), and the result's is (16, 8)"),
    ]
    for change, sentence in cases:
        with pytest.raises(tegula.ArgumentError) as refused:
            tegula.grouped_gemm(a, w.swapaxes(-1, -2), ends, **{**scales, **change})
        assert sentence in str(refused.value)
    with pytest.raises(tegula.ArgumentError, match="group_ends has the shape"):
        tegula.grouped_gemm(a, w.swapaxes(-1, -2), ends[:1], **scales)
