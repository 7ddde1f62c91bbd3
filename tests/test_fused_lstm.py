"""The fused LSTM of decoding gives the numbers of the network it was made of."""

import numpy as np
import paddle
import pytest

from paddle_dialog.config.models import LstmAttentionConfig, TransformerConfig
from paddle_dialog.models import FusedLstm, build_model, for_decoding

VOCABULARY = 30


def network(**settings: object) -> object:
    paddle.seed(3)
    config = LstmAttentionConfig(**{"embedding_size": 8, "hidden_size": 8, **settings})  # type: ignore[arg-type]
    built = build_model(config, VOCABULARY)
    for parameter in built.parameters():
        if parameter.ndim == 1:  # biases are zero at first and would hide an error
            parameter.set_value(paddle.randn(parameter.shape))
    built.eval()
    return built


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"score": "additive", "bidirectional": True},
        {"score": "bilinear", "num_layers": 1, "input_feeding": False},
        {"score": "scaled_dot", "embedding_size": 12, "num_layers": 3},
        {"tie_output": True, "share_embeddings": True},
    ],
)
def test_steps_equal_the_network(settings: dict[str, object]) -> None:
    plain = network(**settings)
    fused = for_decoding(plain)
    assert isinstance(fused, FusedLstm)
    source = paddle.to_tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
    lengths = paddle.to_tensor([4, 2])
    with paddle.no_grad():
        states = [plain.encode(source, lengths), fused.encode(source, lengths)]
        models = [plain, fused]
        index = paddle.to_tensor([0, 1, 1, 0])
        states = [model.reorder(state, index) for model, state in zip(models, states, strict=True)]
        for step, token in enumerate(([2, 2, 2, 2], [9, 4, 5, 6], [7, 7, 8, 29])):
            outputs = [
                model.step(paddle.to_tensor(token), s) for model, s in zip(models, states, strict=True)
            ]
            expected, found = (logits.numpy() for logits, _ in outputs)
            np.testing.assert_allclose(found, expected, atol=1e-5)
            swap = paddle.to_tensor([3, 2, 1, 0])  # rows change places within their inputs
            name = "reorder_within" if step == 1 else "reorder"
            states = [getattr(m, name)(s, swap) for m, (_, s) in zip(models, outputs, strict=True)]


def test_other_families_decode_as_they_are() -> None:
    transformer = build_model(
        TransformerConfig(width=8, num_heads=2, inner_width=8, max_positions=8), VOCABULARY
    )
    gru = network(cell="gru")
    assert for_decoding(transformer) is transformer
    assert for_decoding(gru) is gru
