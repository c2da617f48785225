"""The transformers of the GPU's tests (gpu/test_models.py), of few tokens, on the simulated machine."""

from __future__ import annotations

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sys.path.insert(0, str(pathlib.Path(__file__).parent / "gpu"))

import models  # noqa: E402


def test_a_causal_language_model() -> None:
    model = models.causal_language_model(transformers, hidden=256, layers=2, heads=4, key_heads=2, words=512)
    models.Compared(model, torch.randint(0, 512, (1, 24)), "logits").hold()


def test_minilm() -> None:
    model = models.minilm(transformers, layers=1, words=512)
    models.Compared(model, torch.randint(0, 512, (2, 16)), "last_hidden_state").hold()
