"""Every task goes the same way, by its recipe on the sample that ships: train → evaluate → predict → export."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from command import records, run_here

import paddle_dialog
from paddle_dialog.recipes import find_task, task_names

SMALL = {
    "transformer": "width=16 num_heads=2 inner_width=32 encoder_layers=1 decoder_layers=1",
    "lstm": "embedding_size=8 hidden_size=8 num_layers=1",
    "causal": "width=16 num_heads=2 inner_width=32 num_layers=1",
}
LIKELY = "n perplexity"  # of all tasks that write text
EMPATHETIC = "context emotion emotions predictions"


@dataclass(frozen=True)
class Case:
    """A recipe made small, what is asked, and the keys of what is printed.

    Args:
        sizes: one of `SMALL`.
        inputs: texts.
        record: keys of an answer.
        metrics: some of `evaluate`'s.
        settings: further ones.
        arguments: of the task's own.
    """

    recipe: str
    sizes: str
    inputs: tuple[str, ...]
    record: str
    metrics: str
    settings: str = ""
    arguments: tuple[str, ...] = ()


POEM, TALK = "begin predictions", "decoding.max_length=6 emotion.ngram_buckets=512"
CASES = [
    Case("couplet_sample", "transformer", ("天山春红", "风高来"), "first predictions", f"bleu form {LIKELY}"),
    Case("couplet_lstm", "lstm", ("天山春红",), "first predictions", f"bleu form {LIKELY}"),
    Case(
        *("poem", "causal", ("明月", "白日"), POEM, f"bits_per_character perplexity_titled form {LIKELY}"),
        settings="data.min_count=1 decoding.max_length=30",
    ),
    Case("poem", "causal", ("秋",), POEM, LIKELY, "data.min_count=1", ("--form", "五绝")),
    Case(
        *("translation", "transformer", ("学而时习之。",), "source predictions", f"bleu {LIKELY}"),
        settings="data.min_count=1",
    ),
    Case(
        *("translation", "lstm", ("学习知识。",), "source predictions", f"bleu chrf copying {LIKELY}"),
        settings="model={name:␣lstm_attention} data.min_count=1 data.reverse=true",
    ),
    Case(
        *("sentiment_zh", "lstm", ("房间很干净。", "很差！"), "text label probability"),
        metrics="n accuracy f1 calibration_error confusion unclear",
        settings="linear.buckets=4096",
    ),
    Case(
        *("sentiment_en", "transformer", ("a warm film",), "text label probability", "n accuracy"),
        settings="model={name:␣transformer} linear.buckets=4096",
    ),
    Case(
        *("empathetic_zh", "causal", ("我養了十年的貓昨天走了",), EMPATHETIC),
        metrics=f"emotion_accuracy common_openings {LIKELY}",
        settings=f"data.piece_count=500 model.copy_size=4 {TALK}",
    ),
    Case(
        *("empathetic_transformer", "transformer", ("I lost my dog.",), EMPATHETIC),
        metrics=f"emotion_accuracy bleu distinct_1 {LIKELY}",
        settings=TALK,
    ),
]


def texts(answer):
    """Return what an answer says, without its scores."""
    return [prediction["text"] for prediction in answer.get("predictions", ())] or [answer.get("label")]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.recipe}-{case.sizes}" for case in CASES])
def test_a_task_goes_from_its_sample_to_a_bundle_that_answers(case, tmp_path):
    sample = f"sample_{case.recipe[-2:]}" if case.recipe.startswith("sentiment") else "sample"
    settings = [setting.replace("␣", " ") for setting in case.settings.split()]
    settings += [f"model.{size}" for size in SMALL[case.sizes].split()]
    steps = "max_steps=2 eval_every=2 save_every=2 warmup_steps=1"
    settings += [f"training.{each}" for each in steps.split()]
    settings += [f"data.train={sample}", f"data.dev={sample}", f"output_dir={tmp_path / 'run'}"]
    options = [word for setting in settings for word in ("-o", setting)]
    trained = run_here("train", "-c", case.recipe, *options)
    assert trained.status == 0, trained.stderr
    assert trained.stdout.startswith(f"{tmp_path / 'run'}: step 2, best dev ")
    written = tmp_path / "answers.jsonl"
    (metrics,) = records(
        run_here("evaluate", "--weights", tmp_path / "run", "--json", "--predictions", written)
    )
    assert {*case.metrics.split()} <= metrics.keys() and metrics["n"] > 5
    assert len(written.read_text("utf-8").splitlines()) > 5
    asked = ("--json", *case.arguments, *case.inputs)
    answers = records(run_here("predict", "--weights", tmp_path / "run", *asked))
    assert len(answers) == len(case.inputs)
    assert all(set(answer) - {"unsure", "written_to"} == {*case.record.split()} for answer in answers)
    through_paddle = records(run_here("predict", "--weights", tmp_path / "run", "--paddle", *asked))
    assert [texts(answer) for answer in through_paddle] == [texts(answer) for answer in answers]
    exported = run_here("export", "--weights", tmp_path / "run", "--output", tmp_path / "out")
    assert exported.status == 0, exported.stderr
    again = records(run_here("predict", "--weights", tmp_path / "out", *asked))
    assert [set(answer) for answer in again] == [set(answer) for answer in answers]
    predictor = paddle_dialog.load(tmp_path / "out")
    assert len(predictor.predict(case.inputs)) == len(case.inputs)
    printed = run_here("predict", "--weights", tmp_path / "out", *case.arguments, *case.inputs)
    shown = predictor.format_record(json.loads(json.dumps(again[0])))
    assert printed.stdout.startswith(shown)


def test_no_task_is_left_out():
    covered = {find_task(name).name for name in task_names()}
    assert covered == {case.recipe.partition("_")[0] for case in CASES}
