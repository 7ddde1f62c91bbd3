"""A couplet predictor around a table of random logits, small enough to look at every text there is."""

from __future__ import annotations

import dataclasses
from typing import Any

from decoding_models import TableModel

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.tasks.couplet.config import (
    ChoiceConfig,
    CoupletConfig,
    CoupletDataConfig,
    CoupletRerankConfig,
    RulesConfig,
)
from paddle_dialog.tasks.couplet.direction import MARKS
from paddle_dialog.tasks.couplet.prediction import CoupletPredictor
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

LEVEL = "春山秋天霜高江溪清香"  # characters with one tone only
OBLIQUE = "雨水月柳鸟雪海客老绿"
FORM = {  # of a pair that keeps all rules, as JSON has it
    "length_equal": True,
    "punctuation_aligned": True,
    "final_level": True,
    "final_pair": True,
    "tone_opposed": 1.0,
    "repeats_mirrored": True,
    "shares_character": False,
}
NO_RULES = dict.fromkeys(
    ("same_length", "copy_punctuation", "mirror_repeats", "no_shared_character", "final_tone"), False
)


class Table(TableModel):
    """What the predictor asks of a network beside the steps."""

    def eval(self) -> None:
        """Do nothing: there is nothing to switch off."""


def toy(
    characters: str,
    seed: int = 0,
    rules: dict[str, Any] | None = None,
    rerank: dict[str, Any] | None = None,
    choice: dict[str, Any] | None = None,
    marks: bool = False,
    **decoding: Any,
) -> CoupletPredictor:
    """Return a predictor that writes `characters`; `rules` and `decoding` replace defaults, without a tone weight.

    Its candidates are those of the beam unless `choice` says otherwise; with `marks` it answers both lines.
    """
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *characters, *(MARKS if marks else ())])
    network = Table(seed, vocab_size=len(vocabulary), steps=12, sources=len(vocabulary))
    config = CoupletConfig(
        task="couplet",
        data=CoupletDataConfig(max_length=10),
        decoding=DecodingConfig(**{"max_length": 10, "beam_size": 4, **decoding}),
        rules=dataclasses.replace(RulesConfig(tone_weight=0.0), **(rules or {})),
        choice=ChoiceConfig(**(choice or {"distance": 0.0})),
        rerank=CoupletRerankConfig(**(rerank or {})),
    )
    return TASK.predictor(config, TrainedModel.of_network(network, {"text": vocabulary}))


def log_prob(predictor: CoupletPredictor, first: str, text: str) -> float:
    """Return log p(text, end | first) by the chain rule."""
    encode = predictor.vocabulary.encode
    return predictor.network.text_log_prob(encode(first)[0], tuple(encode(text)))
