"""Every family: whole targets, single steps, and steps over arrays give the same numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle import nn
from paddle_dialog.models.pair import gather_rows

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    FamilyConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.errors import UserError
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.models.families import FAMILIES, build_pair, numpy_pair
from paddle_dialog.models.numpy_operators import UnsupportedModelError, Weights

LSTM = LstmAttentionConfig(embedding_size=6, hidden_size=8)
TRANSFORMER = TransformerConfig(
    width=8, num_heads=2, inner_width=12, encoder_layers=2, decoder_layers=2, max_positions=16
)
CONVOLUTIONAL = ConvolutionalTransformerConfig(
    embedding_size=6, width=8, num_layers=2, num_heads=2, key_depth=4, value_depth=6, inner_width=5
)
CAUSAL = CausalTransformerConfig(width=8, num_heads=2, inner_width=12, num_layers=2, copy_depth=4)
SERVED: list[FamilyConfig] = [  # by steps over arrays too
    LSTM,
    replace(LSTM, score="additive", bidirectional=True),
    replace(LSTM, score="bilinear", num_layers=1, input_feeding=False),
    replace(LSTM, score="scaled_dot", num_layers=3, embedding_size=12),
    TRANSFORMER,
    replace(TRANSFORMER, bias=False, aligned_input=True),
    replace(TRANSFORMER, num_heads=1, bias=False),
    replace(TRANSFORMER, aligned_input=True),
    CAUSAL,
    replace(CAUSAL, bias=True, num_heads=4),
]
NETWORKS_ALONE: list[tuple[FamilyConfig, str]] = [
    (CONVOLUTIONAL, "the model is convolutional_transformer"),
    (replace(CONVOLUTIONAL, feed_forward="ll"), "the model is convolutional_transformer"),
]
ALL = [*SERVED, *(config for config, _ in NETWORKS_ALONE)]


class Pair(nn.Layer):
    """Encoder and decoder under the names that their weights have in a model."""

    def __init__(self, config: FamilyConfig) -> None:
        super().__init__()
        self.encoder, self.decoder = build_pair(config)

    def prepare(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[Any, Any]:
        """Return memory and past of sources."""
        inputs, sizes = paddle.to_tensor(embedded), paddle.to_tensor(lengths)
        real = length_mask(sizes, inputs.shape[1])
        outputs, final = self.encoder(inputs, sizes, real)
        return self.decoder.prepare(outputs, real, final)


def random_pair(config: FamilyConfig) -> Pair:
    """Return a pair in evaluation mode with random weights, biases and norms included."""
    paddle.seed(3)
    pair = Pair(config)
    for parameter in pair.parameters():
        parameter.set_value(parameter + 0.3 * paddle.randn(parameter.shape))
    pair.eval()
    return pair


def sources(
    config: FamilyConfig, lengths: list[int], padding: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return embedded sources [B, S, E], with numbers in the padding too, and their lengths."""
    shape = (len(lengths), max(lengths) + padding, config.embedding_size)
    return np.random.default_rng(seed).normal(size=shape).astype("float32"), np.array(lengths)


def targets(config: FamilyConfig, rows: int, length: int, seed: int) -> np.ndarray:
    """Return embedded targets [N, T, E]."""
    shape = (rows, length, config.embedding_size)
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_every_family_is_tried() -> None:
    assert {config.name for config in ALL} == set(FAMILIES)


@pytest.mark.parametrize("config", ALL)
@pytest.mark.parametrize("length", [1, 3, 7])
@paddle.no_grad()
def test_steps_of_reordered_rows_equal_whole_targets(config: FamilyConfig, length: int) -> None:
    pair = random_pair(config)
    embedded, lengths = sources(config, [5, 2, 4], 1, seed=1)
    memory, past = pair.prepare(embedded, lengths)
    order = [2, 0, 0, 1]
    target = targets(config, len(order), length, seed=2)
    rows = paddle.to_tensor(order)
    own_memory, own_past = gather_rows((memory, past), rows)
    hidden, attention = (x.numpy() for x in pair.decoder(paddle.to_tensor(target), own_memory, own_past))
    assert hidden.shape == (len(order), length, config.width)
    np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
    for place in range(length):
        x = paddle.to_tensor(target[:, place])
        found, weights, own_past = pair.decoder.step(x, own_memory, own_past)
        np.testing.assert_allclose(found.numpy(), hidden[:, place], atol=2e-5)
        np.testing.assert_allclose(weights.numpy(), attention[:, place], atol=1e-5)
        for row, origin in enumerate(order):
            assert not weights.numpy()[row, lengths[origin] :].any()
        # The first two rows change places, and their targets with them.
        swap = paddle.to_tensor([1, 0, 2, 3])
        own_memory, own_past = gather_rows((own_memory, own_past), swap)
        order, target = [order[n] for n in (1, 0, 2, 3)], target[[1, 0, 2, 3]]
        hidden, attention = hidden[[1, 0, 2, 3]], attention[[1, 0, 2, 3]]


@pytest.mark.parametrize("config", ALL)
@paddle.no_grad()
def test_a_source_alone_equals_the_source_in_a_padded_batch(config: FamilyConfig) -> None:
    pair = random_pair(config)
    embedded, lengths = sources(config, [5, 2, 4], 0, seed=1)
    target = targets(config, 3, 4, seed=2)
    together = pair.decoder(paddle.to_tensor(target), *pair.prepare(embedded, lengths))[0].numpy()
    for row, length in enumerate(lengths):
        alone = pair.prepare(embedded[row : row + 1, :length], lengths[row : row + 1])
        hidden = pair.decoder(paddle.to_tensor(target[row : row + 1]), *alone)[0].numpy()
        np.testing.assert_allclose(hidden[0], together[row], atol=2e-5)


@pytest.mark.parametrize("config", SERVED)
@settings(deadline=None, max_examples=10)
@given(data=st.data())
@paddle.no_grad()
def test_arrays_equal_the_network_whatever_rows_the_search_takes(
    config: FamilyConfig, data: st.DataObject
) -> None:
    pair = random_pair(config)
    weights = Weights(read_weights(pair))
    encoder, decoder = numpy_pair(config, weights)
    weights.check_all_taken()
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    embedded, sizes = sources(config, lengths, data.draw(st.integers(0, 2)), data.draw(st.integers(0, 99)))
    memory, past = pair.prepare(embedded, sizes)
    state = decoder.prepare(*encoder.read(embedded, sizes), sizes)
    owners = np.arange(len(lengths))
    for step in range(data.draw(st.integers(1, 6))):
        index = np.array(data.draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, max_size=5)))
        within = len(index) == len(owners) and np.array_equal(owners[index], owners)
        memory, past = gather_rows((memory, past), paddle.to_tensor(index))
        state = state.reorder_within(index) if within else state.reorder(index)[0]
        owners = owners[index]
        x = targets(config, len(owners), 1, seed=step)[:, 0]
        expected, attention, past = pair.decoder.step(paddle.to_tensor(x), memory, past)
        hidden, weights_by_source, state = decoder.step(decoder.inputs(x), state)
        np.testing.assert_allclose(hidden, expected.numpy(), atol=1e-4, rtol=1e-4)
        found = state.rows.collect(weights_by_source)  # [N, S]
        np.testing.assert_allclose(found, attention.numpy(), atol=1e-5)


@pytest.mark.parametrize(("config", "told"), NETWORKS_ALONE)
def test_what_the_arrays_do_not_know_is_said(config: FamilyConfig, told: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"^{told}$"):
        numpy_pair(config, Weights({}))


def test_an_unknown_family_is_refused_by_its_name() -> None:
    unknown: Any = replace(TRANSFORMER, name="mamba")
    known = "causal_transformer, convolutional_transformer, lstm_attention, transformer"
    with pytest.raises(UserError, match=f"^model.name: 'mamba' is unknown; this version has {known}$"):
        build_pair(unknown)
    with pytest.raises(UnsupportedModelError, match=r"^the model is mamba$"):
        numpy_pair(unknown, Weights({}))
