"""Layouts as values, and tensor-core kernels on a simulated GPU: docs/python.md."""

from __future__ import annotations

from ._library import library as _library
from .errors import ArgumentError, DeviceError, FindingError, InternalError, LayoutError, TegulaError
from .grouped import grouped_gemm
from .kernel import Kernel
from .kernels import attention, gemm
from .layout import Layout, Tiler, crd2idx, evaluate, idx2crd, operations
from .machine import Machine, Report, default_machine
from .prepared import PreparedLaunch, prepare_attention, prepare_gemm

__version__: str = _library.tegula_version().decode()

# The algebra as functions of the module: composition("(4,8)", "4:2") is Layout("(4,8)").composition("4:2").
coalesce = Layout.coalesce
complement = Layout.complement
composition = Layout.composition
right_inverse = Layout.right_inverse
left_inverse = Layout.left_inverse
logical_divide = Layout.logical_divide
zipped_divide = Layout.zipped_divide
tiled_divide = Layout.tiled_divide
flat_divide = Layout.flat_divide
logical_product = Layout.logical_product
zipped_product = Layout.zipped_product
tiled_product = Layout.tiled_product
flat_product = Layout.flat_product
blocked_product = Layout.blocked_product
raked_product = Layout.raked_product
tile_to_shape = Layout.tile_to_shape
flatten = Layout.flatten
group = Layout.group
select = Layout.select
take = Layout.take
append = Layout.append
prepend = Layout.prepend
replace = Layout.replace
slice = Layout.slice
with_shape = Layout.with_shape
upcast = Layout.upcast
downcast = Layout.downcast
recast = Layout.recast
max_common_vector = Layout.max_common_vector
max_common_layout = Layout.max_common_layout
nullspace = Layout.nullspace
size = Layout.size
cosize = Layout.cosize
rank = Layout.rank
depth = Layout.depth

__all__ = [
    "ArgumentError",
    "DeviceError",
    "FindingError",
    "InternalError",
    "Kernel",
    "Layout",
    "LayoutError",
    "Machine",
    "PreparedLaunch",
    "Report",
    "TegulaError",
    "Tiler",
    "attention",
    "crd2idx",
    "default_machine",
    "evaluate",
    "gemm",
    "grouped_gemm",
    "idx2crd",
    "operations",
    "prepare_attention",
    "prepare_gemm",
]
