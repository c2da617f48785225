"""The C interface (tegula/tegula.h) by ctypes."""

from __future__ import annotations

import ctypes
import importlib.util
import operator
import os
import pathlib
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, NoReturn

from . import errors

C_VERSION = 1
LEFT_OUT = -(2**63)

_ERRORS: dict[int, type[Exception]] = {
    1: errors.LayoutError,
    2: errors.ArgumentError,
    3: errors.DeviceError,
    4: errors.FindingError,
    5: MemoryError,
    6: errors.InternalError,
}


class MachineOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("arch", c_char_p),
        ("scheduler", c_char_p),
        ("seed", c_uint64),
        ("check", c_int32),
        ("workers", c_int32),
        ("bank_conflicts", c_int32),
        ("excess_sectors", c_int32),
    ]


class GemmArguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        *((name, c_int32) for name in ("in_a", "in_b", "out", "a_major", "b_major", "activation")),
        *((name, c_int64) for name in ("m", "n", "k", "batch")),
        *((name, c_void_p) for name in ("a", "b", "c", "bias", "d")),
        *((name, c_int64) for name in ("lda", "ldb", "ldc", "ldd")),
        *((f"{name}_batch_stride", c_int64) for name in "abcd"),
        ("scale_a", c_void_p),
        ("scale_b", c_void_p),
        ("alpha", c_float),
        ("beta", c_float),
        ("block_scale", c_int32),
        ("block_scale_a", c_void_p),
        ("block_scale_b", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_int64),
    ]


class TokenStrides(ctypes.Structure):
    _fields_ = [("batch", c_int64), ("seq", c_int64), ("head", c_int64)]


class AttentionArguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dtype", c_int32),
        ("causal", c_int32),
        *((name, c_int64) for name in ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim")),
        *((name, c_void_p) for name in ("q", "k", "v", "o", "lse")),
        *((f"{name}_stride", POINTER(TokenStrides)) for name in "qkvo"),
        ("scale", POINTER(c_float)),
        *((name, c_int64) for name in ("head_dim_v", "window_left", "window_right")),
        ("sink", c_void_p),
        ("softcap", c_float),
        *((f"{name}_descale", c_void_p) for name in "qkv"),
        ("descale_batch_stride", c_int64),
        ("descale_head_stride", c_int64),
        *((name, c_void_p) for name in ("cu_seqlens_q", "cu_seqlens_k", "seqused_k")),
        ("total_q", c_int64),
        ("total_k", c_int64),
        ("page_table", c_void_p),
        *((name, c_int64) for name in ("page_table_stride", "pages", "page_size")),
        ("workspace", c_void_p),
        ("workspace_bytes", c_int64),
        ("splits", c_int64),
        ("out", c_int32),
        ("k_new", c_void_p),
        ("v_new", c_void_p),
        ("seq_new", c_int64),
        ("cu_seqlens_new", c_void_p),
        ("total_new", c_int64),
        ("k_new_stride", POINTER(TokenStrides)),
        ("v_new_stride", POINTER(TokenStrides)),
        ("precise", c_int64),
        ("new_dtype", c_int32),
    ]


class GroupedGemmArguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        *((name, c_int32) for name in ("in_a", "in_b", "out", "scales", "grouping")),
        *((name, c_int64) for name in ("groups", "m", "n", "k")),
        *((name, c_void_p) for name in ("a", "b", "c", "d", "scale_a", "scale_b", "group_begins", "group_ends")),
        *((name, c_int64) for name in ("lda", "ldb", "ldc", "ldd")),
        *((f"{name}_group_stride", c_int64) for name in "bcd"),
        *((name, c_int64) for name in ("scale_a_stride", "scale_b_stride", "expected_rows")),
        ("block_scale", c_int32),
        ("block_scale_a", c_void_p),
        ("block_scale_b", c_void_p),
    ]


class GemmInputsArguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        *((name, c_int32) for name in ("step", "in_x", "out", "power_of_two")),
        *((name, c_int64) for name in ("rows", "columns")),
        *((name, c_void_p) for name in ("x", "q", "scales")),
        ("groups", c_int64),
        ("begins", c_void_p),
        ("ends", c_void_p),
        *((name, c_int64) for name in ("ldx", "ldq", "scale_stride")),
    ]


class KernelSource(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("text", c_char_p),
        ("type", c_char_p),
        ("file", c_char_p),
        ("include", POINTER(c_char_p)),
        ("include_count", c_int32),
    ]


class KernelArray(ctypes.Structure):
    _fields_ = [("offset", c_size_t), ("bytes", c_int64), ("name", c_char_p), ("is_constant", c_int32)]


class KernelMember(ctypes.Structure):
    _fields_ = [("offset", c_size_t), ("bytes", c_size_t), ("kind", c_int32)]


_TEXT = POINTER(c_void_p)
_VALUE = POINTER(c_void_p)

# Functions that return a status, by their parameters.
_FALLIBLE: dict[str, list[Any]] = {
    "evaluate": [c_char_p, _VALUE],
    "integer": [c_int64, _VALUE],
    "call": [c_char_p, POINTER(c_void_p), c_int32, _VALUE],
    "operations": [_TEXT],
    "value_text": [c_void_p, _TEXT],
    "value_integer": [c_void_p, POINTER(c_int64)],
    "as_layout": [c_void_p, _VALUE],
    "layout_shape": [c_void_p, _VALUE],
    "layout_stride": [c_void_p, _VALUE],
    "layout_mode": [c_void_p, c_int32, _VALUE],
    "swizzle_parts": [c_void_p, POINTER(c_int32), POINTER(c_int32), POINTER(c_int32), POINTER(c_int64), _VALUE],
    "layout_axes": [c_void_p, POINTER(c_int32)],
    "layout_values": [c_void_p, c_void_p, c_int64, c_void_p],
    "layout_draw": [c_void_p, c_int32, c_int32, _TEXT],
    "layout_draw_threads": [c_void_p, c_int32, c_int32, c_int32, _TEXT],
    "machine_create": [c_char_p, POINTER(MachineOptions), POINTER(c_void_p)],
    "machine_name": [c_void_p, _TEXT],
    "report_text": [c_void_p, c_int32, _TEXT],
    "report_json": [c_void_p, c_int32, _TEXT],
    "gemm": [c_void_p, POINTER(GemmArguments), c_void_p, POINTER(c_void_p)],
    "gemm_choice": [c_void_p, POINTER(GemmArguments), _TEXT],
    "gemm_workspace": [c_void_p, POINTER(GemmArguments), POINTER(c_int64)],
    "attention": [c_void_p, POINTER(AttentionArguments), c_void_p, POINTER(c_void_p)],
    "attention_choice": [c_void_p, POINTER(AttentionArguments), _TEXT],
    "attention_workspace": [c_void_p, POINTER(AttentionArguments), POINTER(c_int64)],
    "grouped_gemm": [c_void_p, POINTER(GroupedGemmArguments), c_void_p, POINTER(c_void_p)],
    "grouped_gemm_choice": [c_void_p, POINTER(GroupedGemmArguments), _TEXT],
    "gemm_inputs": [c_void_p, POINTER(GemmInputsArguments), c_void_p, POINTER(c_void_p)],
    "gemm_prepare": [c_void_p, POINTER(GemmArguments), POINTER(c_void_p)],
    "attention_prepare": [c_void_p, POINTER(AttentionArguments), POINTER(c_void_p)],
    "launch_run": [c_void_p, c_void_p],
    "kernel_create": [c_void_p, POINTER(KernelSource), POINTER(c_void_p)],
    "kernel_launch": [
        c_void_p,
        POINTER(c_int32),
        c_char_p,
        c_size_t,
        POINTER(KernelArray),
        c_int32,
        c_void_p,
        POINTER(c_void_p),
    ],
    "nvrtc_folder": [c_char_p],
    "compile": [c_char_p, c_char_p, _TEXT],
    "cached_kernels": [_TEXT],
}
# The others: result and parameters.
_PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "c_version": (c_int32, []),
    "version": (c_char_p, []),
    "last_error": (c_char_p, []),
    "free": (None, [c_void_p]),
    "value_free": (None, [c_void_p]),
    "value_kind": (c_int32, [c_void_p]),
    "value_equal": (c_int32, [c_void_p, c_void_p]),
    "machine_options_init": (None, [POINTER(MachineOptions), c_size_t]),
    "machine_free": (None, [c_void_p]),
    "machine_compute_capability": (c_int32, [c_void_p]),
    "machine_is_simulated": (c_int32, [c_void_p]),
    "report_free": (None, [c_void_p]),
    "launch_free": (None, [c_void_p]),
    "report_findings": (c_int64, [c_void_p]),
    "gemm_arguments_init": (None, [POINTER(GemmArguments), c_size_t]),
    "attention_arguments_init": (None, [POINTER(AttentionArguments), c_size_t]),
    "grouped_gemm_arguments_init": (None, [POINTER(GroupedGemmArguments), c_size_t]),
    "gemm_inputs_arguments_init": (None, [POINTER(GemmInputsArguments), c_size_t]),
    "kernel_source_init": (None, [POINTER(KernelSource), c_size_t]),
    "kernel_free": (None, [c_void_p]),
    "kernel_threads": (c_int32, [c_void_p]),
    "kernel_params_bytes": (c_int64, [c_void_p]),
    "kernel_members": (c_int32, [c_void_p, POINTER(KernelMember), c_int32]),
    "main": (c_int32, [c_int32, POINTER(c_char_p)]),
}


def _load() -> ctypes.CDLL:
    path = pathlib.Path(os.environ.get("TEGULA_LIBRARY") or pathlib.Path(__file__).parent / "libtegula_c.so")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(
            f"tegula: its library {path} cannot be loaded ({error}); install the package by 'pip install .', or set "
            "TEGULA_LIBRARY to the libtegula_c.so of a build."
        ) from error
    try:
        for name, (result, parameters) in {**{name: (c_int32, of) for name, of in _FALLIBLE.items()}, **_PLAIN}.items():
            function = getattr(library, f"tegula_{name}")
            function.argtypes, function.restype = parameters, result
    except AttributeError as error:
        raise ImportError(f"tegula: {path} is of another version than the package ({error}); build both from one checkout.") from None
    if library.tegula_c_version() != C_VERSION:
        raise ImportError(
            f"tegula: {path} has version {library.tegula_c_version()} of the C interface, and the package needs "
            f"{C_VERSION}; build both from one checkout."
        )
    return library


library = _load()


class Owner:
    """Owns something of the library, and frees it at its end. A copy would free it again, so there is none."""

    def __reduce__(self) -> NoReturn:  # for the modules copy and pickle
        raise TypeError(f"a tegula.{type(self).__name__} cannot be copied or pickled; it owns what the library has made for it.")


def _name_nvrtc_folders() -> None:
    """Tells the library where NVIDIA's packages have NVRTC (nvidia/cu13/lib, nvidia/cuda_nvrtc/lib)."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return
    for root in (found.submodule_search_locations or []) if found else []:
        for path in sorted(pathlib.Path(root).glob("*/lib/libnvrtc.so.*")):
            library.tegula_nvrtc_folder(os.fsencode(path.parent))


_name_nvrtc_folders()


def integer(what: str, value: Any) -> int:
    """An integer of any size. `what` begins the sentence that refuses."""
    try:
        return operator.index(value)
    except TypeError:
        raise errors.ArgumentError(f"{what} is {errors.shown(value)}; it must be an integer.") from None


def int32(what: str, value: Any) -> int:
    """An integer for the library, whose integers of this kind have 32 bits. `what` begins the sentence that refuses."""
    number = integer(what, value)
    if not -(2**31) <= number < 2**31:
        raise errors.ArgumentError(f"{what} is {number}; it must fit in 32 bits.")
    return number


def flag(what: str, value: Any) -> bool:
    """True or False, also NumPy's. `what` begins the sentence that refuses."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise errors.ArgumentError(f"{what} is {errors.shown(value)}; it must be True or False.")
    return bool(value)


def fail(status: int) -> NoReturn:
    """Raises the exception of a status, with the library's sentence."""
    sentence = (library.tegula_last_error() or b"").decode("utf-8", "replace")
    raise _ERRORS.get(status, errors.InternalError)(sentence)


def check(status: int) -> None:
    """Raises where a call has failed."""
    if status != 0:
        fail(status)


def text_of(function: Any, *arguments: Any) -> str:
    """The text that a function writes through its last parameter."""
    pointer = c_void_p()
    check(function(*arguments, byref(pointer)))
    try:
        return ctypes.string_at(pointer.value or 0).decode()
    finally:
        library.tegula_free(pointer)
