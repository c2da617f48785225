"""torch.ops.tegula.*: the kernels as PyTorch's operators, with what a compiler is told of their results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _attention as _attention_problem
from . import _problems
from ._gpu_arrays import gpu_machine
from ._library import library
from .errors import ArgumentError, listed
from .machine import Machine, default_machine

_TYPES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
}
_INTEGERS = {torch.int32: "i32"}
TORCH = {name: dtype for dtype, name in _TYPES.items()}


def operands_of(
    operation: str, tensors: dict[str, Tensor | None], integers: Collection[str] = (), types: Sequence[str] = ()
) -> tuple[dict[str, _problems.Operand], torch.device]:
    """The tensors that are given, as operands, and the device that they share; `integers` names those of int32, and
    `types` are those that the others may have, if not all. Raises ArgumentError."""
    operands: dict[str, _problems.Operand] = {}
    device, of = torch.device("cpu"), ""
    for name, x in tensors.items():
        if x is None:
            continue
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{operation}: {name} is {type(x).__name__}; a torch.Tensor is needed.")
        if x.layout != torch.strided:
            raise ArgumentError(f"{operation}: {name} is {x.layout}; a strided tensor is needed.")
        if x.device.type not in ("cpu", "cuda"):
            raise ArgumentError(f"{operation}: {name} is on {x.device}; tensors of a CPU or of CUDA are computed.")
        if of and x.device != device:
            raise ArgumentError(f"{operation}: {of} is on {device}, and {name} on {x.device}; they must share a device.")
        own = (_INTEGERS if name in integers else _TYPES).get(x.dtype)
        if own is None or (own != "i32" and types and own not in types):
            known = ["int32"] if name in integers else types or [str(dtype).removeprefix("torch.") for dtype in _TYPES]
            raise ArgumentError(f"{operation}: {name} is of {x.dtype}; {listed(known)} is needed.")
        if x.numel() and x.data_ptr() == 0:
            raise ArgumentError(f"{operation}: {name} has no memory: its storage was freed.")
        device, of = x.device, name
        shape = tuple(x.shape)
        strides = _problems.normalised(shape, x.stride())
        operands[name] = _problems.Operand(name, own, x.data_ptr(), shape, strides, "{}.contiguous()")
    return operands, device


def check_writeable(operation: str, name: str, tensor: Tensor) -> None:
    """Refuses a tensor that a result is written into where PyTorch would refuse it as out=: the gradient would not follow."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArgumentError(
            f"{operation}: {name} requires a gradient, and what is written into it has none: use {name}.detach(), or call under "
            "torch.no_grad()."
        )


def machine_of(device: torch.device) -> Machine:
    """Where the tensors of a device are computed."""
    if device.type == "cpu":
        return default_machine()
    return gpu_machine(torch.cuda.current_device() if device.index is None else device.index)


def launch(function: Any, device: torch.device, arguments: Any) -> None:
    """Runs a problem where its tensors are."""
    machine = machine_of(device)
    if device.type == "cpu":
        _problems.launch(function, machine, arguments, None, False)
        return
    with torch.cuda.device(device):
        _problems.launch(function, machine, arguments, torch.cuda.current_stream(device).cuda_stream, False)


class _Plan(NamedTuple):
    """What was worked out for operands of one form, whatever their addresses."""

    arguments: Any  # the C interface's; they keep what they point to
    shapes: list[tuple[tuple[int, ...], torch.dtype]]  # of the results
    workspace_bytes: int


_plans: dict[Any, _Plan] = {}
_MOST_PLANS = 4096


def _form(operation: str, given: dict[str, Any]) -> Any:
    """What a plan follows from; None where a tensor has no strides or no memory, which is for the plan to refuse."""
    form: list[Any] = [operation]
    for x in given.values():
        if x is None or not isinstance(x, Tensor):
            form.append(x)
        elif x.layout != torch.strided or x.data_ptr() == 0:
            return None
        else:
            form += (x.shape, x.stride(), x.dtype, x.device)
    return tuple(form)


def _keep(form: Any, plan: _Plan) -> _Plan:
    if form is not None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[form] = plan
    return plan


def _run(function: Any, plan: _Plan, device: torch.device, given: dict[str, Any]) -> None:
    """Launches it with the addresses of the tensors among what is given."""
    arguments = type(plan.arguments).from_buffer_copy(plan.arguments)
    for name, x in given.items():
        if x is not None and isinstance(x, Tensor):
            setattr(arguments, name, x.data_ptr())
    if plan.workspace_bytes:
        workspace = torch.empty(plan.workspace_bytes + 15, dtype=torch.uint8, device=device)
        arguments.workspace = (workspace.data_ptr() + 15) // 16 * 16
        arguments.workspace_bytes = plan.workspace_bytes
    launch(function, device, arguments)


def _gemm(given: dict[str, Any]) -> Tensor:
    form = _form("gemm", given)
    plan = _plans.get(form)
    if plan is None:
        plan = _keep(form, _gemm_plan(**given))
    ((shape, dtype),) = plan.shapes
    device = given["a"].device
    out = torch.empty(shape, dtype=dtype, device=device)
    _run(library.tegula_gemm, plan, device, given | {"d": out})
    return out


def _gemm_plan(
    *, alpha: float, beta: float, activation: str, out_dtype: torch.dtype | None, **tensors: Tensor | None
) -> _Plan:
    """Raises ArgumentError."""
    operands, device = operands_of("gemm", tensors)
    problem = _problems.Gemm(
        operands["a"],
        operands["b"],
        c=operands.get("c"),
        bias=operands.get("bias"),
        alpha=alpha,
        beta=beta,
        activation=activation,
        out_dtype=None if out_dtype is None else _TYPES.get(out_dtype, str(out_dtype)),
    )
    form = problem.shape, TORCH[problem.out_type]
    out = torch.empty(form[0], dtype=form[1], device=device)
    result, _ = operands_of("gemm", {"out": out})
    return _Plan(problem.into(result["out"]), [form], problem.workspace_bytes(machine_of(device)))


def _gemm_result(a: Tensor, b: Tensor, out_dtype: torch.dtype | None, **_: Any) -> Tensor:
    batches = [x.shape[0] for x in (a, b) if x.dim() == 3]
    shape = [*([next((n for n in batches if n != 1), 1)] if batches else []), a.shape[-2], b.shape[-1]]
    eight_bits = a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
    return a.new_empty(shape, dtype=out_dtype or (torch.bfloat16 if eight_bits else a.dtype))


# The options of a problem that an operator has under their own names.
_OPTIONS = tuple(name for name in _attention_problem.Options._fields if name not in ("window", "out_dtype"))


def _attend(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """O and the log-sum-exp, with or without keys that are appended before."""
    q, cu_seqlens_q = given["q"], given.get("cu_seqlens_q")
    device = q.device
    # What lengths and factors in the host's memory hold is checked at each call.
    read = (*_attention_problem.INTEGERS, *_attention_problem.FACTORS)
    checks = device.type == "cpu" and any(given.get(name) is not None for name in read)
    form = None if checks else _form("attention", given)
    plan = _plans.get(form)
    if plan is None:
        plan = _keep(form, _attention_plan(given))
    (shape, dtype), (lse_shape, _) = plan.shapes
    # Tokens that are no sequence's: zeros, of a log-sum-exp of nothing.
    out = (torch.empty if cu_seqlens_q is None else torch.zeros)(shape, dtype=dtype, device=device)
    lse = torch.empty(lse_shape, dtype=torch.float32, device=device)
    if cu_seqlens_q is not None:
        lse.fill_(-torch.inf)
    _run(library.tegula_attention, plan, device, given | {"o": out, "lse": lse})
    return out, lse if q.dim() == 4 or cu_seqlens_q is not None else lse[None]


def _attention_plan(given: dict[str, Any]) -> _Plan:
    """Raises ArgumentError."""
    arrays = {name: given[name] for name in _attention_problem.ARRAYS if name in given}
    out_dtype = given.get("out_dtype")
    options = _attention_problem.Options(
        window=(given["window_left"], given["window_right"]),
        out_dtype=None if out_dtype is None else _TYPES.get(out_dtype, str(out_dtype)),
        **{name: given[name] for name in _OPTIONS if name in given},
    )
    operands, device = operands_of("attention", arrays, _attention_problem.INTEGERS)
    problem = _attention_problem.Attention(operands, options, on_host=device.type == "cpu")
    form = problem.shape, TORCH[problem.out_type]
    out = torch.empty(form[0], dtype=form[1], device=device)
    lse = torch.empty(problem.lse_shape, dtype=torch.float32, device=device)
    result, _ = operands_of("attention", {"out": out})
    arguments = problem.into(result["out"], lse.data_ptr())
    needed = problem.workspace_bytes(machine_of(device)) if problem.may_split else 0
    return _Plan(arguments, [form, (problem.lse_shape, torch.float32)], needed)


def _attention_results(
    q: Tensor, v: Tensor, cu_seqlens_q: Tensor | None = None, out_dtype: torch.dtype | None = None, **_: Any
) -> tuple[Tensor, Tensor]:
    tokens, heads = q.shape[-3], q.shape[-2]
    of_lse = (heads, tokens) if cu_seqlens_q is not None else (q.shape[0] if q.dim() == 4 else 1, heads, tokens)
    dtype = out_dtype or (torch.bfloat16 if q.dtype == torch.float8_e4m3fn else q.dtype)
    return q.new_empty([*q.shape[:-1], v.shape[-1]], dtype=dtype), q.new_empty(of_lse, dtype=torch.float32)


# --- the operators --------------------------------------------------------------------------------

# torch.library.custom_op would do the same by decorators, and import torch._dynamo at the first call: seconds.
_library = torch.library.Library("tegula", "DEF")


def _define(schema: str, function: Callable[..., Any], results: Callable[..., Any]) -> None:
    """An operator, what a compiler is told of its results, and its backward pass, which is an error. Both functions are
    given the arguments by the schema's names."""
    _library.define(schema)
    name = schema.partition("(")[0]
    parsed = getattr(torch.ops.tegula, name).default._schema
    names = [argument.name for argument in parsed.arguments]
    defaults = tuple(argument.default_value for argument in parsed.arguments)  # None where there is none

    def by_name(called: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            given = dict(zip(names, values + defaults[len(values) :]))
            return called(given | named if named else given)

        return call

    def fake(given: dict[str, Any]) -> Any:
        devices = {key: x.device for key, x in given.items() if isinstance(x, Tensor)}
        if len(set(devices.values())) > 1:
            raise ArgumentError(f"{name}: the tensors are on {devices}; they must share a device.")
        return results(**given)

    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(f"tegula::{name} has no backward kernel; call it under torch.no_grad().")

    _library.impl(name, by_name(function), "CompositeExplicitAutograd")
    torch.library.register_fake(f"tegula::{name}", by_name(fake), lib=_library)
    if not parsed.is_mutable:  # PyTorch has no backward passes of operators that write their arguments
        torch.library.register_autograd(f"tegula::{name}", backward, lib=_library)


_MASK = "bool causal, float? scale, SymInt? window_left, SymInt? window_right, float softcap"
_define(
    "gemm(Tensor a, Tensor b, Tensor? c, Tensor? bias, float alpha, float beta, str activation, ScalarType? out_dtype) -> Tensor",
    _gemm,
    _gemm_result,
)
_define(
    f"attention(Tensor q, Tensor k, Tensor v, Tensor? sink, {_MASK}, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, "
    "SymInt? max_seqlen_q=None, SymInt? max_seqlen_k=None, Tensor? seqused_k=None, Tensor? page_table=None, "
    "SymInt? splits=None, Tensor? q_descale=None, Tensor? k_descale=None, Tensor? v_descale=None, "
    "ScalarType? out_dtype=None, bool? precise=None) -> (Tensor, Tensor)",
    _attend,
    _attention_results,
)
_define(
    f"append_and_attend(Tensor q, Tensor(a!) k, Tensor(b!) v, Tensor k_new, Tensor? v_new, Tensor seqused_k, {_MASK}, "
    "Tensor? page_table=None, SymInt? splits=None) -> (Tensor, Tensor)",
    _attend,
    _attention_results,
)
