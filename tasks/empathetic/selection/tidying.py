"""Tidying the spelling of replies that were typed in haste."""

from __future__ import annotations

import re

_SPACED = re.compile(r"\s+(?=[,.!?;:](?:\s|$))")
_LONE_I = re.compile(r"(?<![\w'.])i(?=$|[\s,!?;:]|'|\.(?!\w))")
_SENTENCE = re.compile(r"(^|(?<!\.)[.!?]\s+)([a-z])")
_GLUED = re.compile(r"(?<=[a-z])([.!?,])(?=[A-Z])")
_ASKING = re.compile(
    r"(?:^|[.!?,]\s+)"
    r"(?:(?:why|how|what|where|when|who) (?:did|do|does|is|are|was|were|have|has|will|can|could|would|about)"
    r"|(?:did|do|does|are|were|have|would|will|can|could) you|is (?:it|he|she|that|there)|did (?:it|he|she|they))"
    r"\b[^.!?]*\.$",
    re.IGNORECASE,
)
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "…": "..."})
_VERBS = "do does did is are was were has have had could should would ca".split()  # noqa: SIM905
_UNMARKED = {  # words whose apostrophe is often left out and that mean nothing else
    **{f"{verb}nt": f"{verb}n't" for verb in _VERBS},
    **{f"{word}s": f"{word}'s" for word in ("that", "what", "there", "here", "where", "who")},
    **{
        "im": "I'm",
        "ive": "I've",
        "youre": "you're",
        "youve": "you've",
        "youll": "you'll",
        "theyre": "they're",
    },
}
_UNMARKED_WORD = re.compile(rf"(?<![\w'])({'|'.join(_UNMARKED)})(?![\w'])", re.IGNORECASE)


def tidied(text: str) -> str:
    """Return a reply as an editor would print it: capitals, blanks and marks in place, words unchanged."""
    text = _SPACED.sub("", " ".join(text.translate(_QUOTES).split()))
    text = _LONE_I.sub("I", _GLUED.sub(r"\1 ", text))
    text = _UNMARKED_WORD.sub(lambda match: _UNMARKED[match[1].lower()], text)
    text = _SENTENCE.sub(lambda match: match[1] + match[2].upper(), text)
    text = text if text.endswith(tuple(".!?)\"'*:;")) else f"{text}."
    return f"{text[:-1]}?" if _ASKING.search(text) and not text.endswith("..") else text
