"""Fonts of pictures whose labels may be Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

# File names of fonts with Chinese characters, lower case, without spaces and hyphens.
CJK_FONT_FILES = (
    "notosanscjk",
    "notosanssc",
    "sourcehansans",
    "wqy",
    "pingfang",
    "hiraginosansgb",
    "msyh",
    "simhei",
    "droidsansfallback",
)


def best_font(text: str) -> tuple[str, frozenset[int]]:
    """Return file and characters of the font with most of a text's characters; matplotlib's own wins ties."""
    fonts = [(path, _characters(path)) for path in _font_files()]
    return max(fonts, key=lambda font: sum(ord(character) in font[1] for character in text))


@cache
def _font_files() -> tuple[str, ...]:
    """Return Matplotlib's own font, then those with Chinese characters.

    They are searched for on disk, because matplotlib's list is a cache without the fonts installed since.
    """
    from matplotlib import font_manager

    found = [str(font_manager.findfont("DejaVu Sans"))]
    installed = sorted(font_manager.findSystemFonts())
    for name in CJK_FONT_FILES:
        files = [
            path for path in installed if name in Path(path).stem.lower().replace("-", "").replace(" ", "")
        ]
        regular = [path for path in files if "regular" in Path(path).stem.lower()]
        found.extend((regular or files)[:1])
    return tuple(found)


@cache
def _characters(path: str) -> frozenset[int]:
    from matplotlib import font_manager

    return frozenset(font_manager.get_font(path).get_charmap())


def drawable(labels: Sequence[str], characters: frozenset[int]) -> list[str]:
    """Return the labels; one with a character that the font lacks is replaced by its number, 1 for the first."""
    return [
        label if all(ord(character) in characters for character in label) else str(number)
        for number, label in enumerate(labels, start=1)
    ]
