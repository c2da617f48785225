"""The package: its parts, the command-line tool, threads."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np

import tegula


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tegula", *arguments], capture_output=True, text=True, timeout=60)


def test_version() -> None:
    if "TEGULA_LIBRARY" not in os.environ:
        assert importlib.metadata.version("tegula") == tegula.__version__
    assert run_module("--version").stdout == f"tegula {tegula.__version__}\n"


def test_it_is_typed() -> None:
    assert (pathlib.Path(tegula.__file__).parent / "py.typed").exists()
    for name in tegula.__all__:
        assert getattr(tegula, name).__doc__, name


def test_the_tool() -> None:
    answered = run_module("layout", "composition((4,4):(4,1), (4,2,2):(2,1,8))")
    assert answered.returncode == 0
    assert answered.stdout.startswith("result  ((2,2),2,2):((8,1),4,2)\n")
    refused = run_module("layout", "(4,8")
    assert refused.returncode == 1
    assert refused.stderr.startswith("tegula: ")
    assert run_module("nothing").returncode == 2


def test_errors_belong_to_threads() -> None:
    sentences: dict[int, set[str]] = {}

    def refused(number: int) -> None:
        sentences[number] = set()
        for _ in range(200):
            try:
                tegula.Layout(f"({number},")
            except tegula.LayoutError as error:
                sentences[number].add(str(error))

    threads = [threading.Thread(target=refused, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, seen in sentences.items():
        assert len(seen) == 1 and f'"({number},"' in seen.pop()


def test_threads_share_a_machine() -> None:
    a = np.arange(64 * 32, dtype=np.float16).reshape(64, 32) % 7
    b = (np.arange(48 * 32, dtype=np.float16).reshape(48, 32) % 5).T  # K-major, as every build computes it
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(tegula.gemm(a, b))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, (a.astype(np.float64) @ b).astype(np.float16))


def test_errors_have_one_base() -> None:
    for name in ("LayoutError", "ArgumentError", "DeviceError", "FindingError", "InternalError"):
        assert issubclass(getattr(tegula, name), tegula.TegulaError)
    assert issubclass(tegula.LayoutError, ValueError)
