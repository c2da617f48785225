"""DeepGEMM's functions of these names, for what tegula computes on Hopper: GEMMs of fp8 with scales of 128, and groups.

Operands are NumPy's arrays, computed on the simulated machine (uint8 holds e4m3, and uint16 bf16, where ml_dtypes is not
installed), or PyTorch's tensors, computed where they are. An fp8 operand is a pair: elements and float32 scales. A
recipe says what a scale is of: (1, 128, 128), the default, of a row's 128 of K of a, and of 128 x 128 of b; (1, 1, 128)
of a row's 128 of K of both. Results are written into `d`, of bfloat16 or float32; with `c`, which may be d, it is added.

k is contiguous in a and b, which begin at multiples of 16 bytes, and whose rows, and matrices of groups, are multiples of
16 bytes apart: those of the casts are; of other elements k is padded with zeros to a multiple of 16, or of 8 of bfloat16.
n is contiguous in d. A problem without rows, columns or groups is none, and one without k gives c, or zeros.

Groups may have any number of rows: none needs to begin at a multiple of get_mk_alignment_for_contiguous_layout().
What is not computed is an ArgumentError, with a sentence.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

from ._grouped import BLOCK, CONTIGUOUS, MASKED, NO_GROUPS, OF_K, UNIT, Inputs, PlacedGemm, align, ceil_div, check_sizes
from ._library import flag, int32, integer
from ._places import place_of
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
    "m_grouped_bf16_gemm_nn_contiguous",
    "m_grouped_bf16_gemm_nt_contiguous",
    "m_grouped_bf16_gemm_nt_masked",
    "m_grouped_fp8_gemm_nn_contiguous",
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


def _ignored(function: str, compiled_dims: Any, disable_ue8m0_cast: Any = False) -> None:
    """What DeepGEMM takes and changes nothing here: extents are never compiled in, scales never cast."""
    if not isinstance(compiled_dims, str) or not set(compiled_dims) <= set("mnk"):
        raise ArgumentError(f"{function}: compiled_dims is {shown(compiled_dims)}; it must be letters of 'mnk'.")
    flag(f"{function}: disable_ue8m0_cast", disable_ue8m0_cast)


def _shape_of(x: Any) -> tuple[int, ...]:
    """Of what may be no array."""
    shape = getattr(x, "shape", None)
    return tuple(shape) if isinstance(shape, (tuple, list)) else ()


def _fp8(function: str, grouping: int, a: Scaled, b: Scaled, d: Any, c: Any, recipe: Recipe, turned: str = "") -> PlacedGemm:
    """All but the groups. `turned` names those of a and b that are given as (k, m) or (k, n)."""
    (x, scales_a), (y, scales_b) = _pair(function, "a", a), _pair(function, "b", b)
    by_blocks = _by_blocks(function, recipe)
    if not by_blocks and grouping in (CONTIGUOUS, MASKED):
        raise ArgumentError(f"{function}: recipe is {recipe}; of groups of rows (1, 128, 128) is computed.")
    gemm = PlacedGemm(function, place_of(function, "a[0]", x), grouping, x, y, d, c, scaled=True, turned=turned)
    gemm.scale(scales_a, scales_b, by_blocks)
    return gemm


# --- fp8 ------------------------------------------------------------------------------------------------------------


def fp8_gemm_nt(
    a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None, compiled_dims: str = "nk", disable_ue8m0_cast: bool = False
) -> None:
    """d = a b^T + c: a (m, k), b (n, k), both with contiguous k. compiled_dims and disable_ue8m0_cast change nothing."""
    _ignored("fp8_gemm_nt", compiled_dims, disable_ue8m0_cast)
    _fp8("fp8_gemm_nt", NO_GROUPS, a, b, d, c, recipe).launch()


def fp8_gemm_nn(
    a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None, compiled_dims: str = "nk", disable_ue8m0_cast: bool = False
) -> None:
    """d = a b + c: a (m, k), b (k, n) and its scales likewise; k must be contiguous in both, as in w.T of a weight."""
    _ignored("fp8_gemm_nn", compiled_dims, disable_ue8m0_cast)
    _fp8("fp8_gemm_nn", NO_GROUPS, a, b, d, c, recipe, "b").launch()


def fp8_gemm_tn(
    a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None, compiled_dims: str = "mn", disable_ue8m0_cast: bool = False
) -> None:
    """d = a^T b + c: a (k, m), b (k, n), k contiguous in both."""
    _ignored("fp8_gemm_tn", compiled_dims, disable_ue8m0_cast)
    _fp8("fp8_gemm_tn", NO_GROUPS, a, b, d, c, recipe, "ab").launch()


def fp8_gemm_tt(
    a: Scaled, b: Scaled, d: Any, c: Any = None, recipe: Recipe = None, compiled_dims: str = "mn", disable_ue8m0_cast: bool = False
) -> None:
    """d = a^T b^T + c: a (k, m), b (n, k), k contiguous in both."""
    _ignored("fp8_gemm_tt", compiled_dims, disable_ue8m0_cast)
    _fp8("fp8_gemm_tt", NO_GROUPS, a, b, d, c, recipe, "a").launch()


def m_grouped_fp8_gemm_nt_contiguous(
    a: Scaled, b: Scaled, d: Any, m_indices: Any, recipe: Recipe = None, compiled_dims: str = "nk", disable_ue8m0_cast: bool = False
) -> None:
    """d's rows of group g are a's times b[g]^T: a (m, k), b (groups, n, k), d (m, n), m_indices int32 (m,), the group of
    each row, -1 for rows that are not computed; a group's rows are neighbours. On a GPU m_indices is not looked at before:
    there an index of no group is as -1."""
    _m_grouped_fp8("m_grouped_fp8_gemm_nt_contiguous", a, b, d, m_indices, recipe, compiled_dims, disable_ue8m0_cast, "")


def m_grouped_fp8_gemm_nn_contiguous(
    a: Scaled, b: Scaled, d: Any, m_indices: Any, recipe: Recipe = None, compiled_dims: str = "nk", disable_ue8m0_cast: bool = False
) -> None:
    """The same with b (groups, k, n) and its scales likewise; k must be contiguous in it."""
    _m_grouped_fp8("m_grouped_fp8_gemm_nn_contiguous", a, b, d, m_indices, recipe, compiled_dims, disable_ue8m0_cast, "b")


def _m_grouped_fp8(
    function: str, a: Scaled, b: Scaled, d: Any, m_indices: Any, recipe: Recipe, compiled_dims: str, disable_ue8m0_cast: bool, turned: str
) -> None:
    _ignored(function, compiled_dims, disable_ue8m0_cast)
    gemm = _fp8(function, CONTIGUOUS, a, b, d, None, recipe, turned)
    gemm.groups_of_rows(m_indices)
    gemm.launch()


def m_grouped_fp8_gemm_nt_masked(
    a: Scaled,
    b: Scaled,
    d: Any,
    masked_m: Any,
    expected_m: int | None = None,
    recipe: Recipe = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """d[g] = a[g] b[g]^T for the first masked_m[g] rows: a (groups, m, k), b (groups, n, k), d (groups, m, n), masked_m
    int32 (groups,). expected_m, rows of a group, helps the choice of a kernel."""
    function = "m_grouped_fp8_gemm_nt_masked"
    _ignored(function, compiled_dims, disable_ue8m0_cast)
    gemm = _fp8(function, MASKED, a, b, d, None, recipe)
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


def _groups_of_k(
    function: str, a: Any, b: Any, d: Any, ks: Any, ks_tensor: Any, c: Any, scales: Scaled | None = None, turned: str = ""
) -> None:
    """One launch, of operands (m, sum of ks) and (n, sum of ks)."""
    scaled = scales is not None
    place = place_of(function, "a[0]" if scaled else "a", a)
    gemm = PlacedGemm(function, place, OF_K, a, b, d, c, scaled=scaled, turned=turned)
    sizes = _check_ks(function, ks, gemm.groups)
    if sum(sizes) != gemm.k:
        raise ArgumentError(f"{function}: ks sums to {sum(sizes)}, and a and b have {gemm.k} columns.")
    gemm.columns_of_groups(sizes, ks_tensor)
    if scales is not None:
        gemm.scale_columns(*scales, sum(ceil_div(k, BLOCK) for k in sizes))
    gemm.launch()


def _each_group_of_k(function: str, a: Scaled, b: Scaled, d: Any, ks: Any, ks_tensor: Any, c: Any) -> None:
    """A launch for each group, of operands that hold one group's matrix behind the other's."""
    groups, m, n = d.shape
    sizes = _check_ks(function, ks, groups)
    if _shape_of(a[0]) != (m * sum(sizes),) or _shape_of(b[0]) != (n * sum(sizes),):
        raise ArgumentError(
            f"{function}: a[0] and b[0] have the shapes {_shape_of(a[0])} and {_shape_of(b[0])}; with d {tuple(d.shape)} and "
            f"ks that sum to {sum(sizes)}, {(m * sum(sizes),)} and {(n * sum(sizes),)} are needed."
        )
    for g, k in enumerate(sizes):
        if k % UNIT["e4m3"]:
            raise ArgumentError(f"{function}: ks[{g}] is {k}; in flat operands it must be a multiple of 16, for rows begin at multiples of 16 bytes.")
    total = sum(ceil_div(k, BLOCK) for k in sizes)
    for name, scales, rows in (("a", a[1], m), ("b", b[1], n)):
        if _shape_of(scales) != (total, rows):
            raise ArgumentError(f"{function}: {name}[1] has the shape {_shape_of(scales)}; {(total, rows)} is needed, {name}'s scales.")
    if c is not None and _shape_of(c) != tuple(d.shape):
        raise ArgumentError(f"{function}: c has the shape {_shape_of(c)}, and the result's is {tuple(d.shape)}.")
    check_sizes(function, place_of(function, "a[0]", a[0]), sizes, ks_tensor)
    begins = itertools.accumulate(sizes, initial=0)
    blocks = itertools.accumulate((ceil_div(k, BLOCK) for k in sizes), initial=0)
    gemms = []  # all are checked before the first is launched
    for g, (k, begin, block) in enumerate(zip(sizes, begins, blocks)):
        of_a, of_b = a[0][m * begin : m * (begin + k)].reshape(m, k), b[0][n * begin : n * (begin + k)].reshape(n, k)
        rows = slice(block, block + ceil_div(k, BLOCK))
        pair_a, pair_b = (of_a, a[1][rows].T), (of_b, b[1][rows].T)
        gemms.append(_fp8(function, NO_GROUPS, pair_a, pair_b, d[g], None if c is None else c[g], (1, 1, BLOCK)))
    for gemm in gemms:
        gemm.launch()


def _check_recipe_of_k(function: str, recipe: Recipe) -> None:
    if _by_blocks(function, recipe):
        raise ArgumentError(f"{function}: recipe is {recipe}; of groups of k (1, 1, 128) is computed.")


def k_grouped_fp8_gemm_nt_contiguous(
    a: Scaled, b: Scaled, d: Any, ks: Any, ks_tensor: Any, c: Any = None, recipe: Recipe = (1, 1, BLOCK), compiled_dims: str = "mn"
) -> None:
    """d[g] = a_g b_g^T + c[g], whose columns are ks[g] of all: weight gradients. d: (groups, m, n), float32.

    a: (m, sum of ks), b: (n, sum of ks), one launch, each group beginning at a multiple of 16; or both flat, group after
    group, (m, ks[g]) and (n, ks[g]) contiguous, each ks[g] a multiple of 16, a launch for each. Scales: (blocks of all
    groups, m) and (blocks, n), a group's columns beginning a block. ks is on the host, ks_tensor the same as int32 where
    the operands are: on a GPU, where they are not compared, a group that begins elsewhere by ks_tensor is NaN.
    """
    function = "k_grouped_fp8_gemm_nt_contiguous"
    _check_recipe_of_k(function, recipe)
    _ignored(function, compiled_dims)
    a, b = _pair(function, "a", a), _pair(function, "b", b)
    if len(_shape_of(d)) != 3:
        what = f"has the shape {_shape_of(d)}" if hasattr(d, "shape") else f"is {type(d).__name__}"
        raise ArgumentError(f"{function}: d {what}; (groups, m, n) is needed.")
    if len(_shape_of(a[0])) == 1:
        _each_group_of_k(function, a, b, d, ks, ks_tensor, c)
    else:
        _groups_of_k(function, a[0], b[0], d, ks, ks_tensor, c, (a[1], b[1]))


def k_grouped_fp8_gemm_tn_contiguous(
    a: Scaled, b: Scaled, d: Any, ks: Any, ks_tensor: Any, c: Any = None, recipe: Recipe = (1, 1, BLOCK), compiled_dims: str = "mn"
) -> None:
    """The same of a (sum of ks, m) and b (sum of ks, n), whose k must be contiguous, as per_channel_cast_to_fp8 gives it."""
    function = "k_grouped_fp8_gemm_tn_contiguous"
    _check_recipe_of_k(function, recipe)
    _ignored(function, compiled_dims)
    (x, scales_a), (y, scales_b) = _pair(function, "a", a), _pair(function, "b", b)
    _groups_of_k(function, x, y, d, ks, ks_tensor, c, (scales_a, scales_b), "ab")


# --- bf16 -----------------------------------------------------------------------------------------------------------


def _bf16(function: str, a: Any, b: Any, d: Any, c: Any, compiled_dims: str, grouping: int = NO_GROUPS, turned: str = "") -> PlacedGemm:
    """All but the groups."""
    _ignored(function, compiled_dims)
    return PlacedGemm(function, place_of(function, "a", a), grouping, a, b, d, c, turned=turned)


def bf16_gemm_nt(a: Any, b: Any, d: Any, c: Any = None, compiled_dims: str = "nk") -> None:
    """d = a b^T + c: a (m, k), b (n, k), both with contiguous k. compiled_dims changes nothing."""
    _bf16("bf16_gemm_nt", a, b, d, c, compiled_dims).launch()


def bf16_gemm_nn(a: Any, b: Any, d: Any, c: Any = None, compiled_dims: str = "nk") -> None:
    """d = a b + c; k contiguous in both."""
    _bf16("bf16_gemm_nn", a, b, d, c, compiled_dims, turned="b").launch()


def bf16_gemm_tn(a: Any, b: Any, d: Any, c: Any = None, compiled_dims: str = "mn") -> None:
    """d = a^T b + c; k contiguous in both."""
    _bf16("bf16_gemm_tn", a, b, d, c, compiled_dims, turned="ab").launch()


def bf16_gemm_tt(a: Any, b: Any, d: Any, c: Any = None, compiled_dims: str = "mn") -> None:
    """d = a^T b^T + c; k contiguous in both."""
    _bf16("bf16_gemm_tt", a, b, d, c, compiled_dims, turned="a").launch()


def m_grouped_bf16_gemm_nt_contiguous(a: Any, b: Any, d: Any, m_indices: Any, compiled_dims: str = "nk") -> None:
    """As m_grouped_fp8_gemm_nt_contiguous, without scales."""
    gemm = _bf16("m_grouped_bf16_gemm_nt_contiguous", a, b, d, None, compiled_dims, CONTIGUOUS)
    gemm.groups_of_rows(m_indices)
    gemm.launch()


def m_grouped_bf16_gemm_nn_contiguous(a: Any, b: Any, d: Any, m_indices: Any, compiled_dims: str = "nk") -> None:
    """As m_grouped_fp8_gemm_nn_contiguous, without scales."""
    gemm = _bf16("m_grouped_bf16_gemm_nn_contiguous", a, b, d, None, compiled_dims, CONTIGUOUS, "b")
    gemm.groups_of_rows(m_indices)
    gemm.launch()


def m_grouped_bf16_gemm_nt_masked(
    a: Any, b: Any, d: Any, masked_m: Any, expected_m: int | None = None, compiled_dims: str = "nk"
) -> None:
    """As m_grouped_fp8_gemm_nt_masked, without scales."""
    gemm = _bf16("m_grouped_bf16_gemm_nt_masked", a, b, d, None, compiled_dims, MASKED)
    gemm.rows_of_groups(masked_m, expected_m)
    gemm.launch()


def k_grouped_bf16_gemm_tn_contiguous(
    a: Any, b: Any, d: Any, ks: Any, ks_tensor: Any, c: Any = None, compiled_dims: str = "mn"
) -> None:
    """As k_grouped_fp8_gemm_tn_contiguous, without scales; each group begins at a multiple of 8."""
    function = "k_grouped_bf16_gemm_tn_contiguous"
    _ignored(function, compiled_dims)
    _groups_of_k(function, a, b, d, ks, ks_tensor, c, turned="ab")


# --- inputs ---------------------------------------------------------------------------------------------------------


def _inputs(function: str, x: Any, gran_k: Any) -> Inputs:
    if integer(f"{function}: gran_k", gran_k) != BLOCK:
        raise ArgumentError(f"{function}: gran_k is {gran_k}; a scale is of 128 elements along k, and it must be 128.")
    return Inputs(function, place_of(function, "x", x))


def per_token_cast_to_fp8(x: Any, use_ue8m0: bool = False, gran_k: int = BLOCK) -> Scaled:
    """e4m3 of x, (m, k) of bfloat16 or float32, and scales (m, blocks of k): a row's largest of 128 over 448, or with
    use_ue8m0 the next power of two. The scales lie as TMA reads them, and rows of e4m3 are a multiple of 16 bytes apart.
    A block of zeros has the least normal float. Of groups: cast each matrix, and stack the results; or cast the rows of
    all, (groups m, k), and reshape both results to three dimensions."""
    q, scales = _inputs("per_token_cast_to_fp8", x, gran_k).quantized(x, use_ue8m0, False)
    return q, scales[:, : q.shape[0]].T


def per_block_cast_to_fp8(x: Any, use_ue8m0: bool = False, gran_k: int = BLOCK) -> Scaled:
    """The same with a scale for each 128 x 128, (blocks of m, blocks of k). Of groups: cast each matrix, and stack the
    results."""
    return _inputs("per_block_cast_to_fp8", x, gran_k).quantized(x, use_ue8m0, True)


def per_channel_cast_to_fp8(x: Any, use_ue8m0: bool = False, gran_k: int = BLOCK) -> Scaled:
    """e4m3 of x, (k, n), with contiguous k, and scales (blocks of k, n): a column's largest of 128."""
    function = "per_channel_cast_to_fp8"
    inputs = _inputs(function, x, gran_k)
    if len(_shape_of(x)) != 2:
        raise ArgumentError(f"{function}: x has the shape {_shape_of(x)}; (k, n) is needed.")
    q, scales = inputs.quantized(inputs.place.contiguous(x.T), use_ue8m0, False)
    return q.T, scales[:, : q.shape[0]]


def get_mn_major_tma_aligned_tensor(x: Any) -> Any:
    """Scales of rows, float32 (rows, blocks) or (groups, rows, blocks), as TMA reads them: contiguous rows, those of all
    groups one after the other, and blocks a multiple of 16 bytes apart. What lies so is not copied by a GEMM."""
    function = "get_mn_major_tma_aligned_tensor"
    place = place_of(function, "x", x)
    of = place.operand(function, "x", x, ("f32",))
    if len(of.shape) not in (2, 3):
        raise ArgumentError(f"{function}: x has the shape {of.shape}; (rows, blocks) or (groups, rows, blocks) is needed.")
    scales = Inputs(function, place).transformed(x)
    return scales[:, : math.prod(of.shape[:-1])].T.reshape(of.shape)


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
