"""Processes that are forked: a machine that another thread was in a call on is refused there, all else goes on."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import tegula
from tegula import DeviceError, Machine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

ml_dtypes = pytest.importorskip("ml_dtypes")
A = np.ones((64, 64), ml_dtypes.bfloat16)


def forked(f: Callable[[], bool]) -> int:
    """The exit status of a process that is forked for f: 0 where it is true; a signal's number below 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a process with threads
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os._exit(0 if f() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def multiplies(machine: Machine | None) -> bool:
    return bool(np.all(tegula.gemm(A, A.T, machine=machine) == 64))


def is_refused(machine: Machine) -> bool:
    try:
        multiplies(machine)
    except DeviceError as error:
        return "process that this one was forked from, where another thread was in a call on it; make a machine" in str(error)
    return False


def test_machines_of_the_parent() -> None:
    machine = Machine()
    assert multiplies(None) and multiplies(machine)
    assert forked(lambda: multiplies(None) and multiplies(machine)) == 0
    assert multiplies(machine)


def test_a_fork_while_a_kernel_runs() -> None:
    assert multiplies(None)
    machine, idle = Machine(), Machine()
    q = np.ones((1, 512, 4, 64), ml_dtypes.bfloat16)
    stop = threading.Event()

    def attend() -> None:
        while not stop.is_set():
            tegula.attention(q, q, q, machine=machine)
            tegula.attention(q, q, q)

    thread = threading.Thread(target=attend)
    thread.start()
    try:
        for _ in range(3):
            assert forked(lambda: multiplies(None) and multiplies(Machine()) and multiplies(idle)) == 0
            # Between two calls it is not in use, and may be used.
            assert forked(lambda: is_refused(machine) or multiplies(machine)) == 0
    finally:
        stop.set()
        thread.join()
    assert multiplies(machine)


def test_a_machine_in_use_is_refused() -> None:
    machine = Machine(workers=1)
    q = np.ones((1, 1024, 4, 64), ml_dtypes.bfloat16)
    thread = threading.Thread(target=lambda: tegula.attention(q, q, q, machine=machine))
    thread.start()
    statuses: list[int] = []
    while thread.is_alive() and len(statuses) < 3:
        statuses.append(forked(lambda: is_refused(machine)))
        if 0 in statuses:
            break
        thread.join(0.05)
    thread.join()
    assert 0 in statuses and all(status >= 0 for status in statuses)
