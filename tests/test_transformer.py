"""The Transformer's layers against Paddle's, its convolutions, and the causal one against one pass."""

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.config.models import CausalTransformerConfig, TransformerConfig
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.transformer import (
    CausalTransformer,
    CopyAttention,
    CrossAttention,
    DecoderStack,
    EncoderStack,
    FeedForward,
    SequenceConvolution,
)
from paddle_dialog.models.families import build_pair

WIDTH, HEADS, INNER, LAYERS = 12, 3, 20, 2
SOURCE_LENGTHS = [6, 2, 4]
BATCH, SOURCE, TARGET = 3, 6, 5


def sizes(**settings):
    counts = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "dropout": 0.1}
    return TransformerConfig(width=WIDTH, num_heads=HEADS, inner_width=INNER, **counts, **settings)


def randomise(layer, seed):
    """Give every parameter random values, biases and norms too: at their initial 0 and 1 mistakes hide."""
    rng = np.random.default_rng(seed)
    for name, parameter in sorted(layer.named_parameters()):
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        values = rng.normal(centre, 0.3, parameter.shape).astype("float32")
        parameter.set_value(paddle.to_tensor(values))


def copy_linear(target, *sources):
    """Copy linear maps side by side into one, or one norm into another."""
    target.weight.set_value(paddle.concat([s.weight for s in sources], axis=-1))
    target.bias.set_value(paddle.concat([s.bias for s in sources], axis=-1))


def copy_self_attention(ours, theirs):
    copy_linear(ours.query_key_value, theirs.q_proj, theirs.k_proj, theirs.v_proj)
    copy_linear(ours.output, theirs.out_proj)


def copy_cross_attention(ours, theirs):
    copy_linear(ours.query, theirs.q_proj)
    copy_linear(ours.key_value, theirs.k_proj, theirs.v_proj)
    copy_linear(ours.output, theirs.out_proj)


def copy_feed_forward(ours, theirs):
    copy_linear(ours.expand, theirs.linear1)
    copy_linear(ours.contract, theirs.linear2)


def stacks(ours):
    """Return our stack of self-attention and Paddle's encoder with equal weights."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.1, "relu", normalize_before=True)
    theirs = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH))
    randomise(theirs, 1)
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_self_attention(mine.self_attention, other.self_attn)
        copy_feed_forward(mine.feed_forward, other)
        copy_linear(mine.self_attention_norm, other.norm1)
        copy_linear(mine.feed_forward_norm, other.norm2)
    copy_linear(ours.final_norm, theirs.norm)
    ours.eval()
    theirs.eval()
    return ours, theirs


def decoder_pair():
    """Return our decoder and Paddle's with equal weights."""
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, 0.1, "relu", normalize_before=True)
    theirs = nn.TransformerDecoder(layer, LAYERS, nn.LayerNorm(WIDTH))
    randomise(theirs, 2)
    ours = DecoderStack(sizes())
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_self_attention(mine.self_attention, other.self_attn)
        copy_cross_attention(mine.cross_attention, other.cross_attn)
        copy_feed_forward(mine.feed_forward, other)
        copy_linear(mine.self_attention_norm, other.norm1)
        copy_linear(mine.cross_attention_norm, other.norm2)
        copy_linear(mine.feed_forward_norm, other.norm3)
    copy_linear(ours.final_norm, theirs.norm)
    ours.eval()
    theirs.eval()
    return ours, theirs


def vectors(length, seed):
    values = np.random.default_rng(seed).normal(size=(BATCH, length, WIDTH))
    return paddle.to_tensor(values.astype("float32"))


def source_mask():
    """Return the additive padding mask [B, 1, 1, S]."""
    return additive_mask(length_mask(paddle.to_tensor(SOURCE_LENGTHS), SOURCE)).unsqueeze([1, 2])


def future_mask():
    return additive_mask(causal_mask(TARGET))


def test_cross_attention_and_its_weights_equal_paddle():
    theirs = nn.MultiHeadAttention(WIDTH, HEADS, need_weights=True)
    randomise(theirs, 3)
    ours = CrossAttention(WIDTH, HEADS)
    copy_cross_attention(ours, theirs)
    target, memory, mask = vectors(TARGET, 4), vectors(SOURCE, 5), source_mask()
    output, weights = ours(target, memory, mask)
    expected, expected_weights = theirs(target, memory, memory, attn_mask=mask)
    np.testing.assert_allclose(output.numpy(), expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(weights.numpy(), expected_weights.numpy(), atol=1e-5)


def test_encoder_equals_paddle():
    ours, theirs = stacks(EncoderStack(sizes()))
    source, mask = vectors(SOURCE, 6), source_mask()
    np.testing.assert_allclose(ours(source, mask).numpy(), theirs(source, mask).numpy(), atol=1e-5)


def test_decoder_returns_the_last_layers_weights_averaged_over_heads():
    decoder, _ = decoder_pair()
    by_layer: list[np.ndarray] = []
    for layer in decoder.layers:
        layer.cross_attention.register_forward_post_hook(
            lambda _layer, _inputs, outputs: by_layer.append(outputs[1].numpy())
        )
    weights = decoder(vectors(TARGET, 7), vectors(SOURCE, 8), future_mask(), source_mask())[1].numpy()
    last = by_layer[-1]  # [B, heads, T, S]
    np.testing.assert_allclose(weights, sum(last[:, head] for head in range(HEADS)) / HEADS, atol=1e-6)
    assert np.abs(last[:, 0] - last[:, 1]).max() > 0.01


def test_decoder_and_its_gradients_equal_paddle():
    ours, theirs = decoder_pair()
    target, factor = vectors(TARGET, 9), vectors(TARGET, 10)
    outputs, gradients = [], []
    for is_ours in (True, False):
        memory = vectors(SOURCE, 11)
        memory.stop_gradient = False
        if is_ours:
            output, _ = ours(target, memory, future_mask(), source_mask())
        else:
            output = theirs(target, memory, tgt_mask=future_mask(), memory_mask=source_mask())
        (output * factor).sum().backward()
        outputs.append(output.numpy())
        gradients.append(memory.grad.numpy())
    np.testing.assert_allclose(*outputs, atol=1e-5)
    assert np.abs(gradients[1]).max() > 0.01
    np.testing.assert_allclose(gradients[0], gradients[1], atol=1e-4)
    fused = ours.layers[0].self_attention.query_key_value.weight.grad.numpy()
    parts = theirs.layers[0].self_attn
    separate = [p.weight.grad.numpy() for p in (parts.q_proj, parts.k_proj, parts.v_proj)]
    np.testing.assert_allclose(fused, np.concatenate(separate, axis=1), atol=1e-4)


def test_without_bias_only_norms_have_one():
    decoder = DecoderStack(sizes(bias=False))
    biases = [name for name, _ in decoder.named_parameters() if name.endswith("bias")]
    assert biases
    assert all("norm" in name for name in biases)


def test_a_source_and_its_target_equal_one_causal_pass_over_both():
    sizes = {"width": WIDTH, "num_heads": HEADS, "inner_width": INNER, "num_layers": LAYERS}
    ours, theirs = stacks(CausalTransformer(CausalTransformerConfig(**sizes, bias=True)))
    source, reply = vectors(SOURCE, 12), vectors(TARGET, 13)
    with paddle.no_grad():
        outputs, read = ours(source)
        decoded = ours.decode(reply, read, source_mask())
        for row, length in enumerate(SOURCE_LENGTHS):
            text = paddle.concat([source[row, :length], reply[row]]).unsqueeze(0)
            expected = theirs(text, additive_mask(causal_mask(text.shape[1]))).numpy()[0]
            np.testing.assert_allclose(outputs[row, :length].numpy(), expected[:length], atol=1e-5)
            np.testing.assert_allclose(decoded[row].numpy(), expected[length:], atol=1e-5)


def test_copying_weighs_positions_by_the_softmax_of_scaled_products():
    head = CopyAttention(2, 4)
    head.query.weight.set_value(paddle.to_tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]]))
    head.key.weight.set_value(paddle.to_tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]]))
    source = paddle.to_tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])
    mask = additive_mask(paddle.to_tensor([[[True, True, False]]]))
    found = head(paddle.to_tensor([[[1.0, 0.0]]]), source, mask).numpy()[0, 0]
    # products 2 and 0, by the root of the size 1 and 0
    np.testing.assert_allclose(found, [np.e / (np.e + 1), 1 / (np.e + 1), 0], atol=1e-6)


def test_the_published_form_has_its_size():
    published = TransformerConfig(
        width=100,
        num_heads=1,
        inner_width=50,
        encoder_layers=6,
        decoder_layers=6,
        bias=False,
        feed_forward="cc",
        key_size=40,
        value_size=40,
        project_embeddings=True,
    )
    counts = [sum(each.size for each in network.parameters()) for network in build_pair(published)]
    assert counts == [289_500, 386_700]


@pytest.mark.parametrize("padding", ["left", "both"])
def test_a_convolution_equals_paddles(padding):
    layer = SequenceConvolution(WIDTH, 4, padding)
    randomise(layer, 2)
    x = vectors(5, 1)
    kernel = layer.projection.weight.reshape([3, WIDTH, 4]).transpose([2, 1, 0])  # [O, D, width]
    before = {"left": [2, 0], "both": [1, 1]}[padding]
    padded = nn.functional.pad(x, before, data_format="NLC")
    expected = nn.functional.conv1d(padded, kernel, layer.projection.bias, data_format="NLC")
    np.testing.assert_allclose(layer(x).numpy(), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("kinds", "padding", "reach"),
    [
        *(("cc", "both", [2, 3, 4, 5]), ("lc", "both", [3, 4, 5]), ("ll", "both", [4])),
        *(("cc", "left", [4, 5]), ("ll", "left", [4])),
    ],
)
def test_how_far_a_position_is_seen(kinds, padding, reach):
    layer = FeedForward(WIDTH, 5, True, kinds, padding)
    randomise(layer, 4)
    x, changed = vectors(6, 3), vectors(6, 3)
    changed[:, 4] += 1.0
    differ = (layer(x)[0] != layer(changed)[0]).any(axis=-1).numpy()
    assert np.flatnonzero(differ).tolist() == reach


def test_a_convolution_does_not_see_padding():
    stack = EncoderStack(sizes(feed_forward="cc", key_size=6, value_size=9))
    randomise(stack, 5)
    stack.eval()
    source = vectors(SOURCE, 6)
    real = length_mask(paddle.to_tensor(SOURCE_LENGTHS), SOURCE).unsqueeze(-1)  # [B, S, 1]
    noisy = paddle.where(real, source, vectors(SOURCE, 99) * 10.0)
    outputs = [
        stack(x, source_mask(), real.astype("float32")).numpy() * real.numpy() for x in (source, noisy)
    ]
    np.testing.assert_allclose(*outputs, atol=1e-5)
