"""tegula.torch on a GPU, beside PyTorch and beside the simulated machine.

Needs a GPU, PyTorch, and the package built with CUDA:
    pip install . -C cmake.define.TEGULA_CUDA=ON && python -m pytest python/tests/gpu
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import tegula  # noqa: E402
import tegula.torch as tt  # noqa: E402

try:
    tegula.Machine("cuda")
except tegula.DeviceError as error:
    pytest.skip(str(error), allow_module_level=True)

EPSILON = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


def values(*shape: int, dtype: Any = torch.bfloat16, device: str = "cuda") -> Any:
    return (torch.rand(shape) * 2 - 1).to(dtype).to(device)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gemm_has_the_simulated_machines_bits(dtype: Any) -> None:
    a, w, bias = values(200, 96, dtype=dtype), values(136, 96, dtype=dtype), values(136, dtype=dtype)
    on_gpu = tt.linear(a, w, bias)
    on_host = tt.linear(a.cpu(), w.cpu(), bias.cpu())
    exact = torch.nn.functional.linear(a.double(), w.double(), bias.double())
    assert ((on_gpu.double() - exact).abs() <= EPSILON[dtype] * exact.abs().max()).all()
    assert torch.equal(on_gpu.cpu(), on_host)


def test_fp8() -> None:
    a, w = (values(n, 256).to(torch.float8_e4m3fn) for n in (128, 192))
    exact = a.double() @ w.double().t()
    assert ((tt.gemm(a, w.t(), out_dtype=torch.float32).double() - exact).abs() <= 256 * 2.0**-6).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_has_the_simulated_machines_bits(dtype: Any, causal: bool) -> None:
    q, k, v = values(2, 70, 4, 64, dtype=dtype), values(2, 70, 2, 64, dtype=dtype), values(2, 70, 2, 64, dtype=dtype)
    o = tt.flash_attn_func(q, k, v, causal=causal)
    exact = torch.nn.functional.scaled_dot_product_attention(
        *(x.double().transpose(1, 2) for x in (q, k, v)), is_causal=causal, enable_gqa=True
    ).transpose(1, 2)
    assert ((o.double() - exact).abs() <= 2.5 * EPSILON[dtype]).all()
    assert torch.equal(o.cpu(), tt.flash_attn_func(q.cpu(), k.cpu(), v.cpu(), causal=causal))


def test_work_is_queued_on_the_current_stream() -> None:
    """The product of what the stream before it writes, while another stream is busy."""
    a, w = values(2048, 2048), values(2048, 2048)
    expected = tt.linear(a, w)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        late = torch.zeros_like(a)
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        result = tt.linear(late, w)
    stream.synchronize()
    assert torch.equal(result, expected)


def test_cuda_graphs() -> None:
    q = values(1, 128, 4, 64)
    w = values(256, 256)
    x = values(128, 256)
    tt.linear(x, w), tt.flash_attn_func(q, q, q)  # the machine is made outside of a capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, o = tt.linear(x, w), tt.flash_attn_func(q, q, q)
    x.copy_(values(128, 256))
    q.copy_(values(1, 128, 4, 64))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, tt.linear(x, w))
    assert torch.equal(o, tt.flash_attn_func(q, q, q))


def test_compiles_and_keeps_pytorchs_rules() -> None:
    q, x, w = values(1, 64, 4, 64), values(64, 256), values(256, 256)
    torch.library.opcheck(torch.ops.tegula.gemm.default, (x, w, None, None, 1.0, 0.0, "none", None))
    torch.library.opcheck(torch.ops.tegula.attention.default, (q, q, q, None, True, None, None, None, 0.0))
    compiled = torch.compile(lambda x, w: torch.relu(tt.linear(x, w)) + x, fullgraph=True)
    assert torch.equal(compiled(x, w), torch.relu(tt.linear(x, w)) + x)


def test_devices_are_not_mixed() -> None:
    x = values(64, 64)
    with pytest.raises(tegula.ArgumentError, match="must share a device"):
        tt.gemm(x, x.cpu())


def microseconds(call: Callable[[], object], times: int = 2000) -> float:
    """Of the host's time for a call, the median of ten runs."""
    runs = []
    for _ in range(10):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(times // 10):
            call()
        runs.append((time.perf_counter() - began) / (times // 10) * 1e6)
    return sorted(runs)[len(runs) // 2]


def test_launch_overhead(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the host's time of a call, PyTorch's matmul beside it. No limit is held here: see docs/performance.md."""
    x, w = values(64, 64), values(64, 64)
    q = values(1, 64, 1, 64)
    with capsys.disabled():
        print()
        for name, call in (
            ("torch.matmul", lambda: x @ w),
            ("tegula.torch.gemm", lambda: tt.gemm(x, w)),
            ("torch sdpa", lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)),
            ("tegula.torch.attention", lambda: tt.attention(q, q, q)),
        ):
            print(f"{name:24} {microseconds(call):6.1f} us of the host")
