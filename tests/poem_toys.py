"""A predictor of poems around a small network with random weights."""

from __future__ import annotations

import paddle

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import CausalLmConfig
from paddle_dialog.models.networks import CausalLm
from paddle_dialog.tasks.poem.data import FORM_TOKENS, NEWLINE, PoemConfig, PoemDecodingConfig, VerseConfig
from paddle_dialog.tasks.poem.prediction import PoemPredictor
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tools.weights.poem.rhyme_table import SEEDS

CHARACTERS = "，。白日依山尽" + "".join(SEEDS) + "雪月雨水绿客鸟落"


def toy(verse=None, **decoding):
    """Return a predictor that writes `CHARACTERS` at random."""
    characters = dict.fromkeys(CHARACTERS)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, NEWLINE, *FORM_TOKENS.values(), *characters])
    model = CausalLmConfig(width=8, num_heads=2, inner_width=12, num_layers=1)
    paddle.seed(3)
    network = CausalLm(model, len(vocabulary))
    config = PoemConfig(
        task="poem",
        model=model,
        decoding=PoemDecodingConfig(**{"max_length": 40, **decoding}),
        verse=VerseConfig(**(verse or {})),
    )
    weights = read_weights(network)
    return PoemPredictor(config, TrainedModel({"text": vocabulary}, lambda: network, weights=weights))
