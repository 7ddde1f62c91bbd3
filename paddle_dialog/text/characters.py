"""Characters: their kinds, a normal form for lines of Chinese, simplified ones, the language of a text, and tones.

`simplified.txt` has the traditional characters on its first line and the simplified ones on its second. It is the
first choice of OpenCC's characters (TSCharacters.txt, https://github.com/BYVoid/OpenCC, Apache-2.0) within the basic
plane; with a few more that conversations have (妳, 祇, 瞭) and without 著, which is simplified too.

`tools/weights/tone_table.py` makes `tones.txt` and says where its classes come from.
"""

from __future__ import annotations

import logging
import re
import string
import unicodedata
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Literal

logger = logging.getLogger("paddle_dialog")

# Blocks as of Unicode 17 (extension A, unified, B, C to F and I, G, H, J), and the twelve unified ideographs
# that stand among the compatibility ones. Code points not yet assigned do no harm.
HANZI = (
    "[〇\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002a6df\U0002a700-\U0002ee5f\U00030000-\U0003347f"
    "\ufa0e\ufa0f\ufa11\ufa13\ufa14\ufa1f\ufa21\ufa23\ufa24\ufa27-\ufa29]"
)
_HANZI = re.compile(HANZI)

_CHINESE_FORM = {",": "，", ".": "。", "!": "！", "?": "？", ";": "；", ":": "：", "、": "、", "。": "。"}


def is_hanzi(char: str) -> bool:
    """Return whether one character is a unified CJK ideograph, of any extension, or 〇."""
    return _HANZI.fullmatch(char) is not None


def is_punctuation(char: str) -> bool:
    """Return whether one character is punctuation, Chinese or ASCII, full-width or half-width.

    ASCII signs such as `+` and `~` count, as they do in `string.punctuation`.
    """
    return unicodedata.category(char).startswith("P") or unicodedata.normalize("NFKC", char) in _ASCII_SIGNS


def normalise_line(line: str) -> str:
    """Return a line as the corpora write it.

    Blanks, control and other invisible characters are removed, inside the line too. Comma, full stop, exclamation
    mark, question mark, semicolon, colon and enumeration comma take the Chinese form 「，。！？；：、」 whatever
    their width; other punctuation stays. Unified ideographs and 〇 stay as they are, so that simplified,
    traditional and variant characters are kept apart. All else takes its NFKC form: Ａ becomes A, the radical
    ⼀ becomes 一.
    """
    return "".join(map(_replacement, line))


_ASCII_SIGNS = frozenset(string.punctuation)


@cache
def _replacement(char: str) -> str:
    """Return what stands for a character in a line of the normal form."""
    if is_hanzi(char):
        return char
    compatible = unicodedata.normalize("NFKC", char)
    if is_punctuation(char):
        return _CHINESE_FORM.get(compatible, char)
    return "".join(_CHINESE_FORM.get(part, part) for part in compatible if not _is_invisible(part))  # ⒈ is 1.


def _is_invisible(char: str) -> bool:
    is_variation_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf") or is_variation_selector


_KEPT = "\ue000"  # of the private use area, in no text
SIMPLIFIED_TABLE = Path(__file__).with_name("simplified.txt")
_SKY = re.compile("乾(?=[坤隆元卦清])")  # 乾坤, but not 乾燥
_PARTICLE = re.compile("(?<![显原专编译论遗巨土名])著(?![名作称述者书])")  # 看著, but not 著名 or 显著


def simplified(text: str) -> str:
    """Return a text with its traditional characters simplified, one for one; all else stays.

    A character at a time: this is for models to read, not for print.
    """
    plain = _SKY.sub(_KEPT, text).translate(_table()).replace(_KEPT, "乾")
    return _PARTICLE.sub("着", plain)


def read_as_simplified(text: str) -> str:
    """Return a text simplified, as every text of a user or a file is read; the first change is logged."""
    plain = simplified(text)
    if plain != text:
        _log_once()
    return plain


@cache
def _log_once() -> None:
    logger.info("traditional characters are read as simplified ones")


def simplified_line(text: str) -> str:
    """Return a line as `normalise_line` writes it, in simplified characters."""
    return simplified(normalise_line(text))


@cache
def _table() -> dict[int, str]:
    traditional, plain = SIMPLIFIED_TABLE.read_text(encoding="utf-8").splitlines()
    return dict(zip(map(ord, traditional), plain, strict=True))


LanguageName = Literal["en", "zh"]
LANGUAGES: tuple[LanguageName, ...] = ("en", "zh")

_WORD = re.compile(r"[A-Za-zＡ-Ｚａ-ｚ]+")


def language_of(text: str) -> LanguageName | None:
    """Return the language that most of a text is in, Chinese where both are equal; None where there is neither.

    Args:
        text: any; a run of Latin letters counts as much as a hanzi, and nothing else counts.
    """
    hanzi, words = len(_HANZI.findall(text)), len(_WORD.findall(text))
    if not hanzi and not words:
        return None
    return "zh" if hanzi >= words else "en"


def is_one_word(text: str) -> bool:
    """Return whether a text has one run of Latin letters and no hanzi."""
    return len(_WORD.findall(text)) == 1 and not _HANZI.search(text)


class Tone(Enum):
    """The two tone classes of Chinese verse."""

    LEVEL = "平"
    OBLIQUE = "仄"


TONE_TABLE = Path(__file__).with_name("tones.txt")
# The tones of the characters on each line of the table.
CLASSES = (frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE}), frozenset({Tone.LEVEL, Tone.OBLIQUE}))
_UNKNOWN: frozenset[Tone] = frozenset()


def tones(char: str) -> frozenset[Tone]:
    """Return the tone classes of all readings of a character.

    Returns:
        Both classes if the readings differ, none if the character is not a hanzi or its readings are not known.
    """
    return _tones().get(char, _UNKNOWN)


def can_be_level(char: str) -> bool:
    """Return whether some reading of the character has a level tone (平)."""
    return Tone.LEVEL in tones(char)


def can_be_oblique(char: str) -> bool:
    """Return whether some reading of the character has an oblique tone (仄)."""
    return Tone.OBLIQUE in tones(char)


def read_classes(path: Path) -> dict[str, frozenset[Tone]]:
    """Read the tone classes of characters from a table with a line for each of `CLASSES`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {char: known for line, known in zip(lines, CLASSES, strict=True) for char in line}


@cache
def _tones() -> dict[str, frozenset[Tone]]:
    return read_classes(TONE_TABLE)
