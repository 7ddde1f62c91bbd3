"""The tones that a bundle carries, which spare every start the libraries of readings."""

from __future__ import annotations

import paddle
import pytest

from paddle_dialog import load
from paddle_dialog.bundle import Bundle, read_weights, save_bundle
from paddle_dialog.config import dump
from paddle_dialog.config.schema import LstmAttentionConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models import build_model
from paddle_dialog.text import tones as module
from paddle_dialog.text.tones import Tone, remember_tones, tones, write_tones
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.couplet.config import CoupletConfig
from tasks.couplet.task import TASK

CHARACTERS = "春雨看山水月，a"


class LibraryAsked(Exception):
    """The library of readings was asked."""


@pytest.fixture
def no_library(monkeypatch):
    """Makes every use of the library an error, with nothing remembered."""

    def ask():
        raise LibraryAsked

    monkeypatch.setattr(module, "_cantonese_readings", ask)
    monkeypatch.setattr(module, "_REMEMBERED", {})
    tones.cache_clear()
    yield
    tones.cache_clear()


def test_the_text_by_hand():
    assert write_tones(CHARACTERS) == "山春\n月水雨\n看\n"
    assert write_tones("") == "\n\n\n"


def test_what_is_remembered_needs_no_library(no_library):
    remember_tones("山春\n月水雨\n看\n")
    assert tones("春") == {Tone.LEVEL} and tones("雨") == {Tone.OBLIQUE}
    assert tones("看") == {Tone.LEVEL, Tone.OBLIQUE} and tones("，") == frozenset()
    with pytest.raises(LibraryAsked):
        tones("花")


@pytest.mark.parametrize("text", ["", "春\n雨\n", "春\n雨\n看\n花\n"])
def test_another_form_is_refused(text):
    with pytest.raises(UserError, match=r"must have three: level, oblique"):
        remember_tones(text)


@pytest.mark.parametrize("with_tones", [True, False])
def test_a_bundle_brings_its_tones(tmp_path, request, with_tones):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *CHARACTERS])
    model = LstmAttentionConfig(embedding_size=4, hidden_size=4, num_layers=1)
    files = TASK.bundle_files({"text": vocabulary})
    config = dump(CoupletConfig(task="couplet", model=model))
    paddle.seed(0)
    weights = read_weights(build_model(model, len(vocabulary)))
    bundle = Bundle("couplet", config, {"text": vocabulary}, weights, extra=files if with_tones else {})
    save_bundle(bundle, tmp_path / "bundle")
    expected = load(tmp_path / "bundle").predict(["雨，月"])[0][0]
    request.getfixturevalue("no_library")
    predictor = load(tmp_path / "bundle")
    if with_tones:
        assert predictor.predict(["雨，月"])[0][0] == expected
    else:  # it still worked above, with the library
        with pytest.raises(LibraryAsked):
            predictor.predict(["雨，月"])
