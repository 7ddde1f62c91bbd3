"""Candidates to choose from: how far apart they are, against the enumeration of every text."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from couplet_toys import LEVEL, OBLIQUE, log_prob, toy
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.tasks.couplet.line_plan import CharacterTable, Planner
from paddle_dialog.tasks.couplet.rules import RELAXATION_ORDER, Rules
from paddle_dialog.tasks.couplet.search import PENALTY, BeamResult, DiverseBeamPenalty, choose, free_positions
from paddle_dialog.text.characters import is_hanzi, is_punctuation

ROOMY = LEVEL + OBLIQUE + "，。"
FIRST_LINES = st.text(alphabet="春山雨水月风，。", min_size=1, max_size=7).filter(
    lambda line: any(is_hanzi(character) for character in line)
)


def unlike(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True) if not is_punctuation(a))


def hanzi(line: str) -> int:
    return sum(not is_punctuation(character) for character in line)


@settings(deadline=None, max_examples=40)
@given(first=FIRST_LINES, seed=st.integers(0, 50), share=st.sampled_from([1 / 3, 0.5, 1.0]))
def test_the_best_candidate_stays_and_the_others_follow_by_their_scores(first, seed, share):
    plain = toy(ROOMY, seed, beam_size=10).predict([first], n_best=1)[0][0]
    (candidates,) = toy(ROOMY, seed, beam_size=10, choice={"distance": share}).predict([first], n_best=4)
    texts = [candidate.text for candidate in candidates]
    assert (texts[0], len(set(texts))) == (plain.text, 4)
    scores = [candidate.score for candidate in candidates]
    assert scores[1:] == sorted(scores[1:], reverse=True)  # no tone weight, one length: the rank is the score
    for candidate in candidates:
        assert candidate.relaxed == []
        expected = log_prob(toy(ROOMY, seed), first, candidate.text) / (len(first) + 1)
        assert candidate.score == pytest.approx(expected, abs=1e-6)


@settings(deadline=None)
@given(
    texts=st.lists(st.text("山江鸟霜", min_size=4, max_size=4), min_size=1, max_size=12, unique=True),
    wanted=st.integers(1, 6),
    distance=st.sampled_from([0.25, 0.5, 1.0]),
)
def test_alike_candidates_are_taken_only_where_no_others_are_left(texts, wanted, distance):
    table = CharacterTable(toy("山江鸟霜").vocabulary)
    plan = Planner(table, Rules()).plan("春雨水月", {})
    pool = [
        (text, Hypothesis.of(table.vocabulary.encode(text), -rank, True, -rank))
        for rank, text in enumerate(texts, start=1)
    ]
    chosen = [text for text, _ in choose(BeamResult(pool, plan), wanted, distance)]
    assert chosen[0] == texts[0] and len(chosen) == len(set(chosen)) == min(wanted, len(texts))
    apart = [text for text in chosen if all(unlike(text, c) >= 4 * distance for c in chosen if c != text)]
    if len(apart) < len(chosen):  # nothing that was left out is far from all that were chosen
        for text in set(texts) - set(chosen):
            assert any(unlike(text, other) < 4 * distance for other in chosen)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 50), first=st.sampled_from(["春雨", "月春雨", "雨雨春"]))
def test_a_second_candidate_is_the_best_of_all_texts_that_far_from_the_first(seed, first):
    characters = "春雨柳山鸟霜"
    predictor = toy(characters, seed, {"tone_weight": 0.5}, beam_size=300, choice={"distance": 0.6})
    wide = toy(characters, seed, {"tone_weight": 0.5}, beam_size=300)
    everything = wide.predict([first], n_best=300)[0]
    least = math.ceil(0.6 * len(first))
    apart = [c for c in everything[1:] if unlike(c.text, everything[0].text) >= least]
    found = predictor.predict([first], n_best=2)[0]
    assert found[0].text == everything[0].text
    if apart:
        # All of them have at most one character in common with the best; what that costs is below any gap here.
        alike = {c.text: len(first) - unlike(c.text, everything[0].text) for c in apart}
        fewest = [c for c in apart if alike[c.text] == min(alike.values())]
        assert found[1].text in {apart[0].text, fewest[0].text}


def test_a_third_of_seven_characters_is_three_and_repetitions_count_for_all_their_places():
    found = toy(ROOMY, 1, choice={"distance": 1 / 3}).predict(["春雨春山月春水"], n_best=5)[0]
    assert min(unlike(a.text, b.text) for a, b in itertools.combinations(found, 2)) >= 3
    assert all(c.text[0] == c.text[2] == c.text[5] for c in found)


@settings(deadline=None, max_examples=60)
@given(line=st.text("春雨水，", min_size=1, max_size=6).filter(lambda text: text.strip("，")))
def test_free_positions_count_every_hanzi_once(line):
    plan = Planner(CharacterTable(toy("山江鸟霜，").vocabulary), Rules(frozenset(RELAXATION_ORDER))).plan(
        line, {}
    )
    assert free_positions(plan).sum() == hanzi(line)


def test_a_second_beam_pays_for_what_the_rows_of_the_first_write():
    planner = Planner(CharacterTable(toy("山江鸟霜，").vocabulary), Rules(frozenset(RELAXATION_ORDER)))
    penalty = DiverseBeamPenalty([planner.plan("春，雨", {}), planner.plan("春雨", {})])
    scores = np.zeros((6, 9))
    scores[0, 5] = scores[1, 5] = scores[2, 6] = 1.0  # rows of input 0, whose copy has row 3
    expected = scores.copy()
    expected[3, 5] -= PENALTY * 2 / 3
    expected[3, 6] -= PENALTY / 3
    inputs = np.array([0, 0, 0, 1, 3, 3])  # the first beam of the second line has ended
    for place in range(3):
        found = scores.copy()
        penalty(found, Prefixes(np.zeros((6, place), dtype=np.int64), inputs, np.full(6, 9)))
        np.testing.assert_allclose(found, scores if place == 1 else expected)
