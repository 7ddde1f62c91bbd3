"""`Seq2Seq`: shared tables, what learns, and the book's couplet network."""

from dataclasses import replace
from typing import Any

import numpy as np
import paddle
import pytest
from network_cases import LSTM, PLAIN, TRANSFORMER, VOCABULARY, case
from paddle import nn

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.seq2seq import Seq2Seq


def batch(made):
    """Return source [B, S] with padding, its lengths [B], and a target [B, T]."""
    target = np.random.default_rng(2).integers(4, VOCABULARY, (len(made.lengths), 7))
    target[:, 0] = 2
    return paddle.to_tensor(made.source), paddle.to_tensor(made.lengths), paddle.to_tensor(target)


@pytest.mark.parametrize("config", [LSTM, TRANSFORMER], ids=["lstm", "transformer"])
def test_a_shared_table_is_counted_and_stored_once(config):
    apart, shared, tied = (
        Seq2Seq(replace(config, share_embeddings=share, tie_output=tie), VOCABULARY)
        for share, tie in ((False, False), (True, False), (True, True))
    )

    def count(network):
        return sum(int(np.prod(parameter.shape)) for parameter in network.parameters())

    table = VOCABULARY * config.width
    assert count(apart) - count(shared) == table
    assert count(shared) - count(tied) == table
    for network in (apart, shared, tied):
        assert sum(array.size for array in read_weights(network).values()) == count(network)


@pytest.mark.parametrize("name", PLAIN)
def test_every_parameter_learns(name):
    made = case(name)
    network: Any = made.network
    network.train()
    # A plain sum over a norm has no gradient.
    weights = paddle.to_tensor(np.arange(VOCABULARY) % 3.0, "float32")
    (network(*batch(made)) * weights).sum().backward()
    still = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    assert still == []


class BookModel(nn.Layer):
    """The book's couplet network, written plainly from its description: one loop, no caching, no state classes."""

    def __init__(self, vocabulary, size, layers):
        super().__init__()
        self.source_table = nn.Embedding(vocabulary, size)
        self.target_table = nn.Embedding(vocabulary, size)
        self.reader = nn.LSTM(size, size, layers)
        self.writers = nn.LayerList([nn.LSTMCell(2 * size if n == 0 else size, size) for n in range(layers)])
        self.input_proj = nn.Linear(size, size)
        self.output_proj = nn.Linear(2 * size, size)
        self.classifier = nn.Linear(size, vocabulary)

    def forward(self, source, lengths, target):
        read, (hidden, memory) = self.reader(self.source_table(source), sequence_length=lengths)
        states = [(hidden[n], memory[n]) for n in range(len(self.writers))]
        projected = self.input_proj(read)  # [B, S, H]
        bias = (paddle.arange(source.shape[1]) >= lengths.unsqueeze(1)).astype("float32") * -1e9  # [B, S]
        attentional, logits = paddle.zeros_like(hidden[0]), []
        for position in range(target.shape[1]):
            x = paddle.concat([self.target_table(target[:, position]), attentional], axis=1)
            for n, writer in enumerate(self.writers):
                x, states[n] = writer(x, states[n])
            scores = (projected * x.unsqueeze(1)).sum(axis=2) + bias  # [B, S]
            context = (nn.functional.softmax(scores).unsqueeze(2) * projected).sum(axis=1)  # [B, H]
            attentional = self.output_proj(paddle.concat([context, x], axis=1))
            logits.append(self.classifier(attentional))
        return paddle.stack(logits, axis=1)


def copy_to_book(ours, book, layers):
    pairs = [
        (ours.source_embedding.table, book.source_table),
        (ours.target_embedding.table, book.target_table),
        (ours.decoder.cell.memory_projection, book.input_proj),
        (ours.decoder.cell.output_projection, book.output_proj),
        (ours.output, book.classifier),
        *zip(ours.decoder.cell.cells, book.writers, strict=True),
        *((ours.encoder.stack.rnn[n].cell, book.reader[n].cell) for n in range(layers)),
    ]
    for mine, theirs in pairs:
        for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
            other.set_value(one)


def test_the_lstm_model_equals_the_books():
    made = case("lstm")
    ours: Any = made.network
    book = BookModel(VOCABULARY, LSTM.width, 2)
    copy_to_book(ours, book, 2)
    book.eval()
    inputs = batch(made)
    expected = book(*inputs).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(ours(*inputs).numpy(), expected, atol=1e-5)


def test_at_its_reference_size_the_lstm_model_has_the_books_parameters():
    network = Seq2Seq(LstmAttentionConfig(), 7931)
    assert sum(int(np.prod(parameter.shape)) for parameter in network.parameters()) == 8_663_547
