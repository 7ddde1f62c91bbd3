"""Training examples made of others: what people type into a chat and the corpus lacks."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence

import numpy as np

from tasks.empathetic.data import read_dialogues
from tasks.empathetic.dialogue import Dialogue


def small_talk() -> list[Dialogue]:
    """Greetings, thanks, short turns and news that turns a conversation, written for this project."""
    with importlib.resources.as_file(importlib.resources.files(__package__) / "small_talk.jsonl") as path:
        return read_dialogues(str(path))


def changed_subjects(dialogues: Sequence[Dialogue], rate: float, seed: int) -> list[Dialogue]:
    """Examples that follow the end of another conversation, so that the newest turns are seen to count.

    Args:
        dialogues: annotated or not.
        rate: how many are made, as a share of ``dialogues``.
        seed: of the draws.

    Returns:
        Examples with the emotion and the target of the later conversation. Their contexts teach nothing new.
    """
    rng = np.random.default_rng(seed)
    count = round(rate * len(dialogues))
    before = rng.choice(len(dialogues), count, replace=False)
    after = rng.choice(len(dialogues), count, replace=False)
    made = []
    for first, then in zip(before, after, strict=True):
        earlier, later = dialogues[first], dialogues[then]
        context = [*earlier.context, earlier.target, *later.context]
        made.append(Dialogue(context, later.target, later.emotion, new_turns=0))
    return made
