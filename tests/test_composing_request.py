"""What can be asked of a composed couplet: patterns, tones, themes, names; and what is refused, in one sentence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import Tone
from tasks.couplet.composing.drafts import make_drafts
from tasks.couplet.composing.patterns import Pattern, usual_patterns, wanted_patterns
from tasks.couplet.composing.request import read_wish
from tasks.couplet.composing.themes import has_word, main_themes, read_themes, usual_themes
from tasks.couplet.composing.tone_schemes import broken_tones, schemes

P, Z = Tone.LEVEL, Tone.OBLIQUE


def test_a_pattern_knows_where_its_clauses_and_commas_stand():
    pattern = Pattern((4, 5, 3))
    assert (str(pattern), pattern.length) == ("4+5+3", 12)
    assert pattern.positions == [[0, 1, 2, 3], [5, 6, 7, 8, 9], [11, 12, 13]]
    assert pattern.commas == [4, 10]


def test_every_length_from_4_to_15_has_a_usual_pattern():
    assert {pattern.length for pattern in usual_patterns()} == set(range(4, 16))
    assert {str(pattern) for pattern in wanted_patterns(11, None)} == {"4+7", "5+6", "7+4"}
    assert [str(pattern) for pattern in wanted_patterns(None, None)] == ["7"]


def test_tone_schemes_by_hand():
    assert schemes(Pattern((4,))) == [{1: P, 3: Z}]
    assert schemes(Pattern((5,))) == [{1: Z, 3: P, 4: Z}, {1: P, 2: P, 3: Z, 4: Z}]
    seven = schemes(Pattern((7,)))
    assert seven == [{1: P, 3: Z, 5: P, 6: Z}, {1: Z, 3: P, 4: P, 5: Z, 6: Z}]
    ends = [scheme[3] for scheme in schemes(Pattern((4, 9)))]
    assert ends == [P]  # 平仄
    (free,) = schemes(Pattern((9,)))
    assert free == {8: Z}
    fives = [{place: s[place] for place in (4, 10, 16, 22)} for s in schemes(Pattern((5, 5, 5, 5)))]
    assert all(ends == {4: Z, 10: P, 16: P, 22: Z} for ends in fives)  # 仄平平仄


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("爆竹一声除旧岁", []),  # 爆竹(仄) 一声(平) 除旧(仄) 岁(仄)
        ("春风又绿江南岸", []),
        ("春风又绿江南山", ["first_final_tone"]),
        ("清山江天雪海绿", ["alternating_tones"]),
        ("春满人间，花开大地", []),
        ("清江雪海，秋天老鸟", ["clause_ends"]),
        ("", []),
    ],
)
def test_the_tones_of_known_lines(line, broken):
    assert broken_tones(line) == broken


def test_themes_of_the_table_go_by_several_names_and_others_are_words_themselves():
    assert len(main_themes()) == 288 == len(set(main_themes()))
    assert usual_themes()["新年"].words == usual_themes()["春节"].words
    spring, chess = read_themes(" 春节、 象牙 ")
    assert "新春" in spring.words and chess.words == ("象牙",)
    assert all(
        len(word) == 2 and all(map(is_hanzi, word)) for t in usual_themes().values() for word in t.words
    )
    assert read_themes("") == ()


@pytest.mark.parametrize(
    ("line", "word", "stands"),
    [
        ("外婆桥上月", "外婆", True),
        ("竹外婆娑云里客", "外婆", False),
        ("三更喜见外婆", "外婆", True),
        ("春风又见吾外婆", "外婆", True),
        ("桃李密枝春不老", "李密", False),
        ("月下，外婆犹未睡", "外婆", True),
        ("月下，问外婆安否", "外婆", False),
        ("遥看象牙塔", "象牙塔", True),
    ],
)
def test_a_word_stands_in_the_rhythm_of_its_clause(line, word, stands):
    assert has_word(line, word) is stands


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"name": "L"}, "the name 'L' has a character that is not Chinese"),
        ({"name": "李明 W"}, "not Chinese"),
        ({"name": " "}, "the name is empty"),
        ({"name": "一二三四五六七八九"}, "has 9 characters; up to 8"),
        ({"theme": "春" * 40}, "has 40 characters; give words of up to 4"),
        ({"theme": "tea"}, "'tea' has a character that is not Chinese"),
        ({"theme": "山 水 云 月"}, "4 words; a couplet has room for 3"),
        ({"length": 3}, "length 3 has no usual pattern; a line has 4 to 15"),
        ({"length": 40}, "length 40 has no usual pattern"),
        ({"length": 10, "pattern": "4+7"}, "pattern 4+7 has 11 characters and length is 10"),
        ({"pattern": "seven"}, "pattern 'seven' is none"),
        ({"pattern": "9+9"}, "has 18 characters; a line has 4 to 15"),
        ({"pattern": "1+7"}, "a clause has 2 to 11"),
        ({"name": "李明", "place": 8}, "place 8 is outside the line; it has 7"),
        ({"place": 2}, "place 2 says where a name stands"),
        ({"theme": "海纳百川", "name": "李明", "length": 4}, "finds no room beside a character of the name"),
        ({"count": 0}, "count is 0"),
        ({"theme": ["春节"]}, "theme is ['春节']; give one text"),
        ({"scroll": "spring"}, "the 横批 'spring' is not Chinese"),
        ({"scroll": "春" * 9}, "has 9 characters; four are usual"),
    ],
)
def test_what_cannot_be_met_is_refused_in_one_sentence(request_, said):
    with pytest.raises(UserError) as error:
        read_wish(**request_)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_traditional_characters_are_read_as_simplified_ones():
    assert read_wish(theme="春節 圍棋", name="趙雲") == read_wish(theme="春节 围棋", name="赵云")


def test_a_long_name_makes_several_couplets():
    assert read_wish(name="李明").parts == ["李明"]
    assert read_wish(name="春江花月夜").parts == ["春江", "花月", "夜"]
    assert read_wish().parts == [""]


NAMES = st.text("李明春江花月夜王芳伟秀英娜敏静强磊军洋", min_size=0, max_size=2)
THEMES = st.lists(st.sampled_from([*main_themes(), "围棋", "程序员", "灯"]), max_size=2, unique=True)


@settings(max_examples=60, deadline=None)
@given(
    name=NAMES,
    theme=THEMES,
    pattern=st.sampled_from(list(usual_patterns())),
    place=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_a_draft_places_the_name_and_holds_the_rest_to_a_scheme(name, theme, pattern, place, seed):
    place = place if name else 1
    try:
        wish = read_wish(" ".join(theme), name, place, None, str(pattern))
    except UserError:
        return
    for draft in make_drafts(wish, name, 8, np.random.default_rng(seed)):
        spot = [p for clause in pattern.positions for p in clause][place - 1]
        placed = draft.first.get(spot, ""), draft.second.get(spot, "")
        assert all(character == found for character, found in zip(name, placed, strict=False))
        assert draft.tones in schemes(pattern) and len(draft.told) <= 4
        assert not set(pattern.commas) & {*draft.first, *draft.second}
        assert len(draft.template) == len(draft.lock) == pattern.length + len(pattern.commas)
        assert all((draft.template[p], draft.lock[p]) == ("，", "，") for p in pattern.commas)
