"""Every logits processor by hand and in a search; sampling against the probabilities it is drawn from."""

from itertools import pairwise

import numpy as np
import pytest
from decoding_models import BOS, EOS, TableModel, charge, inputs
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding.processors import (
    ForbiddenTokens,
    ForcedPrefix,
    MinimumLength,
    NoRepeatNGram,
    Prefixes,
)
from paddle_dialog.decoding.sampling import draw_tokens, sampling_distribution, uniform_numbers
from paddle_dialog.decoding.search import SearchOptions, decode

INF = float("inf")


def applied(processor, *texts, numbers=None, vocabulary=8, scores=None):
    """Score after a processor, from -1 everywhere, for prefixes of equal length."""
    tokens = np.array(texts, dtype=np.int64).reshape(len(texts), -1)
    numbers = np.arange(len(texts)) if numbers is None else np.array(numbers)
    table = np.full((len(texts), vocabulary), -1.0, dtype=np.float32) if scores is None else scores
    processor(table, Prefixes(tokens, numbers, np.full(len(texts), 9)))
    return table


def allowed(table):
    return [np.flatnonzero(row > -INF).tolist() for row in table]


def forbidden(table):
    return [np.flatnonzero(row == -INF).tolist() for row in table]


def test_a_forced_prefix_is_forced_to_its_end():
    prefix = ForcedPrefix([[4, 5], []])
    assert allowed(applied(prefix, [], []))[0] == [4]
    assert allowed(applied(prefix, [4], [6]))[0] == [5]
    assert [len(row) for row in allowed(applied(prefix, [4, 5], [6, 6]))] == [8, 8]


def test_forbidden_tokens_for_all_for_each_and_at_positions():
    assert forbidden(applied(ForbiddenTokens([[1, 4]]), [5], [5])) == [[1, 4], [1, 4]]
    each = ForbiddenTokens([[1], [], [2, 3]])
    assert forbidden(applied(each, [5], [5], [5], numbers=[0, 2, 1])) == [[1], [2, 3], []]
    placed = ForbiddenTokens([[1], [2]], positions=[[0], [1, 2]])
    assert forbidden(applied(placed, [], [])) == [[1], []]
    assert forbidden(applied(placed, [5], [5])) == [[], [2]]


def test_minimum_length_forbids_the_end():
    assert forbidden(applied(MinimumLength(2), [5])) == [[EOS]]
    assert forbidden(applied(MinimumLength(2), [5, 5])) == [[]]


def test_no_repeat_n_gram_by_hand():
    # 4 5 6 4 5: after "4 5" came 6; after 5 came 6; 4, 5, 6 were written.
    text = [4, 5, 6, 4, 5]
    assert forbidden(applied(NoRepeatNGram(3), text)) == [[6]]
    assert forbidden(applied(NoRepeatNGram(2), text)) == [[6]]
    assert forbidden(applied(NoRepeatNGram(1), text)) == [[4, 5, 6]]
    assert forbidden(applied(NoRepeatNGram(4), text)) == [[]]
    assert forbidden(applied(NoRepeatNGram(2), [4, 4], [4, 5])) == [[4], []]
    assert forbidden(applied(NoRepeatNGram(6), text)) == [[]]
    with pytest.raises(ValueError, match="1 or more"):
        NoRepeatNGram(0)


@given(st.lists(st.integers(0, 3), max_size=9), st.integers(1, 4))
@settings(deadline=None, max_examples=100)
def test_no_repeat_n_gram_equals_its_definition(text, size):
    def repeats(longer):
        grams = [tuple(longer[i : i + size]) for i in range(len(longer) - size + 1)]
        return grams[-1:] and grams[-1] in grams[:-1]

    table = applied(NoRepeatNGram(size), text, vocabulary=4)
    assert forbidden(table) == [[token for token in range(4) if repeats([*text, token])]]


def permitted(text, number):
    """Return the rules of the search below, restated on finished texts."""
    first = [[4], [1, 1]][number]
    pairs = list(pairwise(text))
    return (
        len(text) >= 2 and [*text[: len(first)]] == first and 0 not in text and len(set(pairs)) == len(pairs)
    )


@given(st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_a_constrained_wide_beam_equals_filtering_every_text(seed):
    model = TableModel(seed)
    rules = [ForcedPrefix([[4], [1, 1]]), ForbiddenTokens([[0]]), MinimumLength(2), NoRepeatNGram(2)]
    options = SearchOptions(beam_size=100, n_best=4, max_length=4, processors=rules)
    for number, found in enumerate(decode(model, *inputs(0, 1), options)):
        texts = [text for text in model.every_text(4) if permitted(text, number)]
        texts.sort(key=lambda text: -model.text_log_prob(number, text))
        assert [tuple(h.tokens) for h in found] == texts[:4]
        for h in found:
            # Hard rules leave the probability of what they allow alone.
            assert h.log_prob == pytest.approx(
                model.text_log_prob(number, tuple(h.tokens)), rel=1e-5, abs=1e-5
            )
            assert h.rank_score == pytest.approx(h.log_prob)


@given(st.integers(0, 2**31), st.sampled_from(["none", "average"]))
@settings(deadline=None, max_examples=20)
def test_a_soft_rule_moves_the_order_and_not_the_probability(seed, penalty):
    model = TableModel(seed)
    weight = np.array([0.0, 1.5, 0.0, 0.0, 0.7])
    processors = [charge({0: weight, 1: weight})]
    options = SearchOptions(
        beam_size=100, n_best=100, max_length=2, length_penalty=penalty, processors=processors
    )

    def rank(text):
        total = model.text_log_prob(0, text) - sum(weight[t] for t in text)
        return total / (len(text) + 1 if penalty == "average" else 1)

    found = decode(model, *inputs(0), options)[0]
    assert [tuple(h.tokens) for h in found] == sorted(model.every_text(2), key=lambda text: -rank(text))
    for h in found:
        assert h.rank_score == pytest.approx(rank(tuple(h.tokens)), rel=1e-4, abs=1e-5)
        assert h.log_prob == pytest.approx(model.text_log_prob(0, tuple(h.tokens)), rel=1e-4, abs=1e-5)


def test_rules_that_allow_nothing_give_an_empty_answer_and_leave_the_others_alone():
    rules = [ForcedPrefix([[0], []]), ForbiddenTokens([[0], []])]
    options = SearchOptions(beam_size=3, max_length=3, processors=rules)
    plain = SearchOptions(beam_size=3, max_length=3)
    dead, alive = decode(TableModel(0), *inputs(0, 1), options)
    assert dead == [] and [alive] == decode(TableModel(0), *inputs(1), plain)


def test_a_finished_text_survives_when_every_longer_one_dies():
    # Two texts of .3 take both slots from the empty text (.25); then a rule forbids everything.
    model = TableModel(0)
    model.logits[0, 0, BOS] = np.log([0.05, 0.05, 0.05, 0.25, 0.6])
    model.logits[0, 1, 4] = np.log([0.499, 0.499, 0.001, 0.0005, 0.0005])
    options = SearchOptions(beam_size=2, max_length=3)
    rules = [charge({2: np.full(5, INF)})]
    constrained = SearchOptions(beam_size=2, max_length=3, processors=rules)
    assert decode(model, *inputs(0), options)[0][0].tokens[:1] == [4]
    assert [h.tokens for h in decode(model, *inputs(0), constrained)[0]] == [[]]


def test_a_processor_that_raises_a_score_above_certainty_is_refused():
    def bonus(scores, prefixes):
        scores += 50.0

    with pytest.raises(ValueError, match="penalties, not bonuses"):
        decode(TableModel(0), *inputs(0), SearchOptions(max_length=2, processors=[bonus]))


# Sampling


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
