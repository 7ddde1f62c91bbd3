"""Cards of the models that a server serves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field
from safetensors import safe_open

from paddle_dialog.bundle.folder import CARD, WEIGHTS
from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Predictor

# An absolute path, or one that leaves its folder: cards name the training data by its path. URLs stay.
_PATH = re.compile(r"(?<![\w:/.~-])(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[^\s/\\:`|]+[/\\])*([^\s/\\:`|]+)")


class ModelCard(BaseModel):
    """One model that is served."""

    task: str
    path: str = Field(description="Where it answers.")
    family: str = Field(description="The recipe's model.name.")
    parameters: int = Field(description="Numbers in its weights.")
    decoding: str = Field(description="How answers are searched for where a request does not say.")
    details: dict[str, Any] = Field(description="What the task tells of its model, e.g. its limits.")
    further: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="The task's other addresses, each with its own details."
    )
    card: str = Field(description="The model card in Markdown.")


class ModelCards(BaseModel):
    """All of them."""

    models: list[ModelCard]


def make_card(
    predictor: Predictor,
    path: str,
    details: Record,
    folder: Path | None,
    further: Mapping[str, Record] | None = None,
) -> ModelCard:
    """Return the card of a loaded model.

    Args:
        predictor: its predictor.
        path: where it answers.
        details: from its endpoint.
        folder: its bundle, already checked; None where there is none.
        further: details of the task's other endpoints by address.
    """
    card = folder / CARD if folder is not None else None
    return ModelCard(
        task=predictor.config.task,
        path=path,
        family=predictor.config.model.name,
        parameters=0 if folder is None else _count(folder / WEIGHTS),
        decoding=predictor.decoding_summary(),
        details=details,
        further=dict(further or {}),
        card=without_folders(card.read_text(encoding="utf-8")) if card is not None and card.is_file() else "",
    )


def _count(weights: Path) -> int:
    with safe_open(weights, framework="numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def without_folders(text: str) -> str:
    """Return a text with every path of this machine cut to its last part."""
    return _PATH.sub(r"\1", text)
