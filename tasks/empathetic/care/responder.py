"""The fixed answer to a turn that speaks of self-harm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from paddle_dialog.errors import UserError
from paddle_dialog.text.language import LANGUAGES, LanguageName, language_of
from tasks.empathetic.care.config import CareConfig
from tasks.empathetic.care.phrases import Phrases, read_phrases

_SHIPPED = Path(__file__).parent
_LINE_END = re.compile(
    r"(?<=[^\x00-\u2fff]) (?=[^\x00-\u2fff])"
)  # the blank that YAML makes of it, in Chinese


class CareResponder:
    """Answers turns that speak of self-harm.

    Args:
        phrases: that speak of it.
        answers: the sentence in each language.
    """

    def __init__(self, phrases: Phrases, answers: Mapping[LanguageName, str]) -> None:
        self._phrases = phrases
        self._answers = answers

    def answer(self, turn: str, language: LanguageName) -> str | None:
        """Return the sentence for a turn; None where it does not speak of self-harm.

        Args:
            turn: the speaker's newest; earlier ones do not count, so that a conversation can go on.
            language: of the answer where that of the turn cannot be told.
        """
        if not self._phrases.finds(turn):
            return None
        return self._answers[language_of(turn) or language]


def care_responder(config: CareConfig) -> CareResponder:
    """Return what the settings describe.

    Raises:
        UserError: a file cannot be read or is not of its form.
    """
    phrases = read_phrases(_file(config.phrases, "phrases.txt"), "care.phrases")
    exceptions = read_phrases(_file(config.exceptions, "exceptions.txt"), "care.exceptions")
    return CareResponder(Phrases(phrases, exceptions), _read_answers(_file(config.answers, "answers.yaml")))


def _file(own: str | None, name: str) -> Path:
    return _SHIPPED / name if own is None else Path(own)


def _read_answers(path: Path) -> dict[LanguageName, str]:
    """Read the sentences.

    Raises:
        UserError: the file cannot be read or lacks a language.
    """
    where = f"care.answers: {path}"
    form = "give a sentence for each language, e.g. en: Please call 988 …"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8; save the file as UTF-8") from error
    except yaml.YAMLError as error:
        raise UserError(f"{where}: is not YAML; {form}") from error
    if not isinstance(content, dict):
        raise UserError(f"{where}: has no sentences; {form}")
    unknown = [str(name) for name in content if name not in LANGUAGES]
    if unknown:
        raise UserError(f"{where}: '{unknown[0][:40]}' is no language; there are {', '.join(LANGUAGES)}")
    answers: dict[LanguageName, str] = {}
    for language in LANGUAGES:
        sentence = content.get(language)
        if not isinstance(sentence, str) or not sentence.strip():
            raise UserError(f"{where}: has no sentence for '{language}'; {form}")
        answers[language] = _LINE_END.sub("", " ".join(sentence.split()))
    return answers
