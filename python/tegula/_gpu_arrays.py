"""Arrays in a GPU's memory as the kernels' operands: DLPack, or __cuda_array_interface__, of whoever made them."""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ._problems import CODES, Operand, normalised
from .errors import ArgumentError, shown
from .machine import Machine

_CUDA = 2  # kDLCUDA
_DEFAULT_STREAM = 1  # DLPack's name of CUDA's default stream, the legacy one
# The library's types by DLPack's code and bits, and those of raw bits.
_BY_DLPACK = {(2, 16): "f16", (4, 16): "bf16", (2, 32): "f32", (10, 8): "e4m3", (12, 8): "e5m2"}
_BY_TYPESTR = {"<f2": "f16", "<f4": "f32"}
_RAW_BITS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class GpuOperand(NamedTuple):
    """An operand, the GPU that it is on, and what keeps its memory while it is used."""

    operand: Operand
    device: int
    owner: object


def maker_of(array: Any) -> str:
    """The library that an array is of: "torch", "cupy", "jaxlib"."""
    return type(array).__module__.partition(".")[0]


def is_on_gpu(array: Any) -> bool:
    """Whether an array lies in the memory of a CUDA GPU, as far as it tells."""
    device = getattr(array, "__dlpack_device__", None)
    if device is not None:
        try:
            return int(device()[0]) == _CUDA
        except Exception:  # whatever the array's library raises: PyTorch for tensors without memory
            return False
    return hasattr(array, "__cuda_array_interface__")


class Said(NamedTuple):
    """What a caller says of an array's elements."""

    type: str | None = None  # of raw bits, or "i32"
    option: str = "dtype"  # by which it is said
    of_raw_only: bool = False  # it counts for nothing where the elements have a type


def _said_type(operation: str, name: str, own: str | None, what: str, raw_bits: int, caller: Said) -> str:
    """The library's name of the elements: the array's own, or what the caller says of raw bits."""
    said = None if own is not None and caller.of_raw_only else caller.type
    if said == "i32" and own != said:
        raise ArgumentError(f"{operation}: {name} has elements of {own or what}; int32 is needed.")
    if said is not None and said not in (*CODES, "i32"):
        raise ArgumentError(f"{operation}: {caller.option} is {shown(said)}; it must be one of {', '.join(CODES)}.")
    if own is not None:
        if said in (None, own) or (own == "f32" and said == "tf32"):
            return said or own
        raise ArgumentError(f"{operation}: {name} has elements of {own}, and {caller.option} is {shown(said)}.")
    if said is not None and _RAW_BITS.get(said) == raw_bits:
        return said
    raise ArgumentError(
        f"{operation}: {name} has elements of {what}; f16, bf16, f32, float8_e4m3fn and float8_e5m2 are computed, and "
        f"raw bits of the type that {caller.option}= names."
    )


def _compact(shape: tuple[int, ...]) -> list[int]:
    """Strides in elements of an array in C order."""
    strides: list[int] = []
    inner = 1
    for extent in reversed(shape):
        strides.insert(0, inner)
        inner *= extent
    return strides


def _tensor_of(what: str, array: Any) -> tuple[object, _DLTensor]:
    """The capsule of an array, which keeps its memory, and what it says. Raises ArgumentError.

    PyTorch's and CuPy's arrays are ready on the current stream, on which the work is queued (-1: nothing is to be waited
    for). Another library has streams of its own, and is told which one waits for the array.
    """
    try:
        stream = -1
        if not makes_arrays(array):
            stream = current_stream(int(array.__dlpack_device__()[1]), array)() or _DEFAULT_STREAM
        capsule = array.__dlpack__(stream=stream)
        pointer = _pointer_of(capsule, b"dltensor")
    except Exception as error:  # whatever the array's library raises
        raise ArgumentError(f"{what} does not give its memory by DLPack: {error}") from error
    return capsule, _DLTensor.from_address(pointer)


def _shape_of(tensor: _DLTensor) -> tuple[int, ...]:
    return tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()


def _by_dlpack(operation: str, name: str, array: Any, said: Said) -> GpuOperand:
    capsule, tensor = _tensor_of(f"{operation}: {name}", array)
    shape = _shape_of(tensor)
    strides = normalised(shape, tensor.strides[: tensor.ndim] if tensor.strides else _compact(shape))
    own = _BY_DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if said.type == "i32" and (tensor.code, tensor.bits) == (0, 32):
        own = "i32"
    raw = tensor.bits if tensor.code == 1 and tensor.lanes == 1 else 0
    what = f"DLPack's type {tensor.code} of {tensor.bits} bits"
    address = (tensor.data or 0) + tensor.byte_offset
    dtype = _said_type(operation, name, own, what, raw, said)
    operand = Operand(name, dtype, address, shape, strides, "a contiguous copy of {}")
    return _checked(operation, name, operand, int(array.__dlpack_device__()[1]), capsule)


class _Interface(NamedTuple):
    """What __cuda_array_interface__ says."""

    shape: tuple[int, ...]
    typestr: str
    size: int  # of an element in bytes
    address: int
    strides: list[int]  # in bytes
    read_only: bool


def _interface_of(what: str, array: Any) -> _Interface:
    """Raises ArgumentError where it says what no array has."""
    try:
        said = array.__cuda_array_interface__
        shape, typestr = tuple(map(operator.index, said["shape"])), str(said["typestr"])
        size, address = int(typestr[2:]), operator.index(said["data"][0])
        strides = list(map(operator.index, said.get("strides") or [size * stride for stride in _compact(shape)]))
        masked, read_only = said.get("mask") is not None, any(said["data"][1:])
        if size < 1 or not 0 <= address < 2**64 or len(strides) != len(shape) or any(extent < 0 for extent in shape):
            raise ValueError(f"{size} bytes an element at {address}, the shape {shape} and strides of {strides} bytes")
    except Exception as error:  # whatever the array's library raises, and what it left out
        raise ArgumentError(f"{what} does not give its memory by __cuda_array_interface__: {shown(error)}") from error
    if masked:
        raise ArgumentError(f"{what} has a mask, and masks are not looked at.")
    return _Interface(shape, typestr, size, address, strides, read_only)


def _by_interface(operation: str, name: str, array: Any, said: Said) -> GpuOperand:
    shape, typestr, size, address, strides, _ = _interface_of(f"{operation}: {name}", array)
    raw = 8 * size if typestr[1] == "u" else 0
    own = "i32" if said.type == "i32" and typestr == "<i4" else _BY_TYPESTR.get(typestr)
    dtype = _said_type(operation, name, own, typestr, raw, said)
    if any(extent > 1 and stride % size for extent, stride in zip(shape, strides)):
        raise ArgumentError(f"{operation}: {name} has strides of {tuple(strides)} bytes; they must be whole elements of {size}.")
    elements = normalised(shape, [stride // size for stride in strides])
    operand = Operand(name, dtype, address, shape, elements, "a contiguous copy of {}")
    return _checked(operation, name, operand, _current_device(), array)


def _checked(operation: str, name: str, operand: Operand, device: int, owner: object) -> GpuOperand:
    if any(stride < 0 for stride in operand.strides):
        raise ArgumentError(f"{operation}: {name} has negative strides {operand.strides}: {operand.remedy()}.")
    if 0 not in operand.shape and not operand.address:
        raise ArgumentError(f"{operation}: {name} has no memory: it was freed.")
    return GpuOperand(operand, device, owner)


def gpu_operand(operation: str, name: str, array: Any, said: Said = Said()) -> GpuOperand:
    """An array of the caller's. Raises ArgumentError."""
    if not is_on_gpu(array):
        where = "in the host's memory" if hasattr(array, "__array__") or hasattr(array, "__dlpack__") else "no array"
        raise ArgumentError(f"{operation}: {name} is {where}; all operands must be on one GPU.")
    if said.type is not None and not isinstance(said.type, str):
        raise ArgumentError(f"{operation}: {said.option} is {shown(said.type)}; it must be one of {', '.join(CODES)}.")
    make = _by_dlpack if hasattr(array, "__dlpack__") else _by_interface
    return make(operation, name, array, said)


def gpu_result(operation: str, name: str, array: Any, said: Said) -> GpuOperand:
    """An array of the caller's that is written to. DLPack gives no array that cannot be. Raises ArgumentError."""
    held = gpu_operand(operation, name, array, said)
    if not hasattr(array, "__dlpack__") and _interface_of(f"{operation}: {name}", array).read_only:
        raise ArgumentError(f"{operation}: {name} cannot be written to; an array that is not read-only is needed.")
    return held._replace(operand=held.operand._replace(copying=""))


def memory_on_gpu(operation: str, array: Any) -> GpuOperand:
    """An array of elements of any type. Raises ArgumentError."""
    if not hasattr(array, "__dlpack__"):
        said = _interface_of(operation, array)
        operand = Operand("the array", said.typestr, said.address, said.shape, (), "")
        return GpuOperand(operand, _current_device(), array)
    capsule, tensor = _tensor_of(operation, array)
    shape = _shape_of(tensor)
    operand = Operand("the array", f"{tensor.code}", (tensor.data or 0) + tensor.byte_offset, shape, (), "")
    return GpuOperand(operand, int(array.__dlpack_device__()[1]), capsule)


@functools.lru_cache(maxsize=None)
def gpu_machine(index: int) -> Machine:
    """GPU number `index`, made when it is first asked for."""
    return Machine(f"cuda:{index}")


def shared_device(operation: str, operands: dict[str, GpuOperand]) -> int:
    """The GPU that all are on. Raises ArgumentError."""
    (first, of), *others = operands.items()
    for name, operand in others:
        if operand.device != of.device:
            raise ArgumentError(
                f"{operation}: {first} is on GPU {of.device}, and {name} on GPU {operand.device}; they must share one."
            )
    return of.device


def _current_device() -> int:
    cupy = sys.modules.get("cupy")
    return int(cupy.cuda.Device().id) if cupy is not None else 0


def current_stream(device: int, array: Any) -> Callable[[], int]:
    """What gives the current stream of a GPU as the array's library has it, PyTorch or CuPy; for an array of another one as
    either has it that is in use; else the default one."""
    maker, torch, cupy = maker_of(array), sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and maker != "cupy" and torch.cuda.is_initialized():
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return functools.partial(raw, device)
        return lambda: int(torch.cuda.current_stream(device).cuda_stream)
    if cupy is not None:
        return lambda: int(cupy.cuda.get_current_stream().ptr)
    return lambda: 0


def stream_of(operation: str, stream: Any) -> int:
    """A caller's stream. Raises ArgumentError."""
    if not isinstance(stream, int) or isinstance(stream, bool) or not 0 <= stream < 2**64:
        raise ArgumentError(f"{operation}: stream is {shown(stream)}; the address of a cudaStream_t is needed, an integer.")
    return stream


_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "tf32": "float32", "u8": "uint8"}


def makes_arrays(like: Any) -> bool:
    """Whether `empty` can make arrays of the library that made `like`."""
    return maker_of(like) in ("torch", "cupy")


def empty(operation: str, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array of the library that made `like`, on its GPU. Raises ArgumentError where that cannot be done."""
    maker = maker_of(like)
    module = sys.modules.get(maker)
    if maker == "torch" and module is not None:
        return module.empty(shape, dtype=getattr(module, _NAMES[dtype]), device=like.device)
    if maker == "cupy" and module is not None and dtype != "bf16":
        with like.device:
            return module.empty(shape, dtype=_NAMES[dtype])
    raise ArgumentError(f"{operation}: out is left out, and no array of {maker} of {dtype} can be made for it; pass out=.")
