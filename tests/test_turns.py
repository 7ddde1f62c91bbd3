"""What a turn means: features, the fit, the file, the tone, and lines whose writer saw none of the labelled turns."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ROOT, Outcome, run_here
from hypothesis import given
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.turns import (
    ACTS,
    BUCKETS,
    CARES,
    MOODS,
    TurnReader,
    TurnReading,
    read_turn,
    turn_features,
)
from tools.weights.empathetic.turn_fitting import key_of, read_written

FRESH = Path(__file__).parent / "data"
SAID = {  # act, mood, care of turns that a few words tell apart
    ("thanks", "gratitude", "none"): ["thank you so much", "thanks a lot", "many thanks to you"],
    ("farewell", "none", "none"): ["bye now", "good bye", "i have to go, bye"],
    ("statement", "sadness", "self_harm"): [
        "i want to die",
        "i will end my life",
        "life must end, i want it",
    ],
    ("about_you", "none", "none"): ["do you sleep?", "what do you eat?", "are you a robot?"],
}


def fitted(folder: Path, *arguments: object) -> Outcome:
    """Run the command that fits a reader, on a few turns."""
    lines = [
        "\t".join([*labels, "", f"{turn}{mark}"])
        for labels, turns in SAID.items()
        for turn in turns
        for mark in ("", "!", " ok")
    ]
    (folder / "written.tsv").write_text("\n".join(lines), encoding="utf-8")
    files = ("--written", folder / "written.tsv", "--output", folder / "reader", *arguments)
    return run_here("weights/empathetic/turn_fitting", *files)


def test_the_command_fits_a_reader_of_new_turns(tmp_path: Path) -> None:
    (tmp_path / "others.tsv").write_text(
        "-\t-\tself_harm\t\tdie and end it\nthanks\tgratitude\tnone\t\tthank you\n"
    )
    outcome = fitted(tmp_path, "--held-out", tmp_path / "others.tsv")
    assert outcome.status == 0 and "act: 1.000 right of 1" in outcome.stdout, outcome.stderr
    assert "care self_harm: 1 of 1 get the whole answer" in outcome.stdout
    reader = TurnReader.from_bytes((tmp_path / "reader").read_bytes(), "reader")
    turns = ("thank you", "bye bye", "i want to end my life")
    for turn, labels in zip(turns, list(SAID)[:3], strict=True):
        reading = reader(turn)
        assert (reading.act, MOODS[int(reading.moods.argmax())], reading.care) == labels
        assert all(part.sum() == pytest.approx(1) for part in reader.probabilities(turn))


def test_turns_of_corpora_are_found_by_their_keys(tmp_path: Path) -> None:
    (tmp_path / "talks.jsonl").write_text('{"turns": ["hello  there", "hi", "my dog died"]}\n', "utf-8")
    said = [("hi", "my dog died"), ("", "hello there"), ("", "gone")]
    labels = ("statement sadness none", "greeting none none", "joke joy none")
    lines = [f"{label} {key_of('talks', *turns)}" for label, turns in zip(labels, said, strict=True)]
    (tmp_path / "references.txt").write_text("\n".join(lines), encoding="utf-8")
    files = ("--references", tmp_path / "references.txt", "--corpora", tmp_path / "talks.jsonl")
    outcome = fitted(tmp_path, *files)
    assert outcome.status == 0 and "2 of 3 turns found" in outcome.stderr


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_turn_has_features(turn: str, previous: str) -> None:
    buckets, weights = turn_features(turn, previous)
    assert len({*buckets.tolist()}) == len(buckets) == len(weights) and (weights > 0).all()
    assert ((buckets >= 0) & (buckets < BUCKETS)).all()


def test_what_looks_alike_is_read_alike() -> None:
    alike = [("我想死", "我\u200b想死"), ("I don’t", "I don't"), ("HELP", "ｈｅｌｐ")]
    for one, other in (*alike, ("我很難過", "我很难过"), ("nooooo", "noo")):
        for mine, theirs in zip(turn_features(one), turn_features(other), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("moods", "tone"),
    [
        ({"joy": 0.4, "pride": 0.2, "sadness": 0.4}, "glad"),
        ({"joy": 0.25, "fear": 0.4, "anger": 0.35}, "sorry"),
        ({"joy": 0.35, "fear": 0.35, "anger": 0.3}, "plain"),
        ({"none": 0.5, "joy": 0.3, "fear": 0.2}, "plain"),
        ({"surprise": 0.7, "relief": 0.3}, "plain"),
    ],
)
def test_the_tone_that_suits_a_mood(moods: dict[Any, float], tone: str) -> None:
    shares = np.array([moods.get(mood, 0.0) for mood in MOODS])
    assert TurnReading(np.eye(len(ACTS))[0], shares, "none").tone == tone


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="here: holds no reader of turns"):
        TurnReader.from_bytes(b"nonsense", "here")
    small = TurnReader(np.ones((4, 2), np.float32)).to_bytes()
    with pytest.raises(UserError, match="here: has other n-grams or labels than are needed"):
        TurnReader.from_bytes(small, "here")


def test_care_is_found_in_a_turn_of_two_languages() -> None:
    for turn in ("老师 I want to kill myself tonight", "sorry, 我想自杀, I mean it"):
        for language in ("en", "zh"):
            assert read_turn(turn, "", language).care == "self_harm"  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shipped_reader_on_lines_of_a_writer_who_saw_none_of_the_others(language: Any) -> None:
    """The figures of docs/care.md and docs/results/empathetic.md, a little below them."""
    turns = read_written(str(FRESH / f"fresh_turns_{language}.tsv"))
    readings = [read_turn(one.turn, one.previous, language) for one in turns]
    care = np.array([one.labels[2] for one in turns])
    stopped = np.array([reading.care != "none" for reading in readings])
    found, wrong = stopped[care > 0].mean(), stopped[care == 0].mean()
    assert found >= LEAST[language]["found"] and wrong <= LEAST[language]["wrong"]
    acts = [ACTS[one.labels[0]] == reading.act for one, reading in zip(turns, readings, strict=True)]
    assert np.mean(acts) >= LEAST[language]["acts"]


LEAST = {
    "en": {"found": 0.83, "wrong": 0.12, "acts": 0.92},
    "zh": {"found": 0.86, "wrong": 0.12, "acts": 0.9},
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_labelled_turns_can_be_read(language: str) -> None:
    folder = ROOT / "tools/weights/empathetic/turns"
    assert len(read_written(str(folder / f"written_{language}.tsv.xz"))) > 7000
    with lzma.open(folder / f"references_{language}.txt.xz", "rt", encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    assert len(rows) > 6000 and {row[2] for row in rows} <= {*CARES}
