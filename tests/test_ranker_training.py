"""Training a ranker by the commands: it learns a toy, resumes bit for bit, and answers nothing by itself."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from ranker_toys import MODEL, ranker_mapping, write_dialogues, write_generated

from paddle_dialog.bundle.folder import load_bundle

EMBEDDING = "embedding.table.weight"


@dataclass(frozen=True)
class Runs:
    """Recipes, written as JSON, which is YAML too, and the runs they name."""

    generator: Path
    ranker: Path

    @property
    def folder(self) -> Path:
        """Of all."""
        return self.ranker.parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return a generator after one step, and the recipe of a ranker that starts from it."""
    folder = tmp_path_factory.mktemp("ranker")
    found = Runs(folder / "generator.yaml", folder / "ranker.yaml")
    write_dialogues(folder / "dialogues.jsonl")
    write_generated(folder / "replies.jsonl")
    data = {"train": f"{folder}/dialogues.jsonl", "dev": None, "max_length": 20, "max_target_length": 12}
    generator = {
        "task": "empathetic",
        "model": MODEL,
        "emotion": {"hints": False},
        "data": data,
        "decoding": {"max_length": 12},
        "training": {"max_steps": 1},
        "output_dir": f"{folder}/generator",
    }
    ranker = ranker_mapping(
        data={**data, "dev": data["train"], "batch_size": 12},
        candidates={"generated": 1, "file": f"{folder}/replies.jsonl"},
        training={
            "start_from": f"{folder}/generator/best",
            "epochs": 75,
            "learning_rate": 0.003,
            "save_every": 50,
            "eval_every": 50,
        },
    )
    found.generator.write_text(json.dumps(generator), encoding="utf-8")
    found.ranker.write_text(json.dumps({**ranker, "output_dir": f"{folder}/ranker"}), encoding="utf-8")
    outcome = run_here("train", "-c", found.generator)
    assert outcome.status == 0, outcome.stderr
    return found


def test_a_toy_is_learned_to_near_zero_loss_and_answers_nothing(runs: Runs) -> None:
    outcome = run_here("train", "-c", runs.ranker)
    assert outcome.status == 0, outcome.stderr
    log = outcome.stderr
    assert f"learned anew, as {runs.folder}/generator/best has none: output.weight" in log
    assert "48 choices among 5 replies; " in log and "has wrong ones for 48 of them" in log
    card = load_bundle(runs.folder / "ranker" / "best").card
    curve = [
        float(line.split("|")[2])
        for line in card.splitlines()
        if line.startswith("| ") and "step" not in line
    ]
    assert curve[-1] < 1.05  # of five replies; 5.0 is knowing nothing
    before = load_bundle(runs.folder / "generator" / "best").weights
    after = load_bundle(runs.folder / "ranker" / "best").weights
    np.testing.assert_array_equal(after[EMBEDDING], before[EMBEDDING])
    changed = [name for name in after if name in before and (after[name] != before[name]).any()]
    assert len(changed) == len(after) - 2  # all but the embeddings; the output is new
    for tool, arguments in (("predict", ("hello",)), ("evaluate", ("--data", "sample"))):
        line = run_here(tool, "-c", runs.ranker, *arguments).error_line()
        assert "a ranker answers nothing by itself; it orders replies of the empathetic task" in line


def test_a_resumed_run_goes_on_bit_for_bit(runs: Runs, tmp_path: Path) -> None:
    whole, parts = ("-o", f"output_dir={tmp_path}/whole"), ("-o", f"output_dir={tmp_path}/parts")
    common = ("-c", runs.ranker, "-o", "data.dev=null", "-o")
    for arguments in (
        (*common, "training.max_steps=5", *whole),
        (*common, "training.max_steps=3", *parts),  # in the midst of the second epoch
        (*common, "training.max_steps=5", *parts, "--resume", "auto"),
    ):
        outcome = run_here("train", *arguments)
        assert outcome.status == 0, outcome.stderr
    assert "learned anew" not in outcome.stderr  # it is the last's
    expected, found = (load_bundle(tmp_path / name / "last").weights for name in ("whole", "parts"))
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_a_ranker_starts_from_a_generator_of_its_own_kind(runs: Runs, tmp_path: Path) -> None:
    def told(*settings: str) -> str:
        options = [part for setting in (*settings, f"output_dir={tmp_path}") for part in ("-o", setting)]
        return run_here("train", "-c", runs.ranker, *options).error_line()

    assert "training.start_from: a ranker starts from a generator" in told("training.start_from=null")
    line = told("model.num_layers=3")
    assert "these weights have no encoder.stack.layers.2" in line and "the same model section" in line
    line = told("model.inner_width=65")
    assert "has shape" in line
    missing = tmp_path / "none.jsonl"
    assert f"{missing}: " in told(f"candidates.file={missing}")
    own = runs.folder / "ranker" / "best"
    if own.exists():  # the test of the toy has run
        assert "of the task 'empathetic.ranking', and one of 'empathetic' is wanted" in told(
            f"training.start_from={own}"
        )
