"""Our beam against Paddle's decoder, on every family.

Each search runs over the network, which reads the prefix again, and in NumPy made of its weights.
"""

from dataclasses import replace

import numpy as np
import paddle
import pytest

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import (
    CausalLmConfig,
    CausalTransformerConfig,
    LstmAttentionConfig,
    RecurrentLmConfig,
    TransformerConfig,
)
from paddle_dialog.decoding.paddle_steps import PrefixModel
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.errors import UserError
from paddle_dialog.models.networks import CausalLm, RecurrentLm
from paddle_dialog.models.numpy_seq2seq import NumpySeq2Seq
from paddle_dialog.models.seq2seq import PointerSeq2Seq, Seq2Seq

BOS, EOS, VOCABULARY = 2, 3, 12
TRANSFORMER = TransformerConfig(
    width=16, num_heads=2, inner_width=32, encoder_layers=1, decoder_layers=2, dropout=0.0, aligned_input=True
)
LSTM = LstmAttentionConfig(embedding_size=16, hidden_size=16, dropout=0.0)
CAUSAL = CausalTransformerConfig(width=16, num_heads=2, inner_width=32, num_layers=2, bias=True)


def sharpened(model):
    """Enlarge random weights, which give nearly equal probabilities, so that the search has to decide."""
    for parameter in model.parameters():
        parameter.set_value(parameter * (3.0 if parameter.shape[-1] == VOCABULARY else 2.0))
    return model


def batch(seed=0, rows=4):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 8, size=rows)
    source = np.zeros((rows, lengths.max()), dtype=np.int64)
    for row, length in enumerate(lengths):
        source[row, :length] = generator.integers(4, VOCABULARY, size=length)
    return source, lengths


FAMILIES = {"lstm": LSTM, "gru": replace(LSTM, cell="gru"), "transformer": TRANSFORMER}


@pytest.fixture(scope="module", params=FAMILIES)
def copying(request):
    """Return a model that has begun to learn to copy its input, so that texts end and yet differ."""
    paddle.seed(0)
    config = FAMILIES[request.param]
    model = Seq2Seq(config, VOCABULARY)
    optimizer = paddle.optimizer.Adam(0.02, parameters=model.parameters())
    for step in range(60):
        source, lengths = map(paddle.to_tensor, batch(step, rows=16))
        padded = paddle.nn.functional.pad(source, [0, 1], value=0)  # [B, S + 1]
        ends = paddle.nn.functional.one_hot(lengths, padded.shape[1]).astype("int64") * EOS
        written = paddle.concat([paddle.full([16, 1], BOS, "int64"), source], axis=1)  # [B, S + 1]
        logits = model(source, lengths, written)  # [B, S + 1, V]
        loss = paddle.nn.functional.cross_entropy(logits, (padded + ends).unsqueeze(-1), ignore_index=0)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return model, NumpySeq2Seq(config, VOCABULARY, read_weights(model))


def assert_same(found, expected):
    """Check that two searches found the same texts with the same scores."""
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        for name in ("log_prob", "score"):
            values = [[getattr(h, name) for h in each] for each in (ours, theirs)]
            np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3, 10])
def test_the_beam_equals_paddles_own(copying, beam_size):
    network, arrays = copying
    source, lengths = batch(100, rows=12)
    options = SearchOptions(beam_size=beam_size, n_best=beam_size, max_length=60)
    theirs = reference_beam_search(network, source, lengths, beam_size, beam_size, max_length=60)
    assert max(len(h.tokens) for found in theirs for h in found) > 4
    assert all(h.finished for found in theirs for h in found)
    network.train()  # the search must switch dropout off and on again
    for model in (PrefixModel(network), arrays):
        assert_same(decode(model, source, lengths, options), theirs)
    assert network.training


@pytest.mark.parametrize(
    "make",
    [
        lambda: Seq2Seq(replace(TRANSFORMER, feed_forward="cc", project_embeddings=True), VOCABULARY),
        lambda: PointerSeq2Seq(LSTM, VOCABULARY),
        lambda: PointerSeq2Seq(replace(TRANSFORMER, aligned_input=False), VOCABULARY),
        lambda: PointerSeq2Seq(CAUSAL, VOCABULARY),
        lambda: CausalLm(CausalLmConfig(width=16, num_heads=2, inner_width=32, num_layers=2), VOCABULARY),
        lambda: RecurrentLm(RecurrentLmConfig(width=16), VOCABULARY, 4),
        lambda: RecurrentLm(RecurrentLmConfig(width=16, cell="gru"), VOCABULARY, 4),
    ],
    ids=["convolutional", "copying lstm", "copying transformer", "copying causal", "causal", "lstm", "gru"],
)
def test_the_beam_equals_paddles_own_for_the_other_families(make):
    paddle.seed(1)
    network = sharpened(make())
    output = getattr(network, "generator", network).output
    output.bias.set_value(5 * np.eye(VOCABULARY, dtype="float32")[EOS])  # else no text would end
    source, lengths = batch(7)
    if isinstance(network, PointerSeq2Seq):
        source[0, 0], source[2, 1] = VOCABULARY, VOCABULARY + 1  # words that can be copied only
    theirs = reference_beam_search(network, source, lengths, 4, 3, max_length=20)
    ended = [[h for h in found if h.finished] for found in theirs]
    assert sum(map(len, ended)) > 4
    found = decode(PrefixModel(network), source, lengths, SearchOptions(beam_size=4, n_best=3, max_length=20))
    for ours, own in zip(found, ended, strict=True):
        assert_same([ours[: len(own)]], [own])


def test_paddles_decoder_returns_an_open_text_unfinished():
    model = sharpened(Seq2Seq(LSTM, VOCABULARY))
    model.output.bias.set_value(-50 * np.eye(VOCABULARY, dtype="float32")[EOS])
    for (found,) in reference_beam_search(model, *batch(), beam_size=2, max_length=3):
        assert not found.finished and len(found.tokens) == 4
        assert found.score == pytest.approx(found.log_prob / 4)


def test_paddles_decoder_refuses_more_candidates_than_beams():
    with pytest.raises(UserError, match=r"n_best is 3.*beam_size \(2\)"):
        reference_beam_search(Seq2Seq(LSTM, VOCABULARY), *batch(), beam_size=2, n_best=3)
