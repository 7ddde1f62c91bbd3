"""Exports a run's model as a bundle that ships: smaller, without training state and local paths."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from paddle_dialog.bundle.folder import (
    CARD,
    CONFIG,
    PROGRESS,
    THROUGH_PADDLE,
    Bundle,
    TrainedModel,
    check_replaceable,
    load_bundle,
    save_bundle,
)
from paddle_dialog.config.loader import dump, flat, replaced
from paddle_dialog.config.models import PretrainedConfig, with_pretrained_path
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.data.files import MANIFEST
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained_base import (
    SETTINGS,
    SMALL_FILES,
    WEIGHTS,
    base_files,
    base_folder,
    base_settings,
)
from paddle_dialog.recipes import config_from_text
from paddle_dialog.task import Task


def export_bundle(
    source: Path,
    target: Path,
    about: str = "",
    metrics: Mapping[str, Any] | None = None,
    data: Sequence[str] = (),
    eight_bits: bool = False,
    overwrite: bool = False,
) -> int:
    """Write a bundle for others, with smaller weights and no paths in the config; return its bytes.

    Args:
        source: a run's `best` or `last`.
        about: Markdown for the beginning of the model card: intended use, data and licence, limits.
        metrics: the output of `tools/evaluate.py --json` for this model.
        data: sources from which the task makes further files with the final weights, e.g. an index of them.
        eight_bits: whether matrices take 8 bits a number, with a scale for each row, instead of float16's 16.
        overwrite: whether the bundle of another model may be replaced.
    """
    check_replaceable(target)
    if target.resolve() == source.resolve():
        raise UserError(
            f"{target}: is the model itself, which would lose half of its precision; name a new folder"
        )
    if (target / PROGRESS).is_file():
        raise UserError(
            f"{target}: is the checkpoint of a run, which needs it to continue; name a new folder"
        )
    bundle = load_bundle(source)
    task, config = config_from_text(bundle.config_text, f"{source}/config.yaml")
    config = _without_folders(task, config)
    replaces = (target / CONFIG).is_file() and (target / CONFIG).read_text(encoding="utf-8") != dump(config)
    if replaces and not overwrite:
        raise UserError(f"{target}: is the bundle of another model; name a new folder, or add --overwrite")
    files = task.bundle_files(config, bundle.vocabularies, bundle.extra)
    files |= {name: bundle.extra[name] for name in (*SMALL_FILES, THROUGH_PADDLE) if name in bundle.extra}
    exported = Bundle(
        bundle.task,
        dump(config),
        bundle.vocabularies,
        _all_halved(bundle.weights, source),
        "\n".join(part for part in (about, bundle.card, _table(metrics or {})) if part),
        files,
        eight_bits,
    )
    if data:
        trained = TrainedModel.of_bundle(exported, partial(task.build_network, config), source)
        exported = dataclasses.replace(exported, extra={**files, **task.files_of_data(config, trained, data)})
    save_bundle(exported, target)
    return sum(path.stat().st_size for path in target.iterdir())


def export_merged(source: Path, target: Path, base: str = "") -> int:
    """Write a fine-tuned pre-trained model as one folder in Hugging Face's form, in float32; return its bytes.

    Args:
        source: a run's `best` or `last`, or a bundle.
        target: a new folder.
        base: the folder of the frozen model, where it is no longer where the run had it.
    """
    if target.exists():
        raise UserError(f"{target}: exists; name a new folder")
    bundle = load_bundle(source)
    task, config = config_from_text(bundle.config_text, f"{source}/config.yaml")
    if not isinstance(config.model, PretrainedConfig):
        raise UserError(
            f"--merge: {source} is a {config.model.name}, and only a pretrained model can be merged"
        )
    if base:
        config = replaced(config, {"model.pretrained": base})
    named = Path(config.model.pretrained)
    config = with_pretrained_path(config, source)
    original = named if config.model.lora is None and named.is_dir() else base_folder(config.model)
    network: Any = TrainedModel.of_bundle(bundle, partial(task.build_network, config), source).network
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as folder:
        merged = Path(folder, "merged")
        merged.mkdir()
        network.save_whole(merged)
        _as_in(original, merged)
        for name, content in base_files(config).items():
            (merged / name).write_bytes(content)
        settings = base_settings(merged) | {"torch_dtype": "float32"}
        settings.pop("dtype", None)
        (merged / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        merged.rename(target)
    return sum(path.stat().st_size for path in target.iterdir())


def _as_in(base: Path, merged: Path) -> None:
    """Leave the weights that a base's files have, and add its card; the library adds biases of zeros and a head."""
    shapes: dict[str, list[int]] = {}
    written: dict[str, np.ndarray] = {}
    is_bundle = (base / MANIFEST).is_file()  # with Paddle's names
    for file in [] if is_bundle else base.glob("*.safetensors"):
        with safe_open(file, "np") as tensors:
            shapes |= {name: tensors.get_slice(name).get_shape() for name in tensors.keys()}  # noqa: SIM118
    for file in [*merged.iterdir()]:
        written |= load_file(file) if file.suffix == ".safetensors" else {}
        file.unlink()
    kept = {name: values for name, values in written.items() if not shapes or name in shapes}
    if shapes and {name: [*values.shape] for name, values in kept.items()} != shapes:
        raise UserError(
            f"--merge: {base} has other weights than the merged model; name the model it was tuned from"
        )
    save_file(kept, merged / WEIGHTS, metadata={"format": "pt"})
    if shapes and (base / CARD).is_file():
        (merged / CARD).write_bytes((base / CARD).read_bytes())


def _without_folders(task: Task, config: ExperimentConfig) -> ExperimentConfig:
    """Return a config with its paths cut to file names, without the files that answering does not read."""
    keys = ["data.train", "data.dev", "data.vocabulary", "training.start_from", *task.path_keys]
    if getattr(config.model, "vectors", None) is not None:
        keys.append("model.vectors")
    if isinstance(config.model, PretrainedConfig) and Path(config.model.pretrained).is_dir():
        keys.append("model.pretrained")
    paths = {key: attrgetter(key)(config) for key in keys}
    kept = {
        key: Path(path).name if key.startswith(("data.", "model.")) and key != "data.vocabulary" else None
        for key, path in paths.items()
        if path is not None
    }
    return replaced(config, {**kept, "output_dir": None})


def _all_halved(weights: Mapping[str, np.ndarray], source: Path) -> dict[str, np.ndarray]:
    """Convert floats to float16."""
    halved = dict(weights)
    for name, values in weights.items():
        if values.dtype == np.float32:
            with np.errstate(over="ignore"):
                halved[name] = values.astype(np.float16)
            if not np.isfinite(halved[name]).all():
                raise UserError(f"{source}: {name} has weights beyond ±65504, which float16 cannot hold")
    return halved


def _table(metrics: Mapping[str, Any]) -> str:
    """Format the figures as a Markdown table, nested ones with dotted names."""
    if not metrics:
        return ""
    shown = ((name, f"{value:.4f}" if isinstance(value, float) else value) for name, value in flat(metrics))
    rows = "\n".join(f"| {name} | {value} |" for name, value in shown)
    return f"## Figures on dev\nPrinted by `tools/evaluate.py --json`.\n\n| metric | value |\n|---|---|\n{rows}\n"
