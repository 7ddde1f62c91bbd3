"""A tiny model that chooses replies, and a store for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of

from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.data.encoding import make_encoder
from tasks.empathetic.data.language import ENGLISH
from tasks.empathetic.reading.vectors import log_probs, reply_vectors
from tasks.empathetic.selection.store import ReplyStore, emotion_bits

TEXTS = [
    "Oh no!",
    "Rex was a good dog.",
    "Congratulations!",
    "That is awful. Who stole it?",
    "A happy prize.",
]
CONTEXTS = [["my dog died ."], ["i won a prize"], ["someone stole my bike", "that is awful .", "my bike !"]]


def toy_config(**sections: Any) -> EmpatheticConfig:
    return make_config(
        "causal",
        **{"selection": {"size": 6}, "decoding": {"beam_size": 4, "max_length": 6}, **sections},
    )


def make_store(config: EmpatheticConfig, texts: list[str] = TEXTS) -> ReplyStore:
    """Return a store with a random model's vectors and probabilities."""
    vocabulary = make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    tokens = [ENGLISH.tokens_of(text) for text in texts]
    emotions = np.array([emotion_bits([EMOTIONS[row % 32]]) for row in range(len(texts))], dtype=np.uint32)
    return ReplyStore(
        texts, reply_vectors(model, vocabulary, tokens), log_probs(model, encoder, tokens), emotions
    )


def predictor(store: ReplyStore | None = None, **sections: Any) -> EmpatheticPredictor:
    config = toy_config(**sections)
    store = make_store(config) if store is None else store
    vocabulary = make_vocabulary()
    network = make_network(config, len(vocabulary))
    return predictor_of(config, network, vocabulary, find_replies=lambda *_: store)
