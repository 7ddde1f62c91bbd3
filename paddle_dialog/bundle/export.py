"""From a run's model to a bundle that ships: half the size, without training state and without anyone's paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.trained import TrainedNetwork
from paddle_dialog.config import config_from_text, dump
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task


def export_bundle(
    source: Path,
    target: Path,
    about: str = "",
    metrics: Mapping[str, Any] | None = None,
    data: Sequence[str] = (),
    companion: Path | None = None,
) -> int:
    """Writes a bundle for others: float16 weights, and file names in place of the paths in config and card.

    Args:
        source: a run's ``best`` or ``last``.
        target: the folder to write.
        about: Markdown that stands first in the model card: intended use, data and licence, limits.
        metrics: what ``tools/evaluate.py --json`` printed for this model.
        data: sources of which the task makes further files with the weights that ship, e.g. an index of them.
        companion: another model that the task takes into the bundle, e.g. a ranker; the model card has its own too.

    Returns:
        Bytes of all files written.

    Raises:
        UserError: no bundle, weights that float16 cannot hold, or data or a companion of which the task makes
            nothing.
    """
    bundle = load_bundle(source)
    task, config = config_from_text(bundle.config_text, f"{source}/config.yaml")
    card = _without_paths(bundle.card, task, config)
    _forget_paths(task, config)
    config.data.train = Path(config.data.train).name
    config.data.dev = None if config.data.dev is None else Path(config.data.dev).name
    config.data.vocabulary, config.training.start_from, config.output_dir = None, None, None
    weights = {name: _halved(name, values, source) for name, values in bundle.weights.items()}
    files = task.bundle_files(config, bundle.vocabularies, bundle.extra)
    if companion is not None:
        other = load_bundle(companion)
        files = {**files, **task.files_of_companion(config, bundle.vocabularies, other, companion)}
        kind, settings = config_from_text(other.config_text, f"{companion}/config.yaml")
        card = f"{card}\n{_without_paths(other.card, kind, settings)}"
    if data:
        sizes = {name: len(vocabulary) for name, vocabulary in bundle.vocabularies.items()}
        trained = TrainedNetwork(weights, lambda: task.build_network(config, sizes), source, files)
        files = {**files, **task.files_of_data(config, trained, bundle.vocabularies, data)}
    exported = Bundle(
        bundle.task,
        dump(config),
        bundle.vocabularies,
        weights,
        "\n".join(part for part in (about, card, _table(metrics or {})) if part),
        files,
    )
    save_bundle(exported, target)
    return sum(path.stat().st_size for path in target.iterdir())


def _forget_paths(task: Task, config: Any) -> None:
    """Leaves of the task's own paths the names of data, and nothing of files that answering would read."""
    for key in task.path_keys:
        section, name = key.split(".")
        value = getattr(getattr(config, section), name)
        if value is not None:
            setattr(getattr(config, section), name, Path(value).name if section == "data" else None)


def _without_paths(card: str, task: Task, config: Any) -> str:
    """A model card with file names in the place of the paths of its config."""
    named = [config.data.train, config.data.dev, config.data.vocabulary, config.training.start_from]
    named += [
        getattr(getattr(config, section), name) for section, name in (k.split(".") for k in task.path_keys)
    ]
    for path in sorted((path for path in named if path is not None), key=len, reverse=True):
        card = card.replace(path, Path(path).name)
    return card


def _halved(name: str, values: np.ndarray, source: Path) -> np.ndarray:
    """Floats as float16."""
    if values.dtype != np.float32:
        return values
    half = values.astype(np.float16)
    if not np.isfinite(half).all():
        raise UserError(f"{source}: {name} has weights beyond ±65504, which float16 cannot hold")
    return half


def _table(metrics: Mapping[str, Any]) -> str:
    """The figures as a Markdown table, nested ones with dotted names."""
    if not metrics:
        return ""
    rows = "\n".join(f"| {name} | {value} |" for name, value in _flat(metrics, ""))
    return f"## Figures on dev\nPrinted by `tools/evaluate.py --json`.\n\n| metric | value |\n|---|---|\n{rows}\n"


def _flat(metrics: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    rows = []
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", f"{value:.4f}" if isinstance(value, float) else str(value)))
    return rows
