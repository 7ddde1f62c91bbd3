"""A larger network that begins as a smaller one."""

from __future__ import annotations

import dataclasses

import numpy as np
import paddle

from paddle_dialog.bundle.folder import read_weights, set_weights
from paddle_dialog.bundle.growing import grown
from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.models.seq2seq import Seq2Seq

SMALL = TransformerConfig(
    width=8, num_heads=2, inner_width=16, encoder_layers=1, decoder_layers=2, norm="pre", dropout=0.0,
    bias=False, share_embeddings=True, tie_output=True, aligned_input=True, max_positions=16,
)  # fmt: skip


def logits(network: Seq2Seq) -> np.ndarray:
    source, lengths = paddle.to_tensor([[5, 6, 7, 3], [8, 9, 3, 0]]), paddle.to_tensor([4, 3])
    return network(source, lengths, paddle.to_tensor([[2, 4, 5], [2, 6, 7]])).numpy()


def test_more_layers_and_rows_change_nothing_at_first_and_then_learn() -> None:
    small = Seq2Seq(SMALL, 12)
    large = Seq2Seq(dataclasses.replace(SMALL, encoder_layers=3, decoder_layers=3), 14)
    first = read_weights(large)
    set_weights(large, grown(first, read_weights(small)), "small")
    np.testing.assert_allclose(logits(large)[..., :12], logits(small), atol=1e-5)
    table = read_weights(large)["source_embedding.table.weight"]
    np.testing.assert_array_equal(table[12:], first["source_embedding.table.weight"][12:])

    large(
        paddle.to_tensor([[5, 3]]), paddle.to_tensor([2]), paddle.to_tensor([[2, 6]])
    ).square().sum().backward()
    ends = [weight for name, weight in large.named_parameters() if name.endswith("contract.weight")]
    assert len(ends) == 6 and all(float(weight.grad.abs().sum()) > 0 for weight in ends)


def test_a_network_of_the_same_size_takes_the_weights_as_they_are() -> None:
    given = read_weights(Seq2Seq(SMALL, 12))
    found = grown(read_weights(Seq2Seq(SMALL, 12)), given)
    assert found.keys() == given.keys() and all(found[name] is given[name] for name in given)
