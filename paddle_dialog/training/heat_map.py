"""Attention weights as a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CJK_FONTS = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "SimHei", "Microsoft YaHei")


def draw_heat_map(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """Draws weights with a token beside each row and column.

    Where no font with Chinese characters is installed the tokens are numbered instead of drawn as boxes.

    Args:
        weights: [T, S], each between 0 and 1.
        rows: T labels (target).
        columns: S labels (source).

    Returns:
        RGB image, uint8 [height, width, 3].
    """
    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    installed = {font.name for font in font_manager.fontManager.ttflist}
    font = next((name for name in CJK_FONTS if name in installed), None)
    if font is None and any(not label.isascii() for label in [*rows, *columns]):
        rows, columns = _numbers(rows), _numbers(columns)
    figure = Figure(figsize=(1.5 + 0.35 * len(columns), 1.5 + 0.35 * len(rows)), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="viridis", vmin=0.0, vmax=1.0)
    axes.set_xticks(range(len(columns)), columns, fontfamily=font)
    axes.set_yticks(range(len(rows)), rows, fontfamily=font)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    figure.tight_layout()
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _numbers(labels: Sequence[str]) -> list[str]:
    return [str(index + 1) for index in range(len(labels))]
