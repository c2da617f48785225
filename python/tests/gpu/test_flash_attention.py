"""FlashAttention's own test files, where TEGULA_FLASH_ATTENTION names its repository: what passes is told, not held."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

from support import Skipped

RUNNER = pathlib.Path(__file__).with_name("flash_attention.py")


def run(file: str, *options: str) -> None:
    repository = os.environ.get("TEGULA_FLASH_ATTENTION")
    if not repository:
        raise Skipped("TEGULA_FLASH_ATTENTION is not set to a folder that has FlashAttention's repository")
    if importlib.util.find_spec("einops") is None:
        raise Skipped("there is no einops, which FlashAttention's tests need")
    print(f"{file} {' '.join(options)}", flush=True)
    subprocess.run([sys.executable, str(RUNNER), str(pathlib.Path(repository) / file), *options], check=True)


def test_version_2() -> None:
    run("tests/test_flash_attn.py", "--cases", "100")


def test_version_3() -> None:
    run("hopper/test_flash_attn.py", "--cases", "50")


def test_version_3_without_what_is_not_computed() -> None:
    """By the file's own switches: no backward passes, no chunks and windows."""
    run("hopper/test_flash_attn.py", "--cases", "100", "--without", "backward,local")
