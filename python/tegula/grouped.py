"""GEMMs of groups, with and without scales of blocks, on NumPy arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from . import _arrays, _problems
from ._block_scales import ROWS_OF_PIECE, SCALES_OF_PIECE, block_scales, check_block_scale
from ._gpu_arrays import is_on_gpu
from ._grouped import BF16, CONTIGUOUS, FP8, MASKED, OF_K, GroupedGemm, check_begin, check_counts, without_k
from ._library import flag, library
from ._problems import Operand
from .errors import ArgumentError, listed, shown
from .machine import Machine, simulated

_NAME = "grouped_gemm"


_TYPES = (*BF16, *FP8, "e2m1")  # on one machine or another
_BY = {"rows": CONTIGUOUS, "masked": MASKED, "k": OF_K}


def _bounds(name: str, array: Any, groups: int | None) -> Operand:
    of = _arrays.integers(_NAME, name, array)
    if len(of.shape) != 1 or (of.shape[0] > 1 and of.strides != (1,)) or groups not in (None, of.shape[0]):
        wanted = "one contiguous int32 for each group is" if groups is None else f"{groups} contiguous int32 are"
        raise ArgumentError(f"{_NAME}: {name} has the shape {of.shape}; {wanted} needed.")
    return of


def _check_types(a: Operand, b: Operand, block_scale: Any, capability: int) -> None:
    """Refuses what the kernels of a machine do not multiply."""
    taken: tuple[str, ...]
    if block_scale is None:
        taken = BF16 if capability == 90 else BF16 + FP8
        why = f"the machine is sm_{capability} and block_scale is left out"
    else:
        taken, why = ("e2m1",) if block_scale == "nv" else (*FP8, "e2m1"), f"block_scale is {shown(block_scale)}"
    for x in (a, b):
        if x.type not in taken:
            raise ArgumentError(f"{_NAME}: {x.name} is of {x.type}, and {why}; there {listed(taken)} is needed.")


def _ranges(begins: Any, ends: Any, limit: int, of: str) -> list[tuple[int, int]]:
    """Where groups begin and end, of `limit` rows or columns. Raises ArgumentError for what is none."""
    last = [int(end) for end in ends]
    first = [0, *last[:-1]][: len(last)] if begins is None else [int(begin) for begin in begins]
    for group, (begin, end) in enumerate(zip(first, last)):
        if begins is not None and not 0 <= begin <= limit:
            raise ArgumentError(f"{_NAME}: group_begins[{group}] is {begin}; it must be from 0 to the {limit} {of} of a.")
        if not begin <= end <= limit:
            raise ArgumentError(
                f"{_NAME}: group_ends[{group}] is {end}; it must be from {begin}, where the group begins, to the {limit} {of} of a."
            )
    return list(zip(first, last))


def _check_ranges(ranges: list[tuple[int, int]], gemm: GroupedGemm, block: int, has_begins: bool) -> None:
    """Refuses groups that would be written by two, or that do not begin where TMA can load them. `block`: of scales, or 0."""
    full = [(begin, end, group) for group, (begin, end) in enumerate(ranges) if begin < end]
    for begin, end, group in full:
        what = f"group_begins[{group}]" if has_begins else f"group_ends[{group - 1}]"
        if gemm.grouping == OF_K:
            check_begin(_NAME, what, begin, group, gemm.type)
            if gemm.type == "e2m1" and end % 2:
                raise ArgumentError(f"{_NAME}: group_ends[{group}] is {end}; it must be even, for two elements of e2m1 share a byte.")
        piece = 0 if block == 0 else SCALES_OF_PIECE * block if gemm.grouping == OF_K else ROWS_OF_PIECE
        if piece and begin % piece:
            raise ArgumentError(
                f"{_NAME}: {what} is {begin}, and group {group} begins there; it must be a multiple of {piece}, where a piece of "
                "scales begins."
            )
    if gemm.grouping == CONTIGUOUS:
        for (begin, end, group), (next_begin, _, other) in itertools.pairwise(sorted(full)):
            if next_begin < end:
                raise ArgumentError(
                    f"{_NAME}: group_begins[{other}] is {next_begin}, and group {group} has the rows from {begin} to {end}; groups "
                    "must not overlap."
                )


def _result_type(of_a: str, out_dtype: Any) -> str:
    if out_dtype is not None and (not isinstance(out_dtype, str) or out_dtype not in ("f16", "bf16", "f32")):
        raise ArgumentError(f"{_NAME}: out_dtype is {shown(out_dtype)}; it must be 'f16', 'bf16' or 'f32'.")
    return out_dtype or ("bf16" if of_a in ("e4m3", "e5m2", "e2m1") else of_a)


def grouped_gemm(
    a: Any,
    b: Any,
    group_ends: Any,
    *,
    group_begins: Any = None,
    by: str = "rows",
    c: Any = None,
    block_scale: str | None = None,
    block_scale_a: Any = None,
    block_scale_b: Any = None,
    dtype: str | None = None,
    dtype_b: str | None = None,
    out_dtype: str | None = None,
    out: Any = None,
    machine: Machine | None = None,
    report: bool = False,
) -> Any:
    """D = A B + C for each group, of NumPy arrays on a simulated machine. k is contiguous in a and b, n in the result.

    by        a               b               result          group_ends, int32
    "rows"    (m, k)          (groups, k, n)  (m, n)          where each group's rows end: running sums
    "masked"  (groups, m, k)  (groups, k, n)  (groups, m, n)  how many of its rows each group uses
    "k"       (m, k)          (k, n)          (groups, m, n)  where each group's columns of a end: running sums

    group_begins: where they begin, if not where the group before ends; there is none of "masked". What is no group's stays as
    `out` has it, and is 0 without. c: as the result. a and b begin at multiples of 16 bytes, and so do their rows, matrices
    and, of "k", groups. A problem without rows, columns or groups is none, and one without k gives c, or zeros.

    Types: float16 and bfloat16 on an sm_90 or sm_100, float8_e4m3fn and float8_e5m2 on an sm_100; of fp8 with scales of 128
    see tegula.deep_gemm. block_scale "mx" and "nv" with scales as tegula.gemm has them, on an sm_100: block_scale_a is
    (.., m, blocks), block_scale_b (.., blocks, n), and e2m1 is uint8 with `dtype` "e2m1". Groups of rows begin at multiples
    of 128 rows then, and groups of k at multiples of 128 columns with "mx", of 64 with "nv". Raw bits, out_dtype and machine are as tegula.gemm has them.

    Returns D, new or `out`, and with `report` also the checker's Report; without it findings are a FindingError.
    Raises ArgumentError for what is not computed, with a sentence.
    """
    if is_on_gpu(a):
        raise ArgumentError(f"{_NAME}: a is on a GPU; NumPy arrays are computed, and tegula.deep_gemm has groups on a GPU.")
    flag(f"{_NAME}: report", report)
    if not isinstance(by, str) or by not in _BY:
        raise ArgumentError(f"{_NAME}: by is {shown(by)}; it must be 'rows', 'masked' or 'k'.")
    on = simulated(_NAME, machine)
    raw = _arrays.is_raw(a)
    said_of_b = dtype_b if dtype_b is not None else dtype if _arrays.is_raw(b) else None
    of_a = _arrays.operand(_NAME, "a", a, dtype, types=_TYPES)
    of_b = _arrays.operand(_NAME, "b", b, said_of_b, "dtype" if dtype_b is None else "dtype_b", _TYPES)
    check_block_scale(_NAME, block_scale)
    _check_types(of_a, of_b, block_scale, on.compute_capability)
    ends = _bounds("group_ends", group_ends, None)
    gemm = GroupedGemm(_NAME, _BY[by], of_a, of_b, ends.shape[0], turned="b")
    _bounds("group_ends", group_ends, gemm.groups)
    scales = block_scales(_NAME, block_scale, of_a, block_scale_a, of_b, block_scale_b)
    out_type = _result_type(of_a.type, out_dtype)
    if out is None:
        out = np.zeros(gemm.shape_d, dtype=_arrays.numpy_type(out_type, raw))
    of_c = None if c is None else _arrays.operand(_NAME, "c", c, out_type if _arrays.is_raw(c) else None, types=(out_type,))
    gemm.into(_arrays.result(_NAME, "out", out, out_type, (out_type,)), of_c)

    g = gemm.arguments
    if by == "masked":
        g.group_ends = ends.address
        if group_begins is not None:
            raise ArgumentError(f"{_NAME}: group_begins is given, and by is 'masked'; a group begins at its first row: leave it out.")
        check_counts(_NAME, "group_ends", group_ends, gemm.m)
        computed: list[Any] = [(group, slice(0, int(count))) for group, count in enumerate(group_ends)]
    else:
        if group_begins is not None:
            _bounds("group_begins", group_begins, gemm.groups)
        limit, what = (gemm.k, "columns") if by == "k" else (gemm.m, "rows")
        ranges = _ranges(group_begins, group_ends, limit, what)
        _check_ranges(ranges, gemm, 0 if scales is None else scales.block, group_begins is not None)
        computed = [...] if by == "k" else [slice(begin, end) for begin, end in ranges]
        # A group of k that begins where TMA cannot load is NaN, even without columns: those without go to column 0.
        bounds = np.array([[limits[i] if limits[0] < limits[1] else 0 for limits in ranges] for i in range(2)], np.int32)
        g.group_begins, g.group_ends = bounds.ctypes.data, bounds[1:].ctypes.data
    if gemm.is_empty:
        if report:
            raise ArgumentError(f"{_NAME}: report is True, and a problem without rows, columns, groups or k is not launched; it must be False.")
        if gemm.k == 0:
            without_k(out, c, computed)
        return out
    if scales is not None:
        g.block_scale, g.block_scale_a, g.block_scale_b = scales.code, scales.a.ctypes.data, scales.b.ctypes.data
    found = _problems.launch(library.tegula_grouped_gemm, on, g, None, report)
    return out if found is None else (out, found)
