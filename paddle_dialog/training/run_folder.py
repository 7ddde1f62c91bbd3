"""The folder of a run: its checkpoints, an earlier run in it, and whether its model answers without Paddle alike."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise_tensors

from paddle_dialog.bundle.folder import (
    CONFIG,
    MANIFEST,
    PROGRESS,
    Bundle,
    TrainedModel,
    file_errors,
    load_bundle,
)
from paddle_dialog.bundle.weights import check_arrays, read_training_only, read_weights, set_weights
from paddle_dialog.config.loader import dump, flat, parse_file_text
from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.config.schema import ExperimentConfig, GenerationConfig
from paddle_dialog.data.batching import TrainingData
from paddle_dialog.data.files import parse_json
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task
from paddle_dialog.training.progress import Progress

logger = logging.getLogger("paddle_dialog")

OPTIMIZER = "optimizer.safetensors"
MOMENTS = ("moment1_0", "moment2_0")  # Paddle's names of what Adam keeps of a parameter, of its shape,
POWERS = ("beta1_pow_acc_0", "beta2_pow_acc_0")  # and of one number
TRAINING_ONLY = "training_only.safetensors"
TRAINING_FILES = (PROGRESS, OPTIMIZER, TRAINING_ONLY)
COMPARED = 8  # inputs of the dev set, the first ones, that are answered through Paddle and in NumPy
TOLERANCE = 0.02  # of their scores and probabilities, whose last digits differ
CHECKPOINTS = ("last", "last.partial", "last.previous")  # in the order in which they are tried


def pack_training_state(
    progress: Progress, optimizer: paddle.optimizer.Optimizer, network: nn.Layer
) -> dict[str, bytes]:
    """Pack the counters, the optimiser's moments and weights that only training needs into files.

    The schedule is a function of the step and the random numbers of a step are seeded by it, so neither needs to
    be stored.
    """
    files = {
        PROGRESS: (json.dumps(dataclasses.asdict(progress), indent=2) + "\n").encode("utf-8"),
        OPTIMIZER: serialise_tensors(_structured_state(optimizer, network)),
    }
    if training_only := read_training_only(network):
        files[TRAINING_ONLY] = serialise_tensors(training_only)
    return files


def restore_training_state(
    bundle: Bundle, where: Path, progress: Progress, optimizer: paddle.optimizer.Optimizer, network: nn.Layer
) -> None:
    """Set weights and optimiser moments to those of a checkpoint."""
    with file_errors(str(where), "state of a training", "begin the run anew"):
        moments = parse_tensors(bundle.extra[OPTIMIZER])
        training_only = parse_tensors(bundle.extra[TRAINING_ONLY]) if TRAINING_ONLY in bundle.extra else {}
    check_arrays(training_only, where)
    set_weights(network, {**bundle.weights, **training_only}, where)
    if not moments and progress.step == progress.skipped:  # no step has been taken yet
        return
    parameters = dict(network.named_parameters())
    wanted = {name for name, parameter in parameters.items() if not parameter.stop_gradient}
    trained = {key.split("::")[0] for key in moments}
    if trained and trained != wanted:
        odd = min(trained ^ wanted)
        raise UserError(
            f"{where}: {odd} is trained {'here' if odd in wanted else 'there'} only; "
            "resume with the config that the run was started with"
        )
    shapes: dict[str, tuple[int, ...]] = {}
    for name in wanted:
        shapes |= {f"{name}::{accumulator}": (1,) for accumulator in POWERS}
        shapes |= {f"{name}::{accumulator}": tuple(parameters[name].shape) for accumulator in MOMENTS}
    check_arrays(moments, where / OPTIMIZER, shapes)
    state = {}
    for key, value in moments.items():
        name, _, accumulator = key.partition("::")
        state[f"{parameters[name].name}_{accumulator}"] = paddle.to_tensor(value)
    optimizer.set_state_dict(state)


def _structured_state(optimizer: paddle.optimizer.Optimizer, network: nn.Layer) -> Mapping[str, np.ndarray]:
    """Return the optimiser's accumulators as `<name in the network>::<accumulator>`."""
    # Paddle numbers its parameters in the order of creation.
    names = {parameter.name: name for name, parameter in network.named_parameters()}
    state = {}
    for key, value in optimizer.state_dict().items():
        if key == "LR_Scheduler":
            continue
        owner = max((name for name in names if key.startswith(f"{name}_")), key=len)
        state[f"{names[owner]}::{key[len(owner) + 1 :]}"] = value.numpy()
    return state


def load_progress(bundle: Bundle, where: Path) -> Progress:
    """Read the counters stored in a checkpoint."""
    if PROGRESS not in bundle.extra or OPTIMIZER not in bundle.extra:
        raise UserError(f"{where}: holds a model but no training state; resume from the run's 'last' folder")
    try:
        return Progress.from_dict(parse_json(bundle.extra[PROGRESS].decode("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{where}/{PROGRESS}: is not of this version ({error!r}); begin the run anew"
        ) from error


def find_checkpoint(run_folder: Path) -> tuple[Path, Bundle, Progress] | None:
    """Find the newest undamaged checkpoint of a run; warn about damaged ones."""
    problems = []
    for name in CHECKPOINTS:
        folder = run_folder / name
        if not folder.is_dir():
            continue
        try:
            bundle = load_bundle(folder)
            progress = load_progress(bundle, folder)
        except UserError as error:
            if name != "last.partial":  # an unfinished write is expected
                problems.append(str(error))
            continue
        for problem in problems:
            logger.warning("%s; taking %s instead", problem, folder)
        return folder, bundle, progress
    if problems:
        raise UserError("; ".join(problems))
    return None


def find_start(run_folder: Path, task: str, resume: str) -> tuple[Path, Bundle, Progress] | None:
    """Find the checkpoint that a run continues; None where `auto` finds none.

    Args:
        resume: a checkpoint or a run's folder, or `auto` for the newest checkpoint of `run_folder`.
    """
    folder = run_folder if resume == "auto" else Path(resume)
    if resume != "auto" and not folder.is_dir():
        raise UserError(f"--resume {resume}: no such folder; name a run's folder or its 'last' bundle")
    if run_folder.resolve() not in (folder.resolve(), folder.resolve().parent) and earlier_models(run_folder):
        raise UserError(
            f"{run_folder}: already holds another run than {folder}; choose a new folder with -o output_dir=…"
        )
    if (folder / MANIFEST).exists() and folder.name != CHECKPOINTS[0]:
        bundle = load_bundle(folder)
        found = folder, bundle, load_progress(bundle, folder)
    else:
        newest = find_checkpoint(folder.parent if (folder / MANIFEST).exists() else folder)
        if newest is None and resume == "auto":
            return None
        if newest is None:
            raise UserError(f"--resume {resume}: holds no checkpoint")
        found = newest
    where, bundle, _ = found
    if bundle.task != task:
        raise UserError(f"{where}: is of the task '{bundle.task}', and the config's is '{task}'")
    return found


def changed_since(
    checkpoint: Path,
    bundle: Bundle,
    config: ExperimentConfig,
    before: Mapping[str, str],
    now: Mapping[str, str],
) -> dict[str, str]:
    """Return a sentence for each setting, and each file of data, that a resumed run changes, by its key.

    Args:
        before: the `file_hashes` of the checkpoint.
        now: those of the resumed run.
    """
    texts = (bundle.config_text, dump(config))
    old, new = (dict(flat(parse_file_text(text, f"{checkpoint}/{CONFIG}"))) for text in texts)
    changed = {key: value for key, value in new.items() if key in old and old[key] != value}
    if "model.sha256" in changed:
        raise UserError(
            f"{checkpoint}: was trained on another model.pretrained; name that one, or begin anew"
        )
    for key in ("data.train", "data.dev"):
        if str(changed.get(key, "")).startswith("sample"):
            raise UserError(
                f"{checkpoint}: was trained with {key} {old[key]}, and is to continue with {changed[key]}; name the "
                f"data again (-o {key}=…), or begin another run with training.start_from"
            )
    files = {
        key: f"the content of {key}" for key in sorted(before) if before[key] != now.get(key, before[key])
    }
    sentences = files | {key: f"{key} {old[key]} → {new[key]}" for key in changed}
    return {key: f"changed since the checkpoint: {sentence}" for key, sentence in sentences.items()}


def file_hashes(task: Task, config: ExperimentConfig) -> dict[str, str]:
    """Return the SHA-256 of each file of data that the settings name, by its key."""
    hashes = {}
    values = dict(flat(parse_file_text(dump(config), CONFIG)))
    for key in ("data.train", "data.dev", "data.vocabulary", *task.path_keys):
        named = values.get(key)
        if not isinstance(named, str):
            continue
        # `archive:member` names a part of an archive.
        file = next((Path(name) for name in (named, named.rpartition(":")[0]) if Path(name).is_file()), None)
        if file is None:
            continue
        digest = hashlib.sha256()
        # A file that cannot be read is reported where the data are read.
        with contextlib.suppress(OSError), file.open("rb") as content:
            while part := content.read(1 << 20):
                digest.update(part)
            hashes[key] = digest.hexdigest()
    return hashes


def earlier_models(run_folder: Path) -> list[Path]:
    """Return the models that a run has left in the folder."""
    names = (*CHECKPOINTS, "best", "best.partial", "best.previous")
    return [run_folder / name for name in names if (run_folder / name).exists()]


def refuse_earlier_run(run_folder: Path) -> None:
    """Check that a new run would overwrite nothing."""
    if earlier_models(run_folder):
        raise UserError(
            f"{run_folder}: already holds a run; continue it with --resume auto, begin anew with "
            "--overwrite, or choose another folder with -o output_dir=…"
        )


def remove_earlier_run(run_folder: Path) -> None:
    """Remove an earlier run, or `--resume auto` could continue it and its curves would stay."""
    for part in (*earlier_models(run_folder), run_folder / "vdl"):
        if not part.exists():
            continue
        logger.info("removing %s of an earlier run", part)
        shutil.rmtree(part, ignore_errors=True)


def write_config(run_folder: Path, text: str) -> None:
    """Save the merged configuration, once everything has been checked."""
    partial = run_folder / "config.yaml.partial"
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(run_folder / "config.yaml")
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"{run_folder}/config.yaml: cannot be written ({error.strerror})") from error


def answers_differ(task: Task, config: Any, network: nn.Layer, data: TrainingData) -> bool:
    """Answer a few dev inputs through Paddle and in NumPy; return whether the answers differ.

    They do where an answer of the same text has other scores or probabilities, or where most texts are others; a
    single text may differ by rounding. Where the task answers nothing, or through Paddle alone, they do not.
    """
    if isinstance(config.model, PretrainedConfig):
        return False
    if isinstance(config, GenerationConfig):
        greedy = dataclasses.replace(config.decoding, strategy="greedy", n_best=1)
        config = dataclasses.replace(config, decoding=greedy)
    files = task.bundle_files(config, data.vocabularies, data.files)
    weights = read_weights(network)
    other_texts = answered = 0
    try:
        inputs = task.example_inputs(config, config.data.dev or config.data.train, COMPARED)
        by_paddle, by_numpy = (
            task.predictor(config, TrainedModel(data.vocabularies, lambda: network, files, form))
            for form in (None, weights)
        )
    except UserError:
        return False
    for text in inputs:
        try:
            one, other = (list(predictor.predict_records([text])) for predictor in (by_paddle, by_numpy))
        except UserError:  # an input that cannot be answered
            continue
        answered += 1
        ours, theirs = _leaves(one), _leaves(other)
        pairs = list(zip(ours, theirs, strict=False))
        if len(ours) != len(theirs) or any(a != b for a, b in pairs if not (_is_number(a) and _is_number(b))):
            other_texts += 1
        elif any(abs(a - b) > TOLERANCE for a, b in pairs if _is_number(a)):
            return True
    return other_texts > answered / 2


def _leaves(value: Any) -> list[Any]:
    """Return the keys, texts and numbers of nested mappings and lists in order."""
    if isinstance(value, Mapping):
        value = sorted(value.items())
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, list | tuple) else [value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
