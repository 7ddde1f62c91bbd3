"""Score functions and attention against plain numpy, position by position."""

import math

import numpy as np
import paddle
import pytest

from paddle_dialog.errors import UserError
from paddle_dialog.layers.attention import (
    AdditiveScore,
    Attention,
    BilinearScore,
    Score,
    ScoreName,
    make_score,
)

NAMES: list[ScoreName] = ["additive", "dot", "scaled_dot", "bilinear"]
BATCH, STEPS, SOURCE, SIZE, HIDDEN = 2, 4, 3, 5, 6


def one_score(score: Score, name: str, query: np.ndarray, key: np.ndarray) -> float:
    """Score one query [H] against one memory vector [K], straight from the formula."""
    if name == "additive":
        assert isinstance(score, AdditiveScore)
        w, u, v = (layer.weight.numpy() for layer in (score.key_proj, score.query_proj, score.score_proj))
        return float(v[:, 0] @ np.tanh(w.T @ key + u.T @ query))
    if name == "bilinear":
        assert isinstance(score, BilinearScore)
        return float(np.einsum("h,kh,k->", query, score.key_proj.weight.numpy(), key))
    return float(query @ key) / (math.sqrt(len(query)) if name == "scaled_dot" else 1.0)


def random_inputs(key_size: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    query = rng.normal(size=(BATCH, STEPS, SIZE)).astype("float32")
    memory = rng.normal(size=(BATCH, SOURCE, key_size)).astype("float32")
    return query, memory


@pytest.mark.parametrize("name", NAMES)
def test_score_is_the_formula(name: ScoreName) -> None:
    key_size = 7 if name in ("additive", "bilinear") else SIZE
    query, memory = random_inputs(key_size)
    score = make_score(name, SIZE, key_size, HIDDEN)
    keys = score.prepare(paddle.to_tensor(memory))
    all_steps = score(paddle.to_tensor(query), keys).numpy()
    expected = [[[one_score(score, name, q, k) for k in memory[b]] for q in query[b]] for b in range(BATCH)]
    np.testing.assert_allclose(all_steps, expected, atol=1e-5)
    one_step = score(paddle.to_tensor(query[:, 1]), keys).numpy()
    assert one_step.shape == (BATCH, SOURCE)
    np.testing.assert_allclose(one_step, np.asarray(expected)[:, 1], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("additive", 7 * 6 + 5 * 6 + 6), ("bilinear", 7 * 5), ("dot", 0), ("scaled_dot", 0)],
)
def test_parameter_count(name: ScoreName, parameters: int) -> None:
    score = make_score(name, 5, 7 if parameters else 5, 6)
    assert sum(math.prod(p.shape) for p in score.parameters()) == parameters


@pytest.mark.parametrize("name", NAMES)
def test_context_is_the_weighted_mean_of_real_positions(name: ScoreName) -> None:
    query, memory = random_inputs()
    values = np.random.default_rng(4).normal(size=(BATCH, SOURCE, 8)).astype("float32")
    mask = np.array([[True, True, False], [True, True, True]])
    attention = Attention(make_score(name, SIZE, SIZE, HIDDEN))
    keys = attention.score.prepare(paddle.to_tensor(memory))
    arguments = (keys, paddle.to_tensor(values), paddle.to_tensor(mask))
    context, weights = attention(paddle.to_tensor(query), *arguments, return_weights=True)

    scores = attention.score(paddle.to_tensor(query), keys).numpy()
    expected = np.exp(scores) * mask[:, None, :]
    expected /= expected.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(weights.numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(context.numpy(), np.einsum("bts,bsd->btd", expected, values), atol=1e-5)
    assert (weights.numpy()[0, :, 2] == 0.0).all()

    step = attention(paddle.to_tensor(query[:, 2]), *arguments)
    np.testing.assert_allclose(step.numpy(), context.numpy()[:, 2], atol=1e-6)


def test_weights_by_hand() -> None:
    attention = Attention(make_score("dot", 1, 1, 1))
    memory = paddle.to_tensor([[[0.0], [math.log(3.0)], [9.0]]])
    mask = paddle.to_tensor([[True, True, False]])
    context, weights = attention(paddle.to_tensor([[1.0]]), memory, memory, mask, return_weights=True)
    np.testing.assert_allclose(weights.numpy(), [[0.25, 0.75, 0.0]], atol=1e-6)
    np.testing.assert_allclose(context.numpy(), [[0.75 * math.log(3.0)]], atol=1e-6)


def test_without_a_mask_all_positions_count() -> None:
    query, memory = (paddle.to_tensor(array) for array in random_inputs())
    attention = Attention(make_score("scaled_dot", SIZE, SIZE, HIDDEN))
    everything = paddle.ones([BATCH, SOURCE], dtype="bool")
    unmasked = attention(query, memory, memory).numpy()
    np.testing.assert_allclose(unmasked, attention(query, memory, memory, everything).numpy(), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_fully_masked_row_gives_zero_and_finite_gradients(name: ScoreName) -> None:
    query, memory = (paddle.to_tensor(array, stop_gradient=False) for array in random_inputs())
    attention = Attention(make_score(name, SIZE, SIZE, HIDDEN))
    mask = paddle.to_tensor([[False, False, False], [True, True, True]])
    context, weights = attention(query, attention.score.prepare(memory), memory, mask, return_weights=True)
    assert (weights.numpy()[0] == 0.0).all()
    assert (context.numpy()[0] == 0.0).all()
    context.sum().backward()
    assert np.isfinite(memory.grad.numpy()).all()
    assert np.isfinite(query.grad.numpy()).all()


def test_masked_values_do_not_influence_the_context() -> None:
    query, memory = random_inputs()
    other = memory.copy()
    other[:, 2] = 1e6
    mask = paddle.to_tensor([[True, True, False]] * BATCH)
    attention = Attention(make_score("additive", SIZE, SIZE, HIDDEN))
    contexts = []
    for array in (memory, other):
        tensor = paddle.to_tensor(array)
        keys = attention.score.prepare(tensor)
        contexts.append(attention(paddle.to_tensor(query), keys, tensor, mask).numpy())
    np.testing.assert_array_equal(contexts[0], contexts[1])


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_dot_product_of_two_sizes_is_refused(name: ScoreName) -> None:
    with pytest.raises(UserError, match="5 and 7"):
        make_score(name, 5, 7, 6)


def test_unknown_score_is_refused() -> None:
    with pytest.raises(UserError, match="'cosine' is unknown"):
        make_score("cosine", 5, 5, 5)  # type: ignore[arg-type]
