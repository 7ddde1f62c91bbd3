"""A picture of a text whose tokens are coloured by weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.figures.fonts import best_font, drawable

COLUMNS = 60  # characters in a line of the picture


def draw_coloured_text(tokens: Sequence[str], weights: np.ndarray, title: str, gap: int = 0) -> np.ndarray:
    """Draw a text whose tokens are coloured by their weights, blue below 0 and red above.

    Args:
        tokens: of the text; one that no installed font can draw is replaced by its number.
        weights: of each token; the colours span the largest, up or down.
        title: above the text.
        gap: blanks between tokens: 1 where they are words.

    Returns:
        RGB image, uint8 [height, width, 3].
    """
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    path, characters = best_font("".join([*tokens, title]))
    font = FontProperties(fname=path, size=13)
    places, row, column = [], 0, 0.0
    for token in tokens:
        width = sum(1.0 if ord(character) > 0x2E80 else 0.6 for character in token)
        if column and column + width > COLUMNS:
            row, column = row + 1, 0.0
        places.append((row, column, width))
        column += width + 0.6 * gap
    figure = Figure(figsize=(0.2 * COLUMNS + 0.4, 0.4 * (row + 1) + 0.5), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.01, 0.0, 0.98, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, COLUMNS)
    axes.set_ylim(row + 1.1, -1.1)
    axes.text(0, -0.5, title, fontproperties=font, va="center", parse_math=False)
    largest = float(np.abs(weights).max(initial=0.0)) or 1.0
    for label, weight, (line, start, width) in zip(
        drawable(tokens, characters), weights, places, strict=True
    ):
        colour = colormaps["coolwarm"](0.5 + 0.5 * float(weight) / largest)
        axes.text(
            start + width / 2,
            line + 0.5,
            label,
            ha="center",
            va="center",
            fontproperties=font,
            parse_math=False,
            bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5},
        )
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
