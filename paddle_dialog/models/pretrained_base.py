"""The files of a pre-trained model: where they are, whether they can be used, and its tokenizer.

Nothing here imports Paddle. The tokenizer is Transformers', which PaddleFormers brings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.files import MANIFEST
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi, is_punctuation
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

ARCHITECTURES = ("LlamaForCausalLM", "Ernie4_5ForCausalLM")  # those that were run here
SETTINGS, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model")  # one is enough
# What a bundle keeps of a model, as far as it is there.
SMALL_FILES = (
    *(SETTINGS, "generation_config.json", "tokenizer_config.json", "chat_template.jinja"),
    *("special_tokens_map.json", "added_tokens.json", *TOKENIZERS),
)
T = TypeVar("T")
_BLANK = "▁"  # a blank inside a token


def _remembered(function: Callable[[Path], T]) -> Callable[[Path], T]:
    """Remember what a function says of a folder until a file in it changes."""
    cached = lru_cache(maxsize=4)(lambda folder, _: function(folder))

    @wraps(function)
    def call(folder: Path) -> T:
        files = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
        return cached(folder, tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in files))

    return call


@contextmanager
def quiet_import() -> Iterator[None]:
    """Keep PaddleFormers and Transformers from telling what else they could use, within a `with` block."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # they read it on import
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def base_folder(config: PretrainedConfig) -> Path:
    """Return the folder of a pre-trained model, fetched from a hub where the setting names no folder."""
    folder = Path(config.pretrained)
    if not folder.is_dir():
        folder = _fetched(config.pretrained)
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise UserError(f"model.pretrained: {folder} has no tokenizer; put {' or '.join(TOKENIZERS)} there")
    known = base_settings(folder).get("architectures") or ["none"]
    if known[0] not in ARCHITECTURES:
        raise UserError(f"model.pretrained: {folder} is a {known[0]}; take a {' or a '.join(ARCHITECTURES)}")
    if config.sha256 is not None and config.sha256 != base_hash(folder):
        raise UserError(
            f"model.pretrained: {folder} is not the model that these weights were trained on; name that one"
        )
    return folder


def is_base(folder: Path) -> bool:
    """Return whether a folder is a pre-trained model's own, and no bundle."""
    return (folder / SETTINGS).is_file() and not (folder / MANIFEST).is_file()


def base_settings(folder: Path) -> dict[str, Any]:
    """Return what config.json says."""
    try:
        settings: dict[str, Any] = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"model.pretrained: {folder / SETTINGS} cannot be read ({error})") from error
    return settings


@_remembered
def base_hash(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of weights, settings and tokenizer."""
    total = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *(folder / name for name in SMALL_FILES)]):
        if path.is_file():
            total.update(f"{path.name} {path.stat().st_size}\n".encode())
            with path.open("rb") as file:
                while block := file.read(1 << 22):
                    total.update(block)
    return total.hexdigest()


def with_hash(config: Any) -> Any:
    """Return an experiment's settings, of a frozen model with the hash of its files."""
    model = config.model
    if not isinstance(model, PretrainedConfig) or model.lora is None:
        return config
    return dataclasses.replace(config, model=dataclasses.replace(model, sha256=base_hash(base_folder(model))))


def base_files(config: Any) -> dict[str, bytes]:
    """Return what the bundles of an experiment keep of a pre-trained model besides weights: settings, tokenizer."""
    if not isinstance(config.model, PretrainedConfig):
        return {}
    folder = base_folder(config.model)
    return {name: (folder / name).read_bytes() for name in SMALL_FILES if (folder / name).is_file()}


def _fetched(name: str) -> Path:
    """Fetch a model from a hub, and return its folder."""
    with quiet_import():
        from paddleformers.utils.download import resolve_file_path

    try:
        settings = Path(resolve_file_path(name, SETTINGS))
        index = resolve_file_path(name, INDEX, force_return=True)
        shards = [WEIGHTS]
        if index is not None:
            shards = sorted(set(json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"].values()))
        for file in (*shards, *SMALL_FILES):
            resolve_file_path(name, file, force_return=file in SMALL_FILES)
    except Exception as error:  # each hub has its own
        raise UserError(
            f"model.pretrained: '{name}' is no folder, and no hub gives it; put {SETTINGS}, the *.safetensors and "
            f"{TOKENIZERS[0]} of the model into a folder and name that"
        ) from error
    return settings.parent


@_remembered
def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a pre-trained model."""
    with quiet_import():
        from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"model.pretrained: the tokenizer of {folder} cannot be read") from error
    size = base_settings(folder).get("vocab_size", 0)
    if len(tokenizer) > size:
        raise UserError(
            f"model.pretrained: the tokenizer of {folder} has {len(tokenizer):,} tokens, and the model {size:,}"
        )
    if tokenizer.eos_token_id is None:
        raise UserError(f"model.pretrained: the tokenizer of {folder} has no token that ends a text")
    return tokenizer


@_remembered
def characters(folder: Path) -> dict[str, int]:
    """Return the tokens that are one hanzi or one mark, with their ids, in the order of these."""
    tokenizer, found = load_tokenizer(folder), dict[str, int]()
    special = set(tokenizer.all_special_tokens)
    for index, token in enumerate(tokenizer.convert_ids_to_tokens(range(len(tokenizer)))):
        # A byte-level tokenizer writes a character in at most four.
        if token is None or token in special or len(token) > 4 or _BLANK in token:
            continue
        text = tokenizer.convert_tokens_to_string([token])
        if len(text) == 1 and (is_hanzi(text) or is_punctuation(text)):
            found.setdefault(text, index)
    if not any(map(is_hanzi, found)):
        raise UserError(
            f"model.pretrained: no hanzi is a token of {folder}, so no Chinese line can be written character by "
            "character; take a model of Chinese"
        )
    return found


def character_vocabulary(config: PretrainedConfig) -> Vocabulary:
    """Return the special tokens and the characters that are tokens of a model."""
    return Vocabulary([*SPECIAL_TOKENS, *characters(base_folder(config))])
