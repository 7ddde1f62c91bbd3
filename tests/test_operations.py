"""The benchmark's count of matrix products, against the weights of the networks, and the rates they are held to."""

from __future__ import annotations

import numpy as np
import pytest
from paddle import nn

from paddle_dialog.benchmark import limit, training
from paddle_dialog.benchmark.limit import Rates, measure_rates
from paddle_dialog.benchmark.operations import Lengths, Product, model_products
from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.models.seq2seq import Seq2Seq
from tasks.empathetic.config import EmotionConfig, EmpatheticConfig, GeneratorConfig, SelectionConfig
from tasks.empathetic.network.emo_prepend import EmoPrepend
from tasks.empathetic.network.operations import emo_prepend_products

VOCABULARY = 60
LENGTHS = Lengths(np.array([5, 3, 4]), np.array([2, 6, 3]))
BATCH, SOURCES, TARGETS = 3, 12, 11
SOURCE_PAIRS, TARGET_PAIRS, CROSS_PAIRS = 25 + 9 + 16, 4 + 36 + 9, 10 + 18 + 12
OF_SOURCE = (
    "encoder",
    "memory_projection",
    "cross_attention.key_value",
    "key_proj",
    "aligned_projection",
    "head.query",
)
OF_BATCH = ("bridge", "emotion_head.output")
NO_PRODUCT = ("embedding", "positions", "score_proj")

LSTM = {"embedding_size": 6, "hidden_size": 8}
TRANSFORMER = {"width": 8, "num_heads": 2, "inner_width": 12, "encoder_layers": 1, "decoder_layers": 2}


def by_weights(network: nn.Layer) -> int:
    """Return operations of all weight matrices, each on as many rows as it reads."""
    total = 0
    for name, parameter in network.named_parameters():
        if parameter.ndim != 2 or any(part in name for part in NO_PRODUCT):
            continue
        of_source = any(part in name for part in OF_SOURCE)
        rows = (
            BATCH if any(part in name for part in OF_BATCH) else SOURCES if of_source else TARGETS
        )  # the output layer's included
        total += 2 * rows * parameter.size
    return total


def attention(config: LstmAttentionConfig | TransformerConfig) -> int:
    if isinstance(config, LstmAttentionConfig):
        return 2 * 2 * config.hidden_size * CROSS_PAIRS
    pairs = config.encoder_layers * SOURCE_PAIRS + config.decoder_layers * (TARGET_PAIRS + CROSS_PAIRS)
    return 2 * 2 * config.width * pairs


def counted(products: list[Product]) -> float:
    return sum(product.operations for product in products)


@pytest.mark.parametrize(
    "config",
    [
        LstmAttentionConfig(**LSTM),
        LstmAttentionConfig(**LSTM, cell="gru", bidirectional=True, score="bilinear", num_layers=3),
        LstmAttentionConfig(**LSTM, score="additive", input_feeding=False),
        TransformerConfig(**TRANSFORMER, tie_output=False),
        TransformerConfig(**TRANSFORMER, tie_output=False, aligned_input=True),
    ],
)
def test_the_count_is_that_of_the_weights_and_of_attention(
    config: LstmAttentionConfig | TransformerConfig,
) -> None:
    expected = by_weights(Seq2Seq(config, VOCABULARY)) + attention(config)
    assert counted(model_products(config, VOCABULARY, LENGTHS)) == pytest.approx(expected)


def test_a_tied_output_layer_counts_too() -> None:
    own, tied = (TransformerConfig(**TRANSFORMER, tie_output=tie) for tie in (False, True))
    assert model_products(own, VOCABULARY, LENGTHS) == model_products(tied, VOCABULARY, LENGTHS)


@pytest.mark.parametrize(
    "model",
    [TransformerConfig(**TRANSFORMER, tie_output=False), LstmAttentionConfig(**LSTM, bidirectional=True)],
)
def test_the_count_of_emo_prepend(model: LstmAttentionConfig | TransformerConfig) -> None:
    config = EmpatheticConfig(task="empathetic", model=model, emotion=EmotionConfig(head="attention"))
    transformer = isinstance(model, TransformerConfig)
    pooling = 2 * SOURCES * (model.width if transformer else 2 * model.width)
    prepended = 2 * BATCH * 32 * (model.width if transformer else model.embedding_size)
    expected = by_weights(EmoPrepend(config, VOCABULARY)) + attention(model) + pooling + prepended
    assert counted(emo_prepend_products(config, VOCABULARY, LENGTHS)) == pytest.approx(expected)


def test_the_count_of_a_causal_emo_prepend() -> None:
    model = CausalTransformerConfig(width=8, num_heads=2, inner_width=12, copy_depth=4, tie_output=False)
    selection = SelectionConfig(size=5)
    generator = GeneratorConfig(context_weight=1.0)
    config = EmpatheticConfig(task="empathetic", model=model, selection=selection, generator=generator)
    network = EmoPrepend(config, VOCABULARY)
    heads = {name: 2 * parameter.size for name, parameter in network.named_parameters()}
    # One stack reads the contexts, and the replies twice: to go on with them and to compare them.
    stack = sum(size for name, size in heads.items() if "stack" in name and name.endswith("weight"))
    stack -= sum(size for name, size in heads.items() if "norm" in name and name.endswith("weight"))
    expected = (SOURCES + 2 * TARGETS) * stack
    pairs_of_stack = SOURCE_PAIRS + (TARGET_PAIRS + CROSS_PAIRS) + TARGET_PAIRS
    expected += 2 * 2 * model.width * model.num_layers * pairs_of_stack
    expected += SOURCES * heads["decoder.copy.key.weight"] + TARGETS * heads["decoder.copy.query.weight"]
    expected += 2 * model.copy_depth * CROSS_PAIRS
    expected += (TARGETS + 7) * heads["generator.output.weight"] + TARGETS * heads["generator.gate.weight"]
    expected += BATCH * heads["emotion_head.output.weight"] + 2 * SOURCES * heads["emotion_head.query.weight"]
    expected += 2 * BATCH * 32 * model.width  # the emotion before the reply
    expected += BATCH * (heads["selection.context.weight"] + heads["selection.reply.weight"])
    expected += 2 * SOURCES * heads["selection.context_query.weight"]
    expected += 2 * TARGETS * heads["selection.reply_query.weight"]
    expected += 2 * BATCH * BATCH * selection.size
    found = emo_prepend_products(config, VOCABULARY, LENGTHS, learned=7)
    assert counted(found) == pytest.approx(expected)


def test_nobody_has_counted_convolutions() -> None:
    config = EmpatheticConfig(task="empathetic", model=ConvolutionalTransformerConfig())
    assert emo_prepend_products(config, VOCABULARY, LENGTHS) == []


def test_lengths_of_a_batch() -> None:
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.float32)
    lengths = Lengths.of_batch([np.zeros((2, 4)), np.array([4, 2]), np.zeros((2, 3)), mask])
    assert (lengths.sources, lengths.targets) == (6, 5)


def test_rates_weigh_shapes_by_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    # [40, 10] by [10, 5], 2 times: 8,000 operations in each of three passes; the small product is left out.
    products = [Product(1, 1, 1), Product(40, 10, 5, 2)]
    seconds = {(40, 10, 5): (1.0, 2.0), (40, 5, 10): (1.0, 2.0), (10, 40, 5): (4.0, 1.0)}
    monkeypatch.setattr(limit, "_seconds", lambda shape, clock: seconds[shape])
    rates = measure_rates(products, clock=lambda: 0.0)
    assert rates.numpy == pytest.approx(24_000 / 12.0 / 1e9)
    assert rates.paddle == pytest.approx(24_000 / 10.0 / 1e9)
    assert rates.best == pytest.approx(24_000 / 6.0 / 1e9)


def test_the_share_is_of_three_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "measure_rates", lambda products, clock: Rates(2.0, 8.0, 10.0))
    steps = [[Product(1000, 1000, 1000)], [Product(1000, 1000, 500)]]  # 2 and 1 times 10^9 operations
    found = training.share_of_limit(steps, seconds=3.0, clock=lambda: 0.0)
    assert found == {
        "useful_gflops": 3.0,
        "numpy_gflops": 2.0,
        "paddle_gflops": 8.0,
        "limit_gflops": 10.0,
        "share": 0.3,
    }


def test_products_are_timed_by_the_given_clock() -> None:
    ticks = iter(range(10**6))
    rates = measure_rates([Product(8, 4, 6)], clock=lambda: float(next(ticks)))  # each round takes a second
    calls = 20  # the most that are made between two looks at the clock
    assert rates.numpy == rates.paddle == rates.best == pytest.approx(2 * 8 * 4 * 6 * calls / 1e9)
