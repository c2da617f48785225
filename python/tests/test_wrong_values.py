"""Every argument of every public function, given what it cannot be. The arguments are those of the functions' signatures,
so that a new one cannot be forgotten."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest
from test_compiled import OnGpu

import tegula
from tegula import DeviceError, Kernel, Layout, Machine, Tiler
from tegula import deep_gemm as dg

H, F, I, E4M3, BF16 = np.float16, np.float32, np.int32, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
A = np.ones((16, 16), H)
B = np.ones((1, 8, 2, 64), H)
X = np.ones((32, 128), F)
L = Layout("(4,8):(8,1)")
FP8 = np.ones((32, 128), E4M3), np.ones((32, 1), F)
BLOCKS = np.ones((32, 128), E4M3), np.ones((1, 1), F)
GROUPS = np.ones((2, 32, 128), E4M3), np.ones((2, 1, 1), F)
ROWS = np.ones((32, 128), BF16)
OF_K = np.ones((32, 128), BF16).T
COLUMNS = np.ones((32, 256), E4M3).T, np.ones((2, 32), F)
FLAT = np.ones(32 * 256, E4M3), np.ones((2, 32), F)


class Nothing:
    """An object of a type that no function knows."""

    def __repr__(self) -> str:
        return "<nothing>"


def wrong_values() -> list[Any]:
    """Of which a function may take some, as ACCEPTED says."""
    tensors = [torch.ones(3), torch.ones(2, 2).long(), torch.ones(2).to_sparse(), torch.ones(1, device="meta")] if torch else []
    return [
        *tensors,
        Nothing(),
        "nonsense",
        b"\0",
        2**100,
        -(2**40),
        float("nan"),
        1e300,
        1j,
        [Nothing()],
        {},
        (),
        np.array(["x"]),
        np.ones((3, 3, 3, 3, 3), np.int8),
        np.ones(0, H),
    ]


def mask(rows: int = 32) -> Any:
    return np.full(rows, 0, I)


def fp8(a: Any, b: Any, d: Any, **others: Any) -> dict[str, Any]:
    return {"a": a, "b": b, "d": d, **others}


D = np.zeros((32, 32), F)
TWO = np.zeros((2, 32, 32), F)

# Functions, and arguments that they take. Those that are left out are put in one at a time.
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "gemm": (tegula.gemm, {"a": A, "b": A.T}),
    "attention": (tegula.attention, {"q": B, "k": B, "v": B}),
    "grouped_gemm": (tegula.grouped_gemm, {"a": A, "b": np.ones((2, 16, 16), H).swapaxes(1, 2), "group_ends": np.array([4, 16], I)}),
    "prepare_gemm": (tegula.prepare_gemm, {"a": OnGpu(A), "b": OnGpu(A), "out": OnGpu(A)}),
    "prepare_attention": (tegula.prepare_attention, {"q": OnGpu(B), "k": OnGpu(B), "v": OnGpu(B), "out": OnGpu(B)}),
    "gemm of a GPU": (tegula.gemm, {"a": OnGpu(A), "b": OnGpu(A), "out": OnGpu(A)}),
    "attention of a GPU": (tegula.attention, {"q": OnGpu(B), "k": OnGpu(B), "v": OnGpu(B), "out": OnGpu(B)}),
    "compile": (tegula.kernels.compile, {"kernel": "append_keys"}),
    "Machine": (Machine, {}),
    "Report.text": (tegula.gemm(A, A.T, report=True)[1].text, {}),
    "Report.json": (tegula.gemm(A, A.T, report=True)[1].json, {}),
    "Kernel": (Kernel, {"source": "struct k;\n", "name": "k"}),
    "Kernel.compile": (Kernel("struct k;\n", "k").compile, {}),
    "Kernel.__call__": (Kernel("struct k;\n", "k"), {"grid": 1}),
    "Layout": (Layout, {"shape": "(4,8)"}),
    "Layout.__call__": (L, {"coordinates": 1}),
    "Layout.__getitem__": (L.__getitem__, {"mode": 0}),
    "Layout.of": (Layout.of, {"array": A}),
    "Layout.gather": (L.gather, {"array": np.arange(32)}),
    "Layout.draw": (L.draw, {}),
    "Layout.draw_threads": (Layout("((4,8),(2,2)):((32,1),(16,8))").draw_threads, {"tile": (16, 8)}),
    "Tiler": (Tiler, {"entries": 4}),
    "evaluate": (tegula.evaluate, {"expression": "4"}),
    "crd2idx": (tegula.crd2idx, {"coordinate": 1, "shape": (4, 8)}),
    "idx2crd": (tegula.idx2crd, {"index": 1, "shape": (4, 8)}),
    "composition": (tegula.composition, {"self": L, "other": "4:2"}),
    "blocked_product": (tegula.blocked_product, {"self": L, "tiler": "2:1"}),
    "raked_product": (tegula.raked_product, {"self": L, "tiler": "2:1"}),
    "tile_to_shape": (tegula.tile_to_shape, {"self": L, "shape": (8, 16)}),
    "group": (tegula.group, {"self": L, "begin": 0, "end": 1}),
    "take": (tegula.take, {"self": L, "begin": 0, "end": 1}),
    "select": (tegula.select, {"self": L, "modes": 0}),
    "append": (tegula.append, {"self": L, "arguments": "2:1"}),
    "prepend": (tegula.prepend, {"self": L, "arguments": "2:1"}),
    "replace": (tegula.replace, {"self": L, "mode": 0, "other": "2:1"}),
    "slice": (tegula.slice, {"self": L, "coordinate": (None, 3)}),
    "with_shape": (tegula.with_shape, {"self": "8:1", "shape": (4, 2)}),
    "upcast": (tegula.upcast, {"self": L, "factor": 1}),
    "downcast": (tegula.downcast, {"self": L, "factor": 1}),
    "recast": (tegula.recast, {"self": L, "old_bits": 8, "new_bits": 8}),
    "max_common_vector": (tegula.max_common_vector, {"self": L, "other": L}),
    "max_common_layout": (tegula.max_common_layout, {"self": L, "other": L}),
    **{
        name: (getattr(tegula, name), {"self": L})
        for name in ("coalesce", "complement", "right_inverse", "left_inverse", "flatten", "nullspace", "size", "cosize", "rank", "depth")
    },
    **{
        name: (getattr(tegula, name), {"self": L, "tiler": "2:1"})
        for of in ("divide", "product")
        for name in (f"logical_{of}", f"zipped_{of}", f"tiled_{of}", f"flat_{of}")
    },
    "fp8_gemm_nt": (dg.fp8_gemm_nt, fp8(FP8, BLOCKS, D)),
    "fp8_gemm_nn": (dg.fp8_gemm_nn, fp8(FP8, (BLOCKS[0].T, BLOCKS[1].T), D)),
    "fp8_gemm_tn": (dg.fp8_gemm_tn, fp8((FP8[0].T, FP8[1].T), (BLOCKS[0].T, BLOCKS[1].T), D)),
    "fp8_gemm_tt": (dg.fp8_gemm_tt, fp8((FP8[0].T, FP8[1].T), BLOCKS, D)),
    "bf16_gemm_nt": (dg.bf16_gemm_nt, fp8(ROWS, ROWS, D)),
    "bf16_gemm_nn": (dg.bf16_gemm_nn, fp8(ROWS, OF_K, D)),
    "bf16_gemm_tn": (dg.bf16_gemm_tn, fp8(OF_K, OF_K, D)),
    "bf16_gemm_tt": (dg.bf16_gemm_tt, fp8(OF_K, ROWS, D)),
    "m_grouped_fp8_gemm_nt_contiguous": (dg.m_grouped_fp8_gemm_nt_contiguous, fp8(FP8, GROUPS, D, m_indices=mask())),
    "m_grouped_fp8_gemm_nn_contiguous": (
        dg.m_grouped_fp8_gemm_nn_contiguous,
        fp8(FP8, (GROUPS[0].swapaxes(1, 2), GROUPS[1].swapaxes(1, 2)), D, m_indices=mask()),
    ),
    "m_grouped_fp8_gemm_nt_masked": (
        dg.m_grouped_fp8_gemm_nt_masked,
        fp8((np.ones((2, 32, 128), E4M3), np.ones((2, 32, 1), F)), GROUPS, TWO, masked_m=mask(2)),
    ),
    "m_grouped_bf16_gemm_nt_contiguous": (
        dg.m_grouped_bf16_gemm_nt_contiguous,
        fp8(ROWS, np.ones((2, 32, 128), BF16), D, m_indices=mask()),
    ),
    "m_grouped_bf16_gemm_nn_contiguous": (
        dg.m_grouped_bf16_gemm_nn_contiguous,
        fp8(ROWS, np.ones((2, 32, 128), BF16).swapaxes(1, 2), D, m_indices=mask()),
    ),
    "m_grouped_bf16_gemm_nt_masked": (
        dg.m_grouped_bf16_gemm_nt_masked,
        fp8(np.ones((2, 32, 128), BF16), np.ones((2, 32, 128), BF16), TWO, masked_m=mask(2)),
    ),
    "k_grouped_fp8_gemm_nt_contiguous": (
        dg.k_grouped_fp8_gemm_nt_contiguous,
        fp8((COLUMNS[0].T, COLUMNS[1]), (COLUMNS[0].T, COLUMNS[1]), TWO, ks=[128, 128], ks_tensor=np.array([128, 128], I)),
    ),
    "k_grouped_fp8_gemm_nt_contiguous of flat operands": (
        dg.k_grouped_fp8_gemm_nt_contiguous,
        fp8(FLAT, FLAT, TWO, ks=[128, 128], ks_tensor=np.array([128, 128], I)),
    ),
    "k_grouped_fp8_gemm_tn_contiguous": (
        dg.k_grouped_fp8_gemm_tn_contiguous,
        fp8(COLUMNS, COLUMNS, TWO, ks=[128, 128], ks_tensor=np.array([128, 128], I)),
    ),
    "k_grouped_bf16_gemm_tn_contiguous": (
        dg.k_grouped_bf16_gemm_tn_contiguous,
        fp8(OF_K, OF_K, TWO, ks=[64, 64], ks_tensor=np.array([64, 64], I)),
    ),
    "per_token_cast_to_fp8": (dg.per_token_cast_to_fp8, {"x": X}),
    "per_block_cast_to_fp8": (dg.per_block_cast_to_fp8, {"x": X}),
    "per_channel_cast_to_fp8": (dg.per_channel_cast_to_fp8, {"x": X}),
    "get_mn_major_tma_aligned_tensor": (dg.get_mn_major_tma_aligned_tensor, {"x": X}),
    "get_tma_aligned_size": (dg.get_tma_aligned_size, {"x": 3, "element_size": 4}),
    "align": (dg.align, {"x": 3, "y": 4}),
    "ceil_div": (dg.ceil_div, {"x": 3, "y": 4}),
    "calc_diff": (dg.calc_diff, {"x": X, "y": X}),
}
ALGEBRA = {name for name in FUNCTIONS if name in dir(Layout)} | {"Layout", "Layout.__call__", "Layout.of", "Tiler", "evaluate", "crd2idx", "idx2crd"}
OTHERS = {"operations", "default_machine", "get_mk_alignment_for_contiguous_layout", "table"}


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter | None]:
    """By name; of those that a TypedDict names only the name."""
    found: dict[str, inspect.Parameter | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind == inspect.Parameter.VAR_KEYWORD:
            (options,) = get_args(inspect.signature(function, eval_str=True).parameters[name].annotation)
            found |= dict.fromkeys(options.__annotations__)
        else:
            found[name] = parameter
    return found


def call(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """By name, but what is taken by place only, and *arguments."""
    by_place = []
    by_name = dict(given)
    kinds = {name: parameter.kind for name, parameter in inspect.signature(function).parameters.items()}
    if inspect.Parameter.VAR_POSITIONAL in kinds.values():
        for name, kind in kinds.items():
            if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_OR_KEYWORD) and name in by_name:
                by_place.append(by_name.pop(name))
    return function(*by_place, **by_name)


try:
    import torch

    import tegula.torch as tt
except ImportError:
    torch = None
else:
    MATRIX, TOKENS, BOUNDS = torch.ones(16, 16).half(), torch.ones(1, 8, 2, 64).half(), torch.tensor([0, 8], dtype=torch.int32)
    QKV = {"q": TOKENS, "k": TOKENS, "v": TOKENS}
    PACKED = {"q": TOKENS[0], "k": TOKENS[0], "v": TOKENS[0], "cu_seqlens_q": BOUNDS, "cu_seqlens_k": BOUNDS, "max_seqlen_q": 8, "max_seqlen_k": 8}
    HEADS = TOKENS.transpose(1, 2)
    FUNCTIONS |= {
        "gemm of tensors": (tt.gemm, {"a": MATRIX, "b": MATRIX.t()}),
        "linear of tensors": (tt.linear, {"input": MATRIX, "weight": MATRIX}),
        "attention of tensors": (tt.attention, QKV),
        "flash_attn_func": (tt.flash_attn_func, QKV),
        "flash_attn_varlen_func": (tt.flash_attn_varlen_func, PACKED),
        "flash_attn_with_kvcache": (tt.flash_attn_with_kvcache, {"q": TOKENS, "k_cache": TOKENS.clone(), "v_cache": TOKENS.clone()}),
        "scaled_dot_product_attention": (tt.scaled_dot_product_attention, {"query": HEADS, "key": HEADS, "value": HEADS}),
    }

CASES = [(name, parameter) for name, (function, _) in FUNCTIONS.items() for parameter in parameters_of(function)]

# What some sentences call an argument by, one or another.
CALLED = {
    ("Kernel.__call__", "arguments"): "argument 0",
    ("attention of a GPU", "q"): "k is OnGpu",  # with an array of NumPy's in q
    ("linear of tensors", "input"): "gemm: a |'a'",
    ("linear of tensors", "weight"): "b is",
    ("flash_attn_func", "softmax_scale"): "scale is",
    ("flash_attn_func", "num_splits"): "splits is",
    ("flash_attn_varlen_func", "softmax_scale"): "scale is",
    ("flash_attn_varlen_func", "num_splits"): "splits is",
    ("flash_attn_varlen_func", "block_table"): "page_table",
    ("flash_attn_with_kvcache", "softmax_scale"): "scale is",
    ("flash_attn_with_kvcache", "num_splits"): "splits is",
    ("flash_attn_with_kvcache", "v_cache"): "k and v are|v is|'v'",
    ("flash_attn_with_kvcache", "page_table"): "block_table has",
}
# Values that some functions take, by their texts: numbers, the name of a struct, the empty layout.
NUMBERS = {"1267650600228229401496703205376", "-1099511627776"}
TAKEN = {
    ("gemm", "alpha"): NUMBERS,
    ("gemm", "scale_a"): NUMBERS,
    ("gemm", "scale_b"): NUMBERS,
    ("attention", "scale"): NUMBERS,
    ("prepare_gemm", "alpha"): NUMBERS,
    ("prepare_gemm", "beta"): NUMBERS,
    ("prepare_attention", "scale"): NUMBERS,
    ("prepare_attention", "softcap"): NUMBERS,
    ("gemm of a GPU", "alpha"): NUMBERS,
    ("gemm of a GPU", "beta"): NUMBERS,
    ("attention of a GPU", "scale"): NUMBERS,
    ("attention of a GPU", "softcap"): NUMBERS,
    ("align", "x"): NUMBERS,
    ("align", "y"): NUMBERS,
    ("ceil_div", "x"): NUMBERS,
    ("ceil_div", "y"): NUMBERS,
    **{(name, "scale"): NUMBERS for name in ("attention of tensors", "scaled_dot_product_attention")},
    **{(name, "softmax_scale"): NUMBERS for name in ("flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache")},
    ("gemm of tensors", "alpha"): NUMBERS,
    ("Kernel.__call__", "arguments"): {"nan", "ndarray"},
    ("Kernel", "name"): {"'nonsense'"},
    ("Kernel", "include"): {"()"},
    ("Layout.of", "array"): {"ndarray"},
    ("Layout.__call__", "coordinates"): {"ndarray"},
    ("slice", "coordinate"): NUMBERS,
    ("coalesce", "profile"): NUMBERS,
    ("complement", "size"): NUMBERS,
}


def is_taken(name: str, parameter: str, value: Any) -> bool:
    text = type(value).__name__ if isinstance(value, np.ndarray) else repr(value)
    return text in TAKEN.get((name, parameter), ()) or (name in ALGEBRA and isinstance(value, tuple))


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=[f"{name}-{parameter}" for name, parameter in CASES])
def test_a_wrong_value_is_refused(name: str, parameter: str) -> None:
    """By one line, which names the argument; of the algebra, whose arguments are expressions, by one line."""
    function, given = FUNCTIONS[name]
    for value in wrong_values():
        if is_taken(name, parameter, value):
            continue
        with pytest.raises(tegula.TegulaError) as refused:
            call(function, {**given, parameter: value})
        sentence = str(refused.value)
        assert sentence and "\n" not in sentence
        called = parameter, *CALLED.get((name, parameter), parameter).split("|")
        assert name in ALGEBRA or any(words in sentence for words in called), f"{value!r}: {sentence}"


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "compile"])  # which takes its time
def test_what_an_argument_is_put_into_is_taken(name: str) -> None:
    """Else the tests above would test something else than the argument."""
    function, given = FUNCTIONS[name]
    try:
        result = call(function, given)
    except DeviceError as error:  # a GPU that is not here, a compiler that the tests are not given
        assert "GPU" in name or "prepare" in name or name.startswith("Kernel."), error
    else:
        assert result is not NotImplemented


def test_no_function_is_forgotten() -> None:
    public = {name for name in (*tegula.__all__, *dg.__all__) if not isinstance(getattr(tegula, name, None), type)}
    public |= {name for name, value in vars(Layout).items() if callable(value) and not name.startswith("_")}
    tested = {name.partition(" of ")[0].removeprefix("Layout.") for name in FUNCTIONS}
    assert public - tested - OTHERS == set()
