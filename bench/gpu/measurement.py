"""What every measurement beside a peer needs: the library's entry points, and the stamp of its records."""

import ctypes
import datetime
import json
import os
import pathlib
import subprocess

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class EntryPoints:
    """bench/gpu/entry_points.cpp of a CUDA build; tensors are passed by address, work goes to torch's current stream."""

    def __init__(self, build):
        self.library = ctypes.CDLL(str(pathlib.Path(build).resolve() / "bench/libtegula_bench_entry_points.so"))

    def __call__(self, function, *values):
        converted = [ctypes.c_void_p(v.data_ptr()) if isinstance(v, torch.Tensor) else v for v in values]
        if getattr(self.library, function)(*converted, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)) != 0:
            raise SystemExit(f"{function} failed")

    def known(self, *functions):
        """The first of these functions that the library has: earlier builds name some otherwise."""
        return next(function for function in functions if hasattr(self.library, function))

    def number(self, function, *values):
        """What an entry point counts; negative where it failed."""
        count = getattr(self.library, function)(*values)
        if count < 0:
            raise SystemExit(f"{function} failed")
        return count

    def values(self, function, count, *values):
        """`count` doubles that an entry point writes: its last argument is where."""
        found = (ctypes.c_double * count)()
        if getattr(self.library, function)(*values, found) != 0:
            raise SystemExit(f"{function} failed")
        return list(found)

    def text(self, function, *values):
        """What an entry point writes into a buffer: its last two arguments are the buffer and its size."""
        buffer = ctypes.create_string_buffer(1024)
        if getattr(self.library, function)(*values, buffer, len(buffer)) != 0:
            raise SystemExit(f"{function} failed")
        return buffer.value.decode()


def stamp(command):
    """What every record of a run says of it."""
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    smi = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(smi, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    return {
        "date": datetime.date.today().isoformat(),
        "gpu": name,
        "driver": driver,
        "commit": commit.stdout.strip() or os.environ.get("TEGULA_COMMIT", "unknown"),
        "command": command,
    }


def append(path, records):
    """Appends JSON lines to the file, and makes its folder."""
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
