"""Beam and greedy search and the scoring of texts, against exhaustive search and hand-computed cases."""

from contextlib import nullcontext
from dataclasses import fields
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from decoding_models import BOS, EOS, TableModel, inputs
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.decoding.scores import ScoreTable, best_candidates
from paddle_dialog.decoding.search import SearchOptions, decode, length_divisor, text_log_probs
from paddle_dialog.errors import UserError

seeds = st.integers(0, 2**31)
penalties = st.tuples(st.sampled_from(["none", "average", "gnmt"]), st.sampled_from([0.0, 0.6, 1.0, 1.7]))


def beam(size, penalty, max_length, n_best=None):
    """Return the options of a beam under a length penalty, given by name and strength."""
    name, alpha = penalty
    return SearchOptions(
        beam_size=size, n_best=n_best or size, length_penalty=name, alpha=alpha, max_length=max_length
    )


def to_the_end():
    """Let the search go on, within a `with` block, when no further text can enter the answer."""
    return mock.patch("paddle_dialog.decoding.search._Beam._is_decided", lambda beam, growing: not growing)


def exhaustive(model, source, max_length, penalty, alpha):
    """Return every text with its penalised score, best first."""
    lengths = {"none": lambda n: 1.0, "average": lambda n: n**alpha, "gnmt": lambda n: ((5 + n) / 6) ** alpha}
    scored = [
        (model.text_log_prob(source, text) / lengths[penalty](len(text) + 1), text)
        for text in model.every_text(max_length)
    ]
    return sorted(scored, reverse=True)


@given(seeds, penalties, st.integers(1, 3), st.integers(1, 6), st.booleans())
@settings(deadline=None, max_examples=40)
def test_a_wide_beam_equals_exhaustive_search(seed, penalty, max_length, n_best, early_stopping):
    model = TableModel(seed)
    options = beam(100, penalty, max_length, n_best)
    with nullcontext() if early_stopping else to_the_end():
        texts = decode(model, *inputs(0, 1, 2), options)
    for source, found in enumerate(texts):
        expected = exhaustive(model, source, max_length, *penalty)[:n_best]
        assert [tuple(h.tokens) for h in found] == [text for _, text in expected]
        np.testing.assert_allclose(
            [h.rank_score for h in found], [s for s, _ in expected], rtol=1e-5, atol=1e-5
        )


@given(seeds, penalties, st.integers(1, 5), st.sampled_from([0.3, 1.0, 3.0]), st.data())
@settings(deadline=None, max_examples=60)
def test_early_stopping_never_changes_the_result(seed, penalty, beam_size, spread, data):
    n_best = data.draw(st.integers(1, beam_size))
    model = TableModel(seed, spread=spread)
    options = beam(beam_size, penalty, 7, n_best)
    stopped = decode(model, *inputs(0, 1), options)
    rows_stopped = sum(model.rows_asked)
    model.rows_asked.clear()
    with to_the_end():
        assert stopped == decode(model, *inputs(0, 1), options)
    assert rows_stopped <= sum(model.rows_asked)


def test_early_stopping_saves_steps():
    model = TableModel(3)
    model.logits[:, :, :, EOS] += 4.0
    decode(model, *inputs(0), SearchOptions(beam_size=4, max_length=7))
    stopped = len(model.rows_asked)
    with to_the_end():
        decode(model, *inputs(0), SearchOptions(beam_size=4, max_length=7))
    assert stopped < len(model.rows_asked) - stopped


@given(seeds, st.integers(1, 6), penalties)
@settings(deadline=None, max_examples=30)
def test_candidates_are_ordered_distinct_and_scored_as_teacher_forced(seed, beam_size, penalty):
    model = TableModel(seed)
    options = beam(beam_size, penalty, 6)
    for source, found in enumerate(decode(model, *inputs(0, 1), options)):
        ranks = [h.rank_score for h in found]
        assert ranks == sorted(ranks, reverse=True)
        assert len({tuple(h.tokens) for h in found}) == len(found) == beam_size
        for h in found:
            forced = model.text_log_prob(source, tuple(h.tokens))
            assert h.log_prob == pytest.approx(forced, rel=1e-5, abs=1e-5)
            assert h.score == pytest.approx(forced / (len(h.tokens) + 1), rel=1e-5, abs=1e-5)
            assert h.rank_score == pytest.approx(
                forced / length_divisor(*penalty)(len(h.tokens) + 1), rel=1e-5
            )
        texts = [h.tokens for h in found]
        sources = inputs(*[source] * len(texts))
        assert text_log_probs(model, *sources, texts) == pytest.approx(
            [h.log_prob for h in found], rel=1e-5, abs=1e-5
        )


@given(seeds, st.integers(1, 4), penalties, st.lists(st.integers(0, 3), min_size=2, max_size=5))
@settings(deadline=None, max_examples=30)
def test_an_input_gets_the_same_result_alone_and_in_a_batch(seed, beam_size, penalty, sources):
    model = TableModel(seed)
    limits = [2 + i for i in range(len(sources))]
    together = decode(model, *inputs(*sources), beam(beam_size, penalty, limits))
    assert together == decode(model, *inputs(*sources), beam(beam_size, penalty, limits))
    for source, limit, found in zip(sources, limits, together, strict=True):
        assert decode(model, *inputs(source), beam(beam_size, penalty, limit)) == [found]


@given(seeds, st.integers(1, 6))
@settings(deadline=None, max_examples=20)
def test_greedy_takes_the_most_probable_token_each_time(seed, max_length):
    model = TableModel(seed)
    found = decode(model, *inputs(0, 1, 2), SearchOptions(strategy="greedy", max_length=max_length))
    for source, (hypothesis,) in enumerate(found):
        text, previous = [], BOS
        while len(text) < max_length:
            previous = int(model.log_probs(source, len(text), previous).argmax())
            if previous == EOS:
                break
            text.append(previous)
        assert hypothesis.tokens == text
        last = model.log_probs(source, len(text), text[-1] if text else BOS)
        assert hypothesis.finished == (last.argmax() == EOS)


def test_finished_inputs_leave_the_batch():
    model = TableModel(0, sources=2)
    model.logits[0, :, :, EOS] = 50.0  # input 0 ends at once
    model.logits[1, :, :, EOS] = -50.0  # input 1 never does
    short, long = decode(model, *inputs(0, 1), SearchOptions(beam_size=3, max_length=4))
    assert short[0].tokens == [] and short[0].finished
    assert len(long[0].tokens) == 4 and not long[0].finished
    assert model.rows_asked == [2, 3, 3, 3, 3]


def scripted(first, second):
    """Return a model of the ids 4, 5 and the end: distributions of the first token and of the second after 4."""
    model = TableModel(0, vocab_size=6, steps=3, sources=1)
    model.logits[:] = np.log(1e-12)
    model.logits[0, 0, BOS, [4, 5, EOS]] = np.log(first)
    model.logits[0, 1, 4, [4, 5, EOS]] = np.log(second)
    model.logits[0, 1, 5, [4, 5, EOS]] = np.log([0.05, 0.05, 0.9])
    model.logits[0, 2, :, EOS] = 0.0
    return model


def test_length_penalties_by_hand():
    # Texts: () .4; (4) .35*.3=.105; (5) .25*.9=.225; (4,4) .35*.6=.21; (4,5) .35*.1=.035; (5,4)=(5,5) .0125
    model = scripted([0.35, 0.25, 0.4], [0.6, 0.1, 0.3])

    expected = {
        # ln .4 = -.9163, ln .225 = -1.4917, ln .21 = -1.5606
        ("none", 1.0): ([[], [5], [4, 4]], [-0.916291, -1.491655, -1.560648]),
        # -.9163 / 1, -1.4917 / 2, -1.5606 / 3
        ("average", 1.0): ([[4, 4], [5], []], [-0.520216, -0.745827, -0.916291]),
        # divisors 1, (7/6)^2 = 1.3611, (8/6)^2 = 1.7778
        ("gnmt", 2.0): ([[4, 4], [], [5]], [-0.877864, -0.916291, -1.095910]),
    }
    for penalty, (texts, scores) in expected.items():
        (best,) = decode(model, *inputs(0), beam(20, penalty, 2, n_best=3))
        assert [h.tokens for h in best] == texts
        assert [h.rank_score for h in best] == pytest.approx(scores, abs=1e-5)


def test_ties_go_to_the_lower_id_and_the_earlier_text():
    model = TableModel(0)
    model.logits[:] = 0.0
    found = decode(model, *inputs(0), SearchOptions(beam_size=5, n_best=5, max_length=1))[0]
    # The end and then, each followed by the end, the other ids in order.
    assert [h.tokens for h in found] == [[], [0], [1], [2], [4]]


def test_a_finished_text_without_slot_counts_only_under_a_length_penalty():
    # Two texts of probability .25 and .245 take both slots from the empty one (.2), then end with 1e-3.
    model = scripted([0.19, 0.6, 0.2], [0.5, 0.49, 0.01])
    model.logits[0, 1, 5, [4, 5, EOS]] = np.log([0.5, 0.49, 0.01])
    model.logits[0, 2, :, EOS] = np.log(1e-3)
    model.logits[0, 2, :, 0] = 0.0

    def texts(penalty):
        options = SearchOptions(beam_size=2, n_best=2, max_length=2, length_penalty=penalty)
        return [h.tokens for h in decode(model, *inputs(0), options)[0]]

    assert texts("none") == [[5, 4], [5, 5]]
    assert texts("average") == [[], [5, 4]]


@given(seeds, st.integers(1, 12), st.sampled_from([3, 130, 700]), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_best_candidates_equal_a_full_sort(seed, count, columns, rows):
    generator = np.random.default_rng(seed)
    groups = np.sort(generator.integers(0, 3, size=rows))
    totals = -generator.integers(0, 4, size=rows).astype(float)
    scores = -generator.integers(0, 30, size=(rows, columns)).astype(np.float32)  # many ties
    scores[generator.random(scores.shape) < 0.3] = -np.inf
    scores[:, 0] = -30.0
    table = ScoreTable(scores, normalised=True)
    rows_found, tokens, _ = best_candidates(table, totals, groups, count)
    expected = []
    for group in np.unique(groups):
        every = [
            (-(totals[r] + scores[r, c]), r, c)
            for r in np.flatnonzero(groups == group)
            for c in range(columns)
            if scores[r, c] > -np.inf
        ]
        expected += [(r, c) for _, r, c in sorted(every)[:count]]
    assert list(zip(rows_found.tolist(), tokens.tolist(), strict=True)) == expected


def test_the_search_takes_log_probabilities_of_a_growing_vocabulary():
    class Copying(TableModel):
        returns_log_probabilities = True

        def step(self, token, state):
            logits, state = super().step(token.clip(max=4), state)
            log_probs = logits - np.log(2 * np.exp(logits).sum(axis=-1, keepdims=True))
            copied = np.full((len(logits), 2), np.log(0.25))
            return np.concatenate([log_probs, copied], axis=-1), state

    found = decode(Copying(5), *inputs(0, 1), SearchOptions(beam_size=200, n_best=1, max_length=2))
    model = TableModel(5)
    for source, (best,) in enumerate(found):
        scored = []
        for length in range(3):
            for text in np.ndindex(*[7] * length):
                if EOS not in text:
                    total, written = 0.0, [BOS, *text, EOS]
                    for t, (a, b) in enumerate(pairwise(written)):
                        inside = model.log_probs(source, t, min(a, 4))
                        total += np.log(0.25) if b > 4 else np.log(0.5) + inside[b]
                    scored.append((total, text))
        assert best.log_prob == pytest.approx(max(scored)[0], rel=1e-5, abs=1e-5)


def test_early_stopping_looks_to_the_end_token_behind_the_longest_text():
    # In the mean () has ln .6 = -.511 and (4, 4) with its end ln .279 / 3 = -.426, though / 2 it would be -.638.
    model = scripted([0.279, 0.121, 0.6], [1.0, 1e-12, 1e-12])
    options = SearchOptions(beam_size=2, length_penalty="average", max_length=2)
    assert decode(model, *inputs(0), options)[0][0].tokens == [4, 4]


def test_every_setting_of_the_section_reaches_the_search():
    settings = DecodingConfig(
        strategy="sample",
        beam_size=6,
        n_best=2,
        length_penalty="gnmt",
        alpha=0.6,
        max_length=9,
        temperature=0.8,
        top_k=4,
        top_p=0.9,
    )
    found = SearchOptions.of(settings, 2, 5, [])
    shared = {f.name for f in fields(SearchOptions)} & {f.name for f in fields(DecodingConfig)}
    assert len(shared) > 8
    assert {name: getattr(found, name) for name in shared} == {
        name: getattr(settings, name) for name in shared
    }


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from([0, 1, 2, 4]), max_size=4)), max_size=8)
)
@settings(deadline=None, max_examples=40)
def test_texts_of_several_inputs_score_as_each_does_alone(pairs):
    model = TableModel(5)
    sources = np.array([[3], [1], [0]])
    found = text_log_probs(
        model, sources, np.ones(3, np.int64), [t for _, t in pairs], [row for row, _ in pairs]
    )
    expected = [model.text_log_prob(int(sources[row, 0]), tuple(text)) for row, text in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    model.logits[..., 4] = -np.inf
    assert text_log_probs(model, sources, np.ones(3, np.int64), [[0, 4]], [1]) == [-np.inf]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 2, "n_best": 3}, "n_best: is 3, but a beam of 2 holds fewer; raise beam_size"),
        (
            {"strategy": "greedy", "n_best": 2},
            "n_best: is 2, but greedy search gives one candidate; take beam or sample",
        ),
    ],
)
def test_more_candidates_than_the_search_finds_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        SearchOptions(**settings)


@pytest.mark.parametrize("name", ["max_length", "beam_size"])
def test_what_each_input_has_must_fit_the_batch(name):
    with pytest.raises(UserError, match=f"{name} has 2 numbers for 3 inputs"):
        decode(TableModel(0), *inputs(0, 1, 2), SearchOptions(**{name: [1, 2]}))


@pytest.mark.parametrize("penalty", ["none", "average"])
def test_copies_of_an_input_are_searched_for_by_beams_of_their_own(penalty):
    options = {"n_best": 4, "max_length": 4, "length_penalty": penalty}
    with to_the_end():
        beside = decode(
            TableModel(1), *inputs(2, 0), SearchOptions(beam_size=[1, 4] * 2, **options), copies=2
        )
        for place, (number, size) in enumerate([(2, 1), (2, 4), (0, 1), (0, 4)]):
            settings = {**options, "n_best": size}
            (alone,) = decode(TableModel(1), *inputs(number), SearchOptions(beam_size=size, **settings))
            assert beside[place][:size] == alone


def test_lengths_must_fit_the_source():
    with pytest.raises(UserError, match=r"source has shape \[2, 1\] and lengths \[1\]"):
        decode(TableModel(0), inputs(0, 1)[0], np.ones(1, dtype=np.int64), SearchOptions())


def test_no_input_gives_no_answer():
    empty = np.zeros((0, 4), dtype=np.int64)
    assert decode(TableModel(0), empty, np.zeros(0, dtype=np.int64), SearchOptions()) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample"])
def test_damaged_weights_are_told(value, strategy):
    model = TableModel(0)
    model.logits[0, 0, 2, 1] = value
    with pytest.raises(UserError, match="NaN or infinity"):
        decode(model, *inputs(0), SearchOptions(strategy=strategy, max_length=2))
