"""Layouts: the algebra of tegula's C++ library, under its names, by the same implementation.

A layout is a function from coordinates to offsets, written shape:stride. Text is an expression of the language of
`tegula layout` (docs/tool.md); a tuple of integers is the compact column-major layout of that shape, and `None` in a
coordinate stands for `_`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Sequence
from ctypes import byref, c_int32, c_int64, c_void_p
from typing import Any, Self, SupportsIndex, TypeAlias, Union, cast

import numpy as np
import numpy.typing as npt

from ._library import check, int32, library, text_of
from .errors import ArgumentError, LayoutError, shown

IntTuple: TypeAlias = Union[int, tuple["IntTuple", ...]]
Coordinate: TypeAlias = Union[None, SupportsIndex, Sequence["Coordinate"]]
LayoutLike: TypeAlias = Union["Layout", str, SupportsIndex, tuple[Any, ...]]
TilerLike: TypeAlias = Union["Layout", "Tiler", str, SupportsIndex, tuple[Any, ...], list[Any]]

_LAYOUT, _SWIZZLED, _TUPLE, _TILER = range(4)  # tegula_kind
_FORMS = {"svg": 0, "text": 1, "latex": 2}


class _Value:
    """A handle of the C interface."""

    __slots__ = ("_handle",)
    _handle: c_void_p

    @classmethod
    def _of(cls, handle: c_void_p) -> Self:
        value = object.__new__(cls)
        value._handle = handle
        return value

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and library is not None:
            del self._handle
            library.tegula_value_free(handle)

    def __str__(self) -> str:
        return text_of(library.tegula_value_text, self._handle)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Value):
            return NotImplemented
        return bool(library.tegula_value_equal(self._handle, other._handle))

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


def _evaluate(expression: str) -> c_void_p:
    handle = c_void_p()
    if not isinstance(expression, str):
        raise LayoutError(f"{shown(expression)} is {type(expression).__name__}; an expression is text")
    try:
        encoded = expression.encode()
    except UnicodeEncodeError:
        raise LayoutError(f"the expression {shown(expression)} is not text that UTF-8 can hold") from None
    if b"\0" in encoded:
        raise LayoutError(f"the expression {shown(expression)} holds a character 0; it must be text")
    check(library.tegula_evaluate(encoded, byref(handle)))
    return handle


_DEEPEST = 64  # as the library has it, which refuses less deep text with a sentence


def _text(value: Any, depth: int = 0) -> str:
    """A value as the language writes it: None inside of a tuple or a list is _, a list is a tiler."""
    if value is None and depth > 0:
        return "_"
    if depth > _DEEPEST:
        raise LayoutError(f"tuples and lists nest more than {_DEEPEST} deep")
    if isinstance(value, _Value):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "<" + ",".join(_text(entry, depth + 1) for entry in value) + ">"
    if isinstance(value, tuple):
        return "(" + ",".join(_text(entry, depth + 1) for entry in value) + ")"
    try:
        return str(operator.index(value))
    except TypeError:
        raise LayoutError(
            f"{shown(value)} is {type(value).__name__}; a layout, text, an integer, a tuple or a list of these is needed"
        ) from None


def _handle(value: Any) -> tuple[c_void_p, Any]:
    """A handle, and what owns it."""
    if isinstance(value, _Value):
        return value._handle, value
    owner = _Value._of(_evaluate(_text(value)))
    return owner._handle, owner


def _tree(text: str) -> Any:
    """A tuple's text as Python has it: (4,(2,_)) is (4, (2, None)); (4) is (4,)."""
    return ast.literal_eval(text.replace("_", "None").replace(")", ",)").replace("(,)", "()"))


def _result(handle: c_void_p) -> Any:
    """A value of the algebra as a Python object."""
    kind = library.tegula_value_kind(handle)
    if kind in (_LAYOUT, _SWIZZLED):
        return Layout._of(handle)
    if kind == _TILER:
        return Tiler._of(handle)
    text = str(_Value._of(handle))
    return int(text) if text[-1].isdigit() else _tree(text)


def _call(operation: str, *arguments: Any) -> Any:
    held = [_handle(argument) for argument in arguments]
    handles = (c_void_p * len(held))(*(handle for handle, _ in held))
    result = c_void_p()
    check(library.tegula_call(operation.encode(), handles, len(held), byref(result)))
    return _result(result)


def evaluate(expression: str) -> Layout | Tiler | IntTuple:
    """The value of an expression: evaluate("size((4,8))") is 32. Raises LayoutError."""
    return cast("Layout | Tiler | IntTuple", _result(_evaluate(expression)))


def operations() -> str:
    """A line for each operation of the algebra: its form, and what it gives."""
    return text_of(library.tegula_operations)


class Tiler(_Value):
    """A layout for each mode: Tiler(4, "3:1", None) is <4:1,3:1,_>. None leaves a mode as it is."""

    __slots__ = ()

    def __init__(self, *entries: TilerLike | None) -> None:
        whole = len(entries) == 1 and isinstance(entries[0], str) and entries[0].lstrip().startswith("<")
        self._handle = _evaluate(cast(str, entries[0]) if whole else _text(list(entries)))


class Layout(_Value):
    """A layout, plain or swizzled: Layout("(4,8):(8,1)"), Layout((4, 8), (8, 1)), Layout((4, 8)).

    Immutable, hashable, equal to another one where tree and numbers are. Every operation of the algebra is a method
    and a function of the module: composition(a, b) is a.composition(b). Arguments that are layouts may be text or
    tuples. Each raises LayoutError, with the library's sentence, where it cannot keep its law.
    """

    __slots__ = ()

    def __init__(self, shape: LayoutLike, stride: IntTuple | None = None) -> None:
        if stride is not None:
            self._handle = _evaluate(f"{_text(shape)}:{_text(stride)}")
            return
        given = _Value._of(_evaluate(_text(shape)))
        if library.tegula_value_kind(given._handle) == _TILER:
            raise LayoutError(f"{given} is a tiler, and a layout is needed")
        layout = c_void_p()
        check(library.tegula_as_layout(given._handle, byref(layout)))
        self._handle = layout

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def shape(self) -> IntTuple:
        """The tree of extents: (4, (3, 6)); an integer for a bare leaf."""
        result = c_void_p()
        check(library.tegula_layout_shape(self._handle, byref(result)))
        return cast(IntTuple, _result(result))

    @property
    def stride(self) -> IntTuple:
        """The tree of strides. LayoutError for strides along axes (1@0), which are no integers."""
        result = c_void_p()
        check(library.tegula_layout_stride(self._handle, byref(result)))
        return cast(IntTuple, _result(result))

    @property
    def is_swizzled(self) -> bool:
        return bool(library.tegula_value_kind(self._handle) == _SWIZZLED)

    @property
    def swizzle(self) -> tuple[int, int, int] | None:
        """(bits, base, shift) of a swizzled layout."""
        return self._parts()[0] if self.is_swizzled else None

    @property
    def offset(self) -> int:
        """What is added before the swizzle; 0 of a plain layout."""
        return self._parts()[1] if self.is_swizzled else 0

    @property
    def unswizzled(self) -> Layout:
        """The layout under the swizzle; a plain layout is its own."""
        return self._parts()[2] if self.is_swizzled else self

    def _parts(self) -> tuple[tuple[int, int, int], int, Layout]:
        bits, base, shift, offset, layout = c_int32(), c_int32(), c_int32(), c_int64(), c_void_p()
        check(
            library.tegula_swizzle_parts(
                self._handle, byref(bits), byref(base), byref(shift), byref(offset), byref(layout)
            )
        )
        return (bits.value, base.value, shift.value), offset.value, Layout._of(layout)

    @property
    def axes(self) -> int:
        """How many axes its values have: 0 where they are offsets, else those of coordinates."""
        axes = c_int32()
        check(library.tegula_layout_axes(self._handle, byref(axes)))
        return axes.value

    def __len__(self) -> int:
        return self.rank()

    def __getitem__(self, mode: int) -> Layout:
        """Mode `mode` as a layout, counted from the end where negative. Raises IndexError beyond the last."""
        if self.is_swizzled:
            raise LayoutError(f"{self} is swizzled and has no modes of its own; take those of .unswizzled")
        rank = self.rank()
        number = int32(f"{self}: the mode", mode)
        if not -rank <= number < rank:
            raise IndexError(f"{self} has {rank} modes, and no mode {mode}")
        result = c_void_p()
        check(library.tegula_layout_mode(self._handle, number % rank, byref(result)))
        return Layout._of(result)

    def __iter__(self) -> Iterator[Layout]:
        """Its modes."""
        return (self[mode] for mode in range(self.rank()))

    # --- its values ---------------------------------------------------------------------------------------------

    def __call__(self, *coordinates: Any) -> Any:
        """The offset of a coordinate: L(5), L(1, 2), L((1, 2)), L((1, (0, 2))).

        Arrays of integers give arrays: of flat colexicographic indices, L(indices), or an array for each mode,
        L(rows, columns), broadcast against each other. Of a layout of coordinates a value is a tuple, and an array
        has the axes as its last dimension. Beyond an extent a mode runs on along its last leaf.
        """
        if not coordinates:
            raise LayoutError(f"{self} is called without a coordinate")
        if any(isinstance(c, (np.ndarray, list)) for c in coordinates):
            arrays = [_indices(c) for c in coordinates]
            return self._values(arrays[0]) if len(arrays) == 1 else self._values_by_mode(arrays)
        if len(coordinates) == 1 and isinstance(coordinates[0], int) and -(2**62) <= coordinates[0] <= 2**62:
            return self._value(coordinates[0])
        coordinate = coordinates[0] if len(coordinates) == 1 else coordinates
        # Not by way of the flat index, in which a coordinate beyond an extent is another one.
        values = [_call("crd2idx", coordinate, along) for along in self._by_axis()]
        return tuple(values) if self.axes else values[0]

    def _value(self, index: int) -> int | tuple[int, ...]:
        """The value at a flat index."""
        axes = self.axes
        values = (c_int64 * max(axes, 1))()
        check(library.tegula_layout_values(self._handle, byref(c_int64(index)), 1, values))
        return tuple(values) if axes else values[0]

    def _by_axis(self) -> list[Layout]:
        """The layouts of offsets that give the values along each axis; of a layout of offsets itself."""
        axes = self.axes
        if axes == 0:
            return [self]
        self._value(0)  # refuses offsets among coordinates, which would be zeros below
        shape, _, strides = str(self).partition(":")
        return [Layout(f"{shape}:{_strides_along(axis, strides)}") for axis in range(axes)]

    def _values_by_mode(self, arrays: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """The values at flat indices of each mode: the sum of what the modes give."""
        if len(arrays) != self.rank():
            raise LayoutError(f"{self} has {self.rank()} modes, and is called with {len(arrays)} arrays")
        try:
            np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise LayoutError(f"{self} is called with arrays of the shapes {shapes}, which do not broadcast against each other") from None
        sums = []
        for along in self.unswizzled._by_axis():
            total: npt.NDArray[np.int64] = np.zeros((), dtype=np.int64)
            for mode, array in zip(along, arrays):
                total = np.asarray(total + mode._values(array))  # at most 2^62 in size each, so that 64 bits show what is beyond
                if total.size and not -(2**62) <= total.min() <= total.max() <= 2**62:
                    raise LayoutError(f"{self} is called with indices whose values exceed 2^62")
            sums.append(total)
        if self.is_swizzled:
            (bits, base, shift), offset, _ = self._parts()
            return Layout(f"Sw<{bits},{base},{shift}> o {offset} o 1:1")._values(sums[0])
        return np.stack(sums, axis=-1) if self.axes else sums[0]

    def _values(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        axes = self.axes
        flat = np.ascontiguousarray(indices).reshape(-1)
        values = np.empty(flat.size * max(axes, 1), dtype=np.int64)
        check(library.tegula_layout_values(self._handle, flat.ctypes.data, flat.size, values.ctypes.data))
        return values.reshape(indices.shape + ((axes,) if axes else ()))

    def table(self) -> npt.NDArray[np.int64]:
        """All values, as an array with a dimension for each mode (and one for the axes of coordinates)."""
        axes, size = self.axes, int(self.size())
        if size > 2**56:  # which NumPy refuses otherwise than what is beyond the memory
            raise MemoryError(f"the table of {self} would have {size} values")
        values = np.empty(size * max(axes, 1), dtype=np.int64)
        check(library.tegula_layout_values(self._handle, None, size, values.ctypes.data))
        extents = tuple(int(self.size(mode)) for mode in range(self.rank()))
        if axes:
            return values.reshape(size, axes).reshape(extents + (axes,), order="F")
        return values.reshape(extents, order="F")

    @staticmethod
    def of(array: npt.NDArray[Any]) -> Layout:
        """The layout of an array, in elements: of an array in C order of shape (2, 3), (2,3):(3,1)."""
        if not isinstance(array, np.ndarray):
            raise LayoutError(f"{shown(array)} is {type(array).__name__}; a NumPy array is needed")
        if array.itemsize == 0:
            raise LayoutError(f"the array is of {array.dtype}, whose elements have no bytes")
        if any(stride % array.itemsize for stride in array.strides):
            raise LayoutError(f"the array's strides {array.strides} are no multiples of its {array.itemsize} bytes an element")
        return Layout(tuple(array.shape), tuple(stride // array.itemsize for stride in array.strides))

    def gather(self, array: npt.ArrayLike) -> npt.NDArray[Any]:
        """The elements of a flat array at the layout's offsets, with a dimension for each mode."""
        try:
            flat = np.asarray(_unmasked(array))
        except (TypeError, ValueError) as error:
            raise LayoutError(f"{shown(array)} makes no array: {error}") from None
        if flat.ndim != 1:
            raise LayoutError(f"the array has {flat.ndim} dimensions, and a flat one is needed: array.ravel()")
        if self.axes:
            raise LayoutError(f"the values of {self} are coordinates, and elements are gathered at offsets")
        offsets = self.table()
        if offsets.size and (offsets.min() < 0 or offsets.max() >= flat.size):
            raise LayoutError(f"{self} reaches beyond an array of {flat.size} elements")
        return flat[offsets]

    # --- drawings -----------------------------------------------------------------------------------------------

    def draw(self, form: str = "svg", *, banks: int = 0) -> str:
        """The table as "svg", "text" or "latex"; with `banks` the shared-memory banks of elements of so many bits."""
        try:
            return text_of(library.tegula_layout_draw, self._handle, int32("draw: banks", banks), _form(form))
        except ArgumentError as error:
            raise ArgumentError(str(error).replace("tegula_layout_draw: element_bits", "draw: banks", 1)) from None

    def draw_threads(self, tile: tuple[int, int], form: str = "svg") -> str:
        """Who holds what: a (thread, value) layout over a tile of (rows, columns), coloured by thread."""
        if not isinstance(tile, (tuple, list)) or len(tile) != 2:
            raise LayoutError(f"tile is {shown(tile)}; it must be (rows, columns)")
        rows, columns = (int32("draw_threads: an extent of tile", extent) for extent in tile)
        return text_of(library.tegula_layout_draw_threads, self._handle, rows, columns, _form(form))

    def _repr_svg_(self) -> str | None:
        """The drawing that notebooks show; none where the layout cannot be drawn."""
        try:
            return self.draw()
        except LayoutError:
            return None

    # --- the algebra --------------------------------------------------------------------------------------------
    # `self` may be anything that is a layout: these are functions of the module, too.

    def coalesce(self: LayoutLike, profile: IntTuple | None = None) -> Layout:
        """With as few modes as possible, or so by the modes of a tuple."""
        return cast(Layout, _call("coalesce", self, *(() if profile is None else (profile,))))

    def complement(self: LayoutLike, size: IntTuple | None = None) -> Layout:
        """The layout that reaches what this one leaves out, up to `size`, an integer or a shape."""
        return cast(Layout, _call("complement", self, *(() if size is None else (size,))))

    def composition(self: LayoutLike, other: TilerLike) -> Layout:
        """This layout after the other; by mode where that is a tiler (a Tiler, or a list)."""
        return cast(Layout, _call("composition", self, other))

    def right_inverse(self: LayoutLike) -> Layout:
        """R with L(R(i)) = i."""
        return cast(Layout, _call("right_inverse", self))

    def left_inverse(self: LayoutLike) -> Layout:
        """R with R(L(i)) = i."""
        return cast(Layout, _call("left_inverse", self))

    def logical_divide(self: LayoutLike, tiler: TilerLike) -> Layout:
        """(tile, rest), by mode where the tiler is one."""
        return cast(Layout, _call("logical_divide", self, tiler))

    def zipped_divide(self: LayoutLike, tiler: TilerLike) -> Layout:
        """((tiles), (rests))."""
        return cast(Layout, _call("zipped_divide", self, tiler))

    def tiled_divide(self: LayoutLike, tiler: TilerLike) -> Layout:
        """((tiles), rest, rest, ...)."""
        return cast(Layout, _call("tiled_divide", self, tiler))

    def flat_divide(self: LayoutLike, tiler: TilerLike) -> Layout:
        """(tile, tile, ..., rest, rest, ...)."""
        return cast(Layout, _call("flat_divide", self, tiler))

    def logical_product(self: LayoutLike, tiler: TilerLike) -> Layout:
        """(L, copies of L in the order of the tiler), by mode where that is one."""
        return cast(Layout, _call("logical_product", self, tiler))

    def zipped_product(self: LayoutLike, tiler: TilerLike) -> Layout:
        """((blocks), (copies))."""
        return cast(Layout, _call("zipped_product", self, tiler))

    def tiled_product(self: LayoutLike, tiler: TilerLike) -> Layout:
        """((blocks), copies, copies, ...)."""
        return cast(Layout, _call("tiled_product", self, tiler))

    def flat_product(self: LayoutLike, tiler: TilerLike) -> Layout:
        """(block, block, ..., copies, copies, ...)."""
        return cast(Layout, _call("flat_product", self, tiler))

    def blocked_product(self: LayoutLike, tiler: LayoutLike) -> Layout:
        """Blocks of this layout arranged as the other is."""
        return cast(Layout, _call("blocked_product", self, tiler))

    def raked_product(self: LayoutLike, tiler: LayoutLike) -> Layout:
        """Blocks of this layout interleaved as the other is."""
        return cast(Layout, _call("raked_product", self, tiler))

    def tile_to_shape(self: LayoutLike, shape: IntTuple, order: IntTuple | None = None) -> Layout:
        """Repeated up to `shape`, over the modes in the given order."""
        return cast(Layout, _call("tile_to_shape", self, shape, *(() if order is None else (order,))))

    def flatten(self: LayoutLike) -> Layout:
        """Without nesting."""
        return cast(Layout, _call("flatten", self))

    def group(self: LayoutLike, begin: int, end: int) -> Layout:
        """Modes begin to end - 1 made one mode."""
        return cast(Layout, _call("group", self, begin, end))

    def select(self: LayoutLike, *modes: int) -> Layout:
        """These modes, in this order."""
        return cast(Layout, _call("select", self, *modes))

    def take(self: LayoutLike, begin: int, end: int) -> Layout:
        """Modes begin to end - 1."""
        return cast(Layout, _call("take", self, begin, end))

    def append(self: LayoutLike, *arguments: LayoutLike) -> Layout:
        """append(M): M as the last mode; append(rank, M): padded with M to `rank` modes."""
        return cast(Layout, _call("append", self, *arguments))

    def prepend(self: LayoutLike, *arguments: LayoutLike) -> Layout:
        """prepend(M): M as the first mode; prepend(rank, M): padded with M to `rank` modes."""
        return cast(Layout, _call("prepend", self, *arguments))

    def replace(self: LayoutLike, mode: int, other: LayoutLike) -> Layout:
        """With another layout in the place of that mode."""
        return cast(Layout, _call("replace", self, mode, other))

    def slice(self: LayoutLike, coordinate: Coordinate) -> Layout:
        """The modes at which the coordinate has None: slice((None, 3))."""
        return cast(Layout, _call("slice", self, coordinate))

    def with_shape(self: LayoutLike, *shape: IntTuple) -> Layout:
        """The same elements in another shape."""
        return cast(Layout, _call("with_shape", self, *shape))

    def upcast(self: LayoutLike, factor: int) -> Layout:
        """In elements `factor` times as wide."""
        return cast(Layout, _call("upcast", self, factor))

    def downcast(self: LayoutLike, factor: int) -> Layout:
        """In elements of which `factor` make one."""
        return cast(Layout, _call("downcast", self, factor))

    def recast(self: LayoutLike, old_bits: int, new_bits: int) -> Layout:
        """In elements of another width."""
        return cast(Layout, _call("recast", self, old_bits, new_bits))

    def max_common_vector(self: LayoutLike, other: LayoutLike) -> int:
        """How many elements lie side by side in both."""
        return cast(int, _call("max_common_vector", self, other))

    def max_common_layout(self: LayoutLike, other: LayoutLike) -> Layout:
        """The layout of those elements."""
        return cast(Layout, _call("max_common_layout", self, other))

    def nullspace(self: LayoutLike) -> Layout:
        """The indices that are mapped to 0."""
        return cast(Layout, _call("nullspace", self))

    def size(self: LayoutLike, *mode: int) -> int:
        """The number of elements, of the layout or of a mode (nested, where several numbers are given)."""
        return cast(int, _call("size", self, *mode))

    def cosize(self: LayoutLike, *mode: int) -> int:
        """1 + the greatest offset."""
        return cast(int, _call("cosize", self, *mode))

    def rank(self: LayoutLike, *mode: int) -> int:
        """The number of modes."""
        return cast(int, _call("rank", self, *mode))

    def depth(self: LayoutLike, *mode: int) -> int:
        """How deep the modes are nested."""
        return cast(int, _call("depth", self, *mode))


def crd2idx(coordinate: Coordinate, shape: LayoutLike, stride: IntTuple | None = None) -> int:
    """The index of a coordinate in a shape, or its offset in a layout, or under strides."""
    return cast(int, _call("crd2idx", coordinate, shape, *(() if stride is None else (stride,))))


def idx2crd(index: int | tuple[Any, ...], shape: LayoutLike, stride: IntTuple | None = None) -> IntTuple:
    """The coordinate of an index in a shape, or of an offset in a layout, or under strides."""
    return cast(IntTuple, _call("idx2crd", index, shape, *(() if stride is None else (stride,))))


def _strides_along(axis: int, strides: str) -> str:
    """Strides of coordinates (2@1) as integers: those along one axis, and zeros."""
    return re.sub(r"(-?\d+)(?:@(\d+))?", lambda stride: stride[1] if stride[2] == str(axis) else "0", strides)


def _form(form: str) -> int:
    if not isinstance(form, str) or form not in _FORMS:
        raise LayoutError(f"form is {shown(form)}; it must be 'svg', 'text' or 'latex'")
    return _FORMS[form]


def _unmasked(array: Any) -> Any:
    if isinstance(array, np.ma.MaskedArray):
        raise LayoutError("the array is a masked one, and masks are not looked at: use .filled()")
    return array


def _indices(values: Any) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(_unmasked(values))
    except (TypeError, ValueError) as error:
        raise LayoutError(f"{shown(values)} makes no array of indices: {error}") from None
    if array.size == 0 and isinstance(values, list):  # which NumPy takes for floats
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise LayoutError(f"indices are of type {array.dtype}; integers are needed")
    if array.dtype.kind == "u" and array.size and array.max() > 2**62:
        raise LayoutError(f"an index is {array.max()}; an integer exceeds 2^62")
    return array.astype(np.int64, copy=False)
