"""NumPy arrays as the kernels' operands: element types, and strides in elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._problems import CODES, Operand, normalised
from .errors import ArgumentError, listed, shown

# The library's types by NumPy's name of the elements (ml_dtypes' where NumPy has none).
_BY_NUMPY = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}
_NUMPY_NAMES = {name: numpy_name for numpy_name, name in _BY_NUMPY.items()}
_RAW = {"bf16": "uint16", "f16": "uint16", "e4m3": "uint8", "e5m2": "uint8", "e2m1": "uint8", "e2m3": "uint8", "e3m2": "uint8"}
_COPYING = "np.ascontiguousarray({})"
_COMPUTED = "float16, float32, and ml_dtypes' bfloat16, float8_e4m3fn and float8_e5m2 are computed"


def _dtype_of(operation: str, name: str, array: npt.NDArray[Any], said: Any, option: str, types: Sequence[str]) -> str:
    """The library's name of an array's elements: what `said` says of raw ones, else what the array's own type is. `types`
    are those that are taken, if not all."""
    if said is not None and (not isinstance(said, str) or said not in CODES):
        raise ArgumentError(f"{operation}: {option} is {shown(said)}; it must be one of {', '.join(CODES)}.")
    own = _BY_NUMPY.get(array.dtype.name)
    if (own or said) not in (types or CODES):
        raw = said is None and any(_RAW.get(type) == array.dtype.name for type in types or CODES)
        raise ArgumentError(
            f"{operation}: {name} has elements of type {array.dtype}; {f'{listed([_NUMPY_NAMES.get(type, type) for type in types])} is needed' if types else _COMPUTED}"
            f"{' (raw bits need dtype=)' if raw else ''}."
        )
    if own is not None:
        if said in (None, own) or (own == "f32" and said == "tf32"):
            return said or own
        raise ArgumentError(f"{operation}: {name} has elements of type {array.dtype}, and {option} is {shown(said)}.")
    assert said is not None
    if _RAW.get(said) != array.dtype.name:
        raise ArgumentError(
            f"{operation}: {name} has elements of type {array.dtype}, which hold no {said}; "
            f"{_RAW.get(said, 'float32')} is needed."
        )
    return said


def numpy_type(dtype: str, raw: bool) -> npt.DTypeLike:
    """The NumPy type of results: ml_dtypes' where NumPy has none and it is installed, unless `raw` bits are asked for."""
    if dtype in ("f16", "f32", "tf32"):
        return np.float16 if dtype == "f16" else np.float32
    if not raw:
        try:
            import ml_dtypes

            types = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
            result: npt.DTypeLike = np.dtype(types[dtype])
            return result
        except ImportError:
            pass
    return np.dtype(_RAW[dtype])


def is_raw(array: Any) -> bool:
    """Whether the elements are bits without a type."""
    return isinstance(array, np.ndarray) and array.dtype.name in ("uint8", "uint16")


def operand(
    operation: str,
    name: str,
    array: Any,
    said: Any = None,
    option: str = "dtype",
    types: Sequence[str] = (),
    copying: str = _COPYING,
) -> Operand:
    """An array of the caller's. `said` is what raw bits are, the caller's `option`; `types` are those that are taken, if not
    all; `copying` is Operand's. Raises ArgumentError."""
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{operation}: {name} is {type(array).__name__}; a NumPy array is needed.")
    if isinstance(array, np.ma.MaskedArray):
        remedy = "use .filled()" if copying else "a plain array is needed"
        raise ArgumentError(f"{operation}: {name} is a masked array, and masks are not looked at: {remedy}.")
    if not array.dtype.isnative:
        remedy = "use .astype" if copying else "this machine's is needed"
        raise ArgumentError(f"{operation}: {name} has bytes in the other order than this machine; {remedy}.")
    dtype = _dtype_of(operation, name, array, said, option, types)
    of = Operand(name, dtype, array.ctypes.data, array.shape, (), copying)
    for extent, stride in zip(array.shape, array.strides):
        if extent > 1 and (stride < 0 or stride % array.itemsize):
            raise ArgumentError(
                f"{operation}: {name} has a stride of {stride} bytes, and elements of {array.itemsize}; strides must "
                f"be whole elements and not negative: {of.remedy()}."
            )
    return of._replace(strides=normalised(array.shape, [stride // array.itemsize for stride in array.strides]))


def aligned(array: Any, boundary: int) -> Any:
    """The array, or a copy of it if it does not begin at a multiple of `boundary` bytes: NumPy has its own at multiples of 16."""
    if not isinstance(array, np.ndarray) or array.ctypes.data % boundary == 0:
        return array
    memory = np.empty(array.nbytes + boundary, np.uint8)
    begin = -memory.ctypes.data % boundary
    copy: npt.NDArray[Any] = np.ndarray(array.shape, array.dtype, memory, begin, np.empty_like(array).strides)
    copy[...] = array
    return copy


def integers(operation: str, name: str, array: Any) -> Operand:
    """An array of int32. Raises ArgumentError."""
    if not isinstance(array, np.ndarray) or array.dtype != np.int32:
        what = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ArgumentError(f"{operation}: {name} is of {what}; a NumPy array of int32 is needed.")
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(f"{operation}: {name} is a masked array, and masks are not looked at: use .filled().")
    if any(extent > 1 and (stride < 0 or stride % 4) for extent, stride in zip(array.shape, array.strides)):
        raise ArgumentError(f"{operation}: {name} has strides of {array.strides} bytes: use {_COPYING.format(name)}.")
    strides = normalised(array.shape, [stride // 4 for stride in array.strides])
    return Operand(name, "i32", array.ctypes.data, array.shape, strides, _COPYING)


def result(operation: str, name: str, array: Any, dtype: str | None, types: Sequence[str] = ()) -> Operand:
    """An array of the caller's that results go to; raw bits are of `dtype`. Raises ArgumentError."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        raise ArgumentError(f"{operation}: {name} cannot be written to; an array whose flags.writeable is True is needed.")
    return operand(operation, name, array, dtype if is_raw(array) else None, types=types, copying="")
