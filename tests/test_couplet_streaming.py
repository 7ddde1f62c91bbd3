"""Couplets that are streamed from their file: the same examples, the same vocabulary, an exact resume."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command import run_here
from conftest import write_couplets

from paddle_dialog.data.batching import StreamedBatches
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.config import CoupletDataConfig
from tasks.couplet.couplets import limit_length, read_couplets
from tasks.couplet.dataset import CoupletDataset, stream_couplets, streamed_vocabulary

RECIPE = """
task: couplet
model: {{name: lstm_attention, embedding_size: 16, hidden_size: 24, num_layers: 1, dropout: 0.3}}
data: {{train: {folder}/train.tsv, dev: null, max_length: 5, batch_size: 16, bucket_batches: 4, streaming: true}}
training: {{epochs: 3, learning_rate: 0.01, save_every: 100, log_every: 100}}
rules: {{enabled: false}}
"""


@pytest.fixture
def settings(tmp_path: Path) -> CoupletDataConfig:
    path = tmp_path / "train.tsv"
    write_couplets(path, 150, seed=4)  # lines of three to six characters, of which five are let through
    path.write_text("\n".join(["", *path.read_text(encoding="utf-8").splitlines()]), encoding="utf-8")
    return CoupletDataConfig(train=str(path), max_length=5, batch_size=16, bucket_batches=4, streaming=True)


@pytest.mark.parametrize("overlong", ["skip", "truncate"])
def test_streamed_examples_are_those_read_at_once(settings: CoupletDataConfig, overlong: str) -> None:
    settings = replace(settings, overlong=overlong)
    couplets, _ = limit_length(read_couplets(settings.train), 5, settings.overlong)
    vocabulary = Vocabulary.build(line for pair in couplets for line in (pair.first, pair.second))
    assert streamed_vocabulary(settings) == vocabulary
    dataset = CoupletDataset(couplets, vocabulary)
    whole = sorted(
        (first.tolist(), second.tolist()) for first, second in (dataset[i] for i in range(len(dataset)))
    )
    stream = StreamedBatches(stream_couplets(settings, vocabulary), 16, bucket_batches=4)
    streamed = sorted((first.tolist(), second.tolist()) for batch in stream for first, second in batch)
    assert streamed == whole and len(stream) == -(-151 // 16)


def test_a_streamed_run_resumes_exactly(settings: CoupletDataConfig, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")

    def train(name: str, steps: int, *more: str) -> Path:
        folder = tmp_path / name
        arguments = ["-c", recipe, "-o", f"output_dir={folder}", "-o", f"training.max_steps={steps}", *more]
        outcome = run_here("train", *arguments)
        assert outcome.status == 0, outcome.stderr
        return folder

    whole, stopped = train("whole", 16), train("stopped", 7)
    for steps in (
        13,
        16,
    ):  # the first stop is inside the first epoch of ten batches, the second inside the next
        train("stopped", steps, "--resume", "auto")
    for name in ("model", "optimizer"):
        contents = [(folder / "last" / f"{name}.safetensors").read_bytes() for folder in (whole, stopped)]
        assert contents[0] == contents[1]
    assert json.loads((whole / "last" / "progress.json").read_text())["batch"] == 6

    refused = run_here(
        "train", "-c", recipe, "-o", f"output_dir={stopped}", "-o", "data.batch_size=8", "--resume", "auto"
    )
    assert "started with 1 processes and data.batch_size 16, and this is 1 with 8" in refused.error_line()


def test_what_cannot_be_streamed_is_refused(settings: CoupletDataConfig, tmp_path: Path) -> None:
    for source in ("sample", "paddlenlp", "paddlenlp:dev"):
        with pytest.raises(UserError, match=f"data.train is '{source}'; only a file can be streamed"):
            streamed_vocabulary(replace(settings, train=source))
    for recipe, setting, message in (
        (
            "couplet_sample",
            "data.workers=2",
            "data.workers: is 2, but a streamed file is read by one process",
        ),
        ("empathetic", "data.workers=0", "data.streaming: the task 'empathetic' cannot stream its data"),
    ):
        arguments = ["-c", f"configs/{recipe}.yaml", "-o", "data.streaming=true", "-o", setting]
        outcome = run_here("train", *arguments, "-o", f"output_dir={tmp_path}/run")
        assert message in outcome.error_line()
