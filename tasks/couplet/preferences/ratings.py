"""Rated answers as they stand in a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddle_dialog.data.records import Record, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.data.couplets import Couplet
from tasks.couplet.marks import compose_source, second_source
from tasks.couplet.rules.direction import TO_FIRST, TO_SECOND
from tasks.couplet.rules.locks import FREE

_FORM = (
    '{"answers": [{"first": 上联, "second": 下联, "rating": number}, …]}, where the 上联 may stand once beside '
    '"answers", and an answer that was composed has its "template" and "told"'
)
Text = tuple[list[int], list[int]]  # ids of what is asked and of what is written, without begin and end


@dataclass(frozen=True)
class RatedAnswer:
    """A couplet and what it is worth.

    Args:
        first: 上联.
        second: 下联, which the model wrote.
        rating: the higher, the better; only those of one input are compared.
        template: of a 上联 that the model wrote too, ？ where any character may stand; None where it was given.
        told: characters of theme words that the model was told for it.
    """

    first: str
    second: str
    rating: float
    template: str | None = None
    told: str = ""

    def texts(self, vocabulary: Vocabulary) -> list[Text]:
        """Return the texts that the model wrote of it, and what they were asked by."""
        written = [(second_source(vocabulary, self.first), vocabulary.encode(self.second))]
        if self.template is not None:
            shape = [None if character == FREE else character for character in self.template]
            written.append((compose_source(vocabulary, shape, self.told), vocabulary.encode(self.first)))
        return written

    def readings(self, vocabulary: Vocabulary) -> list[Text]:
        """Return either line as the answer to the other, by which a reward model values the couplet."""
        pairs = ((TO_SECOND, self.first, self.second), (TO_FIRST, self.second, self.first))
        return [(way.source(vocabulary, given), vocabulary.encode(written)) for way, given, written in pairs]


def read_ratings(path: str | Path) -> list[list[RatedAnswer]]:
    """Read the rated answers to each input.

    Args:
        path: JSON lines, plain or compressed, each `{"answers": [{"first", "second", "rating"}, …]}`.

    Raises:
        UserError: the file cannot be read, a line is not as it should be, or there is none.
    """
    found = list(read_records(path, _answers, _FORM))
    if not found:
        raise UserError(f"{path}: no rated answers in this file; a line must be {_FORM}")
    return found


def with_own(
    rated: Sequence[list[RatedAnswer]], couplets: Iterable[Couplet], rating: float, length: int
) -> int:
    """Add to the answers to a given 上联 the one that it has in a corpus, unless they have it.

    Args:
        rated: answers to each input, which grow.
        couplets: the corpus.
        rating: of its answers.
        length: least characters of a 上联 to which they are added.

    Returns:
        How many were added.
    """
    own = {couplet.first: couplet.second for couplet in couplets}
    added = 0
    for answers in rated:
        first = answers[0].first
        given = all(answer.first == first and answer.template is None for answer in answers)
        if not given or len(first) < length or own.get(first) in (None, *(a.second for a in answers)):
            continue
        answers.append(RatedAnswer(first, own[first], rating))
        added += 1
    return added


def _answers(record: Record) -> list[RatedAnswer]:
    answers = [_answer({**record, **answer}) for answer in record["answers"]]
    if not answers:
        raise ValueError("'answers' is empty")
    return answers


def _answer(fields: dict[str, Any]) -> RatedAnswer:
    rating, template = float(fields["rating"]), fields.get("template")
    texts = {key: fields[key] for key in ("first", "second")} | {"told": fields.get("told", "")}
    for key, text in (texts | ({} if template is None else {"template": template})).items():
        if not isinstance(text, str) or not (text or key == "told"):
            raise ValueError(f"{key}: {text!r} is not a text")
    if not math.isfinite(rating):
        raise ValueError(f"rating: {rating} is not a finite number")
    if template is not None and len(template) != len(texts["first"]):
        raise ValueError(f"template: '{template}' is not as long as '{texts['first']}'")
    return RatedAnswer(texts["first"], texts["second"], rating, template, texts["told"])
