"""Clauses of an English turn."""

from __future__ import annotations

import re
from functools import cache

from tasks.empathetic.reflection.clause import Clause
from tasks.empathetic.reflection.words import alternatives, words

SHORTEST, LONGEST = 3, 14  # words of a clause
LIKELIEST_LENGTH = 8

# A full stop inside a number or after an abbreviation ends nothing.
_SENTENCE = re.compile(r"(?:\b(?:Mrs?|Ms|Dr|St|Prof|Jr|Sr)\.(?= )|\d\.(?=\d)|[^.!?;\n])+([.!?;\n]*)")
_ASIDE = re.compile(r" ?\([^()]*\)")
_JOINT = re.compile(r",? (?:and|but)(?= )|, so(?= (?!that))|, (?!so that)|: | - ")
# What means little alone.
_SUBORDINATE = re.compile(r",? (?:because|when|which|while|since|until|unless|if|so that)\b.*")
_EMOJI = re.compile(r"[ ☀-➿\ufe0f\U0001f000-\U0001faff]+$")
_TRAILS = re.compile(r"(?:,? (?:i think|i guess|hah(?:a|ah)*|lol))+$", re.IGNORECASE)
_APART = re.compile(r" (?='(?:m|re|s|ve|ll|d)\b)", re.IGNORECASE)  # "I 'm"
_TOLD = re.compile(r"\b(?:you|your|yours|u|ur|thanks?|thank|congrat\w*)\b", re.IGNORECASE)
# One subject with "I", unlike "my dog died and I cried".
_WE = re.compile(
    r"\b(my (?:(?:ex|best|old|older|younger|little|big|close|good|late|whole) )?\w+) and(?= i )",
    re.IGNORECASE,
)
_BE = re.compile(
    r"\b(you|and|but)((?: (?:really|just|also|still|never|actually|always|only))?) (am|was|wasn't)\b"
)
_OF_YOU = {"am": "are", "was": "were", "wasn't": "weren't"}


def clauses(turn: str) -> list[Clause]:
    """Return the clauses of a turn that can be said back."""
    found: list[str] = []
    for sentence in _SENTENCE.finditer(_ASIDE.sub("", turn.lower() if turn.isupper() else turn)):
        if "?" in sentence[1]:
            continue
        whole = sentence[0].removesuffix(sentence[1])
        text = _usable(whole)
        parts = [text] if text is not None else _usable_parts(whole)
        found += [part for part in parts if part is not None]
    return [
        Clause(
            said_back(text),
            "trouble" if _pattern("grim", r"\b{}").search(text) else "plain",
            _weight(text, place / len(found)),
        )
        for place, text in enumerate(found)
    ]


def _parts(sentence: str) -> list[str]:
    """Split a long sentence into its main clauses."""
    joined = _WE.sub(r"\1 &", sentence)
    return [_SUBORDINATE.sub("", part).replace(" & ", " and ") for part in _JOINT.split(joined)]


def _usable_parts(sentence: str) -> list[str | None]:
    """Return the clauses of a long sentence; one without a subject has that of the first, which may not be "I"."""
    first, *others = _parts(sentence)
    of_speaker = first.strip().lower().startswith(("i ", "i'"))
    return [_usable(first), *(_usable(part, of_speaker) for part in others)]


def _usable(part: str, of_speaker: bool = True) -> str | None:
    """Return a clause without what leads to it; None if it cannot stand alone.

    Args:
        part: of a turn.
        of_speaker: whether a subject that is left out is "I".
    """
    text = _APART.sub("", " ".join(part.split())).strip("\"'()*~,:-… ")
    while (found := _pattern("leads", "(?!no one){}[ ,]+").match(text)) is not None:
        text = text[found.end() :]
    text = _TRAILS.sub("", _EMOJI.sub("", text))
    if of_speaker and _pattern("past", "(?:just |only )?{}").match(text) is not None:
        text = f"I {text[:1].lower()}{text[1:]}"
    own = text.split()
    if not SHORTEST <= len(own) <= LONGEST or _TOLD.search(text) or _pattern("empty", "{}").match(text):
        return None
    first = own[0].lower().replace("’", "'")
    is_name = own[0][0].isupper() and own[0][1:].islower() and not first.endswith("ing")
    if first not in words("en", "subjects") and not is_name:
        return None
    return None if own[-1].lower() in words("en", "ends") or first in words("en", "unfinished") else text


def said_back(text: str) -> str:
    """Turn first persons into second ones."""
    own = text.replace("’", "'").split()
    if own[0].lower() in words("en", "subjects"):
        own[0] = own[0].lower()
    back = re.sub(r"[A-Za-z']+", lambda word: _second().get(word[0].lower(), word[0]), " ".join(own))
    told_of_you = back.startswith("you ")
    return _BE.sub(lambda f: f"{f[1]}{f[2]} {_OF_YOU[f[3]]}" if told_of_you or f[1] == "you" else f[0], back)


@cache
def _pattern(name: str, form: str) -> re.Pattern[str]:
    """Return what finds the words of a list where the form has {}."""
    listed = alternatives("en", name).replace("_", " ")
    return re.compile(form.format(rf"(?:{listed})\b"), re.IGNORECASE)


@cache
def _second() -> dict[str, str]:
    """Return the first persons and what they become."""
    return dict(pair.split("=") for pair in words("en", "second"))


def _weight(text: str, place: float) -> float:
    """Prefer what is about the speaker, long enough to tell something, and said last (`place` in 0–1)."""
    own = text.lower().split()
    first = own[0].replace("’", "'")
    return (
        1.0 * (first in words("en", "first"))
        - 0.5 * (first in words("en", "vague"))
        + 0.3 * place
        - abs(len(own) - LIKELIEST_LENGTH) / 12
    )
