"""What tegula raises. Each has one sentence, which names the argument, its value and what would be accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TegulaError(Exception):
    """Any of those below."""


class LayoutError(TegulaError, ValueError):
    """Text that is no expression, or an operation that cannot keep its law."""


class ArgumentError(TegulaError, ValueError):
    """An argument that is refused before anything runs."""


class DeviceError(TegulaError, RuntimeError):
    """A machine that is absent, or that failed."""


class FindingError(TegulaError, RuntimeError):
    """The checker of the simulated machine found the kernel wrong."""


class InternalError(TegulaError, RuntimeError):
    """A fault of the library."""


_LONGEST = 200


def shown(value: Any) -> str:
    """A value of a caller's in a sentence: on one line, and not all of what is long."""
    text = " ".join(repr(value).split())
    if len(text) <= _LONGEST:
        return text
    shape = getattr(value, "shape", None)
    return f"{text[:_LONGEST]}... ({type(value).__name__}{'' if shape is None else f' of the shape {tuple(shape)}'})"


def listed(names: Sequence[str]) -> str:
    """Names of which one is meant: "e4m3, bf16 or f32"."""
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
