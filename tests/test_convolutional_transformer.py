"""The layers with convolutions: their size, causality, cached steps, and attention with depths of its own."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import paddle
import pytest

from paddle_dialog.config.models import ConvolutionalTransformerConfig
from paddle_dialog.layers.convolutional_transformer import (
    ConvolutionalDecoderStack,
    ConvolutionalEncoderStack,
    GraphLayer,
)
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.multihead import CrossAttention, SelfAttention, head_averaged_weights
from paddle_dialog.layers.positions import SinusoidalPositions

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
POSITIONS = SinusoidalPositions(max_length=16, width=6)


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
    assert count(ConvolutionalEncoderStack(sizes)) == 289_500
    assert count(ConvolutionalDecoderStack(sizes)) == 386_700


def test_cross_attention_with_depths_of_its_own_is_the_formula() -> None:
    layer = filled(CrossAttention(6, 2, 0.0, False, key_depth=4, value_depth=8))
    x, memory = random(2, 3, 6), random(2, 5, 6, seed=3)
    output, weights = layer(x, layer.prepare(memory), None)
    averaged = layer.averaged_weights(x, layer.prepare(memory), None).numpy()
    key_value = memory.numpy() @ layer.key_value.weight.numpy()  # [B, S, 4 + 8]
    query, contexts, logits = x.numpy() @ layer.query.weight.numpy(), [], []
    for head in range(2):
        key = key_value[..., 2 * head : 2 * head + 2]
        value = key_value[..., 4 + 4 * head : 8 + 4 * head]
        scores = query[..., 2 * head : 2 * head + 2] * 2**-0.5 @ key.transpose(0, 2, 1)  # [B, T, S]
        np.testing.assert_allclose(weights.numpy()[:, head], softmax(scores), atol=1e-5)
        contexts.append(softmax(scores) @ value)
        logits.append(scores)
    expected = np.concatenate(contexts, axis=-1) @ layer.output.weight.numpy()
    np.testing.assert_allclose(output.numpy(), expected, atol=1e-4)
    np.testing.assert_allclose(averaged, softmax(np.mean(logits, axis=0)), atol=1e-5)
    assert layer.output.bias is None and layer.query.bias is None
    assert not np.allclose(averaged, weights.numpy().mean(axis=1), atol=1e-3)  # mean weights differ


def test_averaged_weights_leave_masked_positions_out() -> None:
    mask = additive_mask(paddle.to_tensor([[True, False, True]])).unsqueeze([1, 2])  # [1, 1, 1, S]
    weights = head_averaged_weights(random(1, 2, 4, 3), random(1, 2, 3, 3, seed=4), mask).numpy()
    assert weights.shape == (1, 4, 3)
    assert (weights[..., 1] < 1e-20).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)


def test_self_attention_takes_depths_of_its_own() -> None:
    layer = SelfAttention(6, 2, 0.0, False, key_depth=4, value_depth=8)
    assert count(layer) == 6 * (4 + 4 + 8) + 8 * 6
    output, (key, value) = layer(random(2, 3, 6), None)
    assert (output.shape, key.shape, value.shape) == ([2, 3, 6], [2, 2, 3, 2], [2, 2, 3, 4])


def decode(decoder: Any, x: paddle.Tensor, memory: Any, past: Any = None, offset: int = 0) -> Any:
    length = x.shape[1]
    mask = additive_mask(causal_mask(offset + length)[offset:])
    return decoder(x, POSITIONS(length, offset), memory, mask, None, past)


def test_the_decoder_sees_no_later_position() -> None:
    decoder = filled(ConvolutionalDecoderStack(SIZES))
    memory = decoder.prepare_memory(random(2, 5, 6))
    x, changed = random(2, 7, 4), random(2, 7, 4)
    changed[:, 5:] += 1.0
    before, after = (decode(decoder, inputs, memory)[0].numpy() for inputs in (x, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(axis=-1).all()


@pytest.mark.parametrize("kinds", ["cc", "ll"])
def test_cached_decoding_equals_the_whole_pass(kinds: str) -> None:
    decoder = filled(ConvolutionalDecoderStack(replace(SIZES, feed_forward=kinds)))
    memory = decoder.prepare_memory(random(2, 5, 6))
    x, past = random(2, 7, 4), None
    whole, _, attention = decode(decoder, x, memory)
    outputs, weights = [], []
    for start, stop in ((0, 1), (1, 2), (2, 6), (6, 7)):
        y, past, rows = decode(decoder, x[:, start:stop], memory, past, start)
        outputs.append(y)
        weights.append(rows)
    np.testing.assert_allclose(paddle.concat(outputs, 1).numpy(), whole.numpy(), atol=1e-5)
    np.testing.assert_allclose(paddle.concat(weights, 1).numpy(), attention.numpy(), atol=1e-5)
    np.testing.assert_allclose(attention.numpy().sum(-1), 1.0, atol=1e-6)


def test_the_encoder_gives_a_row_what_it_gives_it_alone() -> None:
    encoder = filled(ConvolutionalEncoderStack(SIZES))
    x, lengths = random(2, 7, 4), [7, 3]
    real = length_mask(paddle.to_tensor(lengths), 7)
    mask = additive_mask(real).unsqueeze([1, 2])
    together = encoder(x, POSITIONS(7), mask, real.astype("float32").unsqueeze(-1)).numpy()
    for row, length in enumerate(lengths):
        ones = paddle.ones([1, length], dtype="bool")
        alone = encoder(
            x[row : row + 1, :length],
            POSITIONS(length),
            additive_mask(ones).unsqueeze([1, 2]),
            ones.astype("float32").unsqueeze(-1),
        )
        np.testing.assert_allclose(alone.numpy()[0], together[row, :length], atol=1e-5)


def test_a_graph_layer_is_a_decoder_layer_without_self_attention() -> None:
    layer = filled(GraphLayer(SIZES))
    nodes, x = random(2, 5, 6), random(2, 4, 6, seed=3)
    y, past, weights = layer(x, layer.cross_attention.prepare(nodes), None)
    assert (y.shape, weights.shape, past.self_attention) == ([2, 4, 6], [2, 4, 5], None)
    # Nodes have no order: a permutation moves their weights and changes nothing else.
    order = paddle.to_tensor([3, 0, 4, 1, 2])
    permuted, _, moved = layer(x, layer.cross_attention.prepare(nodes[:, order]), None)
    np.testing.assert_allclose(permuted.numpy(), y.numpy(), atol=1e-5)
    np.testing.assert_allclose(moved.numpy(), weights.numpy()[:, :, order.numpy()], atol=1e-6)


def test_dropout_is_applied_in_training() -> None:
    decoder = filled(ConvolutionalDecoderStack(replace(SIZES, dropout=0.5)))
    memory, x = decoder.prepare_memory(random(1, 5, 6)), random(1, 3, 4)
    assert (decode(decoder, x, memory)[0] == decode(decoder, x, memory)[0]).all().item()
    decoder.train()
    assert (decode(decoder, x, memory)[0] != decode(decoder, x, memory)[0]).any().item()
