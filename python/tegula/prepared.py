"""The kernels on arrays in a GPU's memory, and launches that are prepared once and made many times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from ctypes import byref, c_void_p
from typing import Any, NamedTuple, Unpack

from . import _attention as _attention_problem
from . import _problems
from ._gpu_arrays import GpuOperand, Said, current_stream, empty, gpu_machine, gpu_operand, gpu_result, makes_arrays, shared_device, stream_of
from ._library import Owner, check, fail, flag, library
from ._options import PreparedAttentionOptions, PreparedGemmOptions
from .errors import ArgumentError
from .machine import Machine

_run = library.tegula_launch_run


class _Call(NamedTuple):
    """A problem on a GPU: the library's arguments, what they point to, and its results."""

    arguments: Any
    device: int
    first: Any  # of the caller's arrays, whose library has the current stream
    owners: list[object]
    results: list[Any]


def _given(operation: str, arrays: dict[str, Any], said: dict[str, Said], written: Collection[str] = ()) -> dict[str, GpuOperand]:
    """Those that are given, as operands; `written` names those that are written to. Raises ArgumentError."""
    for name in ("a", "b", "q", "k", "v"):
        if name in arrays and arrays[name] is None:
            raise ArgumentError(f"{operation}: {name} is None; an array in a GPU's memory is needed.")
    return {
        name: (gpu_result if name in written else gpu_operand)(operation, name, x, said.get(name, Said()))
        for name, x in arrays.items()
        if x is not None
    }


def _machine(operation: str, machine: Machine | None, device: int) -> Machine:
    """The machine of a GPU's arrays, which a caller may name."""
    if machine is None:
        return gpu_machine(device)
    if not isinstance(machine, Machine) or machine.is_simulated:
        what = machine.name if isinstance(machine, Machine) else type(machine).__name__
        raise ArgumentError(f"{operation}: the operands are on GPU {device}, and machine is {what}; leave it out.")
    return machine


def _gemm(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    activation: str = "none",
    scale_a: Any = None,
    scale_b: Any = None,
    dtype: str | None = None,
    dtype_b: str | None = None,
    out_dtype: str | None = None,
    out: Any = None,
    machine: Machine | None = None,
    stream: int | None = None,
) -> _Call:
    arrays = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b}
    of_b = Said(dtype_b, "dtype_b") if dtype_b is not None else Said(dtype, of_raw_only=True)
    held = _given("gemm", arrays, {"a": Said(dtype), "b": of_b})
    out_type = _problems.result_type(held["a"].operand.type, out_dtype)
    for name, x in (("c", c), ("bias", bias)):
        if x is not None:
            held[name] = gpu_operand("gemm", name, x, Said(out_type, of_raw_only=True))
    for name in ("scale_a", "scale_b"):
        if name in held and (held[name].operand.type != "f32" or set(held[name].operand.shape) - {1}):
            raise ArgumentError(f"gemm: {name} must be one value of f32 in the GPU's memory.")
    operands = {name: x.operand for name, x in held.items()}
    problem = _problems.Gemm(
        operands["a"],
        operands["b"],
        c=operands.get("c"),
        bias=operands.get("bias"),
        alpha=alpha,
        beta=beta,
        activation=activation,
        out_dtype=out_dtype,
        **{name: operands[name].address for name in ("scale_a", "scale_b") if name in operands},
    )
    if out is None:
        out = empty("gemm", a, problem.shape, problem.out_type)
    held["out"] = gpu_result("gemm", "out", out, Said(problem.out_type, of_raw_only=True))
    arguments = problem.into(held["out"].operand)
    device = shared_device("gemm", held)
    owners = [x.owner for x in held.values()]
    if stream is None:
        owners += _workspace("gemm", problem, _machine("gemm", machine, device), a)
    return _Call(arguments, device, a, owners, [out])


def _attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    machine: Machine | None,
    stream: int | None = None,
    dtype: str | None = None,
    out: Any = None,
    return_lse: bool = False,
    arrays: dict[str, Any] | None = None,
    **options: Any,
) -> _Call:
    flag("attention: return_lse", return_lse)
    _attention_problem.check_dtype(dtype)
    said = dict.fromkeys(_attention_problem.ELEMENTS, Said(dtype)) | dict.fromkeys(_attention_problem.INTEGERS, Said("i32"))
    said |= dict.fromkeys(_attention_problem.NEW, Said(dtype, of_raw_only=True))
    arrays = arrays or {}
    cache = ("k", "v") if arrays.get("k_new") is not None else ()
    held = _given("attention", {"q": q, "k": k, "v": v, **arrays}, said, cache)
    operands = {name: x.operand for name, x in held.items()}
    problem = _attention_problem.Attention(operands, _attention_problem.Options(**options), on_host=False)
    if out is None:
        out = empty("attention", q, problem.shape, problem.out_type)
    held["out"] = gpu_result("attention", "out", out, Said(problem.out_type, of_raw_only=True))
    results = [out]
    if return_lse:
        results.append(empty("attention", q, problem.lse_shape, "f32"))
        held["lse"] = gpu_operand("attention", "lse", results[1])
    arguments = problem.into(held["out"].operand, held["lse"].operand.address if return_lse else None)
    device = shared_device("attention", held)
    owners = [x.owner for x in held.values()]
    if stream is None:
        owners += _workspace("attention", problem, _machine("attention", machine, device), q)
    return _Call(arguments, device, q, owners, results)


def _workspace(operation: str, problem: Any, machine: Machine, like: Any) -> list[Any]:
    """Memory that the problem is given to work in, where it is of use, if the library of `like` makes arrays. For the current
    stream alone: of another one it might be given to others while it is used."""
    if not makes_arrays(like) or not (needed := problem.workspace_bytes(machine)):
        return []
    workspace = gpu_operand(operation, "workspace", empty(operation, like, (needed,), "u8"), Said("e4m3"))
    problem.work_in(workspace.operand.address, needed)
    return [workspace.owner]


def _launch(function: Any, operation: str, call: _Call, machine: Machine | None, stream: int | None) -> Any:
    stream = current_stream(call.device, call.first)() if stream is None else stream_of(operation, stream)
    _problems.launch(function, _machine(operation, machine, call.device), call.arguments, stream, False)
    return call.results[0] if len(call.results) == 1 else tuple(call.results)


def gemm(a: Any, b: Any, *, machine: Machine | None = None, stream: int | None = None, **options: Any) -> Any:
    """tegula.gemm on arrays of a GPU."""
    return _launch(library.tegula_gemm, "gemm", _gemm(a, b, machine=machine, stream=stream, **options), machine, stream)


def attention(q: Any, k: Any, v: Any, *, machine: Machine | None = None, stream: int | None = None, **options: Any) -> Any:
    """tegula.attention on arrays of a GPU."""
    return _launch(
        library.tegula_attention, "attention", _attention(q, k, v, machine=machine, stream=stream, **options), machine, stream
    )


class PreparedLaunch(Owner):
    """A call on a GPU whose arguments are checked and whose kernel is chosen: calling it queues it again.

    `result` is what it computes, and is written anew by each call: the array, or with return_lse a pair. The arrays of
    the arguments are kept; what they hold is read when the kernel runs.
    """

    def __init__(self, prepare: Any, machine: Machine, call: _Call) -> None:
        handle = c_void_p()
        check(prepare(machine._handle, byref(call.arguments), byref(handle)))
        self._handle: c_void_p | None = handle
        self._kept = machine, call
        self._stream: Callable[[], int] = current_stream(call.device, call.first)
        self.result: Any = call.results[0] if len(call.results) == 1 else tuple(call.results)

    def __call__(self, stream: int | None = None) -> Any:
        """Queues it on a stream (a cudaStream_t's address), else on the current one of PyTorch or CuPy; the result."""
        status = _run(self._handle, self._stream() if stream is None else stream_of("launch", stream))
        if status != 0:
            fail(status)
        return self.result

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and library is not None:
            del self._handle
            library.tegula_launch_free(handle)


def _check_names(function: str, options: Mapping[str, Any], known: type) -> None:
    """Refuses an option that there is not, as Python does where a function names them all."""
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def prepare_gemm(a: Any, b: Any, **options: Unpack[PreparedGemmOptions]) -> PreparedLaunch:
    """tegula.gemm(a, b, ...) on arrays of a GPU, to be queued by calls of what is returned. Raises as gemm does. Where K is
    computed in parts, launches of it must not run at the same time."""
    _check_names("prepare_gemm", options, PreparedGemmOptions)
    given: dict[str, Any] = dict(options)
    machine = given.pop("machine", None)
    call = _gemm(a, b, machine=machine, **given)
    return PreparedLaunch(library.tegula_gemm_prepare, _machine("gemm", machine, call.device), call)


def prepare_attention(q: Any, k: Any, v: Any, **options: Unpack[PreparedAttentionOptions]) -> PreparedLaunch:
    """tegula.attention(q, k, v, ...) on arrays of a GPU, likewise. Where its keys are computed in parts, launches of it
    must not run at the same time."""
    _check_names("prepare_attention", options, PreparedAttentionOptions)
    given: dict[str, Any] = dict(options)
    arrays = {name: given.pop(name) for name in _attention_problem.ARRAYS if name in given}
    machine = given.pop("machine", None)
    call = _attention(q, k, v, machine=machine, arrays=arrays, **given)
    return PreparedLaunch(library.tegula_attention_prepare, _machine("attention", machine, call.device), call)
