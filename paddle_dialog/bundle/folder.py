"""A trained model: as one folder, of weights, config, vocabularies, model card and their checksums, and in memory."""

from __future__ import annotations

import hashlib
import json
import logging
import lzma
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise_tensors

from paddle_dialog.bundle.weights import check_arrays, set_weights
from paddle_dialog.data.eight_bits import EightBitWeights, quantize
from paddle_dialog.data.files import MANIFEST, parse_json
from paddle_dialog.device import current_is_cpu
from paddle_dialog.errors import UnsupportedModelError, UserError
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

logger = logging.getLogger("paddle_dialog")

FORMAT = 1
WEIGHTS = "model.safetensors"
CONFIG = "config.yaml"
CARD = "README.md"
UNFINISHED = (
    f"{MANIFEST}.partial"  # written first and renamed last: a folder that has neither is not of this library
)
PROGRESS = "progress.json"  # of a run, in the checkpoint that it can be continued from
THROUGH_PADDLE = "through_paddle.txt"  # why the model does not answer by its steps in NumPy
VOCABULARY_SUFFIX = ".vocabulary.txt"
_PLAIN_NAME = re.compile(r"\w[\w.-]*")  # anything else could name a file outside of the folder


@dataclass(frozen=True)
class Bundle:
    """The contents of a bundle folder."""

    task: str
    config_text: str  # the whole configuration as YAML
    vocabularies: Mapping[str, Vocabulary]  # by name, e.g. `text`
    weights: Mapping[str, np.ndarray]  # the network's parameters by their structured names
    card: str = ""
    # Further files by name, e.g. the state of the optimiser.
    extra: Mapping[str, bytes] = field(default_factory=dict)
    eight_bits: bool = False  # whether the matrices of the weights are stored in 8 bits a number


def save_bundle(bundle: Bundle, folder: Path) -> None:
    """Write a bundle so that a whole one, old or new, is on the disk at any moment.

    The files go to `<folder>.partial`; then the old folder becomes `<folder>.previous` and the new one takes
    its place. If the process is killed between these two renames, both folders remain while `folder` is missing;
    `load_bundle` finds them, and the next save calls `finish_save`. Files that are not of a bundle are kept.
    """
    check_replaceable(folder)
    partial, previous = _sibling(folder, "partial"), _sibling(folder, "previous")
    files = {
        CONFIG: bundle.config_text.encode("utf-8"),
        WEIGHTS: serialise_tensors(quantize(bundle.weights) if bundle.eight_bits else dict(bundle.weights)),
        CARD: bundle.card.encode("utf-8", "backslashreplace"),  # it names files, whose names may not be UTF-8
        **{
            f"{name}{VOCABULARY_SUFFIX}": "".join(f"{token}\n" for token in vocabulary).encode("utf-8")
            for name, vocabulary in bundle.vocabularies.items()
        },
        **bundle.extra,
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"format": FORMAT, "task": bundle.task, "sha256": sums}
    try:
        finish_save(folder)
        _remove(partial)
        partial.mkdir(parents=True)
        write_durably(partial / UNFINISHED, (json.dumps(manifest, indent=2) + "\n").encode("utf-8"))
        for name, content in files.items():
            write_durably(partial / name, content)
        (partial / UNFINISHED).rename(partial / MANIFEST)  # once it is there, the bundle is whole
        _sync_folder(partial)
        _replace_folder(folder, partial, previous)
        _sync_folder(folder.parent)
    except OSError as error:
        if not _is_whole(partial):
            with suppress(OSError):
                _remove(partial)  # otherwise a full disk would stay full
        left = "; what was saved before is still there" if bundle_exists(folder) else ""
        raise UserError(f"{folder}: cannot write the bundle: {error.strerror}{left}") from error


def finish_save(folder: Path) -> None:
    """Give a bundle its place that was whole when its save was killed."""
    partial = _sibling(folder, "partial")
    if _is_whole(partial) and not folder.exists():
        partial.rename(folder)


def check_replaceable(folder: Path) -> None:
    """Check that writing a bundle here would replace nothing but a bundle."""
    if folder.is_dir() and ((folder / MANIFEST).is_file() or not any(folder.iterdir())):
        return
    if folder.exists():
        raise UserError(f"{folder}: is no bundle, and writing one would replace it; name a new folder")


def load_bundle(folder: str | Path) -> Bundle:
    """Read a bundle and check every file: its checksum, and that its weights are finite numbers.

    If a save was killed between its two renames, the bundle that it left under another name is read.
    """
    folder = Path(folder)
    found = recover(folder)
    if found != folder:
        logger.warning("%s is missing; taking %s", folder, found)
    return _read_bundle(found)


def config_file(folder: Path) -> Path:
    """Return the configuration in a bundle, without reading the rest of it."""
    found = recover(folder)
    _read_manifest(found)
    return plain_file(found / CONFIG)


def plain_file(path: Path) -> Path:
    """Return the path of a bundle's file, unless it is a link, a pipe, a device or a folder."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UserError(f"{path}: is a link or no file; a bundle's files are in its folder themselves")
    return path


def recover(folder: Path) -> Path:
    """Return the folder of a bundle: its own, or what a save killed between its renames has left."""
    left = () if folder.exists() else (_sibling(folder, "partial"), _sibling(folder, "previous"))
    return next(filter(_is_whole, left), folder)


def bundle_exists(folder: Path) -> bool:
    """Return whether there is a bundle, or the remains of a save killed between its two renames."""
    return folder.is_dir() or recover(folder) != folder


def _read_bundle(folder: Path) -> Bundle:
    manifest = _read_manifest(folder)
    files: dict[str, bytes] = {}
    for name, expected in manifest["sha256"].items():
        path = plain_file(folder / name)
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
        check_arrays(tensors, folder / WEIGHTS)
        weights = EightBitWeights(tensors)
        config_text = files.pop(CONFIG).decode("utf-8")
        card = files.pop(CARD, b"").decode("utf-8")
    except (KeyError, SafetensorError, UnicodeDecodeError) as error:
        raise UserError(f"{folder}: is not a bundle this version can read ({error})") from error
    extra = {name: content for name, content in files.items() if not name.endswith(VOCABULARY_SUFFIX)}
    eight_bits = weights.keys() != tensors.keys()
    return Bundle(manifest["task"], config_text, vocabularies, weights, card, extra, eight_bits)


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a bundle folder."""
    path = folder / MANIFEST
    if not path.is_file():
        inside = next((name for name in ("best", "last") if (folder / name / MANIFEST).is_file()), None)
        meant = "train one or name another folder" if inside is None else f"did you mean {folder / inside}?"
        raise UserError(f"{folder}: is not a bundle (no {MANIFEST} in it); {meant}")
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
        version = manifest["format"]
        complete = isinstance(manifest.get("sha256"), dict) and isinstance(manifest.get("task"), str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: is damaged or not a bundle's manifest ({error!r})") from error
    if version != FORMAT:
        raise UserError(f"{path}: has format {version}, and this version reads format {FORMAT}")
    if not complete:
        raise UserError(f"{path}: is damaged: task or sha256 is missing")
    for name in manifest["sha256"]:
        if not _PLAIN_NAME.fullmatch(name) or name == MANIFEST:
            raise UserError(
                f"{path}: is damaged or harmful: {name[:80]!r} is not the plain name of a bundle's file"
            )
    return dict(manifest)


def unpack_xz(content: bytes, most: int) -> bytes:
    """Unpack an xz file of a bundle; a `ValueError` where it holds more than `most` bytes."""
    unpacker = lzma.LZMADecompressor()
    data = unpacker.decompress(content, most + 1)
    if len(data) > most:
        raise ValueError(f"it unpacks to more than {most:,} bytes")
    if not unpacker.eof:
        raise lzma.LZMAError("it ends too early")
    return data


def _is_whole(folder: Path) -> bool:
    """Return whether a folder holds a bundle: its manifest comes when all else is on the disk."""
    return (folder / MANIFEST).is_file()


def _sibling(folder: Path, suffix: str) -> Path:
    return folder.with_name(f"{folder.name}.{suffix}")


def _replace_folder(folder: Path, partial: Path, previous: Path) -> None:
    """Replace `folder` by `partial` and keep it as `previous`; undo this on failure."""
    if not folder.exists():
        partial.rename(folder)
        return
    _remove(previous)
    folder.rename(previous)
    try:
        partial.rename(folder)
    except OSError:
        previous.rename(folder)
        raise


def _remove(folder: Path) -> None:
    """Delete a bundle, whole or begun; a folder that holds anything else gets another name instead."""
    marker = folder / UNFINISHED
    if not folder.is_symlink():
        if _is_whole(folder):
            (folder / MANIFEST).rename(marker)  # from here on it is not a bundle
        try:
            names = dict(parse_json(marker.read_text(encoding="utf-8"))["sha256"])
        except (OSError, ValueError, KeyError, TypeError):  # killed while the marker was written, or not ours
            names = {}
        for name in filter(_PLAIN_NAME.fullmatch, names):
            (folder / name).unlink(missing_ok=True)
        marker.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()
    if folder.exists() or folder.is_symlink():
        kept = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
        folder.rename(kept)
        logger.warning("%s holds what is not of a bundle; it is %s now", folder, kept)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk, so that a power cut cannot leave an incomplete one."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; a file's own `fsync` does not guarantee that."""
    if os.name != "posix":
        return  # other systems cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_errors(where: str, what: str, remedy: str) -> Iterator[None]:
    """Report what goes wrong within a `with` block that reads a file of a bundle, in one sentence."""
    try:
        yield
    except (
        SafetensorError,
        lzma.LZMAError,
        zlib.error,
        KeyError,
        ValueError,
        UnsupportedModelError,
    ) as error:
        raise UserError(f"{where}: holds no {what} ({error}); {remedy}") from error


class TrainedModel:
    """A trained model: its vocabularies, the task's own files, and its network, built on demand.

    Args:
        build: makes the network, with its weights.
        files: the task's own files in a bundle, by name.
        weights: by structured name, for a model in NumPy; None for a network that exists already.
    """

    def __init__(
        self,
        vocabularies: Mapping[str, Vocabulary],
        build: Callable[[], nn.Layer],
        files: Mapping[str, bytes] | None = None,
        weights: Mapping[str, np.ndarray] | None = None,
        where: Path | str = "",
    ) -> None:
        self.vocabularies = vocabularies
        self.files = {} if files is None else files
        self._build = build
        self._weights = weights
        self._where = where

    @classmethod
    def of_bundle(
        cls,
        bundle: Bundle,
        build: Callable[[Mapping[str, int]], nn.Layer],
        where: Path,
        through_paddle: bool = False,
    ) -> TrainedModel:
        """Return the model of a bundle.

        Args:
            build: makes the untrained network of the sizes of its vocabularies.
            through_paddle: never answer in NumPy.
        """

        def network() -> nn.Layer:
            built = build({name: len(vocabulary) for name, vocabulary in bundle.vocabularies.items()})
            set_weights(built, bundle.weights, where)
            return built

        if THROUGH_PADDLE in bundle.extra:
            _warn(where, bundle.extra[THROUGH_PADDLE].decode("utf-8", "replace").strip())
            through_paddle = True
        weights = None if through_paddle else bundle.weights
        return cls(bundle.vocabularies, network, bundle.extra, weights, where)

    @classmethod
    def of_network(cls, network: nn.Layer, vocabularies: Mapping[str, Vocabulary]) -> TrainedModel:
        """Return a model around a network that exists already, e.g. one in training."""
        return cls(vocabularies, lambda: network)

    @cached_property
    def network(self) -> nn.Layer:
        """The network with its weights, in evaluation mode."""
        network = self._build()
        network.eval()
        return network

    def fastest(
        self,
        make: Callable[[Mapping[str, np.ndarray]], Any],
        through_paddle: Callable[[nn.Layer], Any] | None = None,
    ) -> Any:
        """Return a model in NumPy, or one through Paddle: for a GPU, and for a network that exists already.

        Where the NumPy steps do not support the network, Paddle answers too, and the log says why.

        Args:
            make: makes the model in NumPy.
            through_paddle: makes that of the network; by default one that reads the prefix again at each step.
        """
        if self._weights is not None and current_is_cpu():
            try:
                return make(self._weights)
            except UnsupportedModelError as reason:
                _warn(self._where, reason)
        if through_paddle is not None:
            return through_paddle(self.network)
        from paddle_dialog.decoding.paddle_steps import step_model  # imports Paddle

        return step_model(self.network)


def _warn(where: Path | str, reason: object) -> None:
    logger.warning("%s: %s; answering through Paddle, which starts seconds later", where, reason)
