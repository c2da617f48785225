"""Every function of the C interface with NULL for every pointer and 0 for every number: those with a status refuse in a
sentence, the others give their documented answer. The functions are those that the package names, so that a new one
cannot be forgotten."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tegula._library import _FALLIBLE, _PLAIN, library

# What functions without a status answer; None: nothing.
ANSWERS: dict[str, Any] = {
    "value_kind": -1,
    "value_equal": 1,
    "machine_compute_capability": 0,
    "machine_is_simulated": 0,
    "report_findings": -1,
    "kernel_threads": 0,
    "kernel_params_bytes": 0,
    "kernel_members": -1,
}
WITHOUT_POINTERS = {"c_version", "version", "last_error", "main"}  # main prints its help


def nothing(kind: Any) -> Any:
    return kind(0).value if kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t) else None


@pytest.mark.parametrize("name", _FALLIBLE)
def test_a_function_with_a_status_refuses_null(name: str) -> None:
    function = getattr(library, f"tegula_{name}")
    assert function(*[nothing(kind) for kind in function.argtypes]) == 2
    assert "NULL" in library.tegula_last_error().decode()


@pytest.mark.parametrize("name", sorted(set(_PLAIN) - WITHOUT_POINTERS))
def test_a_function_without_a_status_answers_null(name: str) -> None:
    function = getattr(library, f"tegula_{name}")
    assert function(*[nothing(kind) for kind in function.argtypes]) == ANSWERS.get(name)


def test_numbers_of_things_are_at_least_0() -> None:
    value = ctypes.c_void_p()
    assert library.tegula_call(b"size", None, -1, ctypes.byref(value)) == 2
    assert library.tegula_last_error() == b"tegula_call: count is -1; it must be at least 0."
