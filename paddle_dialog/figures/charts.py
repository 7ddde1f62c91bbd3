"""Pictures of numbers: a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 120


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


def _make(width: float, height: float) -> tuple[Figure, Any]:
    # Not pyplot, which would pick a window system and keep every figure.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    return figure, figure.add_subplot()


def _pixels(figure: Figure) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
