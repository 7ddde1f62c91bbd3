"""The rules of form as the search keeps them, and candidates to choose from, against looking at every text."""

import itertools
import math

import numpy as np
import pytest
from couplet_toys import LEVEL, NO_RULES, OBLIQUE, ROOMY, best, log_prob, toy
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.tasks.couplet.candidates import (
    PENALTY,
    BeamResult,
    DiverseBeamPenalty,
    choose,
    free_positions,
)
from paddle_dialog.tasks.couplet.config import RulesConfig
from paddle_dialog.tasks.couplet.line_plan import CharacterTable, Planner
from paddle_dialog.tasks.couplet.prompts import TO_FIRST, TO_SECOND
from paddle_dialog.tasks.couplet.rules import (
    RELAXATION_ORDER,
    Rules,
    broken_rules,
    describe,
    form_report,
    wanted_final_tone,
)
from paddle_dialog.text.characters import is_hanzi, is_punctuation, tones

STRATEGIES = [{"strategy": "beam", "n_best": 3}, {"strategy": "greedy"}, {"strategy": "sample", "n_best": 3}]
FIRST_LINES = st.text(alphabet="春山雨水月风，。龘A", min_size=1, max_size=5).filter(
    lambda line: any(is_hanzi(character) for character in line)
)


def test_a_run_shows_greedy_answers_whatever_its_engine():
    sources = [np.array([5, 6, 7])]
    fast = toy(ROOMY, rules={"enabled": False})
    assert toy(ROOMY, rules={"enabled": False}, engine="reference").greedy(sources) == fast.greedy(sources)


@settings(deadline=None, max_examples=100)
@given(
    line=FIRST_LINES,
    seed=st.integers(0, 50),
    strategy=st.sampled_from([*STRATEGIES, {"n_best": 3, "choice": {"distance": 0.5}}]),
    direction=st.sampled_from([TO_SECOND, TO_FIRST]),
)
def test_every_candidate_of_every_strategy_keeps_every_rule(line, seed, strategy, direction):
    predictor = toy(ROOMY, seed, {"tone_weight": 1.0}, marks=True, **strategy)
    (candidates,) = predictor.predict([line], second=direction.writes_first)
    assert len(candidates) == strategy.get("n_best", 1)
    for candidate in candidates:
        form = form_report(*direction.pair(line, candidate.text))
        assert form.length_equal and form.punctuation_aligned and form.repeats_mirrored
        assert not form.shares_character
        assert wanted_final_tone(line, direction) in tones([c for c in candidate.text if is_hanzi(c)][-1])
        assert [(p, c) for p, c in enumerate(candidate.text) if c in "，。"] == [
            (p, c) for p, c in enumerate(line) if c in "，。"
        ]
        assert (candidate.form, candidate.relaxed) == (form, [])


def expected_texts(predictor, first):
    """Return all texts under the first set of relaxed rules that leaves any, best first, by looking at each."""
    characters = predictor.vocabulary.tokens[4:]
    texts = [
        "".join(text)
        for length in range(1, predictor.config.decoding.max_length + 1)
        for text in itertools.product(characters, repeat=length)
    ]
    for kept in predictor.rules.relaxations():
        mirrors = "mirror_repeats" in kept.active
        allowed = [
            text
            for text in texts
            if not broken_rules(first, text, form_report(first, text), kept)
            # Repeats are those of hanzi, so that the two lines must have them at the same positions.
            and not (mirrors and any(is_hanzi(a) > is_hanzi(b) for a, b in zip(first, text)))  # noqa: B905
        ]
        if allowed:
            return sorted(allowed, key=lambda text: -log_prob(predictor, first, text))
    return []


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_wide_beam_finds_the_best_of_all_texts_that_keep_the_rules(data):
    rules = {name: data.draw(st.booleans(), name) for name in NO_RULES}
    first = data.draw(st.text("春雪月，", min_size=1, max_size=3).filter(lambda line: line.strip("，")))
    characters = data.draw(st.sampled_from(["春雨水，", "雨柳，", "春山雨水，"]))
    predictor = toy(characters, data.draw(st.integers(0, 9)), rules, beam_size=160, n_best=3, max_length=3)
    expected = expected_texts(predictor, first)
    found = predictor.predict([first])[0]
    assert [candidate.text for candidate in found] == expected[:3]
    for candidate in found:
        assert candidate.score == pytest.approx(
            log_prob(predictor, first, candidate.text) / (len(candidate.text) + 1), abs=1e-6
        )


@settings(deadline=None, max_examples=40)
@given(
    firsts=st.lists(FIRST_LINES, min_size=2, max_size=5),
    strategy=st.sampled_from([*STRATEGIES, {"n_best": 4, "choice": {"distance": 1 / 3}}]),
    seed=st.integers(0, 9),
)
def test_a_batch_is_answered_as_each_line_alone(firsts, strategy, seed):
    predictor = toy("春山雨水月风花江，", seed, {"tone_weight": 0.5}, **strategy)
    together = predictor.predict(firsts)
    for first, candidates in zip(firsts, together, strict=True):
        (alone,) = predictor.predict([first])
        assert [(c.text, c.relaxed) for c in alone] == [(c.text, c.relaxed) for c in candidates]
        assert [c.score for c in alone] == pytest.approx([c.score for c in candidates])


def test_the_tone_weight_is_what_a_character_must_be_better_by():
    first, rules = "春", {**NO_RULES, "same_length": True}
    for seed in range(10):
        for weight in (0.0, 0.5, 1.0, 2.0):
            predictor = toy("春山秋雨水", seed, {**rules, "tone_weight": weight}, beam_size=8)
            scores = {c: log_prob(predictor, first, c) for c in "春山秋雨水"}
            level = max((scores[c], c) for c in "春山秋")
            oblique = max((scores[c], c) for c in "雨水")
            expected = level[1] if level[0] - weight > oblique[0] else oblique[1]
            answer = best(predictor, first)
            assert answer.text == expected
            assert answer.score == pytest.approx(scores[expected] / 2)


def test_a_question_inside_a_line_is_answered_by_a_comma():
    answer = best(toy(ROOMY, 1), "雨？雪！月？")
    assert [answer.text[place] for place in (1, 3, 5)] == ["，", "！", "？"]
    assert answer.form.punctuation_aligned and answer.relaxed == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("characters", "first", "relaxed"),
    [
        ("水柳客", "雨雪", ["final_tone"]),  # no level character
        ("春雨", "雨春", ["no_shared_character"]),  # 春雨 is all there is
        ("雨雪", "雨雪", ["final_tone", "no_shared_character"]),
        ("春", "雨雪", ["mirror_repeats"]),
        ("雨", "雨雪", ["final_tone", "no_shared_character", "mirror_repeats"]),
    ],
)
def test_what_cannot_be_met_is_relaxed_in_order(characters, first, relaxed, strategy):
    predictor = toy(characters, 2, **strategy)
    answer = best(predictor, first)
    assert answer.relaxed == relaxed
    assert answer.text and answer.as_dict()["relaxed"] == relaxed
    # A neighbour in the batch that can meet all rules keeps them.
    other, again = predictor.predict(["靐", first])
    assert again[0].text == answer.text and other[0].text


def test_relaxations_go_from_one_rule_to_all():
    active = frozenset(["final_tone", "mirror_repeats", "same_length"])
    relaxed = list(Rules(active, 1.5).relaxations())
    assert [sorted(active - rules.active) for rules in relaxed] == [
        [],
        ["final_tone"],
        ["mirror_repeats"],
        ["same_length"],
        ["final_tone", "mirror_repeats"],
        ["final_tone", "mirror_repeats", "same_length"],
    ]
    assert {rules.tone_weight for rules in relaxed} == {1.5}
    assert list(Rules().relaxations()) == [Rules()]


def test_the_rules_in_words():
    assert describe(RulesConfig(enabled=False)) == "no rules"
    assert describe(RulesConfig(tone_weight=1.0)) == "rules, tone weight 1"
    config = RulesConfig(final_tone=False, same_length=False, tone_weight=0.5)
    assert describe(config) == "rules without final_tone, same_length, tone weight 0.5"
    assert toy(ROOMY, strategy="greedy").decoding_summary() == "greedy, rules, tone weight 0"


TABLE = CharacterTable(toy(LEVEL + OBLIQUE + "，").vocabulary)


@pytest.mark.parametrize(
    ("rules", "line", "place", "penalties"),
    [
        (Rules(tone_weight=0.5), "看月", 0, {"春": 0, "雨": 0}),  # a character of both tones asks for none
        (Rules(tone_weight=0.5), "看月", 1, {"春": 0, "雨": 0.5}),
        # A mark may end a line whose marks need not be those of the other.
        (Rules(frozenset({"same_length", "final_tone"})), "春月", 1, {"，": 0, "春": 0, "雨": np.inf}),
    ],
)
def test_what_a_plan_takes_off_by_hand(rules, line, place, penalties):
    planned = Planner(TABLE, rules).plan(line, {}).penalties[place]
    assert {char: planned[TABLE.vocabulary.id(char)] for char in penalties} == penalties


@pytest.mark.parametrize(("total", "takes_the_like_one"), [(-5.5, False), (-6.5, True)])
def test_what_two_candidates_have_in_common_costs(total, takes_the_like_one):
    plan = Planner(TABLE, Rules(frozenset({"same_length"}))).plan("春山秋天", {})

    def candidate(text, score):
        return text, Hypothesis.of(TABLE.vocabulary.encode(text), score, True, score)

    # Two of four characters in common cost .25 of the mean of five tokens: -1 becomes -1.25, between -1.1 and -1.3.
    best, like, other = candidate("雨水月柳", -4.0), candidate("雨水鸟雪", -5.0), candidate("鸟雪海客", total)
    taken = like if takes_the_like_one else other
    assert choose(BeamResult([best, like, other], plan), 2, 0.5) == [best, taken]


LONGER_LINES = st.text("春山雨水月风，。", min_size=1, max_size=7).filter(
    lambda line: any(map(is_hanzi, line))
)


def unlike(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True) if not is_punctuation(a))


@settings(deadline=None, max_examples=40)
@given(first=LONGER_LINES, seed=st.integers(0, 50), share=st.sampled_from([1 / 3, 0.5, 1.0]))
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


PLANNER = Planner(CharacterTable(toy("山江鸟霜，").vocabulary), Rules(frozenset(RELAXATION_ORDER)))


@settings(deadline=None, max_examples=60)
@given(line=st.text("春雨水，", min_size=1, max_size=6).filter(lambda text: text.strip("，")))
def test_free_positions_count_every_hanzi_once(line):
    assert free_positions(PLANNER.plan(line, {})).sum() == sum(map(is_hanzi, line))


def test_a_second_beam_pays_for_what_the_rows_of_the_first_write():
    penalty = DiverseBeamPenalty([PLANNER.plan("春，雨", {}), PLANNER.plan("春雨", {})])
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
