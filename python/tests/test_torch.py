"""tegula.torch on tensors of the CPU, which the simulated machine computes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")

import tegula.torch as tt  # noqa: E402
from tegula import ArgumentError, _problems  # noqa: E402
from tegula import deep_gemm as dg  # noqa: E402

BF16 = torch.bfloat16
EPSILON = {torch.float16: 2.0**-10, BF16: 2.0**-7}


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


def values(*shape: int, dtype: Any = torch.float16) -> Any:
    return (torch.rand(shape) * 2 - 1).to(dtype)


def hold(result: Any, exact: Any, dtype: Any, factor: float = 1.0) -> None:
    """Within a rounding to the type, whose results are at most 1 times `factor`."""
    assert ((result.double() - exact).abs() <= 2.5 * factor * EPSILON[dtype]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gemm_and_linear(dtype: Any) -> None:
    x, w, bias = values(2, 8, 64, dtype=dtype), values(48, 64, dtype=dtype), values(48, dtype=dtype)
    result = tt.linear(x, w, bias, activation="relu")
    exact = torch.relu(torch.nn.functional.linear(x.double(), w.double(), bias.double()))
    assert result.shape == (2, 8, 48) and result.dtype == dtype
    hold(result, exact, dtype, exact.max().item())
    batched = tt.gemm(x, w.t(), out_dtype=torch.float32)
    assert batched.dtype == torch.float32
    hold(batched, x.double() @ w.double().t(), dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_under_its_names(dtype: Any, causal: bool) -> None:
    q, k, v = values(2, 20, 4, 64, dtype=dtype), values(2, 20, 2, 64, dtype=dtype), values(2, 20, 2, 64, dtype=dtype)
    by_head = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    exact = torch.nn.functional.scaled_dot_product_attention(
        *(x.double() for x in by_head), is_causal=causal, enable_gqa=True
    )
    hold(tt.scaled_dot_product_attention(*by_head, None, 0.0, causal, None, True), exact, dtype)
    o, lse, nothing = tt.flash_attn_func(q, k, v, causal=causal, return_attn_probs=True)
    hold(o.transpose(1, 2), exact, dtype)
    assert lse.shape == (2, 4, 20) and nothing is None


def test_windows_and_softcap() -> None:
    q, k, v = values(1, 40, 2, 64), values(1, 40, 2, 64), values(1, 40, 2, 64)
    scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) / 8
    scores = 5 * torch.tanh(scores / 5)
    i, j = torch.arange(40)[:, None], torch.arange(40)
    scores = scores.masked_fill((j < i - 7) | (j > i), -torch.inf)
    exact = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v.double())
    for window in cast(Any, ((7, 0), [7, 0], (7, 9), torch.tensor([7, 0]))):
        hold(tt.flash_attn_func(q, k, v, causal=True, window_size=window, softcap=5.0), exact, torch.float16)


@pytest.mark.parametrize(("dtype", "head_dim", "head_dim_v"), [(torch.float16, 59, 59), (torch.bfloat16, 64, 33)])
def test_head_dims_are_padded(dtype: Any, head_dim: int, head_dim_v: int) -> None:
    q, k, v = (values(30, 2, size, dtype=dtype) for size in (head_dim, head_dim, head_dim_v))
    exact = torch.nn.functional.scaled_dot_product_attention(*(x.double().transpose(0, 1) for x in (q, k, v))).transpose(0, 1)
    o = tt.flash_attn_func(q[None], k[None], v[None])
    assert o.shape == (1, 30, 2, head_dim_v)
    hold(o[0], exact, dtype)
    hold(tt.flash_attn_varlen_func(q, k, v, bounds(30), bounds(30), 30, 30), exact, dtype)


def bounds(*lengths: int) -> Any:
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def test_attention_of_several_lengths() -> None:
    q, k, v = values(12, 2, 64, dtype=BF16), values(15, 2, 64, dtype=BF16), values(15, 2, 64, dtype=BF16)
    cu_q, cu_k = bounds(5, 0, 7), bounds(7, 1, 7)
    o, lse, nothing = tt.flash_attn_varlen_func(q, k, v, cu_q, cu_k, 7, 7, causal=True, return_attn_probs=True)
    assert lse.shape == (2, 12) and nothing is None
    for of_q, of_k in ((slice(0, 5), slice(0, 7)), (slice(5, 12), slice(8, 15))):
        hold(o[of_q], exact_attention(q[of_q], k[of_k], v[of_k], True), BF16)


def exact_attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Of one sequence, (queries, heads, dim), in float64; the mask at the bottom right."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(groups, dim=1) for x in (k, v))
    scores = torch.einsum("ihd,jhd->hij", q.double(), k) * q.shape[-1] ** -0.5
    if causal:
        behind = torch.arange(len(k)) - (torch.arange(len(q))[:, None] + len(k) - len(q))
        scores = scores.masked_fill(behind > 0, -torch.inf)
    return torch.einsum("hij,jhd->ihd", scores.softmax(-1).nan_to_num(0.0), v)


@pytest.mark.parametrize("paged", [False, True])
def test_attention_with_a_cache(paged: bool) -> None:
    q, k, v = values(2, 3, 4, 64, dtype=BF16), values(2, 3, 2, 64, dtype=BF16), values(2, 3, 2, 64, dtype=BF16)
    table = torch.tensor([[4, 1], [0, 3]], dtype=torch.int32) if paged else None
    shape = (5, 16, 2, 64) if paged else (2, 32, 2, 64)
    k_cache, v_cache = values(*shape, dtype=BF16), values(*shape, dtype=BF16)

    def sequence(cache: Any, i: int) -> Any:
        return cache[i] if table is None else cache[table[i].long()].flatten(0, 1)

    for lengths in (torch.tensor([7, 29], dtype=torch.int32), 14):
        keys, of_values = k_cache.clone(), v_cache.clone()
        o, lse = tt.flash_attn_with_kvcache(
            q, keys, of_values, k, v, cache_seqlens=lengths, causal=True, block_table=table, return_softmax_lse=True
        )
        assert lse.shape == (2, 4, 3)
        for i, n in enumerate([14, 14] if isinstance(lengths, int) else lengths.tolist()):
            now, then = sequence(keys, i), sequence(k_cache, i)
            assert torch.equal(now[n : n + 3], k[i]) and torch.equal(now[:n], then[:n]) and torch.equal(now[n + 3 :], then[n + 3 :])
            hold(o[i], exact_attention(q[i], now[: n + 3], sequence(of_values, i)[: n + 3], True), BF16)
    whole = tt.flash_attn_with_kvcache(q, k_cache, v_cache, page_table=table)
    for i in range(2):
        hold(whole[i], exact_attention(q[i], sequence(k_cache, i), sequence(v_cache, i), False), BF16)


def test_packed_queries_on_pages() -> None:
    q, pages = values(5, 2, 64, dtype=BF16), values(3, 16, 2, 64, dtype=BF16)
    table = torch.tensor([[2, 0], [1, 1]], dtype=torch.int32)
    o = tt.flash_attn_varlen_func(q, pages, pages, bounds(2, 3), bounds(20, 9), 3, 32, causal=True, block_table=table)
    first = pages[[2, 0]].flatten(0, 1)[:20]
    hold(o[:2], exact_attention(q[:2], first, first, True), BF16)
    hold(o[2:], exact_attention(q[2:], pages[1, :9], pages[1, :9], True), BF16)


def test_e4m3() -> None:
    q, k = values(1, 8, 2, 64).to(torch.float8_e4m3fn), values(1, 8, 2, 64).to(torch.float8_e4m3fn)
    factor = torch.full((1, 2), 2.0)
    o = tt.flash_attn_func(q, k, k, v_descale=factor)
    assert o.dtype == BF16
    exact = 2 * exact_attention(q[0], k[0], k[0], False)
    assert ((o[0].double() - exact).abs() <= 2 * (2.0**-4 + 2.0**-7)).all()  # P in e4m3


def test_deep_gemm() -> None:
    x, w = torch.randn(70, 256), torch.randn(2, 40, 256)
    a, each = dg.per_token_cast_to_fp8(x.bfloat16()), [dg.per_block_cast_to_fp8(matrix) for matrix in w]
    assert a[0].dtype == torch.float8_e4m3fn and a[1].shape == (70, 2)
    b = torch.stack([pair[0] for pair in each]), torch.stack([pair[1] for pair in each])
    d = torch.empty(70, 40, dtype=torch.bfloat16)
    dg.fp8_gemm_nt(a, each[0], d)
    assert dg.calc_diff(d, x @ w[0].t()) < 2e-3  # e4m3 keeps four bits
    groups = torch.tensor([0] * 30 + [1] * 38 + [-1] * 2, dtype=torch.int32)
    grouped = torch.zeros_like(d)
    dg.m_grouped_fp8_gemm_nt_contiguous(a, b, grouped, groups)
    assert torch.equal(grouped[:30], d[:30]) and not grouped[68:].any()
    assert dg.calc_diff(grouped[30:68], x[30:68] @ w[1].t()) < 2e-3
    masked = torch.zeros(2, 35, 40, dtype=torch.bfloat16)
    of_groups = a[0].view(2, 35, 256), a[1].contiguous().view(2, 35, 2)
    dg.m_grouped_fp8_gemm_nt_masked(of_groups, b, masked, torch.tensor([35, 4], dtype=torch.int32), 35)
    assert torch.equal(masked[0, :30], d[:30]) and not masked[1, 4:].any()
    gradients = torch.ones(2, 24, 40)
    y, z = torch.randn(48, 24).bfloat16(), torch.randn(48, 40).bfloat16()
    by_k = y.t().contiguous().t(), z.t().contiguous().t()
    dg.k_grouped_bf16_gemm_tn_contiguous(*by_k, gradients, [16, 32], torch.tensor([16, 32], dtype=torch.int32), c=gradients)
    assert torch.allclose(gradients[1], y[16:].float().t() @ z[16:].float() + 1, atol=1e-4)
    with pytest.raises(ArgumentError, match="d is ndarray; a torch.Tensor is needed"):
        dg.fp8_gemm_nt(a, each[0], d.float().numpy())


def test_operators_keep_pytorchs_rules() -> None:
    a, b, bias = values(16, 32), values(32, 24), values(24)
    for arguments in (
        (a, b, None, None, 1.0, 0.0, "none", None),
        (a, b, None, bias, 0.5, 0.0, "relu", None),
        (values(3, 16, 32), b, None, None, 1.0, 0.0, "none", torch.float32),
    ):
        torch.library.opcheck(torch.ops.tegula.gemm.default, arguments)


def test_the_operator_of_attention_keeps_pytorchs_rules() -> None:
    q, k = values(2, 8, 4, 64), values(2, 8, 2, 64)
    torch.library.opcheck(torch.ops.tegula.attention.default, (q, k, k, None, True, None, None, None, 0.0))
    torch.library.opcheck(torch.ops.tegula.attention.default, (q[0], k[0], k[0], values(4, dtype=torch.float32), False, 0.5, 8, None, 20.0))
    tokens = values(8, 2, 64, dtype=BF16)
    packed = (tokens, tokens, tokens, None, True, None, None, None, 0.0, bounds(3, 5), bounds(3, 5), 5, 5)
    torch.library.opcheck(torch.ops.tegula.attention.default, packed)
    q, caches, new = values(2, 3, 2, 64, dtype=BF16), values(2, 16, 2, 64, dtype=BF16), values(2, 3, 2, 64, dtype=BF16)
    lengths = torch.tensor([5, 0], dtype=torch.int32)
    appended = (q, caches, caches.clone(), new, new, lengths, True, None, None, None, 0.0)
    torch.library.opcheck(torch.ops.tegula.append_and_attend.default, appended)


def test_compiles_without_a_break() -> None:
    def block(x: Any, w: Any) -> Any:
        y = tt.linear(x, w, activation="gelu").reshape(2, 8, 2, 32)
        return tt.flash_attn_func(y, y, y, causal=True).flatten(-2) + x

    x, w = values(2, 8, 64), values(64, 64)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, w), block(x, w))


def test_what_is_worked_out_once_serves_other_tensors() -> None:
    w, bias = values(24, 32).t(), values(24)
    for _ in range(2):
        a, c = values(16, 32), values(16, 24)
        exact = a.double() @ w.double()
        hold(tt.gemm(a, w), exact, torch.float16, exact.abs().max().item())
        hold(tt.gemm(a, w, c=c), exact + c.double(), torch.float16, 1 + exact.abs().max().item())
        hold(tt.gemm(a, w, bias=bias, alpha=0.5), exact / 2 + bias.double(), torch.float16, 1 + exact.abs().max().item())
        q, k = values(8, 2, 64, dtype=BF16), values(8, 2, 64, dtype=BF16)
        hold(tt.flash_attn_func(q[None], k[None], k[None])[0], exact_attention(q, k, k, False), BF16)
        hold(tt.flash_attn_func(q[None], k[None], k[None], causal=True)[0], exact_attention(q, k, k, True), BF16)
        scaled = tt.flash_attn_func(q[None], k[None], k[None], softmax_scale=0.25)[0]
        hold(scaled, exact_attention(2 * q, k, k, False), BF16)


def test_a_gemm_in_a_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_problems.Gemm, "workspace_bytes", lambda self, machine: 1 << 20)
    a, w = values(40, 512), values(72, 512).t()
    for _ in range(2):
        exact = a.double() @ w.double()
        hold(tt.gemm(a, w), exact, torch.float16, exact.abs().max().item())


def test_factors_are_checked_at_each_call() -> None:
    """Also of tensors of a form that was computed before."""
    sink = torch.zeros(2)
    tt.attention(T, T, T, sink=sink)
    sink[1] = torch.nan
    with pytest.raises(ArgumentError, match="sink is array.*nan.*every score must be finite, or -inf"):
        tt.attention(T, T, T, sink=sink)


def test_a_first_call_imports_no_compiler() -> None:
    code = (
        "import sys, torch, tegula.torch as tt\n"
        "before = set(sys.modules)\n"
        "x = torch.ones(1, 8, 2, 64, dtype=torch.bfloat16)\n"
        "tt.flash_attn_func(x, x, x)\n"
        "print(len([name for name in set(sys.modules) - before if name.startswith(('torch._dynamo', 'sympy'))]))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


X = values(8, 8)
T = values(1, 8, 2, 32)
CACHE = values(1, 8, 4, 32)
LEAF = values(1, 8, 2, 32).requires_grad_()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tt.gemm(X.double(), X), "a is of torch.float64"),
        (lambda: tt.gemm(X, X[:7]), "a has 8 columns, and b 7 rows"),
        (lambda: tt.gemm(X.to_sparse(), X), "a strided tensor is needed"),
        (lambda: tt.gemm(X, X, activation="tanh"), "activation is 'tanh'"),
        (lambda: tt.gemm(X, X, out_dtype=torch.float64), "out_dtype is 'torch.float64'"),
        (lambda: tt.flash_attn_func(T, T, T, dropout_p=0.1), "dropout_p is 0.1; only 0.0"),
        (lambda: tt.flash_attn_func(T, T, T, window_size=(-8, 0)), "window is (-8, 0)"),
        (lambda: tt.flash_attn_func(T, T, T, window_size=cast(Any, X[0])), "it must be a pair of integers"),
        (lambda: tt.flash_attn_func(T, T, T, window_size=cast(Any, (1, None))), "window_size is (1, None); it must be a pair of integers"),
        (lambda: tt.attention(T, T, T, sink=values(3, dtype=torch.float32)), "one for each head"),
        (lambda: tt.flash_attn_func(T.transpose(1, 3), T, T), "which must be contiguous"),
        (lambda: tt.flash_attn_varlen_func(T[0], T[0], T[0], bounds(9), bounds(9), 8, 8), "must rise from 0"),
        (lambda: tt.flash_attn_varlen_func(T[0], T[0], T[0], bounds(8).long(), bounds(8), 8, 8), "cu_seqlens_q is of torch.int64; int32"),
        (lambda: tt.flash_attn_with_kvcache(T, T, T, cache_seqlens=9), "cache_seqlens is 9; it must be from 0 to 8"),
        (lambda: tt.flash_attn_with_kvcache(T, T, T, page_table=X[:1]), "page_table is of torch.float16; int32"),
        (lambda: tt.flash_attn_with_kvcache(T, T, T, page_table=X, block_table=X), "two names of one table"),
        (lambda: tt.flash_attn_with_kvcache(T, T, T, T, T), "it must say where k is written"),
        (lambda: tt.flash_attn_with_kvcache(T, T, LEAF, T, T, cache_seqlens=0), "v_cache requires a gradient, and what is written into it has none"),
        (lambda: tt.flash_attn_with_kvcache(T, T, T, rotary_cos=X), "rotary_cos is a tensor of (8, 8); only None"),
        (lambda: tt.scaled_dot_product_attention(T, T[:, :4], T[:, :4]), "set enable_gqa"),
        (lambda: tt.scaled_dot_product_attention(T, T[:, :, :1], T[:, :, :1], is_causal=True), "as many"),
        (lambda: tt.scaled_dot_product_attention(T, T, T, attn_mask=cast(Any, 1)), "attn_mask is 1; only None"),
        (lambda: tt.flash_attn_with_kvcache(T, CACHE[:, :, :2], CACHE[:, :, 2:], CACHE[:, :, 1:3], T, cache_seqlens=0), "k is written to, and shares memory with k_new"),
        (lambda: tt.flash_attn_with_kvcache(T, CACHE[..., ::2], CACHE[..., ::2], T, T, cache_seqlens=0), "must be contiguous: allocate k so"),
    ],
)
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value)
