"""`${NAME}` references in configuration values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from paddle_dialog.config.environment import escape, expand
from paddle_dialog.config.loader import build
from paddle_dialog.errors import UserError


@dataclass
class LstmConfig:
    name: Literal["lstm"] = "lstm"


@dataclass
class GruConfig:
    name: Literal["gru"] = "gru"


@dataclass
class Config:
    epochs: int = 1
    clip: float | None = 5.0
    note: str | None = None
    model: LstmConfig | GruConfig | None = None


def built(**mapping: Any) -> Config:
    return build(Config, mapping, "x.yaml")


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUS", "/data")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("EPOCHS", "3")
    monkeypatch.delenv("ABSENT", raising=False)


def test_variables_fill_text() -> None:
    assert built(note="${CORPUS}/a${ABSENT:-b}${EMPTY:-c}${EMPTY}$d").note == "/data/abc$d"
    assert built(note="${EPOCHS}").note == "3"


def test_variables_fill_numbers_null_and_names() -> None:
    config = built(epochs="${EPOCHS}", clip="${ABSENT:-null}", model={"name": "${ABSENT:-gru}"})
    assert config == Config(epochs=3, clip=None, model=GruConfig())
    assert built(note="${ABSENT:-null}").note is None
    assert built(note="null").note == "null"


def test_a_number_in_quotes_without_a_variable_stays_text() -> None:
    with pytest.raises(UserError, match=r'^x\.yaml: epochs: must be an integer, found "3"$'):
        built(epochs="3")


@pytest.mark.parametrize("text", ["${CORPUS}", "$${CORPUS}", "$$$${", "${", "$", "a$b}", "${A:-${B}}"])
def test_escaped_text_is_kept(text: str) -> None:
    assert built(note=escape(text)).note == text
    assert expand(escape(text)) == text


def test_variables_that_cannot_be_filled_are_problems_like_others() -> None:
    with pytest.raises(UserError) as caught:
        built(note="${ABSENT}/x", epochs="${1}", model={"name": "${ABSENT}"}, clip="${CORPUS}")
    assert str(caught.value).splitlines() == [
        "x.yaml: 4 problems:",
        "epochs: '${1}' has a malformed ${…}; write ${NAME}, ${NAME:-default}, or $${ for a literal ${",
        'clip: must be a number or null, found "/data"',
        "note: environment variable ABSENT is not set; set it or write ${ABSENT:-default}",
        "model.name: environment variable ABSENT is not set; set it or write ${ABSENT:-default}",
    ]
