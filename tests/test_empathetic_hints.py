"""The marks by which a bundle tells which words of its vocabulary are hints, and answers without the lexicon."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from empathetic_toys import make_config, make_network, make_vocabulary, save_model

import paddle_dialog
from paddle_dialog.bundle.export import export_bundle
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.empathetic.data.emotions import EmotionLexicon
from tasks.empathetic.data.encoding import HINTS, make_encoder
from tasks.empathetic.data.vocabulary import HINT_ID
from tasks.empathetic.task import TASK

SIX = Vocabulary([*SPECIAL_TOKENS, "happy", "dog"])
CONTEXT = ["my happy dog died ."]


@pytest.fixture
def no_lexicon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the package NRCLex look as if it were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nrclex" else find(name))


def save(folder: Path, **files: bytes) -> Path:
    """Return a random model whose lexicon is the package's, with these files in its bundle."""
    config, vocabulary = make_config(emotion={"hints": True, "lexicon": "nrc"}), make_vocabulary()
    weights = read_weights(make_network(config, len(vocabulary)))
    bundle = Bundle("empathetic", dump(config), {"text": vocabulary}, weights, "", files)
    save_bundle(bundle, folder)
    return folder


def test_marks_by_hand() -> None:
    marks = EmotionLexicon(["Happy", "grief"]).to_marks(SIX)
    assert marks == b"0\n0\n0\n0\n1\n0\n"
    read = EmotionLexicon.from_marks(marks, SIX, HINTS)
    assert len(read) == 1 and "happy" in read and "grief" not in read and "dog" not in read


@pytest.mark.parametrize(
    "marks", [b"", b"0\n0\n0\n0\n1\n", b"0\n0\n0\n0\n1\n0", b"0\n0\n0\n0\n1\nx\n", b"\xff"]
)
def test_marks_of_another_form_are_refused(marks: bytes) -> None:
    with pytest.raises(UserError, match=r"hints.txt: must hold 6 lines of 0 or 1"):
        EmotionLexicon.from_marks(marks, SIX, HINTS)


def test_only_words_of_the_vocabulary_are_hints() -> None:
    """The marks know no others, and a model must read alike with them and with the lexicon."""
    config = make_config(emotion={"hints": True})
    lexicon = EmotionLexicon.load("nrc")
    assert "happy" in lexicon and "grief" in lexicon
    for marks in (None, lexicon.to_marks(SIX)):
        encoder = make_encoder(config, SIX, marks)
        source, _ = encoder.pack(encoder.context(["happy dog grief"]))
        assert source.hints[1:].tolist() == [HINT_ID, 0, 0]
        fresh = encoder.fresh()
        assert fresh.words() == []
        assert (fresh.pack(fresh.context(["happy dog grief"]))[0].hints == source.hints).all()


def test_a_bundle_with_marks_answers_without_the_lexicon(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    without = save(tmp_path / "without")
    marks = EmotionLexicon.load("nrc").to_marks(load_bundle(without).vocabularies["text"])
    assert b"1" in marks
    with_marks = save(tmp_path / "with", **{HINTS: marks})
    other_marks = save(tmp_path / "other", **{HINTS: marks.replace(b"1", b"0")})
    expected = paddle_dialog.load(without).answer([CONTEXT])[0]
    request.getfixturevalue("no_lexicon")
    found = paddle_dialog.load(with_marks).answer([CONTEXT])[0]
    assert found.predictions == expected.predictions
    assert found.probabilities.tolist() == expected.probabilities.tolist()
    other = paddle_dialog.load(other_marks).answer([CONTEXT])[0]
    assert other.probabilities.tolist() != expected.probabilities.tolist()
    with pytest.raises(UserError, match=r"NRCLex is not installed; .* take a bundle that has hints.txt"):
        paddle_dialog.load(without)


def test_an_exported_bundle_has_its_marks(tmp_path: Path) -> None:
    export_bundle(save(tmp_path / "run"), tmp_path / "shipped")
    shipped = load_bundle(tmp_path / "shipped")
    lexicon = EmotionLexicon.load("nrc")
    assert shipped.extra == {HINTS: lexicon.to_marks(shipped.vocabularies["text"])}
    own = save(tmp_path / "own", **{HINTS: shipped.extra[HINTS].replace(b"1", b"0"), "state": b"of the run"})
    export_bundle(own, tmp_path / "again")
    assert load_bundle(tmp_path / "again").extra == {HINTS: load_bundle(own).extra[HINTS]}


def test_a_model_without_hints_has_no_marks(tmp_path: Path, no_lexicon: None) -> None:
    recipe = save_model(tmp_path, emotion={"hints": False})
    assert recipe.exists()
    bundle = load_bundle(tmp_path / "run" / "best")
    assert TASK.bundle_files(make_config(emotion={"hints": False}), bundle.vocabularies, {}) == {}
    assert paddle_dialog.load(tmp_path / "run" / "best").answer([CONTEXT])[0].predictions
