"""The C interface's GEMMs, made of operands that lie anywhere: NumPy's arrays, PyTorch's tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import byref, c_int64, c_void_p
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._library import LEFT_OUT, GemmArguments, check, library
from .errors import ArgumentError, shown
from .machine import Machine, Report

# tegula_dtype, tegula_major, tegula_activation
CODES = {"f16": 1, "bf16": 2, "f32": 3, "tf32": 4, "e4m3": 5, "e5m2": 6, "e2m1": 7, "e2m3": 8, "e3m2": 9}
# Elements of less than a byte lie packed along k: (elements, bytes).
PACKED = {"e2m1": (2, 1), "e2m3": (4, 3), "e3m2": (4, 3)}
_MAJOR_K, _MAJOR_MN = 0, 1
_ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "silu": 3}
_F32_MAX = 3.4028234663852886e38
_F32_TINY = 2.0**-149
_NUMPY = {"f16": "f2", "bf16": "u2", "f32": "f4", "tf32": "f4", "i32": "i4"}  # what has the size of an element; others have a byte
# Solutions that NumPy tries before it gives up; of strides of tensors, even those of packed buffers, the first ones tell.
_MOST_WORK: Any = 1 << 20  # NumPy's stubs know -1 and 0
_TMA_UNIT = 8  # elements of 16 bits in the 16 bytes that TMA counts in


class Operand(NamedTuple):
    """A strided array, or tensor, of elements of one of the library's types."""

    name: str
    type: str  # of CODES, or "i32"
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    copying: str  # what makes a contiguous copy of {}: "np.ascontiguousarray({})"; of a result nothing, for a copy would not be it

    def remedy(self, axis: int = -1) -> str:
        """What to do where the axis -1 or -2 must be contiguous: "use np.ascontiguousarray(a)"."""
        if not self.copying:
            return f"allocate {self.name} so"
        turned = "" if axis == -1 else ".T" if len(self.shape) == 2 else ".swapaxes(1, 2)"
        return f"use {self.copying.format(self.name + turned)}{turned}"

    def elements(self, axis: int) -> int:
        """Along an axis on which elements of less than a byte are packed."""
        return unpacked(self.type, self.shape[axis])


def unpacked(type: str, count: int) -> int:
    """Elements in as many of NumPy's."""
    elements, bytes = PACKED.get(type, (1, 1))
    return count * elements // bytes


def normalised(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements, those of axes of one element as if contiguous: they mean nothing, and may be anything."""
    result, inner = [], 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        stride = inner if extent == 1 else stride
        result.append(stride)
        inner = max(inner, extent * stride)
    return tuple(reversed(result))


def is_contiguous(operand: Operand, axis: int) -> bool:
    """Whether the elements along an axis lie one behind the other: one alone does, whatever its stride."""
    return operand.shape[axis] == 1 or operand.strides[axis] == 1


def row_distance(operand: Operand, axis: int = -1) -> int | None:
    """The distance of a matrix's rows, which lie along the axis -1 or -2. None where they are not contiguous, or overlap."""
    length, across = operand.shape[axis], -3 - axis
    distance = operand.strides[across] if operand.shape[across] > 1 else length
    return distance if is_contiguous(operand, axis) and distance >= length else None


def rows_of(operation: str, operand: Operand, contiguous: str, axis: int = -1) -> int:
    """row_distance. Raises ArgumentError; `contiguous` is what must be so."""
    distance = row_distance(operand, axis)
    if distance is None:
        must = f"{contiguous} must be contiguous"
        if is_contiguous(operand, axis):
            must = f"its {'rows' if axis == -1 else 'columns'} of {operand.shape[axis]} must not overlap"
        raise ArgumentError(f"{operation}: {operand.name} has strides of {operand.strides} elements, and {must}: {operand.remedy(axis)}.")
    return distance


class _Memory:
    """What NumPy makes an array of, wherever it lies."""

    def __init__(self, operand: Operand) -> None:
        dtype = np.dtype(_NUMPY.get(operand.type, "u1"))
        self.__array_interface__ = {
            "version": 3,
            "data": (operand.address, True),
            "shape": operand.shape,
            "strides": tuple(stride * dtype.itemsize for stride in operand.strides),
            "typestr": dtype.str,
        }


def values_of(operand: Operand) -> npt.NDArray[Any]:
    """An operand's elements as NumPy has them, or bits of their size. They can be read where they lie in the host's memory."""
    return np.asarray(_Memory(operand))


def check_apart(operation: str, written: Operand, others: Iterable[Operand]) -> None:
    """Refuses a tensor that is written to and shares an element's memory with another one. The library refuses what it is
    certain of by the tensors' spans, and takes those that lie in each other's gaps."""
    for other in others:
        try:
            shared = np.shares_memory(values_of(written), values_of(other), max_work=_MOST_WORK)
        except RuntimeError:  # np.exceptions.TooHardError
            raise ArgumentError(
                f"{operation}: {written.name} has the shape {written.shape} and strides of {written.strides} elements, and {other.name} "
                f"{other.shape} and {other.strides}, of which it is too hard to tell whether they share memory; their spans must lie apart."
            ) from None
        if shared:
            remedy = f": copy {other.name}" if other.copying else ""
            raise ArgumentError(
                f"{operation}: {written.name} is written to, and shares memory with {other.name}; they must lie apart{remedy}."
            )


def real(operation: str, name: str, value: Any, must: str = "") -> float:
    """A finite number that f32 can hold, to within its rounding. `must`: what it must be, where not all of these are taken."""
    try:
        number = float("" if isinstance(value, (str, bytes, bytearray)) else value)
    except (TypeError, ValueError, RuntimeError):  # the last of tensors that have no number
        raise ArgumentError(f"{operation}: {name} is {shown(value)}; it must be a number.") from None
    except OverflowError:
        number = float("inf")
    if not abs(number) <= _F32_MAX:
        raise ArgumentError(f"{operation}: {name} is {number}; it must be {must or 'a finite number of f32'}.")
    if 0 < abs(number) <= _F32_TINY / 2:
        must = must or f"0, or at least {_F32_TINY} in size"
        raise ArgumentError(f"{operation}: {name} is {number}, which f32 rounds to 0; it must be {must}.")
    return number


def launch(function: Any, machine: Machine, arguments: ctypes.Structure, stream: int | None, report: bool) -> Report | None:
    """Runs a problem; the checker's report where one is asked for, and None on a GPU."""
    if not report:
        check(function(machine._handle, byref(arguments), stream, None))
        return None
    handle = c_void_p()
    check(function(machine._handle, byref(arguments), stream, byref(handle)))
    return Report(handle) if handle else None


# --- GEMM -----------------------------------------------------------------------------------------------------------


class _Matrix(NamedTuple):
    """A matrix or a batch of them: rows of `ld` elements, of which one index is contiguous."""

    rows: int
    columns: int
    ld: int
    batch_stride: int
    columns_contiguous: bool


def _matrix(operand: Operand, batch: int, along: int = -1) -> _Matrix:
    """`along`: the axis that is to be contiguous where both are, as of one row or one column."""
    name, shape, strides = operand.name, operand.shape, operand.strides
    if len(shape) not in (2, 3):
        raise ArgumentError(f"gemm: {name} has the shape {shape}; (rows, columns) or (batch, rows, columns) is needed.")
    if 0 in shape:
        raise ArgumentError(f"gemm: {name} has the shape {shape}; an empty problem has no result.")
    rows, columns = shape[-2:]
    distances = {axis: row_distance(operand, axis) for axis in (along, -3 - along)}
    axis = next((axis for axis, distance in distances.items() if distance is not None), along)
    ld = distances[axis]
    if ld is None:
        raise ArgumentError(
            f"gemm: {name} has strides of {strides[-2]} and {strides[-1]} elements, and neither its rows nor its columns are "
            f"contiguous and apart: {operand.remedy()}."
        )
    batch_stride = strides[0] if len(shape) == 3 and shape[0] == batch and batch > 1 else 0
    return _Matrix(rows, columns, ld, batch_stride, axis == -1)


def _along_k(operand: Operand, batch: int, columns: bool) -> _Matrix:
    """A, whose columns are along k, or B, whose rows are; packed elements are counted singly."""
    along, across = (-1, -2) if columns else (-2, -1)
    matrix = _matrix(operand, batch, along)
    # Of 16 bits the other index may be contiguous, too; where both are, TMA may reach the lines along one of them alone.
    if operand.type in ("f16", "bf16") and operand.shape[across] > 1 and matrix.ld % _TMA_UNIT:
        matrix = _matrix(operand, batch, across)
    if operand.type not in PACKED:
        return matrix
    if matrix.columns_contiguous != columns:
        raise ArgumentError(
            f"gemm: {operand.name} is {operand.type}, which is packed along k, and k is not contiguous in it; a's "
            "rows and b's columns must be."
        )
    rows, of_k, ld, batch_stride, _ = matrix if columns else (matrix.columns, matrix.rows, *matrix[2:])
    of_k, ld, batch_stride = (unpacked(operand.type, count) for count in (of_k, ld, batch_stride))
    return _Matrix(*((rows, of_k) if columns else (of_k, rows)), ld, batch_stride, columns)


def _batch_of(operands: list[Operand]) -> int:
    """The batch that the operands of three dimensions agree on; those of one matrix serve all of it."""
    batch, said_by = 1, ""
    for operand in operands:
        extent = operand.shape[0] if len(operand.shape) == 3 else 1
        if extent == 1:
            continue
        if said_by and extent != batch:
            raise ArgumentError(f"gemm: {said_by} is a batch of {batch}, and {operand.name} of {extent}.")
        batch, said_by = extent, operand.name
    return batch


def _row_major(operand: Operand, batch: int, shape: tuple[int, ...]) -> _Matrix:
    """C or D: of rows that are contiguous."""
    matrix = _matrix(operand, batch)
    if not matrix.columns_contiguous:
        raise ArgumentError(
            f"gemm: {operand.name} has columns that are contiguous, and rows must be: {operand.remedy()}."
        )
    if (matrix.rows, matrix.columns) != shape[-2:]:
        raise ArgumentError(f"gemm: {operand.name} has the shape {operand.shape}, and the result's is {shape}.")
    return matrix


def result_type(of_a: str, out_dtype: str | None) -> str:
    """The type of C, the bias and D: the caller's, or what follows from A's. Raises ArgumentError."""
    if out_dtype is not None and (not isinstance(out_dtype, str) or out_dtype not in ("f16", "bf16", "f32")):
        raise ArgumentError(f"gemm: out_dtype is {shown(out_dtype)}; it must be 'f16', 'bf16' or 'f32'.")
    return out_dtype or {"tf32": "f32", **dict.fromkeys(("e4m3", "e5m2", *PACKED), "bf16")}.get(of_a, of_a)


class Gemm:
    """D = activation(alpha scale_a scale_b A B + beta C + bias), all but D's memory."""

    shape: tuple[int, ...]
    out_type: str

    def __init__(
        self,
        a: Operand,
        b: Operand,
        *,
        c: Operand | None = None,
        bias: Operand | None = None,
        alpha: float = 1.0,
        beta: float | None = None,
        activation: str = "none",
        out_dtype: str | None = None,
        scale_a: int | None = None,
        scale_b: int | None = None,
        block_scale: int = 0,
        block_scale_a: int | None = None,
        block_scale_b: int | None = None,
    ) -> None:
        """`scale_a`, `scale_b`: addresses of one f32. `block_scale`: tegula_block_scale, with addresses. Raises ArgumentError."""
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise ArgumentError(f"gemm: activation is {shown(activation)}; it must be one of {', '.join(_ACTIVATIONS)}.")
        type_a, type_b = ("tf32" if operand.type == "f32" else operand.type for operand in (a, b))
        if type_a != type_b and not block_scale and not {type_a, type_b} <= {"e4m3", "e5m2"}:
            raise ArgumentError(
                f"gemm: a has elements of {a.type}, and b of {b.type}; both must be the same type, or each e4m3 or e5m2."
            )
        self.out_type = result_type(type_a, out_dtype)
        self._batch = batch = _batch_of([a, b] if c is None else [a, b, c])
        left, right = _along_k(a, batch, True), _along_k(b, batch, False)
        if left.columns != right.rows:
            raise ArgumentError(f"gemm: a has {left.columns} columns, and b {right.rows} rows; they must be as many.")
        m, n = left.rows, right.columns
        self.shape = (batch, m, n) if len(a.shape) == 3 or len(b.shape) == 3 else (m, n)

        self._arguments = g = GemmArguments()
        library.tegula_gemm_arguments_init(byref(g), ctypes.sizeof(g))
        g.in_a, g.in_b, g.out = (CODES[t] for t in (type_a, type_b, self.out_type))
        g.activation = _ACTIVATIONS[activation]
        g.m, g.n, g.k, g.batch = m, n, left.columns, batch
        g.a, g.lda, g.a_batch_stride = a.address, left.ld, left.batch_stride
        g.a_major = _MAJOR_K if left.columns_contiguous else _MAJOR_MN
        g.b, g.ldb, g.b_batch_stride = b.address, right.ld, right.batch_stride
        g.b_major = _MAJOR_MN if right.columns_contiguous else _MAJOR_K
        g.alpha = real("gemm", "alpha", alpha)
        g.beta = (1.0 if c is not None else 0.0) if beta is None else real("gemm", "beta", beta)
        if c is None and g.beta != 0:
            raise ArgumentError(f"gemm: beta is {shown(beta)}, and c is left out; it must be an array where beta is not 0.")
        g.scale_a, g.scale_b = scale_a, scale_b
        g.block_scale, g.block_scale_a, g.block_scale_b = block_scale, block_scale_a, block_scale_b
        if c is not None:
            self._of_result_type(c)
            added = _row_major(c, batch, self.shape)
            g.c, g.ldc, g.c_batch_stride = c.address, added.ld, added.batch_stride
        if bias is not None:
            self._of_result_type(bias)
            if bias.shape != (n,) or bias.strides != (1,):
                raise ArgumentError(
                    f"gemm: bias has the shape {bias.shape} and strides of {bias.strides} elements; {n} contiguous values "
                    "are needed."
                )
            g.bias = bias.address

    def _of_result_type(self, operand: Operand) -> None:
        if operand.type != self.out_type:
            raise ArgumentError(f"gemm: {operand.name} has elements of {operand.type}, and the result's are {self.out_type}.")

    def into(self, d: Operand) -> GemmArguments:
        """The arguments with D's memory."""
        self._of_result_type(d)
        if d.shape != self.shape:
            raise ArgumentError(f"gemm: {d.name} has the shape {d.shape}, and the result's is {self.shape}.")
        result = _row_major(d, self._batch, self.shape)
        g = self._arguments
        g.d, g.ldd, g.d_batch_stride = d.address, result.ld, result.batch_stride if self._batch > 1 else LEFT_OUT
        return g

    def workspace_bytes(self, machine: Machine) -> int:
        """How large a workspace is of use. After `into`."""
        return workspace_bytes(library.tegula_gemm_workspace, machine, self._arguments)

    def work_in(self, address: int, bytes: int) -> None:
        """Gives it a workspace, aligned to 16 bytes."""
        self._arguments.workspace, self._arguments.workspace_bytes = address, bytes


def workspace_bytes(function: Any, machine: Machine, arguments: Any) -> int:
    """What the C interface's function says of a problem."""
    needed = c_int64()
    check(function(machine._handle, byref(arguments), byref(needed)))
    return needed.value
