"""The judge of replies: states of both forms of the model, the fit, the file, and the command that makes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from empathetic_array_cases import ALL_CASES, CONTEXTS, VOCABULARY, Sections, models
from empathetic_toys import make_config, save_model

import paddle_dialog
from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.decoding.interface import evaluation_mode
from paddle_dialog.judge import JUDGE
from tasks.empathetic.data.encoding import DialogueEncoder, make_encoder
from tasks.empathetic.judge_fitting import main, make_parser
from tasks.empathetic.network.emo_prepend import EmoPrepend
from tasks.empathetic.network.numpy_emo_prepend import NumpyEmoPrepend
from tasks.empathetic.reading import ReadBatch, ReadContext, as_source, log_probs, reply_states

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
