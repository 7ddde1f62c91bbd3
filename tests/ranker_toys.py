"""Conversations whose reply names what the context names, and a generator and a ranker of the smallest size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from paddle_dialog.bundle.folder import Bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.typed import build
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.ranking.config import RankerConfig
from tasks.empathetic.ranking.network import ReplyRanker

NOUNS = ("dog", "cat", "car", "house", "job", "exam", "ring", "phone", "money", "friend", "tooth", "bag")
PLACES = ("school", "home", "work", "church")
MODEL = {
    "name": "causal_transformer",
    "width": 32,
    "num_heads": 2,
    "inner_width": 64,
    "num_layers": 2,
    "copy_depth": 4,
    "max_positions": 60,
    "dropout": 0.0,
}
DIALOGUES = [
    Dialogue(
        [f"at {place} i lost my {noun} ."], f"i am sorry about the {noun} !", ("sad", "angry")[number % 2]
    )
    for number, noun in enumerate(NOUNS)
    for place in PLACES
]


def ranker_mapping(**sections: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a small ranker; `sections` are laid over them."""
    mapping: dict[str, Any] = {
        "task": "empathetic.ranking",
        "model": MODEL,
        "emotion": {"hints": False},
        "generator": {"pointer": False},
        "data": {"max_length": 20, "max_target_length": 12},
        "decoding": {"max_length": 12},
        "candidates": {"near": 2, "neighbours": 8, "same_emotion": 1, "spliced": 0},
    }
    for name, values in sections.items():
        mapping[name] = {**mapping.get(name, {}), **values}
    return mapping


def make_ranker_config(**sections: dict[str, Any]) -> RankerConfig:
    """Return the configuration of a small ranker."""
    return build(RankerConfig, ranker_mapping(**sections), "test")


def make_ranker_network(config: RankerConfig, vocab_size: int, seed: int = 1) -> ReplyRanker:
    """Return a network in evaluation mode with random values everywhere."""
    network, rng = ReplyRanker(config, vocab_size), np.random.default_rng(seed)
    for name, parameter in network.named_parameters():
        centre, spread = (1.0, 0.2) if "norm" in name and name.endswith("weight") else (0.0, 0.3)
        values = rng.normal(centre, spread, parameter.shape).astype("float32")
        if name.startswith("embedding"):
            values[Vocabulary.pad_id] = 0
        parameter.set_value(paddle.to_tensor(values))
    network.eval()
    return network


def save_ranker(folder: Path, vocabulary: Vocabulary, seed: int = 1) -> Path:
    """Write a random ranker as a bundle; return its folder."""
    config = make_ranker_config(data={"train": "/home/someone/train.jsonl"})
    weights = read_weights(make_ranker_network(config, len(vocabulary), seed))
    card = "# empathetic.ranking\nRead /home/someone/train.jsonl"
    save_bundle(Bundle("empathetic.ranking", dump(config), {"text": vocabulary}, weights, card, {}), folder)
    return folder


def write_dialogues(path: Path) -> None:
    """Write the conversations as a data file."""
    lines = (json.dumps({"context": d.context, "target": d.target, "emotion": d.emotion}) for d in DIALOGUES)
    path.write_text("\n".join(lines), encoding="utf-8")


def write_generated(path: Path) -> None:
    """Write the replies of a generator that ignores the context, as the predict command prints them."""
    lines = (
        json.dumps(
            {"context": d.context, "predictions": [{"text": "what did you do to do ?", "score": -1.0}]}
        )
        for d in DIALOGUES
    )
    path.write_text("\n".join(lines), encoding="utf-8")
