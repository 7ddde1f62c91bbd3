"""The table of tones against the libraries that it was made from, and that nothing else is asked."""

import random
import sys

from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import TABLE, tones
from paddle_dialog.tone_table.readings import tones_of_readings, write_tones


def test_the_text_by_hand():
    assert write_tones("春雨看山水月，a") == "山春\n月水雨\n看\n"
    assert write_tones("") == "\n\n\n"


def test_the_table_is_what_the_libraries_say():
    """All 102,000 hanzi would take ten seconds; common characters and a sample of the rest take one."""
    hanzi = [char for char in map(chr, range(sys.maxunicode + 1)) if is_hanzi(char)]
    for char in [*map(chr, range(0x4E00, 0x5E00)), *random.Random(1).sample(hanzi, 2000)]:
        assert tones(char) == tones_of_readings(char), char


def test_each_character_stands_once():
    characters = TABLE.read_text(encoding="utf-8").replace("\n", "")
    assert len(set(characters)) == len(characters) > 40_000
    assert all(map(is_hanzi, characters))
