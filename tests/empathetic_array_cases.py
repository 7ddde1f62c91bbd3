"""Settings, contexts and random models by which EmoPrepend over arrays is held to the network."""

from __future__ import annotations

from typing import Any

import numpy as np
from empathetic_toys import DIALOGUES, make_config, make_network, make_vocabulary

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.tasks.empathetic.data.encoding import Source, make_encoder, pad_sources
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import NumpyEmoPrepend, numpy_emo_prepend

Sections = dict[str, dict[str, Any]]
VOCABULARY = make_vocabulary()
OWN_TABLES = {"share_embeddings": False, "tie_output": False}
CASES: list[Sections] = [
    {},
    {"model": {"bias": False}},
    {"model": {**OWN_TABLES}, "generator": {"pointer": False, "temperature": 0.7}},
    {"model": {**OWN_TABLES, "bias": False}, "emotion": {"head": "cls"}},
    {"model": {"share_embeddings": False, "tie_output": True}},
    {"emotion": {"hints": False}, "generator": {"temperature": 1.5}},
    {
        "model": {"bias": False},
        "emotion": {
            "ngram_buckets": 50,
            "encoder_weight": 0.3,
            "character_weight": 0.5,
            "small_talk": True,
        },
    },
    {"emotion": {"head": "cls", "ngram_buckets": 50, "hints": False}, "generator": {"pointer": False}},
]
MARKED = {"data": {"mark_turns": True}}
CAUSAL_CASES: list[Sections] = [
    {**MARKED},
    {**MARKED, "emotion": {"hints": False, "ngram_buckets": 50, "encoder_weight": 0.3}},
    {
        "model": {"bias": True, **OWN_TABLES},
        "generator": {"temperature": 0.7},
    },
    {"model": {"bias": True, "tie_output": False}},
    {"model": {"share_embeddings": False}, "generator": {"pointer": False, "temperature": 1.5}},
]
LSTM_CASES: list[Sections] = [
    {},
    {"model": {"bidirectional": True, "score": "additive", **OWN_TABLES}, "emotion": {"ngram_buckets": 50}},
    {
        "model": {"input_feeding": False, "score": "bilinear"},
        "generator": {"pointer": False, "temperature": 0.7},
    },
]
ALL_CASES = [
    *(("transformer", sections) for sections in CASES),
    *(("causal", sections) for sections in CAUSAL_CASES),
    *(("lstm", sections) for sections in LSTM_CASES),
]
CONTEXTS = [
    *(dialogue.context for dialogue in DIALOGUES),
    ["qwrtz took my qwrtz bike", "oh no !", "zkp found qwrtz , my dog"],
    ["zkp"],
]


def models(family: str, sections: Sections) -> tuple[EmoPrepend, NumpyEmoPrepend]:
    """Return a random network and the model over arrays made of it."""
    config = make_config(family, **sections)
    network = make_network(config, len(VOCABULARY))
    return network, numpy_emo_prepend(config, len(VOCABULARY), read_weights(network))


def packed(family: str, sections: Sections, given_emotion: list[int | None]) -> tuple[Source, np.ndarray]:
    """Return the contexts as a batch; three words of theirs are not in the vocabulary."""
    encoder = make_encoder(make_config(family, **sections), VOCABULARY)
    return pad_sources(
        [
            encoder.pack(encoder.context(turns), emotion)[0]
            for turns, emotion in zip(CONTEXTS, given_emotion, strict=True)
        ]
    )


def only(
    source: Source, lengths: np.ndarray, row: int, length: int | None = None
) -> tuple[Source, np.ndarray]:
    """Return one context of a batch without its padding, or cut to another length."""
    size = int(lengths[row]) if length is None else length
    return source.map(lambda x: x[row : row + 1] if x.ndim == 1 else x[row : row + 1, :size]), lengths[
        row : row + 1
    ]
