"""Pictures of numbers and texts: a confusion matrix, a heat map between two texts, and a coloured text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 120
COLUMNS = 60  # characters in a line of a coloured text
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei"),
    *(
        "WenQuanYi Micro Hei",
        "PingFang SC",
        "Hiragino Sans GB",
        "Microsoft YaHei",
        "SimHei",
        "Droid Sans Fallback",
    ),
)


def draw_confusion_matrix(counts: np.ndarray, labels: Sequence[str], title: str) -> np.ndarray:
    """Draw how often each label was taken for each other, in percent of its row.

    Args:
        counts: [L, L], annotated labels down, predicted ones across; an empty row stays white.
        labels: L names in the order of the rows.

    Returns:
        RGB image, uint8 [height, width, 3].
    """
    totals = counts.sum(axis=1, keepdims=True)  # [L, 1]
    percent = 100.0 * counts / np.maximum(totals, 1)  # [L, L]
    figure, axes = _make(3.0 + 0.29 * len(labels), 2.2 + 0.27 * len(labels))
    picture = axes.imshow(percent, cmap="Blues", vmin=0.0, vmax=100.0)
    axes.set_xticks(range(len(labels)), labels, rotation=90)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("predicted")
    axes.set_ylabel("annotated")
    axes.set_title(title)
    for row, column in np.argwhere(percent >= 1.0).tolist():
        value = percent[row, column]
        colour = "white" if value > 50.0 else "black"
        axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=6.5, color=colour)
    figure.colorbar(picture, ax=axes, label="percent of the annotated label", shrink=0.8)
    return _pixels(figure)


def draw_heat_map(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], name: str = "attention"
) -> np.ndarray:
    """Draw weights with a token beside each row and column.

    Args:
        weights: [T, S], none negative; the colours span 0 to the largest.
        rows: T labels (target).
        columns: S labels (source).

    Returns:
        RGB image, uint8 [height, width, 3].
    """
    with _fonts():
        figure, axes = _make(2.2 + 0.35 * len(columns), 1.2 + 0.35 * len(rows), dpi=100)
        picture = axes.imshow(weights, cmap="viridis", vmin=0.0)
        axes.set_xticks(range(len(columns)), columns, size=13)
        axes.set_yticks(range(len(rows)), rows, size=13)
        for label in axes.get_xticklabels():
            label.set_rotation(90 if len(label.get_text()) > 2 else 0)  # words side by side would overlap
        axes.set_xlabel("source")
        axes.set_ylabel("target")
        figure.colorbar(picture, ax=axes, label=name)
        return _pixels(figure)


def draw_coloured_text(tokens: Sequence[str], weights: np.ndarray, title: str, gap: int = 0) -> np.ndarray:
    """Draw a text whose tokens are coloured by their weights, blue below 0 and red above.

    Args:
        weights: of each token; the colours span the largest, up or down.
        gap: blanks between tokens: 1 where they are words.

    Returns:
        RGB image, uint8 [height, width, 3].
    """
    from matplotlib import colormaps

    places, row, column = [], 0, 0.0
    for token in tokens:
        width = sum(1.0 if ord(character) > 0x2E80 else 0.6 for character in token)
        if column and column + width > COLUMNS:
            row, column = row + 1, 0.0
        places.append((row, column, width))
        column += width + 0.6 * gap
    largest = float(np.abs(weights).max(initial=0.0)) or 1.0
    with _fonts():
        figure, axes = _make(0.2 * COLUMNS + 0.4, 0.4 * (row + 1) + 0.5, dpi=100)
        axes.set_axis_off()
        axes.set_xlim(0, COLUMNS)
        axes.set_ylim(row + 1.1, -1.1)
        axes.text(0, -0.5, title, size=13, va="center")
        for token, weight, (line, start, width) in zip(tokens, weights, places, strict=True):
            colour = colormaps["coolwarm"](0.5 + 0.5 * float(weight) / largest)
            box = {"facecolor": colour, "edgecolor": "none", "pad": 1.5}
            axes.text(start + width / 2, line + 0.5, token, size=13, ha="center", va="center", bbox=box)
        return _pixels(figure)


def _make(width: float, height: float, dpi: int = DPI) -> tuple[Figure, Any]:
    # Not pyplot, which would pick a window system and keep every figure.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    return figure, figure.add_subplot()


@contextmanager
def _fonts() -> Iterator[None]:
    """Within a `with` block, draw labels as they are, in the first installed font that has a character."""
    from matplotlib import font_manager, rc_context

    installed = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(name for name in CHINESE_FONTS if name in installed)]
    with rc_context({"font.family": families, "text.parse_math": False}):
        yield


def _pixels(figure: Figure) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        # A layout too tight for few tokens, a character without glyph.
        warnings.simplefilter("ignore", UserWarning)
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
