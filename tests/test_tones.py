import subprocess
import sys

import pytest

from paddle_dialog.text.tones import Tone, can_be_level, can_be_oblique, tones

LEVEL, OBLIQUE = frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE})


@pytest.mark.parametrize(
    ("characters", "known"),
    [
        ("柳雨月雪日去", OBLIQUE),  # rising (上), departing (去) and entering tone (入)
        ("人花来风楼门云情", LEVEL),  # changed tones of Cantonese do not count: 人 jan4 has jan2 in 女人
        ("地马女子里意", OBLIQUE),  # nor do stray readings
        ("看忘望醒论思过听胜中正重长教应", LEVEL | OBLIQUE),  # both are in the rhyme books: 忘 阳韵 and 漾韵
        ("白国十菊竹黑八", OBLIQUE),  # the entering tone, which Mandarin made level
    ],
)
def test_the_tones_of_the_rhyme_books(characters, known):
    assert {char: tones(char) for char in characters} == dict.fromkeys(characters, known)
    assert all(map(can_be_level, "春天山东楼秋"))


def test_first_jyutping_tone_counts_as_level_only_without_a_stop():
    assert tones("东") == LEVEL  # dung1
    assert tones("一") == OBLIQUE  # jat1


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
