"""A reward model: weights trained on from a model's own, whose log-probabilities tell what readers like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.rules.direction import TO_FIRST, TO_SECOND

REWARD = "reward.safetensors"  # in a bundle: a change of its weights, see `paddle_dialog.bundle.low_rank`


@dataclass(frozen=True)
class RewardModel:
    """Values 下联 by how likely either line makes the other (`preferences.objective: reward`).

    Args:
        step_model: of the weights that learned it.
        vocabulary: of both lines.
    """

    step_model: StepModel
    vocabulary: Vocabulary

    def __call__(self, first: str, seconds: Sequence[str]) -> np.ndarray:
        """Return for K 下联 to one 上联 log p(下联 | 上联) + log p(上联 | 下联), each per token, float64 [K]."""
        encode, targets = self.vocabulary.encode, [self.vocabulary.encode(second) for second in seconds]
        asked = [np.asarray(TO_SECOND.source(self.vocabulary, first))]
        forth = text_log_probs(self.step_model, *encode_sources(asked), targets, [0] * len(seconds))
        answered = [np.asarray(TO_FIRST.source(self.vocabulary, second)) for second in seconds]
        own = encode(first)
        back = text_log_probs(self.step_model, *encode_sources(answered), [own] * len(seconds))
        return forth / [len(target) + 1 for target in targets] + back / (len(own) + 1)
