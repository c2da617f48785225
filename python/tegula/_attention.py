"""The C interface's attention, made of operands that lie anywhere: NumPy's arrays, PyTorch's tensors."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from ctypes import byref, c_float, c_int32
from typing import Any, NamedTuple

import numpy as np

from ._library import LEFT_OUT, AttentionArguments, TokenStrides, flag, library
from ._problems import CODES, Operand, check_apart, real, values_of, workspace_bytes
from .errors import ArgumentError, shown
from .machine import Machine

# Arguments that are arrays: of elements, of factors in f32, and of int32.
ELEMENTS = ("q", "k", "v")
NEW = ("k_new", "v_new")  # of elements too: keys that are appended
DESCALES = ("q_descale", "k_descale", "v_descale")
FACTORS = ("sink", *DESCALES)
INTEGERS = ("cu_seqlens_q", "cu_seqlens_k", "cu_seqlens_new", "seqused_k", "page_table")
ARRAYS = (*ELEMENTS, *NEW, *FACTORS, *INTEGERS)
TYPES = ("f16", "bf16", "e4m3")  # of ELEMENTS and NEW
_LATENT = 576  # the head dimension of latent attention, whose values are columns of its keys
# Rows of the heads that share keys, above which the keys of a tile are never computed in parts.
_FEW_ROWS = 128
_MOST_SPLITS = 1024  # as the library has it
_MOST_EXTENT = 2**30 - 1024  # likewise
_MOST_TILES = 2**31 - 1  # of 64 queries of a head


class Options(NamedTuple):
    """The other arguments, as tegula.attention has them."""

    causal: bool = False
    scale: float | None = None
    window: tuple[int | None, int | None] = (None, None)
    softcap: float = 0.0
    max_seqlen_q: int | None = None
    max_seqlen_k: int | None = None
    max_seqlen_new: int | None = None
    splits: int | None = None
    precise: bool | None = None
    out_dtype: str | None = None


def _check_tokens(operand: Operand) -> None:
    """Refuses what is no tensor of tokens, or one whose head dimension is not contiguous."""
    name, shape = operand.name, operand.shape
    if len(shape) not in (3, 4):
        raise ArgumentError(
            f"attention: {name} has the shape {shape}; (batch, seq, heads, head_dim) or (seq, heads, head_dim) is needed."
        )
    if 0 in shape:
        raise ArgumentError(f"attention: {name} has the shape {shape}; an empty problem has no result.")
    if max(shape) > _MOST_EXTENT:
        raise ArgumentError(f"attention: {name} has the shape {shape}; an axis has at most {_MOST_EXTENT} elements.")
    if operand.strides[-1] != 1:
        raise ArgumentError(
            f"attention: {name} has a stride of {operand.strides[-1]} elements along the head dimension, which must be "
            f"contiguous: {operand.remedy()}."
        )


def _strides(operand: Operand) -> Any:
    """A pointer to the strides of (batch, seq, head); of tokens without a batch its stride counts for nothing."""
    strides = operand.strides
    if len(strides) == 3:
        strides = (operand.shape[0] * strides[0], *strides)
    return ctypes.pointer(TokenStrides(*strides[:3]))


def _of_rank(operand: Operand, rank: int, form: str) -> None:
    if len(operand.shape) != rank:
        raise ArgumentError(f"attention: {operand.name} has the shape {operand.shape}; {form} is needed.")


def _window(window: Any) -> list[int]:
    """(left, right), of which None is all keys."""
    try:
        left, right = window if isinstance(window, (Sequence, np.ndarray)) else ()  # a set has no order
        limits = [LEFT_OUT if limit is None else operator.index(limit) for limit in (left, right)]
    except (TypeError, ValueError):
        raise ArgumentError(f"attention: window is {shown(window)}; it must be a pair of integers or None.") from None
    for limit in limits:
        if limit != LEFT_OUT and not 0 <= limit < 2**62:
            raise ArgumentError(f"attention: window is {shown(window)}; its limits must be from 0 to 2^62 - 1, or None.")
    return limits


def check_dtype(dtype: Any) -> None:
    """Of what raw bits are said to be."""
    if dtype is not None and (not isinstance(dtype, str) or dtype not in TYPES):
        raise ArgumentError(f"attention: dtype is {shown(dtype)}; it must be one of {', '.join(TYPES)}.")


def _count(name: str, value: Any, otherwise: int, most: int = 2**31 - 1) -> int:
    """A positive integer, or what it is where it is left out."""
    if value is None:
        return otherwise
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"attention: {name} is {shown(value)}; it must be an integer.") from None
    if not 1 <= number <= most:
        raise ArgumentError(f"attention: {name} is {number}; it must be from 1 to {'2^31 - 1' if most == 2**31 - 1 else most}.")
    return number


def _integers(operand: Operand, shape: tuple[int, ...]) -> int:
    """The address of contiguous int32 values of that shape."""
    if operand.type != "i32" or operand.shape != shape or (operand.strides and operand.strides[-1] != 1):
        raise ArgumentError(
            f"attention: {operand.name} is of {operand.type} and has the shape {operand.shape}; contiguous int32 of the "
            f"shape {shape} is needed."
        )
    return operand.address


def _values(operand: Operand) -> list[int]:
    """What contiguous integers in the host's memory hold."""
    return list((c_int32 * operand.shape[0]).from_address(operand.address))


def _check_bounds(operand: Operand, tokens: int, most: int) -> None:
    of = _values(operand)
    if of[0] != 0 or of[-1] > tokens or of != sorted(of):
        raise ArgumentError(f"attention: {operand.name} is {of}; it must rise from 0 to at most the {tokens} tokens.")
    longest = max(end - begin for begin, end in zip(of, of[1:]))
    if longest > most:
        name = operand.name.replace("cu_seqlens", "max_seqlen")
        raise ArgumentError(f"attention: {name} is {most}, and a sequence of {operand.name} has {longest} tokens; it must be as many.")


def _check_pages(table: Operand, pages: int, page_size: int, lengths: list[int]) -> None:
    """Of a page table in the host's memory: the entries of the keys that there are. What lies behind them may be anything."""
    stride = table.strides[0]
    of = list((c_int32 * (stride * (len(lengths) - 1) + table.shape[1])).from_address(table.address))
    for sequence, keys in enumerate(lengths):
        used = -(-keys // page_size)
        for place, page in enumerate(of[stride * sequence : stride * sequence + used]):
            if not 0 <= page < pages:
                raise ArgumentError(
                    f"attention: page_table[{sequence}, {place}] is {page}; it must be from 0 to {pages - 1}, a page of k."
                )


class Attention:
    """O = softmax(scale Q K^T) V for each batch and head, all but O's memory.

    `operands` are those of ARRAYS that are given; `on_host` says that what they hold can be read now. `for_each` makes of a
    factor that is one for all, or lies otherwise than others, a contiguous one of a shape; without it such are refused.
    """

    shape: tuple[int, ...]  # of O
    lse_shape: tuple[int, ...]
    out_type: str
    may_split: bool  # whether a workspace might be of use

    def __init__(
        self,
        operands: dict[str, Operand],
        options: Options,
        *,
        on_host: bool,
        for_each: Callable[[str, tuple[int, int]], Operand] | None = None,
    ) -> None:
        """Raises ArgumentError."""
        q, k, v = (operands[name] for name in ELEMENTS)
        flag("attention: causal", options.causal)
        if not q.type == k.type == v.type:
            raise ArgumentError(f"attention: q, k and v are of {q.type}, {k.type} and {v.type}; they must have one type.")
        self._arguments = a = AttentionArguments()
        library.tegula_attention_arguments_init(byref(a), ctypes.sizeof(a))
        if "k_new" in operands:  # a cache, of which a copy would not be written to
            k, v = k._replace(copying=""), v._replace(copying="")
        self._given, self._on_host = operands | {"k": k, "v": v}, on_host
        for x in (q, k, v):
            _check_tokens(x)
        self._shapes(options)
        self._new_keys(options)
        self._lengths()
        self.out_type = self._out_type(options.out_dtype)
        a.dtype, a.causal, a.out = CODES[q.type], int(options.causal), CODES[self.out_type]
        a.q, a.k, a.v = q.address, k.address, v.address
        a.q_stride, a.k_stride, a.v_stride = _strides(q), _strides(k), _strides(v)
        if options.scale is not None:
            a.scale = ctypes.pointer(c_float(real("attention", "scale", options.scale, "between 2^-126 and 2^126")))
        a.window_left, a.window_right = _window(options.window)
        a.softcap = real("attention", "softcap", options.softcap, "0, for none, or between 2^-60 and 2^12")
        self._factors(for_each)
        if options.precise is not None:
            a.precise = int(flag("attention: precise", options.precise))
        a.splits = LEFT_OUT if options.splits is None else _count("splits", options.splits, 1, _MOST_SPLITS)
        few = a.seq_q * (a.heads // max(a.kv_heads, 1)) <= _FEW_ROWS
        own = any(name in operands for name in INTEGERS)
        self.may_split = a.splits > 1 or (options.splits is None and (few or own))
        if on_host and "k_new" in operands:
            of_cache = ("k", "v")
            for x in (k, v):
                check_apart("attention", x, (other for name, other in self._given.items() if name not in of_cache))
            if a.head_dim != _LATENT:
                check_apart("attention", k, [v])

    def _shapes(self, options: Options) -> None:
        """Extents, from the forms that lengths and pages give to q, k and v."""
        a, given = self._arguments, self._given
        q, k, v = (given[name] for name in ELEMENTS)
        packed_q, packed_k, paged = "cu_seqlens_q" in given, "cu_seqlens_k" in given, "page_table" in given
        if packed_k and paged:
            raise ArgumentError(
                "attention: cu_seqlens_k and page_table are both given; of paged keys seqused_k says how many there are."
            )
        if packed_q:
            _of_rank(q, 3, "(tokens, heads, head_dim), as cu_seqlens_q packs it,")
        if packed_k or paged or packed_q:
            form = "(tokens, heads, head_dim), as cu_seqlens_k packs it," if packed_k else (
                "(pages, page_size, heads, head_dim)" if paged else "(batch, seq, heads, head_dim)"
            )
            _of_rank(k, 3 if packed_k else 4, form)
            _of_rank(v, 3 if packed_k else 4, form)
            if not packed_q:
                _of_rank(q, 4, "(batch, seq, heads, head_dim)")
        elif not len(q.shape) == len(k.shape) == len(v.shape):
            raise ArgumentError(
                f"attention: q, k and v have the shapes {q.shape}, {k.shape} and {v.shape}; all or none must have a batch."
            )
        if k.shape[:-1] != v.shape[:-1]:
            raise ArgumentError(
                f"attention: k has the shape {k.shape}, and v {v.shape}; all but the head dimension must be the same."
            )
        batch = q.shape[0] if len(q.shape) == 4 else 1
        if packed_q:
            bounds = given["cu_seqlens_q"].shape
            if len(bounds) != 1 or bounds[0] < 2:
                raise ArgumentError(f"attention: cu_seqlens_q has the shape {bounds}; (sequences + 1,) is needed.")
            batch = bounds[0] - 1
        of_k = k.shape[0] if len(k.shape) == 4 and not paged else batch
        if of_k != batch or k.shape[-1] != q.shape[-1]:
            raise ArgumentError(
                f"attention: q has the shape {q.shape}, and k {k.shape}; batch and head_dim must be the same."
            )
        a.batch, a.heads, a.kv_heads = batch, q.shape[-2], k.shape[-2]
        a.head_dim, a.head_dim_v = q.shape[-1], v.shape[-1]
        room = k.shape[-3]
        if paged:
            table = given["page_table"]
            _of_rank(table, 2, "(batch, pages of a sequence)")
            if 0 in table.shape:
                raise ArgumentError(f"attention: page_table has the shape {table.shape}; a sequence has at least one page.")
            room *= table.shape[1]
        # No sequence is longer than all tokens are.
        a.seq_q = _count("max_seqlen_q", options.max_seqlen_q, q.shape[-3])
        a.seq_q = min(a.seq_q, q.shape[-3]) if packed_q else a.seq_q
        a.seq_k = _count("max_seqlen_k", options.max_seqlen_k, room)
        a.seq_k = min(a.seq_k, room) if packed_k else a.seq_k
        if not packed_q and a.seq_q != q.shape[-3]:
            raise ArgumentError(f"attention: max_seqlen_q is {a.seq_q}, and q has {q.shape[-3]} tokens; it is for cu_seqlens_q.")
        if not packed_k and a.seq_k > room:
            raise ArgumentError(f"attention: max_seqlen_k is {a.seq_k}; it must be at most {room}, the keys that there is room for.")
        if a.seq_k > _MOST_EXTENT:
            raise ArgumentError(f"attention: page_table has room for {a.seq_k} keys of a sequence; max_seqlen_k must be given, at most {_MOST_EXTENT}.")
        if batch * a.heads * -(-a.seq_q // 64) > _MOST_TILES:
            raise ArgumentError(
                f"attention: {batch} sequences of up to {a.seq_q} queries with {a.heads} heads are more than {_MOST_TILES} tiles of 64 "
                f"queries; {'max_seqlen_q must say how many queries the longest has' if packed_q else 'they must be at most so many'}."
            )
        self.shape = (*q.shape[:-1], v.shape[-1])
        of_batch = (batch,) if len(q.shape) == 4 else ()
        self.lse_shape = (*of_batch, q.shape[-2], q.shape[-3])
        if packed_q:
            a.total_q = q.shape[0]
        if packed_k:
            a.total_k = k.shape[0]
        if "seqused_k" not in given and not packed_k and a.seq_k != room:
            raise ArgumentError(f"attention: max_seqlen_k is {a.seq_k}, and k has {room} keys; it is for cu_seqlens_k or seqused_k.")

    def _new_keys(self, options: Options) -> None:
        """Those that are appended to k and v, which are a cache then."""
        a, given = self._arguments, self._given
        packed = "cu_seqlens_new" in given
        if "k_new" not in given:
            for name in ("v_new", "cu_seqlens_new"):
                if name in given:
                    raise ArgumentError(f"attention: {name} is given and k_new is not; both are needed for keys to be appended.")
            if options.max_seqlen_new is not None:
                raise ArgumentError(f"attention: max_seqlen_new is {shown(options.max_seqlen_new)} and k_new is left out; it is for cu_seqlens_new.")
            return
        if ("v_new" in given) == (a.head_dim == _LATENT):
            raise ArgumentError(
                f"attention: k_new is given and v_new is {'given' if 'v_new' in given else 'not'}, with a head_dim of "
                f"{a.head_dim}; it must be given, but with {_LATENT}, whose values are columns of its keys."
            )
        for name in NEW:
            if name not in given:
                continue
            x = given[name]
            _check_tokens(x)
            _of_rank(x, 3 if packed else 4, "(tokens, kv_heads, head_dim), as cu_seqlens_new packs it," if packed else "(batch, seq, kv_heads, head_dim)")
            tokens = given["k_new"].shape[0] if packed else a.batch
            expected = (tokens, *(() if packed else (given["k_new"].shape[1],)), a.kv_heads, a.head_dim if name == "k_new" else a.head_dim_v)
            if x.shape != expected or x.type != given["k_new"].type:
                raise ArgumentError(
                    f"attention: {name} is of {x.type} and has the shape {x.shape}; {given['k_new'].type} of the shape {expected} is needed."
                )
            setattr(a, name, x.address)
            setattr(a, f"{name}_stride", _strides(x))
        new = given["k_new"]
        a.new_dtype = CODES[new.type]
        a.seq_new = _count("max_seqlen_new", options.max_seqlen_new, new.shape[-3])
        a.seq_new = min(a.seq_new, new.shape[-3]) if packed else a.seq_new
        if not packed and a.seq_new != new.shape[-3]:
            raise ArgumentError(f"attention: max_seqlen_new is {a.seq_new}, and k_new has {new.shape[-3]} tokens; it is for cu_seqlens_new.")
        if packed:
            a.total_new = new.shape[0]

    def _lengths(self) -> None:
        a, given, on_host = self._arguments, self._given, self._on_host
        for name, tokens, most in (
            ("cu_seqlens_q", a.total_q, a.seq_q),
            ("cu_seqlens_k", a.total_k, a.seq_k),
            ("cu_seqlens_new", a.total_new, a.seq_new),
        ):
            if name in given:
                setattr(a, name, _integers(given[name], (a.batch + 1,)))
                if on_host:
                    _check_bounds(given[name], tokens, most)
        lengths: list[int] = []
        if "seqused_k" in given:
            a.seqused_k = _integers(given["seqused_k"], (a.batch,))
            lengths = _values(given["seqused_k"]) if on_host else []
            if any(not 0 <= length <= a.seq_k for length in lengths):
                raise ArgumentError(f"attention: seqused_k is {lengths}; its lengths must be from 0 to {a.seq_k}.")
            if on_host and "cu_seqlens_k" in given:
                self._check_packed(lengths)
            lengths = self._with_new_keys(lengths)
        if "page_table" in given:
            table, k = given["page_table"], given["k"]
            a.page_table = _integers(table, (a.batch, table.shape[1]))
            a.page_table_stride = table.strides[0]
            a.pages, a.page_size = k.shape[:2]
            if on_host:
                _check_pages(table, a.pages, a.page_size, lengths or [a.seq_k] * a.batch)

    def _check_packed(self, lengths: list[int]) -> None:
        """Refuses to use more keys of a sequence than it has: those behind them are the next one's."""
        bounds = _values(self._given["cu_seqlens_k"])
        for sequence, (used, begin, end) in enumerate(zip(lengths, bounds, bounds[1:])):
            if used > end - begin:
                raise ArgumentError(
                    f"attention: seqused_k[{sequence}] is {used}; it must be from 0 to {end - begin}, the keys that cu_seqlens_k gives the sequence."
                )

    def _with_new_keys(self, lengths: list[int]) -> list[int]:
        """How many keys there are then. Raises ArgumentError where the cache has no room for them."""
        a, given = self._arguments, self._given
        if "k_new" not in given:
            return lengths
        bounds = _values(given["cu_seqlens_new"]) if "cu_seqlens_new" in given else [a.seq_new * i for i in range(a.batch + 1)]
        lengths = [length + end - begin for length, begin, end in zip(lengths, bounds, bounds[1:])]
        if any(length > a.seq_k for length in lengths):
            raise ArgumentError(f"attention: with k_new the sequences have {lengths} keys, and k has room for {a.seq_k}; they must fit.")
        return lengths

    def _factors(self, for_each: Callable[[str, tuple[int, int]], Operand] | None) -> None:
        a, given = self._arguments, self._given
        if "sink" in given:
            sink = given["sink"]
            if sink.type != "f32" or sink.shape != (a.heads,) or sink.strides != (1,):
                raise ArgumentError(
                    f"attention: sink is of {sink.type} and has the shape {sink.shape} and strides of {sink.strides} "
                    f"elements; {a.heads} contiguous values of f32 are needed, one for each head."
                )
            a.sink = sink.address
            # What is NaN, or weighs more than all keys, leaves nothing of O.
            self._check_values(sink, "every score must be finite, or -inf for none", lambda x: x < np.inf)
        strides: dict[str, tuple[int, ...]] = {}
        for name in DESCALES:
            if name not in given:
                continue
            factor = given[name]
            if factor.type != "f32" or factor.shape not in ((), (1,), (a.batch, a.kv_heads)):
                raise ArgumentError(
                    f"attention: {name} is of {factor.type} and has the shape {factor.shape}; one f32, or an f32 for each "
                    f"batch and head of k, {(a.batch, a.kv_heads)}, is needed."
                )
            # The sign of V's may be any, and so may be a zero, but where new keys' values are divided by it.
            if name != "v_descale":
                self._check_values(factor, "every factor must be finite and above 0", lambda x: np.isfinite(x) & (x > 0))
            elif "v_new" in given and given["v_new"].type != given["v"].type:
                self._check_values(factor, "every factor must be finite and not 0, for v_new is divided by it", lambda x: np.isfinite(x) & (x != 0))
            else:
                self._check_values(factor, "every factor must be finite", np.isfinite)
            setattr(a, name, factor.address)
            of_axes = zip(factor.shape, factor.strides) if len(factor.shape) == 2 else ()
            strides[name] = tuple(stride if extent > 1 else 0 for extent, stride in of_axes) or (0, 0)
        if len(set(strides.values())) > 1:  # and the library has one pair of them
            if for_each is None:
                raise ArgumentError(f"attention: the strides are {strides}; all descales must have the same.")
            for name in strides:
                factor = for_each(name, (a.batch, a.kv_heads))
                setattr(a, name, factor.address)
                strides[name] = factor.strides
        for of_all in strides.values():
            a.descale_batch_stride, a.descale_head_stride = of_all

    def _check_values(self, factor: Operand, must: str, accepted: Callable[[Any], Any]) -> None:
        if self._on_host and not np.all(accepted(values_of(factor))):
            raise ArgumentError(f"attention: {factor.name} is {shown(values_of(factor))}; {must}.")

    def _out_type(self, said: str | None) -> str:
        own = self._given["q"].type
        if said is not None and (not isinstance(said, str) or said not in ("f16", "bf16")):
            raise ArgumentError(f"attention: out_dtype is {shown(said)}; it must be 'f16' or 'bf16'.")
        return said or ("bf16" if own == "e4m3" else own)

    def into(self, o: Operand, lse: int | None) -> AttentionArguments:
        """The arguments with O's memory, and the address of f32 for `lse_shape`."""
        if o.type != self.out_type:
            raise ArgumentError(f"attention: {o.name} has elements of {o.type}, and the result's are {self.out_type}.")
        if o.shape != self.shape:
            raise ArgumentError(f"attention: {o.name} has the shape {o.shape}, and the result's is {self.shape}.")
        _check_tokens(o)
        if self._on_host:
            check_apart("attention", o, self._given.values())
        a = self._arguments
        a.o, a.lse = o.address, lse
        a.o_stride = _strides(o)
        return a

    def workspace_bytes(self, machine: Machine) -> int:
        """How large a workspace is of use. After `into`."""
        if not self.may_split:
            return 0
        return workspace_bytes(library.tegula_attention_workspace, machine, self._arguments)

    def work_in(self, address: int, bytes: int) -> None:
        """Gives it a workspace, aligned to 16 bytes."""
        self._arguments.workspace, self._arguments.workspace_bytes = address, bytes
