"""Rules and choices of couplets worked out by hand."""

import numpy as np
import pytest
from couplet_toys import LEVEL, OBLIQUE, toy

from paddle_dialog.decoding.interface import Hypothesis
from tasks.couplet.choice import Found, _Choice
from tasks.couplet.composing.proposals import SET_PHRASE_COST, Scores, quality
from tasks.couplet.composing.request import Theme
from tasks.couplet.couplets import Couplet
from tasks.couplet.line_plan import CharacterTable, Planner
from tasks.couplet.preferences.rated import RatedAnswer, with_own
from tasks.couplet.rules import Rules

TABLE = CharacterTable(toy(LEVEL + OBLIQUE + "，").vocabulary)
ID = TABLE.vocabulary.id


def test_a_character_of_both_tones_asks_for_none():
    penalties = Planner(TABLE, Rules(tone_weight=0.5)).plan("看月", {}).penalties
    assert penalties[0][ID("春")] == penalties[0][ID("雨")] == 0
    assert (penalties[1][ID("春")], penalties[1][ID("雨")]) == (0, 0.5)


def test_a_mark_may_end_a_line_whose_marks_need_not_be_those_of_the_other():
    penalties = Planner(TABLE, Rules(frozenset({"same_length", "final_tone"}))).plan("春月", {}).penalties
    assert penalties[1][ID("，")] == 0 == penalties[1][ID("春")]
    assert penalties[1][ID("雨")] == np.inf


@pytest.mark.parametrize(("total", "takes_the_like_one"), [(-5.5, False), (-6.5, True)])
def test_what_two_candidates_have_in_common_costs(total, takes_the_like_one):
    plan = Planner(TABLE, Rules(frozenset({"same_length"}))).plan("春山秋天", {})

    def candidate(text, score):
        return text, Hypothesis.of(TABLE.vocabulary.encode(text), score, True, score)

    # Two of four characters in common cost .25 of the mean of five tokens: -1 becomes -1.25, between -1.1 and -1.3.
    best, like, other = candidate("雨水月柳", -4.0), candidate("雨水鸟雪", -5.0), candidate("鸟雪海客", total)
    choice = _Choice(Found([best, like, other], plan), 2, 0.5, lambda length: 1.0)
    choice.add([])
    assert choice.taken == [best, like if takes_the_like_one else other]


def test_a_set_phrase_that_was_asked_for_costs_nothing():
    lines, scores = ("复兴路", "山水间"), Scores(-2.0, -1.0, -2.0)
    unasked = quality(lines, scores, (), (), False)
    asked = quality(lines, scores, (), (Theme("复兴", ("复兴",)),), False)
    assert asked == pytest.approx(unasked + SET_PHRASE_COST)


def test_lines_of_the_least_length_get_the_corpus_s_answer_too():
    rated = [[RatedAnswer("春风", "秋水", 1.0)]]
    assert with_own(rated, [Couplet("春风", "秋雨")], 7.0, 2) == 1
    assert with_own([[RatedAnswer("春风", "秋水", 1.0)]], [Couplet("春风", "秋雨")], 7.0, 3) == 0
