import subprocess
import sys

import pytest

from paddle_dialog.text.tones import Tone, can_be_level, can_be_oblique, tones

LEVEL, OBLIQUE = frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE})


@pytest.mark.parametrize("char", "春天山东楼秋")
def test_level_characters_of_the_rhyme_books(char):
    # 春 真韵, 天 先韵, 山 删韵, 东 东韵; 楼 and 秋 尤韵
    assert can_be_level(char)


@pytest.mark.parametrize("char", "柳雨月雪日去")
def test_oblique_characters_of_the_rhyme_books(char):
    # 柳 and 雨 rising tone (上), 去 departing (去), 月 雪 日 entering (入)
    assert tones(char) == OBLIQUE


@pytest.mark.parametrize("char", "人花来风楼门云情")
def test_changed_tones_of_cantonese_do_not_count(char):
    # 人 jan4 has jan2 in 女人, 花 faa1 has faa2, 楼 lau4 has lau2 …; all level in the rhyme books
    assert tones(char) == LEVEL


@pytest.mark.parametrize("char", "地马女子里意")
def test_stray_readings_do_not_make_a_character_level(char):
    assert tones(char) == OBLIQUE


@pytest.mark.parametrize("char", "看忘望醒论思过听胜中正")
def test_both_readings_of_the_rhyme_books_stay(char):
    # 忘 阳韵 and 漾韵, 论 元韵 and 愿韵, 思 支韵 and 寘韵, 听 青韵 and 径韵 …
    assert tones(char) == LEVEL | OBLIQUE


@pytest.mark.parametrize("char", "白国十菊竹黑八")
def test_entering_tone_is_oblique_though_mandarin_made_it_level(char):
    # Mandarin bái guó shí jú zhú hēi bā would all pass as level
    assert tones(char) == OBLIQUE


def test_first_jyutping_tone_counts_as_level_only_without_a_stop():
    assert tones("东") == LEVEL  # dung1
    assert tones("一") == OBLIQUE  # jat1


@pytest.mark.parametrize("char", "看重长教应")
def test_several_readings_give_both(char):
    # 看 hon1 hon3, 重 cung4 zung6, 长 coeng4 zoeng2, 教 gaau1 gaau3, 应 jing1 jing3
    assert tones(char) == LEVEL | OBLIQUE
    assert can_be_level(char)
    assert can_be_oblique(char)


def test_simplified_and_traditional_agree():
    assert tones("东") == tones("東")
    assert tones("门") == tones("門")


def test_mandarin_answers_where_cantonese_has_no_reading():
    assert tones("鿌") == LEVEL  # liáng
    assert tones("鿃") == OBLIQUE  # shǎn


@pytest.mark.parametrize("char", "，aA1 あ\U0003347f")
def test_unknown_has_no_tone(char):
    assert tones(char) == frozenset()
    assert not can_be_level(char)
    assert not can_be_oblique(char)


def test_zero_and_two_syllable_readings():
    assert tones("〇") == LEVEL  # ling4
    assert Tone.LEVEL in tones("哩")  # lei1 and others; the reading jing1 lei5 is passed over


def test_tones_ask_no_library_of_readings():
    program = (
        "import sys\n"
        "from paddle_dialog.text.tones import tones\n"
        "assert tones('春') and tones('鿌') and not tones('\U0003347f')\n"
        "assert not {'ToJyutping', 'pypinyin'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
