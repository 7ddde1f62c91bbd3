"""Traditional characters as simplified ones, from the table beside this file.

The table has the traditional characters on its first line and the simplified ones on its second. It is that of
OpenCC's characters (TSCharacters.txt, https://github.com/BYVoid/OpenCC, Apache-2.0), the first choice of each, within
the basic plane; with a few more that conversations have (妳, 祇, 瞭) and without 著, which is simplified too.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from pathlib import Path

from paddle_dialog.text.characters import normalise_line

logger = logging.getLogger("paddle_dialog")
_KEPT = "\ue000"  # of the private use area, in no text
TABLE = Path(__file__).with_name("simplified.txt")
_SKY = re.compile("乾(?=[坤隆元卦清])")  # 乾坤, but not 乾燥
_PARTICLE = re.compile("(?<![显原专编译论遗巨土名])著(?![名作称述者书])")  # 看著, but not 著名 or 显著


def simplified(text: str) -> str:
    """Return a text with its traditional characters simplified, one for one; all else stays.

    A character at a time: this is for models to read, not for print.
    """
    plain = _SKY.sub(_KEPT, text).translate(_table()).replace(_KEPT, "乾")
    return _PARTICLE.sub("着", plain)


def simplified_line(text: str) -> str:
    """Return a line as `normalise_line` writes it, in simplified characters."""
    return simplified(normalise_line(text))


def read_as_simplified(text: str) -> str:
    """Return a text simplified, as every text of a user or a file is read; the first change is logged."""
    plain = simplified(text)
    if plain != text:
        _log_once()
    return plain


@cache
def _log_once() -> None:
    logger.info("traditional characters are read as simplified ones")


@cache
def _table() -> dict[int, str]:
    traditional, plain = TABLE.read_text(encoding="utf-8").splitlines()
    return dict(zip(map(ord, traditional), plain, strict=True))
