"""The C interface's GEMMs of groups and of fp8 with scales of blocks, and the steps before them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import byref
from typing import Any

from ._library import LEFT_OUT, GemmInputsArguments, GroupedGemmArguments, flag, int32, integer, library
from ._places import Place
from ._problems import CODES, Operand, check_apart, row_distance, rows_of, unpacked
from .errors import ArgumentError

BLOCK = 128
# tegula_scales, tegula_grouping, tegula_input_step
NO_SCALES, ROWS_BY_BLOCKS, ROWS_BY_ROWS = 1, 2, 3
NO_GROUPS, CONTIGUOUS, MASKED, OF_K = 0, 1, 2, 3
_QUANTIZE_ROWS, _QUANTIZE_BLOCKS, _TRANSFORM_SCALES, _GROUP_BOUNDS = 0, 1, 2, 3
# Elements in 16 bytes: TMA loads from multiples of these.
UNIT = {"f16": 8, "bf16": 8, "e4m3": 16, "e5m2": 16, "e2m1": 32}
FP8, BF16, RESULTS = ("e4m3", "e5m2"), ("bf16", "f16"), ("bf16", "f16", "f32")


def ceil_div(x: int, y: int) -> int:
    """x / y rounded up. Raises ArgumentError for what are no integers, and for a y below 1."""
    divisor = integer("ceil_div: y", y)
    if divisor < 1:
        raise ArgumentError(f"ceil_div: y is {y}; it must be at least 1.")
    return -(-integer("ceil_div: x", x) // divisor)


def align(x: int, y: int) -> int:
    """x rounded up to a multiple of y. Raises ArgumentError as ceil_div does."""
    return ceil_div(x, y) * y


def _launch(operation: str, place: Place, name: str, arguments: ctypes.Structure) -> None:
    """Runs it. What the library refuses begins with the caller's function, and not with the library's."""
    try:
        place.launch(getattr(library, f"tegula_{name}"), arguments)
    except ArgumentError as error:
        raise ArgumentError(str(error).replace(f"{name}: ", f"{operation}: ", 1)) from None


def _stride_for_tma(scales: Operand) -> int | None:
    """The distance of the blocks of rows' scales, (rows, blocks) or (groups, rows, blocks), where they lie as TMA reads them:
    the rows of all groups one after the other, blocks a multiple of 16 bytes apart. Else None."""
    *of_rows, blocks = scales.shape
    rows = 1
    for extent, stride in zip(reversed(of_rows), reversed(scales.strides[:-1])):
        if extent > 1 and stride != rows:
            return None
        rows *= extent
    apart = scales.strides[-1] if blocks > 1 else align(rows, 4)
    return apart if apart % 4 == 0 and apart >= rows and scales.address % 16 == 0 else None


class Inputs:
    """The steps before a GEMM. `operation` begins the sentences that refuse."""

    def __init__(self, operation: str, place: Place) -> None:
        self.operation, self.place = operation, place

    def quantized(self, x: Any, power_of_two: bool, of_blocks: bool) -> tuple[Any, Any]:
        """e4m3 of (rows, columns), and its scales: of rows (blocks, rows up to a multiple of 4), else (blocks, blocks).
        Rows of e4m3 are a multiple of 16 bytes apart, so that a GEMM can load them."""
        of = self.place.operand(self.operation, "x", x, ("bf16", "f32"))
        power_of_two = flag(f"{self.operation}: use_ue8m0", power_of_two)
        if len(of.shape) != 2:
            remedy = ": cast each matrix, and stack the results" if len(of.shape) == 3 else ""
            raise ArgumentError(f"{self.operation}: x has the shape {of.shape}; (rows, columns) is needed{remedy}.")
        rows, columns = of.shape
        blocks = ceil_div(columns, BLOCK)
        apart = align(columns, UNIT["e4m3"])
        q = self.place.empty((rows, apart), "e4m3")
        scales = self.place.empty((ceil_div(rows, BLOCK), blocks) if of_blocks else (blocks, align(rows, 4)), "f32")
        if 0 not in of.shape:
            g = self._arguments(_QUANTIZE_BLOCKS if of_blocks else _QUANTIZE_ROWS)
            g.in_x, g.out, g.power_of_two = CODES[of.type], CODES["e4m3"], power_of_two
            g.rows, g.columns, g.x, g.ldx, g.ldq = rows, columns, of.address, rows_of(self.operation, of, "a row"), apart
            g.q = self._address(q)
            g.scales = self._address(scales)
            _launch(self.operation, self.place, "gemm_inputs", g)
        return q[:, :columns], scales

    def transformed(self, scales: Any) -> Any:
        """Scales of rows, (rows, blocks) or (groups, rows, blocks), as TMA reads them: (blocks, all rows up to a multiple of 4)."""
        of = self.place.operand(self.operation, "scales", scales)
        *of_rows, blocks = of.shape
        ld = row_distance(of)
        if ld is None or (len(of_rows) == 2 and of_rows[0] > 1 and of.strides[0] != of_rows[1] * ld):
            scales = self.place.contiguous(scales)
            of, ld = self.place.operand(self.operation, "scales", scales), blocks
        rows = of_rows[0] * of_rows[-1] if len(of_rows) == 2 else of_rows[0]
        result = self.place.empty((blocks, align(rows, 4)), "f32")
        if 0 not in of.shape:
            g = self._arguments(_TRANSFORM_SCALES)
            g.rows, g.columns, g.x, g.ldx = rows, blocks, of.address, ld
            g.scales = self._address(result)
            _launch(self.operation, self.place, "gemm_inputs", g)
        return result

    def bounds(self, group_of_row: Operand, groups: int) -> Any:
        """Where the groups begin and end, (2, groups)."""
        result = self.place.empty((2, groups), "i32")
        g = self._arguments(_GROUP_BOUNDS)
        g.rows, g.groups, g.x = group_of_row.shape[0], groups, group_of_row.address
        of = self.place.integers(self.operation, "bounds", result)
        g.begins, g.ends = of.address, of.address + 4 * groups
        _launch(self.operation, self.place, "gemm_inputs", g)
        return result

    @staticmethod
    def _arguments(step: int) -> GemmInputsArguments:
        g = GemmInputsArguments()
        library.tegula_gemm_inputs_arguments_init(byref(g), ctypes.sizeof(g))
        g.step = step
        return g

    def _address(self, array: Any) -> int:
        return self.place.operand(self.operation, "result", array).address


def check_begin(operation: str, what: str, begin: int, group: int, type: str) -> None:
    """Refuses a group of k that TMA cannot load. `what` is a value of the caller's, and where the group begins."""
    if begin % UNIT[type]:
        raise ArgumentError(
            f"{operation}: {what} is {begin}, and group {group} begins there; it must be a multiple of {UNIT[type]}, which "
            f"are 16 bytes of {type}."
        )


def check_counts(operation: str, name: str, counts: Iterable[int], m: int) -> None:
    """Refuses groups that have more rows than their matrices."""
    for group, count in enumerate(counts):
        if not 0 <= count <= m:
            raise ArgumentError(f"{operation}: {name}[{group}] is {count}; it must be from 0 to m = {m}.")


def _integers(operation: str, place: Place, name: str, array: Any, count: int) -> Operand:
    of = place.integers(operation, name, array)
    if of.shape != (count,) or (count > 1 and of.strides != (1,)):
        raise ArgumentError(f"{operation}: {name} has the shape {of.shape}; {count} contiguous int32 are needed.")
    return of


def check_sizes(operation: str, place: Place, ks: Sequence[int], ks_tensor: Any) -> None:
    """Refuses groups of k of which the host is told something else than the device, where that can be seen."""
    _integers(operation, place, "ks_tensor", ks_tensor, len(ks))
    values = place.values(ks_tensor)
    if values is not None and list(values) != list(ks):
        raise ArgumentError(f"{operation}: ks_tensor is {[int(k) for k in values]}, and ks is {list(ks)}; they must be equal.")


def without_k(d: Any, c: Any, computed: Iterable[Any]) -> None:
    """What a GEMM without k is: C or zeros, at the indices of D that are computed."""
    for index in computed:
        d[index] = 0 if c is None else c[index]


class GroupedGemm:
    """D = A B^T + C for each group, of operands that lie anywhere: the C interface's arguments but for groups and scales.

    a: (m, k), masked (groups, m, k); b: (n, k), of groups of rows (groups, n, k); d: (m, n), masked and of groups of k
    (groups, m, n). `turned` names those of a and b that the caller has the other way round, (k, m). k is contiguous in a
    and b, n in d. Where one of m, n, k and groups is 0, nothing is to be launched: `is_empty`.
    """

    def __init__(self, operation: str, grouping: int, a: Operand, b: Operand, groups: int | None = None, turned: str = "") -> None:
        """`groups`: how many, where b does not say it. Raises ArgumentError."""
        self.operation, self.grouping, self.turned = operation, grouping, turned
        of_rows = grouping in (CONTIGUOUS, MASKED)
        self._of_form(a, grouping == MASKED, "m", "k", "a" in turned)
        self._of_form(b, of_rows, "n", "k", "b" in turned)
        along_a, along_b = (-2 if name in turned else -1 for name in "ab")
        self.groups = b.shape[0] if of_rows else 1 if groups is None else groups
        self.m, self.n, self.k = a.shape[-3 - along_a], b.shape[-3 - along_b], a.elements(along_a)
        if b.elements(along_b) != self.k:
            raise ArgumentError(f"{operation}: {a.name} has the shape {a.shape}, and {b.name} {b.shape}; k must be the same.")
        if grouping == MASKED and a.shape[0] != self.groups:
            raise ArgumentError(f"{operation}: {a.name} has the shape {a.shape}, and {b.name} {b.shape}; the groups must be the same.")
        if a.type != b.type and not {a.type, b.type} <= set(FP8):
            raise ArgumentError(f"{operation}: {a.name} is of {a.type}, and {b.name} of {b.type}; they must have one type.")
        self.type, self._operands = a.type, (a, b)
        self.shape_d = (self.groups, self.m, self.n) if grouping in (MASKED, OF_K) else (self.m, self.n)
        self.is_empty = 0 in (self.groups, self.m, self.n, self.k)
        self.arguments = g = GroupedGemmArguments()
        library.tegula_grouped_gemm_arguments_init(byref(g), ctypes.sizeof(g))
        g.grouping, g.groups, g.m, g.n, g.k = grouping, self.groups, self.m, self.n, self.k
        g.in_a, g.in_b, g.scales = CODES[a.type], CODES[b.type], NO_SCALES
        if not self.is_empty:
            g.a, g.b = a.address, b.address
            g.lda, _ = self._loaded(a, along_a, grouping == MASKED)
            g.ldb, g.b_group_stride = self._loaded(b, along_b, False)

    def into(self, d: Operand, c: Operand | None) -> None:
        """Says where D and C are. Raises ArgumentError."""
        g = self.arguments
        g.out = CODES[d.type]
        for x, name in ((d, "d"), (c, "c")):
            if x is None:
                continue
            if x.type != d.type:
                raise ArgumentError(f"{self.operation}: {x.name} is of {x.type}, and {d.name} of {d.type}; they must have one type.")
            if x.shape != self.shape_d:
                raise ArgumentError(f"{self.operation}: {x.name} has the shape {x.shape}, and the result's is {self.shape_d}.")
            if self.is_empty:
                continue
            ld, between = self._lines(x, -1, "n", self.grouping == MASKED)
            setattr(g, name, x.address)
            setattr(g, f"ld{name}", ld)
            setattr(g, f"{name}_group_stride", between)
        if self.is_empty:
            return
        if self.grouping == OF_K:
            self._apart(d)
        if c is not None and c.address == d.address and c.strides != d.strides:
            raise ArgumentError(
                f"{self.operation}: {c.name} and {d.name} begin at one address and have strides of {c.strides} and {d.strides} elements; "
                "in place they must be equal."
            )
        in_place = c is not None and c.address == d.address
        check_apart(self.operation, d, (*self._operands, *(() if c is None or in_place else (c,))))

    def _of_form(self, x: Operand, grouped: bool, rows: str, along: str, turned: bool) -> None:
        form = [*(["groups"] if grouped else []), *((along, rows) if turned else (rows, along))]
        if len(x.shape) != len(form):
            raise ArgumentError(f"{self.operation}: {x.name} has the shape {x.shape}; ({', '.join(form)}) is needed.")

    def _lines(self, x: Operand, axis: int, contiguous: str, through: bool) -> tuple[int, int]:
        """The distances of rows, which lie along an axis, and of groups; `through`: the rows of all must follow each other."""
        ld = rows_of(self.operation, x, contiguous, axis)
        if len(x.shape) == 2:
            return unpacked(x.type, ld), LEFT_OUT
        rows, between = x.shape[-3 - axis], x.strides[0]
        if through and x.shape[0] > 1:
            ld = max(ld, between) if rows == 1 else ld
            if between != rows * ld:
                raise ArgumentError(
                    f"{self.operation}: {x.name} has strides of {x.strides} elements, and its groups must follow each other: "
                    f"{x.remedy(axis)}."
                )
        return unpacked(x.type, ld), unpacked(x.type, between)

    def _loaded(self, x: Operand, axis: int, through: bool) -> tuple[int, int]:
        """The distances of A or B, which TMA loads."""
        ld, between = self._lines(x, axis, "k", through)
        unit, groups = UNIT.get(x.type, 1), x.shape[0] if len(x.shape) == 3 else 1
        if x.address % 16:
            raise ArgumentError(
                f"{self.operation}: {x.name} begins {x.address % 16} bytes past a multiple of 16; it must begin at one: copy it."
            )
        rows = x.shape[-3 - axis] * (groups if through else 1)
        if (rows > 1 and ld % unit) or (groups > 1 and between % unit):
            remedy = x.remedy(axis) if self.k % unit == 0 else f"pad k = {self.k} with zeros to a multiple of {unit}"
            raise ArgumentError(
                f"{self.operation}: {x.name} has strides of {x.strides} elements of {x.type}; those that are not 1 must be "
                f"multiples of {unit}, 16 bytes: {remedy}."
            )
        return ld, between

    def _apart(self, d: Operand) -> None:
        """Refuses matrices of D that share memory."""
        (groups, m, n), (between, ld, _) = d.shape, d.strides
        if groups > 1 and between < (m - 1) * ld + n and (between < n or ld < (groups - 1) * between + n):
            raise ArgumentError(f"{self.operation}: {d.name} has strides of {d.strides} elements, and its groups must not overlap: {d.remedy()}.")


class PlacedGemm(GroupedGemm):
    """The same of arrays of a Place. Makes scales and groups member by member; `launch` runs it."""

    def __init__(
        self, operation: str, place: Place, grouping: int, a: Any, b: Any, d: Any, c: Any, *, scaled: bool = False, turned: str = ""
    ) -> None:
        """`scaled`: a and b are the elements of pairs. Raises ArgumentError."""
        self.place = place
        types, of_pair = (FP8, "[0]") if scaled else (BF16, "")
        of_a, of_b = (place.operand(operation, name + of_pair, x, types) for name, x in (("a", a), ("b", b)))
        of_d = place.result(operation, "d", d, RESULTS)
        if grouping == OF_K and len(of_d.shape) != 3:
            raise ArgumentError(f"{operation}: d has the shape {of_d.shape}; (groups, m, n) is needed.")
        super().__init__(operation, grouping, of_a, of_b, of_d.shape[0] if grouping == OF_K else None, turned)
        self.into(of_d, None if c is None else place.operand(operation, "c", c, RESULTS))
        self._d, self._c = d, c
        self._computed: Iterable[Any] = [...]  # indices of d, of a problem without k
        self._kept: list[Any] = []

    # --- scales

    def scale(self, scales_a: Any, scales_b: Any, by_blocks: bool) -> None:
        """Scales as DeepGEMM has them: of rows (rows, blocks of k), of B's blocks (blocks of n, blocks of k)."""
        g, blocks = self.arguments, ceil_div(self.k, BLOCK)
        g.scales = ROWS_BY_BLOCKS if by_blocks else ROWS_BY_ROWS
        of_groups = (self.groups,) if self.grouping == MASKED else ()
        of_b = (self.groups,) if self.grouping in (CONTIGUOUS, MASKED) else ()
        scales_a = self._scales("a", scales_a, (*of_groups, self.m, blocks))
        scales_b = self._scales("b", scales_b, (*of_b, ceil_div(self.n, BLOCK), blocks) if by_blocks else (self.n, blocks))
        if self.is_empty:
            return
        g.scale_a, g.scale_a_stride = self._row_scales(scales_a)
        if by_blocks:
            g.scale_b = self._keep(self.place.contiguous(scales_b)).address
        else:
            g.scale_b, g.scale_b_stride = self._row_scales(scales_b)

    def scale_columns(self, scales_a: Any, scales_b: Any, blocks: int) -> None:
        """Scales of groups of k: (blocks of all groups, rows)."""
        g = self.arguments
        g.scales = ROWS_BY_ROWS
        for name, scales, rows in (("a", scales_a, self.m), ("b", scales_b, self.n)):
            self._check_scales(name, scales, (blocks, rows))
            if self.is_empty:
                continue
            # The library counts on as many blocks as there can be, and refuses a D that lies in their memory.
            padded = self.place.empty((max(blocks, self.k // BLOCK + self.groups), align(rows, 4)), "f32")
            padded[:blocks, :rows] = scales
            setattr(g, f"scale_{name}", self._keep(padded).address)
            setattr(g, f"scale_{name}_stride", align(rows, 4))

    def _check_scales(self, name: str, scales: Any, shape: tuple[int, ...]) -> None:
        of = self.place.operand(self.operation, f"{name}[1]", scales, ("f32",))
        if of.shape != shape:
            raise ArgumentError(f"{self.operation}: {name}[1] has the shape {of.shape}; {shape} is needed, {name}'s scales.")

    def _scales(self, name: str, scales: Any, shape: tuple[int, ...]) -> Any:
        """The caller's, turned as the operand is."""
        if name not in self.turned:
            self._check_scales(name, scales, shape)
            return scales
        self._check_scales(name, scales, (*shape[:-2], shape[-1], shape[-2]))
        return scales.swapaxes(-1, -2)

    def _keep(self, array: Any) -> Operand:
        self._kept.append(array)
        return self.place.operand(self.operation, "scales", array)

    def _keep_integers(self, array: Any) -> int:
        self._kept.append(array)
        return self.place.integers(self.operation, "bounds", array).address

    def _row_scales(self, scales: Any) -> tuple[int, int]:
        """The address and the stride of rows' scales as TMA reads them: the caller's where they lie so, else a copy."""
        of = self._keep(scales)
        stride = _stride_for_tma(of)
        if stride is not None:
            return of.address, stride
        copy = self._keep(Inputs(self.operation, self.place).transformed(scales))
        return copy.address, copy.shape[1]

    # --- groups

    def groups_of_rows(self, group_of_row: Any) -> None:
        """The group of each row, int32, -1 where it is none's."""
        of = _integers(self.operation, self.place, "m_indices", group_of_row, self.m)
        values = self.place.values(group_of_row)
        if values is not None:
            begins = [i for i in range(self.m) if i == 0 or values[i] != values[i - 1]]
            met = [int(values[i]) for i in begins if values[i] != -1]
            if len(met) != len(set(met)) or any(not 0 <= group < self.groups for group in met):
                raise ArgumentError(
                    f"{self.operation}: m_indices has the groups {met} one after the other; each must be -1 or below "
                    f"{self.groups}, and a group's rows must be neighbours."
                )
        if self.is_empty:
            self._computed = [(group_of_row >= 0) & (group_of_row < self.groups)]
            return
        address = self._keep_integers(Inputs(self.operation, self.place).bounds(of, self.groups))
        self.arguments.group_begins, self.arguments.group_ends = address, address + 4 * self.groups

    def rows_of_groups(self, rows: Any, expected: Any) -> None:
        """How many rows each group of a masked problem has, int32."""
        self.arguments.group_ends = _integers(self.operation, self.place, "masked_m", rows, self.groups).address
        values = self.place.values(rows)
        if values is not None:
            check_counts(self.operation, "masked_m", values, self.m)
        if expected is not None:
            count = int32(f"{self.operation}: expected_m", expected)
            if count < 0:
                raise ArgumentError(f"{self.operation}: expected_m is {count}; it must be at least 0.")
            self.arguments.expected_rows = min(max(count, 1), self.m)
        if self.is_empty:
            self._computed = [(group, slice(0, count)) for group, count in enumerate(rows.tolist())]

    def columns_of_groups(self, sizes: Sequence[int], sizes_there: Any) -> None:
        """How many columns each group has, on the host and, int32, where the operands are."""
        check_sizes(self.operation, self.place, sizes, sizes_there)
        begin = 0
        for group, size in enumerate(sizes):
            if size:
                check_begin(self.operation, f"the sum of ks[:{group}]", begin, group, self.type)
            begin += size
        bounds = self.place.empty((2, self.groups), "i32")
        bounds[1] = sizes_there.cumsum(0)
        begins = self._keep_integers(bounds)
        self.arguments.group_ends = begins + 4 * self.groups
        # A group that begins where TMA cannot load is NaN, even without columns: those behind a ragged end go to column 0.
        if begin % UNIT[self.type] and sizes[-1] == 0:
            bounds[1] *= sizes_there > 0
            bounds[0] = bounds[1] - sizes_there
            self.arguments.group_begins = begins

    def launch(self) -> None:
        if not self.is_empty:
            _launch(self.operation, self.place, "grouped_gemm", self.arguments)
        elif self.k == 0:
            without_k(self._d, self._c, self._computed)
