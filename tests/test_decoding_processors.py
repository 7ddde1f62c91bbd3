"""Every logits processor by hand, and together in a search."""

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
