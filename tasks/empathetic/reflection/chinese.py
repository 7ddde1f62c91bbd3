"""Clauses of a Chinese turn."""

from __future__ import annotations

import re
from functools import cache

from tasks.empathetic.reflection.clause import Clause, Kind
from tasks.empathetic.reflection.words import alternatives

SHORTEST, LONGEST, LONGEST_PAIR = 4, 22, 26  # characters of a clause, and of two together
LIKELIEST_LENGTH = 13

_SENTENCE = re.compile(r"[^。！？；!?;\n~…]+([。！？；!?;\n~…]*)")
_COMMA = re.compile(r"[，,：:]")
_SUBJECT = "^我?(?:也|就|还|还是|真的|确实|一直|很|非常|只|也许)?"
_EDGES = ' \t，,、“”"‘’()（）'
_MISSED = re.compile(
    "^我?(?:真的|很|好|非常)?想(?!要)(?:他|她|它|你|我|家|爸|妈|爷|奶|孩子|念)"
)  # 想 that wishes nothing


def clauses(turn: str) -> list[Clause]:
    """Return the clauses of a turn that can be said back, and each two neighbours that are short."""
    found: list[str] = []
    for sentence in _SENTENCE.finditer(turn):
        parts = [_usable(part) for part in _statements(sentence[0].removesuffix(sentence[1]), sentence[1])]
        for place, part in enumerate(parts):
            if part is None:
                continue
            found.append(part)
            following = parts[place + 1] if place + 1 < len(parts) else None
            if following is not None and len(part) + len(following) <= LONGEST_PAIR:
                found.append(f"{part}，{following}")
    return [
        Clause(_said_back(text), _kind(text), _weight(text, place / len(found)))
        for place, text in enumerate(found)
    ]


def _statements(sentence: str, mark: str) -> list[str]:
    """Split a sentence at its commas; of a question's last part go its words of asking, or all of it if it asks."""
    parts = _COMMA.split(sentence)
    if "？" in mark or "?" in mark:
        asking = _pattern("asking", "$").search(parts[-1].rstrip())
        if asking is not None:
            parts[-1] = parts[-1][: asking.start()]
        elif _pattern("question").search(parts[-1]):
            parts[-1] = ""
    return parts


def _usable(part: str) -> str | None:
    """Return a clause without what leads to it; None if it cannot stand alone."""
    text = part.strip(_EDGES)
    while (lead := _pattern("leads", "^").match(text)) is not None:
        text = text[lead.end() :]
    text = re.sub("^我(?:总|老|一直)?(?:觉得|感觉|感到)自己", "我觉得自己", text.replace("我却", "我", 1))
    if not SHORTEST <= len(text) <= LONGEST:
        return None
    if any(
        _pattern(name, at).search(text) for name, at in (("unusable", ""), ("unfinished", "^"), ("ends", "$"))
    ):
        return None
    return text


def _said_back(text: str) -> str:
    """Turn first persons into second ones."""
    back = text.replace("咱们", "你们").replace("我们", "你们").replace("我", "你").replace("俺", "你")
    back = re.sub("^自己", "你", back)
    return re.sub("^你(?:也|就|还|真的|确实)?(?:应该|需要|可以)", "你打算", back)


def _kind(text: str) -> Kind:
    if _pattern("intent", _SUBJECT).match(text):
        return "plan"
    good = f"(?:{alternatives('zh', 'good')})"
    if _pattern("trouble").search(text) or re.search(f"[不没无别].{{0,2}}{good}|{good}不[起出了]", text):
        return "trouble"
    if _MISSED.match(text):
        return "plain"
    kinds: tuple[Kind, ...] = ("plan", "wish")
    for kind in kinds:
        if _pattern(kind, _SUBJECT).match(text):
            return kind
    return "good" if _pattern("good").search(text) and "曾经" not in text else "plain"


def _weight(text: str, place: float) -> float:
    """Prefer what hurts or pleases, what the speaker says of himself, and what is said last (`place` in 0–1)."""
    feelings = len(set(_pattern("trouble").findall(text))) + len(set(_pattern("good").findall(text)))
    return (
        (feelings > 0)
        + 0.5 * min(feelings, 3)
        + 0.5 * ("我" in text)
        + 0.4 * place
        - abs(len(text) - LIKELIEST_LENGTH) / 20
    )


@cache
def _pattern(name: str, prefix: str = "") -> re.Pattern[str]:
    """Return what finds the words of a list, at the beginning (`^…`) or the end (`$`) if wanted."""
    words = alternatives("zh", name)
    return re.compile(f"(?:{words})$" if prefix == "$" else f"{prefix}(?:{words})")
