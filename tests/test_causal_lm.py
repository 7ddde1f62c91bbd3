"""The language model: packed against single texts, steps against the whole pass, arrays against Paddle."""

import numpy as np
import paddle
import pytest
from paddle_dialog.models.causal_lm import CausalLm
from paddle_dialog.models.numpy_causal_lm import NumpyCausalLm

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import CausalLmConfig
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.decoding.search import SearchOptions, decode

VOCABULARY = 11
CAUSAL = CausalLmConfig(width=12, num_heads=3, inner_width=20, num_layers=2, max_positions=16)


def causal():
    paddle.seed(1)
    return CausalLm(CAUSAL, VOCABULARY)


def logits(network, ids, positions=None):
    ids = np.atleast_2d(ids)
    positions = np.arange(ids.shape[1])[None].repeat(len(ids), 0) if positions is None else positions
    with paddle.no_grad():
        return network(paddle.to_tensor(ids), paddle.to_tensor(np.atleast_2d(positions))).numpy()


def test_texts_that_share_a_window_do_not_see_each_other():
    network = causal()
    network.eval()
    first, second, third = [2, 5, 6], [7, 2, 8, 9], [2, 4, 5]  # the second begins with a title of one token
    packed = logits(network, first + second + third, [0, 1, 2, -1, 0, 1, 2, 0, 1, 2])[0]
    alone = [
        logits(network, text, places)[0]
        for text, places in ((first, [0, 1, 2]), (second, [-1, 0, 1, 2]), (third, [0, 1, 2]))
    ]
    np.testing.assert_allclose(packed, np.concatenate(alone), atol=1e-5)


@pytest.fixture
def pair():
    """Return a network and its form over arrays."""
    network = causal()
    return network, NumpyCausalLm(CAUSAL, VOCABULARY, read_weights(network))


def test_steps_after_a_title_equal_the_whole_pass(pair):
    network, arrays = pair
    network.eval()
    titles, text = [[7, 8, 9], [], [5]], [2, 6, 4, 10]
    source = np.array([[7, 8, 9], [0, 0, 0], [5, 0, 0]])
    lengths = np.array([3, 0, 1])
    for model, tensor in ((network, paddle.to_tensor), (arrays, np.asarray)):
        with paddle.no_grad():
            state = model.encode(tensor(source), tensor(lengths))
            steps = []
            for token in text:
                output, state = model.step(tensor(np.full(3, token)), state)
                steps.append(np.array(output))
        for row, title in enumerate(titles):
            places = np.arange(-len(title), len(text))
            expected = logits(network, title + text, places)[0, len(title) :]
            np.testing.assert_allclose(np.stack(steps, 1)[row], expected, atol=1e-4)


def test_arrays_and_network_write_the_same_texts(pair):
    source, lengths = np.array([[7, 8], [9, 0]]), np.array([2, 1])
    options = SearchOptions(strategy="beam", beam_size=4, n_best=4, max_length=5)
    by_network, by_arrays = (decode(model, source, lengths, options) for model in pair)
    for ours, theirs in zip(by_network, by_arrays, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        np.testing.assert_allclose([h.score for h in ours], [h.score for h in theirs], atol=1e-4)


def test_texts_that_are_read_whole_have_the_log_probability_of_their_steps(pair):
    source, lengths = np.array([[7, 8], [9, 0], [0, 0]]), np.array([2, 1, 0])
    texts, inputs = [[4, 5, 6], [10], [], [5, 5], [8, 4, 4, 4]], [1, 0, 1, 2, 0]
    by_steps, read_whole = (text_log_probs(model, source, lengths, texts, inputs) for model in pair)
    np.testing.assert_allclose(read_whole, by_steps, atol=1e-4)
