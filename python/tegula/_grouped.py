"""The C interface's GEMMs of groups and of fp8 with scales of blocks, and the steps before them, on arrays of a Place."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any

from ._library import LEFT_OUT, GemmInputsArguments, GroupedGemmArguments, flag, int32, integer, library
from ._places import Place
from ._problems import CODES, Operand
from .errors import ArgumentError

BLOCK = 128
# tegula_scales, tegula_grouping, tegula_input_step
NO_SCALES, ROWS_BY_BLOCKS, ROWS_BY_ROWS = 1, 2, 3
NO_GROUPS, CONTIGUOUS, MASKED, OF_K = 0, 1, 2, 3
_QUANTIZE_ROWS, _QUANTIZE_BLOCKS, _TRANSFORM_SCALES, _GROUP_BOUNDS = 0, 1, 2, 3


def ceil_div(x: int, y: int) -> int:
    """x / y rounded up. Raises ArgumentError for what are no integers, and for a y below 1."""
    divisor = integer("ceil_div: y", y)
    if divisor < 1:
        raise ArgumentError(f"ceil_div: y is {y}; it must be at least 1.")
    return -(-integer("ceil_div: x", x) // divisor)


def align(x: int, y: int) -> int:
    """x rounded up to a multiple of y. Raises ArgumentError as ceil_div does."""
    return ceil_div(x, y) * y


class Inputs:
    """The steps before a GEMM. `operation` begins the sentences that refuse."""

    def __init__(self, operation: str, place: Place) -> None:
        self.operation, self.place = operation, place

    def quantized(self, x: Any, power_of_two: bool, of_blocks: bool) -> tuple[Any, Any]:
        """e4m3 of (rows, columns), and its scales: of rows (blocks, rows up to a multiple of 4), else (blocks, blocks)."""
        of = self.place.operand(self.operation, "x", x)
        if len(of.shape) != 2 or 0 in of.shape:
            raise ArgumentError(f"{self.operation}: x has the shape {of.shape}; (rows, columns) is needed, and not empty.")
        rows, columns = of.shape
        if of.strides[1] != 1:
            raise ArgumentError(f"{self.operation}: x has rows that are not contiguous: use {of.remedy}.")
        if of.type not in ("bf16", "f32"):
            raise ArgumentError(f"{self.operation}: x is of {of.type}; bf16 or f32 is needed.")
        q = self.place.empty((rows, columns), "e4m3")
        blocks = ceil_div(columns, BLOCK)
        scales = self.place.empty((ceil_div(rows, BLOCK), blocks) if of_blocks else (blocks, align(rows, 4)), "f32")
        g = self._arguments(_QUANTIZE_BLOCKS if of_blocks else _QUANTIZE_ROWS)
        g.in_x, g.out, g.power_of_two = CODES[of.type], CODES["e4m3"], flag(f"{self.operation}: use_ue8m0", power_of_two)
        g.rows, g.columns, g.x, g.ldx = rows, columns, of.address, max(of.strides[0], columns)
        g.q = self._address(q)
        g.scales = self._address(scales)
        self.place.launch(library.tegula_gemm_inputs, g)
        return q, scales

    def transformed(self, scales: Operand, rows: int, blocks: int) -> Any:
        """Scales of rows, (rows, blocks) with contiguous rows, as (blocks, rows up to a multiple of 4)."""
        result = self.place.empty((blocks, align(rows, 4)), "f32")
        g = self._arguments(_TRANSFORM_SCALES)
        g.rows, g.columns, g.x, g.ldx = rows, blocks, scales.address, max(scales.strides[-2], blocks)
        g.scales = self._address(result)
        self.place.launch(library.tegula_gemm_inputs, g)
        return result

    def bounds(self, group_of_row: Operand, groups: int) -> Any:
        """Where the groups begin and end, (2, groups)."""
        result = self.place.empty((2, groups), "i32")
        g = self._arguments(_GROUP_BOUNDS)
        g.rows, g.groups, g.x = group_of_row.shape[0], groups, group_of_row.address
        of = self.place.integers(self.operation, "bounds", result)
        g.begins, g.ends = of.address, of.address + 4 * groups
        self.place.launch(library.tegula_gemm_inputs, g)
        return result

    @staticmethod
    def _arguments(step: int) -> GemmInputsArguments:
        g = GemmInputsArguments()
        library.tegula_gemm_inputs_arguments_init(byref(g), ctypes.sizeof(g))
        g.step = step
        return g

    def _address(self, array: Any) -> int:
        return self.place.operand(self.operation, "result", array).address


class GroupedGemm:
    """D = A B^T + C for each group. Makes the arguments member by member; `launch` runs them.

    a: (m, k), masked (groups, m, k); b: (n, k), of groups of rows (groups, n, k); d: (m, n), masked and of groups of k
    (groups, m, n). k is contiguous in a and b, n in d.
    """

    def __init__(self, operation: str, place: Place, grouping: int, a: Any, b: Any, d: Any, c: Any) -> None:
        """Raises ArgumentError."""
        self.operation, self.place, self._grouping = operation, place, grouping
        self._kept: list[Any] = []
        of_a, of_b, of_d = (place.operand(operation, name, x) for name, x in (("a", a), ("b", b), ("d", d)))
        many_b = grouping in (CONTIGUOUS, MASKED)
        self._of_rank(of_a, 3 if grouping == MASKED else 2, "(groups, m, k)" if grouping == MASKED else "(m, k)")
        self._of_rank(of_b, 3 if many_b else 2, "(groups, n, k)" if many_b else "(n, k)")
        grouped_d = grouping in (MASKED, OF_K)
        self._of_rank(of_d, 3 if grouped_d else 2, "(groups, m, n)" if grouped_d else "(m, n)")
        self.groups = of_b.shape[0] if many_b else of_d.shape[0] if grouping == OF_K else 1
        (m, k), n = of_a.shape[-2:], of_b.shape[-2]
        if of_b.shape[-1] != k:
            raise ArgumentError(f"{operation}: a has the shape {of_a.shape}, and b {of_b.shape}; k must be the same.")
        if grouping == MASKED and of_a.shape[0] != self.groups:
            raise ArgumentError(f"{operation}: a has the shape {of_a.shape}, and b {of_b.shape}; the groups must be the same.")
        self.shape_d = (self.groups, m, n) if grouped_d else (m, n)
        self.m, self.n, self.k, self.rows = m, n, k, m * self.groups if grouping == MASKED else m
        self.arguments = g = GroupedGemmArguments()
        library.tegula_grouped_gemm_arguments_init(byref(g), ctypes.sizeof(g))
        g.grouping, g.groups, g.m, g.n, g.k = grouping, self.groups, m, n, k
        g.in_a, g.in_b, g.out = CODES[of_a.type], CODES[of_b.type], CODES[of_d.type]
        g.scales = NO_SCALES
        g.a, g.b, g.d = of_a.address, of_b.address, of_d.address
        g.lda, _ = self._rows(of_a, "k", grouping == MASKED)
        g.ldb, g.b_group_stride = self._rows(of_b, "k", False)
        g.ldd, g.d_group_stride = self._output(of_d)
        if c is not None:
            of_c = place.operand(operation, "c", c)
            if of_c.type != of_d.type:
                raise ArgumentError(f"{operation}: c is of {of_c.type}, and d of {of_d.type}; they must have one type.")
            g.c = of_c.address
            g.ldc, g.c_group_stride = self._output(of_c)

    def _of_rank(self, x: Operand, rank: int, form: str) -> None:
        if len(x.shape) != rank or 0 in x.shape:
            raise ArgumentError(f"{self.operation}: {x.name} has the shape {x.shape}; {form} is needed, and not empty.")

    def _rows(self, x: Operand, contiguous: str, through: bool) -> tuple[int, int]:
        """The distances of rows and of groups; `through`: the rows of all groups must follow each other."""
        if x.strides[-1] != 1:
            raise ArgumentError(
                f"{self.operation}: {x.name} has strides of {x.strides} elements, and {contiguous} must be contiguous: use "
                f"{x.remedy}."
            )
        ld = max(x.strides[-2], x.shape[-1])
        between = x.strides[0] if len(x.shape) == 3 else LEFT_OUT
        if through and x.shape[0] > 1 and between != x.shape[1] * ld:
            raise ArgumentError(
                f"{self.operation}: {x.name} has strides of {x.strides} elements; its groups must follow each other: use "
                f"{x.remedy}."
            )
        return ld, between

    def _output(self, x: Operand) -> tuple[int, int]:
        if x.shape != self.shape_d:
            raise ArgumentError(f"{self.operation}: {x.name} has the shape {x.shape}, and the result's is {self.shape_d}.")
        return self._rows(x, "n", self._grouping == MASKED)

    # --- scales

    def scale(self, scales_a: Any, scales_b: Any, by_blocks: bool) -> None:
        """Scales as DeepGEMM has them: of rows (rows, blocks of k), of B's blocks (blocks of n, blocks of k)."""
        g, blocks = self.arguments, ceil_div(self.k, BLOCK)
        g.scales = ROWS_BY_BLOCKS if by_blocks else ROWS_BY_ROWS
        of_groups = (self.groups,) if self._grouping == MASKED else ()
        g.scale_a, g.scale_a_stride = self._row_scales("a's scales", scales_a, (*of_groups, self.m, blocks))
        if not by_blocks:
            g.scale_b, g.scale_b_stride = self._row_scales("b's scales", scales_b, (self.n, blocks))
            return
        of_b = (self.groups,) if self._grouping in (CONTIGUOUS, MASKED) else ()
        shape = (*of_b, ceil_div(self.n, BLOCK), blocks)
        g.scale_b = self._keep("b's scales", self.place.contiguous(self._scales("b's scales", scales_b, shape)), shape).address

    def scale_columns(self, scales_a: Any, scales_b: Any, blocks: int) -> None:
        """Scales of groups of k: (blocks of all groups, rows)."""
        g = self.arguments
        g.scales = ROWS_BY_ROWS
        for name, scales, rows in (("a", scales_a, self.m), ("b", scales_b, self.n)):
            shape = (blocks, rows)
            self._scales(f"{name}'s scales", scales, shape)
            padded = self.place.empty((blocks, align(rows, 4)), "f32")
            padded[:, :rows] = scales
            setattr(g, f"scale_{name}", self._keep(f"{name}'s scales", padded, tuple(padded.shape)).address)
            setattr(g, f"scale_{name}_stride", align(rows, 4))

    def _scales(self, name: str, scales: Any, shape: tuple[int, ...]) -> Any:
        of = self.place.operand(self.operation, name, scales)
        if of.type != "f32" or of.shape != shape:
            raise ArgumentError(f"{self.operation}: {name} are of {of.type} and have the shape {of.shape}; f32 of {shape} is needed.")
        return scales

    def _keep(self, name: str, array: Any, shape: tuple[int, ...]) -> Operand:
        self._kept.append(array)
        return self.place.operand(self.operation, name, self._scales(name, array, shape))

    def _row_scales(self, name: str, scales: Any, shape: tuple[int, ...]) -> tuple[int, int]:
        """The address and the stride of rows' scales as TMA reads them: the caller's where they lie so, else a copy."""
        of = self._keep(name, scales, shape)
        rows, blocks = self.rows if len(shape) == 3 else shape[0], shape[-1]
        along, across = of.strides[-2:]
        if len(shape) == 2 and along == 1 and (across % 4 == 0 or blocks == 1) and across >= rows and of.address % 16 == 0:
            return of.address, align(max(across, rows), 4)
        if across != 1 or (len(shape) == 3 and of.strides[0] != shape[1] * along):
            of = self._keep(name, self.place.contiguous(scales), shape)
        result = Inputs(self.operation, self.place).transformed(of, rows, blocks)
        return self._keep(name, result, tuple(result.shape)).address, align(rows, 4)

    # --- groups

    def groups_of_rows(self, group_of_row: Any) -> None:
        """The group of each row, int32, -1 where it is none's."""
        of = self._integers("m_indices", group_of_row, (self.m,))
        values = self.place.values(group_of_row)
        if values is not None:
            begins = [i for i in range(self.m) if i == 0 or values[i] != values[i - 1]]
            met = [int(values[i]) for i in begins if values[i] != -1]
            if len(met) != len(set(met)) or any(not 0 <= group < self.groups for group in met):
                raise ArgumentError(
                    f"{self.operation}: m_indices has the groups {met} one after the other; each must be -1 or below "
                    f"{self.groups}, and a group's rows must be neighbours."
                )
        bounds = Inputs(self.operation, self.place).bounds(of, self.groups)
        self._kept.append(bounds)
        begins_address = self.place.integers(self.operation, "bounds", bounds).address
        self.arguments.group_begins = begins_address
        self.arguments.group_ends = begins_address + 4 * self.groups

    def rows_of_groups(self, rows: Any, expected: Any) -> None:
        """How many rows each group of a masked problem has, int32."""
        self.arguments.group_ends = self._integers("masked_m", rows, (self.groups,)).address
        values = self.place.values(rows)
        if values is not None and any(not 0 <= value <= self.m for value in values):
            raise ArgumentError(f"{self.operation}: masked_m is {[int(v) for v in values]}; each must be from 0 to m = {self.m}.")
        if expected is not None:
            count = int32(f"{self.operation}: expected_m", expected)
            if count < 0:
                raise ArgumentError(f"{self.operation}: expected_m is {count}; it must be at least 0.")
            self.arguments.expected_rows = min(max(count, 1), self.m)

    def columns_of_groups(self, ends: Any) -> None:
        """Running sums of the groups' columns, int32."""
        self._kept.append(ends)
        self.arguments.group_ends = self._integers("ks_tensor", ends, (self.groups,)).address

    def _integers(self, name: str, array: Any, shape: tuple[int, ...]) -> Operand:
        of = self.place.integers(self.operation, name, array)
        if of.shape != shape or of.strides != (1,):
            raise ArgumentError(f"{self.operation}: {name} has the shape {of.shape}; {shape[0]} contiguous int32 are needed.")
        return of

    def launch(self) -> None:
        self.place.launch(library.tegula_grouped_gemm, self.arguments)
