"""Weights between two texts, such as attention, as a picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from paddle_dialog.figures.fonts import best_font, drawable


def draw_heat_map(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], name: str = "attention"
) -> np.ndarray:
    """Draw weights with a token beside each row and column.

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

    path, characters = best_font("".join([*rows, *columns]))
    font = FontProperties(fname=path, size=13)
    figure = Figure(
        figsize=(2.2 + 0.35 * len(columns), 1.2 + 0.35 * len(rows)), dpi=100, layout="constrained"
    )
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    picture = axes.imshow(weights, cmap="viridis", vmin=0.0)
    axes.set_xticks(range(len(columns)), drawable(columns, characters), fontproperties=font, parse_math=False)
    axes.set_yticks(range(len(rows)), drawable(rows, characters), fontproperties=font, parse_math=False)
    for label in axes.get_xticklabels():
        label.set_rotation(90 if len(label.get_text()) > 2 else 0)  # words side by side would overlap
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    figure.colorbar(picture, ax=axes, label=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the layout is too tight for very few tokens
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
