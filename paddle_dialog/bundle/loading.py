"""Loading a bundle and making its predictor."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from paddle_dialog import recipes
from paddle_dialog.bundle.folder import CONFIG, bundle_exists, load_bundle
from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import Predictor
from paddle_dialog.recipes import config_from_text
from paddle_dialog.task import Task


@dataclass(frozen=True)
class LoadedModel:
    """A bundle in memory.

    Args:
        config: its own, with a recipe's seed and settings of inference where one was given.
    """

    task: Task
    config: ExperimentConfig
    trained: TrainedModel

    @cached_property
    def predictor(self) -> Predictor:
        """The predictor of this model."""
        return self.task.predictor(self.config, self.trained)


def load_model(folder: Path, task: Task | None = None, recipe: ExperimentConfig | None = None) -> LoadedModel:
    """Read a bundle.

    Args:
        task: the task it must be of; any by default.
        recipe: its seed and inference settings replace the bundle's own.

    Raises:
        UserError: no bundle, a damaged one, one of another task, or decoding settings that its model cannot serve.
    """
    bundle = load_bundle(folder)
    if task is not None and bundle.task != task.name:
        raise UserError(
            f"{folder}: is a model of the task '{bundle.task}', and the config is of '{task.name}'; "
            "name other weights with --weights or another config with -c"
        )
    bundle_task, config = config_from_text(bundle.config_text, f"{folder}/config.yaml")
    if recipe is not None:
        if recipe.language != config.language:
            raise UserError(
                f"{folder}: is a model of the language '{config.language}', and the config is of "
                f"'{recipe.language}'; name other weights with --weights or another config with -c"
            )
        sections = {name: getattr(recipe, name) for name in recipe.inference_sections}
        config = dataclasses.replace(config, seed=recipe.seed, **sections)
        for key, problem in config.problems():
            raise UserError(f"{folder}: this model does not fit the config: {key} {problem}")
    trained = TrainedModel.of_bundle(bundle, partial(bundle_task.build_network, config), folder)
    return LoadedModel(bundle_task, config, trained)


def load_predictor(
    folder: Path, task: Task | None = None, recipe: ExperimentConfig | None = None
) -> Predictor:
    """Return the predictor that a bundle describes; see `load_model`."""
    return load_model(folder, task, recipe).predictor


def default_weights(task: Task, recipe: ExperimentConfig | None) -> Path:
    """Return the weights to use if none are named: those of the recipe's run, else those that ship.

    Weights that ship belong to the recipe that the run is named after, or to its task and language.

    Raises:
        UserError: there are neither, or the run has not chosen its best yet.
    """
    run = Path((None if recipe is None else recipe.output_dir) or f"runs/{task.name}")
    trained, last = run / "best", run / "last"
    if bundle_exists(last) and not bundle_exists(trained):
        raise UserError(f"{run}: has no 'best' yet; name --weights {last}, or those of another folder")
    for folder in (trained, recipes.MODELS / run.name, recipes.MODELS / task.name):
        if bundle_exists(folder) and (folder == trained or _speaks(folder, recipe)):
            return folder
    language = "" if recipe is None or recipe.language is None else f" and the language '{recipe.language}'"
    raise UserError(
        f"no weights: {trained} does not exist, and none ship for the task '{task.name}'{language}; train with "
        "the same config, or name a bundle with --weights"
    )


def _speaks(folder: Path, recipe: ExperimentConfig | None) -> bool:
    """Return whether a bundle is of a recipe's language."""
    if recipe is None or recipe.language is None:
        return True
    file = folder / CONFIG
    if not file.is_file():
        return True  # a damaged bundle, which says so when it is read
    return config_from_text(file.read_text(encoding="utf-8"), str(file))[1].language == recipe.language
