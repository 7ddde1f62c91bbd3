"""Counting in regulated verse in which tone poets use a character."""

from paddle_dialog.text.tones import Tone, read_classes, write_classes
from paddle_dialog.tone_table.cantonese import cantonese_tones, has_entering_tone
from paddle_dialog.tone_table.verse_tones import LEAST_USES, TABLE, classes_of_uses, count_uses, verse_tones

LEVEL, OBLIQUE = frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE})


def test_the_others_tell_the_tone_of_a_character_by_hand():
    # Second and fourth of both lines: 看 ?, 月 仄; 雨 仄, 山 平. 看 opposes 雨 and alternates with 月: level, and 山
    # is what it must be. 雨 alternates with 山, 月 opposes 山: all known ones agree.
    level, known = count_uses([("春看春月春", "春雨春山春")])
    assert known == {"看": 1, "雨": 1, "月": 1, "山": 1}
    assert level["看"] == 1 and level["山"] == 1 and level["雨"] == 0 and level["月"] == 0


def test_where_the_known_ones_disagree_nothing_is_counted():
    level, known = count_uses([("春看春山春", "春雨春山春")])  # 雨 says level, 山 above it oblique
    assert known["看"] == 0 and level["看"] == 0


def test_lines_of_other_lengths_are_left_out():
    assert count_uses([("春看春月", "春雨春山"), ("春看春月春", "春雨春山春花红")])[1].total() == 0


def test_shares_decide_for_characters_that_cantonese_reads_in_both_tones():
    uses = dict.fromkeys("人地看春", LEAST_USES) | {"马": LEAST_USES - 1}
    level = {"人": LEAST_USES, "地": 1, "看": LEAST_USES // 2}
    assert classes_of_uses(level, uses) == {"人": LEVEL, "地": OBLIQUE, "看": LEVEL | OBLIQUE}


def test_the_readings_of_cantonese():
    assert cantonese_tones("人") == LEVEL | OBLIQUE and cantonese_tones("春") == LEVEL
    assert has_entering_tone("一") and not has_entering_tone("人")


def test_the_table_is_read_as_it_was_written():
    assert write_classes(read_classes(TABLE)) == TABLE.read_text(encoding="utf-8")
    assert verse_tones("人") == LEVEL and verse_tones("門") == LEVEL and verse_tones("看") == LEVEL | OBLIQUE
    assert verse_tones("春") == frozenset()  # Cantonese has one tone for it
