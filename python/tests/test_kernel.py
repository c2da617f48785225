"""tegula.Kernel: a struct of the user's own, compiled by this machine's compiler for the simulated one."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any, cast

import numpy as np
import pytest

import tegula
from tegula import ArgumentError, DeviceError, FindingError, Kernel, Machine

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="there is no C++ compiler")

# Each CTA turns 64 numbers round, by way of shared memory, and scales them.
TURN = """
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"

template <bool Waits> struct Turn {
  struct Params {
    float const* in;
    float* out;
    bool doubles;
    double factor;
    int n;
  };
  struct SharedStorage {
    float numbers[64];
    template <class F> void name_buffers(F&& name) { name("numbers", numbers); }
  };
  static constexpr int threads = 64;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    using namespace tegula;
    int const i = thread_idx(), begin = threads * block_idx().x;
    auto const place = [&](int at) { return shared_address(&smem.numbers[at]); };
    st_shared(place(i), begin + i < p.n ? ld_global<float>(p.in + begin + i) : 0.0f);
    if constexpr (Waits) cta::sync();
    float const x = ld_shared<float>(place(63 - i)) * static_cast<float>(p.factor);
    if (begin + i < p.n) st_global(p.out + begin + i, p.doubles ? 2 * x : x);
  }
};
struct turn : Turn<true> {};
struct turn_without_sync : Turn<false> {};
"""


pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEGULA_CACHE", str(tmp_path / "kernels"))


@pytest.fixture(scope="module")
def turn() -> Kernel:
    return Kernel(TURN, "turn")


def turned(x: np.ndarray, n: int) -> np.ndarray:
    return np.pad(x[:n], (0, -n % 64)).reshape(-1, 64)[:, ::-1].reshape(-1)[:n]


def test_computes_and_reports(turn: Kernel, rng: np.random.Generator) -> None:
    x, out = rng.standard_normal(100).astype(np.float32), np.full(100, 7, np.float32)
    report = turn(2, x, out, False, np.float64(0.5), 90, report=True)
    assert isinstance(report, tegula.Report) and report and "turn: 2 x 1 x 1 CTAs of 64 threads" in str(report)
    np.testing.assert_array_equal(out[:90], turned(x, 90) / 2)
    assert np.all(out[90:] == 7)
    x.flags.writeable = False
    for machine in (Machine(arch="sm80"), Machine(scheduler="random", seed=3)):
        assert turn((2, 1), x, out, True, np.float64(1), 100, machine=machine) is None
        np.testing.assert_array_equal(out, 2 * turned(x, 100))


def test_findings_name_the_line(rng: np.random.Generator) -> None:
    x, out = rng.standard_normal(64).astype(np.float32), np.zeros(64, np.float32)
    wrong = Kernel(TURN, "turn_without_sync")
    line = 1 + TURN[: TURN.index("float const x =")].count("\n")
    with pytest.raises(FindingError, match=f"turn_without_sync.cpp:{line}: .*numbers"):
        wrong(1, x, out, False, np.float64(1), 64)
    report = wrong(1, x, out, False, np.float64(1), 64, report=True)
    assert report is not None and report.findings > 0


# out[i] = 2 in[i], with either pointer first.
TWICE = """
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"

template <bool OutFirst> struct Params;
template <> struct Params<true> { float* out; float const* in; int n; };
template <> struct Params<false> { float const* in; float* out; int n; };

template <bool OutFirst> struct Twice {
  using Params = ::Params<OutFirst>;
  struct SharedStorage {
    float unused[4];
    template <class F> void name_buffers(F&& name) { name("unused", unused); }
  };
  static constexpr int threads = 32;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    using namespace tegula;
    int const i = thread_idx();
    float const x = i < p.n ? ld_global<float>(p.in + i) : 0.0f;
    cta::sync();  // out may be where others read
    if (i < p.n) st_global(p.out + i, 2 * x);
  }
};
struct out_first : Twice<true> {};
struct in_first : Twice<false> {};
"""


@pytest.mark.parametrize("name", ["out_first", "in_first"])
def test_arrays_that_share_memory(name: str) -> None:
    """Share it on the machine: nothing that is copied back takes away what was written by way of another."""
    twice = Kernel(TWICE, name)

    def call(out: np.ndarray, read: np.ndarray, n: int) -> Any:
        return twice(1, *((out, read) if name == "out_first" else (read, out)), n, report=True)

    x = np.arange(8, dtype=np.float32)
    assert call(x, x, 8)
    np.testing.assert_array_equal(x, 2 * np.arange(8))
    for out, read in ((slice(0, 4), slice(2, 6)), (slice(3, 7), slice(1, 5)), (slice(2, 4), slice(0, 8)), (slice(0, 8), slice(2, 4))):
        x = np.arange(8, dtype=np.float32)
        n = min(out.stop - out.start, read.stop - read.start)
        expected = x.copy()
        expected[out][:n] = 2 * x[read][:n]
        assert call(x[out], x[read], n)
        np.testing.assert_array_equal(x, expected)
    # A view that is read-only shares what is written by way of another; what only it holds is not copied back.
    x = np.arange(8, dtype=np.float32)
    read_only = x[:6]
    read_only.flags.writeable = False
    assert call(x[2:], read_only, 6)
    np.testing.assert_array_equal(x, [0, 1, 0, 2, 4, 6, 8, 10])
    # Arrays beside each other share nothing: what runs from one into the other is found.
    x = np.arange(8, dtype=np.float32)
    assert call(x[4:], x[:4], 5).findings > 0
    assert call(x[4:], np.zeros(0, np.float32), 0)


def test_is_kept(tmp_path: pathlib.Path) -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    (tmp_path / "factor.hpp").write_text("constexpr float kFactor = 3;\n")
    text = TURN.replace("2 * x", "kFactor * x").replace("\n#include", '\n#include "factor.hpp"\n#include', 1)
    (tmp_path / "turn.cpp").write_text(text)
    for expected, compiled in ((3, 1), (3, 1), (5, 2)):
        (tmp_path / "factor.hpp").write_text(f"constexpr float kFactor = {expected};\n")
        Kernel(tmp_path / "turn.cpp", "turn")(1, x, out, True, np.float64(1), 64)
        assert np.all(out == expected)
        assert [(kernel.name, kernel.arch) for kernel in tegula.kernels.cached()] == [("turn", "host")] * compiled


OUT = np.zeros(64, np.float32)
FACTOR = np.float64(1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda turn: turn(1, OUT, OUT, True, 1.0, 64), "argument 3 is 1.0, and member 3 of its Params is a floating-point number of 8 bytes; np.float64 is needed."),
        (lambda turn: turn(1, OUT), "turn: its Params have 5 members, and there are 1 arguments; an argument for each"),
        (lambda turn: turn(1, OUT, OUT, True, 1.0, 64, 3), "turn: its Params have 5 members, and there are 6 arguments"),
        (lambda turn: turn(1, OUT, 5, True, FACTOR, 64), "argument 1 is 5, and member 1 of its Params is a pointer; an array, or ctypes.c_void_p, is needed."),
        (lambda turn: turn(1, OUT, np.int64(5), True, FACTOR, 64), "and member 1 of its Params is a pointer"),
        (lambda turn: turn(1, OUT, OUT, 1, FACTOR, 64), "argument 2 is 1, and member 2 of its Params is a bool; a bool is needed."),
        (lambda turn: turn(1, OUT, OUT, True, OUT, 64), "argument 3 is an array, and member 3 of its Params is a floating-point number of 8"),
        (lambda turn: turn(1, OUT, OUT, True, np.int64(1), 64), "np.float64 is needed"),
        (lambda turn: turn(1, OUT, OUT, True, FACTOR, 64.0), "argument 4 is 64.0, and member 4 of its Params is an integer of 4 bytes; an int is needed."),
        (lambda turn: turn(1, OUT, OUT, True, FACTOR, np.int64(64)), "an int is needed"),
        (lambda turn: turn(0, OUT, OUT, True, FACTOR, 64), "grid is 0; it must be one to three integers from 1"),
        (lambda turn: turn((1, 1.5), OUT, OUT, True, FACTOR, 64), "it must be one to three integers"),
        (lambda turn: turn(1, OUT, "x", True, FACTOR, 64), "argument 1 is str; an array"),
        (lambda turn: turn(1, OUT, OUT, True, FACTOR, 2**40), "say np.int64"),
        (lambda turn: turn(1, OUT[::2], OUT, True, FACTOR, 64), "use np.ascontiguousarray"),
        (lambda turn: turn(1, OUT, OUT, True, FACTOR, 64, machine=cast(Any, 3)), "machine is int"),
        (lambda turn: Kernel("/nowhere/kernel.cpp", "turn"), "which cannot be read"),
        (lambda turn: Kernel(TURN, "not a name"), "it must be a struct's name"),
    ],
)
def test_refusals_are_sentences(turn: Kernel, call: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        call(turn)
    assert sentence in str(refused.value)


# Writes the bytes of its Params.
MEMBERS = """
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include <array>
struct Half { unsigned short bits; };
struct Base { int first; };
struct Empty {};
enum class Colour : short { red };
struct Kernel {
  struct SharedStorage { template <class F> void name_buffers(F&&) {} };
  static constexpr int threads = 32;
  template <class P> static void write(P const& p) {
    using namespace tegula;
    auto const* bytes = reinterpret_cast<unsigned char const*>(&p);
    if (thread_idx() == 0)
      for (int i = 0; i < int(sizeof(P)); ++i) st_global(p.out + i, static_cast<unsigned char>(bytes[i]));
  }
};
struct mixed : Kernel {
  struct Params { unsigned char* out; Half half; Colour colour; struct { int m, n; } shape; int table[2]; bool flag;
                  alignas(32) double d; Empty empty; std::array<int, 2> pair; };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const { write(p); }
};
struct derived : Kernel {
  struct Params : Base { unsigned char* out; };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const { write(p); }
};
struct nameless : Kernel {
  struct Params { unsigned char* out; union { int i; float f; }; int last; };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const { write(p); }
};
"""


def test_members_of_structs() -> None:
    out = np.zeros(96, np.uint8)
    mixed = Kernel(MEMBERS, "mixed")
    pair = np.array([(7, 8)], [("a", "i4"), ("b", "i4")])[0]
    shape = np.array([(3, 4)], [("m", "i4"), ("n", "i4")])[0]
    expected: dict[int, Any] = {8: np.float16(1.5), 10: np.int16(2), 12: np.int32(3), 16: np.int32(4), 20: np.int32(5), 24: np.int32(6), 28: np.uint8(1), 32: np.float64(0.25)}
    at_pair = 44  # behind the empty member
    accepted: tuple[tuple[Any, ...], ...] = (
        (np.float16(1.5), np.int16(2), 3, 4, 5, 6, True, np.float64(0.25), pair),
        (np.uint16(0x3E00), np.uint16(2), shape, np.array([5, 6], "i4").view([("x", "i4", 2)])[0], np.uint8(1), np.float64(0.25), pair),
    )
    for arguments in accepted:
        out[:] = 0
        mixed(1, out, *arguments)
        for at, value in expected.items():
            assert out[at : at + value.nbytes].tobytes() == value.tobytes(), at
        assert out[at_pair : at_pair + 8].view(np.int32).tolist() == [7, 8]
    half = np.float16(1)
    refusals: tuple[tuple[tuple[Any, ...], str], ...] = (
        ((half, np.int16(2), 3, 4, 5, 6, True, np.float64(1)), "Params have 10 members, and there are 9 arguments"),
        ((1.0, np.int16(2), 3, 4, 5, 6, True, np.float64(1), pair), "argument 1 is 1.0, and member 1 of its Params is a class of 2 bytes"),
        ((half, 2, 3, 4, 5, 6, True, np.float64(1), pair), "member 2 of its Params is an integer of 2 bytes; np.int16 is needed"),
        ((half, np.int16(2), pair, pair, pair, np.float64(1), pair), "member 7 of its Params is a bool"),
    )
    for arguments, sentence in refusals:
        with pytest.raises(ArgumentError) as refused:
            mixed(1, out, *arguments)
        assert sentence in str(refused.value)


def test_members_that_cannot_be_told() -> None:
    """Of these the size of all is looked at."""
    out = np.zeros(64, np.uint8)
    Kernel(MEMBERS, "derived")(1, 5, out)
    assert out[:4].view(np.int32)[0] == 5
    with pytest.raises(ArgumentError, match="the 1 arguments make 8 bytes, and its Params have 16; an argument for each"):
        Kernel(MEMBERS, "derived")(1, out)
    Kernel(MEMBERS, "nameless")(1, out, 6, 7)
    assert out[8:16].view(np.int32).tolist() == [6, 7]


def test_another_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's is the one that is there when a kernel is compiled."""
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for number, (compiler, sentence) in enumerate(((None, None), ("/bin/false", "TEGULA_CXX is /bin/false, which cannot be run"), ("", "TEGULA_CXX is empty"), (None, None))):
        if compiler is None:
            monkeypatch.delenv("TEGULA_CXX", raising=False)
        else:
            monkeypatch.setenv("TEGULA_CXX", compiler)
        another = Kernel(TURN.replace("2 * x", f"{number} * x"), "turn")
        if sentence is None:
            another(1, x, out, True, FACTOR, 64)
            assert np.all(out == number)
        else:
            with pytest.raises(DeviceError, match=sentence):
                another(1, x, out, True, FACTOR, 64)


def test_what_does_not_compile() -> None:
    with pytest.raises(DeviceError, match="did not compile the kernel: .*broken.cpp:3.*undeclared|undefined"):
        Kernel("\nstruct broken {\n  int x = undeclared;\n};\n", "broken").compile()


def test_without_a_compiler() -> None:
    code = "import tegula; tegula.Kernel('struct none {};\\n', 'none').compile()"
    for environment, sentence in (
        ({"PATH": "/nowhere"}, "install g\\+\\+, or set TEGULA_CXX"),
        ({"TEGULA_CXX": "/nowhere/c++"}, "TEGULA_CXX is /nowhere/c\\+\\+, which cannot be run"),
        ({"TEGULA_CXX": "true"}, "true was run to compile a kernel and wrote no shared library; TEGULA_CXX must be"),
        ({"TMPDIR": "/nowhere"}, "TMPDIR is '/nowhere', in which a kernel is to be compiled; it must be a folder"),
    ):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
        assert done.returncode == 1
        assert "DeviceError" in done.stderr and re.search(sentence, done.stderr)
