"""The Transformer with convolutions: its size, causality, cached steps, padding, and depths of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import paddle
import pytest
from paddle_dialog.models.transformer import TransformerDecoder, TransformerEncoder

from paddle_dialog.config.models import ConvolutionalTransformerConfig
from paddle_dialog.layers.transformer import (
    ConvolutionalFeedForward,
    CrossAttention,
    GraphLayer,
    SelfAttention,
    SequenceConvolution,
)

SIZES = ConvolutionalTransformerConfig(
    embedding_size=4,
    width=6,
    num_layers=2,
    num_heads=2,
    key_depth=4,
    value_depth=8,
    inner_width=5,
    dropout=0.0,
)


def random(*shape: int, seed: int = 1) -> paddle.Tensor:
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def filled(layer: Any, seed: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    for parameter in layer.parameters():
        parameter.set_value(paddle.to_tensor(rng.normal(0, 0.5, parameter.shape).astype("float32")))
    layer.eval()
    return layer


def count(layer: paddle.nn.Layer) -> int:
    return sum(math.prod(parameter.shape) for parameter in layer.parameters())


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_the_stacks_have_the_reference_size() -> None:
    sizes = ConvolutionalTransformerConfig()
    assert count(TransformerEncoder(sizes)) == 289_500
    assert count(TransformerDecoder(sizes)) == 386_700


def test_cross_attention_with_depths_of_its_own_is_the_formula() -> None:
    layer = filled(CrossAttention(6, 2, 0.0, False, key_depth=4, value_depth=8))
    x, memory = random(2, 3, 6), random(2, 5, 6, seed=3)
    output, weights = layer(x, layer.prepare(memory), None)
    key_value = memory.numpy() @ layer.key_value.weight.numpy()  # [B, S, 4 + 8]
    query, contexts = x.numpy() @ layer.query.weight.numpy(), []
    for head in range(2):
        key = key_value[..., 2 * head : 2 * head + 2]
        value = key_value[..., 4 + 4 * head : 8 + 4 * head]
        scores = query[..., 2 * head : 2 * head + 2] * 2**-0.5 @ key.transpose(0, 2, 1)  # [B, T, S]
        np.testing.assert_allclose(weights.numpy()[:, head], softmax(scores), atol=1e-5)
        contexts.append(softmax(scores) @ value)
    expected = np.concatenate(contexts, axis=-1) @ layer.output.weight.numpy()
    np.testing.assert_allclose(output.numpy(), expected, atol=1e-4)
    assert layer.output.bias is None and layer.query.bias is None


def test_self_attention_takes_depths_of_its_own() -> None:
    layer = SelfAttention(6, 2, 0.0, False, key_depth=4, value_depth=8)
    assert count(layer) == 6 * (4 + 4 + 8) + 8 * 6
    output, (key, value) = layer(random(2, 3, 6), None)
    assert (output.shape, key.shape, value.shape) == ([2, 3, 6], [2, 2, 3, 2], [2, 2, 3, 4])


def test_a_graph_layer_is_a_decoder_layer_without_self_attention() -> None:
    layer = filled(GraphLayer(SIZES))
    nodes, x = random(2, 5, 6), random(2, 4, 6, seed=3)
    y, tails, weights = layer(x, layer.cross_attention.prepare(nodes), None)
    assert (y.shape, weights.shape, len(tails)) == ([2, 4, 6], [2, 2, 4, 5], 2)
    # Nodes have no order: a permutation moves their weights and changes nothing else.
    order = paddle.to_tensor([3, 0, 4, 1, 2])
    permuted, _, moved = layer(x, layer.cross_attention.prepare(nodes[:, order]), None)
    np.testing.assert_allclose(permuted.numpy(), y.numpy(), atol=1e-5)
    np.testing.assert_allclose(moved.numpy(), weights.numpy()[..., order.numpy()], atol=1e-6)


@pytest.mark.parametrize("padding", ["left", "both"])
def test_a_convolution_equals_paddles(padding: str) -> None:
    layer = filled(SequenceConvolution(3, 4, padding))
    x = random(2, 5, 3)
    kernel = layer.projection.weight.reshape([3, 3, 4]).transpose([2, 1, 0])  # [O, D, width]
    before = {"left": [2, 0], "both": [1, 1]}[padding]
    padded = paddle.nn.functional.pad(x, before, data_format="NLC")
    expected = paddle.nn.functional.conv1d(padded, kernel, layer.projection.bias, data_format="NLC")
    np.testing.assert_allclose(layer(x)[0].numpy(), expected.numpy(), atol=1e-5)


def test_a_convolution_by_hand() -> None:
    layer = SequenceConvolution(1, 1, "left")
    layer.projection.weight.set_value(paddle.to_tensor([[100.0], [10.0], [1.0]]))
    x = paddle.to_tensor([[[1.0], [2.0], [3.0], [4.0]]])
    assert layer(x)[0].flatten().tolist() == [1, 12, 123, 234]
    layer.padding = "both"
    assert layer(x)[0].flatten().tolist() == [12, 123, 234, 340]


@pytest.mark.parametrize("kinds", ["ll", "cc", "lc", "clc"])
def test_left_padding_sees_no_later_position(kinds: str) -> None:
    layer = filled(ConvolutionalFeedForward(3, 5, kinds, "left"))
    x, changed = random(2, 6, 3), random(2, 6, 3)
    changed[:, 4:] += 1.0
    before, after = layer(x)[0].numpy(), layer(changed)[0].numpy()
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(axis=-1).all()


def test_both_padding_sees_later_positions_and_linear_layers_only_their_own() -> None:
    x, changed = random(1, 6, 3), random(1, 6, 3)
    changed[:, 4] += 1.0
    for kinds, reach in (("cc", [2, 3, 4, 5]), ("lc", [3, 4, 5]), ("ll", [4])):
        layer = filled(ConvolutionalFeedForward(3, 5, kinds, "both"))
        differ = (layer(x)[0] != layer(changed)[0]).any(axis=-1).numpy()[0]
        assert np.flatnonzero(differ).tolist() == reach


def test_dropout_falls_between_the_layers_in_training_only() -> None:
    layer = filled(ConvolutionalFeedForward(3, 5, "ll", dropout=1.0))
    x = random(1, 2, 3)
    assert (layer(x)[0].numpy() != layer.layers[1].bias.numpy()).any()
    layer.train()
    np.testing.assert_allclose(layer(x)[0].numpy()[0, 0], layer.layers[1].bias.numpy())
