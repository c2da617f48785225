"""DeepGEMM as a peer, from a folder with its sources: its host code is compiled there once, its kernels when they are first launched.

The folder is a checkout of DeepGEMM with its submodules, or with their headers at third-party/cutlass/include and third-party/fmt/include;
it lies outside this repository. Whatever fails there is said in a sentence, and the measurement goes on without the peer.
"""

import faulthandler
import importlib
import pathlib
import shutil
import subprocess
import sys
import warnings


def load(folder):
    """The module deep_gemm of the folder, or where it is None the one that is installed; None where there is none that works."""
    try:
        if folder is not None:
            _make(pathlib.Path(folder).resolve())
            sys.path.insert(0, str(pathlib.Path(folder).resolve()))
            _try(folder)
        return importlib.import_module("deep_gemm")
    except ModuleNotFoundError as error:
        if folder is not None:
            print(f"without DeepGEMM: {error}")
    except Exception as error:  # of another project: a compiler, a linker, an assertion
        print(f"without DeepGEMM: {' '.join(str(error).split())[-300:]}")
    return None


def _try(folder):
    """One small product in a process of its own, which may crash. Its kernel is compiled on the way."""
    tried = subprocess.run([sys.executable, __file__, str(folder)], capture_output=True, text=True, timeout=180, check=False)
    if tried.returncode != 0:
        raise RuntimeError(f"a small product ended with {tried.returncode}: {tried.stderr.strip()}")


def _small_product(folder):
    import torch

    sys.path.insert(0, str(pathlib.Path(folder).resolve()))
    module = importlib.import_module("deep_gemm")
    a, b = (torch.ones(128, 256, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    of_rows, of_blocks = torch.ones(2, 128, device="cuda").t(), torch.ones(1, 2, device="cuda")
    d = torch.empty(128, 128, device="cuda", dtype=torch.bfloat16)
    module.fp8_gemm_nt((a, of_rows), (b, of_blocks), d)
    torch.cuda.synchronize()
    assert (d == 256).all(), d


def _make(folder):
    package = folder / "deep_gemm"
    if not (folder / "csrc/python_api.cpp").is_file():
        raise RuntimeError(f"{folder} has no csrc/python_api.cpp: it must hold DeepGEMM's sources")
    cutlass, fmt = (folder / "third-party" / name / "include" for name in ("cutlass", "fmt"))
    for needed in (cutlass / "cute", cutlass / "cutlass", fmt / "fmt"):
        if not needed.is_dir():
            raise RuntimeError(f"{needed} is missing: it is a submodule's")
    for name in ("cute", "cutlass"):  # that the kernels include
        if not (package / "include" / name).exists():
            (package / "include" / name).symlink_to(cutlass / name)
    if list(package.glob("_C*.so")):
        return
    from torch.utils.cpp_extension import CUDA_HOME, load

    cccl = pathlib.Path(CUDA_HOME or "/usr/local/cuda") / "include/cccl"  # where CUDA 13 has <cuda/std/...>; nvcc knows it

    build = folder / "build"
    build.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(
            name="_C",
            sources=[str(folder / "csrc/python_api.cpp")],
            extra_include_paths=[str(path) for path in (package / "include", cutlass, fmt, cccl)],
            extra_cflags=["-std=c++20", "-O2", "-fPIC", "-Wno-psabi", "-Wno-deprecated-declarations"],
            extra_ldflags=["-lcudart", "-lnvrtc", "-lcuda"],
            build_directory=str(build),
            with_cuda=True,
            is_python_module=False,
        )
    shutil.copy(build / "_C.so", package / "_C.so")


if __name__ == "__main__":
    faulthandler.enable()
    _small_product(sys.argv[1])
