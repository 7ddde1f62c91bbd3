"""Random models of every family, as networks and as steps in NumPy, by which the two are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import paddle
from empathetic_toys import DIALOGUES, make_config, make_network, make_vocabulary
from paddle import nn

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import (
    CausalLmConfig,
    CausalTransformerConfig,
    LstmAttentionConfig,
    RecurrentLmConfig,
    TransformerConfig,
)
from paddle_dialog.decoding.paddle_steps import PrefixModel
from paddle_dialog.models.families import build_lm, numpy_lm
from paddle_dialog.models.numpy_seq2seq import NumpyPointerSeq2Seq, numpy_seq2seq
from paddle_dialog.models.seq2seq import PointerSeq2Seq, Seq2Seq
from paddle_dialog.tasks.empathetic.data.encoding import make_encoder, pad_sources
from paddle_dialog.tasks.empathetic.network.emo_prepend import PaddleEmoPrepend
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import numpy_emo_prepend

VOCABULARY = 90
WORDS = make_vocabulary()
CONTEXTS = [
    *(dialogue.context for dialogue in DIALOGUES),
    ["qwrtz took my qwrtz bike", "oh no !", "zkp found qwrtz , my dog"],
    ["zkp"],
]
LSTM = LstmAttentionConfig(embedding_size=8, hidden_size=8)
TRANSFORMER = TransformerConfig(
    width=8, num_heads=2, inner_width=12, encoder_layers=2, decoder_layers=2, max_positions=24
)
CONVOLUTIONAL = replace(
    TRANSFORMER, feed_forward="cl", key_size=4, value_size=6, project_embeddings=True, tie_output=False
)
CAUSAL = CausalTransformerConfig(width=8, num_heads=2, inner_width=12, num_layers=2, copy_size=4)
LANGUAGE_MODEL = CausalLmConfig(width=12, num_heads=3, inner_width=20, num_layers=2, max_positions=24)
OWN_TABLES = {"share_embeddings": False, "tie_output": False}
PLAIN = {
    "lstm": LSTM,
    "lstm additive": replace(LSTM, score="additive", bidirectional=True),
    "lstm bilinear": replace(LSTM, score="bilinear", num_layers=1, input_feeding=False),
    "lstm scaled": replace(LSTM, score="scaled_dot", num_layers=3, embedding_size=12),
    "gru": replace(LSTM, cell="gru"),
    "gru additive": replace(LSTM, cell="gru", score="additive", bidirectional=True, num_layers=1),
    "lstm tied": replace(LSTM, tie_output=True, share_embeddings=True),
    "transformer": TRANSFORMER,
    "transformer apart": replace(TRANSFORMER, share_embeddings=False),
    "transformer aligned": replace(TRANSFORMER, bias=False, aligned_input=True),
    "transformer one head": replace(
        TRANSFORMER, num_heads=1, bias=False, tie_output=False, aligned_input=True
    ),
    "convolutional": CONVOLUTIONAL,
}
COPYING: dict[str, Any] = {
    "copying lstm": LSTM,
    "copying transformer": TRANSFORMER,
    "copying causal": CAUSAL,
    "copying causal, bias": replace(CAUSAL, bias=True, num_heads=4),
}
NGRAMS = {
    "ngram_buckets": 50,
    "encoder_weight": 0.3,
    "character_weight": 0.5,
    "small_talk": True,
}
EMPATHETIC: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "replies": ("transformer", {}),
    "replies, no pointer": (
        "transformer",
        {"model": {**OWN_TABLES}, "generator": {"pointer": False, "temperature": 0.7}},
    ),
    "replies, cls": (
        "transformer",
        {"model": {**OWN_TABLES, "bias": False}, "emotion": {"head": "cls"}},
    ),
    "replies, likeliest emotion": ("transformer", {"emotion": {"prepend_form": "argmax"}}),
    "replies, own table": ("transformer", {"model": {"share_embeddings": False}}),
    "replies, no hints": ("transformer", {"emotion": {"hints": False}}),
    "replies, n-grams": ("transformer", {"model": {"bias": False}, "emotion": NGRAMS}),
    "convolutional replies": ("convolutional", {}),
    "causal replies": ("causal", {"data": {"mark_turns": True}}),
    "causal replies, n-grams": ("causal", {"emotion": {**NGRAMS, "hints": False}}),
    "causal replies, own tables": (
        "causal",
        {"model": {"bias": True, **OWN_TABLES}, "generator": {"temperature": 0.7}},
    ),
    "causal replies, no pointer": ("causal", {"generator": {"pointer": False, "temperature": 1.5}}),
    "lstm replies": ("lstm", {}),
    "lstm replies, additive": (
        "lstm",
        {
            "model": {"bidirectional": True, "score": "additive", **OWN_TABLES},
            "emotion": {"ngram_buckets": 50},
        },
    ),
}
LM: dict[str, CausalLmConfig | RecurrentLmConfig] = {
    "language model": LANGUAGE_MODEL,
    "lstm language model": RecurrentLmConfig(width=12),
    "gru language model": RecurrentLmConfig(cell="gru", width=12, num_layers=3),
}
NAMES = [*PLAIN, *COPYING, *LM, *EMPATHETIC]
SERVED = [name for name in NAMES if not name.startswith("convolutional")]  # by steps in NumPy


@dataclass
class Case:
    """A random model."""

    network: nn.Layer
    paddle: PrefixModel
    arrays: Any  # implements `StepModel`; None where a family has no steps in NumPy
    source: Any  # five of them, two of one length
    lengths: np.ndarray
    size: int  # ids that a target may have

    def only(self, row):
        """Return one source without its padding."""
        size = max(int(self.lengths[row]), 1)  # as batches are padded

        def cut(x):
            return x if x is None else x[row : row + 1] if x.ndim == 1 else x[row : row + 1, :size]

        own = self.source.map(cut) if isinstance(self.source, tuple) else cut(self.source)
        return own, self.lengths[row : row + 1]


def filled(network, seed=3):
    """Give every parameter random values, biases and norms too, and switch dropout off."""
    paddle.seed(seed)
    for parameter in network.parameters():
        parameter.set_value(parameter + 0.3 * paddle.randn(parameter.shape))
    network.eval()
    return network


def case(name):
    """Return the model of a name."""
    if name in EMPATHETIC:
        family, sections = EMPATHETIC[name]
        config = make_config(family, **sections)
        network = make_network(config, len(WORDS))
        encoder = make_encoder(config, WORDS)
        source, lengths = pad_sources(
            [
                encoder.pack(encoder.context(turns), label)[0]
                for turns, label in zip(CONTEXTS, [3, 5, 7, 3, 9], strict=True)
            ]
        )
        source = source._replace(condition=np.array([-1, 4, -1, -1, -1]))
        arrays = numpy_emo_prepend(config, len(WORDS), read_weights(network)) if name in SERVED else None
        size = max(len(WORDS), int(source.words.max()) + 1) if config.generator.pointer else len(WORDS)
        return Case(network, PaddleEmoPrepend(network), arrays, source, lengths, size)
    lengths = np.array([4, 2, 5, 1, 2])
    source = np.where(
        np.arange(6) < lengths[:, None], np.random.default_rng(4).integers(4, VOCABULARY, (5, 6)), 0
    )
    size = VOCABULARY
    if name in LM:
        lengths[3], source[3] = 0, 0
        network = filled(build_lm(LM[name], VOCABULARY, 5))
        made: Any = numpy_lm(LM[name], VOCABULARY, read_weights(network))
    elif name in COPYING:
        source[0, 1:3], source[2, 1] = [VOCABULARY, VOCABULARY], VOCABULARY + 1
        size += 2
        network = filled(PointerSeq2Seq(COPYING[name], VOCABULARY))
        made = NumpyPointerSeq2Seq.of_arrays(COPYING[name], VOCABULARY, read_weights(network))
    else:
        network = filled(Seq2Seq(PLAIN[name], VOCABULARY))
        made = numpy_seq2seq(PLAIN[name], VOCABULARY, read_weights(network)) if name in SERVED else None
    return Case(network, PrefixModel(network), made, source, lengths, size)
