"""The fixed answers to turns whose speaker needs help now, which no model writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.config import CareConfig
from paddle_dialog.tasks.empathetic.turns import CARES, Act, TurnReading
from paddle_dialog.text.characters import LANGUAGES, LanguageName, language_of

KINDS = CARES[1:]
AGAIN = "again"  # in the place of a kind: what is said to somebody who has its answer already
CHECK = "check"  # what is asked where the reader of turns is not sure
DENIED = "denied"  # what is said to somebody who corrects that he needs help
_DENIALS: tuple[Act, ...] = ("correction", "complaint", "refusal", "joke", "acknowledgement")

_SHIPPED = Path(__file__).parent / "texts" / "care_answers.yaml"
# The blank that YAML makes of it, in Chinese.
_LINE_END = re.compile(r"(?<=[^\x00-\u2fff]) (?=[^\x00-\u2fff])")

Sentences = Mapping[LanguageName, str]


class CareResponder:
    """Answers turns whose speaker needs help now.

    Args:
        answers: the sentences of each kind; perhaps of `CHECK`, `AGAIN` and `DENIED`.
    """

    def __init__(self, answers: Mapping[str, Sentences]) -> None:
        self._answers = answers

    def answer(self, turns: Sequence[str], reading: TurnReading, language: LanguageName) -> str | None:
        """Return the sentence for the newest turn; None where it asks for no care.

        Args:
            turns: of the conversation; what was answered before is not said in full again.
            reading: of the newest turn; earlier ones do not count, so that a conversation can go on.
            language: of the answer where that of the turn is not clear.
        """
        if reading.care == "none":
            return None
        written = language_of(turns[-1]) or language
        kind = reading.care if reading.sure or CHECK not in self._answers else CHECK
        sentence = self._answers[kind][written]
        return self._answers[AGAIN][written] if sentence in turns and AGAIN in self._answers else sentence

    def reassurance(self, turns: Sequence[str], reading: TurnReading, language: LanguageName) -> str | None:
        """Return what is said to somebody who corrects the last answer, if that was one of these."""
        if len(turns) < 2 or DENIED not in self._answers or reading.act not in _DENIALS:
            return None
        said = {text for kind in (*KINDS, AGAIN, CHECK) for text in self._answers.get(kind, {}).values()}
        return self._answers[DENIED][language_of(turns[-1]) or language] if turns[-2] in said else None


def care_responder(config: CareConfig) -> CareResponder:
    """Return what the settings describe."""
    return CareResponder(_read_answers(_SHIPPED if config.answers is None else Path(config.answers)))


def _read_answers(path: Path) -> dict[str, Sentences]:
    """Read the sentences: of each kind in each language, or in each language for all kinds."""
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
    known = (*KINDS, CHECK, AGAIN, DENIED)
    if not content.keys() & set(known):
        return dict.fromkeys(KINDS, _sentences(content, where, form))
    _check_names(content, known, where, "kind")
    answers: dict[str, Sentences] = {}
    for kind in known:
        sentences = content.get(kind)
        if isinstance(sentences, dict):
            answers[kind] = _sentences(sentences, f"{where}: {kind}", form)
        elif kind in KINDS or sentences is not None:
            raise UserError(f"{where}: has no sentences for '{kind}'; {form}")
    return answers


def _check_names(content: Mapping[object, object], known: Sequence[str], where: str, what: str) -> None:
    for name in content:
        if name not in known:
            raise UserError(f"{where}: '{str(name)[:40]}' is no {what}; there are {', '.join(known)}")


def _sentences(content: Mapping[object, object], where: str, form: str) -> dict[LanguageName, str]:
    _check_names(content, LANGUAGES, where, "language")
    sentences: dict[LanguageName, str] = {}
    for language in LANGUAGES:
        sentence = content.get(language)
        if not isinstance(sentence, str) or not sentence.strip():
            raise UserError(f"{where}: has no sentence for '{language}'; {form}")
        sentences[language] = _LINE_END.sub("", " ".join(sentence.split()))
    return sentences
