"""Machines: simulated GPUs, and what their checker reports."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from ctypes import byref, c_void_p
from typing import Any, cast

from ._library import MachineOptions, Owner, flag, int32, integer, library, text_of
from ._library import check as _check
from .errors import ArgumentError, shown


def _encoded(name: str, text: str) -> bytes:
    if not isinstance(text, str) or "\0" in text:
        raise ArgumentError(f"Machine: {name} is {shown(text)}; it must be text.")
    return text.encode("utf-8", "replace")


class Machine(Owner):
    """A machine that kernels run on.

    `device` is "sim", "cuda", "cuda:N" or "auto" (a GPU where there is one). The others are of a simulated machine:
    `arch` is "sm90", "sm80" or "sm100"; `scheduler` the order of events, "last", "first" or "random" by `seed`; without `check`
    it looks only for accesses out of bounds, misaligned ones and deadlock; `workers` threads simulate (0: as many as
    there are cores). `bank_conflicts` and `excess_sectors` limit what an access of a warp may cost beyond what its
    bytes need: passes over the banks of shared memory, sectors of global memory; one that costs more is a finding.
    Results and reports do not depend on `workers`. May be shared by threads, whose launches take turns. Raises ArgumentError, and DeviceError where there is no such GPU.
    """

    def __init__(
        self,
        device: str = "sim",
        *,
        arch: str = "sm90",
        scheduler: str = "last",
        seed: int = 0,
        check: bool = True,
        workers: int = 0,
        bank_conflicts: int | None = None,
        excess_sectors: int | None = None,
    ) -> None:
        options = MachineOptions()
        library.tegula_machine_options_init(byref(options), ctypes.sizeof(options))
        options.arch = _encoded("arch", arch)
        options.scheduler = _encoded("scheduler", scheduler)
        options.seed, options.check = integer("Machine: seed", seed) % 2**64, flag("Machine: check", check)
        if options.seed != seed:
            raise ArgumentError(f"Machine: seed is {shown(seed)}; it must be an integer from 0 to 2^64 - 1.")
        options.workers = int32("Machine: workers", workers)
        for name, limit in (("bank_conflicts", bank_conflicts), ("excess_sectors", excess_sectors)):
            if limit is None:
                continue
            if int32(f"Machine: {name}", limit) < 0:
                raise ArgumentError(f"Machine: {name} is {limit}; it must be at least 0.")
            setattr(options, name, limit)
        handle = c_void_p()
        try:
            _check(library.tegula_machine_create(_encoded("device", device), byref(options), byref(handle)))
        except ArgumentError as error:
            sentence = str(error).replace("tegula_machine_create: ", "Machine: ", 1)
            raise ArgumentError(sentence.replace("the machine's name is ", "Machine: device is ", 1)) from None
        self._handle: c_void_p | None = handle

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and library is not None:
            del self._handle
            library.tegula_machine_free(handle)

    @property
    def name(self) -> str:
        """For people: "simulated sm_90"."""
        return text_of(library.tegula_machine_name, self._handle)

    @property
    def compute_capability(self) -> int:
        """80, 90, ..."""
        return int(library.tegula_machine_compute_capability(self._handle))

    @property
    def is_simulated(self) -> bool:
        return bool(library.tegula_machine_is_simulated(self._handle))

    def __repr__(self) -> str:
        return f"<tegula.Machine: {self.name}>"


@functools.lru_cache(maxsize=None)
def default_machine() -> Machine:
    """The machine of calls that name none: a simulated sm_90, made when it is first asked for."""
    return Machine()


# In a process that was forked, another one: of this one a thread may have been in a call then, which is no more there.
os.register_at_fork(after_in_child=default_machine.cache_clear)


def simulated(operation: str, machine: Machine | None) -> Machine:
    """The machine of a call on NumPy arrays: the caller's, or the default one. Raises ArgumentError."""
    machine = default_machine() if machine is None else machine
    if not isinstance(machine, Machine):
        raise ArgumentError(f"{operation}: machine is {type(machine).__name__}; a tegula.Machine is needed.")
    if not machine.is_simulated:
        raise ArgumentError(f"{operation}: NumPy arrays lie in the host's memory, and {machine.name} has its own.")
    return machine


class Report(Owner):
    """What a launch on a simulated machine did, and what the checker found. True where it found nothing."""

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and library is not None:
            del self._handle
            library.tegula_report_free(handle)

    @property
    def findings(self) -> int:
        """How many findings there are."""
        return int(library.tegula_report_findings(self._handle))

    def text(self, *, counters: bool = True) -> str:
        """A finding a line, then (with `counters`) a table of what was counted, by source line."""
        return text_of(library.tegula_report_text, self._handle, flag("Report: counters", counters))

    def json(self, *, counters: bool = True) -> dict[str, Any]:
        """The same as a dictionary (docs/checker.md)."""
        return cast("dict[str, Any]", json.loads(text_of(library.tegula_report_json, self._handle, flag("Report: counters", counters))))

    def __bool__(self) -> bool:
        return self.findings == 0

    def __str__(self) -> str:
        return self.text(counters=False)

    def __repr__(self) -> str:
        return f"<tegula.Report: {self.findings} found>"
