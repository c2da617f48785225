"""What the tests share."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.fixture(autouse=True)
def kernels_of_the_build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only nightly tests, and the examples of a page, compile what the library lacks."""
    if isinstance(request.node, pytest.Function) and "TEGULA_TEST_THOROUGH" not in os.environ:
        monkeypatch.setenv("TEGULA_CXX", "")


@pytest.fixture
def compiler(kernels_of_the_build: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C++ compiler of this machine all the same."""
    monkeypatch.delenv("TEGULA_CXX", raising=False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Skips what the library cannot compute because it was built with representative kernels only."""
    try:
        return (yield)
    except Exception as error:  # an ArgumentError, or PyTorch's error that tells of one
        if "representative configurations only" in str(error):
            pytest.skip(str(error))
        raise
