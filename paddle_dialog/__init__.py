"""paddle_dialog: couplets and empathetic replies on PaddlePaddle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.mkl import choose_path

if TYPE_CHECKING:
    from paddle_dialog.task import Predictor

__all__ = ["load"]

choose_path()  # here, because all that imports Paddle imports us first


def load(folder: str | Path) -> Predictor:
    """Loads a bundle, e.g. ``paddle_dialog.load("runs/couplet_lstm/best").predict(["晚风摇树树还挺"], n_best=3)``.

    Args:
        folder: a bundle that a training run wrote, or one that ships.

    Raises:
        UserError: there is no bundle, or it is damaged.
    """
    from paddle_dialog.inference import (
        load_predictor,
    )  # importing paddle takes seconds; importing us does not

    return load_predictor(Path(folder))
