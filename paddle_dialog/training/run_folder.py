"""The folder of a run: an earlier run in it, and the start of a new one."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import yaml

from paddle_dialog.bundle.folder import MANIFEST, Bundle, load_bundle
from paddle_dialog.config.loader import dump, flat
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.data.training_data import TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task
from paddle_dialog.training.best_models import numbered_models
from paddle_dialog.training.checkpoint import CHECKPOINTS, find_checkpoint, load_progress
from paddle_dialog.training.distributed import is_main
from paddle_dialog.training.text_log import configure_logging

logger = logging.getLogger("paddle_dialog")


def changed_settings(checkpoint: Path, bundle: Bundle, config: ExperimentConfig) -> list[str]:
    """Return a sentence for each setting that a resumed run changes.

    Raises:
        UserError: it would go on with the sample that ships, as where the data of before are not named again.
    """
    old, new = (dict(flat(yaml.safe_load(text))) for text in (bundle.config_text, dump(config)))
    changed = {key: value for key, value in new.items() if key in old and old[key] != value}
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
        run_folder: the run's own folder.
        task: name of the config's task.
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
    start = load_start(Path(named), task.starts_from or task.name)
    return task.prepare_data_like(config, start), start


def earlier_models(run_folder: Path) -> list[Path]:
    """Return the models that a run has left in the folder."""
    names = (*CHECKPOINTS, "best", "best.partial", "best.previous")
    fixed = [run_folder / name for name in names if (run_folder / name).exists()]
    return fixed + numbered_models(run_folder)


def remove_earlier_run(run_folder: Path) -> None:
    """Remove an earlier run, or `--resume auto` could continue it and its curves would stay."""
    for part in (*earlier_models(run_folder), run_folder / "vdl"):
        if not part.exists():
            continue
        logger.info("removing %s of an earlier run", part)
        shutil.rmtree(part, ignore_errors=True)


def make_folder(run_folder: Path) -> None:
    """Create the folder and open the log in it, before anything that takes time.

    Raises:
        UserError: it cannot be written to.
    """
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        configure_logging(str(run_folder / "train.log") if is_main() else None)
        if not is_main():
            logger.setLevel(logging.WARNING)  # the first process logs
    except OSError as error:
        raise UserError(
            f"output_dir: {run_folder}: cannot be written to ({error.strerror}); choose another folder"
        ) from error


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
