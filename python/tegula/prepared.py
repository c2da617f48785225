"""The kernels on arrays in a GPU's memory, and launches that are prepared once and made many times."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

from . import _attention as _attention_problem
from . import _problems
from ._gpu_arrays import GpuOperand, current_stream, empty, gpu_machine, gpu_operand, makes_arrays, shared_device
from ._library import check, fail, library
from .errors import ArgumentError
from .machine import Machine

_run = library.tegula_launch_run


class _Call(NamedTuple):
    """A problem on a GPU: the library's arguments, what they point to, and its results."""

    arguments: Any
    device: int
    owners: list[object]
    results: list[Any]


def _given(operation: str, arrays: dict[str, Any], said: dict[str, str | None]) -> dict[str, GpuOperand]:
    for name in ("a", "b", "q", "k", "v"):
        if name in arrays and arrays[name] is None:
            raise ArgumentError(f"{operation}: {name} is None; an array in a GPU's memory is needed.")
    return {name: gpu_operand(operation, name, x, said.get(name)) for name, x in arrays.items() if x is not None}


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
) -> _Call:
    arrays = {"a": a, "b": b, "c": c, "bias": bias, "scale_a": scale_a, "scale_b": scale_b}
    held = _given("gemm", arrays, {"a": dtype, "b": dtype_b or (dtype if type(b) is type(a) else None)})
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
    held["out"] = gpu_operand("gemm", "out", out)
    arguments = problem.into(held["out"].operand)
    return _Call(arguments, shared_device("gemm", held), [x.owner for x in held.values()], [out])


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
    said: dict[str, str | None] = dict.fromkeys(_attention_problem.ELEMENTS, dtype)
    said |= dict.fromkeys(_attention_problem.INTEGERS, "i32")
    held = _given("attention", {"q": q, "k": k, "v": v, **(arrays or {})}, said)
    operands = {name: x.operand for name, x in held.items()}
    problem = _attention_problem.Attention(operands, _attention_problem.Options(**options), on_host=False)
    if out is None:
        out = empty("attention", q, problem.shape, problem.out_type)
    held["out"] = gpu_operand("attention", "out", out, problem.out_type if dtype is not None else None)
    results = [out]
    if return_lse:
        results.append(empty("attention", q, problem.lse_shape, "f32"))
        held["lse"] = gpu_operand("attention", "lse", results[1])
    arguments = problem.into(held["out"].operand, held["lse"].operand.address if return_lse else None)
    device = shared_device("attention", held)
    owners = [x.owner for x in held.values()]
    # Memory of a stream that is not the current one might be given to others while it is used.
    if stream is None and makes_arrays(q):
        if needed := problem.workspace_bytes(_machine("attention", machine, device)):
            workspace = gpu_operand("attention", "workspace", empty("attention", q, (needed,), "u8"), "e4m3")
            problem.work_in(workspace.operand.address, needed)
            owners.append(workspace.owner)
    return _Call(arguments, device, owners, results)


def _stream(operation: str, stream: Any) -> int:
    """A caller's stream. Raises ArgumentError."""
    if not isinstance(stream, int) or isinstance(stream, bool) or not 0 <= stream < 2**64:
        raise ArgumentError(f"{operation}: stream is {stream!r}; the address of a cudaStream_t is needed, an integer.")
    return stream


def _launch(function: Any, operation: str, call: _Call, machine: Machine | None, stream: int | None) -> Any:
    stream = current_stream(call.device)() if stream is None else _stream(operation, stream)
    _problems.launch(function, _machine(operation, machine, call.device), call.arguments, stream, False)
    return call.results[0] if len(call.results) == 1 else tuple(call.results)


def gemm(a: Any, b: Any, *, machine: Machine | None = None, stream: int | None = None, **options: Any) -> Any:
    """tegula.gemm on arrays of a GPU."""
    return _launch(library.tegula_gemm, "gemm", _gemm(a, b, **options), machine, stream)


def attention(q: Any, k: Any, v: Any, *, machine: Machine | None = None, stream: int | None = None, **options: Any) -> Any:
    """tegula.attention on arrays of a GPU."""
    return _launch(
        library.tegula_attention, "attention", _attention(q, k, v, machine=machine, stream=stream, **options), machine, stream
    )


class PreparedLaunch:
    """A call on a GPU whose arguments are checked and whose kernel is chosen: calling it queues it again.

    `result` is what it computes, and is written anew by each call: the array, or with return_lse a pair. The arrays of
    the arguments are kept; what they hold is read when the kernel runs.
    """

    def __init__(self, prepare: Any, machine: Machine, call: _Call) -> None:
        handle = c_void_p()
        check(prepare(machine._handle, byref(call.arguments), byref(handle)))
        self._handle: c_void_p | None = handle
        self._kept = machine, call
        self._stream: Callable[[], int] = current_stream(call.device)
        self.result: Any = call.results[0] if len(call.results) == 1 else tuple(call.results)

    def __call__(self, stream: int | None = None) -> Any:
        """Queues it on a stream (a cudaStream_t's address), else on the current one of PyTorch or CuPy; the result."""
        status = _run(self._handle, self._stream() if stream is None else stream)
        if status != 0:
            fail(status)
        return self.result

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and library is not None:
            library.tegula_launch_free(handle)


def prepare_gemm(a: Any, b: Any, *, machine: Machine | None = None, **options: Any) -> PreparedLaunch:
    """tegula.gemm(a, b, ...) on arrays of a GPU, to be queued by calls of what is returned. Raises as gemm does."""
    call = _gemm(a, b, **options)
    return PreparedLaunch(library.tegula_gemm_prepare, _machine("gemm", machine, call.device), call)


def prepare_attention(q: Any, k: Any, v: Any, *, machine: Machine | None = None, **options: Any) -> PreparedLaunch:
    """tegula.attention(q, k, v, ...) on arrays of a GPU, likewise. Where its keys are computed in parts, launches of it
    must not run at the same time."""
    arrays = {name: options.pop(name) for name in _attention_problem.ARRAYS if name in options}
    call = _attention(q, k, v, machine=machine, arrays=arrays, **options)
    return PreparedLaunch(library.tegula_attention_prepare, _machine("attention", machine, call.device), call)
