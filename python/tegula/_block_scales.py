"""Scales of blocks along k: from NumPy's arrays to the pieces in which the tensor core reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._problems import Operand
from .errors import ArgumentError, shown


class _Format(NamedTuple):
    code: int  # tegula_block_scale
    block: int  # elements of k that share a scale
    type: str  # ml_dtypes' name of the scales


_FORMATS = {"mx": _Format(1, 32, "float8_e8m0fnu"), "nv": _Format(2, 16, "float8_e4m3fn")}
ROWS_OF_PIECE, SCALES_OF_PIECE = 128, 4


class BlockScales(NamedTuple):
    """What the C interface is told."""

    code: int
    block: int  # elements of k that share a scale
    a: npt.NDArray[np.uint8]
    b: npt.NDArray[np.uint8]


def _bits(operation: str, name: str, x: Any, format: _Format) -> npt.NDArray[np.uint8]:
    if not isinstance(x, np.ndarray) or isinstance(x, np.ma.MaskedArray):
        raise ArgumentError(f"{operation}: {name} is {shown(x)}; a NumPy array of scales is needed.")
    if x.dtype.name not in ("uint8", format.type):
        raise ArgumentError(f"{operation}: {name} has elements of type {x.dtype}; ml_dtypes' {format.type}, or uint8 for its bits, is needed.")
    return x.view(np.uint8)


def _pieces(
    operation: str, name: str, x: npt.NDArray[np.uint8], shape: tuple[int, ...], blocks: int, by_columns: bool
) -> npt.NDArray[np.uint8]:
    """(batch, rows, blocks) in pieces of 128 rows x 4 scales; what is beyond the matrix is 0."""
    rows = shape[-1] if by_columns else shape[-2]
    wanted = shape[:-2] + ((blocks, rows) if by_columns else (rows, blocks))
    if x.shape != wanted:
        raise ArgumentError(f"{operation}: {name} has the shape {x.shape}; {wanted} is needed, a scale for each block of k.")
    by_rows = np.swapaxes(x, -1, -2) if by_columns else x
    pieces_m, pieces_k = -(-rows // ROWS_OF_PIECE), -(-blocks // SCALES_OF_PIECE)
    padded = np.zeros((*shape[:-2], pieces_m * ROWS_OF_PIECE, pieces_k * SCALES_OF_PIECE), np.uint8)
    padded[..., :rows, :blocks] = by_rows
    split = padded.reshape(-1, pieces_m, ROWS_OF_PIECE // 32, 32, pieces_k, SCALES_OF_PIECE)
    memory = np.empty(padded.size + 15, np.uint8)
    begin = -memory.ctypes.data % 16  # what a bulk copy reads is aligned
    result = memory[begin : begin + padded.size]
    result[:] = split.transpose(0, 1, 4, 3, 2, 5).reshape(-1)
    return result


def check_block_scale(operation: str, block_scale: Any) -> None:
    """Raises ArgumentError for what is the name of no format."""
    if block_scale is not None and (not isinstance(block_scale, str) or block_scale not in _FORMATS):
        raise ArgumentError(f"{operation}: block_scale is {shown(block_scale)}; it must be 'mx' or 'nv', or left out.")


def block_scales(
    operation: str, block_scale: Any, a: Operand, scale_a: Any, b: Operand, scale_b: Any
) -> BlockScales | None:
    """The scales of a (.., m, k) and b (.., k, n), or None where there are none. Raises ArgumentError."""
    given = {"block_scale_a": scale_a, "block_scale_b": scale_b}
    if block_scale is None:
        for name, x in given.items():
            if x is not None:
                raise ArgumentError(f"{operation}: {name} is given and block_scale is not; it must be 'mx' or 'nv'.")
        return None
    check_block_scale(operation, block_scale)
    format = _FORMATS[block_scale]
    for name, x in given.items():
        if x is None:
            raise ArgumentError(f"{operation}: block_scale is {block_scale!r} and {name} is left out; it must be a scale for each block of k.")
    blocks = -(-a.elements(-1) // format.block)
    return BlockScales(
        format.code,
        format.block,
        _pieces(operation, "block_scale_a", _bits(operation, "block_scale_a", scale_a, format), a.shape, blocks, False),
        _pieces(operation, "block_scale_b", _bits(operation, "block_scale_b", scale_b, format), b.shape, blocks, True),
    )
