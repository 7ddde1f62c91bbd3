"""A tiny model that chooses replies, and a store for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of

from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.language import ENGLISH
from tasks.empathetic.prediction import EmpatheticPredictor
from tasks.empathetic.store import ContextIndex, ReplyStore

TEXTS = [
    "Oh no!",
    "Rex was a good dog.",
    "Congratulations!",
    "That is awful. Who stole it?",
    "A happy prize.",
]
SAID = ["i lost my keys", "my dog died", "i won the race", "someone stole my bike", "i won a dog"]
CONTEXTS = [["my dog died ."], ["i won a prize"], ["someone stole my bike", "that is awful .", "my bike !"]]


def toy_config(**sections: Any) -> EmpatheticConfig:
    decoding = {"beam_size": 4, "max_length": 6, **sections.pop("decoding", {})}
    return make_config("causal", decoding=decoding, **sections)


def make_store() -> ReplyStore:
    """Return a store of `TEXTS`, the i-th given in the i-th emotion to the i-th of `SAID`."""
    contexts = ContextIndex.build([[ENGLISH.tokens_of(turn)] for turn in SAID], range(len(TEXTS)))
    emotions = np.array([1 << row for row in range(len(TEXTS))], dtype=np.uint32)
    return ReplyStore(TEXTS, emotions, contexts, np.zeros(len(TEXTS), bool))


def predictor(store: ReplyStore | None = None, **sections: Any) -> EmpatheticPredictor:
    config, vocabulary = toy_config(**sections), make_vocabulary()
    network = make_network(config, len(vocabulary))
    return predictor_of(config, network, vocabulary, store=make_store() if store is None else store)
