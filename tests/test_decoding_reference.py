"""Our beam against Paddle's decoder and against teacher forcing, on both families.

Each search runs over the networks and over arrays made of their weights; what it is held to is the networks'.
"""

import numpy as np
import paddle
import pytest

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig, TransformerConfig
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_seq2seq import NumpySeq2Seq
from paddle_dialog.models.seq2seq import Seq2Seq

BOS, EOS, VOCABULARY = 2, 3, 12


over_both = pytest.mark.parametrize("over_arrays", [False, True], ids=["network", "arrays"])


def over(arrays, network):
    """Return what the search steps with: the network, or its weights as arrays."""
    if not arrays:
        return network
    return NumpySeq2Seq(network.config, VOCABULARY, read_weights(network))


def sharpened(model):
    """Return enlarge random weights, which give nearly equal probabilities, so that the search has to decide."""
    for parameter in model.parameters():
        parameter.set_value(parameter * (3.0 if parameter.shape[-1] == VOCABULARY else 2.0))
    return model


def with_config(model, config):
    model.config = config
    return model


def lstm(seed=0, **settings):
    paddle.seed(seed)
    config = LstmAttentionConfig(embedding_size=8, hidden_size=8, **settings)
    return sharpened(with_config(Seq2Seq(config, VOCABULARY), config))


def transformer(seed=0, **settings):
    paddle.seed(seed)
    config = TransformerConfig(
        width=8, num_heads=2, inner_width=16, encoder_layers=1, decoder_layers=2, **settings
    )
    return sharpened(with_config(Seq2Seq(config, VOCABULARY), config))


def batch(seed=0, rows=4):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 8, size=rows)
    source = np.zeros((rows, lengths.max()), dtype=np.int64)
    for row, length in enumerate(lengths):
        source[row, :length] = generator.integers(4, VOCABULARY, size=length)
    return paddle.to_tensor(source), paddle.to_tensor(lengths)


@pytest.fixture(scope="module", params=["lstm", "transformer"])
def copying(request):
    """Return a model that has begun to learn to copy its input, so that texts end and yet differ."""
    paddle.seed(0)
    sizes = {"embedding_size": 16, "hidden_size": 16, "num_layers": 2}
    if request.param == "transformer":
        sizes = {"width": 16, "num_heads": 2, "inner_width": 32, "encoder_layers": 1, "decoder_layers": 2}
        config = TransformerConfig(**sizes, dropout=0.0, aligned_input=True)
    else:
        config = LstmAttentionConfig(**sizes, dropout=0.0)
    model = with_config(Seq2Seq(config, VOCABULARY), config)
    optimizer = paddle.optimizer.Adam(0.02, parameters=model.parameters())
    for step in range(60):
        source, lengths = batch(step, rows=16)
        padded = paddle.nn.functional.pad(source, [0, 1], value=0)  # [B, S + 1]
        ends = paddle.nn.functional.one_hot(lengths, padded.shape[1]).astype("int64") * EOS
        written = paddle.concat([paddle.full([16, 1], BOS, "int64"), source], axis=1)  # [B, S + 1]
        logits = model(source, lengths, written)  # [B, S + 1, V]
        loss = paddle.nn.functional.cross_entropy(logits, (padded + ends).unsqueeze(-1), ignore_index=0)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return model


@pytest.mark.parametrize("beam_size", [1, 3, 10])
def test_the_beam_equals_paddles_own(copying, beam_size):
    source, lengths = batch(100, rows=12)
    options = SearchOptions(beam_size=beam_size, n_best=beam_size, max_length=60)
    theirs = reference_beam_search(copying, source, lengths, beam_size, beam_size, max_length=60)
    assert max(len(h.tokens) for found in theirs for h in found) > 4
    for arrays in [False, True]:
        ours = decode(over(arrays, copying), source, lengths, options)
        for found, expected in zip(ours, theirs, strict=True):
            assert all(h.finished for h in expected)
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            np.testing.assert_allclose(
                [h.log_prob for h in found], [h.log_prob for h in expected], rtol=1e-4, atol=1e-5
            )
            np.testing.assert_allclose(
                [h.score for h in found], [h.score for h in expected], rtol=1e-4, atol=1e-5
            )


def test_paddles_decoder_returns_an_open_text_unfinished():
    model = lstm()
    model.output.bias.set_value(-50 * np.eye(VOCABULARY, dtype="float32")[EOS])
    for (found,) in reference_beam_search(model, *batch(), beam_size=2, max_length=3):
        assert not found.finished and len(found.tokens) == 4
        assert found.score == pytest.approx(found.log_prob / 4)


def test_paddles_decoder_refuses_more_candidates_than_beams():
    with pytest.raises(UserError, match=r"n_best is 3.*beam_size \(2\)"):
        reference_beam_search(lstm(), *batch(), beam_size=2, n_best=3)


@over_both
@pytest.mark.parametrize(
    "make",
    [
        lstm,
        lambda: lstm(bidirectional=True, score="additive", input_feeding=False),
        transformer,
        lambda: transformer(aligned_input=True),
    ],
    ids=["lstm", "bidirectional", "transformer", "aligned"],
)
@pytest.mark.parametrize("strategy", ["beam", "sample"])
def test_scores_equal_the_teacher_forced_forward_pass(make, strategy, over_arrays):
    model = make()
    stepping = over(over_arrays, model)
    model.train()  # decode must switch dropout off and on again
    source, lengths = batch()
    options = SearchOptions(strategy=strategy, beam_size=4, n_best=3, max_length=9, seed=1)
    found = decode(stepping, source, lengths, options)
    assert model.training
    model.eval()
    for rank in range(3):
        texts = [candidates[rank].tokens for candidates in found]
        forced = []
        for row, text in enumerate(texts):
            target = paddle.to_tensor([[BOS, *text]])
            length = int(lengths[row])
            logits = model(source[row : row + 1, :length], lengths[row : row + 1], target)[0]  # [T, V]
            log_probs = paddle.log(paddle.nn.functional.softmax(logits.astype("float64"))).numpy()
            forced.append(float(log_probs[np.arange(len(text) + 1), [*text, EOS]].sum()))
        assert [candidates[rank].log_prob for candidates in found] == pytest.approx(
            forced, rel=1e-4, abs=1e-4
        )
        assert text_log_probs(stepping, source, lengths, texts) == pytest.approx(forced, rel=1e-4, abs=1e-4)
