"""The folder of a run: its checkpoints, its best models, an earlier run in it, and where a new one starts from."""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from filelock import FileLock, Timeout
from paddle import nn
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise_tensors

from paddle_dialog.bundle.folder import (
    CONFIG,
    MANIFEST,
    PROGRESS,
    Bundle,
    file_errors,
    finish_save,
    load_bundle,
)
from paddle_dialog.bundle.weights import read_training_only, set_weights
from paddle_dialog.config.loader import dump, flat, parse_file_text
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.data.records import parse_json
from paddle_dialog.data.training_data import TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.objective import Objective
from paddle_dialog.recipes import find_model
from paddle_dialog.task import Task
from paddle_dialog.training.distributed import is_main
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.report import configure_logging

logger = logging.getLogger("paddle_dialog")

OPTIMIZER = "optimizer.safetensors"
TRAINING_ONLY = "training_only.safetensors"
TRAINING_FILES = (PROGRESS, OPTIMIZER, TRAINING_ONLY)
CHECKPOINTS = (
    "last",
    "last.partial",
    "last.previous",
)  # folders of a run, in the order in which they are tried


def pack_training_state(
    progress: Progress,
    optimizer: paddle.optimizer.Optimizer,
    network: nn.Layer,
) -> dict[str, bytes]:
    """Pack the counters, the optimiser's moments and training-only weights into files.

    The schedule is a function of the step and the random numbers of a step are seeded by it, so neither needs to
    be stored.
    """
    files = {
        PROGRESS: (json.dumps(progress.as_dict(), indent=2) + "\n").encode("utf-8"),
        OPTIMIZER: serialise_tensors(_structured_state(optimizer, network)),
    }
    training_only = read_training_only(network)
    if training_only:
        files[TRAINING_ONLY] = serialise_tensors(training_only)
    return files


def restore_training_state(
    bundle: Bundle,
    where: Path,
    optimizer: paddle.optimizer.Optimizer,
    network: nn.Layer,
) -> None:
    """Set weights and optimiser moments to those of a checkpoint.

    Raises:
        UserError: the checkpoint is damaged or belongs to another model, or other parameters of it were trained.
    """
    with file_errors(str(where), "state of a training", "begin the run anew"):
        training_only = parse_tensors(bundle.extra[TRAINING_ONLY]) if TRAINING_ONLY in bundle.extra else {}
        moments = parse_tensors(bundle.extra[OPTIMIZER])
    set_weights(network, {**bundle.weights, **training_only}, where)
    names = _structured_names(network)
    parameters = {structured: name for name, structured in names.items()}
    state = {}
    for key, value in moments.items():
        structured, _, accumulator = key.partition("::")
        if structured not in parameters:
            raise UserError(f"{where}: the optimiser's state is of another model ({structured} is unknown)")
        state[f"{parameters[structured]}_{accumulator}"] = paddle.to_tensor(value)
    trained = {key.split("::")[0] for key in moments}
    wanted = {name for name, parameter in network.named_parameters() if not parameter.stop_gradient}
    if trained and trained != wanted:
        odd = min(trained ^ wanted)
        raise UserError(
            f"{where}: {odd} is trained {'here' if odd in wanted else 'there'} only; "
            "resume with the config that the run was started with"
        )
    optimizer.set_state_dict(state)


def load_progress(bundle: Bundle, where: Path) -> Progress:
    """Read the counters stored in a checkpoint.

    Raises:
        UserError: the bundle has none: it is a finished model, not a checkpoint.
    """
    if PROGRESS not in bundle.extra or OPTIMIZER not in bundle.extra:
        raise UserError(f"{where}: holds a model but no training state; resume from the run's 'last' folder")
    try:
        return Progress.from_dict(parse_json(bundle.extra[PROGRESS].decode("utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{where}/{PROGRESS}: is not of this version ({error!r}); begin the run anew"
        ) from error


def find_checkpoint(run_folder: Path) -> tuple[Path, Bundle] | None:
    """Find the newest undamaged checkpoint of a run; warn about damaged ones.

    Returns:
        Its folder and content, or None where the run has saved nothing yet.

    Raises:
        UserError: there are checkpoints and all are damaged.
    """
    problems = []
    for name in CHECKPOINTS:
        folder = run_folder / name
        if not folder.is_dir():
            continue
        try:
            bundle = load_bundle(folder)
            load_progress(bundle, folder)
        except UserError as error:
            if name != "last.partial":  # an unfinished write is expected
                problems.append(str(error))
            continue
        for problem in problems:
            logger.warning("%s; taking %s instead", problem, folder)
        return folder, bundle
    if problems:
        raise UserError("; ".join(problems))
    return None


def _structured_names(network: nn.Layer) -> dict[str, str]:
    """Map Paddle's parameter names, numbered in the order of creation, to names in the network."""
    return {parameter.name: structured for structured, parameter in network.named_parameters()}


def _structured_state(optimizer: paddle.optimizer.Optimizer, network: nn.Layer) -> Mapping[str, np.ndarray]:
    """Return the optimiser's accumulators as `<name in the network>::<accumulator>`."""
    names = _structured_names(network)
    state = {}
    for key, value in optimizer.state_dict().items():
        if key == "LR_Scheduler":
            continue
        owner = max((name for name in names if key.startswith(f"{name}_")), key=len)
        state[f"{names[owner]}::{key[len(owner) + 1 :]}"] = value.numpy()
    return state


class BestModels:
    """Keeps `best`, and if more than one is wanted also the `count` best ones as `best-STEP`.

    Args:
        progress: records the kept models for a resumed run.
        save: writes the current model into the folder of a name.
    """

    def __init__(
        self, folder: Path, progress: Progress, objective: Objective, count: int, save: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._progress = progress
        self._objective = objective
        self._count = count
        self._save = save

    def consider(self, figure: float) -> bool:
        """Save the model if it is one of the best; a figure that is not finite never is.

        Returns:
            Whether it is the best so far.
        """
        progress, rank = self._progress, self._objective.rank
        if not math.isfinite(figure):
            return False
        best = progress.best_figure is None or rank(figure) < rank(progress.best_figure)
        if best:
            progress.best_figure, progress.best_step = figure, progress.step
            self._save("best")
        if self._count > 1:
            models = [*progress.kept, (figure, progress.step)]
            ranked = sorted(models, key=lambda model: (rank(model[0]), model[1]))[: self._count]
            if (figure, progress.step) in ranked:
                self._save(f"best-{progress.step}")
            progress.kept = ranked
            if is_main():
                self._remove_others({f"best-{step}" for _, step in ranked})
        return best

    def _remove_others(self, kept: set[str]) -> None:
        for other in numbered_models(self._folder):
            if other.name.split(".")[0] not in kept:
                shutil.rmtree(other, ignore_errors=True)


def numbered_models(folder: Path) -> list[Path]:
    """Return the `best-STEP` folders of a run, including those that a save killed midway has left."""
    return [path for path in sorted(folder.glob("best-*")) if path.name.split(".")[0][5:].isdecimal()]


def changed_settings(checkpoint: Path, bundle: Bundle, config: ExperimentConfig) -> list[str]:
    """Return a sentence for each setting that a resumed run changes.

    Raises:
        UserError: it would go on with the sample that ships, as where the data of before are not named again.
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
                f"{checkpoint}: was trained with {key} {old[key]}, and is to go on with {changed[key]}; name the "
                f"data again (-o {key}=…), or begin another run with training.start_from"
            )
    return [f"changed since the checkpoint: {key} {old[key]} → {value}" for key, value in changed.items()]


def refuse_earlier_run(run_folder: Path) -> None:
    """Check that a new run would overwrite nothing.

    Raises:
        UserError: the folder holds a run.
    """
    if earlier_models(run_folder):
        raise UserError(
            f"{run_folder}: already holds a run; continue it with --resume auto, begin anew with "
            "--overwrite, or choose another folder with -o output_dir=…"
        )


def find_start(run_folder: Path, task: str, resume: str) -> tuple[Path, Bundle] | None:
    """Find the checkpoint that a run continues.

    Args:
        resume: a checkpoint or a run's folder, or `auto` for the newest checkpoint of `run_folder`.

    Returns:
        Its folder and content, or None where `auto` finds none.

    Raises:
        UserError: there is no such checkpoint, it is of another task, or the folder holds another run.
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
        load_progress(bundle, folder)
        found: tuple[Path, Bundle] | None = (folder, bundle)
    else:
        found = find_checkpoint(folder.parent if (folder / MANIFEST).exists() else folder)
    if found is None and resume != "auto":
        raise UserError(f"--resume {resume}: holds no checkpoint")
    if found is not None and found[1].task != task:
        raise UserError(f"{found[0]}: is of the task '{found[1].task}', and the config's is '{task}'")
    return found


def load_start(folder: Path, task: str) -> Bundle:
    """Load the model that `training.start_from` names.

    Raises:
        UserError: it cannot be read or is of another task.
    """
    bundle = load_bundle(folder)
    if bundle.task != task:
        raise UserError(
            f"training.start_from: {folder} is of the task '{bundle.task}', and one of '{task}' is wanted"
        )
    logger.info("starting from the weights of %s", folder)
    return bundle


def data_and_start(task: Task, config: Any) -> tuple[TrainingData, Bundle | None]:
    """Prepare the data of a run, and load the model that it starts from, whose vocabularies they then have.

    Raises:
        UserError: a source or that model cannot be used.
    """
    named = config.training.start_from
    if named is None:
        return task.prepare_data(config, None), None
    start = load_start(find_model(named), task.name)
    return task.prepare_data_like(config, start), start


def earlier_models(run_folder: Path) -> list[Path]:
    """Return the models that a run has left in the folder."""
    names = (*CHECKPOINTS, "best", "best.partial", "best.previous")
    fixed = [run_folder / name for name in names if (run_folder / name).exists()]
    return fixed + numbered_models(run_folder)


def finish_saves(run_folder: Path) -> None:
    """Give the models their places whose saves were killed at the last rename."""
    for partial in run_folder.glob("*.partial"):
        finish_save(partial.with_suffix(""))


def remove_earlier_run(run_folder: Path) -> None:
    """Remove an earlier run, or `--resume auto` could continue it and its curves would stay."""
    for part in (*earlier_models(run_folder), run_folder / "vdl"):
        if not part.exists():
            continue
        logger.info("removing %s of an earlier run", part)
        shutil.rmtree(part, ignore_errors=True)


def make_folder(run_folder: Path) -> FileLock:
    """Create the folder, lock it and open the log in it, before anything that takes time.

    Returns:
        The lock, which the first process of a run holds; it ends with the process, however that ends.

    Raises:
        UserError: it cannot be written to, or another run is at work in it.
    """
    # The processes of a killed run end soon after it; in this process there may be an earlier run that was given up.
    lock = FileLock(run_folder / ".lock", timeout=1.0, is_singleton=True)
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        if is_main():
            lock.acquire()
        configure_logging(str(run_folder / "train.log") if is_main() else None)
        if not is_main():
            logger.setLevel(logging.WARNING)  # the first process logs
    except Timeout as error:
        raise UserError(
            f"output_dir: {run_folder}: another run is at work in this folder; wait for its end, or choose another "
            "folder with -o output_dir=…"
        ) from error
    except OSError as error:
        raise UserError(
            f"output_dir: {run_folder}: cannot be written to ({error.strerror}); choose another folder"
        ) from error
    return lock


def write_config(run_folder: Path, text: str) -> None:
    """Save the merged configuration, once everything has been checked.

    Raises:
        UserError: it cannot be written.
    """
    partial = run_folder / "config.yaml.partial"
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(run_folder / "config.yaml")
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"{run_folder}/config.yaml: cannot be written ({error.strerror})") from error
