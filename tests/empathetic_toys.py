"""Tiny empathetic models, English and Chinese, and dialogues for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from paddle_dialog.bundle.folder import Bundle, TrainedModel, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.typed import build
from paddle_dialog.data.batching import as_tensors
from paddle_dialog.judge import Judge
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.encoding import Source, count_words, make_encoder, reserved_entries
from paddle_dialog.tasks.empathetic.data.language import PIECES, learn_pieces, make_language
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import judged_width
from paddle_dialog.text.vocabulary import Vocabulary

_TRANSFORMER = {"name": "transformer", "width": 8, "num_heads": 2, "decoder_layers": 2, "dropout": 0.0}
MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"name": "lstm_attention", "embedding_size": 8, "hidden_size": 8, "dropout": 0.0},
    "transformer": {**_TRANSFORMER, "inner_width": 12, "encoder_layers": 1},
    "convolutional": {
        **{**_TRANSFORMER, "encoder_layers": 2, "key_size": 4, "value_size": 6, "inner_width": 5},
        **{"feed_forward": "cc", "project_embeddings": True, "tie_output": False},
    },
    "causal": {
        **{"name": "causal_transformer", "width": 8, "num_heads": 2, "inner_width": 12, "num_layers": 2},
        **{"copy_size": 4, "dropout": 0.0},
    },
}
DIALOGUES = [
    Dialogue(["my dog died .", "oh no !", "he was called Rex ."], "Rex was a good dog .", "sad", "Dog"),
    Dialogue(["i won a happy prize"], "congratulations !", "proud", "Prize"),
    Dialogue(["someone stole my bike"], "that is awful .", "angry", None),
]
TURNS = [
    "我今天很难过，工作丢了。",
    "听起来你很不容易，愿意多说说吗？",
    "我觉得没有人理解我，一个人很孤单。",
    "我明白，你一定很累了。",
    "谢谢你听我说话，我好多了。",
    "不客气，我会一直在这里陪着你。",
] * 4


def make_config(family="transformer", **sections):
    """Return the configuration of a tiny model; `sections` are laid over it."""
    mapping: dict[str, Any] = {"task": "empathetic", "model": MODELS[family]}
    for name, values in sections.items():
        mapping[name] = {**mapping.get(name, {}), **values}
    return build(EmpatheticConfig, mapping, "test")


def make_vocabulary(dialogues=DIALOGUES, min_count=1):
    """Return the vocabulary of dialogues."""
    return Vocabulary.build(count_words(dialogues), min_count, None, reserved_entries())


def make_network(config, vocab_size, seed=1):
    """Return a network in evaluation mode with random values everywhere, biases too."""
    network = EmoPrepend(config, vocab_size)
    rng = np.random.default_rng(seed)
    for name, parameter in network.named_parameters():
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        values = rng.normal(centre, 0.4, parameter.shape).astype("float32")
        if name in ("embedding.table.weight", "own_target_embedding.table.weight"):
            values[0] = 0.0  # padding
        parameter.set_value(paddle.to_tensor(values))
    for name, buffer in network.emotion_head.named_buffers():  # of n-grams, whose bucket 0 is padding
        values = rng.normal(0.0, 0.4 if name == "ngram_idf" else 2.0, buffer.shape)
        values = np.abs(values) if name == "ngram_idf" else values
        values[0] = 0.0
        buffer.set_value(paddle.to_tensor(values.astype("float32")))
    network.eval()
    return network


def predictor_of(config, network, vocabulary, **options):
    """Return the predictor of a network."""
    return EmpatheticPredictor(config, TrainedModel.of_network(network, {"text": vocabulary}), **options)


def random_predictor(family="transformer", judge=None, **sections):
    """Return the predictor of a random model."""
    config, vocabulary = make_config(family, **sections), make_vocabulary()
    return predictor_of(config, make_network(config, len(vocabulary)), vocabulary, judge=judge)


def judged_predictor(judge=None, **sections):
    """Return a random causal model that chooses among generated, written and reflected replies by a judge."""
    sections["decoding"] = {"beam_size": 4, "max_length": 6, **sections.get("decoding", {})}
    judge = judge or Judge(np.random.default_rng(3).normal(0.0, 1.0, judged_width(8)))
    return random_predictor("causal", judge, **sections)


def chinese_predictor(**sections):
    """Return a random Chinese model."""
    own = {"beam_size": 5, "max_length": 8, **sections.pop("decoding", {})}
    settings = {"model": MODELS["transformer"], "emotion": {"hints": False}, "decoding": own, **sections}
    config = build(EmpatheticConfig, {"task": "empathetic", "language": "zh", **settings}, "test")
    language = make_language("zh", learn_pieces(TURNS, 120))
    counts = count_words([Dialogue([turn], turn) for turn in TURNS], language)
    vocabulary = Vocabulary.build(counts, reserved=reserved_entries(language.emotions))
    encoder = make_encoder(config, vocabulary, language=language)
    return predictor_of(config, make_network(config, len(vocabulary)), vocabulary, encoder=encoder)


def save_model(folder, family="transformer", **sections):
    """Write a random model as a bundle, and a recipe whose run it seems to be.

    Returns:
        The recipe.
    """
    return _save(random_predictor(family, **sections), folder)


def save_chinese_model(folder, **sections):
    """Write a random Chinese model in the same way."""
    return _save(chinese_predictor(**sections), folder, {PIECES: learn_pieces(TURNS, 120)})


def _save(predictor, folder, files=None):
    text, weights = dump(predictor.config), read_weights(predictor.network)
    bundle = Bundle("empathetic", text, {"text": predictor.vocabulary}, weights, "A toy.", files or {})
    save_bundle(bundle, folder / "run" / "best")
    recipe = folder / "toy.yaml"
    recipe.write_text(text.replace("output_dir: null", f"output_dir: {folder / 'run'}"), encoding="utf-8")
    return recipe


def tensors(batch):
    """Return a batch as tensors: source, lengths, target, emotion, label, mask."""
    batch = as_tensors(batch)
    return [Source(*batch[:5]), batch.source_lengths, batch.target, batch.emotion, batch.label, batch.mask]


def named(labels):
    """Return the last three parts of a batch by the names under which the criterion takes them."""
    return dict(zip(("emotion", "label", "mask"), labels, strict=True))
