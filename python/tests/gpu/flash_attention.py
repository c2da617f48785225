"""FlashAttention's own test file against tegula.torch: how many of its cases pass as they are, and why the others do not.

    python3 python/tests/gpu/flash_attention.py FILE [--cases N] [--without WORD,...] [--dry] [WORD...]

FILE is tests/test_flash_attn.py of FlashAttention's repository, or FlashAttention-3's hopper/test_flash_attn.py with the files beside it
that it imports (padding.py, test_util.py). It is not changed: what it imports of flash_attn is tegula's, and of pytest what its cases are
made of, since no machine collects all of them. It needs PyTorch and einops. --cases: so many of each test, evenly spread (default 200).
--without: FlashAttention-3's own switches, as backward,local. --dry: on a CPU, where the smallest cases are computed on the simulated
machine. With words, only the tests whose names have one of them.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import itertools
import math
import os
import pathlib
import random
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import tegula.torch as tt
import torch
from tegula import ArgumentError


class Skipped(Exception):
    """A case that the file itself leaves out."""


# --- what a test file takes of pytest -------------------------------------------------------------


class Mark:
    """pytest.mark: parametrize keeps a test's values, and the others do nothing but skipif."""

    def parametrize(self, names: str, values: Any, **_: Any) -> Callable[[Any], Any]:
        def mark(test: Any) -> Any:
            rows = [row if "," in names else (row,) for row in values]
            test.axes = [*getattr(test, "axes", []), (re.split(r"\s*,\s*", names), rows)]
            return test

        return mark

    def skipif(self, condition: bool, **_: Any) -> Callable[[Any], Any]:
        def mark(test: Any) -> Any:
            test.skipped = getattr(test, "skipped", False) or bool(condition)
            return test

        return mark

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: lambda test: test


def skip(reason: str = "") -> None:
    raise Skipped(reason)


@contextlib.contextmanager
def raises(expected: type[BaseException], match: str = "") -> Iterator[None]:
    try:
        yield
    except expected as error:
        assert re.search(match, str(error)), f"it says {error}, and {match} is expected"
    else:
        raise AssertionError(f"{expected.__name__} is expected, and nothing was raised")


def module(name: str, **members: Any) -> None:
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)


# --- what it takes of flash_attn ------------------------------------------------------------------


def unpad_input(x: Any, mask: Any, unused_mask: Any = None) -> Any:
    """The tokens of (batch, seq, ...) that a mask keeps, one behind the other: (tokens, ...)."""
    every = mask if unused_mask is None else mask + unused_mask
    lengths, used = every.sum(-1, dtype=torch.int32), mask.sum(-1, dtype=torch.int32)
    indices = every.flatten().nonzero().flatten()
    begins = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    return x.flatten(0, 1)[indices], indices, begins, int(lengths.max()), used


def pad_input(x: Any, indices: Any, batch: int, seq: int) -> Any:
    """The inverse, with zeros between."""
    return torch.zeros(batch * seq, *x.shape[1:], dtype=x.dtype, device=x.device).index_copy(0, indices, x).unflatten(0, (batch, seq))


def not_there(name: str) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise ArgumentError(f"{name} is not among tegula's functions.")

    return call


def packed(function: Callable[..., Any], last: int) -> Callable[..., Any]:
    """A function of separate operands as one whose last `last` are one tensor, (tokens, last, heads, head_dim) at the end."""

    def call(*arguments: Any, **options: Any) -> Any:
        apart = 3 - last
        together = arguments[apart].unbind(-3)
        rest = list(arguments[apart + 1 :])
        if function is tt.flash_attn_varlen_func and last == 3:  # one table of lengths for all
            rest = [rest[0], rest[0], rest[1], rest[1], *rest[2:]]
        return function(*arguments[:apart], *together, *rest, **options)

    return call


def of_version_3(function: Callable[..., Any]) -> Callable[..., Any]:
    """With FlashAttention-3's options: those that are hints are left out, and those that are not computed are refused."""

    def call(*arguments: Any, **options: Any) -> Any:
        for hint in ("pack_gqa", "sm_margin", "scheduler_metadata"):
            options.pop(hint, None)
        nothing = {"qv": None, "attention_chunk": 0, "seqused_q": None, "cu_seqlens_q": None, "cu_seqlens_k_new": None, "rotary_seqlens": None}
        if function is not tt.flash_attn_with_kvcache:
            nothing.pop("cu_seqlens_q")
        for name, value in nothing.items():
            given = options.pop(name, value)
            if given is not None and given is not value and (isinstance(given, torch.Tensor) or given != value):
                raise ArgumentError(f"{name} is given, and is not computed.")
        if function is tt.flash_attn_with_kvcache and options.get("cache_batch_idx") is None:
            options.pop("max_seqlen_q", None)
        if "window_size" in options:
            options["window_size"] = tuple(options["window_size"])
        return function(*arguments, **options)

    return call


def put_modules_in_place() -> None:
    module("pytest", mark=Mark(), skip=skip, raises=raises, fixture=lambda *_, **__: lambda f: f)
    names = ("flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache")
    module(
        "flash_attn",
        **{name: getattr(tt, name) for name in names},
        flash_attn_kvpacked_func=packed(tt.flash_attn_func, 2),
        flash_attn_qkvpacked_func=packed(tt.flash_attn_func, 3),
        flash_attn_varlen_kvpacked_func=packed(tt.flash_attn_varlen_func, 2),
        flash_attn_varlen_qkvpacked_func=packed(tt.flash_attn_varlen_func, 3),
    )
    module("flash_attn.bert_padding", pad_input=pad_input, unpad_input=unpad_input)
    module(
        "flash_attn.flash_attn_interface",
        _get_block_size_n=lambda *_: 64,
        USE_TRITON_ROCM=False,
        _flash_attn_varlen_forward=not_there("_flash_attn_varlen_forward"),
    )
    module("flash_attn.layers")
    module("flash_attn.layers.rotary", apply_rotary_emb=not_there("apply_rotary_emb"))
    module(
        "flash_attn_interface",
        **{name: of_version_3(getattr(tt, name)) for name in names},
        flash_attn_combine=not_there("flash_attn_combine"),
        get_scheduler_metadata=lambda *_, **__: None,
    )


# --- running --------------------------------------------------------------------------------------


def cases(test: Any, wanted: int) -> Iterator[dict[str, Any]]:
    """So many of a test's cases, evenly spread over the product of its values."""
    axes = getattr(test, "axes", [])
    total = math.prod(len(rows) for _, rows in axes)
    for number in range(min(wanted, total)):
        place = random.Random(number).randrange(number * total // min(wanted, total), (number + 1) * total // min(wanted, total))
        case: dict[str, Any] = {}
        for names, rows in axes:
            place, row = divmod(place, len(rows))
            case.update(zip(names, rows[row], strict=True))
        yield case


def reason_of(error: BaseException) -> str:
    """Alike for cases that fail for the same thing."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else ""
    if "does not require grad" in text or "autograd" in text or "no backward" in text or "derivative" in text:
        return "a backward pass is asked for"
    if isinstance(error, AssertionError):
        line = error.__traceback__
        while line is not None and line.tb_next is not None:
            line = line.tb_next
        return f"an assertion of the file does not hold (line {line.tb_lineno if line else '?'})"
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "N", f"{type(error).__name__}: {text}")[:240]


def outcome_of(test: Any, case: dict[str, Any]) -> str:
    """"passes", "is left out by the file", or a reason."""
    if getattr(test, "skipped", False):
        return "is left out by the file"
    try:
        with contextlib.redirect_stdout(None):
            test(**case)
    except Skipped:
        return "is left out by the file"
    except torch.OutOfMemoryError:
        return "does not fit into the GPU's memory"
    except Exception as error:
        return reason_of(error)
    return "passes"


class OnCpu(torch.overrides.TorchFunctionMode):
    """Tensors that are asked for on "cuda" are made on the CPU."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        options = dict(options or {})
        if str(options.get("device", "")).startswith("cuda"):
            options["device"] = "cpu"
        return function(*arguments, **options)


def is_small(case: dict[str, Any]) -> bool:
    return max([case.get(name, 1) for name in ("seqlen", "seqlen_q", "seqlen_k")]) <= 64 and case.get("d", 64) <= 64


def report(name: str, outcomes: collections.Counter[str], total: int) -> None:
    run = sum(outcomes.values())
    print(f"{name}: {outcomes.pop('passes', 0)} of {run} cases pass ({total} in all)")
    for outcome, count in outcomes.most_common():
        print(f"  {count:6}  {outcome}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--without", default="")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_intermixed_args()
    for switch in filter(None, given.without.split(",")):
        os.environ[f"FLASH_ATTENTION_DISABLE_{switch.upper()}"] = "TRUE"
    put_modules_in_place()
    if given.dry:
        torch.cuda.get_device_capability = lambda *_: (9, 0)
    sys.path.insert(0, str(given.file.resolve().parent))
    spec = importlib.util.spec_from_file_location("flash_attention_tests", given.file)
    assert spec is not None and spec.loader is not None, given.file
    tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    for name, test in vars(tests).items():
        if not name.startswith("test_") or not callable(test) or (given.words and not any(word in name for word in given.words)):
            continue
        total = math.prod(len(rows) for _, rows in getattr(test, "axes", []))
        chosen = cases(test, total if given.dry else given.cases)
        if given.dry:
            chosen = itertools.islice(filter(is_small, chosen), given.cases)
        with OnCpu() if given.dry else contextlib.nullcontext():
            report(name, collections.Counter(outcome_of(test, case) for case in chosen), total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
