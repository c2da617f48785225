"""What a launch costs: the host's time of a call, and of a kernel's first use."""

from __future__ import annotations

import subprocess
import sys

import tegula
import tegula.torch as tt
import torch
from support import ByInterface, host_microseconds, values

# Of a call on prepared arguments; the goal of docs/performance.md.
MOST_MICROSECONDS = 6.0


def test_launch_overhead() -> None:
    x, w = values(64, 64), values(64, 64)
    q = values(1, 64, 1, 64)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    gemm, attention = tegula.prepare_gemm(x, w.t()), tegula.prepare_attention(q, q, q)
    out = torch.empty_like(x)
    half = values(64, 64, dtype=torch.float16)
    of_others = tegula.prepare_gemm(*(ByInterface(array) for array in (half, half.t())), out=ByInterface(torch.empty_like(half)))
    took = {}
    for name, call in (
        ("torch.matmul", lambda: torch.matmul(x, w, out=out)),
        ("prepare_gemm's", gemm),
        ("prepare_gemm's, of others", of_others),
        ("tegula.torch.gemm", lambda: tt.gemm(x, w)),
        ("tegula.gemm, out=", lambda: tegula.gemm(x, w, out=out)),
        ("torch's attention", lambda: sdpa(q, q, q)),
        ("prepare_attention's", attention),
        ("tegula.torch.attention", lambda: tt.attention(q, q, q)),
    ):
        call()
        took[name] = host_microseconds(call)
        print(f"{name:26} {took[name]:6.2f} us of the host")
    for name in ("prepare_gemm's", "prepare_gemm's, of others", "prepare_attention's"):
        assert took[name] <= MOST_MICROSECONDS, f"{name} call takes {took[name]} us"


def test_a_process_finds_its_kernels_in_the_cache() -> None:
    code = (
        "import time, torch, tegula.torch as tt\n"
        "x = torch.ones(64, 64, dtype=torch.bfloat16, device='cuda')\n"
        "import tegula; tegula.Machine('cuda'); torch.cuda.synchronize()\n"
        "began = time.perf_counter(); tt.linear(x, x); torch.cuda.synchronize()\n"
        "print(time.perf_counter() - began)"
    )
    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(2)]
    print(f"the first call of a process: {times[0] * 1e3:.1f} ms, and with the kernel in the cache {times[1] * 1e3:.1f} ms")
    assert times[1] < 1.0  # a compile takes longer


def test_compile_times() -> None:
    """Prints what some kernels took to compile; cold ones at most 3 s is the goal."""
    for name in ("attention_sm90 bf16 d128", "gemm_sm90 bf16->bf16 A:k B:k 128x128x64"):
        for kernel in tegula.kernels.compile(name):
            assert kernel.spilled_bytes == 0, kernel
            print(f"{kernel.seconds:7.3f} s {'cached' if kernel.from_cache else 'compiled':9}{kernel.name}")
