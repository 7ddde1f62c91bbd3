"""A ranker as one file of a bundle: matrices in 8 bits a number, vectors in 32, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import Bundle, file_errors
from paddle_dialog.bundle.weights import dequantize, quantize
from paddle_dialog.config.typed import build
from paddle_dialog.errors import UserError
from paddle_dialog.models.arrays.operators import Weights
from paddle_dialog.recipes import config_from_text
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.ranking.config import RankerConfig
from tasks.empathetic.ranking.numpy_ranker import CandidateRanker, NumpyReplyRanker

RANKER = "ranker.safetensors"  # in a bundle
_SETTINGS = "settings"  # name of a tensor


def ranker_to_bytes(config: RankerConfig, weights: Mapping[str, np.ndarray]) -> bytes:
    """Pack a ranker into a safetensors file, its matrices in 8 bits.

    Args:
        config: it was trained with; the file keeps what the network reads, and no path.
        weights: by structured name, float.
    """
    settings = np.frombuffer(json.dumps(_read_settings(config)).encode("utf-8"), np.uint8)
    return save({_SETTINGS: settings, **quantize(weights)})


def ranker_of_bundle(bundle: Bundle, vocabulary: Vocabulary, where: Path) -> bytes:
    """Make the file of a trained ranker.

    Args:
        bundle: of the ranker's run.
        vocabulary: of the generator whose bundle it joins.
        where: the ranker's folder, for messages.

    Raises:
        UserError: it is not a ranker, or has another vocabulary.
    """
    _, config = config_from_text(bundle.config_text, f"{where}/config.yaml")
    if not isinstance(config, RankerConfig):
        raise UserError(f"{where}: is of the task '{bundle.task}', and a ranker is of 'empathetic.ranking'")
    (own,) = bundle.vocabularies.values()
    if list(own) != list(vocabulary):
        raise UserError(
            f"{where}: this ranker has another vocabulary than the generator; train it with training.start_from on "
            "the generator, or on the one that this began with"
        )
    content = ranker_to_bytes(config, bundle.weights)
    ranker_from_bytes(content, vocabulary, str(where))  # a file that cannot be read must not ship
    return content


def ranker_from_bytes(content: bytes, vocabulary: Vocabulary, where: str) -> CandidateRanker:
    """Read what `ranker_to_bytes` made.

    Args:
        content: of the file.
        vocabulary: of the ranker.
        where: the file, for messages.

    Raises:
        UserError: the content is something else, or has another vocabulary.
    """
    with file_errors(where, "ranker of these weights", "export the bundle anew"):
        tensors = load(content)
        settings = json.loads(tensors.pop(_SETTINGS).tobytes())
        config = build(RankerConfig, settings, where)
        model = NumpyReplyRanker(config, len(vocabulary), Weights(dequantize(tensors)))
    return CandidateRanker(config, vocabulary, model)


def _read_settings(config: RankerConfig) -> dict[str, Any]:
    """Return the settings that a network's output depends on, as a config."""
    read = {
        "data": ("max_length", "max_target_length", "mark_turns"),
        "emotion": ("roles", "hints"),
        "generator": ("pointer",),
        "decoding": ("max_length",),
        "candidates": ("near", "neighbours", "spliced"),
    }
    sections = {
        name: {key: getattr(getattr(config, name), key) for key in keys} for name, keys in read.items()
    }
    return {"task": config.task, "model": vars(config.model), **sections}
