"""What the GPU's tests share. They use no fixtures, so that they also run where there is no pytest (run.py)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

EPSILON = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


class Skipped(Exception):
    """A test for which something is not there."""


class ByInterface:
    """An array that has __cuda_array_interface__ and no DLPack, of no library that is known."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor  # whose memory it is
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def values(*shape: int, dtype: Any = torch.bfloat16, device: str = "cuda", seed: int = 1) -> Any:
    """Evenly spread in [-1, 1), the same for the same shape and seed."""
    generator = torch.Generator().manual_seed(seed + sum(i * n for i, n in enumerate(shape, 1)))
    return (torch.rand(shape, generator=generator) * 2 - 1).to(dtype).to(device)


def hold(result: Any, exact: Any, bound: float) -> None:
    """No element is farther from the exact one than the bound."""
    error = (result.double() - exact.double()).abs().max().item()
    assert error <= bound, f"an error of {error}, and at most {bound} is expected"


def refused(error: type[Exception], sentence: str, call: Callable[[], object]) -> None:
    """The call raises `error`, with a text that has the sentence in it."""
    try:
        call()
    except error as found:
        assert sentence in str(found), f"it says: {found}"
    else:
        raise AssertionError(f"nothing was raised; {error.__name__} with {sentence!r} was expected")


def host_microseconds(call: Callable[[], object], times: int = 200) -> float:
    """Of the host's time for a call, the median of eleven runs."""
    runs = []
    for _ in range(11):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            call()
        runs.append((time.perf_counter() - began) / times * 1e6)
    return sorted(runs)[len(runs) // 2]


def device_milliseconds(call: Callable[[], object], times: int = 20) -> float:
    """Of the GPU's time for a call, the median of eleven runs."""
    call()
    runs = []
    for _ in range(11):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        runs.append(begin.elapsed_time(end) / times)
    return sorted(runs)[len(runs) // 2]
