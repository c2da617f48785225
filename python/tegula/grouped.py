"""GEMMs of groups, with and without scales of blocks, on NumPy arrays."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any, NamedTuple

import numpy as np

from . import _arrays, _problems
from ._block_scales import block_scales
from ._gpu_arrays import is_on_gpu
from ._grouped import CONTIGUOUS, MASKED, NO_SCALES, OF_K
from ._library import LEFT_OUT, GroupedGemmArguments, flag, library
from ._problems import CODES, Operand
from .errors import ArgumentError, shown
from .machine import Machine, simulated

_NAME = "grouped_gemm"


class _By(NamedTuple):
    """What a group has of the operands."""

    grouping: int  # tegula_grouping
    a: str
    b: str
    d: str


_BY = {
    "rows": _By(CONTIGUOUS, "(m, k)", "(groups, k, n)", "(m, n)"),
    "masked": _By(MASKED, "(groups, m, k)", "(groups, k, n)", "(groups, m, n)"),
    "k": _By(OF_K, "(m, k)", "(k, n)", "(groups, m, n)"),
}


def _of_form(x: Operand, form: str) -> None:
    if len(x.shape) != form.count(",") + 1 or 0 in x.shape:
        raise ArgumentError(f"{_NAME}: {x.name} has the shape {x.shape}; {form} is needed, and not empty.")


def _rows(x: Operand, along: int, contiguous: str, through: bool = False) -> tuple[int, int]:
    """The distances of rows, which lie along that axis, and of matrices; `through`: matrices must follow each other."""
    across = -3 - along
    if x.strides[along] != 1:
        raise ArgumentError(
            f"{_NAME}: {x.name} has strides of {x.strides} elements, and {contiguous} must be contiguous: use {x.remedy}."
        )
    ld = max(x.strides[across], x.shape[along])
    between = x.strides[0] if len(x.shape) == 3 else LEFT_OUT
    if through and len(x.shape) == 3 and x.shape[0] > 1 and between != x.shape[across] * ld:
        raise ArgumentError(f"{_NAME}: {x.name} has strides of {x.strides} elements; its groups must follow each other: use {x.remedy}.")
    elements = _problems.unpacked(x.type, ld)
    return elements, between if between == LEFT_OUT else _problems.unpacked(x.type, between)


def _bounds(name: str, array: Any, groups: int | None) -> Operand:
    of = _arrays.integers(_NAME, name, array)
    if len(of.shape) != 1 or of.strides != (1,) or of.shape[0] < 1 or groups not in (None, of.shape[0]):
        wanted = "one contiguous int32 for each group is" if groups is None else f"{groups} contiguous int32 are"
        raise ArgumentError(f"{_NAME}: {name} has the shape {of.shape}; {wanted} needed.")
    return of


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

    group_begins: where they begin, if not where the group before ends. What is no group's stays as `out` has it, and is 0
    without. c: as the result.

    Types: float16 and bfloat16 on an sm_90 or sm_100, float8_e4m3fn and float8_e5m2 on an sm_100; of fp8 with scales of 128
    see tegula.deep_gemm. block_scale "mx" and "nv" with scales as tegula.gemm has them, on an sm_100: block_scale_a is
    (.., m, blocks), block_scale_b (.., blocks, n), and e2m1 is uint8 with `dtype` "e2m1". Groups of rows begin at multiples
    of 128 rows then, and groups of k at multiples of 128 columns with "mx", of 64 with "nv"; one that does not has a result
    of NaN. Raw bits, out_dtype and machine are as tegula.gemm has them.

    Returns D, new or `out`, and with `report` also the checker's Report; without it findings are a FindingError.
    Raises ArgumentError for what is not computed, with a sentence.
    """
    if is_on_gpu(a):
        raise ArgumentError(f"{_NAME}: a is on a GPU; NumPy arrays are computed, and tegula.deep_gemm has groups on a GPU.")
    flag(f"{_NAME}: report", report)
    if not isinstance(by, str) or by not in _BY:
        raise ArgumentError(f"{_NAME}: by is {shown(by)}; it must be 'rows', 'masked' or 'k'.")
    form = _BY[by]
    raw = _arrays.is_raw(a)
    said_of_b = dtype_b if dtype_b is not None else dtype if _arrays.is_raw(b) else None
    of_a = _arrays.operand(_NAME, "a", a, dtype)
    of_b = _arrays.operand(_NAME, "b", b, said_of_b, "dtype" if dtype_b is None else "dtype_b")
    _of_form(of_a, form.a)
    _of_form(of_b, form.b)
    of_k = by == "k"
    ends = _bounds("group_ends", group_ends, None if of_k else of_b.shape[0])
    groups, m, n, k = ends.shape[0], of_a.shape[-2], of_b.shape[-1], of_a.elements(-1)
    if of_b.elements(-2) != k:
        raise ArgumentError(f"{_NAME}: a has {k} columns, and b {of_b.elements(-2)} rows; they must be as many.")
    if by == "masked" and of_a.shape[0] != groups:
        raise ArgumentError(f"{_NAME}: a has {of_a.shape[0]} groups, and b {groups}; they must be as many.")
    scales = block_scales(_NAME, block_scale, of_a, block_scale_a, of_b, block_scale_b)
    out_type = _result_type(of_a.type, out_dtype)
    shape = (m, n) if by == "rows" else (groups, m, n)
    if out is None:
        out = np.zeros(shape, dtype=_arrays.numpy_type(out_type, raw))

    g = GroupedGemmArguments()
    library.tegula_grouped_gemm_arguments_init(byref(g), ctypes.sizeof(g))
    g.grouping, g.groups, g.m, g.n, g.k, g.scales = form.grouping, groups, m, n, k, NO_SCALES
    g.in_a, g.in_b, g.out = CODES[of_a.type], CODES[of_b.type], CODES[out_type]
    g.a, g.b, g.group_ends = of_a.address, of_b.address, ends.address
    g.lda, _ = _rows(of_a, -1, "k", through=True)
    g.ldb, g.b_group_stride = _rows(of_b, -2, "k")
    if group_begins is not None:
        g.group_begins = _bounds("group_begins", group_begins, groups).address
    if scales is not None:
        g.block_scale, g.block_scale_a, g.block_scale_b = scales.code, scales.a.ctypes.data, scales.b.ctypes.data
    for name, array in (("c", c), ("d", out)):
        if array is None:
            continue
        said = out_type if _arrays.is_raw(array) else None
        of = _arrays.result(_NAME, array, out_type) if name == "d" else _arrays.operand(_NAME, "c", array, said)
        if of.type != out_type or of.shape != shape:
            raise ArgumentError(f"{_NAME}: {of.name} is of {of.type} and has the shape {of.shape}; {out_type} of {shape} is needed.")
        ld, between = _rows(of, -1, "n", through=by == "masked")
        setattr(g, name, of.address)
        setattr(g, f"ld{name}", ld)
        setattr(g, f"{name}_group_stride", between)
    found = _problems.launch(library.tegula_grouped_gemm, simulated(_NAME, machine), g, None, report)
    return out if found is None else (out, found)
