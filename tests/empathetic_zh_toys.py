"""Tiny Chinese empathetic models for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from empathetic_toys import MODELS, make_network, predictor_of

from paddle_dialog.bundle.folder import Bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.typed import build
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.encoding import count_words, make_encoder, reserved_entries
from paddle_dialog.tasks.empathetic.data.language import PIECES, learn_pieces, make_language
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.text.vocabulary import Vocabulary

TURNS = [
    "我今天很难过，工作丢了。",
    "听起来你很不容易，愿意多说说吗？",
    "我觉得没有人理解我，一个人很孤单。",
    "我明白，你一定很累了。",
    "谢谢你听我说话，我好多了。",
    "不客气，我会一直在这里陪着你。",
] * 4


def chinese_config(**sections: Any) -> EmpatheticConfig:
    """Return the configuration of a tiny Chinese model; `sections` are laid over it."""
    own = {"beam_size": 5, "max_length": 8, **sections.pop("decoding", {})}
    settings = {"model": MODELS["transformer"], "emotion": {"hints": False}, "decoding": own, **sections}
    return build(EmpatheticConfig, {"task": "empathetic", "language": "zh", **settings}, "test")


def chinese_predictor(**sections: Any) -> EmpatheticPredictor:
    """Return a random Chinese model."""
    config = chinese_config(**sections)
    language = make_language("zh", learn_pieces(TURNS, 120))
    counts = count_words([Dialogue([turn], turn) for turn in TURNS], language)
    vocabulary = Vocabulary.build(counts, reserved=reserved_entries(language.emotions))
    network = make_network(config, len(vocabulary))
    encoder = make_encoder(config, vocabulary, language=language)
    return predictor_of(config, network, vocabulary, encoder=encoder)


def save_chinese_model(folder: Path, **sections: Any) -> Path:
    """Write a random Chinese model as a bundle, and a recipe whose run it seems to be.

    Returns:
        The recipe.
    """
    predictor = chinese_predictor(**sections)
    text = dump(predictor.config)
    files = {PIECES: learn_pieces(TURNS, 120)}
    weights = read_weights(predictor.network)
    bundle = Bundle("empathetic", text, {"text": predictor.vocabulary}, weights, "A toy.", files)
    save_bundle(bundle, folder / "run" / "best")
    recipe = folder / "toy_zh.yaml"
    recipe.write_text(text.replace("output_dir: null", f"output_dir: {folder / 'run'}"), encoding="utf-8")
    return recipe
