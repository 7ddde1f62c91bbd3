"""Which weights answer, and the predictor they make."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from paddle_dialog import recipes
from paddle_dialog.bundle.folder import CONFIG, MANIFEST, bundle_exists, config_file, load_bundle
from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.models import PretrainedConfig, with_pretrained_path
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import Predictor
from paddle_dialog.recipes import Recipe, config_from_text, read_recipe
from paddle_dialog.task import Task

logger = logging.getLogger("paddle_dialog")


@dataclass(frozen=True)
class LoadedModel:
    """A bundle in memory."""

    task: Task
    config: ExperimentConfig  # its own, with a recipe's seed and settings of inference where one was given
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
    if task is not None:
        _check_same(folder, "task", bundle.task, task.name)
    bundle_task, config = config_from_text(bundle.config_text, f"{folder}/config.yaml")
    if recipe is not None:
        _check_same(folder, "language", config.language, recipe.language)
        sections = {name: getattr(recipe, name) for name in recipe.inference_sections}
        config = dataclasses.replace(config, seed=recipe.seed, **sections)
        for key, problem in config.problems():
            raise UserError(f"{folder}: this model does not fit the config: {key} {problem}")
    if isinstance(config.model, PretrainedConfig):
        config = with_pretrained_path(config, folder, recipe)
    trained = TrainedModel.of_bundle(bundle, partial(bundle_task.build_network, config), folder)
    return LoadedModel(bundle_task, config, trained)


def _check_same(folder: str | Path, what: str, model: str | None, config: str | None) -> None:
    if model != config:
        raise UserError(
            f"{folder}: is a model of the {what} '{model}', and the config is of '{config}'; "
            "name other weights with --weights or another config with -c"
        )


def named_recipe(
    config: str | Path | None, weights: str | Path | None, overrides: Sequence[str] = ()
) -> Recipe:
    """Return the settings that a model answers with: a recipe's, or those of the weights beside a recipe that ships.

    Args:
        config: a recipe, or the folder of a run or of a bundle; beside weights it must be of their task and language.
        weights: a bundle, the folder of a run, or the name of weights that ship.

    Raises:
        UserError: neither is given, one of them cannot be read, or they do not belong together.
    """
    if weights is None and config is None:
        raise UserError("no model is named; give a recipe, a run's folder or a bundle")
    recipe = None if config is None else read_recipe(config, overrides)
    if weights is None:
        assert recipe is not None
        return recipe
    folder = find_model(weights)
    file = config_file(folder)
    if recipe is not None:
        if recipe.ships_as is None:
            return dataclasses.replace(recipe, weights=folder)
        own, others = read_recipe(file).config(), read_recipe(recipe.file).config()
        _check_same(weights, "task", own.task, others.task)
        _check_same(weights, "language", own.language, others.language)
        differing = [name for name in own.inference_sections if getattr(own, name) != getattr(others, name)]
        if differing:
            told = "%s answers with its own settings (%s), not with those of %s; -o changes one"
            logger.info(told, weights, ", ".join(differing), config)
    return read_recipe(file, overrides)


def find_model(named: str | Path) -> Path:
    """Return the bundle that is named by its folder, by that of a run, or by the name of weights that ship."""
    folder, shipped = Path(named), recipes.MODELS / named
    if bundle_exists(folder / "best"):
        return folder / "best"
    return shipped if shipped.is_dir() and not (folder / MANIFEST).is_file() else folder


def find_weights(recipe: Recipe) -> Path:
    """Return the weights of a recipe: those named beside it, its bundle, those that ship with it, or its run's.

    A recipe that ships has a run's weights if it ships without any, or if its `output_dir` is set.

    Raises:
        UserError: there are none, or the run has not chosen its best yet.
    """
    if recipe.weights is not None:
        return recipe.weights
    folder = recipe.file.parent
    if recipe.file.name == CONFIG and (folder / MANIFEST).is_file():
        return folder
    name = recipe.ships_as
    shipped = None if name is None else recipes.MODELS / name
    if shipped is not None and shipped.is_dir() and recipe.values.get("output_dir") is None:
        return shipped
    run = Path(recipe.config().output_dir or "")
    best, last = run / "best", run / "last"
    if bundle_exists(best):
        return best
    if bundle_exists(last):
        raise UserError(f"{run}: has no 'best' yet; name --weights {last}, or those of another folder")
    none = "" if name is None else f", and none ship with the recipe {name}"
    raise UserError(
        f"no weights: {best} does not exist{none}; train with this recipe, or name a run or a bundle with --weights"
    )
