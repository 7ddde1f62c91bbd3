"""The judge of composed couplets: what it reads, and how it is fitted through its command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from composing_toys import CHARACTERS

import paddle_dialog
from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.judge import JUDGE, Judge
from tasks.couplet.composing.prediction import ComposingPredictor
from tasks.couplet.direction import TO_FIRST, encode_sources
from tasks.couplet.preferences.judge_fitting import main, make_parser, measured
from tasks.couplet.preferences.rated import RatedAnswer
from tasks.couplet.rerank import ReverseModel


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an untrained Transformer with the marks."""
    folder = tmp_path_factory.mktemp("judge")
    half = len(CHARACTERS) // 2
    line = f"{CHARACTERS[:half]}\t{CHARACTERS[half : 2 * half]}\n"
    (folder / "couplets.tsv").write_text(line * 8, encoding="utf-8")
    settings = {
        "data.train": folder / "couplets.tsv", "data.dev": "null", "data.batch_size": 4, "output_dir": folder / "run",
        "model.width": 16, "model.inner_width": 16, "model.num_heads": 2, "model.encoder_layers": 1,
        "model.decoder_layers": 1, "training.max_steps": 1,
    }  # fmt: skip
    chosen = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    outcome = run_here("train", "-c", "configs/couplet.yaml", *chosen)
    assert outcome.status == 0, outcome.stderr
    return folder / "run" / "last"


def composed(count: int, seed: int = 1) -> list[RatedAnswer]:
    """Return couplets of five characters."""
    draws = np.random.default_rng(seed)
    lines = ["".join(draws.choice([*CHARACTERS], 5, replace=False)) for _ in range(2 * count)]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [RatedAnswer(a, b, 0.0, "？" * 5) for a, b in pairs]


def taste(predictor: ComposingPredictor, answers: list[RatedAnswer]) -> np.ndarray:
    """Return ratings by a reader who likes likely lines and one side of the states, [N]."""
    rows = measured(predictor, answers)
    return 5 + 50 * rows[:, 0] + 100 * rows[:, 4]


def fit(bundle: Path, ratings: Path, output: Path) -> int:
    given = ["-c", "configs/couplet.yaml", "--weights", bundle, "--ratings", ratings, "--output", output]
    return run_tool(main, make_parser(), [str(part) for part in given])


def test_what_is_read_back_is_what_the_scores_are_of(bundle: Path) -> None:
    predictor = paddle_dialog.load(bundle)
    answers = composed(3)
    back = ReverseModel(predictor.step_model, predictor.vocabulary)
    lines, found = [a.first for a in answers], [[a.second] for a in answers]
    scores, states = back.read(lines, found)
    assert np.concatenate(scores) == pytest.approx(np.concatenate(back.scores(lines, found)), rel=1e-5)
    rows = measured(predictor, answers)
    assert rows.shape == (3, 1 + 16) and rows[:, 1:] == pytest.approx(np.concatenate(states))
    source, lengths = encode_sources([np.array(TO_FIRST.source(predictor.vocabulary, answers[0].second))])
    single = text_log_probs(predictor.step_model, source, lengths, [predictor.vocabulary.encode(lines[0])])
    assert scores[0][0] == pytest.approx(single[0] / 6, rel=1e-5)


def test_the_command_fits_a_judge_that_composing_heeds(bundle: Path, tmp_path: Path) -> None:
    reader = paddle_dialog.load(bundle)
    records = []
    for seed in range(40):
        answers = composed(12, seed)
        rated = zip(answers, taste(reader, answers).tolist(), strict=True)
        records.append({"answers": [{**vars(answer), "rating": rating} for answer, rating in rated]})
    ratings = tmp_path / "ratings.jsonl"
    ratings.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert fit(bundle, ratings, tmp_path / "judged") == 0
    judged = paddle_dialog.load(tmp_path / "judged")
    assert judged.judge is not None and reader.judge is None
    held_out = composed(200, seed=99)
    rows = measured(judged, held_out)
    values = rows[:, 0] + judged.judge(rows[:, 1:].astype(np.float32))
    assert np.corrcoef(values, taste(reader, held_out))[0, 1] > 0.8
    before = paddle_dialog.load(bundle).compose(count=3, length=5, seed=4)
    assert [str(p) for p in judged.compose(count=3, length=5, seed=4)] != [str(p) for p in before]
    assert run_here("export", "--weights", tmp_path / "judged", "--output", tmp_path / "out").status == 0
    assert JUDGE in load_bundle(tmp_path / "out").extra


def test_what_cannot_be_fitted_is_told(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain.jsonl"
    plain.write_text(
        json.dumps({"first": "春雨", "answers": [{"second": "秋霜", "rating": 1}]}), encoding="utf-8"
    )
    assert fit(bundle, plain, tmp_path / "x") == 2
    assert "no ratings of composed couplets" in capsys.readouterr().err
    other = load_bundle(bundle)
    wrong = {**other.extra, JUDGE: Judge(np.zeros(3)).to_bytes()}
    save_bundle(dataclasses.replace(other, extra=wrong), tmp_path / "wrong")
    outcome = run_here("compose", "-c", "configs/couplet.yaml", "--weights", tmp_path / "wrong")
    assert "reads 3 numbers of a text, and this model has 16" in outcome.error_line()
