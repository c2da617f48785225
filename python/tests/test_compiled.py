"""Kernels compiled when they are first used, and arrays of a GPU, as far as both can be tested without one."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any, cast

import numpy as np
import pytest

import tegula
from tegula import ArgumentError, DeviceError, _gpu_arrays


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEGULA_CACHE", str(tmp_path / "cache"))


def compiled(kernel: str) -> list[tegula.kernels.CompiledKernel]:
    try:
        return tegula.kernels.compile(kernel, "sm_90a")
    except DeviceError as error:
        if "was not found" in str(error):
            pytest.skip(str(error))
        raise


def test_a_kernel_is_compiled_once() -> None:
    assert tegula.kernels.cached() == []
    name = "attention_sm80 bf16 d32 128x64 4 warps 2 stages ex2_approx"
    (cold,) = compiled(name)
    (warm,) = compiled(name)
    assert not cold.from_cache and cold.registers > 0 and cold.spilled_bytes == 0
    assert warm.from_cache and warm.path == cold.path
    (kept,) = tegula.kernels.cached()
    assert (kept.name, kept.arch, kept.path) == (name, "sm_90a", cold.path)
    pathlib.Path(cold.path).write_bytes(b"damaged")
    assert tegula.kernels.cached() == []


def in_a_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **paths, **environment}, timeout=300
    )


def test_a_kernel_that_is_kept_needs_no_compiler() -> None:
    compiled("append_keys")  # or there is none here
    code = """
import tegula
kernels = tegula.kernels.compile("append_keys", "sm_90")
print(kernels[-1].from_cache, "libnvrtc" in open("/proc/self/maps").read())
"""
    assert in_a_process(code).stdout == "False True\n"
    assert in_a_process(code).stdout == "True False\n"


# A product that no kernel of a representative build computes: of e5m2, here the bits of 0, 1, 2 and -1.
LACKING = """
import numpy as np, tegula
rng = np.random.default_rng(1)
bits, values = np.array([0, 0x3C, 0x40, 0xBC], np.uint8), np.array([0.0, 1.0, 2.0, -1.0])
a, b = (rng.integers(0, 4, shape) for shape in ((40, 64), (48, 64)))
d, report = tegula.gemm(bits[a], bits[b].T, dtype="e5m2", out_dtype="f32", report=True)
assert (d == values[a] @ values[b].T).all() and report.findings == 0
print(len(tegula.kernels.cached()), report)
"""


def is_representative() -> bool:
    return not all(kernel["built"] for kernel in json.loads(info())["kernels"]["gemm_sm90"])


def info() -> str:
    return subprocess.run([sys.executable, "-m", "tegula", "info", "--json"], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not is_representative(), reason="this build has all kernels")
@pytest.mark.usefixtures("compiler")
def test_the_simulated_machine_is_given_what_the_build_lacks() -> None:
    answered = in_a_process(LACKING)
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.startswith("1 tegula::gemm_sm90_kernel<") and "clean" in answered.stdout
    (kept,) = tegula.kernels.cached()
    assert kept.name.startswith("gemm_sm90 e5m2->f32 ") and kept.arch == "host"
    refused = in_a_process(LACKING, TEGULA_CXX="/nowhere")
    assert "DeviceError: TEGULA_CXX is /nowhere, which cannot be run; it must be a C++20 compiler" in refused.stderr
    none = in_a_process(LACKING, TEGULA_CXX="")
    assert "This build has representative configurations only" in none.stderr


def test_what_cannot_be_compiled_is_said() -> None:
    with pytest.raises(ArgumentError, match="no kernel is named 'gemm_sm70'"):
        tegula.kernels.compile("gemm_sm70")
    with pytest.raises(ArgumentError, match="arch is 'hopper'"):
        tegula.kernels.compile("gemm_sm90", "hopper")
    with pytest.raises(ArgumentError, match="kernel is 3"):
        tegula.kernels.compile(3)  # type: ignore[arg-type]


def test_without_a_compiler_a_sentence_says_what_to_install() -> None:
    answered = in_a_process("import tegula; tegula.kernels.compile('attention_sm80', 'sm_80')", TEGULA_NVRTC="/nowhere.so")
    assert "DeviceError: TEGULA_NVRTC is /nowhere.so, which cannot be loaded" in answered.stderr


class OnGpu:
    """A NumPy array that says it is on a GPU: what its addresses hold is not looked at."""

    def __init__(self, array: np.ndarray, device: int = 0) -> None:
        self._array, self._device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._device)

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        assert stream == 1  # the default one: this is no array of PyTorch or CuPy
        return self._array.__dlpack__()


class ByInterface:
    """The same by __cuda_array_interface__ alone."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


@pytest.mark.parametrize("wrapped", [OnGpu, ByInterface])
def test_arrays_of_a_gpu_are_understood(wrapped: Any) -> None:
    whole = np.zeros((6, 8, 10), dtype=np.float16)
    for array, strides in (
        (whole, (80, 10, 1)),
        (whole[1:, 2:5], (80, 10, 1)),
        (whole.transpose(0, 2, 1), (80, 1, 10)),
        (whole[:1], (80, 10, 1)),
    ):
        operand = _gpu_arrays.gpu_operand("gemm", "a", wrapped(array)).operand
        assert (operand.type, operand.shape, operand.strides) == ("f16", array.shape, strides)
        assert operand.address == array.ctypes.data
    raw = _gpu_arrays.gpu_operand("gemm", "a", wrapped(np.zeros(4, np.uint16)), _gpu_arrays.Said("bf16")).operand
    assert raw.type == "bf16"


class SaysOfItself:
    """An array of whatever __cuda_array_interface__, or __dlpack_device__, says."""

    def __init__(self, interface: Any = None, device: Any = None) -> None:
        if device is None:
            self.__cuda_array_interface__ = interface
        else:
            self.__dlpack_device__, self.__dlpack__ = lambda: device, lambda stream: None


GOOD = {"shape": (16, 16), "typestr": "<f2", "data": (4096, False), "version": 3}
A = OnGpu(np.zeros((16, 16), np.float16))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tegula.gemm(A, A), "out is left out, and no array of"),
        (lambda: tegula.gemm(A, np.zeros((16, 16), np.float16)), "b is in the host's memory"),
        (lambda: tegula.gemm(A, cast(Any, 3)), "b is no array"),
        (lambda: tegula.gemm(A, A, out=np.zeros((16, 16), np.float16)), "out is in the host's memory"),
        (lambda: tegula.gemm(A, A, **cast(Any, {"report": True})), "a GPU makes none"),
        (lambda: tegula.gemm(A, OnGpu(np.zeros((16, 16))), out=A), "b has elements of DLPack's type 2 of 64 bits"),
        (lambda: tegula.gemm(A, OnGpu(np.zeros((8, 16), np.float16)), out=A), "a has 16 columns, and b 8 rows"),
        (lambda: tegula.gemm(A, OnGpu(np.zeros((16, 16), np.float16), 1), out=A), "a is on GPU 0, and b on GPU 1"),
        (lambda: tegula.gemm(A, OnGpu(np.zeros((16, 16), np.float16)[::-1]), out=A), "negative strides"),
        (lambda: tegula.gemm(A, A, out=SaysOfItself({**GOOD, "data": (4096, True)})), "out cannot be written to"),
        (lambda: tegula.gemm(A, A, out=A, machine=tegula.Machine()), "machine is simulated sm_90; leave it out"),
        (lambda: tegula.gemm(A, A, out=A, scale_a=A), "scale_a must be one value of f32"),
        (lambda: tegula.prepare_gemm(A, A, out=A, dtype="f8"), "dtype is 'f8'"),
    ],
)
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call()
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "array",
    [
        *(SaysOfItself(said) for said in (None, 5, {}, {"shape": (16, 16)})),
        *(SaysOfItself({**GOOD, "shape": shape}) for shape in (None, "x", (1.5, 16), (-16, 16), (16, 2**70))),
        *(SaysOfItself({**GOOD, "typestr": typestr}) for typestr in (None, "", "|O", "<f0", "<f-2", ">f2", "<f8")),
        *(SaysOfItself({**GOOD, "data": data}) for data in (None, (), ("x",), (0,), (-1,), (2**64,))),
        *(SaysOfItself({**GOOD, "strides": strides}) for strides in ("x", (2,), (32, 1), (-32, 2))),
        SaysOfItself({**GOOD, "mask": GOOD}),
        *(SaysOfItself(device=device) for device in ((2,), (2, None), (2, "x"), (2, 0))),
    ],
)
def test_arrays_that_say_what_no_array_has(array: Any) -> None:
    calls: list[Any] = [lambda: tegula.gemm(array, A, out=A), lambda: tegula.attention(array, array, array, out=array)]
    for call in calls:
        with pytest.raises(ArgumentError):
            call()


def test_a_gpu_that_is_not_there() -> None:
    try:
        tegula.Machine("cuda:0")
    except DeviceError:
        with pytest.raises(DeviceError):
            tegula.gemm(A, A, out=A)
    with pytest.raises(DeviceError):
        tegula.Machine("cuda:4096")
