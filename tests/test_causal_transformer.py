"""The causal Transformer against Paddle's own with equal weights, and what goes on after a source."""

import numpy as np
import paddle
from paddle import nn
from test_transformer_parity import copy_feed_forward, copy_linear, copy_self_attention, randomise

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.layers.causal_transformer import CausalTransformer, CopyAttention
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask

WIDTH, HEADS, INNER, LAYERS = 12, 3, 20, 2
LENGTHS = [5, 2, 3]


def pair() -> tuple[CausalTransformer, nn.TransformerEncoder]:
    """Return our stack, and Paddle's pre-norm encoder with equal weights."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.1, "relu", normalize_before=True)
    theirs = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH))
    randomise(theirs, 1)
    ours = CausalTransformer(
        CausalTransformerConfig(
            width=WIDTH,
            num_heads=HEADS,
            inner_width=INNER,
            num_layers=LAYERS,
            bias=True,
        )
    )
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_self_attention(mine.self_attention, other.self_attn)
        copy_feed_forward(mine.feed_forward, other)
        copy_linear(mine.self_attention_norm, other.norm1)
        copy_linear(mine.feed_forward_norm, other.norm2)
    copy_linear(ours.final_norm, theirs.norm)
    ours.eval()
    theirs.eval()
    return ours, theirs


def joined(source: np.ndarray, reply: np.ndarray) -> list[paddle.Tensor]:
    """Return each source without its padding, and the reply right after it, [1, S + T, D] each."""
    pairs = zip(source, reply, LENGTHS, strict=True)
    return [paddle.to_tensor(np.concatenate([s[:length], r])[None]) for s, r, length in pairs]


def test_reading_and_going_on_equal_one_causal_pass_over_both() -> None:
    ours, theirs = pair()
    rng = np.random.default_rng(0)
    source, reply = (rng.normal(size=(3, size, WIDTH)).astype("float32") for size in (5, 4))
    mask = additive_mask(length_mask(paddle.to_tensor(LENGTHS), 5)).unsqueeze([1, 2])
    with paddle.no_grad():
        outputs, read = ours.read(paddle.to_tensor(source))
        together, _ = ours(paddle.to_tensor(reply), read, mask)
        first, past = ours(paddle.to_tensor(reply[:, :1]), read, mask)
        middle, past = ours(paddle.to_tensor(reply[:, 1:3]), read, mask, past)
        last, _ = ours(paddle.to_tensor(reply[:, 3:]), read, mask, past)
        for row, (text, length) in enumerate(zip(joined(source, reply), LENGTHS, strict=True)):
            expected = theirs(text, additive_mask(causal_mask(text.shape[1]))).numpy()[0]
            np.testing.assert_allclose(outputs[row, :length].numpy(), expected[:length], atol=1e-5)
            np.testing.assert_allclose(together[row].numpy(), expected[length:], atol=1e-5)
            by_parts = paddle.concat([first, middle, last], axis=1)[row].numpy()
            np.testing.assert_allclose(by_parts, expected[length:], atol=1e-5)


def test_padding_of_a_source_reaches_nothing() -> None:
    ours, _ = pair()
    rng = np.random.default_rng(0)
    source, reply = (rng.normal(size=(3, size, WIDTH)).astype("float32") for size in (5, 2))
    other = source.copy()
    for row, length in enumerate(LENGTHS):
        other[row, length:] = 9.0
    mask = additive_mask(length_mask(paddle.to_tensor(LENGTHS), 5)).unsqueeze([1, 2])
    with paddle.no_grad():
        ends = [
            ours(paddle.to_tensor(reply), ours.read(paddle.to_tensor(s))[1], mask)[0] for s in (source, other)
        ]
    np.testing.assert_allclose(ends[0].numpy(), ends[1].numpy(), atol=1e-6)


def test_copying_weighs_positions_by_the_softmax_of_scaled_products() -> None:
    head = CopyAttention(2, 4)
    head.query.weight.set_value(paddle.to_tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]]))
    head.key.weight.set_value(paddle.to_tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]]))
    source = paddle.to_tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])
    mask = additive_mask(paddle.to_tensor([[[True, True, False]]]))
    found = head(paddle.to_tensor([[[1.0, 0.0]]]), head.prepare(source), mask).numpy()[0, 0]
    # products 2 and 0, by the root of the depth 1 and 0
    np.testing.assert_allclose(found, [np.e / (np.e + 1), 1 / (np.e + 1), 0], atol=1e-6)
