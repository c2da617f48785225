"""tegula on a GPU, beside PyTorch and beside the simulated machine."""

from __future__ import annotations

import threading
from typing import Any

import tegula
import tegula.torch as tt
import torch
from support import EPSILON, ByInterface, hold, refused, values
from torch.nn.functional import linear, scaled_dot_product_attention

BF16, F16 = torch.bfloat16, torch.float16


def test_the_machine_and_its_kernels() -> None:
    machine = tegula.Machine("cuda")
    print(machine, len(tegula.kernels.cached()), "kernels are cached")
    assert not machine.is_simulated
    tt.linear(values(64, 64), values(64, 64))
    torch.cuda.synchronize()


def test_gemm_has_the_simulated_machines_bits() -> None:
    for dtype in (F16, BF16):
        a, w, bias = values(200, 96, dtype=dtype), values(136, 96, dtype=dtype), values(136, dtype=dtype)
        on_gpu = tt.linear(a, w, bias)
        exact = linear(a.double(), w.double(), bias.double())
        hold(on_gpu, exact, EPSILON[dtype] * exact.abs().max().item())
        assert torch.equal(on_gpu.cpu(), tt.linear(a.cpu(), w.cpu(), bias.cpu()))


def test_gemms_of_many_shapes() -> None:
    for m, n, k in ((1, 8, 8), (1, 4096, 512), (17, 200, 96), (128, 256, 64), (333, 520, 1000), (2048, 2048, 2048)):
        a, w, c = values(m, k), values(n, k), values(m, n)
        exact = a.double() @ w.double().t()
        bound = EPSILON[BF16] * exact.abs().max().item() + k * 2.0**-24
        hold(tegula.gemm(a, w.t()), exact, bound)
        hold(tegula.gemm(a, w.t(), c=c, alpha=0.5, beta=2.0), 0.5 * exact + 2 * c.double(), bound + 2 * EPSILON[BF16])
    batch = values(3, 64, 128), values(3, 128, 192).transpose(1, 2).contiguous().transpose(1, 2)
    hold(tegula.gemm(*batch), batch[0].double() @ batch[1].double(), EPSILON[BF16] * 128)


def test_fp8() -> None:
    a, w = (values(n, 256).to(torch.float8_e4m3fn) for n in (128, 192))
    exact = a.double() @ w.double().t()
    hold(tt.gemm(a, w.t()), exact, 256 * 2.0**-6 + EPSILON[BF16] * exact.abs().max().item())


def reference(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Of (batch, seq, heads, head_dim), in float64; a causal mask aligned at the bottom right."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    rows, keys = q.shape[2], k.shape[2]
    mask = torch.ones(rows, keys, dtype=torch.bool, device=q.device).tril(keys - rows) if causal else None
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True).transpose(1, 2)


def test_attention_has_the_simulated_machines_bits() -> None:
    for dtype in (F16, BF16):
        for causal in (False, True):
            q, k, v = (values(2, 70, heads, 64, dtype=dtype, seed=heads + i) for i, heads in enumerate((4, 2, 2)))
            o = tt.flash_attn_func(q, k, v, causal=causal)
            hold(o, reference(q, k, v, causal), 2.5 * EPSILON[dtype])
            assert torch.equal(o.cpu(), tt.flash_attn_func(q.cpu(), k.cpu(), v.cpu(), causal=causal))


def test_attention_of_many_shapes() -> None:
    for head_dim in (64, 96, 128, 256):
        for rows, keys in ((1, 1), (1, 777), (130, 300), (1024, 1024)):
            for causal in (False, True):
                q = values(2, rows, 4, head_dim)
                k, v = (values(2, keys, 2, head_dim, seed=seed) for seed in (2, 3))
                hold(tt.flash_attn_func(q, k, v, causal=causal), reference(q, k, v, causal), 2.5 * EPSILON[BF16])


def test_attention_under_pytorchs_name() -> None:
    q, k, v = (values(2, 8, 256, 64, seed=seed) for seed in (1, 2, 3))
    for causal in (False, True):
        exact = scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
        hold(tt.scaled_dot_product_attention(q, k, v, is_causal=causal), exact, 2.5 * EPSILON[BF16])


def test_arrays_by_dlpack() -> None:
    a, w = values(128, 64), values(96, 64)
    out = torch.empty(128, 96, dtype=BF16, device="cuda")
    assert tegula.gemm(a, w.t(), out=out) is out
    assert torch.equal(out, tt.linear(a, w))
    q = values(1, 64, 4, 64)
    o, lse = tegula.attention(q, q, q, causal=True, return_lse=True)
    again, lse_again = tt.attention(q, q, q, causal=True)
    assert torch.equal(o, again) and torch.equal(lse, lse_again)

    half = values(64, 64, dtype=F16)
    result = torch.empty_like(half)
    tegula.gemm(ByInterface(half), ByInterface(half.t()), out=ByInterface(result))  # type: ignore[call-overload]
    assert torch.equal(result, tt.gemm(half, half.t()))


def test_work_is_queued_on_the_current_stream() -> None:
    """The product of what the stream before it writes, while another stream is busy."""
    a, w = values(2048, 2048), values(2048, 2048)
    expected = tt.linear(a, w)
    launch = tegula.prepare_gemm(late := torch.zeros_like(a), w.t())
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        results = tt.linear(late, w), tegula.gemm(late, w.t()), launch()
    stream.synchronize()
    for result in results:
        assert torch.equal(result, expected)


def test_prepared_launches() -> None:
    a, w, q = values(256, 256), values(512, 256), values(2, 128, 4, 64)
    gemm, attention = tegula.prepare_gemm(a, w.t()), tegula.prepare_attention(q, q, q, causal=True)
    for _ in range(3):
        assert torch.equal(gemm(), tt.linear(a, w))
        assert torch.equal(attention(), tt.flash_attn_func(q, q, q, causal=True))
        a.add_(1), q.mul_(0.5)


def test_cuda_graphs() -> None:
    q, w, x = values(1, 128, 4, 64), values(256, 256), values(128, 256)
    tt.linear(x, w), tt.flash_attn_func(q, q, q)  # kernels are compiled outside of a capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, o = tt.linear(x, w), tt.flash_attn_func(q, q, q)
    x.copy_(values(128, 256, seed=9))
    q.copy_(values(1, 128, 4, 64, seed=9))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, tt.linear(x, w))
    assert torch.equal(o, tt.flash_attn_func(q, q, q))


def test_operators_keep_pytorchs_rules() -> None:
    q, x, w = values(1, 64, 4, 64), values(64, 256), values(256, 256)
    torch.library.opcheck(torch.ops.tegula.gemm.default, (x, w, None, None, 1.0, 0.0, "none", None))
    torch.library.opcheck(torch.ops.tegula.attention.default, (q, q, q, None, True, None, None, None, 0.0))


def test_compiles_without_a_break() -> None:
    def block(x: Any, w: Any) -> Any:
        y = tt.linear(x, w, activation="gelu").reshape(2, 32, 4, 64)
        return torch.relu(tt.flash_attn_func(y, y, y, causal=True).flatten(-2).flatten(0, 1)) + x

    x, w = values(64, 256), values(256, 256)
    assert torch.equal(torch.compile(block, fullgraph=True)(x, w), block(x, w))


def test_threads() -> None:
    """Threads on streams of their own, of which all use the same kernels for the first time."""
    inputs = [(values(320, 448, seed=i), values(192, 448, seed=i + 8)) for i in range(8)]
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            results[number] = tt.linear(*inputs[number])
            torch.cuda.current_stream().synchronize()

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, (a, w) in enumerate(inputs):
        assert torch.equal(results[number], tt.linear(a, w))


def test_bad_input_is_one_sentence() -> None:
    x, t = values(64, 64), values(1, 8, 2, 64)
    freed = values(64, 64)
    freed.untyped_storage().resize_(0)
    for sentence, call in (
        ("must share a device", lambda: tt.gemm(x, x.cpu())),
        ("b is in the host's memory", lambda: tegula.gemm(x, x.cpu())),
        ("a is of torch.float64", lambda: tt.gemm(x.double(), x)),
        ("b has elements of DLPack's type 2 of 64 bits", lambda: tegula.gemm(x, x.double())),
        ("neither its rows nor its columns are contiguous", lambda: tt.gemm(x[:, ::2], x)),
        ("a has 64 columns, and b 32 rows", lambda: tegula.gemm(x, x[:32])),
        ("has no memory: its storage was freed", lambda: tt.gemm(freed, x)),
        ("which must be contiguous", lambda: tt.flash_attn_func(t.transpose(1, 3), t, t)),
        ("leave it out", lambda: tegula.gemm(x, x, machine=tegula.Machine())),
        ("NumPy arrays lie in the host's memory", lambda: tegula.gemm(x.half().cpu().numpy(), x.half().cpu().numpy(), machine=tegula.Machine("cuda"))),
    ):
        refused(tegula.ArgumentError, sentence, call)
    refused(tegula.DeviceError, "no GPU number 4096", lambda: tegula.Machine("cuda:4096"))
