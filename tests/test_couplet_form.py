"""The report on the form of a couplet, by hand; rates over many; and the couplets that ship keep the rules."""

import pytest
from couplet_toys import FORM
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.tasks.couplet.couplets import read_couplets
from paddle_dialog.tasks.couplet.evaluation import form_rates
from paddle_dialog.tasks.couplet.form import Form, form_report, rhythm_opposed
from paddle_dialog.text.characters import is_hanzi, normalise_line


def test_example_couplet_by_hand():
    # 一 / 万 both 仄, 风 / 如 both 平, 顺 / 意 both 仄; 帆 平 / 事 仄, 年 平 / 步 仄 twice, 好 仄 / 高 平.
    assert form_report("一帆风顺年年好", "万事如意步步高") == Form(
        length_equal=True,
        punctuation_aligned=True,
        final_level=True,
        final_pair=True,
        tone_opposed=4 / 7,
        repeats_mirrored=True,
        shares_character=False,
    )


def test_every_rule_broken_by_hand():
    # 春雨，春 / 山雪春高日: no mark in the second, 日 仄 at the end, 春 shared and no longer repeated.
    # 春/山 平平 no, 雨/雪 仄仄 no, ，/春 and 春/高 平平 no, nothing/日 no: 0 of 5
    assert form_report("春雨，春", "山雪春高日") == Form(
        length_equal=False,
        punctuation_aligned=False,
        final_level=False,
        final_pair=False,
        tone_opposed=0.0,
        repeats_mirrored=False,
        shares_character=True,
    )


def test_final_tones_look_behind_trailing_punctuation():
    report = form_report("山雪！", "雨春？")
    assert report.final_level
    assert report.final_pair
    assert not form_report("雪山。", "雨春。").final_pair
    assert not form_report("山雪。", "春雨。").final_level


def test_tone_share_counts_missing_and_surplus_positions_as_not_opposed():
    assert form_report("春雨", "雪").tone_opposed == pytest.approx(1 / 2)
    assert form_report("雪", "春雨").tone_opposed == pytest.approx(1 / 2)
    assert form_report("春", "a").tone_opposed == 0.0
    assert form_report("，", "，").tone_opposed == 0.0


def test_punctuation_counts_by_position_not_by_mark():
    assert form_report("多事何人？芭蕉闲种", "伤怀如我，寅夜不眠").punctuation_aligned
    assert not form_report("春，雨山", "雪山，春").punctuation_aligned


@pytest.mark.parametrize(
    ("first", "second", "mirrored"),
    [
        ("年年好", "步步高", True),
        ("年年好", "步高高", False),  # repeated elsewhere
        ("年年好", "山步高", False),  # repetition lost
        ("年山好", "步步高", False),  # repetition of its own
        ("年年年", "步步高", False),  # only part of it
        ("山水山，水水", "日月日，月月", True),
        ("山，水，日", "月，云，星", True),  # punctuation repeats freely
        ("山水山水", "日月月日", False),
    ],
)
def test_repeats_mirrored(first, second, mirrored):
    assert form_report(first, second).repeats_mirrored is mirrored


def test_shared_punctuation_and_letters_are_no_shared_character():
    assert not form_report("春，Ａ山！", "雪，A水！").shares_character
    assert form_report("春，山", "雪，春").shares_character


lines = st.text("春雨山雪年，？", max_size=8)


@settings(deadline=None, max_examples=100)
@given(lines, lines)
def test_symmetric_fields_do_not_care_which_line_is_first(one, other):
    forward, backward = form_report(one, other).as_dict(), form_report(other, one).as_dict()
    for name in forward.keys() - {"final_level", "final_pair"}:
        assert forward[name] == backward[name]


@pytest.mark.parametrize(
    ("first", "second", "opposed"),
    [
        ("春雨", "山鸟", False),  # 雨 and 鸟 are both oblique; the first place is free
        ("雨雨", "鸟春", True),
        ("春雨山，春", "春山鸟，鸟", True),  # even places and ends: 雨 山, 山 鸟 and 春 鸟
        ("春雨山，春", "春山山，鸟", False),  # 山 ends the first clause of both
        ("春雨山", "春", True),  # lengths that differ are another fault
    ],
)
def test_the_even_places_and_the_ends_are_opposed(first, second, opposed):
    assert rhythm_opposed(first, second) is opposed


FIRSTS = ["春雨", "年年，雪"]
HYPOTHESES = ["雪山", "日日,春"]
# pair 1: all rules kept, tones 2/2. Pair 2: 年 平 / 日 仄 twice and 雪 仄 / 春 平: 3/3.


def test_form_rates_by_hand():
    rates = form_rates([*FIRSTS, "春雨"], [*HYPOTHESES, "春雪，"])
    # pair 3: longer, its comma stands alone, ends 仄, 春/春 平平 and 雨/雪 仄仄: 0/2, 春 shared, no repeats
    assert rates == pytest.approx(
        {
            "length_equal": 2 / 3,
            "punctuation_aligned": 2 / 3,
            "final_level": 2 / 3,
            "final_pair": 2 / 3,
            "tone_opposed": (1 + 1 + 0) / 3,
            "repeats_mirrored": 1.0,
            "shares_character": 1 / 3,
            "distinct_1": 5 / 9,  # 雪 山 日 ， 春 of 雪山日日，春春雪，
            "distinct_2": 6 / 6,  # 雪山 日日 日， ，春 春雪 雪，
        }
    )


def test_the_shipped_couplets_are_normalised_differ_and_keep_the_rules():
    pairs = [(couplet.first, couplet.second) for couplet in read_couplets("sample")]
    lines = [line for pair in pairs for line in pair]
    assert len(pairs) >= 360 and len(set(lines)) == len(lines)
    for line in lines:
        assert line == normalise_line(line) and 4 <= len(line) <= 13
        assert all(is_hanzi(char) or char in "，、" for char in line), line
    for first, second in pairs:
        opposed = form_report(first, second).tone_opposed
        assert form_report(first, second).as_dict() == FORM | {"tone_opposed": opposed}, (first, second)
        assert opposed > 0.5 and marks(first) == marks(second), (first, second)
    rates = form_rates(*zip(*pairs, strict=True))
    assert rates["tone_opposed"] >= 0.80


def marks(line):
    return [(place, char) for place, char in enumerate(line) if not is_hanzi(char)]
