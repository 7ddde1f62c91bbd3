"""Tiny checkpoints, and models fine-tuned from them; run in the environment `.venv-pretrained`."""

from __future__ import annotations

import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

from checkpoints import write_checkpoint
from fine_tuning import ALL, COUPLETS, LORA, ROOT, tune


@pytest.fixture(scope="session")
def couplets():
    """Return couplets of the sample that ships."""
    lines = (ROOT / "tasks/couplet/sample.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[:2] for line in lines[:COUPLETS]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory, couplets):
    """Return a folder with the checkpoints `llama` and `ernie`, and the couplets as `train.tsv`."""
    folder = tmp_path_factory.mktemp("pretrained")
    for shape in ("llama", "ernie"):
        write_checkpoint(folder / shape, shape, ["".join(pair) for pair in couplets], size=1200)
    (folder / "train.tsv").write_text("".join("\t".join(pair) + "\n" for pair in couplets), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def whole(folder):
    """Return Llama's shape with all weights trained."""
    return tune(folder, "whole", "llama", ALL, 0.01)


@pytest.fixture(scope="session")
def lora(folder):
    """Return ERNIE's shape with LoRA."""
    return tune(folder, "lora", "ernie", LORA, 0.02, "-o", "training.epochs=70")
