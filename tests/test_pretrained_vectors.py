"""Pretrained vectors through the train command: loaded, frozen or trained, and refused where they do not fit."""

from pathlib import Path

import numpy as np
import pytest
from command import run_here
from conftest import write_couplets

from paddle_dialog.bundle.folder import load_bundle

VECTORS = {"天": [0.5, -0.25, 1.0, 2.0], "地": [1.5, 0.125, -1.0, 0.0], "龘": [9.0, 9.0, 9.0, 9.0]}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_couplets(tmp_path / "train.tsv", 40, seed=1)
    lines = [" ".join([token, *map(str, numbers)]) for token, numbers in VECTORS.items()]
    (tmp_path / "vectors.txt").write_text("3 4\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def arguments(files: Path, trained: bool, size: int = 4) -> list[str]:
    settings = [
        f"data.train={files}/train.tsv",
        f"data.dev={files}/train.tsv",
        "data.min_count=1",
        f"output_dir={files}/run",
        "training.max_steps=2",
        f"model.embedding_size={size}",
        "model.hidden_size=8",
        f"model.pretrained_vectors={files}/vectors.txt",
        f"model.train_vectors={trained}",
    ]
    return ["-c", "configs/couplet_lstm.yaml", *(part for setting in settings for part in ("-o", setting))]


@pytest.mark.parametrize("trained", [True, False])
def test_vectors_are_loaded_and_trained_only_on_request(files: Path, trained: bool) -> None:
    outcome = run_here("train", *arguments(files, trained))
    assert outcome.status == 0, outcome.stderr
    assert "2 of the vocabulary's 18 tokens found" in (files / "run" / "train.log").read_text(
        encoding="utf-8"
    )
    bundle = load_bundle(files / "run" / "last")
    vocabulary = bundle.vocabularies["text"]
    for name in ("source_embedding", "own_target_embedding"):
        table = bundle.weights[f"{name}.table.weight"]
        rows = table[[vocabulary.id("天"), vocabulary.id("地")]]
        expected = np.array([VECTORS["天"], VECTORS["地"]], dtype=np.float32)
        assert np.array_equal(rows, expected) is not trained
        np.testing.assert_allclose(rows, expected, atol=0.01)  # two steps of Adam at 0.001


def test_vectors_of_another_size_are_refused(files: Path) -> None:
    message = run_here("train", *arguments(files, trained=True, size=6)).error_line()
    assert "vectors.txt:1" in message and "4" in message and "6" in message
