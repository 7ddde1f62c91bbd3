"""Kinds of characters, and one normal form for lines of Chinese text."""

from __future__ import annotations

import re
import string
import unicodedata

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
    return line.translate(_REPLACEMENTS)


_ASCII_SIGNS = frozenset(string.punctuation)


class _Replacements(dict[int, str]):
    """Code point → text for `str.translate`, computed when a code point is first met."""

    def __missing__(self, code_point: int) -> str:
        self[code_point] = text = _replacement(chr(code_point))
        return text


def _replacement(char: str) -> str:
    if is_hanzi(char):
        return char
    compatible = unicodedata.normalize("NFKC", char)
    if is_punctuation(char):
        return _CHINESE_FORM.get(compatible, char)
    return "".join(_CHINESE_FORM.get(part, part) for part in compatible if not _is_invisible(part))  # ⒈ is 1.


def _is_invisible(char: str) -> bool:
    is_variation_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf") or is_variation_selector


_REPLACEMENTS = _Replacements()
