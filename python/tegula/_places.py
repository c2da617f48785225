"""Where arrays lie, for functions that also make arrays: the host's memory with the simulated machine, and PyTorch's
tensors with the machine of their device."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from . import _arrays, _problems
from ._problems import Operand
from .errors import ArgumentError
from .machine import default_machine


class Place(Protocol):
    """Arrays of one library on one device, and how a problem of them is run."""

    def operand(self, operation: str, name: str, array: Any, types: Sequence[str] = ()) -> Operand:
        """Raises ArgumentError for what is no such array, or of none of `types`; without them those of the library are taken."""

    def result(self, operation: str, name: str, array: Any, types: Sequence[str]) -> Operand:
        """The same of one that is written into."""

    def integers(self, operation: str, name: str, array: Any) -> Operand:
        """The same of int32."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A new contiguous array; `dtype` is one of the library's, or "i32"."""

    def contiguous(self, array: Any) -> Any: ...

    def values(self, array: Any) -> Any | None:
        """What an array holds, as NumPy has it; None where that would wait for a GPU."""

    def launch(self, function: Any, arguments: Any) -> None: ...


class _Numpy:
    """NumPy's arrays. uint8 holds e4m3, and uint16 bf16."""

    def __init__(self, raw: bool) -> None:
        self._raw = raw

    def operand(self, operation: str, name: str, array: Any, types: Sequence[str] = ()) -> Operand:
        return _arrays.operand(operation, name, array, self._bits_of(array), types=types)

    def result(self, operation: str, name: str, array: Any, types: Sequence[str]) -> Operand:
        return _arrays.result(operation, name, array, self._bits_of(array), types)

    @staticmethod
    def _bits_of(array: Any) -> str | None:
        return {"uint8": "e4m3", "uint16": "bf16"}.get(array.dtype.name) if isinstance(array, np.ndarray) else None

    def integers(self, operation: str, name: str, array: Any) -> Operand:
        return _arrays.integers(operation, name, array)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return np.empty(shape, dtype=np.int32 if dtype == "i32" else _arrays.numpy_type(dtype, self._raw))

    def contiguous(self, array: Any) -> Any:
        return np.ascontiguousarray(array)

    def values(self, array: Any) -> Any | None:
        return array

    def launch(self, function: Any, arguments: Any) -> None:
        _problems.launch(function, default_machine(), arguments, None, False)


class _Torch:
    """PyTorch's tensors on one device."""

    def __init__(self, device: Any) -> None:
        from . import _torch_operators

        self._operators, self._device = _torch_operators, device

    def _operand(self, operation: str, name: str, array: Any, integers: tuple[str, ...], types: Sequence[str]) -> Operand:
        operands, device = self._operators.operands_of(operation, {name: array}, integers, types)
        if not operands:
            raise ArgumentError(f"{operation}: {name} is None; a torch.Tensor is needed.")
        if device != self._device:
            raise ArgumentError(f"{operation}: {name} is on {device}, and others on {self._device}; they must share a device.")
        return operands[name]

    def operand(self, operation: str, name: str, array: Any, types: Sequence[str] = ()) -> Operand:
        return self._operand(operation, name, array, (), types)

    def result(self, operation: str, name: str, array: Any, types: Sequence[str]) -> Operand:
        of = self.operand(operation, name, array, types)
        self._operators.check_writeable(operation, name, array)
        return of._replace(copying="")

    def integers(self, operation: str, name: str, array: Any) -> Operand:
        return self._operand(operation, name, array, (name,), ())

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=torch.int32 if dtype == "i32" else self._operators.TORCH[dtype], device=self._device)

    def contiguous(self, array: Any) -> Any:
        return array.contiguous()

    def values(self, array: Any) -> Any | None:
        return array.numpy() if self._device.type == "cpu" else None

    def launch(self, function: Any, arguments: Any) -> None:
        self._operators.launch(function, self._device, arguments)


def place_of(operation: str, name: str, array: Any) -> Place:
    """Raises ArgumentError for what is an array of neither library."""
    if isinstance(array, np.ndarray):
        return _Numpy(array.dtype.name in ("uint8", "uint16"))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _Torch(array.device)
    raise ArgumentError(f"{operation}: {name} is {type(array).__name__}; a NumPy array or a torch.Tensor is needed.")
