"""The settings of learning from rated answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paddle_dialog.config.fields import at_least, setting


@dataclass(frozen=True)
class PreferencesConfig:
    """What is learned from rated answers, beside the examples."""

    ratings: str | None = setting(
        None, "a file of rated answers; the weights learn from where `training.start_from` stands; null: none"
    )
    objective: Literal["policy", "reward"] = setting(
        "policy",
        "policy: what readers like becomes likelier (direct preference optimisation); reward: log-probabilities per "
        "token become a measure of what readers like, and tell no more of the language",
    )
    strength: float = setting(
        0.1,
        "β, by which rewards are multiplied: as a policy the weights stay the nearer to those they start from, the "
        "greater it is; 3 is usual for a reward",
        above=0.0,
    )
    least_gap: float = setting(
        1.0, "least difference of two ratings of one input that makes an answer the better one", above=0.0
    )
    inputs: int = at_least(1, 16, "rated inputs in a batch, beside `data.batch_size` examples")
    examples_weight: float = at_least(
        0.0, 0.5, "weight of the examples' loss, which keeps the language, beside that of the preferences"
    )
