"""A trained model as one folder: weights, config, vocabularies, model card, and the checksums of all of them."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise_tensors

from paddle_dialog.bundle.eight_bits import packed, unpacked
from paddle_dialog.bundle.replacing import replace_folder, sync_folder, write_durably
from paddle_dialog.errors import UserError
from paddle_dialog.models.older_names import with_present_names
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import Tensor, nn

logger = logging.getLogger("paddle_dialog")

FORMAT = 1
MANIFEST = "bundle.json"
WEIGHTS = "model.safetensors"
CONFIG = "config.yaml"
CARD = "README.md"
VOCABULARY_SUFFIX = ".vocabulary.txt"


@dataclass(frozen=True)
class Bundle:
    """The contents of a bundle folder.

    Args:
        task: name of the task the model serves.
        config_text: the whole configuration as YAML.
        vocabularies: by name, e.g. `text`.
        weights: the network's parameters by their structured names.
        card: the model card, Markdown.
        extra: further files by name, e.g. the state of the optimiser.
        eight_bits: whether the matrices of the weights are stored in 8 bits a number.
    """

    task: str
    config_text: str
    vocabularies: Mapping[str, Vocabulary]
    weights: Mapping[str, np.ndarray]
    card: str = ""
    extra: Mapping[str, bytes] = field(default_factory=dict)
    eight_bits: bool = False


def save_bundle(bundle: Bundle, folder: Path) -> None:
    """Write a bundle so that a whole one, old or new, is on the disk at any moment.

    The files go to `<folder>.partial`; then the old folder becomes `<folder>.previous` and the new one takes
    its place. If the process is killed between these two renames, both folders remain while `folder` is missing;
    `load_bundle` finds them, and the next save completes the renames.

    Raises:
        UserError: the folder cannot be written, or holds something else.
    """
    check_replaceable(folder)
    partial, previous = _beside(folder, "partial"), _beside(folder, "previous")
    files = {
        CONFIG: bundle.config_text.encode("utf-8"),
        WEIGHTS: serialise_tensors(packed(bundle.weights) if bundle.eight_bits else dict(bundle.weights)),
        CARD: bundle.card.encode("utf-8"),
        **{
            f"{name}{VOCABULARY_SUFFIX}": "".join(f"{token}\n" for token in vocabulary).encode("utf-8")
            for name, vocabulary in bundle.vocabularies.items()
        },
        **bundle.extra,
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"format": FORMAT, "task": bundle.task, "sha256": sums}
    files[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode("utf-8")
    try:
        if _is_whole(partial) and previous.exists() and not folder.exists():
            partial.rename(folder)
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir(parents=True)
        for name, content in files.items():
            write_durably(partial / name, content)
        sync_folder(partial)
        replace_folder(folder, partial, previous)
        sync_folder(folder.parent)
    except OSError as error:
        if not _is_whole(partial):
            shutil.rmtree(partial, ignore_errors=True)  # otherwise a full disk would stay full
        left = "; what was saved before is still there" if bundle_exists(folder) else ""
        raise UserError(f"{folder}: cannot write the bundle: {error.strerror}{left}") from error


def check_replaceable(folder: Path) -> None:
    """Check that writing a bundle here would replace nothing but a bundle.

    Raises:
        UserError: there is a file, or a folder with other things in it.
    """
    if folder.is_dir() and ((folder / MANIFEST).is_file() or not any(folder.iterdir())):
        return
    if folder.exists():
        raise UserError(f"{folder}: is no bundle, and writing one would replace it; name a new folder")


def load_bundle(folder: str | Path) -> Bundle:
    """Read a bundle and check every file against its checksum.

    If a save was killed between its two renames, the bundle that it left beside the folder is read.

    Raises:
        UserError: there is no bundle, it is of another format, or a file is missing or damaged.
    """
    folder = Path(folder)
    for stand_in in () if folder.exists() else (_beside(folder, "partial"), _beside(folder, "previous")):
        if _is_whole(stand_in):
            logger.warning("%s is missing; taking %s", folder, stand_in)
            return _read_bundle(stand_in)
    return _read_bundle(folder)


def bundle_exists(folder: Path) -> bool:
    """Return whether there is a bundle, or the remains of a save killed between its two renames."""
    return folder.is_dir() or any(_is_whole(_beside(folder, suffix)) for suffix in ("partial", "previous"))


def _read_bundle(folder: Path) -> Bundle:
    manifest = _read_manifest(folder)
    files: dict[str, bytes] = {}
    for name, expected in manifest["sha256"].items():
        path = folder / name
        try:
            files[name] = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}): the bundle is incomplete") from error
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise UserError(
                f"{path}: is damaged (its checksum differs from {MANIFEST}); restore or retrain it"
            )
    vocabularies = {
        name.removesuffix(VOCABULARY_SUFFIX): Vocabulary.load(folder / name)
        for name in files
        if name.endswith(VOCABULARY_SUFFIX)
    }
    try:
        tensors = parse_tensors(files.pop(WEIGHTS))
        weights = unpacked(tensors)
        config_text = files.pop(CONFIG).decode("utf-8")
    except (KeyError, SafetensorError, UnicodeDecodeError) as error:
        raise UserError(f"{folder}: is not a bundle this version can read ({error})") from error
    card = files.pop(CARD, b"").decode("utf-8")
    extra = {name: content for name, content in files.items() if not name.endswith(VOCABULARY_SUFFIX)}
    eight_bits = weights.keys() != tensors.keys()
    return Bundle(manifest["task"], config_text, vocabularies, weights, card, extra, eight_bits)


def read_weights(network: nn.Layer) -> dict[str, np.ndarray]:
    """Return a network's parameters and persistent buffers as arrays, each under the first of its names only.

    Those of layers that set `training_only` are left out: see `read_training_only`.
    """
    own, left_out = network.state_dict(), _training_only(network)
    return {
        name: own[name].numpy()
        for name, first in _first_names(own).items()
        if name == first and name not in left_out
    }


def read_training_only(network: nn.Layer) -> dict[str, np.ndarray]:
    """Return the weights that `read_weights` leaves out: those that training needs and answering does not."""
    own = network.state_dict()
    return {name: own[name].numpy() for name in _training_only(network)}


def set_weights(network: nn.Layer, weights: Mapping[str, np.ndarray], where: str | Path) -> None:
    """Copy weights into a network, casting to its precision.

    A parameter that several layers share may stand under any one of its names, or under all; a network with
    `older_names` takes those too. Weights that only training needs may be missing, and then keep their values.

    Raises:
        UserError: names or shapes differ: the weights belong to another model.
    """
    weights = with_present_names(weights, getattr(network, "older_names", {}))
    own = network.state_dict()
    first_names = _first_names(own)
    sources = {
        first_names[name]: name for name in reversed(own) if name in weights
    }  # first name to name in file
    optional = _training_only(network)
    missing = sorted(set(first_names.values()) - sources.keys() - optional)
    foreign = sorted(weights.keys() - own.keys())
    if missing or foreign:
        odd = f"{missing[0]} is missing" if missing else f"{foreign[0]} is unknown"
        raise UserError(
            f"{where}: these weights belong to another model ({odd}); check the config's model section"
        )
    converted = {}
    for name, tensor in own.items():
        if first_names[name] not in sources:
            converted[name] = tensor
            continue
        values = weights[sources[first_names[name]]]
        if tuple(tensor.shape) != values.shape:
            raise UserError(
                f"{where}: {name} has shape {list(values.shape)}, but the config's model needs "
                f"{list(tensor.shape)}; the weights belong to another config or vocabulary"
            )
        converted[name] = values.astype(str(tensor.dtype).removeprefix("paddle."))
    network.set_state_dict(converted)


def _training_only(network: nn.Layer) -> set[str]:
    """Return the names of the weights in layers that set `training_only`."""
    return {
        f"{prefix}.{name}"
        for prefix, layer in network.named_sublayers()
        if getattr(layer, "training_only", False)
        for name in layer.state_dict()
    }


def _first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Map every name of a state dict to the first name of the same tensor.

    Paddle lists a parameter once for each layer that holds it: `nn.LSTM` under two names, and so a cell
    inside `nn.RNN`.
    """
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in state.items()}


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a bundle folder."""
    path = folder / MANIFEST
    if not path.is_file():
        inside = next((name for name in ("best", "last") if (folder / name / MANIFEST).is_file()), None)
        meant = "train one or name another folder" if inside is None else f"did you mean {folder / inside}?"
        raise UserError(f"{folder}: is not a bundle (no {MANIFEST} in it); {meant}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format"]
        complete = isinstance(manifest.get("sha256"), dict) and isinstance(manifest.get("task"), str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: is damaged or not a bundle's manifest ({error!r})") from error
    if version != FORMAT:
        raise UserError(f"{path}: has format {version}, and this version reads format {FORMAT}")
    if not complete:
        raise UserError(f"{path}: is damaged: task or sha256 is missing")
    return dict(manifest)


def _is_whole(folder: Path) -> bool:
    """Return whether a folder holds an undamaged bundle."""
    try:
        _read_bundle(folder)
    except UserError:
        return False
    return True


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(f"{folder.name}.{suffix}")
