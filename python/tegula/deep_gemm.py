"""DeepGEMM's functions of these names, for what tegula computes on Hopper: GEMMs of fp8 with scales of 128, and groups.

Operands are NumPy's arrays, computed on the simulated machine (uint8 holds e4m3, and uint16 bf16, where ml_dtypes is not
installed), or PyTorch's tensors, computed where they are. An fp8 operand is a pair: elements and float32 scales. A
recipe says what a scale is of: (1, 128, 128), the default, of a row's 128 of K of a, and of 128 x 128 of b; (1, 1, 128)
of a row's 128 of K of both. Results are written into `d`, of bfloat16 or float32; with `c`, which may be d, it is added.

Groups may have any number of rows: none needs to begin at a multiple of get_mk_alignment_for_contiguous_layout().
What is not computed is an ArgumentError, with a sentence.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

from ._grouped import BLOCK, CONTIGUOUS, MASKED, NO_GROUPS, OF_K, GroupedGemm, Inputs, align, ceil_div
from ._library import int32, integer
from ._places import Place, place_of
from .errors import ArgumentError, shown

__all__ = [
    "align",
    "bf16_gemm_nn",
    "bf16_gemm_nt",
    "bf16_gemm_tn",
    "bf16_gemm_tt",
    "calc_diff",
    "ceil_div",
    "fp8_gemm_nn",
    "fp8_gemm_nt",
    "fp8_gemm_tn",
    "fp8_gemm_tt",
    "get_mk_alignment_for_contiguous_layout",
    "get_mn_major_tma_aligned_tensor",
    "get_tma_aligned_size",
    "k_grouped_bf16_gemm_tn_contiguous",
    "k_grouped_fp8_gemm_nt_contiguous",
    "k_grouped_fp8_gemm_tn_contiguous",
    "m_grouped_bf16_gemm_nt_contiguous",
    "m_grouped_bf16_gemm_nt_masked",
    "m_grouped_fp8_gemm_nt_contiguous",
    "m_grouped_fp8_gemm_nt_masked",
    "per_block_cast_to_fp8",
    "per_channel_cast_to_fp8",
    "per_token_cast_to_fp8",
]

Recipe = tuple[int, int, int] | None
Scaled = tuple[Any, Any]


def _pair(function: str, name: str, x: Any) -> Scaled:
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ArgumentError(f"{function}: {name} is {type(x).__name__}; a pair of elements and scales is needed.")
    return x[0], x[1]


def _by_blocks(function: str, recipe: Recipe) -> bool:
    known = isinstance(recipe, (tuple, list)) and tuple(recipe) in ((1, BLOCK, BLOCK), (1, 1, BLOCK))
    if recipe is not None and not known:
        raise ArgumentError(f"{function}: recipe is {shown(recipe)}; (1, 128, 128) and (1, 1, 128) are computed.")
    return recipe is None or tuple(recipe) == (1, BLOCK, BLOCK)


def _shape_of(x: Any) -> tuple[int, ...]:
    """Of what may be no array."""
    shape = getattr(x, "shape", None)
    return tuple(shape) if isinstance(shape, (tuple, list)) else ()


def _fp8(function: str, grouping: int, a: Scaled, b: Scaled, d: Any, c: Any, recipe: Recipe) -> GroupedGemm:
    """All but the groups."""
    (x, scales_a), (y, scales_b) = _pair(function, "a", a), _pair(function, "b", b)
    by_blocks = _by_blocks(function, recipe)
    gemm = GroupedGemm(function, place_of(function, "a", x), grouping, x, y, d, c)
    if not by_blocks and grouping in (CONTIGUOUS, MASKED):
        raise ArgumentError(f"{function}: recipe is {recipe}; of groups of rows (1, 128, 128) is computed.")
    gemm.scale(scales_a, scales_b, by_blocks)
    return gemm


def _transposed(function: str, name: str, x: Any) -> Any:
    """Of a matrix, or of a pair of one and its scales."""
    if isinstance(x, (tuple, list)):
        first, second = _pair(function, name, x)
        return _transposed(function, name, first), _transposed(function, f"{name}'s scales", second)
    if len(_shape_of(x)) != 2:
        what = f"has the shape {_shape_of(x)}" if hasattr(x, "shape") else f"is {type(x).__name__}"
        raise ArgumentError(f"{function}: {name} {what}; a matrix is needed.")
    return x.T


# --- fp8 ------------------------------------------------------------------------------------------------------------


def fp8_gemm_nt(a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None) -> None:
    """d = a b^T + c: a (m, k), b (n, k), both with contiguous k."""
    _fp8("fp8_gemm_nt", NO_GROUPS, a, b, d, c, recipe).launch()


def fp8_gemm_nn(a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None) -> None:
    """d = a b + c: a (m, k), b (k, n) and its scales likewise; k must be contiguous in both, as in w.T of a weight."""
    _fp8("fp8_gemm_nn", NO_GROUPS, a, _transposed("fp8_gemm_nn", "b", b), d, c, recipe).launch()


def fp8_gemm_tn(a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None) -> None:
    """d = a^T b + c: a (k, m), b (k, n), k contiguous in both."""
    function = "fp8_gemm_tn"
    _fp8(function, NO_GROUPS, _transposed(function, "a", a), _transposed(function, "b", b), d, c, recipe).launch()


def fp8_gemm_tt(a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None) -> None:
    """d = a^T b^T + c: a (k, m), b (n, k), k contiguous in both."""
    _fp8("fp8_gemm_tt", NO_GROUPS, _transposed("fp8_gemm_tt", "a", a), b, d, c, recipe).launch()


def m_grouped_fp8_gemm_nt_contiguous(a: Scaled, b: Scaled, d: Any, m_indices: Any, recipe: Recipe = None) -> None:
    """d's rows of group g are a's times b[g]^T: a (m, k), b (groups, n, k), d (m, n), m_indices int32 (m,), the group of
    each row, -1 for rows that are not computed; a group's rows are neighbours."""
    gemm = _fp8("m_grouped_fp8_gemm_nt_contiguous", CONTIGUOUS, a, b, d, None, recipe)
    gemm.groups_of_rows(m_indices)
    gemm.launch()


def m_grouped_fp8_gemm_nt_masked(
    a: Scaled, b: Scaled, d: Any, masked_m: Any, expected_m: int | None = None, recipe: Recipe = None
) -> None:
    """d[g] = a[g] b[g]^T for the first masked_m[g] rows: a (groups, m, k), b (groups, n, k), d (groups, m, n), masked_m
    int32 (groups,). expected_m, rows of a group, helps the choice of a kernel."""
    gemm = _fp8("m_grouped_fp8_gemm_nt_masked", MASKED, a, b, d, None, recipe)
    gemm.rows_of_groups(masked_m, expected_m)
    gemm.launch()


def _check_ks(function: str, ks: Any, groups: int) -> list[int]:
    try:
        sizes = [operator.index(k) for k in ks]
    except TypeError:
        raise ArgumentError(f"{function}: ks is {shown(ks)}; {groups} integers are needed, one for each matrix of d.") from None
    if len(sizes) != groups or any(k < 0 for k in sizes):
        raise ArgumentError(f"{function}: ks is {sizes}; {groups} numbers of columns are needed, one for each matrix of d.")
    return sizes


def _groups_of_k(function: str, a: Any, b: Any, d: Any, ks: Any, ks_tensor: Any, c: Any, scales: Scaled | None) -> None:
    """One launch, of operands (m, sum of ks) and (n, sum of ks)."""
    place = place_of(function, "a", a)
    gemm = GroupedGemm(function, place, OF_K, a, b, d, c)
    sizes = _check_ks(function, ks, gemm.groups)
    if sum(sizes) != gemm.k:
        raise ArgumentError(f"{function}: ks sums to {sum(sizes)}, and a and b have {gemm.k} columns.")
    of_ks = place.integers(function, "ks_tensor", ks_tensor)
    if of_ks.shape != (gemm.groups,):
        raise ArgumentError(f"{function}: ks_tensor has the shape {of_ks.shape}; {gemm.groups} int32 are needed, as many as ks has.")
    ends = place.empty((gemm.groups,), "i32")
    ends[:] = ks_tensor.cumsum(0)
    gemm.columns_of_groups(ends)
    if scales is not None:
        gemm.scale_columns(*scales, sum(ceil_div(k, BLOCK) for k in sizes))
    gemm.launch()


def _each_group_of_k(function: str, a: Scaled, b: Scaled, d: Any, ks: Any, ks_tensor: Any, c: Any) -> None:
    """A launch for each group, of operands that hold one group's matrix behind the other's."""
    groups, m, n = d.shape
    sizes = _check_ks(function, ks, groups)
    if _shape_of(a[0]) != (m * sum(sizes),) or _shape_of(b[0]) != (n * sum(sizes),):
        raise ArgumentError(
            f"{function}: a and b have the shapes {_shape_of(a[0])} and {_shape_of(b[0])}; with d {tuple(d.shape)} and "
            f"ks that sum to {sum(sizes)}, {(m * sum(sizes),)} and {(n * sum(sizes),)} are needed."
        )
    total = sum(ceil_div(k, BLOCK) for k in sizes)
    for name, scales, rows in (("a", a[1], m), ("b", b[1], n)):
        if _shape_of(scales) != (total, rows):
            raise ArgumentError(f"{function}: {name}'s scales have the shape {_shape_of(scales)}; f32 of {(total, rows)} is needed.")
    if c is not None and _shape_of(c) != tuple(d.shape):
        raise ArgumentError(f"{function}: c has the shape {_shape_of(c)}, and the result's is {tuple(d.shape)}.")
    place_of(function, "a", a[0]).integers(function, "ks_tensor", ks_tensor)
    begins = itertools.accumulate(sizes, initial=0)
    blocks = itertools.accumulate((ceil_div(k, BLOCK) for k in sizes), initial=0)
    for g, (k, begin, block) in enumerate(zip(sizes, begins, blocks)):
        if k == 0:
            d[g] = 0 if c is None else c[g]
            continue
        of_a, of_b = a[0][m * begin : m * (begin + k)].reshape(m, k), b[0][n * begin : n * (begin + k)].reshape(n, k)
        rows = slice(block, block + ceil_div(k, BLOCK))
        pair_a, pair_b = (of_a, a[1][rows].T), (of_b, b[1][rows].T)
        _fp8(function, NO_GROUPS, pair_a, pair_b, d[g], None if c is None else c[g], (1, 1, BLOCK)).launch()


def k_grouped_fp8_gemm_nt_contiguous(
    a: Scaled, b: Scaled, d: Any, ks: Any, ks_tensor: Any, c: Any = None, recipe: Recipe = (1, 1, BLOCK)
) -> None:
    """d[g] = a_g b_g^T + c[g], whose columns are ks[g] of all: weight gradients. d: (groups, m, n), float32.

    a: (m, sum of ks), b: (n, sum of ks), one launch, each group beginning at a multiple of 16; or both flat, group after
    group, (m, ks[g]) and (n, ks[g]) contiguous, a launch for each. Scales: (blocks of all groups, m) and (blocks, n), a
    group's columns beginning a block. ks is on the host, ks_tensor the same as int32 where the operands are.
    """
    function = "k_grouped_fp8_gemm_nt_contiguous"
    if _by_blocks(function, recipe):
        raise ArgumentError(f"{function}: recipe is {recipe}; of groups of k (1, 1, 128) is computed.")
    a, b = _pair(function, "a", a), _pair(function, "b", b)
    if len(_shape_of(d)) != 3:
        what = f"has the shape {_shape_of(d)}" if hasattr(d, "shape") else f"is {type(d).__name__}"
        raise ArgumentError(f"{function}: d {what}; (groups, m, n) is needed.")
    if len(_shape_of(a[0])) == 1:
        _each_group_of_k(function, a, b, d, ks, ks_tensor, c)
    else:
        _groups_of_k(function, a[0], b[0], d, ks, ks_tensor, c, (a[1], b[1]))


def k_grouped_fp8_gemm_tn_contiguous(
    a: Scaled, b: Scaled, d: Any, ks: Any, ks_tensor: Any, c: Any = None, recipe: Recipe = (1, 1, BLOCK)
) -> None:
    """The same of a (sum of ks, m) and b (sum of ks, n), whose k must be contiguous, as per_channel_cast_to_fp8 gives it."""
    function = "k_grouped_fp8_gemm_tn_contiguous"
    if _by_blocks(function, recipe):
        raise ArgumentError(f"{function}: recipe is {recipe}; of groups of k (1, 1, 128) is computed.")
    (x, scales_a), (y, scales_b) = _pair(function, "a", a), _pair(function, "b", b)
    x, y = _transposed(function, "a", x), _transposed(function, "b", y)
    _groups_of_k(function, x, y, d, ks, ks_tensor, c, (scales_a, scales_b))


# --- bf16 -----------------------------------------------------------------------------------------------------------


def _bf16(function: str, a: Any, b: Any, d: Any, c: Any) -> None:
    GroupedGemm(function, place_of(function, "a", a), NO_GROUPS, a, b, d, c).launch()


def bf16_gemm_nt(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """d = a b^T + c: a (m, k), b (n, k), both with contiguous k."""
    _bf16("bf16_gemm_nt", a, b, d, c)


def bf16_gemm_nn(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """d = a b + c; k contiguous in both."""
    _bf16("bf16_gemm_nn", a, _transposed("bf16_gemm_nn", "b", b), d, c)


def bf16_gemm_tn(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """d = a^T b + c; k contiguous in both."""
    _bf16("bf16_gemm_tn", _transposed("bf16_gemm_tn", "a", a), _transposed("bf16_gemm_tn", "b", b), d, c)


def bf16_gemm_tt(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """d = a^T b^T + c; k contiguous in both."""
    _bf16("bf16_gemm_tt", _transposed("bf16_gemm_tt", "a", a), b, d, c)


def m_grouped_bf16_gemm_nt_contiguous(a: Any, b: Any, d: Any, m_indices: Any) -> None:
    """As m_grouped_fp8_gemm_nt_contiguous, without scales."""
    function = "m_grouped_bf16_gemm_nt_contiguous"
    gemm = GroupedGemm(function, place_of(function, "a", a), CONTIGUOUS, a, b, d, None)
    gemm.groups_of_rows(m_indices)
    gemm.launch()


def m_grouped_bf16_gemm_nt_masked(a: Any, b: Any, d: Any, masked_m: Any, expected_m: int | None = None) -> None:
    """As m_grouped_fp8_gemm_nt_masked, without scales."""
    function = "m_grouped_bf16_gemm_nt_masked"
    gemm = GroupedGemm(function, place_of(function, "a", a), MASKED, a, b, d, None)
    gemm.rows_of_groups(masked_m, expected_m)
    gemm.launch()


def k_grouped_bf16_gemm_tn_contiguous(a: Any, b: Any, d: Any, ks: Any, ks_tensor: Any, c: Any = None) -> None:
    """As k_grouped_fp8_gemm_tn_contiguous, without scales; each group begins at a multiple of 8."""
    function = "k_grouped_bf16_gemm_tn_contiguous"
    x, y = _transposed(function, "a", a), _transposed(function, "b", b)
    _groups_of_k(function, x, y, d, ks, ks_tensor, c, None)


# --- inputs ---------------------------------------------------------------------------------------------------------


def _inputs(function: str, x: Any) -> tuple[Inputs, Place]:
    place = place_of(function, "x", x)
    return Inputs(function, place), place


def per_token_cast_to_fp8(x: Any, use_ue8m0: bool = False) -> Scaled:
    """e4m3 of x, (m, k) of bfloat16 or float32, and scales (m, blocks of k): a row's largest of 128 over 448, or with
    use_ue8m0 the next power of two. The scales lie as TMA reads them. A block of zeros has the least normal float."""
    inputs, _ = _inputs("per_token_cast_to_fp8", x)
    q, scales = inputs.quantized(x, use_ue8m0, False)
    return q, scales[:, : q.shape[0]].T


def per_block_cast_to_fp8(x: Any, use_ue8m0: bool = False) -> Scaled:
    """The same with a scale for each 128 x 128, (blocks of m, blocks of k)."""
    inputs, _ = _inputs("per_block_cast_to_fp8", x)
    return inputs.quantized(x, use_ue8m0, True)


def per_channel_cast_to_fp8(x: Any, use_ue8m0: bool = False) -> Scaled:
    """e4m3 of x, (k, n), with contiguous k, and scales (blocks of k, n): a column's largest of 128."""
    function = "per_channel_cast_to_fp8"
    inputs, place = _inputs(function, x)
    q, scales = inputs.quantized(place.contiguous(_transposed(function, "x", x)), use_ue8m0, False)
    return q.T, scales[:, : q.shape[0]]


def get_mn_major_tma_aligned_tensor(x: Any) -> Any:
    """Scales of rows, float32 (rows, blocks), as TMA reads them: contiguous rows, blocks a multiple of 16 bytes apart."""
    function = "get_mn_major_tma_aligned_tensor"
    inputs, place = _inputs(function, x)
    of = place.operand(function, "x", x)
    if len(of.shape) != 2 or of.type != "f32" or 0 in of.shape:
        raise ArgumentError(f"{function}: x is of {of.type} and has the shape {of.shape}; f32 of (rows, blocks) is needed.")
    rows, blocks = of.shape
    if of.strides[1] != 1:
        x = place.contiguous(x)
        of = place.operand(function, "x", x)
    return inputs.transformed(of, rows, blocks)[:, :rows].T


def get_tma_aligned_size(x: int, element_size: int) -> int:
    """x elements rounded up to a multiple of 16 bytes."""
    if integer("get_tma_aligned_size: element_size", element_size) not in (1, 2, 4, 8, 16):
        raise ArgumentError(f"get_tma_aligned_size: element_size is {shown(element_size)}; it must be 1, 2, 4, 8 or 16 bytes.")
    return align(int32("get_tma_aligned_size: x", x), 16 // element_size)


def get_mk_alignment_for_contiguous_layout() -> int:
    """What DeepGEMM's groups begin at multiples of. Here none needs to."""
    return BLOCK


def calc_diff(x: Any, y: Any) -> float:
    """1 - 2 <x, y> / (|x|^2 + |y|^2), in float64: 0 for equal ones."""
    for name, v in (("x", x), ("y", y)):
        if not hasattr(v, "double") and getattr(getattr(v, "dtype", None), "kind", "O") in "OSUMm":
            raise ArgumentError(f"calc_diff: {name} is {type(v).__name__}; a NumPy array or a torch.Tensor of numbers is needed.")
    if hasattr(x, "double") != hasattr(y, "double") or _shape_of(x) != _shape_of(y):
        raise ArgumentError(
            f"calc_diff: x is {type(x).__name__} of {_shape_of(x)}, and y {type(y).__name__} of {_shape_of(y)}; both must be alike."
        )
    x, y = (v.double() if hasattr(v, "double") else v.astype("float64") for v in (x, y))
    squares = float((x * x + y * y).sum())
    return 0.0 if squares == 0 else 1 - 2 * float((x * y).sum()) / squares
