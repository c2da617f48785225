"""What the tests share."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Skips what the library cannot compute because it was built with representative kernels only; a nightly build has all."""
    try:
        return (yield)
    except Exception as error:  # an ArgumentError, or PyTorch's error that tells of one
        if "representative configurations only" in str(error):
            pytest.skip(str(error))
        raise
