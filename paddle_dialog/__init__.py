"""paddle_dialog: text models on PaddlePaddle, to train and to use.

The functions here are the commands of those names, and take their arguments by the same names. `shipped()` names the
models that ship; `load(…).predict(texts)` answers; `train`, `evaluate` and `export` make models of one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_dialog.device import choose_path

if TYPE_CHECKING:
    from paddle_dialog.predictor import Predictor

__all__ = ["evaluate", "export", "load", "shipped", "train"]

choose_path()  # here, because whatever imports Paddle imports this first

# What the functions need is imported inside them, so that importing this package stays quick.


def shipped() -> list[str]:
    """Return the names of the models that ship, which `load` takes."""
    from paddle_dialog.recipes import MODELS

    return sorted(folder.parent.name for folder in MODELS.glob("*/bundle.json"))


def load(
    config: str | Path | None = None,
    weights: str | Path | None = None,
    override: Sequence[str] = (),
    device: str = "auto",
) -> Predictor:
    """Load a model, e.g. `paddle_dialog.load("runs/mine").predict(["a text"])`.

    Args:
        config: a recipe, the name of one that ships, or the folder of a run or a bundle. A recipe that ships has the
            weights that ship with it, another one those of its run.
        weights: the folder of a run or a bundle, with its own settings.
        override: `section.key=value` each.
        device: `auto`, `cpu`, `gpu` or `gpu:N`.

    Raises:
        UserError: there is no such recipe or bundle, or it is damaged.
    """
    from paddle_dialog.recipes import load_answering, named_recipe

    return load_answering(named_recipe(config, weights, override), device).predictor


def train(
    config: str | Path,
    override: Sequence[str] = (),
    resume: str | None = None,
    overwrite: bool = False,
    device: str = "auto",
) -> Path:
    """Train a model.

    Args:
        config: a recipe, or the name of one that ships.
        override: `section.key=value` each, e.g. `["data.train=mine.tsv", "output_dir=runs/mine"]`.
        resume: `auto` continues the run in `output_dir`, a folder the one in it.
        overwrite: begin anew although `output_dir` holds a run.
        device: `auto`, `cpu`, `gpu` or `gpu:N`.

    Returns:
        The folder of the run, which `load`, `evaluate` and `export` take.

    Raises:
        UserError: settings or data cannot be used, `output_dir` holds a run, or the extra `train` is not installed.
    """
    from paddle_dialog.command_line import how_to_install
    from paddle_dialog.device import select_device
    from paddle_dialog.errors import UserError
    from paddle_dialog.recipes import load_config

    task, settings = load_config(config, override)
    try:
        select_device(device)
        from paddle_dialog.training.run import Run  # once the settings are right: it takes seconds
    except ModuleNotFoundError as error:
        raise UserError(how_to_install(error.name or "paddle")) from error

    run = Run.begin(task, settings, overwrite) if resume is None else Run.resume(task, settings, resume)
    run.train()
    return run.folder


def evaluate(
    config: str | Path | None = None,
    weights: str | Path | None = None,
    data: str | None = None,
    predictions: str | Path | None = None,
    override: Sequence[str] = (),
    device: str = "auto",
    answers: bool = True,
) -> dict[str, Any]:
    """Measure a model on a file, by default its `data.dev`; return the metrics of its task by name.

    Args:
        config: as for `load`, like `weights`, `override` and `device`.
        data: the examples.
        predictions: where the answers are written as JSON lines.
        answers: False leaves out what needs answers written, which takes most of the time.

    Raises:
        UserError: the model or the data cannot be used.
    """
    from paddle_dialog.errors import UserError
    from paddle_dialog.recipes import load_answering, named_recipe

    recipe = named_recipe(config, weights, override)
    model = load_answering(recipe, device)
    source = data or recipe.config().data.dev
    if source is None:
        raise UserError("no data: name a file with data=, or set data.dev in the config")
    return model.measure(source, None if predictions is None else Path(predictions), answers)


def export(
    weights: str | Path,
    output: str | Path,
    data: Sequence[str] = (),
    eight_bits: bool = False,
    about: str = "",
    overwrite: bool = False,
) -> Path:
    """Make a bundle that ships from the model of a run: smaller, without training state.

    Args:
        weights: the folder of a run or a bundle.
        output: the folder to write.
        data: what the task makes further files of, e.g. an index.
        eight_bits: 8 bits a number of the matrices instead of float16's 16.
        about: Markdown for the model card.
        overwrite: replace the bundle of another model.

    Returns:
        `output`.

    Raises:
        UserError: there is no such model, or the folder holds something else.
    """
    from paddle_dialog.bundle.export import export_bundle
    from paddle_dialog.recipes import find_model

    export_bundle(
        find_model(weights), Path(output), about, data=data, eight_bits=eight_bits, overwrite=overwrite
    )
    return Path(output)
