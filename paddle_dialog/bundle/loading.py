"""From a bundle to a predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddle_dialog import shipped
from paddle_dialog.bundle.folder import bundle_exists, load_bundle
from paddle_dialog.bundle.trained import TrainedNetwork
from paddle_dialog.config import config_from_text
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import Predictor
from paddle_dialog.task import Task


def load_predictor(
    folder: Path, task: Task | None = None, recipe: ExperimentConfig | None = None
) -> Predictor:
    """Makes the predictor that a bundle describes.

    Args:
        folder: the bundle.
        task: the task it must be of; any by default.
        recipe: its settings of inference take the place of the bundle's own.

    Raises:
        UserError: no bundle, a damaged one, one of another task, or decoding settings that its model cannot serve.
    """
    bundle = load_bundle(folder)
    if task is not None and bundle.task != task.name:
        raise UserError(
            f"{folder}: is a model of the task '{bundle.task}', and the config is of '{task.name}'; "
            "name other weights with --weights or another config with -c"
        )
    found, config = config_from_text(bundle.config_text, f"{folder}/config.yaml")
    if recipe is not None:
        for section in recipe.inference_sections:
            setattr(config, section, getattr(recipe, section))
        for key, problem in config.problems():
            raise UserError(f"{folder}: this model does not fit the config: {key} {problem}")
    sizes = {name: len(vocabulary) for name, vocabulary in bundle.vocabularies.items()}
    trained = TrainedNetwork(bundle.weights, lambda: found.build_network(config, sizes), folder, bundle.extra)
    return found.trained_predictor(config, trained, bundle.vocabularies)


def default_weights(task: Task, config: Any) -> Path:
    """The weights to take where none are named: those of the config's run, else those that ship.

    Raises:
        UserError: there are neither.
    """
    trained = Path(config.output_dir) / "best"
    for folder in (trained, shipped.MODELS / task.name):
        if bundle_exists(folder):
            return folder
    raise UserError(
        f"no weights: {trained} does not exist, and none ship for the task '{task.name}'; train with the same "
        "config, or name a bundle with --weights"
    )
