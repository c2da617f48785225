"""On a GPU: sequences of their own lengths, pages, e4m3, grouped GEMM and kernels of one's own, beside the simulated
machine and PyTorch in float64."""

from __future__ import annotations

from typing import Any

import tegula
import tegula.torch as tt
import torch
from support import EPSILON, device_milliseconds, hold, values
from tegula import deep_gemm as dg
from torch.nn.functional import scaled_dot_product_attention

BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn


def alone(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """One sequence, (tokens, heads, dim), in float64."""
    by_head = (x.double().transpose(0, 1)[None] for x in (q, k, v))
    mask = torch.ones(len(q), len(k), dtype=torch.bool, device=q.device).tril(len(k) - len(q)) if causal else None
    return scaled_dot_product_attention(*by_head, attn_mask=mask, enable_gqa=True)[0].transpose(0, 1)


def bounds(*lengths: int) -> Any:
    return torch.tensor([0, *lengths], dtype=torch.int32, device="cuda").cumsum(0, dtype=torch.int32)


def test_packed_sequences() -> None:
    lengths = (130, 1, 700)
    cu = bounds(*lengths)
    q, k, v = values(831, 8, 128), values(831, 2, 128, seed=2), values(831, 2, 128, seed=3)
    for causal in (False, True):
        o = tt.flash_attn_varlen_func(q, k, v, cu, cu, 700, 700, causal=causal)
        for begin, end in zip(cu.tolist(), cu.tolist()[1:]):
            part = slice(begin, end)
            hold(o[part], alone(q[part], k[part], v[part], causal), 2.5 * EPSILON[BF16])


def test_paged_caches_in_a_graph() -> None:
    table = torch.randperm(64, device="cuda").to(torch.int32).view(2, 32)
    q, pages_k, pages_v = values(2, 1, 16, 128), values(64, 64, 2, 128, seed=2), values(64, 64, 2, 128, seed=3)
    used = torch.tensor([2048, 77], dtype=torch.int32, device="cuda")

    def decode() -> Any:
        return tt.flash_attn_with_kvcache(q, pages_k, pages_v, cache_seqlens=used, block_table=table, causal=True)

    def hold_all(o: Any) -> None:
        for i, n in enumerate(used.tolist()):
            k, v = (x[table[i].long()].flatten(0, 1)[:n] for x in (pages_k, pages_v))
            hold(o[i], alone(q[i], k, v, True), 2.5 * EPSILON[BF16])

    hold_all(decode())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = decode()
    used.copy_(torch.tensor([5, 1000], dtype=torch.int32))
    graph.replay()
    hold_all(o)
    print(f"a decoding step of 2 sequences in pages: {device_milliseconds(decode) * 1e3:.1f} us")


def test_e4m3() -> None:
    q, k, v = values(1, 300, 4, 128).to(E4M3), values(1, 300, 4, 128, seed=2).to(E4M3), values(1, 300, 4, 128, seed=3).to(E4M3)
    o = tt.flash_attn_func(q, k, v, v_descale=torch.full((1, 4), 0.5, device="cuda"))
    hold(o[0], alone(q[0], k[0], v[0], False) / 2, 2.0**-4 + 2.0**-7)


def test_grouped_gemm_has_the_simulated_machines_bits() -> None:
    x, w = torch.randn(300, 512), torch.randn(3, 256, 512)
    groups = torch.tensor([0] * 100 + [2] * 190 + [-1] * 10, dtype=torch.int32)
    results = []
    for device in ("cuda", "cpu"):
        a = dg.per_token_cast_to_fp8(x.to(device))
        each = [dg.per_block_cast_to_fp8(matrix.to(device)) for matrix in w]
        b = torch.stack([pair[0] for pair in each]), torch.stack([pair[1] for pair in each])
        d = torch.zeros(300, 256, dtype=BF16, device=device)
        dg.m_grouped_fp8_gemm_nt_contiguous(a, b, d, groups.to(device))
        results.append(d.cpu())
    assert torch.equal(*results)
    assert dg.calc_diff(results[0][:100], x[:100] @ w[0].t()) < 2e-3


def test_a_kernel_of_ones_own() -> None:
    source = """
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
struct scale {
  struct Params { float const* in; float* out; float factor; int n; };
  struct SharedStorage {};
  static constexpr int threads = 128;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    using namespace tegula;
    int const i = threads * block_idx().x + thread_idx();
    if (i < p.n) st_global(p.out + i, p.factor * ld_global<float>(p.in + i));
  }
};
"""
    kernel = tegula.Kernel(source, "scale")
    x, out = torch.randn(1000, device="cuda"), torch.zeros(1000, device="cuda")
    kernel(8, x, out, 3.0, 1000)
    assert torch.equal(out, 3 * x)
