"""paddle_dialog: text models on PaddlePaddle, to train and to use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.mkl import choose_path

if TYPE_CHECKING:
    from paddle_dialog.predictor import Predictor

__all__ = ["load"]

choose_path()  # here, because whatever imports Paddle imports this first


def load(
    config: str | Path | None = None, weights: str | Path | None = None, override: Sequence[str] = ()
) -> Predictor:
    """Load a model, e.g. `paddle_dialog.load("runs/mine").predict(["a text"])`.

    Args:
        config: what `-c` takes: a recipe, the name of one that ships, or the folder of a run or a bundle. A
            recipe that ships has the weights that ship with it, another one those of its run.
        weights: what `--weights` takes: the folder of a run or a bundle, with its own settings.
        override: `section.key=value` each.

    Raises:
        UserError: there is no such recipe or bundle, or it is damaged.
    """
    # Imported late, so that importing this package stays quick.
    from paddle_dialog.bundle.loading import find_weights, load_predictor, named_recipe

    recipe = named_recipe(config, weights, override)
    return load_predictor(find_weights(recipe), recipe.task, recipe.config())
