"""Kernels of one's own: structs of C++ written with the library, launched on arrays."""

from __future__ import annotations

import ctypes
import operator
import os
import pathlib
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

import numpy as np

from ._gpu_arrays import GpuOperand, current_stream, gpu_machine, is_on_gpu, memory_on_gpu, stream_of
from ._library import KernelArray, KernelMember, KernelSource, Owner, check, flag, library
from .errors import ArgumentError, shown
from .machine import Machine, Report, default_machine


_NO_NUMBERS = "OSUMm"  # NumPy's kinds of objects, text and times
_F32_MAX = float(np.finfo(np.float32).max)
_LONGEST_SOURCE = 16 << 20  # bytes of a file; a device may have no end


class _Array(NamedTuple):
    address: int
    bytes: int
    is_constant: bool


def _host_array(what: str, array: np.ndarray[Any, Any]) -> _Array:
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(f"{what} is a masked array, and masks are not looked at: use .filled().")
    if array.dtype.kind in _NO_NUMBERS or not array.dtype.isnative:
        raise ArgumentError(f"{what} has elements of type {array.dtype}; numbers in this machine's order of bytes are needed.")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ArgumentError(f"{what} is an array with gaps; a contiguous one is needed: use np.ascontiguousarray.")
    return _Array(array.ctypes.data, array.nbytes, not array.flags.writeable)


class _Argument(NamedTuple):
    what: str  # that it is of, with its number
    bytes: bytes
    kind: int  # of a member that takes it, as tegula_member_kind has it
    array: _Array | None


# tegula_member_kind
_POINTER, _BOOL, _INTEGER, _FLOATING, _OTHER = range(5)
_BY_NUMPY = {"b": _BOOL, "i": _INTEGER, "u": _INTEGER, "f": _FLOATING}  # by the kind of a type; others are _OTHER
_BY_CTYPES = dict.fromkeys("PzZ", _POINTER) | {"?": _BOOL} | dict.fromkeys("dfg", _FLOATING)  # others are integers
_MEMBERS = {
    _POINTER: ("a pointer", "an array, or ctypes.c_void_p,"),
    _BOOL: ("a bool", "a bool"),
    _INTEGER: ("an integer of {} bytes", "np.int{}"),
    _FLOATING: ("a floating-point number of {} bytes", "np.float{}"),
    _OTHER: ("a class of {} bytes", "a scalar of as many bytes"),
}


def _takes(member: KernelMember, argument: _Argument) -> bool:
    """Whether a member of that kind and size may be that argument."""
    if member.bytes != len(argument.bytes):
        return False
    whole = (_BOOL, _INTEGER) if member.bytes == 1 else (_INTEGER,)
    return member.kind == _OTHER or argument.kind == member.kind or (member.kind in whole and argument.kind in whole)


def _needed_for(member: KernelMember) -> str:
    if member.bytes == 4 and member.kind in (_INTEGER, _FLOATING):
        return "an int" if member.kind == _INTEGER else "a float"
    return _MEMBERS[member.kind][1].format(8 * member.bytes)


class _Params:
    """Arguments as the members of a C++ struct."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name = name
        self.on_gpu: list[GpuOperand] = []
        self.first_on_gpu: Any = None  # as the caller has it
        self.arguments = [self._argument(f"{name}: argument {number}", argument) for number, argument in enumerate(arguments)]
        self.has_arrays = any(argument.array is not None for argument in self.arguments)

    def _argument(self, what: str, argument: Any) -> _Argument:
        array, kind = None, _INTEGER
        if isinstance(argument, np.ndarray):
            array, kind, member = _host_array(what, argument), _POINTER, bytes(c_void_p(argument.ctypes.data))
        elif isinstance(argument, (bool, np.bool_)):
            kind, member = _BOOL, bytes(ctypes.c_bool(bool(argument)))
        elif isinstance(argument, np.generic) and argument.dtype.kind not in _NO_NUMBERS:
            kind, member = _BY_NUMPY.get(argument.dtype.kind, _OTHER), argument.tobytes()
        elif isinstance(argument, ctypes._SimpleCData):
            kind, member = _BY_CTYPES.get(getattr(argument, "_type_", ""), _INTEGER), bytes(argument)
        elif isinstance(argument, int):
            if not -(2**31) <= argument < 2**31:
                raise ArgumentError(f"{what} is {argument}, which no int holds; say np.int64 for a member of 64 bits.")
            member = bytes(ctypes.c_int32(argument))
        elif isinstance(argument, float):
            if _F32_MAX < abs(argument) < float("inf"):
                raise ArgumentError(f"{what} is {argument}, which no float holds; say np.float64 for a double.")
            kind, member = _FLOATING, bytes(ctypes.c_float(argument))
        elif is_on_gpu(argument):
            operand = memory_on_gpu(what, argument)
            if not self.on_gpu:
                self.first_on_gpu = argument
            self.on_gpu.append(operand)
            kind, member = _POINTER, bytes(c_void_p(operand.operand.address))
        else:
            raise ArgumentError(
                f"{what} is {type(argument).__name__}; an array, a bool, an int (int), a float (float) or a scalar of NumPy "
                "or ctypes is needed."
            )
        return _Argument(f"{what} is {'an array' if kind == _POINTER else shown(argument)}", member, kind, array)

    def packed(self, size: int, members: list[KernelMember] | None) -> tuple[bytes, list[tuple[int, _Array]]]:
        """The bytes of a Params of that size, and the arrays with the offsets of their pointers. Raises ArgumentError for
        arguments that are not its members; where these are None, as they are not known, only the size of all is looked at."""
        offsets = self._offsets(size) if members is None else self._offsets_of(size, members)
        raw = bytearray(size)
        for offset, argument in zip(offsets, self.arguments):
            raw[offset : offset + len(argument.bytes)] = argument.bytes
        return bytes(raw), [(offset, argument.array) for offset, argument in zip(offsets, self.arguments) if argument.array is not None]

    def _offsets(self, size: int) -> list[int]:
        """Of one argument behind the other, each at a multiple of its size."""
        offsets, end = [], 0
        for argument in self.arguments:
            offsets.append(end + -end % len(argument.bytes))
            end = offsets[-1] + len(argument.bytes)
        end += -end % max((len(argument.bytes) for argument in self.arguments), default=1)
        if end != size and not (size == 1 and not self.arguments):
            raise ArgumentError(
                f"{self.name}: the {len(self.arguments)} arguments make {end} bytes, and its Params have {size}; "
                "an argument for each member is needed, in order, scalars of other sizes than int and float as NumPy's."
            )
        return offsets

    def _offsets_of(self, size: int, members: list[KernelMember]) -> list[int]:
        offsets: list[int] = []
        if len(self.arguments) > len(members):
            self._refuse_count(members)
        taken = 0  # members
        for argument in self.arguments:
            if taken == len(members):
                self._refuse_count(members)
            member, begin = members[taken], members[taken].offset
            end = begin + len(argument.bytes)
            following = taken + 1
            if argument.kind == _OTHER:  # a struct may be several of them
                while following < len(members) and members[following].offset < end:
                    following += 1
            last = members[following - 1]
            whole = end <= size and last.offset + last.bytes <= end
            if not (_takes(member, argument) if following == taken + 1 else whole):
                form = _MEMBERS[member.kind][0].format(member.bytes)
                raise ArgumentError(f"{argument.what}, and member {taken} of its Params is {form}; {_needed_for(member)} is needed.")
            offsets.append(begin)
            taken = following
        if taken != len(members):
            self._refuse_count(members)
        return offsets

    def _refuse_count(self, members: list[KernelMember]) -> None:
        raise ArgumentError(
            f"{self.name}: its Params have {len(members)} members, and there are {len(self.arguments)} arguments; an argument for "
            "each member is needed, in order."
        )


def _members_of(handle: c_void_p) -> list[KernelMember] | None:
    """The members of a kernel's Params, where they are known."""
    count = library.tegula_kernel_members(handle, None, 0)
    if count < 0:
        return None
    members = (KernelMember * max(count, 1))()
    library.tegula_kernel_members(handle, members, count)
    return list(members[:count])


def _grid(name: str, grid: Any) -> Any:
    extents = grid if isinstance(grid, (tuple, list)) else (grid,)
    try:
        extents = [operator.index(extent) for extent in extents]
    except TypeError:
        raise ArgumentError(f"{name}: grid is {shown(grid)}; it must be one to three integers.") from None
    if not 1 <= len(extents) <= 3 or not all(1 <= extent < 2**31 for extent in extents):
        raise ArgumentError(f"{name}: grid is {shown(grid)}; it must be one to three integers from 1 to 2^31 - 1.")
    return (ctypes.c_int32 * 3)(*extents, *[1] * (3 - len(extents)))


class Kernel(Owner):
    """The struct `name` of a C++ source, which is written with the library, as a function of arrays and scalars.

    `source` is the text, where it has more than one line, else a file's path. `include`: folders that its own includes
    are looked for in; a file's own is one. It is compiled when it is first launched on a kind of machine, and kept on
    disk: for a GPU by NVRTC, for a simulated machine by this machine's C++ compiler (TEGULA_CXX, or c++, g++, clang++).

    kernel(grid, *arguments) launches it. `grid`: CTAs along x, y and z. The arguments are the members of its Params in
    order: arrays for pointers, int for an int, float for a float, bool, and NumPy's scalars for other types
    (np.int64(n)). NumPy's arrays, contiguous, are computed on the simulated machine and written back, but those that
    are read-only; arrays that share memory share it there. Arrays of a GPU are computed there, on the current stream or `stream`. With `report` it returns the checker's
    Report, without which findings are a FindingError. Raises ArgumentError, and DeviceError, with the compiler's first
    error where it does not compile and with what to install where there is no compiler.
    """

    def __init__(self, source: str | os.PathLike[str], name: str, *, include: tuple[str | os.PathLike[str], ...] = ()) -> None:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split("::")):
            raise ArgumentError(f"Kernel: name is {shown(name)}; it must be a struct's name.")
        try:
            folders = [os.fsencode(folder) for folder in include] if isinstance(include, (tuple, list)) else [b"\0"]
        except (TypeError, UnicodeEncodeError):
            folders = [b"\0"]
        if any(b"\0" in folder for folder in folders):
            raise ArgumentError(f"Kernel: include is {shown(include)}; it must be a tuple of folders.")
        self.name, self._file = name, f"{name}.cpp"
        if isinstance(source, str) and "\n" in source:
            self._text = source
        else:
            try:
                path = pathlib.Path(source)
                with path.open("rb") as file:
                    read = file.read(_LONGEST_SOURCE + 1)
                if len(read) > _LONGEST_SOURCE:
                    raise ValueError(f"it has more than {_LONGEST_SOURCE >> 20} MiB")
                self._text = read.decode()
            except (OSError, TypeError, ValueError) as error:
                raise ArgumentError(f"Kernel: source is {shown(source)}, which cannot be read ({error}); text of more than one line, or the path of a file, is needed.") from None
            self._file = path.name
            folders.insert(0, os.fsencode(path.parent.absolute()))
        if "\0" in self._text:
            raise ArgumentError("Kernel: source holds a zero; it must be text.")
        try:
            self._text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"Kernel: source holds {shown(self._text[error.start])}; it must be text that UTF-8 can hold.") from None
        self._include = folders
        self._made: dict[Machine, c_void_p] = {}

    def __repr__(self) -> str:
        return f"<tegula.Kernel: {self.name}>"

    def __del__(self) -> None:
        made = getattr(self, "_made", {})
        for handle in made.values():
            if library is not None:
                library.tegula_kernel_free(handle)
        made.clear()  # the machines after the kernels that they run

    def _on(self, machine: Machine) -> c_void_p:
        """The kernel compiled for a machine."""
        handle = self._made.get(machine)
        if handle is None:
            source = KernelSource()
            library.tegula_kernel_source_init(byref(source), ctypes.sizeof(source))
            source.text, source.type, source.file = self._text.encode(), self.name.encode(), os.fsencode(self._file)
            source.include = (ctypes.c_char_p * max(len(self._include), 1))(*self._include)
            source.include_count = len(self._include)
            handle = c_void_p()
            check(library.tegula_kernel_create(machine._handle, byref(source), byref(handle)))
            self._made[machine] = handle
        return handle

    def compile(self, machine: Machine | None = None) -> None:
        """Compiles it for a machine, the simulated one where it is left out, ahead of its first launch."""
        self._on(default_machine() if machine is None else self._checked(machine))

    def _checked(self, machine: Any) -> Machine:
        if not isinstance(machine, Machine):
            raise ArgumentError(f"{self.name}: machine is {type(machine).__name__}; a tegula.Machine is needed.")
        return machine

    def _machine(self, params: _Params, machine: Machine | None) -> Machine:
        """Where the arguments are computed."""
        devices = {operand.device for operand in params.on_gpu}
        if len(devices) > 1 or (devices and params.has_arrays):
            raise ArgumentError(f"{self.name}: the arrays are on more than one device; they must share one.")
        own = gpu_machine(devices.pop()) if devices else default_machine()
        if machine is None:
            return own
        machine = self._checked(machine)
        if (params.has_arrays or params.on_gpu) and machine.is_simulated != own.is_simulated:
            raise ArgumentError(f"{self.name}: the arrays are on {own.name}, and machine is {machine.name}.")
        return machine

    def __call__(
        self, grid: Any, *arguments: Any, machine: Machine | None = None, stream: int | None = None, report: bool = False
    ) -> Report | None:
        extents, params = _grid(self.name, grid), _Params(self.name, arguments)
        flag(f"{self.name}: report", report)
        on = self._machine(params, machine)
        if on.is_simulated and stream is not None:
            raise ArgumentError(f"{self.name}: stream is {shown(stream)}, and the simulated machine is done when the call returns; leave it out.")
        if report and not on.is_simulated:
            raise ArgumentError(f"{self.name}: report is True, and a GPU makes none; the simulated machine does, of NumPy arrays.")
        handle = self._on(on)
        needed = int(library.tegula_kernel_params_bytes(handle))
        raw, with_array = params.packed(max(needed, 0), _members_of(handle))
        arrays = (KernelArray * max(len(with_array), 1))()
        for member, (offset, array) in zip(arrays, with_array):
            member.offset, member.bytes, member.is_constant = offset, array.bytes, int(array.is_constant)
        if stream is not None:
            stream = stream_of(self.name, stream)
        elif params.on_gpu:
            stream = current_stream(params.on_gpu[0].device, params.first_on_gpu)()
        found = c_void_p()
        launched = library.tegula_kernel_launch(
            handle, extents, raw, len(raw), arrays, len(with_array), stream, byref(found) if report else None
        )
        check(launched)
        return Report(found) if report else None
