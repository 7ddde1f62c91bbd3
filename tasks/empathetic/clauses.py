"""The clauses of a turn that a reply can mirror, in English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

from paddle_dialog.data.files import read_lists

Kind = Literal["trouble", "good", "plan", "wish", "plain"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# English.
MIN_WORDS, MAX_WORDS = 3, 14  # words of a clause

# A full stop inside a number or after an abbreviation ends nothing.
_ENGLISH_SENTENCE = re.compile(r"(?:\b(?:Mrs?|Ms|Dr|St|Prof|Jr|Sr)\.(?= )|\d\.(?=\d)|[^.!?;\n])+([.!?;\n]*)")
_ASIDE = re.compile(r" ?\([^()]*\)")
_JOINT = re.compile(r",? (?:and|but)(?= )|, so(?= (?!that))|, (?!so that)|: | - ")
# What means little alone.
_SUBORDINATE = re.compile(r",? (?:because|when|which|while|since|until|unless|if|so that)\b.*")
_EMOJI = re.compile(r"[ ☀-➿\ufe0f\U0001f000-\U0001faff]+$")
_TRAILS = re.compile(r"(?:,? (?:i think|i guess|hah(?:a|ah)*|lol))+$", re.IGNORECASE)
_APART = re.compile(r" (?='(?:m|re|s|ve|ll|d)\b)", re.IGNORECASE)  # "I 'm"
_ADDRESSED = re.compile(r"\b(?:you|your|yours|u|ur|thanks?|thank|congrat\w*)\b", re.IGNORECASE)
# One subject with "I", unlike "my dog died and I cried".
_WE = re.compile(
    r"\b(my (?:(?:ex|best|old|older|younger|little|big|close|good|late|whole) )?\w+) and(?= i )",
    re.IGNORECASE,
)
_BE = re.compile(
    r"\b(you|and|but)((?: (?:really|just|also|still|never|actually|always|only))?) (am|was|wasn't)\b"
)
_OF_YOU = {"am": "are", "was": "were", "wasn't": "weren't"}

# Chinese.
MIN_CHARACTERS, MAX_CHARACTERS = 4, 22  # of a clause
MAX_PAIR = 26  # characters of two together

_CHINESE_SENTENCE = re.compile(r"[^。！？；!?;\n~…]+([。！？；!?;\n~…]*)")
_COMMA = re.compile(r"[，,：:]")
_SUBJECT = "^我?(?:也|就|还|还是|真的|确实|一直|很|非常|只|也许)?"
_EDGES = ' \t，,、“”"‘’()（）'
# 想 that wishes nothing.
_MISSED = re.compile("^我?(?:真的|很|好|非常)?想(?!要)(?:他|她|它|你|我|家|爸|妈|爷|奶|孩子|念)")


_OPTIONS = {
    "en": re.compile(
        r"[\w'-] or (?!not\b|no\b|what\b|so\b|something\b|anything\b)([\w' -]+)\?", re.IGNORECASE
    ),
    "zh": re.compile("[^，。！？,.!?]还是([^，。！？,.!?是]{1,10}?)(?:好|呢|啊|呀|比较好|更好)*[？?。！!]?$"),
}


@dataclass(frozen=True)
class Clause:
    """What the speaker has said, as the listener says it: "my dog died" is "your dog died"."""

    text: str  # without a full stop
    kind: Kind = "plain"  # what it is to the speaker where no mood says so


def option_of(turn: str, language: str) -> str | None:
    """Return the last of the options that a turn asks to choose from; None where it names none."""
    found = _OPTIONS[language].search(turn.strip())
    if found is None:
        return None
    return _english_mirrored(found[1].strip()) if language == "en" else found[1]


def clauses_of(turn: str, language: str) -> list[Clause]:
    """Return the clauses of a turn that can be mirrored; `language` is `en` or `zh`."""
    return english_clauses(turn) if language == "en" else chinese_clauses(turn)


def english_clauses(turn: str) -> list[Clause]:
    """Return the clauses of a turn that can be mirrored."""
    found: list[str] = []
    for sentence in _ENGLISH_SENTENCE.finditer(_ASIDE.sub("", turn.lower() if turn.isupper() else turn)):
        if "?" in sentence[1]:
            continue
        whole = sentence[0].removesuffix(sentence[1])
        text = _usable_english(whole)
        found += [text] if text is not None else _usable_parts(whole)
    return [Clause(_english_mirrored(text)) for text in found]


def _usable_parts(sentence: str) -> list[str]:
    """Return the main clauses of a long sentence; one without a subject has that of the first, if that is "I"."""
    parts = [_SUBORDINATE.sub("", part) for part in _JOINT.split(_WE.sub(r"\1 &", sentence))]
    of_speaker = parts[0].strip().lower().startswith(("i ", "i'"))
    usable = [
        _usable_english(part.replace(" & ", " and "), not n or of_speaker) for n, part in enumerate(parts)
    ]
    return [part for part in usable if part is not None]


def _usable_english(part: str, of_speaker: bool = True) -> str | None:
    """Return a clause without what leads to it; None if it makes no sense alone.

    Args:
        part: of a turn.
        of_speaker: whether a subject that is left out is "I".
    """
    text = _APART.sub("", " ".join(part.split())).strip("\"'()*~,:-… ")
    while (found := _english_pattern("leads", "(?!no one){}[ ,]+").match(text)) is not None:
        text = text[found.end() :]
    text = _TRAILS.sub("", _EMOJI.sub("", text))
    if of_speaker and _english_pattern("past", "(?:just |only )?{}").match(text) is not None:
        text = f"I {text[:1].lower()}{text[1:]}"
    own = text.split()
    if not MIN_WORDS <= len(own) <= MAX_WORDS or _ADDRESSED.search(text):
        return None
    if _english_pattern("empty", "{}").match(text):
        return None
    first = own[0].lower().replace("’", "'")
    is_name = own[0][0].isupper() and own[0][1:].islower() and not first.endswith("ing")
    if first not in _words("en", "subjects") and not is_name:
        return None
    return None if own[-1].lower() in _words("en", "ends") or first in _words("en", "unfinished") else text


def _english_mirrored(text: str) -> str:
    """Turn first persons into second ones."""
    own = text.replace("’", "'").split()
    if own[0].lower() in _words("en", "subjects"):
        own[0] = own[0].lower()
    second = dict(pair.split("=") for pair in _words("en", "second"))  # of each first person
    back = re.sub(r"[A-Za-z']+", lambda word: second.get(word[0].lower(), word[0]), " ".join(own))
    begins_with_you = back.startswith("you ")
    return _BE.sub(
        lambda f: f"{f[1]}{f[2]} {_OF_YOU[f[3]]}" if begins_with_you or f[1] == "you" else f[0], back
    )


@cache
def _english_pattern(name: str, form: str) -> re.Pattern[str]:
    """Return what finds the words of a list where the form has {}."""
    listed = _alternatives("en", name).replace("_", " ")
    return re.compile(form.format(rf"(?:{listed})\b"), re.IGNORECASE)


def chinese_clauses(turn: str) -> list[Clause]:
    """Return the clauses of a turn that can be mirrored, and each two neighbours that are short."""
    found: list[str] = []
    for sentence in _CHINESE_SENTENCE.finditer(turn):
        parts = [*map(_usable_chinese, _statements(sentence[0].removesuffix(sentence[1]), sentence[1])), None]
        for part, following in pairwise(parts):
            if part is not None:
                found.append(part)
                if following is not None and len(part) + len(following) <= MAX_PAIR:
                    found.append(f"{part}，{following}")
    return [Clause(_chinese_mirrored(text), _chinese_kind(text)) for text in found]


def _statements(sentence: str, mark: str) -> list[str]:
    """Split a sentence at its commas; of a question's last part go its words of asking, or all of it if it asks."""
    parts = _COMMA.split(sentence)
    if "？" in mark or "?" in mark:
        asking = _chinese_pattern("asking", "$").search(parts[-1].rstrip())
        if asking is not None:
            parts[-1] = parts[-1][: asking.start()]
        elif _chinese_pattern("question").search(parts[-1]):
            parts[-1] = ""
    return parts


def _usable_chinese(part: str) -> str | None:
    """Return a clause without what leads to it; None if it makes no sense alone."""
    text = part.strip(_EDGES)
    while (lead := _chinese_pattern("leads", "^").match(text)) is not None:
        text = text[lead.end() :]
    text = re.sub("^我(?:总|老|一直)?(?:觉得|感觉|感到)自己", "我觉得自己", text.replace("我却", "我", 1))
    if not MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS:
        return None
    excluded = (("unusable", ""), ("unfinished", "^"), ("ends", "$"))
    return None if any(_chinese_pattern(name, at).search(text) for name, at in excluded) else text


def _chinese_mirrored(text: str) -> str:
    """Turn first persons into second ones."""
    back = text.replace("咱们", "你们").replace("我们", "你们").replace("我", "你").replace("俺", "你")
    back = re.sub("^自己", "你", back)
    return re.sub("^你(?:也|就|还|真的|确实)?(?:应该|需要|可以)", "你打算", back)


def _chinese_kind(text: str) -> Kind:
    if _chinese_pattern("intent", _SUBJECT).match(text):
        return "plan"
    kinds: tuple[Kind, ...] = () if _MISSED.match(text) else ("plan", "wish")
    return next((kind for kind in kinds if _chinese_pattern(kind, _SUBJECT).match(text)), "plain")


@cache
def _chinese_pattern(name: str, prefix: str = "") -> re.Pattern[str]:
    """Return what finds the words of a list, at the beginning (`^…`) or the end (`$`) if wanted."""
    words = _alternatives("zh", name)
    return re.compile(f"(?:{words})$" if prefix == "$" else f"{prefix}(?:{words})")


def _words(language: str, name: str) -> frozenset[str]:
    """Return a list of words of a language by name."""
    return _lists(language)[name]


def _alternatives(language: str, name: str) -> str:
    """Return a list as the alternatives of a regular expression, longer words first."""
    return "|".join(sorted(_words(language, name), key=lambda word: (-len(word), word)))


@cache
def _lists(language: str) -> dict[str, frozenset[str]]:
    return read_lists("paddle_dialog.tasks.empathetic", f"texts/clauses_{language}.txt")
