"""`Seq2Seq` over arrays gives the numbers and the texts of the network whose weights it has."""

from typing import Any

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
from paddle_dialog.decoding.interface import TextReader
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.models.numpy_operators import UnsupportedModelError
from paddle_dialog.models.numpy_seq2seq import NumpySeq2Seq, numpy_seq2seq
from paddle_dialog.models.seq2seq import Seq2Seq

VOCABULARY = 90
LSTM: dict[str, Any] = {"embedding_size": 8, "hidden_size": 8}
TRANSFORMER: dict[str, Any] = {
    "width": 8,
    "num_heads": 2,
    "inner_width": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "max_positions": 16,
}
CONFIGS = [
    LstmAttentionConfig(**LSTM),
    LstmAttentionConfig(**LSTM, score="additive", bidirectional=True),
    LstmAttentionConfig(**LSTM, score="bilinear", num_layers=1, input_feeding=False),
    LstmAttentionConfig(embedding_size=12, hidden_size=8, score="scaled_dot", num_layers=3),
    LstmAttentionConfig(**LSTM, tie_output=True, share_embeddings=True),
    TransformerConfig(**TRANSFORMER),
    TransformerConfig(**TRANSFORMER, share_embeddings=False),
    TransformerConfig(**TRANSFORMER, bias=False, aligned_input=True),
    TransformerConfig(**TRANSFORMER, tie_output=False, aligned_input=True),
]


def models(config: ModelConfig, seed: int = 3) -> tuple[Any, Any]:
    """Return a network with random weights, biases and norms included, and the model over arrays made of it."""
    paddle.seed(seed)
    network = Seq2Seq(config, VOCABULARY)
    for parameter in network.parameters():
        parameter.set_value(parameter + 0.3 * paddle.randn(parameter.shape))
    network.eval()
    return network, numpy_seq2seq(config, VOCABULARY, read_weights(network))


@pytest.mark.parametrize("config", [CONFIGS[0], CONFIGS[4], CONFIGS[6]])
def test_padding_is_read_as_zeros_even_where_its_row_holds_numbers(config: ModelConfig) -> None:
    network, made = models(config)
    source, lengths, token = np.array([[5, 0, 3]]), np.array([3]), np.array([0])
    with paddle.no_grad():
        state = network.encode(*map(paddle.to_tensor, (source, lengths)))
        expected = network.step(paddle.to_tensor(token), state)[0].numpy()
    found = made.step(token, made.encode(source, lengths))[0]
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("config", CONFIGS)
def test_search_finds_the_texts_of_the_network(config: ModelConfig) -> None:
    network, made = models(config)
    source = np.array([[5, 6, 7, 3], [8, 3, 0, 0], [9, 9, 3, 0]])
    lengths = np.array([4, 2, 3])
    options = SearchOptions(beam_size=4, n_best=3, max_length=12)
    expected = decode(network, paddle.to_tensor(source), paddle.to_tensor(lengths), options)
    together = decode(made, source, lengths, options)
    alone = [
        decode(made, row[None, :n], np.array([n]), options)[0] for row, n in zip(source, lengths, strict=True)
    ]
    for found in (together, alone):
        assert [[h.tokens for h in each] for each in found] == [[h.tokens for h in each] for each in expected]
        scores = [np.array([h.log_prob for each in answer for h in each]) for answer in (found, expected)]
        np.testing.assert_allclose(*scores, atol=1e-3)


@pytest.mark.parametrize("config", [config for config in CONFIGS if isinstance(config, TransformerConfig)])
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_texts_read_whole_score_as_step_by_step_and_have_the_states_of_the_network(
    config: ModelConfig, data: st.DataObject
) -> None:
    network, made = models(config)
    assert isinstance(made, TextReader)
    lengths = np.array(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)), dtype=np.int64)
    words = st.integers(4, VOCABULARY - 1)
    source = np.zeros((len(lengths), 5), dtype=np.int64)
    for row, length in zip(source, lengths, strict=True):
        row[:length] = data.draw(st.lists(words, min_size=int(length), max_size=int(length)))
    texts = data.draw(st.lists(st.lists(words, max_size=6), max_size=6))
    rows = st.lists(st.integers(0, len(lengths) - 1), min_size=len(texts), max_size=len(texts))
    inputs = np.array(data.draw(rows), dtype=np.int64)
    by_steps = text_log_probs(
        NumpySeq2Seq(config, VOCABULARY, read_weights(network)), source, lengths, texts, inputs
    )
    np.testing.assert_allclose(
        text_log_probs(made, source, lengths, texts, inputs), by_steps, atol=2e-3, rtol=1e-4
    )
    states = made.text_states(source, lengths, texts, inputs)
    for text, row, state in zip(texts, inputs, states, strict=True):
        own = paddle.to_tensor(source[row : row + 1]), paddle.to_tensor(lengths[row : row + 1])
        with paddle.no_grad():
            expected = network(*own, paddle.to_tensor([[2, *text]]))[0].numpy()  # [T + 1, V]
        assert state.shape == (len(text) + 1, config.width)
        np.testing.assert_allclose(made._output(state), expected, atol=2e-4, rtol=1e-4)


def test_many_texts_are_read_in_parts() -> None:
    config = CONFIGS[7]
    network, made = models(config)
    rng = np.random.default_rng(1)
    source, lengths = rng.integers(4, VOCABULARY, (60, 9)), rng.integers(8, 10, 60)
    texts = [rng.integers(4, VOCABULARY, size).tolist() for size in rng.integers(7, 9, 60)]
    by_steps = text_log_probs(NumpySeq2Seq(config, VOCABULARY, read_weights(network)), source, lengths, texts)
    np.testing.assert_allclose(text_log_probs(made, source, lengths, texts), by_steps, atol=2e-3, rtol=1e-4)


def test_an_lstm_reads_step_by_step() -> None:
    assert not isinstance(models(CONFIGS[0])[1], TextReader)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("missing", r"^output\.bias is missing"),
        ("shape", r"^output\.bias is of shape \[\d+\], where "),
        ("foreign", r"^odd\.weight is unknown"),
    ],
)
def test_weights_of_another_model_are_left_to_the_network_to_refuse(change: str, told: str) -> None:
    config = CONFIGS[0]
    weights = read_weights(Seq2Seq(config, VOCABULARY))
    if change == "missing":
        del weights["output.bias"]
    elif change == "shape":
        weights["output.bias"] = weights["output.bias"][:-1]
    else:
        weights["odd.weight"] = np.zeros(1, dtype=np.float32)
    with pytest.raises(UnsupportedModelError, match=told):
        NumpySeq2Seq(config, VOCABULARY, weights)


def test_half_precision_weights_are_widened() -> None:
    config = CONFIGS[0]
    halves = {k: v.astype(np.float16) for k, v in read_weights(Seq2Seq(config, VOCABULARY)).items()}
    widened = {name: values.astype(np.float32) for name, values in halves.items()}
    found, expected = (NumpySeq2Seq(config, VOCABULARY, w) for w in (halves, widened))
    source, lengths, token = np.array([[5, 3]]), np.array([2]), np.array([2])
    ours, theirs = (model.step(token, model.encode(source, lengths))[0] for model in (found, expected))
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours, theirs)
