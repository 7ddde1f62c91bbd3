"""Characters and their tones, traditional and simplified ones, the language of a text, vocabularies."""

import re
import string
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import (
    Tone,
    can_be_level,
    can_be_oblique,
    is_hanzi,
    is_punctuation,
    language_of,
    normalise_line,
    simplified,
    tones,
)
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_hanzi_are_the_unified_ideographs_of_unicode_and_the_zero():
    for char in map(chr, range(0x110000)):
        name = unicodedata.name(char, "")
        if name:
            # Twelve "compatibility" ideographs stand for no other character: they are unified ones, misnamed.
            is_own = name.startswith("CJK COMPATIBILITY IDEOGRAPH-") and not unicodedata.decomposition(char)
            expected = name.startswith("CJK UNIFIED IDEOGRAPH-") or is_own or char == "〇"
            assert is_hanzi(char) == expected and not (expected and is_punctuation(char)), name


def test_punctuation():
    assert all(map(is_punctuation, string.punctuation + "，。！？；：、“”‘’（）《》【】—…·～｡､＋"))
    assert not any(map(is_punctuation, "春a1１〇 ○"))


@pytest.mark.parametrize(
    ("line", "normal"),
    [
        ("  晚风摇树,树还挺 \n", "晚风摇树，树还挺"),
        ("春 风\u3000纵\t马", "春风纵马"),
        ("春\x02风\u200b纵\ufeff马\ufe00", "春风纵马"),
        (",.!?;:", "，。！？；："),
        ("，．！？；：", "，。！？；："),
        ("｡､﹐︒︑", "。、，。、"),
        ("多事何人?芭蕉闲种.", "多事何人？芭蕉闲种。"),
        ("（春）…—“风”《马》", "（春）…—“风”《马》"),
        ("ＡＢ１２⼀", "AB12一"),
        ("裏里裡〇㐀𠀀", "裏里裡〇㐀𠀀"),
        ("", ""),
        (" \u3000", ""),
    ],
)
def test_normalise_line(line, normal):
    assert normalise_line(line) == normal


@settings(deadline=None, max_examples=200)
@given(st.text())
@example("⒈")
def test_normalising_twice_changes_nothing_more(line):
    once = normalise_line(line)
    assert normalise_line(once) == once


@settings(deadline=None, max_examples=100)
@given(st.text())
def test_hanzi_pass_untouched_and_in_order(line):
    kept = [char for char in normalise_line(line) if is_hanzi(char)]
    remaining = iter(kept)
    assert all(char in remaining for char in line if is_hanzi(char))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("我覺得很難過，沒有人瞭解我。", "我觉得很难过，没有人了解我。"),
        ("妳為什麼還愛著她？", "你为什么还爱着她？"),
        ("他是著名的作家，成績顯著。", "他是著名的作家，成绩显著。"),
        ("我今天很开心😊 OK!", "我今天很开心😊 OK!"),
        ("乾坤浩蕩，天乾物燥", "乾坤浩荡，天干物燥"),
        ("", ""),
    ],
)
def test_traditional_characters_become_simplified(text, plain):
    assert simplified(text) == plain


@settings(deadline=None)
@given(st.text())
def test_what_is_simplified_stays_and_no_character_is_lost(text):
    assert len(simplified(text)) == len(text)
    assert simplified(simplified(text)) == simplified(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我丢了工作", "zh"),
        ("I lost my job", "en"),
        ("我的boss今天又骂我了", "zh"),
        ("My boss said 加油 to me today", "en"),
        ("我很sad", "zh"),
        ("ＯＫ", "en"),
        ("😊 123 …", None),
        ("", None),
    ],
)
def test_the_language_is_that_of_most_of_the_text(text, language):
    assert language_of(text) == language


NONE, LEVEL, OBLIQUE = frozenset[Tone](), frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE})


@pytest.mark.parametrize(
    ("characters", "known"),
    [
        ("柳雨月雪日去", OBLIQUE),  # rising (上), departing (去) and entering tone (入)
        ("人花来风楼门云情", LEVEL),  # changed tones of Cantonese do not count: 人 jan4 has jan2 in 女人
        ("地马女子里意", OBLIQUE),  # nor do stray readings
        ("看忘望醒论思过听胜中正重长教应", LEVEL | OBLIQUE),  # both are in the rhyme books: 忘 阳韵 and 漾韵
        ("白国十菊竹黑八", OBLIQUE),  # the entering tone, which Mandarin made level
        ("东東門", LEVEL),  # dung1; traditional characters have the tones of the simplified ones
        ("一", OBLIQUE),  # jat1: the first tone of a stop is no level one
        ("鿌", LEVEL),  # liáng: Mandarin answers where Cantonese has no reading
        ("鿃", OBLIQUE),  # shǎn
        ("〇", LEVEL),  # ling4
        ("，aA1 あ\U0003347f", NONE),
    ],
)
def test_the_tones_of_the_rhyme_books(characters, known):
    assert {char: tones(char) for char in characters} == dict.fromkeys(characters, known)
    for char in characters:
        assert (can_be_level(char), can_be_oblique(char)) == (Tone.LEVEL in known, Tone.OBLIQUE in known)


def test_a_reading_of_two_syllables_is_passed_over():
    assert can_be_level("哩")  # lei1 and others, and jing1 lei5


def test_build_orders_by_count_then_code_point():
    vocabulary = Vocabulary.build(["春风春", "风春月", "山"])
    assert vocabulary.tokens == ("<pad>", "<unk>", "<bos>", "<eos>", "春", "风", "山", "月")
    assert vocabulary.encode("春雨月") == [4, 1, 7]
    assert vocabulary.decode([2, 4, 7, 3]) == ["<bos>", "春", "月", "<eos>"]
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.bos_id, vocabulary.eos_id) == (0, 1, 2, 3)


def test_build_limits():
    sequences = [["a", "a", "b", "b", "c"], ["<eos>", "a"]]
    assert Vocabulary.build(sequences, min_count=2).tokens[4:] == ("a", "b")
    assert Vocabulary.build(sequences, max_size=5).tokens[4:] == ("a",)
    assert Vocabulary.build(sequences, reserved=["c", "z"], max_size=7).tokens[4:] == ("c", "z", "a")
    with pytest.raises(ValueError, match="max_size is 3"):
        Vocabulary.build(sequences, max_size=3)


tokens = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(tokens, max_size=6), max_size=6))
def test_every_vocabulary_survives_its_file(tmp_path_factory, sequences):
    path = tmp_path_factory.mktemp("vocabulary") / "v.txt"
    vocabulary = Vocabulary.build(sequences)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    for sequence in sequences:
        assert vocabulary.decode(vocabulary.encode(sequence)) == sequence


def test_line_number_is_the_id_whatever_ends_a_line(tmp_path):
    path = tmp_path / "v.txt"
    Vocabulary.build(["春风"]).save(path)
    assert path.read_bytes().decode() == "".join(f"{token}\n" for token in (*SPECIAL_TOKENS, "春", "风"))
    path.write_bytes("\ufeff".encode() + "\r\n".join([*SPECIAL_TOKENS, "春"]).encode() + b"\r\n")
    assert Vocabulary.load(path).tokens == (*SPECIAL_TOKENS, "春")


LEAD = "<pad>\n<unk>\n<bos>\n<eos>\n"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "line 1: "),
        (b"<pad>\n<unk>\n", "line 3: .* ends before"),
        ("春\n风\n".encode(), "line 1: .*<pad> must stand, not '春'"),
        (b"[PAD]\n[UNK]\n", "line 1: "),
        (LEAD.encode() + b"a\nb\na\n", "line 7: 'a' .*line 5"),
        (LEAD.encode() + b"a\n<eos>\n", "line 6: '<eos>' .*line 4"),
        (LEAD.encode() + b"a\n\nb\n", "line 6: the line is empty"),
        (LEAD.encode() + b"a\nb\rc\n", "line 6: .*line break"),
        (LEAD.encode() + "春风".encode()[:-1], "line 5: .*UTF-8"),
    ],
)
def test_damaged_file_is_named_with_its_line(tmp_path, content, where):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(str(path)) + ", " + where) as caught:
        Vocabulary.load(path)
    assert "\n" not in str(caught.value)


def test_missing_file_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.txt: cannot read"):
        Vocabulary.load(tmp_path / "nothing.txt")
    with pytest.raises(UserError, match="cannot read"):
        Vocabulary.load(tmp_path)


def test_what_no_vocabulary_has_is_refused():
    for index in (-1, 4):
        with pytest.raises(IndexError, match=f"id {index} is outside"):
            Vocabulary(SPECIAL_TOKENS).decode([index])
    with pytest.raises(ValueError, match=r"entry 4: .*line break"):
        Vocabulary([*SPECIAL_TOKENS, "a\nb"])
