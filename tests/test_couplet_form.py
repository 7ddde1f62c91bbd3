import json
import subprocess
import sys

import pytest
from couplet_toys import FORM
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.couplet.form import Form, form_report, tones_can_oppose


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


def test_final_reading_that_fits_is_taken():
    # 看 is hon1 平 and hon3 仄: it may close either line.
    assert form_report("雪", "看").final_pair
    assert form_report("看", "春").final_pair


def test_tone_share_by_hand():
    # 春/雪 平仄 yes, 雨/山 仄平 yes, 山/春 平平 no; the comma is no position of the count
    assert form_report("春雨，山", "雪山，春").tone_opposed == pytest.approx(2 / 3)


def test_tone_share_counts_missing_and_surplus_positions_as_not_opposed():
    assert form_report("春雨", "雪").tone_opposed == pytest.approx(1 / 2)
    assert form_report("雪", "春雨").tone_opposed == pytest.approx(1 / 2)
    assert form_report("春", "a").tone_opposed == 0.0
    assert form_report("，", "，").tone_opposed == 0.0


def test_punctuation_counts_by_position_not_by_mark():
    assert form_report("多事何人？芭蕉闲种", "伤怀如我，寅夜不眠").punctuation_aligned
    assert not form_report("春，雨山", "雪山，春").punctuation_aligned


def test_half_width_punctuation_and_blanks_do_not_matter():
    assert form_report("春雨, 山", "雪山，春") == form_report("春雨，山", "雪山，春")


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


def test_empty_second_line_is_reported_not_an_error():
    report = form_report("春雨", "")
    assert not report.length_equal
    assert not report.final_level
    assert report.tone_opposed == 0.0


def test_tones_can_oppose_uses_any_reading():
    assert tones_can_oppose("看", "春")
    assert tones_can_oppose("看", "雪")
    assert tones_can_oppose("看", "看")
    assert not tones_can_oppose("春", "山")
    assert not tones_can_oppose("雪", "雨")
    assert not tones_can_oppose("春", "")


def test_as_dict_has_the_fields_of_the_json_contract():
    report = json.loads(json.dumps(form_report("春雨", "雪山").as_dict()))
    assert report == FORM


lines = st.text("春雨山雪年，？", max_size=8)


@settings(deadline=None, max_examples=100)
@given(lines, lines)
def test_symmetric_fields_do_not_care_which_line_is_first(one, other):
    forward, backward = form_report(one, other).as_dict(), form_report(other, one).as_dict()
    for name in forward.keys() - {"final_level", "final_pair"}:
        assert forward[name] == backward[name]


def test_form_does_not_load_paddle():
    modules = "{'paddle', 'paddlenlp', 'sacrebleu'}"
    program = f"import sys, tasks.couplet.form; assert not {modules} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)
