"""Position-wise feed-forward layers: convolutions by hand, causality, cached steps, padding."""

import numpy as np
import paddle
import pytest

from paddle_dialog.layers.feed_forward import PositionwiseFeedForward, SequenceConvolution


def random(*shape: int, seed: int = 1) -> paddle.Tensor:
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def filled(layer: paddle.nn.Layer, seed: int = 2) -> paddle.nn.Layer:
    rng = np.random.default_rng(seed)
    for parameter in layer.parameters():
        parameter.set_value(paddle.to_tensor(rng.normal(0, 0.5, parameter.shape).astype("float32")))
    layer.eval()
    return layer


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
    layer = filled(PositionwiseFeedForward(3, 5, kinds, "left"))
    x, changed = random(2, 6, 3), random(2, 6, 3)
    changed[:, 4:] += 1.0
    before, after = layer(x)[0].numpy(), layer(changed)[0].numpy()
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(axis=-1).all()


def test_both_padding_sees_later_positions_and_linear_layers_only_their_own() -> None:
    x, changed = random(1, 6, 3), random(1, 6, 3)
    changed[:, 4] += 1.0
    for kinds, reach in (("cc", [2, 3, 4, 5]), ("lc", [3, 4, 5]), ("ll", [4])):
        layer = filled(PositionwiseFeedForward(3, 5, kinds, "both"))
        differ = (layer(x)[0] != layer(changed)[0]).any(axis=-1).numpy()[0]
        assert np.flatnonzero(differ).tolist() == reach


@pytest.mark.parametrize("kinds", ["ll", "cc", "cl"])
def test_cached_steps_equal_the_whole_pass(kinds: str) -> None:
    layer = filled(PositionwiseFeedForward(3, 5, kinds, "left"))
    x = random(2, 6, 3)
    past, outputs = None, []
    for start, stop in ((0, 1), (1, 2), (2, 5), (5, 6)):
        y, past = layer(x[:, start:stop], past=past)
        outputs.append(y)
    np.testing.assert_allclose(paddle.concat(outputs, 1).numpy(), layer(x)[0].numpy(), atol=1e-6)


def test_padding_does_not_reach_real_positions() -> None:
    layer = filled(PositionwiseFeedForward(3, 5, "cc", "both"))
    x = random(1, 6, 3)
    mask = paddle.to_tensor([[1.0, 1, 1, 1, 0, 0]]).unsqueeze(-1)
    padded = layer(x, mask)[0].numpy()[:, :4]
    np.testing.assert_allclose(padded, layer(x[:, :4])[0].numpy(), atol=1e-6)


def test_dropout_falls_between_the_layers_in_training_only() -> None:
    layer = filled(PositionwiseFeedForward(3, 5, "ll", dropout=1.0))
    x = random(1, 2, 3)
    assert (layer(x)[0].numpy() != layer.layers[1].bias.numpy()).any()
    layer.train()
    np.testing.assert_allclose(layer(x)[0].numpy()[0, 0], layer.layers[1].bias.numpy())


@pytest.mark.parametrize("kinds", ["l", "cx", ""])
def test_unknown_kinds_are_refused(kinds: str) -> None:
    with pytest.raises(ValueError, match="two or more letters out of l and c"):
        PositionwiseFeedForward(3, 5, kinds)
