"""The scripts that make the tables of tones, rhymes and associations: what they count, and the tables that ship."""

import random
import subprocess
import sys

import numpy as np
import pytest
from command import ROOT

from paddle_dialog.tasks.couplet.couplets import Couplet
from paddle_dialog.tasks.poem.forms import NAMES
from paddle_dialog.text.characters import TONE_TABLE, Tone, is_hanzi, read_classes, tones
from tools.weights import tone_table as TONES
from tools.weights.couplet import associations as ASSOCIATIONS
from tools.weights.poem import rhyme_table as RHYMES

LEVEL, OBLIQUE = frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE})


def test_the_others_tell_the_tone_of_a_character_by_hand():
    # Second and fourth of both lines: 看 ?, 月 仄; 雨 仄, 山 平. 看 opposes 雨 and alternates with 月: level, and 山
    # is what it must be. 雨 alternates with 山, 月 opposes 山: all known ones agree.
    level, known = TONES.count_uses([("春看春月春", "春雨春山春")])
    assert known == {"看": 1, "雨": 1, "月": 1, "山": 1}
    assert level["看"] == 1 and level["山"] == 1 and level["雨"] == 0 and level["月"] == 0


def test_where_the_known_ones_disagree_nothing_is_counted():
    level, known = TONES.count_uses([("春看春山春", "春雨春山春")])  # 雨 says level, 山 above it oblique
    assert known["看"] == 0 and level["看"] == 0


def test_lines_of_other_lengths_are_left_out():
    assert TONES.count_uses([("春看春月", "春雨春山"), ("春看春月春", "春雨春山春花红")])[1].total() == 0


def test_shares_decide_for_characters_that_cantonese_reads_in_both_tones():
    uses = dict.fromkeys("人地看春", TONES.LEAST_USES) | {"马": TONES.LEAST_USES - 1}
    level = {"人": TONES.LEAST_USES, "地": 1, "看": TONES.LEAST_USES // 2}
    assert TONES.classes_of_uses(level, uses) == {"人": LEVEL, "地": OBLIQUE, "看": LEVEL | OBLIQUE}


def test_the_readings_of_cantonese():
    assert TONES.cantonese_tones("人") == LEVEL | OBLIQUE and TONES.cantonese_tones("春") == LEVEL
    assert TONES.has_entering_tone("一") and not TONES.has_entering_tone("人")


def test_the_table_is_read_as_it_was_written():
    assert TONES.write_classes(read_classes(TONES.VERSE_TABLE)) == TONES.VERSE_TABLE.read_text(
        encoding="utf-8"
    )
    assert (
        TONES.verse_tones("人") == LEVEL
        and TONES.verse_tones("門") == LEVEL
        and TONES.verse_tones("看") == LEVEL | OBLIQUE
    )
    assert TONES.verse_tones("春") == frozenset()  # Cantonese has one tone for it


def test_the_text_by_hand():
    assert TONES.write_tones("春雨看山水月，a") == "山春\n月水雨\n看\n"
    assert TONES.write_tones("") == "\n\n\n"


def test_the_table_is_what_the_libraries_say():
    """All 102,000 hanzi would take ten seconds; common characters and a sample of the rest take one."""
    hanzi = [char for char in map(chr, range(sys.maxunicode + 1)) if is_hanzi(char)]
    for char in [*map(chr, range(0x4E00, 0x5E00)), *random.Random(1).sample(hanzi, 2000)]:
        assert tones(char) == TONES.tones_of_readings(char), char


def test_each_character_stands_once():
    characters = TONE_TABLE.read_text(encoding="utf-8").replace("\n", "")
    assert len(set(characters)) == len(characters) > 40_000
    assert all(map(is_hanzi, characters))


def test_an_association_by_hand():
    pairs = [Couplet("春风花", "瑞雪梅")] * 40 + [Couplet("秋水长", "寒山远")] * 60
    table = ASSOCIATIONS.count_association(pairs, ["春风", "寒山"])
    assert table.words == ("春风", "寒山") and set(table.characters) == set("春风花瑞雪梅秋水长寒山远")
    # p(花) = 0.4; p(花 | 春风) = (40 + 20 * 0.4) / (40 + 20) = 0.8, and log 2 = 0.69 is below 1 nat
    assert table.steps[table.characters.index("花"), 0] == 0
    rare = ASSOCIATIONS.count_association(
        [Couplet("春风花", "瑞雪梅")] * 10 + pairs[40:] * 2, ["春风", "寒山"]
    )
    likely = (10 + 20 * 10 / 130) / (10 + 20)
    assert rare.steps[rare.characters.index("花"), 0] == round(np.log(likely / (10 / 130)) * 40)
    assert rare.steps[rare.characters.index("花"), 1] == 0
    by_line = rare.of("花，秋")  # the comma does not count
    assert by_line[0] == pytest.approx(rare.steps[rare.characters.index("花"), 0] / 40 / 2)
    both = ASSOCIATIONS.grouped(rare, {"all": ["春风", "寒山"]})
    assert both.steps[:, 0].tolist() == rare.steps.mean(axis=1).round().tolist()


def test_rhymes_are_found_from_who_rhymes_with_whom():
    generator = np.random.default_rng(0)
    groups = ["东空红甲乙丙丁", "秋楼舟戊己庚辛"]
    endings = [
        "".join(generator.choice(list(group), 4, replace=False)) for group in groups for _ in range(200)
    ]
    found = RHYMES.find_rhymes(endings)
    assert set(found["东"]) >= set("甲乙丙丁") and set(found["尤"]) >= set("戊己庚辛")
    assert not any(set("甲乙丙丁戊己庚辛") & set(found[name]) for name in NAMES if name not in "东尤")


@pytest.mark.parametrize("name", ["couplet/associations", "poem/rhyme_table", "tone_table"])
def test_a_script_has_help_and_tells_of_a_missing_file_in_one_plain_line(name):
    option = {"couplet/associations": ["--data"], "poem/rhyme_table": [], "tone_table": ["--verse"]}[name]
    for arguments, status in ((["--help"], 0), ([*option, "/nonexistent/file"], 2)):
        command = [sys.executable, f"tools/weights/{name}.py", *arguments]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
        assert ended.returncode == status
    assert ended.stderr.count("\n") == 1 and ended.stderr.startswith("error: /nonexistent/file: no such file")
