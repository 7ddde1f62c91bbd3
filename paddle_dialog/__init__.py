"""paddle_dialog: text models on PaddlePaddle, trained and asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.mkl import choose_path

if TYPE_CHECKING:
    from paddle_dialog.predictor import Predictor

__all__ = ["load"]

choose_path()  # here, because all that imports Paddle imports us first


def load(folder: str | Path) -> Predictor:
    """Loads a bundle, e.g. ``paddle_dialog.load("runs/mine/best").predict_records(["a text"])``.

    Args:
        folder: a bundle that a training run wrote, or the name of one that ships.

    Raises:
        UserError: there is no bundle, or it is damaged.
    """
    # Importing us should not take the time of importing what reads a bundle.
    from paddle_dialog.bundle.loading import load_predictor
    from paddle_dialog.shipped import find_model

    return load_predictor(find_model(folder))
