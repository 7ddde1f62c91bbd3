"""paddle_dialog: couplets and empathetic replies on PaddlePaddle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.mkl import choose_path

if TYPE_CHECKING:
    from paddle_dialog.predictor import Predictor

__all__ = ["load"]

choose_path()  # here, because all that imports Paddle imports us first


def load(folder: str | Path) -> Predictor:
    """Loads a bundle, e.g. ``paddle_dialog.load("runs/couplet_lstm/best").predict(["晚风摇树树还挺"], n_best=3)``.

    Args:
        folder: a bundle that a training run wrote, or the name of one that ships, e.g. ``couplet``.

    Raises:
        UserError: there is no bundle, or it is damaged.
    """
    # Importing us should not take the time of importing what reads a bundle.
    from paddle_dialog.bundle.loading import load_predictor
    from paddle_dialog.shipped import find_model

    return load_predictor(find_model(folder))
