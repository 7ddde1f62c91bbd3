"""Rules that tell which replies of a corpus fit other conversations than their own.

A reply goes into the store if no rule finds fault with it. The rules are deliberately simple: there are more replies
than needed, so losing a good one costs little, while a reply that gives somebody another's wife, town or answer
costs much.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.empathetic.selection.word_lists import word_list
from tasks.empathetic.selection.word_use import WordUse

FEWEST_WORDS, MOST_WORDS = 2, 25


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply where it was said.

    Attributes:
        text: as it was written.
        tokens: of the text.
        asked: the turn before it is a question.
    """

    text: str
    tokens: tuple[str, ...]
    asked: bool


Rule = Callable[[Reply, WordUse], bool]

_LETTER = re.compile(r"[^\W\d_]")
_MARKS = re.compile(r"[a-z',.!?;:()\"$%&*`~^=<>/_-]+")
_DATES = word_list("dates")
_NUMBERS = word_list("numbers")
_VERBS_BEFORE_HAVE = frozenset(["must", "could", "should", "would", "might"])
_OWN = word_list("own")
_COARSE = word_list("coarse")
_NOT_OWN = {("oh", "my"), *(("my", word) for word in word_list("my"))}
# What listeners may say of themselves: feelings about what they hear, guesses, wishes and promises.
_ADVERBS = word_list("adverbs")
_MAY_SAY = word_list("may say")
_MAY_BE = word_list("may be")
_CLAIMS = (
    *(("me", word) for word in ("too", "either", "neither", "and", "to")),
    *((word, "me") for word in ("to", "reminds", "for", "with", "makes", "made", "and", "like", "as")),
    ("same", "here"),
    ("personal", "experience"),
    ("from", "experience"),
    ("so", "do", "i"),
    ("so", "did", "i"),
    ("i", "would", "too"),
    ("i", "feel", "the", "same"),
)
_ANSWERS = frozenset(["yes", "no", "nope", "yep", "yup", "nah", "sure"])
_NO_ANSWERS = frozenset(["way", "problem", "wonder", "kidding", "doubt", "one", "need", "matter", "worries"])


def _is_short(reply: Reply, use: WordUse) -> bool:
    return len(_words(reply)) < FEWEST_WORDS


def _is_long(reply: Reply, use: WordUse) -> bool:
    return len(_words(reply)) > MOST_WORDS


def _answers(reply: Reply, use: WordUse) -> bool:
    """Return whether it answers a question, or begins as if it did ("yes, last week")."""
    first, second = (*reply.tokens, "", "")[:2]
    return reply.asked or (first in _ANSWERS and second not in _NO_ANSWERS)


def _has_numbers(reply: Reply, use: WordUse) -> bool:
    """Return whether it has a number, a date or a time."""
    return any(
        token in _NUMBERS or token in _DATES or any(character.isdigit() for character in token)
        for token in reply.tokens
    )


def _has_names(reply: Reply, use: WordUse) -> bool:
    """Return whether it names a person, place, people or brand, capitalised or not."""
    return any(use.is_name(token) for token in reply.tokens)


def _claims_facts(reply: Reply, use: WordUse) -> bool:
    """Return whether it tells facts about the listener: "my wife and I", "I had one too"."""
    tokens = reply.tokens
    if any(tokens[at : at + len(claim)] == claim for claim in _CLAIMS for at in range(len(tokens))):
        return True
    for at, token in enumerate(tokens):
        if token in _OWN and not {tokens[at - 1 : at + 1], tokens[at : at + 2]} & _NOT_OWN:
            return True
        if token == "i" and not _says_nothing_of_himself(tokens[at + 1 :]):
            return True
    return False


def _says_nothing_of_himself(rest: Sequence[str]) -> bool:
    """Return whether a sentence that begins with "I" goes on with a wish, a guess or a feeling about the other."""
    words = [word for word in rest[:6] if word not in _ADVERBS]
    if words[:1] in (["am"], ["'m"]):
        return words[1:2] != [] and words[1] in _MAY_BE
    return words[:1] != [] and words[0] in _MAY_SAY


def _is_coarse(reply: Reply, use: WordUse) -> bool:
    """Return whether it has a coarse or insulting word."""
    return any(token in _COARSE for token in reply.tokens)


def _is_misspelt(reply: Reply, use: WordUse) -> bool:
    """Return whether it has a very rare word, "must of", or characters that no sentence needs."""
    if any(one in _VERBS_BEFORE_HAVE and other == "of" for one, other in pairwise(reply.tokens)):
        return True
    return any(
        _MARKS.fullmatch(token) is None or (_LETTER.search(token) and use.is_rare(token))
        for token in reply.tokens
    )


RULES: Mapping[str, Rule] = {
    "short": _is_short,
    "long": _is_long,
    "answer": _answers,
    "number or date": _has_numbers,
    "name": _has_names,
    "own life": _claims_facts,
    "coarse": _is_coarse,
    "misspelt": _is_misspelt,
}


def fault_of(reply: Reply, use: WordUse, rules: Mapping[str, Rule] = RULES) -> str | None:
    """Return the name of the first rule that finds fault with a reply; None for a good one.

    Args:
        reply: where it was said.
        use: of words in its corpus.
        rules: of its language.
    """
    return next((name for name, finds_fault in rules.items() if finds_fault(reply, use)), None)


def same_words(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a reply, which are equal for replies that differ in punctuation alone."""
    return tuple(token for token in tokens if _LETTER.search(token))


def _words(reply: Reply) -> list[str]:
    return [token for token in reply.tokens if _LETTER.search(token)]
