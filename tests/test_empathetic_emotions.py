"""Emotion labels, the lexicon of hints, and the marks by which a bundle answers without it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from empathetic_toys import make_config, make_network, make_vocabulary

import paddle_dialog
from paddle_dialog.bundle.export import export_bundle
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EmotionLexicon, emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import HINT_ID, HINTS, make_encoder
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_ids_follow_the_order_that_trained_weights_rely_on():
    assert len(EMOTIONS) == len(set(EMOTIONS)) == 32
    assert [emotion_id(label) for label in EMOTIONS] == list(range(32))
    pinned = {"afraid": 0, "caring": 7, "excited": 14, "joyful": 22, " Proud ": 26, "trusting": 31}
    assert {label: emotion_id(label) for label in pinned} == pinned


def test_an_unknown_label_names_the_nearest():
    for wrong, meant in {"prowd": "proud", "gratefull": "grateful", "": "", "😀": ""}.items():
        with pytest.raises(UserError, match=f"unknown emotion '{wrong}'.*'{meant}"):
            emotion_id(wrong)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "happy\nvery sad\n", r"a\.txt:2: 'very sad' is more than one word"),
        ("b.txt", "\n", r"b\.txt: no word in this lexicon"),
        ("c.json", '{"a":\n oops}', r"c\.json:2: broken JSON"),
        ("d.json", '["a"]', r"d\.json: is no lexicon"),
        ("e.json", '{"a": 1}', r"e\.json: is no lexicon"),
        ("f.json", '{"a": []}', r"f\.json: no word"),
    ],
)
def test_faulty_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        EmotionLexicon.load(str(tmp_path / name))


@pytest.mark.skipif(importlib.util.find_spec("nrclex") is None, reason="NRCLex is not installed")
def test_package_lexicon_is_read_without_importing_the_package():
    code = (
        "import sys; from paddle_dialog.tasks.empathetic.data.emotions import EmotionLexicon as L;"
        "lexicon = L.load('nrc');"
        "print(len(lexicon), 'grief' in lexicon, 'table' in lexicon, {'nrclex', 'nltk'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["6468", "True", "False", "set()"]


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
    assert read == {"happy"}
    for wrong in (b"", b"0\n0\n0\n0\n1\n", b"0\n0\n0\n0\n1\n0", b"0\n0\n0\n0\n1\nx\n", b"\xff"):
        with pytest.raises(UserError, match=r"hints.txt: must hold 6 lines of 0 or 1"):
            EmotionLexicon.from_marks(wrong, SIX, HINTS)


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
