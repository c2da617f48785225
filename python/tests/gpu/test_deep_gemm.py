"""On a GPU: every function of tegula.deep_gemm has the bits that it has on the simulated machine, and is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from support import hold, refused, values
from tegula import ArgumentError
from tegula import deep_gemm as dg

BF16, F32 = torch.bfloat16, torch.float32
Pair = tuple[Any, Any]


def same_bits(compute: Callable[[str], Any]) -> Any:
    """What `compute` makes on a device, with the same bits on the GPU and on the simulated machine: the CPU's tensor."""
    on_gpu, simulated = compute("cuda").cpu(), compute("cpu")
    assert torch.equal(on_gpu, simulated), f"{(on_gpu != simulated).sum().item()} of {simulated.numel()} elements differ"
    return simulated


def rows(m: int, k: int, device: str, seed: int = 1) -> Any:
    return values(m, k, dtype=F32, device=device, seed=seed)


def wide(pair: Pair, by_blocks: bool = False) -> Any:
    """What elements with scales of rows, or of blocks, stand for, in float64."""
    elements, scales = pair[0].double(), pair[1].double()
    scales = scales.repeat_interleave(128, -1)[..., : elements.shape[-1]]
    return elements * (scales.repeat_interleave(128, -2)[..., : elements.shape[-2], :] if by_blocks else scales)


def experts(groups: int, n: int, k: int, device: str) -> Pair:
    each = [dg.per_block_cast_to_fp8(rows(n, k, device, seed)) for seed in range(groups)]
    return torch.stack([x for x, _ in each]), torch.stack([s for _, s in each])


def test_casts() -> None:
    for cast in (dg.per_token_cast_to_fp8, dg.per_block_cast_to_fp8, dg.per_channel_cast_to_fp8):
        for ue8m0 in (False, True):
            for part in (0, 1):
                same_bits(lambda device: cast(rows(256, 384, device), ue8m0)[part].float().contiguous())  # noqa: B023
    same_bits(lambda device: dg.get_mn_major_tma_aligned_tensor(rows(30, 5, device)).contiguous())


def test_fp8_gemm() -> None:
    a, b = dg.per_token_cast_to_fp8(rows(70, 272, "cpu")), dg.per_block_cast_to_fp8(rows(136, 272, "cpu", 2))

    def plain(device: str) -> Any:
        d = torch.full((70, 136), 7, dtype=BF16, device=device)
        dg.fp8_gemm_nt(tuple(x.to(device) for x in a), tuple(x.to(device) for x in b), d)
        return d

    d = same_bits(plain)
    hold(d, wide(a) @ wide(b, True).T, 0.2)
    of_a, of_b = (tuple(x.cuda() for x in pair) for pair in (a, b))
    for form, x, y in (
        (dg.fp8_gemm_nn, of_a, tuple(v.T for v in of_b)),
        (dg.fp8_gemm_tn, tuple(v.T for v in of_a), tuple(v.T for v in of_b)),
        (dg.fp8_gemm_tt, tuple(v.T for v in of_a), of_b),
    ):
        again = torch.zeros(70, 136, dtype=BF16, device="cuda")
        form(x, y, again)
        assert torch.equal(again.cpu(), d), form.__name__
    by_rows = dg.per_token_cast_to_fp8(rows(48, 272, "cuda", 3))
    out, c = torch.zeros(70, 48, device="cuda"), rows(70, 48, "cuda", 4)
    dg.fp8_gemm_nt(of_a, by_rows, out, c=c, recipe=(1, 1, 128))
    # 9 steps of 32 products below 1, truncated to 13 bits (docs/arithmetic.md).
    hold(out, wide(of_a) @ wide(by_rows).T + c, 9 * 33 * 2.0**-13)


def test_groups_of_rows() -> None:
    groups = torch.tensor([-1] * 3 + [2] * 70 + [0] + [-1] * 2, dtype=torch.int32)

    def compute(device: str) -> Any:
        a, b = dg.per_token_cast_to_fp8(rows(76, 256, device)), experts(3, 136, 256, device)
        d = torch.full((76, 136), 7, dtype=BF16, device=device)
        dg.m_grouped_fp8_gemm_nt_contiguous(a, b, d, groups.to(device))
        other = torch.full_like(d, 7)
        dg.m_grouped_fp8_gemm_nn_contiguous(a, tuple(x.transpose(1, 2) for x in b), other, groups.to(device))
        assert torch.equal(d, other)
        return d

    d, of_a, of_b = same_bits(compute), dg.per_token_cast_to_fp8(rows(76, 256, "cpu")), experts(3, 136, 256, "cpu")
    assert torch.all(d[groups == -1] == 7)
    for g in (0, 2):
        hold(d[groups == g], wide(of_a)[groups == g] @ wide(of_b, True)[g].T, 0.2)

    def of_bf16(device: str) -> Any:
        e = torch.full((76, 40), 7, dtype=BF16, device=device)
        dg.m_grouped_bf16_gemm_nt_contiguous(values(76, 64, device=device), values(3, 40, 64, device=device), e, groups.to(device))
        return e

    e = same_bits(of_bf16)
    for g in (0, 2):
        hold(e[groups == g], values(76, 64, device="cpu").double()[groups == g] @ values(3, 40, 64, device="cpu")[g].double().T, 0.1)


def test_bf16() -> None:
    groups = torch.tensor([1] * 20 + [0] * 13, dtype=torch.int32)

    def compute(device: str) -> Any:
        a, b = values(33, 64, device=device), values(40, 64, device=device)
        calls: list[Callable[[Any], None]] = [
            lambda d: dg.bf16_gemm_nt(a, b, d),
            lambda d: dg.bf16_gemm_nn(a, b.T, d),
            lambda d: dg.bf16_gemm_tn(a.T, b.T, d),
            lambda d: dg.bf16_gemm_tt(a.T, b, d),
            lambda d: dg.m_grouped_bf16_gemm_nn_contiguous(a, values(2, 40, 64, device=device).transpose(1, 2), d, groups.to(device)),
        ]
        results = []
        for call in calls:
            d = torch.full((33, 40), 7, dtype=BF16, device=device)
            call(d)
            results.append(d)
        return torch.stack(results)

    results = same_bits(compute)
    a, b, each = values(33, 64, device="cpu").double(), values(40, 64, device="cpu").double(), values(2, 40, 64, device="cpu").double()
    for d in results[:4]:
        hold(d, a @ b.T, 0.1)
    hold(results[4], torch.cat([a[:20] @ each[1].T, a[20:] @ each[0].T]), 0.1)

    def of_k(device: str) -> Any:
        d = torch.full((2, 40, 24), 7.0, device=device)
        ks = torch.tensor([16, 32], dtype=torch.int32, device=device)
        x, y = values(40, 48, device=device), values(24, 48, device=device)
        dg.k_grouped_bf16_gemm_tn_contiguous(x.T, y.T, d, [16, 32], ks)
        return d

    gradient, x, y = same_bits(of_k), values(40, 48, device="cpu").double(), values(24, 48, device="cpu").double()
    for g, part in enumerate((slice(0, 16), slice(16, 48))):
        hold(gradient[g], x[:, part] @ y[:, part].T, 1e-4)


def test_masked_groups() -> None:
    count = torch.tensor([5, 0, 70], dtype=torch.int32)

    def compute(device: str) -> Any:
        each = [dg.per_token_cast_to_fp8(rows(70, 144, device, seed)) for seed in range(3)]
        a = torch.stack([x for x, _ in each]), torch.stack([s for _, s in each])
        d = torch.full((3, 70, 72), 7, dtype=BF16, device=device)
        dg.m_grouped_fp8_gemm_nt_masked(a, experts(3, 72, 144, device), d, count.to(device), expected_m=25)
        # Scales that lie as the kernel reads them are the same numbers.
        again = torch.full_like(d, 7)
        aligned = dg.get_mn_major_tma_aligned_tensor(a[1])
        dg.m_grouped_fp8_gemm_nt_masked((a[0], aligned), experts(3, 72, 144, device), again, count.to(device), expected_m=25)
        assert torch.equal(d, again)
        return d

    d, b = same_bits(compute), experts(3, 72, 144, "cpu")
    for g, n in enumerate(count.tolist()):
        if n > 0:
            hold(d[g, :n], wide(dg.per_token_cast_to_fp8(rows(70, 144, "cpu", g)))[:n] @ wide(b, True)[g].T, 0.2)
        assert torch.all(d[g, n:] == 7)

    def of_bf16(device: str) -> Any:
        e = torch.full((3, 70, 40), 7, dtype=BF16, device=device)
        dg.m_grouped_bf16_gemm_nt_masked(values(3, 70, 64, device=device), values(3, 40, 64, device=device), e, count.to(device), 25)
        return e

    same_bits(of_bf16)


def test_a_graph_follows_the_counts() -> None:
    a, b = values(2, 64, 128), values(2, 96, 128)
    count, d = torch.tensor([64, 1], dtype=torch.int32, device="cuda"), torch.zeros(2, 64, 96, dtype=BF16, device="cuda")
    dg.m_grouped_bf16_gemm_nt_masked(a, b, d, count, 32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dg.m_grouped_bf16_gemm_nt_masked(a, b, d, count, 32)
    count.copy_(torch.tensor([3, 50], dtype=torch.int32))
    d.fill_(7)
    graph.replay()
    exact = a.double() @ b.double().transpose(1, 2)
    for g, n in enumerate((3, 50)):
        hold(d[g, :n], exact[g, :n], 0.1)
        assert torch.all(d[g, n:] == 7)


def test_groups_of_k() -> None:
    ks, m, n = [144, 0, 256], 32, 48

    def compute(device: str) -> Any:
        ks_tensor = torch.tensor(ks, dtype=torch.int32, device=device)
        each = [[dg.per_channel_cast_to_fp8(rows(k, width, device, k)) for k in ks if k] for width in (m, n)]
        a, b = ((torch.cat([x for x, _ in pairs]), torch.cat([s for _, s in pairs])) for pairs in each)
        by_k = [x[0].T.contiguous().T for x in (a, b)]
        flat = [torch.cat([x.T.reshape(-1) for x, _ in pairs]) for pairs in each]
        results = []
        for call in (
            lambda d, c: dg.k_grouped_fp8_gemm_tn_contiguous((by_k[0], a[1]), (by_k[1], b[1]), d, ks, ks_tensor, c),
            lambda d, c: dg.k_grouped_fp8_gemm_nt_contiguous((by_k[0].T, a[1]), (by_k[1].T, b[1]), d, ks, ks_tensor, c),
            lambda d, c: dg.k_grouped_fp8_gemm_nt_contiguous((flat[0], a[1]), (flat[1], b[1]), d, ks, ks_tensor, c),
        ):
            for c in (None, values(3, m, n, dtype=F32, device=device)):
                d = torch.full((3, m, n), 7.0, device=device)
                call(d, c)
                results.append(d)
        return torch.stack(results)

    results = same_bits(compute)
    c = values(3, m, n, dtype=F32, device="cpu")
    for plain, added in zip(results[::2], results[1::2]):
        assert torch.all(plain[1] == 0) and torch.equal(added[1], c[1])
        for g in (0, 2):
            exact = rows(ks[g], m, "cpu", ks[g]).double().T @ rows(ks[g], n, "cpu", ks[g]).double()
            assert dg.calc_diff(plain[g], exact) < 2e-3
            hold(added[g] - c[g], plain[g], 1e-4)


def test_nothing_to_compute() -> None:
    b = experts(2, 136, 256, "cuda")
    a = dg.per_token_cast_to_fp8(torch.zeros(0, 256, device="cuda"))
    d = torch.zeros(0, 136, dtype=BF16, device="cuda")
    dg.m_grouped_fp8_gemm_nt_contiguous(a, b, d, torch.zeros(0, dtype=torch.int32, device="cuda"))
    out = torch.full((8, 16), 7, dtype=BF16, device="cuda")
    dg.bf16_gemm_nt(values(8, 0), values(16, 0), out)
    assert torch.all(out == 0)


def test_refusals() -> None:
    a, b, row = values(8, 64), values(16, 64), torch.zeros(1, 16, dtype=BF16, device="cuda")
    refused(ArgumentError, "d has", lambda: dg.bf16_gemm_nt(a, b, row.expand(8, 16)))
    refused(ArgumentError, "a has", lambda: dg.bf16_gemm_nt(a[:1].expand(8, 64), b, values(8, 16)))
