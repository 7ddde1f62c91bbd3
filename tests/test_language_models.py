"""The language model families: packed against single texts, carried state against one pass, arrays against Paddle."""

import numpy as np
import paddle
import pytest

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import CausalLmConfig, RecurrentLmConfig
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.models.language_models import CausalLm, RecurrentLm
from paddle_dialog.models.numpy_language_models import NumpyCausalLm, NumpyRecurrentLm

VOCABULARY = 11
CAUSAL = CausalLmConfig(width=12, num_heads=3, inner_width=20, num_layers=2, max_positions=16)
RECURRENT = RecurrentLmConfig(width=12, num_layers=2)


def causal():
    paddle.seed(1)
    return CausalLm(CAUSAL, VOCABULARY)


def recurrent(reset=True, rows=2):
    paddle.seed(1)
    return RecurrentLm(RecurrentLmConfig(width=12, num_layers=2, reset=reset), VOCABULARY, rows)


def logits(network, ids, positions=None):
    ids = np.atleast_2d(ids)
    positions = np.arange(ids.shape[1])[None].repeat(len(ids), 0) if positions is None else positions
    with paddle.no_grad():
        return network(paddle.to_tensor(ids), paddle.to_tensor(np.atleast_2d(positions))).numpy()


@pytest.mark.parametrize("make", [causal, recurrent])
def test_texts_that_share_a_window_do_not_see_each_other(make):
    network = make()
    network.eval()
    first, second, third = [2, 5, 6], [7, 2, 8, 9], [2, 4, 5]  # the second begins with a title of one token
    packed = logits(network, first + second + third, [0, 1, 2, -1, 0, 1, 2, 0, 1, 2])[0]
    alone = [
        logits(network, text, places)[0]
        for text, places in ((first, [0, 1, 2]), (second, [-1, 0, 1, 2]), (third, [0, 1, 2]))
    ]
    np.testing.assert_allclose(packed, np.concatenate(alone), atol=1e-5)


@pytest.mark.parametrize("reset", [True, False])
def test_a_carried_state_equals_one_long_pass(reset):
    rng = np.random.default_rng(0)
    ids = rng.integers(4, VOCABULARY, (2, 12))
    positions = np.array([[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6], list(range(3, 15))])
    network = recurrent(reset)
    network.train()
    parts = [logits(network, ids[:, a:b], positions[:, a:b]) for a, b in ((0, 3), (3, 8), (8, 12))]
    whole = recurrent(reset)
    whole.train()
    np.testing.assert_allclose(np.concatenate(parts, axis=1), logits(whole, ids, positions), atol=1e-5)


def test_only_a_reset_keeps_the_text_before_from_the_next():
    ids, positions = np.array([[5, 6, 7, 8]]), np.array([[0, 1, 0, 1]])
    other = np.array([[9, 4, 7, 8]])
    for reset in (True, False):
        outputs = []
        for text in (ids, other):
            network = recurrent(reset, rows=1)
            network.train()
            outputs.append(logits(network, text, positions)[0, 2:])
        assert np.allclose(*outputs, atol=1e-6) == reset


def test_gradients_stop_where_the_window_begins():
    network = recurrent(rows=1)
    network.train()
    ids, positions = paddle.to_tensor([[5, 6]]), paddle.to_tensor([[0, 1]])
    network(ids, positions)
    network(paddle.to_tensor([[7, 8]]), positions + 2).sum().backward()
    moved = network.carried.hidden
    assert float(moved.abs().sum()) > 0 and moved.stop_gradient


def test_steps_dropped_on_the_way_equal_the_kernel_of_paddle():
    network = recurrent()
    network.eval()
    ids = np.random.default_rng(2).integers(4, VOCABULARY, (3, 7))
    state = network._empty(3)
    begins = paddle.zeros([3, 7], "bool")
    begins[:, 0] = True  # which drops an empty state, but step by step
    with paddle.no_grad():
        by_step, state_by_step = network._run(paddle.to_tensor(ids), begins, state)
        at_once, state_at_once = network._run(paddle.to_tensor(ids), paddle.zeros_like(begins), state)
    np.testing.assert_allclose(by_step.numpy(), at_once.numpy(), atol=1e-5)
    for one, other in zip(state_by_step, state_at_once, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-5)


@pytest.fixture(params=["causal", "recurrent"])
def pair(request):
    """Return a network and its form over arrays."""
    if request.param == "causal":
        network = causal()
        return network, NumpyCausalLm(CAUSAL, VOCABULARY, read_weights(network))
    network = recurrent()
    return network, NumpyRecurrentLm(RECURRENT, VOCABULARY, read_weights(network))


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
