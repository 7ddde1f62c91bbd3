"""Judges: their file and fit, the states of a reply, and the command that fits one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from empathetic_array_cases import ALL_CASES, CONTEXTS, VOCABULARY, Sections, models
from empathetic_toys import make_config, save_model
from sklearn.linear_model import Ridge

import paddle_dialog
from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.decoding.interface import evaluation_mode
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, SCORE_SCALE, Judge, fit_order, judge_of_bundle
from tasks.empathetic.data.encoding import DialogueEncoder, make_encoder
from tasks.empathetic.judge_fitting import main, make_parser
from tasks.empathetic.network.emo_prepend import EmoPrepend
from tasks.empathetic.network.numpy_emo_prepend import NumpyEmoPrepend
from tasks.empathetic.reading import ReadBatch, ReadContext, as_source, log_probs, reply_states


def test_a_judge_keeps_its_weights_in_a_file_and_refuses_another_width() -> None:
    judge = Judge(np.array([1.0, -2.0]))
    states = np.array([[3.0, 1.0], [0.0, 1.0]])
    again = Judge.from_bytes(judge.to_bytes(), 2)
    assert again(states).tolist() == judge(states).tolist() == [1.0, -2.0]
    with pytest.raises(UserError, match="reads 2 numbers of a text, and this model has 3"):
        Judge.from_bytes(judge.to_bytes(), 3)
    with pytest.raises(UserError, match="holds no judge"):
        Judge.from_bytes(b"no", 3)


def test_a_bundle_without_a_judge_says_so_once_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "paddle_dialog")
    assert judge_of_bundle(b"no judge at all", 2, 0.0) is None and judge_of_bundle(None, 2, 0.0) is None
    assert not caplog.messages
    assert judge_of_bundle(None, 2, 1.0) is None
    assert JUDGE in caplog.messages[0]
    judge = judge_of_bundle(Judge(np.ones(2)).to_bytes(), 2, 0.5)
    assert judge is not None and judge(np.eye(2)).tolist() == [1, 1]


def test_the_fit_is_ridge_regression_within_each_input() -> None:
    random = np.random.default_rng(1)
    inputs = random.permutation(np.repeat(np.arange(80) * 7, 5))
    rows = random.normal(size=(400, 5)) * [1, 10, 0.1, 3, 0] + 2
    easy = random.normal(size=600) * 20  # some inputs are easy to answer well, which must not matter
    values = rows @ [0.5, -0.1, 3, 0, 0] + easy[inputs] + random.normal(size=400) * 0.1
    scaled = rows / [*rows.std(0)[:4], 1] * [SCORE_SCALE, SCORE_SCALE, 1, 1, 1]
    means = np.stack([scaled[inputs == one].mean(0) for one in inputs])
    goals = values - [values[inputs == one].mean() for one in inputs]
    expected = Ridge(alpha=30, fit_intercept=False).fit(scaled - means, goals).coef_
    found = fit_order(rows, values, inputs, 2, 30)
    spared = np.array([SCORE_SCALE, SCORE_SCALE, 1, 1])
    np.testing.assert_allclose(found[:4], expected[:4] * spared / rows.std(0)[:4], rtol=1e-6)
    assert found[4] == 0
    np.testing.assert_allclose(found[:3], [0.5, -0.1, 3], rtol=0.2)


def test_texts_that_count_nothing_change_nothing() -> None:
    random = np.random.default_rng(3)
    rows, inputs = random.normal(size=(60, 2)), np.repeat(np.arange(12), 5)
    values = rows @ [1.0, -1.0]
    wrong = np.where(np.arange(60) < 30, -values, values)
    counts = (np.arange(60) >= 30).astype(float) + 1e-9
    found = fit_order(rows, wrong, inputs, 0, 1e-6, counts)
    np.testing.assert_allclose(found, [1.0, -1.0], rtol=1e-3)


REPLIES = [("oh", "no", "!"), ("i",), ("that", "is", "awful", ".", "who", "stole", "it", "?")]


@pytest.mark.parametrize(("family", "sections"), ALL_CASES)
def test_states_over_arrays_are_those_of_the_network(family: str, sections: Sections) -> None:
    network, arrays = models(family, sections)
    encoder = make_encoder(make_config(family, **sections), VOCABULARY)
    emotion = 3 if sections.get("emotion", {}).get("prepend") == "gold" else None
    for turns in CONTEXTS[:4]:
        theirs, ours, other = (read(model, encoder, turns, emotion) for model in (network, arrays, arrays))
        found = reply_states(encoder, REPLIES, ours)
        np.testing.assert_allclose(found, reply_states(encoder, REPLIES, theirs), atol=2e-5)
        alone = reply_states(encoder, REPLIES[1:2], other)
        np.testing.assert_allclose(alone[0], found[1], atol=2e-5)  # padding counts for nothing


def read(
    model: EmoPrepend | NumpyEmoPrepend,
    encoder: DialogueEncoder,
    turns: list[str],
    emotion: int | None = None,
) -> ReadContext:
    """Return a context that a model has read."""
    packed = encoder.pack(encoder.context(turns), emotion)
    with evaluation_mode(model):
        batch = ReadBatch(model, model.read_contexts(*as_source(model, [packed[0]]))[0])
    return ReadContext(turns, packed, encoder.language, emotion, batch=batch)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recipe of a random model; `shipped` beside it is its bundle with a store."""
    folder = tmp_path_factory.mktemp("judged")
    path = save_model(folder, "transformer", decoding={"beam_size": 4, "max_length": 4})
    weights = ("--weights", folder / "run" / "best", "--output", folder / "shipped")
    outcome = run_here("export", *weights, "--data", "sample")
    assert outcome.status == 0, outcome.stderr
    return path


def test_a_fitted_judge_answers_as_the_raters_liked(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Raters who like every reply of people with a question mark get more of them than before."""
    shipped, output = recipe.parent / "shipped", tmp_path / "with_judge"
    predictor = paddle_dialog.load(shipped)
    texts = predictor.store.texts
    contexts = [["hello"], ["i won a prize"], ["my dog died ."], ["someone stole my bike"]]
    rated = [
        {"text": text, "sensible": (liked := "?" in text), "specific": liked, "empathy": 5 if liked else 1}
        for text in texts
    ]
    lines = (json.dumps({"context": context, "replies": rated}) + "\n" for context in contexts)
    (tmp_path / "ratings.jsonl").write_text("".join(lines), encoding="utf-8")
    command = f"-c {recipe} --weights {shipped} --ratings {tmp_path}/ratings.jsonl --output {output}"
    assert run_tool(main, make_parser(), command.split()) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("judge: 1.0\nmodel: ") and "context_words: " in printed
    assert JUDGE in load_bundle(output).extra

    def questions(weight: float) -> int:
        settings = ("-o", f"decoding.rerank.judge={weight}", "-o", "decoding.rerank.model=0")
        people = ("-o", "replies.generate=false", "-o", f"replies.candidates={len(texts)}")
        asked = run_here(
            "predict", "-c", recipe, "--weights", output, *settings, *people, "--n-best", 5, "hello"
        )
        assert asked.status == 0, asked.stderr
        return asked.stdout.count("?")

    assert questions(1e3) >= 4 > questions(0.0)


def test_a_bundle_without_a_judge_and_bad_ratings_are_told(recipe: Path, tmp_path: Path) -> None:
    shipped = recipe.parent / "shipped"
    plain, asked = (
        run_here("predict", "-c", recipe, "--weights", shipped, "-o", f"decoding.rerank.judge={weight}", "hi")
        for weight in (0, 1)
    )
    assert asked.status == 0 and asked.stdout == plain.stdout
    assert "these weights have no judge (judge.safetensors)" in asked.stderr
    assert "no judge" not in plain.stderr
    (tmp_path / "bad.jsonl").write_text('{"context": ["a"], "replies": [{"text": "b"}]}\n', encoding="utf-8")
    command = f"-c {recipe} --weights {shipped} --ratings {tmp_path}/bad.jsonl --output {tmp_path}/x"
    assert run_tool(main, make_parser(), command.split()) == 2


def test_replies_that_were_scored_have_the_states_of_those_read_anew() -> None:
    """Scores and states come of one reading, whichever context is answered in between."""
    _, arrays = models("causal", {})
    encoder = make_encoder(make_config("causal"), VOCABULARY)
    contexts = [read(arrays, encoder, turns) for turns in CONTEXTS[:2]]
    for number in (0, 1, 1, 0):
        log_probs(encoder, REPLIES[:2], contexts[number])
        found = reply_states(encoder, REPLIES[::-1], contexts[number])
        fresh = read(arrays, encoder, CONTEXTS[number])
        np.testing.assert_allclose(found, reply_states(encoder, REPLIES[::-1], fresh), atol=2e-6)
