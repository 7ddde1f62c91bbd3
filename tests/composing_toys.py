"""A predictor that composes, around a table of random logits."""

from __future__ import annotations

import dataclasses
from typing import Any

from couplet_toys import LEVEL, OBLIQUE, Table

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.tasks.couplet.composing.prediction import ComposingPredictor
from paddle_dialog.tasks.couplet.config import CoupletConfig, CoupletDataConfig, RulesConfig
from paddle_dialog.tasks.couplet.direction import with_marks
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

MORE_LEVEL = "风花红天人云山门年楼"
MORE_OBLIQUE = "岁喜福雪柳日月海玉静"
CHARACTERS = "".join(dict.fromkeys(LEVEL + OBLIQUE + MORE_LEVEL + MORE_OBLIQUE))
LONGEST = 18


def composing_toy(
    characters: str = CHARACTERS, seed: int = 0, marks: bool = True, rules: dict[str, Any] | None = None
) -> ComposingPredictor:
    """Return a predictor that writes `characters` and the comma; without `marks` it only answers 上联."""
    plain = Vocabulary([*SPECIAL_TOKENS, "，", *characters])
    vocabulary = with_marks(plain) if marks else plain
    network = Table(seed, vocab_size=len(vocabulary), steps=LONGEST + 1, sources=len(vocabulary))
    config = CoupletConfig(
        task="couplet",
        data=CoupletDataConfig(max_length=LONGEST),
        decoding=DecodingConfig(max_length=LONGEST, beam_size=4),
        rules=dataclasses.replace(RulesConfig(), **(rules or {})),
    )
    return TASK.predictor(config, TrainedModel.of_network(network, {"text": vocabulary}))
