"""Leaves the tests of this folder out where there is no GPU."""

from __future__ import annotations

try:
    import torch

    there_is_a_gpu = torch.cuda.is_available()
except ImportError:
    there_is_a_gpu = False

collect_ignore_glob = [] if there_is_a_gpu else ["test_*.py"]
