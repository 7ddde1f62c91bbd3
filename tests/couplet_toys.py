"""Couplet predictors around a table of random logits, small enough to look at every text there is."""

from __future__ import annotations

import dataclasses
from typing import Any

from decoding_models import TableModel

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.tasks.couplet.config import (
    ChoiceConfig,
    CoupletConfig,
    CoupletDataConfig,
    CoupletRerankConfig,
    RulesConfig,
)
from paddle_dialog.tasks.couplet.prompts import MARKS
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

LEVEL = "春山秋天霜高江溪清香"  # characters with one tone only
OBLIQUE = "雨水月柳鸟雪海客老绿"
ROOMY = LEVEL + OBLIQUE + "，。"  # ten of each tone satisfy every 上联 of at most five characters
# Of whole couplets.
CHARACTERS = "".join(dict.fromkeys(LEVEL + OBLIQUE + "风花红天人云山门年楼岁喜福雪柳日月海玉静"))
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

    def eval(self):
        """Do nothing: there is nothing to switch off."""


def toy(characters, seed=0, rules=None, rerank=None, choice=None, marks=False, **decoding):
    """Return a predictor that writes `characters`; `rules` and `decoding` replace defaults, without a tone weight.

    Its candidates are those of the beam unless `choice` says otherwise; with `marks` it answers both lines.
    """
    sections: dict[str, Any] = {
        "decoding": DecodingConfig(**{"max_length": 10, "beam_size": 4, **decoding}),
        "rules": dataclasses.replace(RulesConfig(tone_weight=0.0), **(rules or {})),
        "choice": ChoiceConfig(**(choice or {"distance": 0.0})),
        "rerank": CoupletRerankConfig(**(rerank or {})),
    }
    return _around_a_table([*characters, *(MARKS if marks else ())], seed, 12, 10, **sections)


def composing_toy(characters=CHARACTERS, seed=0, marks=True):
    """Return a predictor that composes of `characters` and the comma; without `marks` it only answers 上联."""
    decoding = DecodingConfig(max_length=18, beam_size=4)
    tokens = ["，", *characters, *(MARKS if marks else ())]
    return _around_a_table(tokens, seed, 19, 18, decoding=decoding)


def _around_a_table(tokens, seed, steps, longest, **sections):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *tokens])
    network = Table(seed, vocab_size=len(vocabulary), steps=steps, sources=len(vocabulary))
    config = CoupletConfig(task="couplet", data=CoupletDataConfig(max_length=longest), **sections)
    return TASK.predictor(config, TrainedModel.of_network(network, {"text": vocabulary}))


def best(predictor, first, **options):
    """Return the best answer to a line."""
    return predictor.predict([first], **options)[0][0]


def log_prob(predictor, first, text):
    """Return log p(text, end | first) by the chain rule."""
    encode = predictor.vocabulary.encode
    return predictor.network.text_log_prob(encode(first)[0], tuple(encode(text)))
