"""Weights between two texts, such as attention, as a picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

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


def draw_heat_map(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], name: str = "attention"
) -> np.ndarray:
    """Draws weights with a token beside each row and column.

    A token that no installed font can draw is replaced by its number: 1 for the first.

    Args:
        weights: [T, S], none negative; the colours span 0 to the largest.
        rows: T labels (target).
        columns: S labels (source).
        name: of the weights, beside the colour scale.

    Returns:
        RGB image, uint8 [height, width, 3].
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    path, characters = _best_font("".join([*rows, *columns]))
    font = FontProperties(fname=path, size=13)
    figure = Figure(
        figsize=(2.2 + 0.35 * len(columns), 1.2 + 0.35 * len(rows)), dpi=100, layout="constrained"
    )
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    picture = axes.imshow(weights, cmap="viridis", vmin=0.0)
    axes.set_xticks(
        range(len(columns)), _drawable(columns, characters), fontproperties=font, parse_math=False
    )
    axes.set_yticks(range(len(rows)), _drawable(rows, characters), fontproperties=font, parse_math=False)
    for label in axes.get_xticklabels():
        label.set_rotation(90 if len(label.get_text()) > 2 else 0)  # words side by side would overlap
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    figure.colorbar(picture, ax=axes, label=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a layout too tight for very few tokens
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _best_font(text: str) -> tuple[str, frozenset[int]]:
    """The font that has most of a text's characters, as file and characters; matplotlib's own before others."""
    fonts = [(path, _characters(path)) for path in _font_files()]
    return max(fonts, key=lambda font: sum(ord(character) in font[1] for character in text))


@cache
def _font_files() -> tuple[str, ...]:
    """Matplotlib's own font, then those with Chinese characters.

    They are looked for on the disk: matplotlib's list is a cache that fonts installed later are missing from.
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


def _drawable(labels: Sequence[str], characters: frozenset[int]) -> list[str]:
    return [
        label if all(ord(character) in characters for character in label) else str(number)
        for number, label in enumerate(labels, start=1)
    ]
