"""The state of a run beside its weights: saved in the `last` bundle, restored by `--resume`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import paddle
from paddle import nn
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise_tensors

from paddle_dialog.bundle.folder import Bundle, load_bundle
from paddle_dialog.bundle.weights import read_training_only, set_weights
from paddle_dialog.errors import UserError
from paddle_dialog.models.older_names import with_present_names
from paddle_dialog.training.average import WeightAverage
from paddle_dialog.training.progress import Progress

logger = logging.getLogger("paddle_dialog")

PROGRESS = "progress.json"
OPTIMIZER = "optimizer.safetensors"
AVERAGE = "average.safetensors"
TRAINING_ONLY = "training_only.safetensors"
CHECKPOINTS = (
    "last",
    "last.partial",
    "last.previous",
)  # folders of a run, in the order in which they are tried


def pack_training_state(
    progress: Progress,
    optimizer: paddle.optimizer.Optimizer,
    network: nn.Layer,
    average: WeightAverage | None = None,
) -> dict[str, bytes]:
    """Pack the counters, the optimiser's moments, the averaged weights and training-only weights into files.

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
    return files if average is None else {**files, AVERAGE: average.serialise()}


def restore_training_state(
    bundle: Bundle,
    where: Path,
    optimizer: paddle.optimizer.Optimizer,
    network: nn.Layer,
    average: WeightAverage | None = None,
) -> None:
    """Set weights, optimiser moments, schedule and averaged weights to those of a checkpoint.

    Raises:
        UserError: the checkpoint belongs to another model, or other parameters of it were trained.
    """
    training_only = parse_tensors(bundle.extra[TRAINING_ONLY]) if TRAINING_ONLY in bundle.extra else {}
    set_weights(network, {**bundle.weights, **training_only}, where)
    names = _structured_names(network)
    parameters = {structured: name for name, structured in names.items()}
    state = {}
    moments = with_present_names(parse_tensors(bundle.extra[OPTIMIZER]), getattr(network, "older_names", {}))
    for key, value in moments.items():
        structured, accumulator = key.split("::")
        if structured not in parameters:
            raise UserError(f"{where}: the optimiser's state is of another model ({structured} is unknown)")
        state[f"{parameters[structured]}_{accumulator}"] = paddle.to_tensor(value)
    trained = {key.split("::")[0] for key in moments}
    wanted = {names[parameter.name] for parameter in optimizer._parameter_list}
    if trained and trained != wanted:
        odd = min(trained ^ wanted)
        raise UserError(
            f"{where}: {odd} is trained {'here' if odd in wanted else 'there'} only; "
            "resume with the config that the run was started with"
        )
    optimizer.set_state_dict(state)
    optimizer._learning_rate.step(load_progress(bundle, where).step)
    if average is not None and AVERAGE in bundle.extra:
        average.restore(bundle.extra[AVERAGE], where)
    elif average is not None:
        logger.warning("%s: holds no averaged weights; the average begins here", where)


def load_progress(bundle: Bundle, where: Path) -> Progress:
    """Read the counters stored in a checkpoint.

    Raises:
        UserError: the bundle has none: it is a finished model, not a checkpoint.
    """
    if PROGRESS not in bundle.extra or OPTIMIZER not in bundle.extra:
        raise UserError(f"{where}: holds a model but no training state; resume from the run's 'last' folder")
    try:
        return Progress.from_dict(json.loads(bundle.extra[PROGRESS]))
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
