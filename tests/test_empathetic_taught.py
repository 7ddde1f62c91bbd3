"""Texts whose emotions another classifier tells: their file, the fit to them, and a bundle fitted anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from empathetic_toys import make_config, make_vocabulary, save_model
from scipy.sparse import csr_matrix
from scipy.special import softmax

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.errors import UserError
from tasks.empathetic.data.dataset import DialogueDataset
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.emotion.labels import EMOTIONS
from tasks.empathetic.fitting.ngram_classifier import _vectors, fit_ngram_classifier
from tasks.empathetic.fitting.refitting import main, make_parser
from tasks.empathetic.fitting.taught import PENALTY, Taught, fit_to_probabilities, read_taught

SAD, PROUD, DISGUSTED = (EMOTIONS.index(name) for name in ("sad", "proud", "disgusted"))


def test_emotions_that_a_line_leaves_out_share_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "taught.jsonl"
    path.write_text(
        '{"context": [" my dog\\tdied "], "emotions": {"sad": 0.6, "Proud": 0.1}}\n\n', encoding="utf-8"
    )
    (taught,) = read_taught(str(path), EMOTIONS)
    assert taught.context == ["my dog died"]
    np.testing.assert_allclose(taught.emotions[[SAD, PROUD, DISGUSTED]], [0.6, 0.1, 0.01])
    assert taught.emotions.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "line",
    [
        '{"context": ["a"], "emotions": {"sadd": 0.5}}',
        '{"context": ["a"], "emotions": {"sad": 0.8, "proud": 0.3}}',
        '{"context": ["a"], "emotions": {"sad": -0.1}}',
        '{"context": ["a"], "emotions": {"sad": NaN}}',
        '{"context": [], "emotions": {"sad": 0.5}}',
        '{"context": ["a"], "emotions": ["sad"]}',
        '{"context": [" "], "emotions": {}}',
        "sad",
        '{"emotions": {}}',
    ],
)
def test_a_line_that_is_not_as_it_should_be_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "taught.jsonl"
    path.write_text(f'{{"context": ["a"], "emotions": {{}}}}\n{line}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"taught\.jsonl:2: "):
        list(read_taught(str(path), EMOTIONS))


def test_the_fit_is_where_cross_entropy_and_penalty_balance() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(40, 6)).astype(np.float32)
    told = softmax(features @ random.normal(size=(6, 3)), axis=1).astype(np.float32)
    table = fit_to_probabilities(csr_matrix(features), told)
    found = softmax(features @ table, axis=1)
    np.testing.assert_allclose(features.T @ (found - told) / 40 + PENALTY * table, 0, atol=2e-4)
    np.testing.assert_allclose(found, told, atol=0.02)  # they can be told exactly, but for the penalty


def test_words_that_nobody_annotated_are_learned_of_the_other_classifier() -> None:
    dialogues = [Dialogue(["my dog died"], "oh no", "sad"), Dialogue(["my dog won"], "oh yes", "proud")]
    data = DialogueDataset(dialogues, make_config(emotion={"ngram_buckets": 1 << 14}), make_vocabulary(), 50)
    told = np.full(32, 0.1 / 31, np.float32)
    told[DISGUSTED] = 0.9
    asked = [["a filthy cockroach"], ["my dog died"], ["my dog won"]]
    answers = []
    for taught in ([], [Taught(["there is a cockroach"], told)]):
        idf, table, _ = fit_ngram_classifier(data, 1 << 14, False, taught=taught)
        answers.append((_vectors(data.encoder, asked, idf, 1.0) @ table).argmax(axis=1).tolist())
    assert answers[1] == [DISGUSTED, SAD, PROUD]
    assert answers[0][1:] == [SAD, PROUD] and answers[0][0] != DISGUSTED


def test_a_bundle_gets_another_classifier_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = save_model(tmp_path, "transformer", emotion={"ngram_buckets": 4096})
    taught = tmp_path / "taught.jsonl"
    lines = [
        {"context": [f"the {word} zebra laughed"], "emotions": {"jealous": 0.95}}
        for word in ("old", "young", "big")
    ]
    taught.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    weights, output = tmp_path / "run" / "best", tmp_path / "other"
    arguments = [
        "-c",
        str(recipe),
        "--weights",
        str(weights),
        "--output",
        str(output),
        "-o",
        "data.train=sample",
    ]
    assert run_tool(main, make_parser(), [*arguments, "-o", f"emotion.taught={taught}"]) == 0
    before, after = load_bundle(weights), load_bundle(output)
    changed = {
        name for name in before.weights if not np.array_equal(before.weights[name], after.weights[name])
    }
    assert changed == {"emotion_head.ngram_idf", "emotion_head.ngram_table"}
    assert before.extra == after.extra and before.card == after.card
    asked = run_here(
        "predict", "-c", recipe, "--weights", output, "-o", "emotion.encoder_share=0", "the zebra laughed"
    )
    assert asked.stdout.startswith("[jealous"), asked.stdout + asked.stderr
    assert run_tool(main, make_parser(), [*arguments, "-o", "emotion.ngram_buckets=99"]) == 2
    assert "no n-gram classifier of 99 buckets" in capsys.readouterr().err
