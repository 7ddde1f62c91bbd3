"""Sampling against the probabilities it is drawn from."""

import numpy as np
import pytest
from decoding_models import BOS, EOS, TableModel, charge, inputs
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding.processors import ForbiddenTokens
from paddle_dialog.decoding.sampling import draw_tokens, sampling_distribution, uniform_numbers
from paddle_dialog.decoding.search import SearchOptions, decode


def distribution(log_probs, temperature, top_k, top_p):
    """Return the distribution of one row."""
    (weights,) = sampling_distribution(np.array([log_probs]), temperature, top_k, top_p)
    return weights / weights.sum()


PROBABILITIES = np.array([0.05, 0.4, 0.1, 0.25, 0.2])


def test_temperature_by_hand():
    # Squared at temperature 1/2: .01, .04, .25 of .30.
    found = distribution(np.log([0.1, 0.2, 0.5]), 0.5, 0, 1.0)
    np.testing.assert_allclose(found, [1 / 30, 4 / 30, 25 / 30], rtol=1e-6)


def test_top_k_and_top_p_by_hand():
    def support(top_k, top_p):
        return distribution(np.log(PROBABILITIES), 1.0, top_k, top_p)

    np.testing.assert_allclose(support(2, 1.0), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], rtol=1e-6)
    np.testing.assert_allclose(support(0, 0.5), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], rtol=1e-6)
    np.testing.assert_allclose(support(0, 0.4), [0, 1, 0, 0, 0])  # exactly reached
    np.testing.assert_allclose(support(0, 0.41), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], rtol=1e-6)
    # After top-k 3 the probabilities are .47, .29, .24: half of that mass is reached by two.
    np.testing.assert_allclose(support(3, 0.5), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], rtol=1e-6)
    np.testing.assert_allclose(support(9, 1.0), PROBABILITIES, rtol=1e-6)


def test_ties_at_the_edge_of_top_k_keep_the_lower_ids():
    found = distribution(np.log([0.1, 0.3, 0.3, 0.3]), 1.0, 2, 1.0)
    np.testing.assert_allclose(found, [0, 0.5, 0.5, 0], rtol=1e-6)


@given(
    st.lists(st.floats(-12, 0), min_size=1, max_size=40),
    st.floats(0.1, 3),
    st.integers(0, 41),
    st.floats(0.01, 1),
)
@settings(deadline=None, max_examples=200)
def test_the_nucleus_is_the_smallest_set_that_holds_the_mass(scores, temperature, top_k, top_p):
    log_probs = np.array(scores)
    full = distribution(log_probs, temperature, top_k, 1.0)
    found = distribution(log_probs, temperature, top_k, top_p)
    assert found.sum() == pytest.approx(1.0)
    if 0 < top_k < len(scores):
        assert (full > 0).sum() == top_k
    kept = found > 0
    assert full[kept].min() >= full[~kept].max(initial=0.0)
    assert full[kept].sum() >= top_p - 1e-9
    assert full[kept].sum() - full[kept].min() < top_p + 1e-9


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        ({}, PROBABILITIES),
        ({"temperature": 2.0}, np.sqrt(PROBABILITIES) / np.sqrt(PROBABILITIES).sum()),
        ({"top_k": 3}, np.array([0, 0.4, 0, 0.25, 0.2]) / 0.85),
        ({"top_p": 0.6}, np.array([0, 0.4, 0, 0.25, 0]) / 0.65),
    ],
    ids=["plain", "temperature", "top_k", "top_p"],
)
def test_frequencies_follow_the_distribution(settings_, expected):
    model = TableModel(0)
    model.logits[0, 0, BOS] = np.log(PROBABILITIES)
    draws = 4000
    options = SearchOptions(strategy="sample", n_best=draws, max_length=1, seed=7, **settings_)
    found = decode(model, *inputs(0), options)[0]
    first = [h.tokens[0] if h.tokens else EOS for h in found]
    counts = np.bincount(first, minlength=5)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    wanted = draws * expected[possible]
    chi_square = ((counts[possible] - wanted) ** 2 / wanted).sum()
    # 99.9 % quantiles of chi-square with 1, 2, 4 degrees of freedom.
    assert chi_square < {1: 10.83, 2: 13.82, 4: 18.47}[int(possible.sum()) - 1]


@given(st.integers(0, 1000), st.integers(1, 4), st.lists(st.integers(0, 3), min_size=2, max_size=5))
@settings(deadline=None, max_examples=30)
def test_an_input_gets_the_same_draws_alone_and_in_a_batch(seed, n_best, sources):
    model = TableModel(1)
    limits = [1 + i for i in range(len(sources))]

    def draw(which, max_length):
        options = SearchOptions(strategy="sample", n_best=n_best, max_length=max_length, seed=seed)
        return decode(model, *inputs(*which), options)

    together = draw(sources, limits)
    assert together == draw(sources, limits)
    for source, limit, found in zip(sources, limits, together, strict=True):
        assert draw([source], limit) == [found]


def test_seeds_and_draws_differ():
    model = TableModel(1, spread=0.1)

    def texts(seed):
        options = SearchOptions(strategy="sample", n_best=8, max_length=7, seed=seed)
        return [tuple(h.tokens) for h in decode(model, *inputs(0), options)[0]]

    assert len(set(texts(0))) > 4
    assert texts(0) != texts(1)


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_scores_are_the_models_own_whatever_the_distribution(seed):
    model = TableModel(seed)
    options = SearchOptions(
        strategy="sample", n_best=3, max_length=5, temperature=1.7, top_k=3, top_p=0.9, seed=seed,
        processors=[ForbiddenTokens([[0]])],
    )  # fmt: skip
    for source, found in enumerate(decode(model, *inputs(0, 1), options)):
        assert [h.rank_score for h in found] == sorted((h.rank_score for h in found), reverse=True)
        for h in found:
            assert 0 not in h.tokens
            assert h.log_prob == pytest.approx(
                model.text_log_prob(source, tuple(h.tokens)), rel=1e-5, abs=1e-5
            )
            assert h.score == pytest.approx(h.log_prob / (len(h.tokens) + 1))


def test_a_text_without_any_allowed_token_is_left_out():
    everything = ForbiddenTokens([[0, 1, 2, 3, 4], []])
    options = SearchOptions(strategy="sample", n_best=2, max_length=3, processors=[everything])
    dead, alive = decode(TableModel(0), *inputs(0, 1), options)
    assert dead == [] and len(alive) == 2


@given(
    scores=st.lists(
        st.lists(
            st.sampled_from([-0.5, -1.0, -1.0000001, -2.0, -30.0, -900.0, -np.inf]), min_size=9, max_size=9
        ),
        min_size=1,
        max_size=5,
    ),
    temperature=st.floats(0.1, 3),
    top_k=st.just(0) | st.integers(0, 10),
    top_p=st.just(1.0) | st.floats(0.01, 1),
    uniform=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=8),
)
@settings(deadline=None, max_examples=300)
def test_draws_invert_the_cumulative_distribution_of_their_row(scores, temperature, top_k, top_p, uniform):
    table = np.array(scores, dtype=np.float32)
    rows = np.arange(len(uniform)) % len(scores)
    drawn = draw_tokens(table, rows, np.array(uniform), temperature, top_k, top_p)
    for token, row, number in zip(drawn.tolist(), rows, uniform, strict=True):
        if np.isneginf(table[row]).all():
            assert token == -1
            continue
        cumulative = np.cumsum(distribution(table[row], temperature, top_k, top_p), dtype=np.float64)
        below = cumulative[token - 1] if token else 0.0
        assert cumulative[token] > below  # a token of the distribution
        assert below - 1e-6 <= number <= cumulative[token] + 1e-6  # of float32 scores


def test_draws_depend_on_seed_draw_and_the_numbers_of_the_input():
    found = [*uniform_numbers(2**32 + 5, 2, [7, 0, 9], 4), *uniform_numbers(2**32 + 5, 2, [4, 8], 4)]
    for numbers, (draw, ids) in zip(
        found, [(0, [7, 0, 9]), (1, [7, 0, 9]), (0, [4, 8]), (1, [4, 8])], strict=True
    ):
        expected = np.random.default_rng([2**32 + 5, draw, *ids]).random(4)
        np.testing.assert_array_equal(numbers, expected)


def test_draws_are_ranked_by_what_rules_leave_of_their_scores():
    weight = np.array([0.0, 1.5, 0.0, 0.0, 0.7])
    options = SearchOptions(
        strategy="sample", n_best=30, max_length=2, processors=[charge({0: weight, 1: weight})]
    )
    found = decode(TableModel(1), *inputs(0), options)[0]
    assert {1, 4} & {token for hypothesis in found for token in hypothesis.tokens}
    for hypothesis in found:
        charged = sum(weight[token] for token in hypothesis.tokens)
        assert hypothesis.rank_score == pytest.approx(hypothesis.log_prob - charged, abs=1e-5)


def test_draws_that_begin_alike_are_computed_once_until_they_part():
    model = TableModel(0)
    options = SearchOptions(strategy="sample", n_best=50, max_length=4, seed=3)
    found = decode(model, *inputs(0, 1), options)
    texts = [sorted(tuple(h.tokens) for h in each) for each in found]
    assert [len(each) for each in texts] == [50, 50]
    prefixes = [{text[:size] for text in each if len(text) >= size} for each in texts for size in range(5)]
    rows = model.rows_asked
    assert rows[0] == 2
    assert rows == [len(prefixes[size]) + len(prefixes[5 + size]) for size in range(len(rows))]
