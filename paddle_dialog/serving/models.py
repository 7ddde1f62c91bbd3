"""Finds, loads and describes the served models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field
from safetensors import safe_open

from paddle_dialog.bundle.folder import WEIGHTS
from paddle_dialog.config.loader import read_config
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.config.typed import build
from paddle_dialog.device import select_device
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import (
    Recipe,
    find_model,
    find_recipe,
    find_task,
    find_weights,
    load_model,
    named_recipe,
)
from paddle_dialog.serving.config import ModelSource, ServeConfig
from paddle_dialog.serving.endpoint import Endpoint, WordFilter
from paddle_dialog.task import Task


@dataclass(frozen=True)
class ServedModel:
    """A model that can be loaded."""

    task: Task
    recipe: ExperimentConfig  # whose decoding it is served with
    folder: Path
    endpoints: Sequence[Endpoint[Any]]  # where it will answer, the main address first


def load_serve_config(path: str | Path, overrides: Sequence[str] = ()) -> ServeConfig:
    """Read a server's settings."""
    return build(ServeConfig, read_config(find_recipe(path), overrides), str(path))


def find_models(config: ServeConfig) -> tuple[list[ServedModel], list[str]]:
    """Find the bundles of a server's models; return a sentence for each that has none, where none was named."""
    models: list[ServedModel] = []
    missing: list[str] = []
    for name, source in config.models.items():
        if source is None:
            continue
        recipe = _recipe(name, source)
        task, settings = recipe.task, recipe.config()
        endpoints = task.endpoints(config.limits)
        if not endpoints:
            raise UserError(f"models.{name}: this task offers nothing over HTTP; set models.{name}: null")
        try:
            folder = find_weights(recipe)
        except UserError as error:
            if source.weights is not None:
                raise
            missing.append(f"{name} is not served: {error}")
            continue
        if any((task, settings.language) == (other.task, other.recipe.language) for other in models):
            language = f" and the language '{settings.language}'" if settings.language else ""
            sentence = f"another model of the task '{task.name}'{language} is served already; leave one out"
            raise UserError(f"models.{name}: {sentence}")
        models.append(ServedModel(task, settings, folder, endpoints))
    if not models:
        raise UserError("no model to serve: " + "; ".join(missing))
    return models, missing


def load_models(models: Sequence[ServedModel], words: WordFilter, device: str) -> list[ModelCard]:
    """Load models and hand them to their endpoints."""
    select_device(device)
    cards = []
    for model in models:
        predictor = load_model(model.folder, model.task, model.recipe).predictor
        with safe_open(model.folder / WEIGHTS, framework="numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
        cards.append(use_model(predictor, model.endpoints, words, sum(map(math.prod, shapes))))
    return cards


def use_model(
    predictor: Any, endpoints: Sequence[Endpoint[Any]], words: WordFilter, parameters: int = 0
) -> ModelCard:
    """Hand a model to its endpoints, the main one first; return its card."""
    details = {endpoint.path: endpoint.use(predictor, words) for endpoint in endpoints}
    path, *_ = details
    config = predictor.config
    return ModelCard(
        task=config.task,
        path=path,
        family=config.model.name,
        parameters=parameters,
        details=details.pop(path),
        further=details,
    )


def _recipe(name: str, source: ModelSource) -> Recipe:
    """Return what `models.<task>` names, by default the task's recipe, or `models.<task>_<anything>`."""
    if source.weights is not None and not find_model(source.weights).is_dir():
        raise UserError(
            f"models.{name}.weights: {source.weights} does not exist; name a run or a bundle, or null for the default"
        )
    config = find_task(name).name if source.config is None is source.weights else source.config
    recipe = named_recipe(config, source.weights)
    task, key = recipe.task.name, "config" if source.weights is None else "weights"
    if name != task and not name.startswith(f"{task}_"):
        raise UserError(
            f"models.{name}.{key}: {source.weights or source.config} is of the task '{task}'; "
            f"write it as models.{task}, or a further one as models.{task}_…"
        )
    return recipe


class ModelCard(BaseModel):
    """One model that is served."""

    task: str
    path: str = Field(description="Where it answers.")
    family: str = Field(description="The recipe's model.name.")
    parameters: int = Field(description="Numbers in its weights.")
    details: dict[str, Any] = Field(description="What the task reports of its model, e.g. its limits.")
    further: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="The task's other addresses, each with its own details."
    )


class ModelCards(BaseModel):
    """All of them."""

    models: list[ModelCard]
