"""Rules, rewards and choices of couplets worked out by hand."""

import numpy as np
import pytest
from couplet_toys import LEVEL, OBLIQUE, toy

from paddle_dialog.decoding.interface import Hypothesis
from tasks.couplet.choice import _Choice
from tasks.couplet.composing.ranking import SET_PHRASE_COST, Scores, quality
from tasks.couplet.composing.themes import Theme
from tasks.couplet.data.couplets import Couplet
from tasks.couplet.preferences.ratings import RatedAnswer, with_own
from tasks.couplet.reward import RewardModel
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.direction import TO_FIRST, TO_SECOND
from tasks.couplet.rules.line_plan import Planner
from tasks.couplet.rules.search import Found

TABLE = CharacterTable(toy(LEVEL + OBLIQUE + "，").vocabulary)
ID = TABLE.vocabulary.id


def test_a_character_of_both_tones_asks_for_none():
    penalties = Planner(TABLE, 0.5, ()).plan("看月", frozenset(), {}).penalties
    assert penalties[0][ID("春")] == penalties[0][ID("雨")] == 0
    assert (penalties[1][ID("春")], penalties[1][ID("雨")]) == (0, 0.5)


def test_a_mark_may_end_a_line_whose_marks_need_not_be_those_of_the_other():
    penalties = Planner(TABLE, 0.0, ()).plan("春月", frozenset({"same_length", "final_tone"}), {}).penalties
    assert penalties[1][ID("，")] == 0 == penalties[1][ID("春")]
    assert penalties[1][ID("雨")] == np.inf


@pytest.mark.parametrize(("total", "takes_the_like_one"), [(-5.5, False), (-6.5, True)])
def test_what_two_candidates_have_in_common_costs(total, takes_the_like_one):
    plan = Planner(TABLE, 0.0, ()).plan("春山秋天", frozenset({"same_length"}), {})

    def candidate(text, score):
        return text, Hypothesis.of(TABLE.vocabulary.encode(text), score, True, score)

    # Two of four characters in common cost .25 of the mean of five tokens: -1 becomes -1.25, between -1.1 and -1.3.
    best, like, other = candidate("雨水月柳", -4.0), candidate("雨水鸟雪", -5.0), candidate("鸟雪海客", total)
    choice = _Choice(Found([best, like, other], plan, frozenset()), 2, 0.5, lambda length: 1.0)
    choice.add([])
    assert choice.taken == [best, like if takes_the_like_one else other]


def test_a_reward_is_the_sum_of_both_directions_per_token():
    predictor = toy(LEVEL + OBLIQUE, 3, marks=True)
    model, vocabulary = predictor.network, predictor.vocabulary

    def score(direction, given, written):
        ids = tuple(vocabulary.encode(written))
        return model.text_log_prob(direction.source(vocabulary, given)[0], ids) / (len(ids) + 1)

    seconds = ["雨水", "月柳鸟雪"]
    expected = [score(TO_SECOND, "春山秋", one) + score(TO_FIRST, one, "春山秋") for one in seconds]
    assert RewardModel(model, vocabulary)("春山秋", seconds) == pytest.approx(expected, abs=1e-5)


def test_a_set_phrase_that_was_asked_for_costs_nothing():
    lines, scores = ("复兴路", "山水间"), Scores(-2.0, -1.0, -2.0)
    unasked = quality(lines, scores, (), (), False)
    asked = quality(lines, scores, (), (Theme("复兴", ("复兴",)),), False)
    assert asked == pytest.approx(unasked + SET_PHRASE_COST)


def test_lines_of_the_least_length_get_the_corpus_s_answer_too():
    rated = [[RatedAnswer("春风", "秋水", 1.0)]]
    assert with_own(rated, [Couplet("春风", "秋雨")], 7.0, 2) == 1
    assert with_own([[RatedAnswer("春风", "秋水", 1.0)]], [Couplet("春风", "秋雨")], 7.0, 3) == 0
