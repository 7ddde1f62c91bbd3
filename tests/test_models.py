"""Both families of `Seq2Seq`: aligned input, shared tables, and the book's couplet network."""

from typing import Any

import numpy as np
import paddle
import pytest
from paddle import Tensor, nn

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
from paddle_dialog.models.seq2seq import Seq2Seq

VOCABULARY, WIDTH = 20, 8
LENGTHS = [5, 2, 4]
SOURCE, TARGET = 5, 7


def lstm(**settings: Any) -> LstmAttentionConfig:
    return LstmAttentionConfig(embedding_size=WIDTH, hidden_size=WIDTH, **settings)


def transformer(**settings: Any) -> TransformerConfig:
    sizes = {"width": WIDTH, "num_heads": 2, "inner_width": 12, "encoder_layers": 2, "decoder_layers": 2}
    return TransformerConfig(**sizes, max_positions=16, **settings)


CONFIGS = {
    "lstm": lstm(),
    "additive": lstm(score="additive"),
    "bidirectional": lstm(bidirectional=True, score="bilinear", share_embeddings=True, tie_output=True),
    "gru": lstm(cell="gru"),
    "no input feeding": lstm(input_feeding=False, num_layers=1),
    "pre-norm": transformer(),
    "apart": transformer(share_embeddings=False, tie_output=False),
    "aligned": transformer(aligned_input=True),
}
FAMILIES = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


def make(config: ModelConfig, seed: int = 1) -> Any:
    """Return a model in evaluation mode with random values everywhere, biases too."""
    network = Seq2Seq(config, VOCABULARY)
    rng = np.random.default_rng(seed)
    for name, parameter in network.named_parameters():
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        values = rng.normal(centre, 0.4, parameter.shape).astype("float32")
        if name.endswith("table.weight"):
            values[0] = 0.0  # padding
        parameter.set_value(paddle.to_tensor(values))
    network.eval()
    return network


def batch(target_length: int = TARGET, seed: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return source [B, S] with padding, its lengths [B], and target [B, T]."""
    rng = np.random.default_rng(seed)
    source = rng.integers(4, VOCABULARY, (len(LENGTHS), SOURCE))
    for row, length in enumerate(LENGTHS):
        source[row, length:] = 0
    target = rng.integers(4, VOCABULARY, (len(LENGTHS), target_length))
    target[:, 0] = 2
    return paddle.to_tensor(source), paddle.to_tensor(LENGTHS), paddle.to_tensor(target)


@pytest.mark.parametrize("target_length", [2, SOURCE, SOURCE + 3])
def test_aligned_input_adds_the_encoders_output_of_the_same_position(target_length: int) -> None:
    """Beyond the source there is nothing to add, so there the rest of the decoder decides alone."""
    network = make(CONFIGS["aligned"])
    source, lengths, target = batch(target_length)
    inputs: list[np.ndarray] = []
    network.decoder.stack.layers[0].register_forward_pre_hook(lambda _, args: inputs.append(args[0].numpy()))
    encoded: list[np.ndarray] = []
    network.encoder.register_forward_post_hook(lambda _, args, out: encoded.append(out[0].numpy()))
    network(source, lengths, target)
    plain = (network.target_embedding(target) + network.decoder.positions(target_length)).numpy()
    expected = plain.copy()
    for row, length in enumerate(LENGTHS):
        for position in range(min(length, target_length)):
            expected[row, position] += (
                encoded[0][row, position] @ network.decoder.aligned_projection.weight.numpy()
            )
    np.testing.assert_allclose(inputs[0], expected, atol=1e-5)


@pytest.mark.parametrize("family", [lstm, transformer])
def test_a_shared_table_is_counted_and_stored_once(family: Any) -> None:
    apart, shared, tied = (
        Seq2Seq(family(share_embeddings=share, tie_output=tie), VOCABULARY)
        for share, tie in ((False, False), (True, False), (True, True))
    )

    def count(network: nn.Layer) -> int:
        return sum(int(np.prod(parameter.shape)) for parameter in network.parameters())

    table = VOCABULARY * WIDTH
    assert count(apart) - count(shared) == table
    assert count(shared) - count(tied) == table
    for network in (apart, shared, tied):
        assert sum(array.size for array in read_weights(network).values()) == count(network)


@pytest.mark.parametrize("family", [lstm, transformer])
def test_a_tied_output_learns_the_table(family: Any) -> None:
    network = make(family(share_embeddings=True, tie_output=True))
    network.train()  # the gradient of Paddle's LSTM needs it
    source, lengths, target = batch()
    network(source, lengths, target).square().sum().backward()
    unseen = sorted(set(range(4, VOCABULARY)) - set(source.numpy().ravel()) - set(target.numpy().ravel()))
    gradient = network.source_embedding.weight.grad.numpy()
    assert len(unseen) > 0
    assert (np.abs(gradient[unseen]).max(axis=1) > 0.0).all()  # only the output layer reaches these rows


@FAMILIES
def test_every_parameter_learns(config: ModelConfig) -> None:
    network = make(config)
    network.train()
    source, lengths, target = batch()
    # not a sum of all: over a softmax or a norm that has no gradient
    (
        network(source, lengths, target) * paddle.to_tensor(np.arange(VOCABULARY) % 3.0, "float32")
    ).sum().backward()
    still = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    assert still == []


class BookModel(nn.Layer):
    """The book's couplet network, written plainly from its description: one loop, no caching, no state classes."""

    def __init__(self, vocabulary: int, size: int, layers: int) -> None:
        super().__init__()
        self.source_table = nn.Embedding(vocabulary, size)
        self.target_table = nn.Embedding(vocabulary, size)
        self.reader = nn.LSTM(size, size, layers)
        self.writers = nn.LayerList([nn.LSTMCell(2 * size if n == 0 else size, size) for n in range(layers)])
        self.input_proj = nn.Linear(size, size)
        self.output_proj = nn.Linear(2 * size, size)
        self.classifier = nn.Linear(size, vocabulary)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
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


def copy_to_book(ours: Any, book: BookModel, layers: int) -> None:
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


def test_the_lstm_model_equals_the_books() -> None:
    ours = make(lstm())
    book = BookModel(VOCABULARY, WIDTH, 2)
    copy_to_book(ours, book, 2)
    book.eval()
    inputs = batch()
    expected = book(*inputs).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(ours(*inputs).numpy(), expected, atol=1e-5)


def test_at_its_reference_size_the_lstm_model_has_the_books_parameters() -> None:
    network = Seq2Seq(LstmAttentionConfig(), 7931)
    assert sum(int(np.prod(parameter.shape)) for parameter in network.parameters()) == 8_663_547
