"""Whether a network answers as its steps in NumPy do, which are other code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paddle import nn

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.schema import GenerationConfig
from paddle_dialog.data.batching import TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task

INPUTS = 8  # first ones of the dev set
TOLERANCE = 0.02  # of scores and probabilities, whose last digits differ


def forms_differ(task: Task, config: Any, network: nn.Layer, data: TrainingData) -> bool:
    """Answer a few dev inputs through Paddle and in NumPy; return whether the answers differ.

    They do where an answer of the same text has other scores or probabilities, or where most texts are others; a
    single text may differ by rounding. Where the task answers nothing, they do not.
    """
    if isinstance(config, GenerationConfig):
        greedy = dataclasses.replace(config.decoding, strategy="greedy", n_best=1)
        config = dataclasses.replace(config, decoding=greedy)
    files = task.bundle_files(config, data.vocabularies, data.files)
    weights = read_weights(network)
    other_texts = answered = 0
    try:
        inputs = task.example_inputs(config, config.data.dev or config.data.train, INPUTS)
        paddle, arrays = (
            task.predictor(config, TrainedModel(data.vocabularies, lambda: network, files, form))
            for form in (None, weights)
        )
    except UserError:
        return False
    for text in inputs:
        try:
            one, other = (list(predictor.predict_records([text])) for predictor in (paddle, arrays))
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
