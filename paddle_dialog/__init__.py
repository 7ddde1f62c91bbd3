"""paddle_dialog: text models on PaddlePaddle, to train and to use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.mkl import choose_path

if TYPE_CHECKING:
    from paddle_dialog.predictor import Predictor

__all__ = ["load"]

choose_path()  # here, because whatever imports Paddle imports this first


def load(folder: str | Path) -> Predictor:
    """Load a bundle, e.g. `paddle_dialog.load("runs/mine/best").predict_records(["a text"])`.

    Args:
        folder: a bundle that a training run wrote, or the name of one that ships.

    Raises:
        UserError: there is no bundle, or it is damaged.
    """
    # Imported late, so that importing this package stays quick.
    from paddle_dialog.bundle.loading import load_predictor
    from paddle_dialog.recipes import find_model

    return load_predictor(find_model(folder))
