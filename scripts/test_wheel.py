#!/usr/bin/env python3
"""Tests the Python package as its users have it: test_wheel.py FOLDER [LIBRARY]

Builds the wheel, installs it into a fresh virtual environment in FOLDER and runs there its tests, the examples of docs/python.md, the
notebooks and mypy. With LIBRARY, the libtegula_c.so of a build, nothing is compiled; without it a source distribution is made first, and the wheel
is built from that, as `pip install` from a package index does it. Exits 77, which CTest reads as skipped, where pip has no index.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77
MOST_BYTES = 20 << 20


def run(*command, cwd=ROOT, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, cwd=cwd, **options)


def make_environment(folder):
    """A virtual environment with what the tests need; its python. Exits where that is not to be had."""
    if sys.version_info < (3, 11):
        print(f"test_wheel: skipped: this Python is {sys.version.split()[0]}, and the package needs 3.11")
        sys.exit(SKIPPED)
    try:
        run(sys.executable, "-m", "venv", folder)
        python = folder / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        run(*pip, "-r", ROOT / "python/tests/requirements.txt")
    except subprocess.CalledProcessError as error:
        print(f"test_wheel: skipped: {error}: it needs python3-venv, and a package index that has {ROOT / 'python/tests/requirements.txt'}")
        sys.exit(SKIPPED)
    return python


def build_wheel(python, folder, library):
    """The wheel's path."""
    pip_wheel = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder]
    if library:
        run(*pip_wheel, ".", "-C", f"cmake.define.TEGULA_BUILT_LIBRARY={library}", "-C", f"build-dir={folder / 'cmake'}")
    else:
        code = "import scikit_build_core.build as b, sys; print(b.build_sdist(sys.argv[1]))"
        run(python, "-c", code, folder)
        (sdist,) = folder.glob("tegula-*.tar.gz")
        run(*pip_wheel, sdist, "-C", f"build-dir={folder / 'cmake'}")
    (wheel,) = folder.glob("tegula-*.whl")
    return wheel


def check_wheel(wheel):
    assert wheel.name.split("-")[2:4] == ["py3", "none"], f"{wheel.name} is not for every Python"
    assert wheel.stat().st_size <= MOST_BYTES, f"{wheel.name} has {wheel.stat().st_size} bytes, more than {MOST_BYTES}"
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("tegula/libtegula_c.so", "tegula/py.typed", "tegula/__init__.py"):
        assert needed in names, f"{wheel.name} lacks {needed}"
    stray = [name for name in names if not name.startswith("tegula")]
    assert not stray, f"{wheel.name} holds {stray}"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    library = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    python = make_environment(folder / "venv")
    wheel = build_wheel(python, folder, library)
    check_wheel(wheel)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", wheel)
    # The tests run outside of the checkout, so that only what is installed can be imported.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TEGULA_"))}
    environment["TEGULA_CACHE"] = str(folder / "cache")
    if thorough := os.environ.get("TEGULA_TEST_THOROUGH"):
        environment["TEGULA_TEST_THOROUGH"] = thorough
    tests = folder / "tests"
    shutil.copytree(ROOT / "python/tests", tests)
    shutil.copytree(ROOT / "examples/notebooks", tests / "notebooks")
    shutil.copy(ROOT / "docs/python.md", tests)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-glob=python.md", "--ignore=gpu", "."]
    run(*pytest, cwd=tests, env=environment)
    mypy = [python, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"]
    run(*mypy, "-p", "tegula", cwd=tests, env=environment)
    run(*mypy, "--exclude", "gpu", ".", cwd=tests, env=environment)


if __name__ == "__main__":
    main()
