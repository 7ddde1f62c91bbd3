"""The language of a short text, by its script."""

from __future__ import annotations

import re
from typing import Literal

from paddle_dialog.text.characters import HANZI

LanguageName = Literal["en", "zh"]
LANGUAGES: tuple[LanguageName, ...] = ("en", "zh")

_HANZI = re.compile(HANZI)
_WORD = re.compile(r"[A-Za-zＡ-Ｚａ-ｚ]+")


def language_of(text: str) -> LanguageName | None:
    """Return the language that most of a text is in.

    Args:
        text: any; a run of Latin letters counts as much as a hanzi, and nothing else counts.

    Returns:
        `zh` or `en`, Chinese where both are equal; None where there is neither, as of emoji and numbers.
    """
    hanzi, words = len(_HANZI.findall(text)), len(_WORD.findall(text))
    if not hanzi and not words:
        return None
    return "zh" if hanzi >= words else "en"


def is_one_word(text: str) -> bool:
    """Return whether a text has one run of Latin letters and no hanzi."""
    return len(_WORD.findall(text)) == 1 and not _HANZI.search(text)
