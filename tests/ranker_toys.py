"""Conversations whose reply names what the context names, and a generator and a ranker of the smallest size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paddle_dialog.config.loader import build
from tasks.empathetic.dialogue import Dialogue
from tasks.empathetic.ranking.config import RankerConfig

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
    """The settings of a small ranker; ``sections`` are laid over them."""
    mapping: dict[str, Any] = {
        "task": "empathetic_ranker",
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
    """The configuration of a small ranker."""
    return build(RankerConfig, ranker_mapping(**sections), "test")


def write_dialogues(path: Path) -> None:
    """The conversations as a data file."""
    lines = (json.dumps({"context": d.context, "target": d.target, "emotion": d.emotion}) for d in DIALOGUES)
    path.write_text("\n".join(lines), encoding="utf-8")


def write_generated(path: Path) -> None:
    """What a generator that heeds nobody replied to each context, as the predict command prints it."""
    lines = (
        json.dumps(
            {"context": d.context, "predictions": [{"text": "what did you do to do ?", "score": -1.0}]}
        )
        for d in DIALOGUES
    )
    path.write_text("\n".join(lines), encoding="utf-8")
