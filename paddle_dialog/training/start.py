"""What a new run begins with: its data, its network, word vectors, and the weights of an earlier model."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from filelock import FileLock, Timeout
from paddle import nn

from paddle_dialog.bundle.folder import THROUGH_PADDLE, Bundle, load_bundle
from paddle_dialog.bundle.weights import grow_weights, read_weights, set_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.data.batching import LengthBucketSampler, TrainingData, warn_of_dev_data
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.layers.embeddings import TokenEmbedding
from paddle_dialog.metrics import has_paddlenlp
from paddle_dialog.processes import check_memory
from paddle_dialog.recipes import find_model
from paddle_dialog.task import Task
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.distributed import is_main, num_ranks, rank
from paddle_dialog.training.progress import configure_logging
from paddle_dialog.training.run_folder import TRAINING_FILES

logger = logging.getLogger("paddle_dialog")


def open_folder(config: Any) -> FileLock:
    """Create the run's folder, lock it and open the log in it, before anything that takes time; seed the weights.

    Returns:
        The lock, which the first process of a run holds; it ends with the process, however that ends.
    """
    folder = Path(config.output_dir)
    # The processes of a killed run end soon after it; in this process there may be an earlier run that was given up.
    lock = FileLock(folder / ".lock", timeout=1.0, is_singleton=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if is_main():
            lock.acquire()
        configure_logging(str(folder / "train.log") if is_main() else None)
        if not is_main():
            logger.setLevel(logging.WARNING)  # the first process logs
    except Timeout as error:
        raise UserError(
            f"output_dir: {folder}: another run is at work in this folder; wait for its end, or choose another "
            "folder with -o output_dir=…"
        ) from error
    except OSError as error:
        raise UserError(
            f"output_dir: {folder}: cannot be written to ({error.strerror}); choose another folder"
        ) from error
    logger.info("configuration:\n%s", dump(config).rstrip())
    paddle.seed(config.seed)
    return lock


def prepare(task: Task, config: Any) -> tuple[TrainingData, nn.Layer, str]:
    """Prepare the data and the network of a new run.

    Returns:
        The data; the network with its first weights; a section for the card on the model that they are from.
    """
    named = config.training.start_from
    start = None if named is None else _named_start(named, task)
    data = task.prepare_data(config, None) if start is None else task.prepare_data_like(config, start)
    network = build_checked_network(task, config, data)
    fitted = task.fitted_weights(config, data)
    if getattr(config.model, "vectors", None) is not None:
        _set_vectors(config.model.vectors, network, data)
    if start is None:
        if fitted:
            set_weights(network, {**read_weights(network), **fitted}, "fitted weights")
        return data, network, ""
    grown = grow_weights(read_weights(network), start.weights)
    untrained = sorted(grown.keys() - start.weights.keys())
    if untrained:
        logger.info("learned anew, as %s has none: %s", named, ", ".join(untrained))
    set_weights(network, {**grown, **fitted}, named)
    kept = {*task.bundle_files(config, data.vocabularies, data.files), *TRAINING_FILES, THROUGH_PADDLE}
    return data, network, _section_on_start(named, start, kept, fitted)


def _named_start(named: str, task: Task) -> Bundle:
    """Load the model that a run starts from."""
    folder = find_model(named)
    start = load_bundle(folder)
    if start.task != task.name:
        raise UserError(
            f"training.start_from: {folder} is of the task '{start.task}', and one of '{task.name}' is wanted"
        )
    logger.info("starting from the weights of %s", folder)
    return start


def build_checked_network(task: Task, config: Any, data: TrainingData) -> nn.Layer:
    """Return the untrained network, unless the machine's memory is too small for it."""
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    check_memory(config.model, sum(sizes.values()), 4)
    network = task.build_network(config, sizes)
    if getattr(config.model, "freeze_vectors", False):
        for table in _tables(network):
            table.weight.stop_gradient = True
    return network


def _tables(network: nn.Layer) -> list[TokenEmbedding]:
    return [layer for layer in network.sublayers() if isinstance(layer, TokenEmbedding)]


def _set_vectors(path: str, network: nn.Layer, data: TrainingData) -> None:
    """Set a network's embeddings to the word vectors of a file."""
    (vocabulary,) = data.vocabularies.values()
    for table in _tables(network):
        vectors, found = read_vectors(path, vocabulary, table.weight.shape[1])
        vectors[vocabulary.pad_id] = 0
        table.weight.set_value(vectors)
    logger.info("model.vectors: %s has %d of the vocabulary's %d tokens", path, found, len(vocabulary))


def _section_on_start(named: str, start: Bundle, kept: set[str], fitted: Mapping[str, np.ndarray]) -> str:
    """Return the card's section on the weights that a run begins with, and warn of what is not kept of them.

    Args:
        kept: files that the run's bundles have.
        fitted: weights that are not trained, see `Task.fitted_weights`.
    """
    notes = []
    if replaced := ", ".join(sorted(start.weights.keys() & fitted.keys())):
        notes.append(f"fitted to the new data, in place of those of {named}: {replaced}")
        logger.warning("%s", notes[-1])
    if lost := ", ".join(sorted(start.extra.keys() - kept)):
        notes.append(f"not kept of {named}, as they were made for its weights or of its data: {lost}")
        logger.warning("%s; docs/your_data.md shows how to make them anew", notes[-1])
    sections = re.findall(
        r"^## (?:Data|Data and licence|Began with)\n.*?(?=^## |\Z)", start.card, re.M | re.S
    )
    quoted = "".join(f"> {line}\n" for line in "".join(sections).strip().replace("## ", "").splitlines())
    source = f"of which their card says:\n\n{quoted}" if quoted else "which have no card.\n"
    return "\n\n".join([f"## Began with\nThe weights `{named}`, {source}".rstrip(), *notes])


def announce(config: Any, data: TrainingData, network: nn.Layer, total_steps: int) -> None:
    """Log what a run is about to do."""
    for note in data.notes:
        logger.info("%s", note)
    count = sum(math.prod(parameter.shape) for parameter in network.parameters())
    logger.info("%s parameters, %d steps in all", f"{count:,}", total_steps)
    if not has_paddlenlp():
        logger.info("PaddleNLP is not installed: a perplexity is computed without its metric")
    if config.training.amp != "none" and paddle.get_device().startswith("cpu"):
        logger.info("training.amp: has no effect on the CPU, where Paddle computes in float32")
    warn_of_dev_data(config.data)
    warmup = config.training.warmup_steps
    if warmup >= total_steps:
        logger.warning(
            "training.warmup_steps is %d and the run has %d steps: the rate never reaches its height; "
            "set -o training.warmup_steps=%d",
            warmup,
            total_steps,
            total_steps // 10,
        )


def dev_batches(config: Any, data: TrainingData) -> list[list[int]] | None:
    """Return this process's share of the dev examples as batches of indices; no example is in two shares.

    With `training.max_dev` they are a sample that does not depend on the seed.
    """
    dev = data.dev
    if dev is None:
        return None
    count = min(len(dev.lengths), config.training.max_dev or len(dev.lengths))
    if count < num_ranks():
        raise UserError(f"data.dev: {count} examples are too few for {num_ranks()} processes; start fewer")
    used = np.linspace(0, len(dev.lengths) - 1, count).round().astype(int)
    share = used[rank() :: num_ranks()]
    batches = LengthBucketSampler(dev.lengths[share], config.data.batch_size, shuffle=False)
    return [share[batch].tolist() for batch in batches.batches(0)]


def read_vectors(path: str | Path, vocabulary: Vocabulary, size: int) -> tuple[np.ndarray, int]:
    """Read the vectors of a vocabulary's tokens, a line at a time.

    GloVe's form is a token and its numbers a line, separated by spaces; word2vec and fastText begin with a line of
    two numbers. Tokens without a vector are drawn from a normal distribution with mean and deviation of those found.

    Args:
        path: a text file, also `.gz` or `.xz`. If a token occurs twice, its first line counts.
        vocabulary: of V tokens; other lines are skipped.
        size: D.

    Returns:
        float32 [V, D], a row for each token id, and the number of tokens that were found.

    Raises:
        UserError: the file cannot be read, has vectors of another size, or has none of the tokens.
    """
    found: dict[int, np.ndarray] = {}
    for number, line in read_lines(Path(path)):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            fields += ["0"] * int(fields[1])  # word2vec's first line, as long as the others
            fields[:2] = [""]
        if len(fields) != size + 1:
            raise UserError(
                f"{path}:{number}: {len(fields) - 1} numbers after the token, and the model's embeddings have {size}"
            )
        if fields[0] in vocabulary:
            found.setdefault(vocabulary.id(fields[0]), _parse_vector(fields[1:], f"{path}:{number}"))
    if not found:
        raise UserError(
            f"model.vectors: {path} has none of the vocabulary's tokens; give vectors of its language"
        )
    known = np.stack(list(found.values()))  # [found, D]
    rows = (
        np.random.default_rng(0).normal(known.mean(), known.std(), (len(vocabulary), size)).astype(np.float32)
    )
    rows[list(found)] = known
    return rows, len(found)


def _parse_vector(numbers: Sequence[str], where: str) -> np.ndarray:
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError:
        raise UserError(f"{where}: not a vector: what follows the token must be numbers") from None
    if not np.isfinite(vector).all():
        raise UserError(f"{where}: a number of the vector is not finite")
    return vector
