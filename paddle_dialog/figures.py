"""Figures: a confusion matrix, VisualDL's log, and a folder of pictures as PNG files and for VisualDL."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddle_dialog.errors import UserError

DPI = 120
LOG_FILE = "vdlrecords.run.log"  # VisualDL knows its files by the first word


def draw_confusion_matrix(counts: np.ndarray, labels: Sequence[str], title: str) -> np.ndarray:
    """Draw how often each label was taken for each other, in percent of its row: RGB, uint8 [height, width, 3].

    Args:
        counts: [L, L], annotated labels down, predicted ones across; an empty row stays white.
        labels: L names in the order of the rows.
    """
    # Not pyplot, which would pick a window system and keep every figure.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    totals = counts.sum(axis=1, keepdims=True)  # [L, 1]
    percent = 100.0 * counts / np.maximum(totals, 1)  # [L, L]
    size = 3.0 + 0.29 * len(labels), 2.2 + 0.27 * len(labels)
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    canvas, axes = FigureCanvasAgg(figure), figure.add_subplot()
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
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def open_log(folder: Path) -> Any:
    """Return VisualDL's writer to the one log file of a folder, which is continued where it exists."""
    from visualdl import LogWriter

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG_FILE).open("ab"):
        pass  # the writer's thread would only print an error
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that the file exists
        return LogWriter(str(folder), file_name=LOG_FILE)


class FigureFolder:
    """Writes pictures by name: `NAME.png`, and the same in `vdl` for `visualdl --logdir`.

    Args:
        folder: made where it is missing; files of the same names are replaced.

    Attributes:
        written: the files so far, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []
        with self._errors():
            self._log = open_log(folder / "vdl")

    def add(self, name: str, image: np.ndarray) -> None:
        """Write a picture, RGB uint8 [height, width, 3]."""
        import matplotlib.image as images

        path = self.folder / f"{name}.png"
        with self._errors():
            images.imsave(path, image)
            self._log.add_image(name, image, 0)
        self.written.append(path)

    def add_json(self, name: str, values: dict[str, Any]) -> None:
        """Write the numbers behind pictures as `NAME.json`."""
        path = self.folder / f"{name}.json"
        with self._errors():
            path.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        self.written.append(path)

    def close(self) -> None:
        """Write what VisualDL's writer still holds."""
        self._log.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(f"{self.folder}: figures cannot be written there ({error.strerror})") from error
